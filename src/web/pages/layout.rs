//! The frame of every page, and the headers of its answer.

use std::sync::{Arc, LazyLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::model::shown_text::shown;
use crate::web::answer::{MAX_AGE_S, answer};
use crate::web::banners::BannerSize;
use crate::web::context::WebContext;
use crate::web::identity::Identity;
use crate::web::problem::Problem;

/// The style sheet of all pages.
const STYLE: &str = include_str!("style.css");

/// The script of all pages. It is a part of the page: the policy allows it by its hash, and no other one.
const SCRIPT: &str = include_str!("site.js");

/// Nothing but the style sheet, images and the one script of this site.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("'none'"));

/// Of pages for frames.
static EMBEDDED_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("*"));

/// `ancestors`: the sites that may show the page in a frame.
fn policy(ancestors: &str) -> HeaderValue {
    let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'sha256-{hash}'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
    );
    HeaderValue::try_from(policy).expect("letters, digits and punctuation")
}

/// A page. [`framed`] puts it into the frame of the site.
#[derive(Clone)]
pub(super) struct Page {
    /// `None`: the title of the site alone.
    pub title: Option<String>,
    pub body: Markup,
    /// How long it may be cached, s.
    pub max_age_s: u32,
    pub about: About,
}

/// What search engines, and links in chats, say about a page.
#[derive(Clone, Default)]
pub(super) struct About {
    /// A sentence; `None`: the site's description.
    pub description: Option<String>,
    /// The path of its address, since others may lead to it too; `None`: that of the request.
    pub path: Option<String>,
    /// The query of the address of this content; `None`: without a query it is the same.
    pub query: Option<String>,
    /// The path of a picture of [`BannerSize::Card`].
    pub card: Option<String>,
    /// The path of the stream that says when it has changed.
    pub live: Option<String>,
    /// The path of its feed.
    pub feed: Option<String>,
    /// For a frame of another site.
    pub is_embedded: bool,
    /// It is large, and says nothing that a script could show better.
    pub without_script: bool,
    /// It is not for search engines, such as the results of a search.
    pub is_hidden: bool,
}

impl Page {
    pub fn new(title: impl Into<String>, body: Markup) -> Page {
        Page { title: Some(title.into()), body, max_age_s: MAX_AGE_S, about: About::default() }
    }

    pub fn with(self, about: About) -> Page {
        Page { about, ..self }
    }

    /// The whole page. `path` is its own; `None`: it is an error.
    fn into_html(self, context: &WebContext, path: Option<&str>) -> String {
        let Page { title, body, about, .. } = self;
        let WebContext { identity, public_url, .. } = context;
        let site = &identity.title;
        let full_title = title.as_ref().map_or_else(|| site.clone(), |title| format!("{} - {site}", shown(title)));
        let description = about.description.as_ref().map_or_else(|| identity.description.clone(), |text| shown(text));
        let icon = identity.logo.as_ref().map_or(("/icon.svg", "image/svg+xml"), |logo| ("/logo", logo.content_type));
        let url = path.map(|path| {
            let query = about.query.as_ref().map_or_else(String::new, |query| format!("?{query}"));
            format!("{public_url}{}{query}", about.path.as_deref().unwrap_or(path))
        });
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (full_title) }
                    @if let Some(url) = url.filter(|_| !about.is_hidden) {
                        meta name="description" content=(description);
                        link rel="canonical" href=(url);
                        meta property="og:type" content="website";
                        meta property="og:site_name" content=(site);
                        meta property="og:title" content=(title.as_ref().map_or_else(|| site.clone(), |title| shown(title)));
                        meta property="og:description" content=(description);
                        meta property="og:url" content=(url);
                        @match &about.card {
                            Some(card) => {
                                @let (width, height) = BannerSize::Card.pixels();
                                meta property="og:image" content={ (public_url) (card) };
                                meta property="og:image:width" content=(width);
                                meta property="og:image:height" content=(height);
                                meta name="twitter:card" content="summary_large_image";
                            },
                            None => meta name="twitter:card" content="summary";,
                        }
                    } @else {
                        meta name="robots" content="noindex";
                    }
                    @if let Some(feed) = &about.feed {
                        link rel="alternate" type="application/atom+xml" href=(feed) title=(full_title);
                    }
                    @if about.is_embedded { base target="_blank"; }
                    link rel="stylesheet" href={ "/style.css?v=" (style_version(identity)) };
                    link rel="icon" href=(icon.0) type=(icon.1);
                }
                @if about.is_embedded {
                    body .embedded {
                        main #main { (body) }
                        footer { p { a href="/" { (site) } } }
                    }
                } @else { body {
                    a .skip href="#main" { "Skip to the content" }
                    header {
                        a .brand href="/" {
                            @if identity.logo.is_some() { img src="/logo" alt="" height="32"; }
                            (site)
                        }
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
                    main #main data-live=[&about.live] { (body) }
                    footer {
                        p {
                            "Every figure is computed from the public answers of game servers, by clqd. "
                            span #zone { "Times are in UTC." } " "
                            a href="/about" { "How it works, and how to opt out" } ". "
                            a href="/api" { "API" }
                        }
                        @if !identity.links.is_empty() {
                            nav aria-label="Links of the site" { @for link in &identity.links { a href=(link.url) { (link.name) } } }
                        }
                    }
                    @if !about.without_script { script { (PreEscaped(SCRIPT)) } }
                } }
            }
        };
        page.into_string()
    }
}

/// The style sheet with the colour of the site.
pub(super) fn style_sheet(identity: &Identity) -> String {
    match &identity.accent {
        Some(accent) => format!("{STYLE}:root {{ --accent: {accent}; }}\n"),
        None => STYLE.to_owned(),
    }
}

/// Browsers keep the style sheet of one version.
fn style_version(identity: &Identity) -> String {
    let accent = identity.accent.as_deref().unwrap_or_default().trim_start_matches('#');
    format!("{}{accent}", env!("CARGO_PKG_VERSION"))
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

/// A page and an error wait for their frame as extensions of the response.
impl IntoResponse for Page {
    fn into_response(self) -> Response {
        Extension(self).into_response()
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        Extension(self.0).into_response()
    }
}

/// Puts the page, or the error, of a response into the frame of the site.
pub(in crate::web) async fn framed(State(context): State<Arc<WebContext>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return error_page(&context, problem);
    }
    match response.extensions_mut().remove::<Page>() {
        Some(page) => {
            let (max_age_s, is_embedded) = (page.max_age_s, page.about.is_embedded);
            let html = page.into_html(&context, Some(&path)).into_bytes();
            let response = answer("text/html; charset=utf-8", html, max_age_s);
            let mut response = with_policy(response.unwrap_or_else(|problem| error_page(&context, problem)));
            if is_embedded {
                response.headers_mut().insert(CONTENT_SECURITY_POLICY, EMBEDDED_POLICY.clone());
            }
            response
        }
        None => response,
    }
}

/// A part of a page, which the script reads.
pub(super) fn fragment(content: Markup) -> Result<Response, Problem> {
    answer("text/html; charset=utf-8", content.into_string().into_bytes(), MAX_AGE_S).map(with_policy)
}

/// How long an XML file may be cached, s. Search engines and readers of feeds come once an hour at most.
pub(super) const XML_MAX_AGE_S: u32 = 3_600;

/// For search engines and readers of feeds.
pub(super) fn xml(content_type: &'static str, content: Markup) -> Result<Response, Problem> {
    let text = html! { (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")) (content) };
    answer(content_type, text.into_string().into_bytes(), XML_MAX_AGE_S)
}

fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// The page of an error.
pub(in crate::web) fn error_page(context: &WebContext, problem: Problem) -> Response {
    let body = html! {
        h1 { (problem.title()) }
        p { (shown(&problem.detail)) }
        @if let Some(seconds) = problem.retry_after_s { p { "Try again in " (seconds) " s." } }
        p { a href="/" { "To the first page" } }
    };
    let page = Page::new(problem.title(), body).into_html(context, None);
    let mut response = problem.into_response();
    *response.body_mut() = Body::from(page);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    with_policy(response)
}
