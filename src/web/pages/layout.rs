//! The frame of every page, and the headers of its answer.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::model::shown_text::shown;
use crate::web::answer::{MAX_AGE_S, answer};
use crate::web::problem::Problem;

/// The style sheet of all pages.
pub(super) const STYLE: &str = include_str!("style.css");

/// Nothing but the style sheet and images of this site; no scripts at all.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// A page.
pub(super) struct Page {
    pub title: String,
    pub body: Markup,
    /// How long it may be cached, s.
    pub max_age_s: u32,
}

impl Page {
    pub fn new(title: impl Into<String>, body: Markup) -> Page {
        Page { title: title.into(), body, max_age_s: MAX_AGE_S }
    }

    pub fn into_html(self) -> String {
        let Page { title, body, .. } = self;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (shown(&title)) " - clqd" }
                    link rel="stylesheet" href={ "/style.css?v=" (env!("CARGO_PKG_VERSION")) };
                    link rel="icon" href="/icon.svg" type="image/svg+xml";
                }
                body {
                    a .skip href="#main" { "Skip to the content" }
                    header {
                        a .brand href="/" { "clqd" }
                        nav aria-label="Site" {
                            a href="/servers?order=players" { "Servers" }
                            a href="/games" { "Games" }
                            a href="/maps" { "Maps" }
                            a href="/about" { "About" }
                        }
                        form action="/search" role="search" {
                            label for="site-search" { "Servers, players, maps" }
                            input #site-search type="search" name="q" maxlength="100" required;
                            " "
                            button { "Search" }
                        }
                    }
                    main #main { (body) }
                    footer {
                        p {
                            "Every figure is computed from the public answers of game servers. Times are UTC. "
                            a href="/about" { "How it works, and how to opt out" } ". "
                            a href="/api" { "API" }
                        }
                    }
                }
            }
        };
        page.into_string()
    }
}

/// The answer to a request for a page.
pub(super) type PageResult = Result<Page, PageError>;

/// An error that is shown as a page.
pub(in crate::web) struct PageError(pub Problem);

impl<E: Into<Problem>> From<E> for PageError {
    fn from(error: E) -> PageError {
        PageError(error.into())
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let max_age_s = self.max_age_s;
        let response = answer("text/html; charset=utf-8", self.into_html().into_bytes(), max_age_s);
        with_policy(response.unwrap_or_else(error_page))
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        error_page(self.0)
    }
}

pub(super) fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// The page of an error.
pub(in crate::web) fn error_page(problem: Problem) -> Response {
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
