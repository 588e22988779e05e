//! The door of the admins: all requests, over a Unix socket, whose permissions protect it, or over the port with a token.
//!
//! `POST /api/v1/servers/add` with the fields of the request as JSON. The answer is JSON lines: rows, then notes or
//! an error if there are any. An error without rows is an answer with a status and a problem (RFC 9457), as on the
//! website. The paths of the website are there, too.

mod rows;
mod socket;
mod unread;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request as HttpRequest;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, Router, post};
use tokio::time::timeout;

pub use self::rows::{Disconnected, Rows};
pub use self::socket::{AdminSocket, SocketError};
use super::context::WebContext;
use super::problem::{Problem, ProblemKind};
use super::tokens::Caller;
use crate::api::{ApiError, COMMANDS, Request, decode_request, path_of};
use crate::limits::REQUEST_BODY_BYTES_MAX;
use crate::nearest::nearest;

/// Longest time for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The routes of all requests.
pub(super) fn routes() -> Router<Arc<WebContext>> {
    COMMANDS.iter().fold(Router::new(), |router, command| router.route(&path_of(command), route(command)))
}

fn route(command: &'static str) -> MethodRouter<Arc<WebContext>> {
    post(move |context: axum::extract::State<Arc<WebContext>>, http: HttpRequest| async move {
        let caller = http.extensions().get::<Caller>().expect("the router refuses others").clone();
        let read = read(command, http.into_body()).await;
        let request = match read.and_then(|request| caller.check(request.access()).map(|()| request)) {
            Ok(request) => request,
            Err(problem) => return problem.into_response(),
        };
        let changes = !request.is_read_only();
        if let Caller::Token(token) = &caller
            && changes
        {
            tracing::info!(token = token.name, request = command, "a request with a token");
        }
        let backend = match context.backend() {
            Ok(backend) => backend,
            Err(problem) => return problem.into_response(),
        };
        rows::answer(changes, |rows| backend.run(request, rows)).await
    })
}

/// The error of a path without a request.
pub(super) fn unknown_request(path: &str) -> Problem {
    let paths = COMMANDS.map(path_of);
    let suggestion = match nearest(path, paths.iter().map(String::as_str)) {
        Some(right) => format!("did you mean {right}?"),
        None => "docs/commands.md lists all".to_owned(),
    };
    Problem::not_found(format!("there is no request POST {path}; {suggestion}"))
}

async fn read(command: &str, body: Body) -> Result<Request, Problem> {
    let Ok(read) = timeout(BODY_TIMEOUT, to_bytes(body, REQUEST_BODY_BYTES_MAX)).await else {
        return Err(Problem::bad_request(format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs())));
    };
    let too_large = format!("the body is incomplete, or has more than {REQUEST_BODY_BYTES_MAX} bytes");
    let body = read.map_err(|_| Problem::bad_request(too_large))?;
    decode_request(command, &body).map_err(Problem::for_admin)
}

impl Problem {
    /// As of an [`ApiError`], with the message that only an admin may see.
    fn for_admin(error: ApiError) -> Problem {
        let (code, message) = (error.code, error.message);
        Problem::new(ProblemKind::of(code).unwrap_or(ProblemKind::Internal), message)
    }
}
