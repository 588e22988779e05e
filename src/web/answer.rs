//! Answers: their size, their ETag and how long they may be cached.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use siphasher::sip128::SipHasher13;

use super::limits::ANSWER_BYTES_MAX;
use super::problem::{Problem, ProblemKind};
use crate::api::json;

/// How long an answer may be cached, s. Servers are scanned once in two minutes.
pub(super) const MAX_AGE_S: u32 = 10;

/// As [`MAX_AGE_S`], of a closed window. An admin may reopen a week.
pub(super) const CLOSED_MAX_AGE_S: u32 = 300;

/// As [`MAX_AGE_S`], of the status.
pub(super) const STATUS_MAX_AGE_S: u32 = 1;

/// As [`MAX_AGE_S`], of a banner: forums show it on every page of a thread.
pub(super) const BANNER_MAX_AGE_S: u32 = 60;

/// As [`MAX_AGE_S`], of an answer that changes only with the version of clqd.
pub(super) const STATIC_MAX_AGE_S: u32 = 86_400;

/// An answer in JSON.
pub(super) fn json_answer(value: &impl Serialize, max_age_s: u32) -> Result<Response, Problem> {
    answer("application/json", json::to_vec(value), max_age_s)
}

/// As [`json_answer`]. `content` is the value without the fields that change with time alone. The
/// ETag is computed from it, so a client that has the same content gets 304.
pub(super) fn json_answer_of_content(
    value: &impl Serialize,
    content: &impl Serialize,
    max_age_s: u32,
) -> Result<Response, Problem> {
    let mut response = json_answer(value, max_age_s)?;
    response.headers_mut().insert(ETAG, etag(&json::to_vec(content)));
    Ok(response)
}

/// An answer that may be cached.
pub(super) fn answer(content_type: &'static str, body: Vec<u8>, max_age_s: u32) -> Result<Response, Problem> {
    if body.len() > ANSWER_BYTES_MAX {
        let detail = format!("the answer has {} bytes; at most {ANSWER_BYTES_MAX}. Request fewer rows", body.len());
        return Err(Problem::new(ProblemKind::AnswerTooLarge, detail));
    }
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, cache_control(max_age_s)),
        (ETAG, etag(&body)),
    ];
    Ok((headers, body).into_response())
}

/// The answer to a request for a path that is permanently replaced by another one.
pub(super) fn moved_to(path: &str) -> Response {
    // Path and query of a URI are valid in a header.
    let Ok(location) = HeaderValue::try_from(path) else { return Problem::internal().into_response() };
    let headers = [(LOCATION, location), (CACHE_CONTROL, cache_control(STATIC_MAX_AGE_S))];
    (StatusCode::MOVED_PERMANENTLY, headers).into_response()
}

fn cache_control(max_age_s: u32) -> HeaderValue {
    HeaderValue::try_from(format!("public, max-age={max_age_s}")).expect("digits, letters and punctuation")
}

/// Weak, because the same answer may be compressed.
fn etag(body: &[u8]) -> HeaderValue {
    let text = format!("W/\"{:032x}\"", SipHasher13::new().hash(body).as_u128());
    HeaderValue::try_from(text).expect("digits, letters and punctuation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_large_answer_is_refused() {
        let text = "x".repeat(ANSWER_BYTES_MAX);
        let problem = json_answer(&text, 10).expect_err("two quotes more than the limit");
        assert_eq!(problem.kind, ProblemKind::AnswerTooLarge);
        assert!(json_answer(&&text[2..], 10).is_ok());
    }
}
