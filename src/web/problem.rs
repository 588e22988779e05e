//! Errors as `application/problem+json` (RFC 9457). Their types are stable: programs compare
//! them, people read `detail`.

use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use strum::IntoEnumIterator;
use utoipa::ToSchema;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::api::{ApiError, ErrorCode, json};

/// The media type of an error.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub(super) enum ProblemKind {
    BadRequest,
    /// There is no token, or a wrong one.
    Unauthorized,
    /// The token does not permit it.
    Forbidden,
    NotFound,
    /// It existed, and an admin removed it.
    Removed,
    MethodNotAllowed,
    /// The request is valid, but the state does not allow an answer, such as a window that is not
    /// kept.
    Conflict,
    UriTooLong,
    TooManyRequests,
    Internal,
    AnswerTooLarge,
    /// The daemon is opening its state.
    Starting,
    Stopping,
    /// The engine did not answer in time, or is rebuilding what was requested.
    Busy,
}

/// A kind of problem, as clients see it.
pub(super) struct ProblemSpec {
    pub status: StatusCode,
    /// The end of `type`.
    pub name: &'static str,
    pub title: &'static str,
    /// For the reader of `/problems/{name}`.
    pub meaning: &'static str,
}

impl ProblemKind {
    /// The value of `type`.
    pub fn uri(self) -> String {
        format!("/problems/{}", self.spec().name)
    }

    /// `None`: an internal error, whose message only admins see.
    pub fn of(code: ErrorCode) -> Option<ProblemKind> {
        match code {
            ErrorCode::BadRequest => Some(ProblemKind::BadRequest),
            ErrorCode::NotFound => Some(ProblemKind::NotFound),
            ErrorCode::Removed => Some(ProblemKind::Removed),
            ErrorCode::Refused | ErrorCode::NotLeader => Some(ProblemKind::Conflict),
            ErrorCode::Busy => Some(ProblemKind::Busy),
            ErrorCode::Stopping => Some(ProblemKind::Stopping),
            ErrorCode::Internal | ErrorCode::Other => None,
        }
    }

    pub fn of_name(name: &str) -> Option<ProblemKind> {
        ProblemKind::iter().find(|kind| kind.spec().name == name)
    }

    pub fn spec(self) -> ProblemSpec {
        let (status, name, title, meaning) = match self {
            ProblemKind::BadRequest => (
                StatusCode::BAD_REQUEST,
                "bad_request",
                "Invalid request",
                "A parameter is unknown, missing or invalid, or the path or a header is. The detail says which one.",
            ),
            ProblemKind::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "A token is needed",
                "Only admins may send this request: with a token of the configuration, as Authorization: Bearer.",
            ),
            ProblemKind::Forbidden => (
                StatusCode::FORBIDDEN,
                "forbidden",
                "Not permitted",
                "The token does not permit this request, or it was sent without TLS.",
            ),
            ProblemKind::NotFound => (
                StatusCode::NOT_FOUND,
                "not_found",
                "Not found",
                "There is no such path, server, player, map or board.",
            ),
            ProblemKind::Removed => (
                StatusCode::GONE,
                "removed",
                "Removed",
                "The server was removed from this site: it is no longer scanned or listed.",
            ),
            ProblemKind::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "Method not allowed",
                "Only GET and HEAD are supported: nothing here can be changed.",
            ),
            ProblemKind::Conflict => (
                StatusCode::CONFLICT,
                "refused",
                "Not possible now",
                "The request is valid but not possible now. The detail says why: for example, searches are turned off.",
            ),
            ProblemKind::UriTooLong => {
                (StatusCode::URI_TOO_LONG, "uri_too_long", "URI too long", "Path and query are too long.")
            }
            ProblemKind::TooManyRequests => (
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_requests",
                "Too many requests",
                "This client has sent too many requests. The header Retry-After says how many seconds to wait.",
            ),
            ProblemKind::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal error",
                "A bug. The log of the daemon has the reason.",
            ),
            ProblemKind::AnswerTooLarge => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "answer_too_large",
                "The answer is too large",
                "The answer has more than 4 MiB. Request fewer rows.",
            ),
            ProblemKind::Starting => (
                StatusCode::SERVICE_UNAVAILABLE,
                "starting",
                "The daemon is starting",
                "The daemon is opening its state, which takes minutes with a million servers. Try again later.",
            ),
            ProblemKind::Stopping => (
                StatusCode::SERVICE_UNAVAILABLE,
                "stopping",
                "The daemon is stopping",
                "The daemon is stopping. Try again when it is started again.",
            ),
            ProblemKind::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "The daemon is busy",
                "Too many requests are being answered, the engine did not answer in time, or the window is being \
                 rebuilt. Try again after the seconds in the header Retry-After.",
            ),
        };
        ProblemSpec { status, name, title, meaning }
    }
}

/// An error (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody<'a> {
    /// What went wrong, for people.
    detail: &'a str,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The type in words.
    title: &'static str,
    #[schema(schema_with = problem_types)]
    r#type: String,
}

fn problem_types() -> Object {
    let uris = ProblemKind::iter().map(ProblemKind::uri);
    let description = "The type of the error. It is stable: programs compare it.";
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(uris)).description(Some(description)).build()
}

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub kind: ProblemKind,
    pub detail: String,
    pub retry_after_s: Option<u64>,
}

impl Problem {
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Problem {
        let retry_after_s = (kind.spec().status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        Problem { kind, detail: detail.into(), retry_after_s }
    }

    /// The error in JSON.
    pub fn body(&self) -> Vec<u8> {
        let ProblemSpec { status, title, .. } = self.kind.spec();
        let (status, r#type) = (status.as_u16(), self.kind.uri());
        json::to_vec(&ProblemBody { detail: &self.detail, status, title, r#type })
    }

    /// A bug; the caller has logged it.
    pub fn internal() -> Problem {
        Problem::new(ProblemKind::Internal, "the log of the daemon has the reason")
    }

    pub fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(ProblemKind::NotFound, detail)
    }

    pub fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(ProblemKind::BadRequest, detail)
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Problem {
        let Some(kind) = ProblemKind::of(error.code) else {
            // Such a message may name files.
            tracing::error!(error = error.message, "a request of the web interface failed");
            return Problem::internal();
        };
        Problem::new(kind, error.message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.kind.spec().status, self.body()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.kind == ProblemKind::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.kind == ProblemKind::MethodNotAllowed {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}
