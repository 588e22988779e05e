//! The kinds of responses that the description of the API names.

use std::collections::BTreeMap;

use utoipa::openapi::{Content, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::web::limits::{REQUEST_HEAD_BYTES_MAX, REQUEST_HEADERS_MAX, URI_BYTES_MAX};
use crate::web::problem::{PROBLEM_JSON, ProblemBody};

/// Errors of all requests.
pub(super) struct Problems;

/// As [`Problems`], of an answer with an ETag.
pub(in crate::web) struct Cached;

/// What was requested does not exist.
pub(super) struct NotFound;

/// The server was removed.
pub(super) struct Removed;

/// The player was merged into another one.
pub(super) struct Moved;

/// The request is valid, but not possible now.
pub(super) struct Refused;

fn problems<const N: usize>(problems: [(&str, &str); N]) -> BTreeMap<String, RefOr<Response>> {
    let response = |description: &str| {
        let schema = utoipa::openapi::Ref::from_schema_name(ProblemBody::name());
        let content = Content::new(Some(schema));
        ResponseBuilder::new().description(description).content(PROBLEM_JSON, content).build()
    };
    problems.map(|(status, description)| (status.to_owned(), response(description).into())).into()
}

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let too_long = format!("Path and query have more than {} KiB.", URI_BYTES_MAX / 1_024);
        let mut responses = problems([
            ("400", "A parameter, the path or a header is unknown, missing or invalid."),
            ("405", "Only GET and HEAD are supported."),
            ("414", &too_long),
            ("429", "This client has sent too many requests; `Retry-After` says how many seconds to wait."),
            ("500", "A bug, which the log of the daemon describes, or an answer above 4 MiB."),
            ("503", "The daemon starts, stops or is busy; try again after the seconds in `Retry-After`."),
        ]);
        let head_kib = REQUEST_HEAD_BYTES_MAX / 1_024;
        let too_large = format!(
            "The head of the request has more than {head_kib} KiB or {REQUEST_HEADERS_MAX} fields; without a body."
        );
        responses.insert("431".to_owned(), Response::new(too_large).into());
        responses
    }
}

impl IntoResponses for Cached {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut responses = Problems::responses();
        let unchanged = Response::new("The answer still has the ETag in `If-None-Match`.");
        responses.insert("304".to_owned(), unchanged.into());
        responses
    }
}

impl IntoResponses for NotFound {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems([("404", "What the request names does not exist.")])
    }
}

impl IntoResponses for Removed {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems([("410", "The server was removed: it is no longer scanned or listed.")])
    }
}

impl IntoResponses for Moved {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let moved = Response::new("The player was merged into another one, who is at `Location`.");
        [("301".to_owned(), moved.into())].into()
    }
}

impl IntoResponses for Refused {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems([("409", "The request is valid, but not possible now.")])
    }
}
