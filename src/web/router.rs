//! The routes, and the checks that every request passes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::compression::CompressionLayer;

use super::context::WebContext;
use super::limits::URI_BYTES_MAX;
use super::problem::{Problem, ProblemKind};
use super::{answer_cache, banners, health, metrics, pages, v1};

/// The address that a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub SocketAddr);

/// Routes without pages, besides the API.
const FOR_PROGRAMS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Liveness and readiness are reported to clients that have exceeded their rate, too.
const UNLIMITED_ROUTES: [&str; 2] = ["/healthz", "/readyz"];

pub(super) fn router(context: Arc<WebContext>) -> Router {
    let cached = Router::new()
        .merge(pages::routes())
        .merge(banners::routes())
        .nest("/api/v1", v1::cached_routes())
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(context.clone(), answer_cache::cached));
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .nest("/api/v1", v1::stream_routes())
        .route("/metrics", get(metrics::metrics).layer(CompressionLayer::new()))
        .merge(cached)
        .fallback(not_found)
        .layer(from_fn_with_state(context.clone(), check))
        .with_state(context)
}

async fn not_found(uri: Uri) -> Response {
    error_response(uri.path(), Problem::not_found(format!("there is no {}", uri.path())))
}

/// An error for people is a page.
fn error_response(path: &str, problem: Problem) -> Response {
    let is_for_programs = path.starts_with("/api/") || FOR_PROGRAMS.contains(&path);
    if is_for_programs { problem.into_response() } else { pages::error_page::response(problem) }
}

/// Refuses what no route answers, counts the request, and adds the headers of all answers.
async fn check(State(context): State<Arc<WebContext>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let mut response = match problem_of(&context, &request, &route) {
        Some(problem) => error_response(request.uri().path(), problem),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    context.metrics.count(route, response.status(), began.elapsed());
    response
}

fn problem_of(context: &WebContext, request: &Request, route: &str) -> Option<Problem> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        // Without the name: a method may be any text.
        return Some(Problem::new(ProblemKind::MethodNotAllowed, "only GET and HEAD are supported"));
    }
    let bytes = request.uri().path_and_query().map_or(0, |uri| uri.as_str().len());
    if bytes > URI_BYTES_MAX {
        let detail = format!("path and query have {bytes} bytes; at most {URI_BYTES_MAX}");
        return Some(Problem::new(ProblemKind::UriTooLong, detail));
    }
    if UNLIMITED_ROUTES.contains(&route) {
        return None;
    }
    let Peer(peer) = request.extensions().get::<Peer>().expect("the listener adds the address");
    let wait = context.clients.check(context.proxies.client_of(peer.ip(), request.headers())).err()?;
    let retry_after_s = wait.as_secs() + 1;
    let detail = format!("this address has sent too many requests; try again in {retry_after_s} s");
    Some(Problem { retry_after_s: Some(retry_after_s), ..Problem::new(ProblemKind::TooManyRequests, detail) })
}
