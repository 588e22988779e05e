//! The door of the admins: all requests, over a Unix socket, whose permissions protect it, or over the port with a token.
//!
//! `POST /api/v1/servers/add` with the fields of the request as JSON. The answer is JSON lines: the result, then notes or
//! an error if there are any. An error without other lines is an answer with a status and a problem (RFC 9457), as on the
//! website. The paths of the website are there, too.

mod lines;
pub(super) mod openapi;
mod socket;
mod unread;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, Router, post};
use tokio::time::timeout;

pub use self::lines::{Disconnected, LineSender, Lines};
pub use self::socket::{AdminSocket, SocketError};
use super::context::WebContext;
use super::problem::{Problem, ProblemKind};
use super::tokens::Caller;
use crate::api::{Access, ApiError, REQUESTS, RequestInfo};
use crate::limits::REQUEST_BODY_BYTES_MAX;
use crate::nearest::nearest;
use crate::web::AdminWork;

/// Longest time for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The routes of all requests.
pub(super) fn routes() -> Router<Arc<WebContext>> {
    REQUESTS.iter().fold(Router::new(), |router, request| router.route(&request.path(), route(request)))
}

fn route(request: &'static RequestInfo) -> MethodRouter<Arc<WebContext>> {
    post(move |context: State<Arc<WebContext>>, http: HttpRequest| async move {
        let caller = http.extensions().get::<Caller>().expect("the router refuses others").clone();
        match prepare(request, &context, &caller, http.into_body()).await {
            Ok(work) => lines::answer(request.access != Access::Read, work).await,
            Err(problem) => problem.into_response(),
        }
    })
}

async fn prepare(
    request: &RequestInfo,
    context: &WebContext,
    caller: &Caller,
    body: Body,
) -> Result<AdminWork, Problem> {
    let body = read(body).await?;
    caller.check(request.access)?;
    let work = context.backend()?.prepare(request.name, &body).map_err(Problem::for_admin)?;
    if let Caller::Token(token) = caller
        && request.access != Access::Read
        // A scanner sends some of them each second.
        && request.access != Access::SCAN
    {
        tracing::info!(token = token.name, request = request.name, "a request with a token");
    }
    Ok(work)
}

/// The error of a path without a request.
pub(super) fn unknown_request(path: &str) -> Problem {
    let paths: Vec<String> = REQUESTS.iter().map(RequestInfo::path).collect();
    let suggestion = match nearest(path, paths.iter().map(String::as_str)) {
        Some(right) => format!("did you mean {right}?"),
        None => "docs/commands.md lists all".to_owned(),
    };
    Problem::not_found(format!("there is no request POST {path}; {suggestion}"))
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    let Ok(read) = timeout(BODY_TIMEOUT, to_bytes(body, REQUEST_BODY_BYTES_MAX)).await else {
        return Err(Problem::bad_request(format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs())));
    };
    let too_large = format!("the body is incomplete, or has more than {REQUEST_BODY_BYTES_MAX} bytes");
    read.map_err(|_| Problem::bad_request(too_large))
}

impl Problem {
    /// As of an [`ApiError`], with the message that only an admin may see.
    fn for_admin(error: ApiError) -> Problem {
        let (code, message) = (error.code, error.message);
        Problem::new(ProblemKind::of(code).unwrap_or(ProblemKind::Internal), message)
    }
}
