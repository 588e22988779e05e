//! Errors as pages, with the status and the headers that programs get, too.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use maud::html;

use super::layout::{Page, with_policy};
use crate::model::shown_text::shown;
use crate::web::problem::Problem;

/// The page of an error.
pub(in crate::web) fn response(problem: Problem) -> Response {
    let body = html! {
        h1 { (problem.title()) }
        p { (shown(&problem.detail)) }
        @if let Some(seconds) = problem.retry_after_s { p { "Try again in " (seconds) " s." } }
        p { a href="/" { "To the first page" } }
    };
    let page = Page::new(problem.title(), body).into_html();
    let mut response = problem.into_response();
    *response.body_mut() = Body::from(page);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    with_policy(response)
}
