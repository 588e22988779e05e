//! JSON answers: their size, their ETag and how long they may be cached.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
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

/// The answer to a request with these headers; without a body if the client has it already.
pub(super) fn json_answer(request: &HeaderMap, value: &impl Serialize, max_age_s: u32) -> Result<Response, Problem> {
    let body = json::to_vec(value);
    if body.len() > ANSWER_BYTES_MAX {
        let detail = format!("the answer has {} bytes; at most {ANSWER_BYTES_MAX}. Request fewer rows", body.len());
        return Err(Problem::new(ProblemKind::AnswerTooLarge, detail));
    }
    let etag = etag(&body);
    let mut response = if is_known(request, &etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, "application/json")], body).into_response()
    };
    let header = |text: String| HeaderValue::try_from(text).expect("digits, letters and punctuation");
    response.headers_mut().insert(CACHE_CONTROL, header(format!("public, max-age={max_age_s}")));
    response.headers_mut().insert(ETAG, header(etag));
    Ok(response)
}

/// Weak, because the same answer may be compressed.
fn etag(body: &[u8]) -> String {
    format!("W/\"{:032x}\"", SipHasher13::new().hash(body).as_u128())
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

    #[test]
    fn known_answer_has_no_body() {
        #[track_caller]
        fn check(if_none_match: &[&str], want: StatusCode) {
            let mut request = HeaderMap::new();
            if_none_match.iter().for_each(|text| _ = request.append(IF_NONE_MATCH, text.parse().expect("a header")));
            let response = json_answer(&request, &[1, 2], 10).expect("an answer");
            assert_eq!(response.status(), want, "{if_none_match:?}");
            assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=10");
            assert_eq!(response.headers()[ETAG], etag(b"[1,2]"));
        }
        let known = etag(b"[1,2]");
        check(&[], StatusCode::OK);
        check(&[&etag(b"[1,3]")], StatusCode::OK);
        check(&[&known], StatusCode::NOT_MODIFIED);
        check(&[known.trim_start_matches("W/")], StatusCode::NOT_MODIFIED);
        check(&[&format!("\"x\", {known}")], StatusCode::NOT_MODIFIED);
        check(&["\"x\"", &known], StatusCode::NOT_MODIFIED);
        check(&["*"], StatusCode::NOT_MODIFIED);
    }

    #[test]
    fn too_large_answer_is_refused() {
        let text = "x".repeat(ANSWER_BYTES_MAX);
        let problem = json_answer(&HeaderMap::new(), &text, 10).expect_err("two quotes more than the limit");
        assert_eq!(problem.kind, ProblemKind::AnswerTooLarge);
        assert!(json_answer(&HeaderMap::new(), &&text[2..], 10).is_ok());
    }
}
