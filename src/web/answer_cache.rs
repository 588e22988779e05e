//! Answers are computed once for all who want the same: while one is computed, others wait for it,
//! and for a moment it is used again. So any number of readers of a page cost the engine one
//! request, and clients that request many different pages are limited by
//! [`COMPUTED_AT_ONCE_MAX`].

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use moka::future::Cache;
use tokio::sync::Semaphore;

use super::context::WebContext;
use super::limits::{ANSWER_BYTES_MAX, ANSWERS_AGE_MAX, ANSWERS_BYTES_MAX, COMPUTED_AT_ONCE_MAX};
use super::problem::{Problem, ProblemKind};

/// What an answer depends on.
#[derive(PartialEq, Eq, Hash)]
struct AnswerKey {
    path_and_query: String,
    is_compressed: bool,
    /// An answer from before a correction is not used after it.
    changes: u64,
}

#[derive(Clone)]
struct CachedAnswer(Arc<Answer>);

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Memory of an answer besides its body: its headers, and its place in the cache.
const ANSWER_OVERHEAD_BYTES: usize = 1_024;

pub(super) struct AnswerCache {
    answers: Cache<AnswerKey, CachedAnswer>,
    computing: Semaphore,
}

impl Default for AnswerCache {
    fn default() -> AnswerCache {
        let weight = |key: &AnswerKey, answer: &CachedAnswer| {
            (key.path_and_query.len() + answer.0.body.len() + ANSWER_OVERHEAD_BYTES) as u32
        };
        let answers = Cache::builder().max_capacity(ANSWERS_BYTES_MAX).weigher(weight).time_to_live(ANSWERS_AGE_MAX);
        AnswerCache { answers: answers.build(), computing: Semaphore::new(COMPUTED_AT_ONCE_MAX) }
    }
}

/// Answers from the cache, or computes and keeps the answer. Errors are not cached, but those
/// who waited for the same answer get them, too.
pub(super) async fn cached(State(context): State<Arc<WebContext>>, mut request: Request, next: Next) -> Response {
    let cache = &context.answers;
    let client_headers = request.headers().clone();
    let is_compressed = client_headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.contains("gzip")));
    let path_and_query = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let key = AnswerKey { path_and_query, is_compressed, changes: context.changes() };
    // Computed as for GET: a HEAD request shares the answer, without its body.
    *request.method_mut() = Method::GET;
    let answer = cache.answers.try_get_with(key, async {
        let Ok(_permit) = cache.computing.try_acquire() else {
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
    Problem::new(ProblemKind::Busy, format!("{COMPUTED_AT_ONCE_MAX} other answers are being computed; try again"))
}

impl CachedAnswer {
    async fn from_response(response: Response) -> CachedAnswer {
        let (parts, body) = response.into_parts();
        match to_bytes(body, ANSWER_BYTES_MAX).await {
            Ok(body) => CachedAnswer(Arc::new(Answer { status: parts.status, headers: parts.headers, body })),
            Err(error) => {
                tracing::error!(%error, "an answer of the web interface could not be compressed");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                CachedAnswer(Arc::new(Answer { status, headers: HeaderMap::new(), body: Bytes::new() }))
            }
        }
    }

    /// The answer to a request with these headers; without a body if the client has it already.
    fn to_response(&self, request: &HeaderMap) -> Response {
        let Answer { status, headers, body } = &*self.0;
        let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
        let mut response = match etag.is_some_and(|etag| is_known(request, etag)) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => (*status, Body::from(body.clone())).into_response(),
        };
        *response.headers_mut() = headers.clone();
        response
    }
}

/// Whether `If-None-Match` names the ETag.
fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let opaque = etag.trim_start_matches("W/");
    let listed = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    listed
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == opaque)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn known_answer_has_no_body() {
        let etag = "W/\"00ab\"";
        let answer = CachedAnswer::from_response(([(ETAG, etag)], "body").into_response()).await;
        let check = |if_none_match: &[&str], want: StatusCode| {
            let mut request = HeaderMap::new();
            if_none_match.iter().for_each(|text| _ = request.append(IF_NONE_MATCH, text.parse().expect("a header")));
            let response = answer.to_response(&request);
            assert_eq!(response.status(), want, "{if_none_match:?}");
            assert_eq!(response.headers()[ETAG], etag);
        };
        check(&[], StatusCode::OK);
        check(&["W/\"00ac\""], StatusCode::OK);
        check(&[etag], StatusCode::NOT_MODIFIED);
        check(&["\"00ab\""], StatusCode::NOT_MODIFIED);
        check(&[&format!("\"x\", {etag}")], StatusCode::NOT_MODIFIED);
        check(&["\"x\"", etag], StatusCode::NOT_MODIFIED);
        check(&["*"], StatusCode::NOT_MODIFIED);
    }
}
