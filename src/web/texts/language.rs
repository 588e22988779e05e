//! Which language a visitor gets: that of the path, such as `/de/servers`, or else the first one of `Accept-Language`
//! that the website has, or else English.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::header::{ACCEPT_LANGUAGE, LOCATION};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::Response;
use strum::IntoEnumIterator;

/// A language of the website.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::EnumIter)]
pub(in crate::web) enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
    Polish,
    Portuguese,
    Russian,
}

tokio::task_local! {
    static VISITOR: Chosen;
}

impl Language {
    /// ISO 639-1.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::German => "de",
            Language::French => "fr",
            Language::Spanish => "es",
            Language::Polish => "pl",
            Language::Portuguese => "pt",
            Language::Russian => "ru",
        }
    }

    /// Its name for those who speak it.
    pub fn name(self) -> &'static str {
        match self {
            Language::English => "English",
            Language::German => "Deutsch",
            Language::French => "Français",
            Language::Spanish => "Español",
            Language::Polish => "Polski",
            Language::Portuguese => "Português",
            Language::Russian => "Русский",
        }
    }

    /// The file with its texts.
    pub(super) fn file(self) -> &'static str {
        match self {
            Language::English => include_str!("en.ftl"),
            Language::German => include_str!("de.ftl"),
            Language::French => include_str!("fr.ftl"),
            Language::Spanish => include_str!("es.ftl"),
            Language::Polish => include_str!("pl.ftl"),
            Language::Portuguese => include_str!("pt.ftl"),
            Language::Russian => include_str!("ru.ftl"),
        }
    }

    /// Between groups of three digits.
    pub(super) fn group_separator(self) -> char {
        match self {
            Language::English => ',',
            Language::German | Language::Spanish | Language::Portuguese => '.',
            Language::French => '\u{202F}',
            Language::Polish | Language::Russian => '\u{A0}',
        }
    }

    pub(super) fn decimal_mark(self) -> char {
        if self == Language::English { '.' } else { ',' }
    }

    fn of_code(code: &str) -> Option<Language> {
        Language::iter().find(|language| language.code().eq_ignore_ascii_case(code))
    }

    /// The language of the page that is being written.
    pub fn of_visitor() -> Language {
        Chosen::of_visitor().language
    }

    /// Writes something in this language.
    #[cfg(test)]
    pub fn within<T>(self, write: impl FnOnce() -> T) -> T {
        VISITOR.sync_scope(Chosen { language: self, is_in_path: false }, write)
    }
}

/// The language of a request, and where it was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::web) struct Chosen {
    pub language: Language,
    /// The path named it, so the links of the page do.
    pub is_in_path: bool,
}

impl Chosen {
    /// Of the page that is being written; English outside of [`in_language`].
    pub fn of_visitor() -> Chosen {
        VISITOR.try_with(|&chosen| chosen).unwrap_or_default()
    }

    /// The start of all paths: `/de`, or nothing.
    pub fn prefix(self) -> String {
        if self.is_in_path { format!("/{}", self.language.code()) } else { String::new() }
    }

    /// The start of the paths of images with text, which are in English unless it is named: they have the language of the page,
    /// wherever it was found.
    pub fn prefix_of_images(self) -> String {
        Chosen { is_in_path: self.language != Language::default(), ..self }.prefix()
    }
}

/// Starts of the paths that are the same in all languages: for programs, and files.
const WITHOUT_LANGUAGE: [&str; 9] =
    ["/api/v1", "/healthz", "/icon.svg", "/logo", "/metrics", "/readyz", "/robots.txt", "/sitemap", "/style.css"];

/// Starts of the paths that are in English unless they begin with a language: caches keep one for all visitors.
const ENGLISH_IF_NOT_NAMED: &str = "/banners/";

/// Whether the path without a language leads to something that is written in one.
pub(in crate::web) fn has_language(path: &str) -> bool {
    !WITHOUT_LANGUAGE.iter().any(|start| path.starts_with(start))
}

/// Finds the language of a request, and removes it from the path: routes do not know it.
pub(in crate::web) fn choose<B>(request: &mut axum::http::Request<B>) {
    let chosen = match in_path(request.uri()) {
        Some((language, uri)) => {
            *request.uri_mut() = uri;
            Chosen { language, is_in_path: true }
        }
        None if has_language(request.uri().path()) && !request.uri().path().starts_with(ENGLISH_IF_NOT_NAMED) => {
            Chosen { language: accepted(request.headers()), is_in_path: false }
        }
        None => Chosen::default(),
    };
    request.extensions_mut().insert(chosen);
}

/// Answers a request in the language that [`choose`] has found. A redirect keeps the language of the path.
pub(in crate::web) async fn in_language(request: Request, next: Next) -> Response {
    let chosen: Chosen = request.extensions().get().copied().unwrap_or_default();
    let mut response = VISITOR.scope(chosen, next.run(request)).await;
    let path = response.headers().get(LOCATION).and_then(|path| path.to_str().ok());
    if let Some(path) = path.filter(|path| chosen.is_in_path && path.starts_with('/')) {
        let path = HeaderValue::try_from(format!("{}{path}", chosen.prefix())).expect("a path, and letters before it");
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

/// The language that a path begins with, and the URI without it.
fn in_path(uri: &Uri) -> Option<(Language, Uri)> {
    let rest = uri.path().strip_prefix('/')?;
    let (code, _) = rest.split_once('/').unwrap_or((rest, ""));
    let language = Language::of_code(code).filter(|language| language.code() == code)?;
    let rest = &uri.path_and_query()?.as_str()[1 + code.len()..];
    let path = if rest.starts_with('/') { Cow::from(rest) } else { format!("/{rest}").into() };
    if !has_language(&path) {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(&*path).ok()?);
    Some((language, Uri::from_parts(parts).ok()?))
}

/// Whether a path without its first slash begins with a language.
pub(in crate::web) fn is_first_in(path: &str) -> bool {
    path.split_once('/').is_some_and(|(code, _)| Language::iter().any(|language| language.code() == code))
}

/// The language of the website with the largest weight; of equal ones the first.
fn accepted(headers: &HeaderMap) -> Language {
    let mut best: Option<(Language, f32)> = None;
    let listed = headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
    for element in listed.flat_map(|value| value.split(',')) {
        let (range, weight) = element.split_once(';').unwrap_or((element, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok()).unwrap_or(1.0);
        let code = range.trim().split('-').next().unwrap_or_default();
        let Some(language) = Language::of_code(code).filter(|_| weight > 0.0) else { continue };
        if best.is_none_or(|(_, most)| weight > most) {
            best = Some((language, weight));
        }
    }
    best.map_or_else(Language::default, |(language, _)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_of_the_path_or_else_of_the_header() {
        let english = |is_in_path| Chosen { language: Language::English, is_in_path };
        let german = |is_in_path| Chosen { language: Language::German, is_in_path };
        for (uri, accept, want, path) in [
            ("/servers?x=1", "", english(false), "/servers?x=1"),
            ("/servers", "de", german(false), "/servers"),
            ("/servers", "tlh, de-AT;q=0.5, en;q=0.4", german(false), "/servers"),
            ("/servers", "en;q=0.4,DE", german(false), "/servers"),
            ("/servers", "de;q=0, x", english(false), "/servers"),
            ("/servers", "de;q=x", german(false), "/servers"),
            ("/de/servers?x=%2F", "fr", german(true), "/servers?x=%2F"),
            ("/de", "", german(true), "/"),
            ("/de?x=1", "", german(true), "/?x=1"),
            ("/de/", "", german(true), "/"),
            ("/en/de/", "", english(true), "/de/"),
            ("/DE/", "", english(false), "/DE/"),
            ("/demo", "", english(false), "/demo"),
            // What is for programs has one path.
            ("/de/metrics", "", english(false), "/de/metrics"),
            ("/de/api/v1/servers", "", english(false), "/de/api/v1/servers"),
            ("/banners/wide/players/7.png", "de", english(false), "/banners/wide/players/7.png"),
            ("/de/banners/wide/players/7.png", "fr", german(true), "/banners/wide/players/7.png"),
            ("/de/api", "", german(true), "/api"),
            ("/", "", english(false), "/"),
        ] {
            let mut request = Request::builder().uri(uri).header(ACCEPT_LANGUAGE, accept).body(()).expect("a request");
            choose(&mut request);
            assert_eq!(request.extensions().get(), Some(&want), "{uri} {accept:?}");
            assert_eq!(request.uri().to_string(), path, "{uri}");
        }
        assert_eq!(german(true).prefix(), "/de");
        assert_eq!(german(false).prefix(), "");
        let images = [german(true), german(false), english(true), english(false)].map(Chosen::prefix_of_images);
        assert_eq!(images, ["/de", "/de", "", ""]);
    }
}
