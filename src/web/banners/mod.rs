//! Banners: images of a server or a player for forums, as SVG and as PNG, in three sizes.
//!
//! The path of a banner is `/banners/SIZE`, the path of the page, and `.png` or `.svg`. It has no
//! parameters, so clients cannot request larger images or many variants. The path may begin with a language. Without one a
//! banner is in English for every viewer: a forum shows it to other people than the one who embedded it.
//!
//! - [`size`]: the sizes, the formats, and the paths. - [`server`], [`player`]: the content.
//! - [`drawing`]: what is shown, and where. - [`text`]: sanitises and truncates the text of strangers.
//! - [`font`]: the only font. - [`svg`], [`png`]: the formats.

mod drawing;
mod font;
mod player;
mod png;
mod server;
mod size;
mod svg;
mod text;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use axum::routing::get;

use self::drawing::Banner;
use self::size::{Format, Size};
use super::answer::{BANNER_MAX_AGE_S, answer, moved_to};
use super::context::WebContext;
use super::pages::layout::PageError;
use super::problem::Problem;
use super::query::{no_parameters, player_key, server_url};
use crate::api::requests;

pub(super) use self::size::{Format as BannerFormat, Size as BannerSize, path_in_language as banner_path};

/// An SVG that is opened as a page loads nothing and runs nothing.
const POLICY: &str = "default-src 'none'";

pub(super) fn routes() -> Router<Arc<WebContext>> {
    Router::new()
        // The rest of the path: the URL of a server contains slashes.
        .route("/banners/{size}/servers/{*file}", get(server_banner))
        .route("/banners/{size}/players/{file}", get(player_banner))
}

async fn server_banner(
    State(context): State<Arc<WebContext>>,
    Path((size, file)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, PageError> {
    no_parameters(&uri)?;
    let (size, (url, format)) = (Size::parse(&size)?, Format::split(&file)?);
    let banner = server::banner(context.ask(requests::ServersShow { url: server_url(url)? }).await?.public);
    Ok(image(&context, banner, size, format).await?)
}

async fn player_banner(
    State(context): State<Arc<WebContext>>,
    Path((size, file)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, PageError> {
    no_parameters(&uri)?;
    let (size, (key, format)) = (Size::parse(&size)?, Format::split(&file)?);
    let player_key = player_key(key)?;
    let player = context.ask(requests::PlayerShow { player_key, skip: 0 }).await?;
    if player.player_key != player_key {
        let page = format!("/players/{}", player.player_key);
        return Ok(moved_to(&size::path(&page, size, format)));
    }
    let banner = player::banner(player, &context.status().await?.engine.week);
    Ok(image(&context, banner, size, format).await?)
}

async fn image(context: &WebContext, banner: Banner, size: Size, format: Format) -> Result<Response, Problem> {
    let picture = banner.draw(size);
    match format {
        Format::Svg => {
            let mut response = answer("image/svg+xml", svg::render(&picture).into_bytes(), BANNER_MAX_AGE_S)?;
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
            Ok(response)
        }
        Format::Png => {
            let permit = context.banner_renders.clone().acquire_owned().await.expect("the semaphore is never closed");
            let rendered = tokio::task::spawn_blocking(move || {
                // The permit is held until the thread ends, even if the client has disconnected.
                let _permit = permit;
                png::render(&picture)
            });
            let rendered = rendered.await.map_err(|error| error.to_string()).and_then(|rendered| rendered);
            let png = rendered.map_err(|error| {
                tracing::error!(error, "a banner could not be rendered");
                Problem::internal()
            })?;
            answer("image/png", png, BANNER_MAX_AGE_S)
        }
    }
}

#[cfg(test)]
mod tests;
