//! The routes, and the checks that every request passes.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "durations of requests"))]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Extensions, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use percent_encoding::percent_decode_str;
use tower_http::compression::CompressionLayer;

use super::answer::moved_to;
use super::client_address::Client;
use super::context::WebContext;
use super::door::Peer;
use super::limits::URI_BYTES_MAX;
use super::problem::{Problem, ProblemKind};
use super::texts::language::in_language;
use super::tokens::Caller;
use super::{accept_encoding, admin, answer_cache, banners, health, metrics, pages, v1};

/// Routes without pages, besides the API.
const FOR_PROGRAMS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Liveness and readiness are reported to clients that have exceeded their rate, too.
const UNLIMITED_ROUTES: [&str; 2] = ["/healthz", "/readyz"];

/// The routes of visitors and of admins, who are those with a [`Caller`].
pub(super) fn router(context: Arc<WebContext>) -> Router {
    let cached = Router::new()
        .merge(
            pages::routes().merge(banners::routes()).layer(from_fn_with_state(context.clone(), pages::layout::framed)),
        )
        .nest("/api/v1", v1::cached_routes())
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(context.clone(), answer_cache::middleware::cached));
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .nest("/api/v1", v1::stream_routes())
        .route("/metrics", get(metrics::endpoint::metrics).layer(CompressionLayer::new()))
        .merge(cached)
        .merge(admin::routes())
        .fallback(not_found)
        .layer(from_fn_with_state(context.clone(), check))
        .layer(from_fn(in_language))
        .with_state(context)
}

async fn not_found(State(context): State<Arc<WebContext>>, method: Method, uri: Uri) -> Response {
    if method == Method::POST {
        return admin::unknown_request(uri.path()).into_response();
    }
    not_found_response(&context, &uri)
}

/// An error for people is a page.
fn not_found_response(context: &WebContext, uri: &Uri) -> Response {
    error_response(context, uri, Problem::not_found(format!("there is no {}", uri.path())))
}

fn error_response(context: &WebContext, uri: &Uri, problem: Problem) -> Response {
    let path = uri.path();
    let is_for_programs = path.starts_with("/api/") || FOR_PROGRAMS.contains(&path);
    if is_for_programs { problem.into_response() } else { pages::layout::error_page(context, uri, problem) }
}

/// How old the state may be that a follower of a cluster answers from, ms.
const BEHIND_MS: HeaderName = HeaderName::from_static("clqd-behind-ms");

/// Refuses requests without a route, counts the request, and adds the headers that all answers
/// have.
async fn check(State(context): State<Arc<WebContext>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    accept_encoding::normalise(request.headers_mut());
    let &peer = request.extensions().get::<Peer>().expect("the listener adds it");
    let (client, caller) = match peer {
        Peer::Address { address, is_private } => {
            let client = context.proxies.client_of(address.ip(), request.headers());
            (client, context.tokens().caller(request.headers(), client, is_private).await)
        }
        Peer::Process => (Ipv4Addr::LOCALHOST.into(), Ok(Some(Caller::Local))),
    };
    request.extensions_mut().insert(Client(client));
    let problem = match caller {
        Ok(caller) => {
            let problem = problem_of(&context, &request, &route, client, caller.as_ref());
            request.extensions_mut().extend(caller.map(extension).unwrap_or_default());
            problem
        }
        // Wrong tokens are requests, too.
        Err(problem) => Some(too_many_requests(&context, client).unwrap_or(problem)),
    };
    let mut response = if is_preflight(&request) {
        preflight_response()
    } else if let Some(problem) = problem {
        error_response(&context, request.uri(), problem)
    } else if let Some(path) = without_trailing_slash(request.uri()) {
        moved_to(&path)
    } else {
        let (is_post, uri) = (*request.method() == Method::POST, request.uri().clone());
        let response = next.run(request).await;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED if is_post => admin::unknown_request(uri.path()).into_response(),
            // The path of a request of admins.
            StatusCode::METHOD_NOT_ALLOWED => not_found_response(&context, &uri),
            _ => response,
        }
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("ETag, Retry-After, Clqd-Behind-Ms"));
    if let Some(behind_ms) = context.backend().ok().and_then(|backend| backend.behind_ms()) {
        headers.insert(BEHIND_MS, behind_ms.into());
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    context.metrics.count(route, response.status(), began.elapsed());
    response
}

fn extension(caller: Caller) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(caller);
    extensions
}

/// Whether a browser asks if a page of another site may send a request: one with `If-None-Match`, for
/// example.
fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Allows requests with any header for two hours, which is as long as browsers remember it.
fn preflight_response() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD")),
        (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*")),
        (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200")),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Path and query without slashes at the end of the path. `None`: there are none.
///
/// A second slash at the beginning is removed, too: `//host/` would lead to another host.
fn without_trailing_slash(uri: &Uri) -> Option<String> {
    let path = uri.path().strip_suffix('/').filter(|path| !path.is_empty())?;
    let path = path.trim_end_matches('/').trim_start_matches(['/', '\\']);
    let query = uri.query().map_or(String::new(), |query| format!("?{query}"));
    Some(format!("/{path}{query}"))
}

/// `caller`: an admin.
fn problem_of(
    context: &WebContext,
    request: &Request,
    route: &str,
    client: IpAddr,
    caller: Option<&Caller>,
) -> Option<Problem> {
    let is_post = *request.method() == Method::POST;
    if is_post && caller.is_none() && request.uri().path().starts_with("/api/") && !context.tokens().is_empty() {
        return Some(Problem::new(ProblemKind::Unauthorized, "this request needs a token: Authorization: Bearer"));
    }
    let is_allowed = matches!(*request.method(), Method::GET | Method::HEAD) || (is_post && caller.is_some());
    if !is_allowed {
        // The message does not contain the method, because a method may be any string.
        return Some(Problem::new(ProblemKind::MethodNotAllowed, "only GET and HEAD are supported"));
    }
    let bytes = request.uri().path_and_query().map_or(0, |uri| uri.as_str().len());
    if bytes > URI_BYTES_MAX {
        let detail = format!("path and query have {bytes} bytes; at most {URI_BYTES_MAX}");
        return Some(Problem::new(ProblemKind::UriTooLong, detail));
    }
    if percent_decode_str(request.uri().path()).decode_utf8().is_err() {
        return Some(Problem::bad_request("the path is not UTF-8 after percent-decoding"));
    }
    // RFC 9112 section 3.2.
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() >= Version::HTTP_11) {
        return Some(Problem::bad_request(format!("there are {hosts} fields Host; expected one")));
    }
    if UNLIMITED_ROUTES.contains(&route) || caller.is_some() {
        return None;
    }
    too_many_requests(context, client)
}

/// Counts a request of a client.
fn too_many_requests(context: &WebContext, client: IpAddr) -> Option<Problem> {
    let wait = context.clients.check(client).err()?;
    let retry_after_s = wait.as_secs() + 1;
    let detail = format!("this address has sent too many requests; try again in {retry_after_s} s");
    Some(Problem { retry_after_s: Some(retry_after_s), ..Problem::new(ProblemKind::TooManyRequests, detail) })
}
