//! Answers requests from the cache.

use std::sync::Arc;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{AnswerKey, CachedAnswer};
use crate::web::accept_encoding;
use crate::web::client_address::Client;
use crate::web::context::WebContext;
use crate::web::problem::{Problem, ProblemKind};
use crate::web::texts::language::Chosen;

/// Answers from the cache, or computes and caches the answer. Errors are not cached, but all
/// requests that waited for the same answer get the error.
pub(in crate::web) async fn cached(
    State(context): State<Arc<WebContext>>,
    route: MatchedPath,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    let cache = &context.answers;
    let queue = if is_png_banner(&route, parameters) { &cache.png_banners } else { &cache.others };
    let &Client(client) = request.extensions().get().expect("the router adds it");
    let client_headers = request.headers().clone();
    let is_compressed = accept_encoding::is_gzip(&client_headers);
    let path_and_query = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let chosen = Chosen::of_visitor();
    let key = AnswerKey { path_and_query, is_compressed, chosen, changes: context.changes() };
    // Computed as for GET: a HEAD request shares the answer, without its body.
    *request.method_mut() = Method::GET;
    let answer = cache.answers.try_get_with(key, async {
        let Some(_permit) = queue.enter(client, context.limits.compute_wait).await else {
            return Err(CachedAnswer::from_response(busy().into_response()).await);
        };
        let answer = CachedAnswer::from_response(next.run(request).await).await;
        if answer.0.status == StatusCode::OK { Ok(answer) } else { Err(answer) }
    });
    let answer = match answer.await {
        Ok(answer) => answer,
        Err(error) => (*error).clone(),
    };
    answer.to_response(&client_headers)
}

fn busy() -> Problem {
    Problem::new(ProblemKind::Busy, "too many other answers are being computed; try again")
}

/// The decoded end of the path is compared, because a client may encode it.
fn is_png_banner(route: &MatchedPath, parameters: Result<RawPathParams, RawPathParamsRejection>) -> bool {
    let is_png = |parameters: RawPathParams| parameters.iter().any(|(_, value)| value.ends_with(".png"));
    route.as_str().starts_with("/banners/") && parameters.is_ok_and(is_png)
}
