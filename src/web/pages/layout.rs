//! The frame of every page, and the headers of its answer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use strum::IntoEnumIterator;

use crate::api::json;
use crate::model::shown_text::shown;
use crate::web::answer::{MAX_AGE_S, answer};
use crate::web::banners::BannerSize;
use crate::web::context::WebContext;
use crate::web::identity::{self, Identity};
use crate::web::problem::{Problem, ProblemKind};
use crate::web::query::{self, Name};
use crate::web::texts::language::{self, Chosen};
use crate::web::texts::{Language, text};

/// The style sheet of all pages.
static STYLE: LazyLock<String> = LazyLock::new(|| compact(include_str!("style.css")));

/// The script of all pages. It is a part of the page: the policy allows it by its hash, and no other one.
static SCRIPT: LazyLock<String> = LazyLock::new(|| compact(include_str!("site.js")));

/// What browsers need of a source: its lines without indentation, and no lines of comments (`//`). No text in it goes on to the next line.
fn compact(source: &str) -> String {
    let lines = source.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Nothing but the style sheet, images and the one script of this site.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("'none'"));

/// Of pages for frames.
static EMBEDDED_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("*"));

/// `ancestors`: the sites that may show the page in a frame.
fn policy(ancestors: &str) -> HeaderValue {
    let hash = BASE64_STANDARD.encode(Sha256::digest(&*SCRIPT));
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
    /// Its content is in English in all languages.
    pub is_english: bool,
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

    /// The whole page. `uri` is its own, without the language.
    fn into_html(self, context: &WebContext, uri: &Uri) -> String {
        let Page { title, body, about, .. } = self;
        let WebContext { identity, public_url, has_public_url, .. } = context;
        let site = site_title(identity);
        let full_title = title.as_ref().map_or_else(|| site.to_string(), |title| format!("{} - {site}", shown(title)));
        let description =
            about.description.as_ref().map_or_else(|| site_description(identity), |text| shown(text).into());
        let icon = identity.logo.as_ref().map_or(("/icon.svg", "image/svg+xml"), |logo| ("/logo", logo.content_type));
        let (chosen, prefix) = (Chosen::of_visitor(), Chosen::of_visitor().prefix());
        let query = about.query.as_ref().map_or_else(String::new, |query| format!("?{query}"));
        let path = format!("{}{query}", about.path.as_deref().unwrap_or(uri.path()));
        let page = html! {
            (DOCTYPE)
            html lang=(chosen.language.code()) data-prefix=(prefix) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (full_title) }
                    @if !about.is_hidden {
                        @let url = format!("{public_url}{prefix}{path}");
                        meta name="description" content=(description);
                        @if *has_public_url {
                            link rel="canonical" href=(url);
                            link rel="alternate" hreflang="x-default" href={ (public_url) (path) };
                            @for language in Language::iter().filter(|_| !about.is_english) {
                                link rel="alternate" hreflang=(language.code()) href={ (public_url) "/" (language.code()) (path) };
                            }
                            meta property="og:url" content=(url);
                        }
                        meta property="og:type" content="website";
                        meta property="og:site_name" content=(site);
                        meta property="og:title" content=(title.as_ref().map_or_else(|| site.to_string(), |title| shown(title)));
                        meta property="og:description" content=(description);
                        @match about.card.as_ref().filter(|_| *has_public_url) {
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
                } @else { body data-texts=[(!about.without_script).then(script_texts)] {
                    a .skip href="#main" { (text!("frame-skip")) }
                    header {
                        a .brand href="/" {
                            @if identity.logo.is_some() { img src="/logo" alt="" height="32"; }
                            (site)
                        }
                        nav aria-label=(text!("frame-site")) {
                            a href="/servers?order=players" { (text!("servers-heading")) }
                            a href="/games" { (text!("games-heading")) }
                            a href="/maps" { (text!("maps-heading")) }
                            a href="/about" { (text!("frame-about")) }
                        }
                        form action="/search" role="search" {
                            label for="site-search" { (text!("frame-search-label")) }
                            input #site-search type="search" name="q" maxlength="100" value=[searched(uri)] required;
                            " "
                            button { (text!("search")) }
                        }
                    }
                    main #main data-live=[&about.live] lang=[about.is_english.then_some("en")] { (body) }
                    footer {
                        p {
                            (text!("frame-source")) " "
                            span #zone { (text!("frame-utc")) } " "
                            a href="/about" { (text!("frame-how")) } ". "
                            a href="/api" { "API" }
                        }
                        @if !identity.links.is_empty() {
                            nav aria-label=(text!("frame-links")) {
                                @for link in &identity.links { a href=(link.url) { (link.name) } }
                            }
                        }
                        nav aria-label=(text!("frame-languages")) {
                            @let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
                            @for language in Language::iter() {
                                @if language == chosen.language { span { (language.name()) } } @else {
                                    a href={ "/" (language.code()) (path) } lang=(language.code()) hreflang=(language.code()) { (language.name()) }
                                }
                            }
                        }
                    }
                    @if !about.without_script { script { (PreEscaped(&*SCRIPT)) } }
                } }
            }
        };
        with_prefix(page.into_string(), &prefix)
    }
}

/// What the visitor searches for, to keep it in the field.
fn searched(uri: &Uri) -> Option<String> {
    #[derive(Deserialize)]
    struct Parameters {
        #[serde(default)]
        q: Name,
    }
    let Parameters { q: Name(q) } = query::parse(uri).ok().filter(|_| uri.path() == "/search")?;
    Some(shown(&q))
}

/// A section that a visitor can fold: on a phone a page has many screens.
pub(super) fn folded(title: &str, is_open: bool, content: Markup) -> Markup {
    html! {
        details .section open[is_open] {
            summary { h2 { (title) } }
            (content)
        }
    }
}

/// Where links of a page within the site begin. Quotes in texts are escaped, so they are nowhere else.
const LINKS: [&str; 3] = [" href=\"/", " action=\"/", " data-href=\"/"];

/// Adds the language of the page to its links, if it is in its path.
fn with_prefix(html: String, prefix: &str) -> String {
    if prefix.is_empty() { html } else { LINKS.into_iter().fold(html, |html, link| prefixed(&html, link, prefix)) }
}

/// Links that name a language stay, and those that have none.
fn prefixed(html: &str, link: &str, prefix: &str) -> String {
    let mut text = String::with_capacity(html.len() + html.len() / 64);
    for (n, piece) in html.split(link).enumerate() {
        if n > 0 {
            let before = &link[..link.len() - 1];
            let path = format!("/{}", piece.split('"').next().unwrap_or_default());
            let is_prefixed = !language::is_first_in(piece) && language::has_language(&path);
            text.extend([before, if is_prefixed { prefix } else { "" }, "/"]);
        }
        text.push_str(piece);
    }
    text
}

/// That of the operator, or else a translated one.
pub(super) fn site_title(identity: &Identity) -> Cow<'_, str> {
    if identity.title == identity::TITLE { text!("site-title") } else { (&*identity.title).into() }
}

pub(super) fn site_description(identity: &Identity) -> Cow<'_, str> {
    if identity.description == identity::DESCRIPTION {
        text!("site-description")
    } else {
        (&*identity.description).into()
    }
}

/// What the script says, in JSON.
fn script_texts() -> String {
    json::to_string(&BTreeMap::from([
        ("addFavourite", text!("script-add-favourite")),
        ("copied", text!("script-copied")),
        ("copy", text!("script-copy")),
        ("favourite", text!("script-favourite")),
        ("favourites", text!("script-favourites")),
        ("noData", text!("script-no-data")),
        ("suggestions", text!("script-suggestions")),
        ("zone", text!("script-zone")),
    ]))
}

/// The style sheet with the colour of the site.
pub(super) fn style_sheet(identity: &Identity) -> String {
    match &identity.accent {
        Some(accent) => format!("{}\n:root {{ --accent: {accent}; }}\n", *STYLE),
        None => STYLE.to_owned(),
    }
}

/// Browsers keep the style sheet, so a changed one has another address.
fn style_version(identity: &Identity) -> String {
    static HASH: LazyLock<String> = LazyLock::new(|| BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(&*STYLE)[..6]));
    format!("{}{}", *HASH, identity.accent.as_deref().unwrap_or_default().trim_start_matches('#'))
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
    let uri = request.uri().clone();
    let mut response = next.run(request).await;
    let mut response = match response.extensions_mut().remove::<Problem>() {
        Some(problem) => error_page(&context, &uri, problem),
        None => with_frame(&context, &uri, response),
    };
    let kind = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is_written = [&b"text/html"[..], b"application/atom+xml"].iter().any(|written| kind.starts_with(written));
    if is_written && !Chosen::of_visitor().is_in_path {
        response.headers_mut().append(VARY, HeaderValue::from_static("accept-language"));
    }
    response
}

fn with_frame(context: &WebContext, uri: &Uri, mut response: Response) -> Response {
    match response.extensions_mut().remove::<Page>() {
        Some(page) => {
            let (max_age_s, is_embedded) = (page.max_age_s, page.about.is_embedded);
            let html = page.into_html(context, uri).into_bytes();
            let response = answer("text/html; charset=utf-8", html, max_age_s);
            let mut response = with_policy(response.unwrap_or_else(|problem| error_page(context, uri, problem)));
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
    let html = with_prefix(content.into_string(), &Chosen::of_visitor().prefix());
    answer("text/html; charset=utf-8", html.into_bytes(), MAX_AGE_S).map(with_policy)
}

/// How long an XML file may be cached, s. Search engines and readers of feeds come once an hour at most.
pub(super) const XML_MAX_AGE_S: u32 = 3_600;

/// For search engines and readers of feeds.
pub(super) fn xml(content_type: &'static str, content: Markup, max_age_s: u32) -> Result<Response, Problem> {
    let text = html! { (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")) (content) };
    answer(content_type, text.into_string().into_bytes(), max_age_s)
}

fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// The page of an error.
pub(in crate::web) fn error_page(context: &WebContext, uri: &Uri, problem: Problem) -> Response {
    let title = problem_title(problem.kind);
    let body = html! {
        h1 { (title) }
        (what_to_do(uri, &problem))
        @if let Some(seconds) = problem.retry_after_s { p { (text!("error-try-again", seconds = seconds)) } }
        p { a href="/" { (text!("error-first-page")) } }
    };
    // A long URI would be in the page for each language.
    let first_page = Uri::from_static("/");
    let uri = if problem.kind == ProblemKind::UriTooLong { &first_page } else { uri };
    let about = About { is_hidden: true, ..About::default() };
    let page = Page::new(title, body).with(about).into_html(context, uri);
    let mut response = problem.into_response();
    *response.body_mut() = Body::from(page);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    with_policy(response)
}

/// What visitors can do about an error. Where nothing is said about it, there is the detail, which is for programmers.
fn what_to_do(uri: &Uri, problem: &Problem) -> Markup {
    let is_missing = matches!(problem.kind, ProblemKind::NotFound | ProblemKind::Removed);
    let is_of = |folders: &[&str]| folders.iter().any(|folder| uri.path().starts_with(folder));
    let has_window = uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("window=")));
    // Names of games and hosts may have these words.
    let is_of_name = ["server ", "no server "].iter().any(|start| problem.detail.starts_with(start));
    let is_of_window =
        has_window && !is_of_name && ["window", "week "].iter().any(|word| problem.detail.contains(word));
    html! {
        @match () {
            () if is_of_window && problem.kind != ProblemKind::Busy && is_of(&["/servers/", "/games/", "/tags/", "/embed/boards/"]) => p {
                (text!("error-window")) " " a href={ (uri.path()) "#boards" } { (text!("error-running-week")) }
            },
            () if is_missing && is_of(&["/servers/"]) => p {
                @if problem.kind == ProblemKind::Removed { (text!("error-server-removed")) } @else { (text!("error-server")) }
                " " a href="/servers" { (text!("home-all-servers")) }
            },
            () if is_missing && is_of(&["/players/"]) => {
                form .filters action="/search" {
                    div { label for="error-player" { (text!("error-player")) } input #error-player type="search" name="q" maxlength="100" required; }
                    button { (text!("search")) }
                }
            },
            () => {
                @match problem.kind {
                    ProblemKind::NotFound => p { (text!("error-not-found")) },
                    ProblemKind::BadRequest => p { (text!("error-bad-request")) },
                    _ => {},
                }
                p .soft { small lang="en" { (shown(&problem.detail)) } }
            },
        }
    }
}

/// The kind of an error in words, as `title` says it in English to programs.
fn problem_title(kind: ProblemKind) -> Cow<'static, str> {
    match kind {
        ProblemKind::BadRequest => text!("problem-bad-request"),
        ProblemKind::Unauthorized => text!("problem-unauthorized"),
        ProblemKind::Forbidden => text!("problem-forbidden"),
        ProblemKind::NotFound => text!("problem-not-found"),
        ProblemKind::Removed => text!("problem-removed"),
        ProblemKind::MethodNotAllowed => text!("problem-method-not-allowed"),
        ProblemKind::Conflict => text!("problem-conflict"),
        ProblemKind::UriTooLong => text!("problem-uri-too-long"),
        ProblemKind::TooManyRequests => text!("problem-too-many-requests"),
        ProblemKind::Internal => text!("problem-internal"),
        ProblemKind::AnswerTooLarge => text!("problem-answer-too-large"),
        ProblemKind::Starting => text!("problem-starting"),
        ProblemKind::Stopping => text!("problem-stopping"),
        ProblemKind::Busy => text!("problem-busy"),
    }
}
