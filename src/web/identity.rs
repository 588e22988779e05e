//! What makes the site the operator's: its title, description, colour, logo and links.

use axum::http::Uri;

/// Longest title, characters: it is a part of the title of every page.
pub const TITLE_CHARS_MAX: usize = 60;

/// Longest description, characters. Search engines show about 160.
pub const DESCRIPTION_CHARS_MAX: usize = 300;

/// The title and the description where the operator has set none; pages translate them.
pub const TITLE: &str = "Game statistics";
pub const DESCRIPTION: &str = "Players online, rankings and statistics of game servers.";

/// Whose site it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub title: String,
    /// Of the first page, for search engines.
    pub description: String,
    /// The colour of the edge above every page, such as `#1f6feb`.
    pub accent: Option<String>,
    pub links: Vec<SiteLink>,
    pub logo: Option<Logo>,
}

/// A link at the end of every page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteLink {
    pub name: String,
    pub url: String,
}

impl SiteLink {
    /// A name and, after the last space, a URL.
    pub fn parse(text: &str) -> Result<SiteLink, String> {
        let (name, url) = text.trim().rsplit_once(' ').unwrap_or(("", text));
        let name = name.trim();
        let is_mail = url.strip_prefix("mailto:").is_some_and(|address| address.contains('@'));
        let is_web = url
            .parse()
            .is_ok_and(|uri: Uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")));
        if name.is_empty() || !(is_mail || is_web) {
            return Err(format!(
                "{text:?}: expected a name and a URL, such as \"Imprint https://example.org/imprint\""
            ));
        }
        Ok(SiteLink { name: name.to_owned(), url: url.to_owned() })
    }
}

/// Whether it is `#` and six hexadecimal digits.
pub fn is_colour(text: &str) -> bool {
    text.strip_prefix('#').is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// An image beside the title of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logo {
    pub content_type: &'static str,
    pub bytes: Vec<u8>,
}

impl Logo {
    /// Error: why it cannot be used.
    pub fn parse(bytes: Vec<u8>) -> Result<Logo, String> {
        let content_type = content_type(&bytes).ok_or("neither SVG nor PNG")?;
        Ok(Logo { content_type, bytes })
    }
}

fn content_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some("image/png");
    }
    std::str::from_utf8(bytes).is_ok_and(|text| text.contains("<svg")).then_some("image/svg+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_a_name_and_a_url() {
        let link = SiteLink::parse("Privacy policy https://example.org/privacy").unwrap();
        assert_eq!((&*link.name, &*link.url), ("Privacy policy", "https://example.org/privacy"));
        assert!(SiteLink::parse("Mail mailto:admin@example.org").is_ok());
        for text in ["", "https://example.org", "A javascript:alert(1)", "A example.org", "A mailto:", "A /imprint"] {
            assert!(SiteLink::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn logo_is_an_image() {
        let parse = |bytes: &[u8]| Logo::parse(bytes.to_owned()).map(|logo| logo.content_type);
        assert_eq!(parse(b"<?xml version=\"1.0\"?><svg/>").as_deref(), Ok("image/svg+xml"));
        assert_eq!(parse(b"\x89PNG\r\n\x1a\n...").as_deref(), Ok("image/png"));
        assert_eq!(parse(b"GIF89a"), Err("neither SVG nor PNG".to_owned()));
    }

    #[test]
    fn colour_has_six_digits() {
        assert!(is_colour("#1F6feb") && !is_colour("#fff") && !is_colour("red") && !is_colour("#12345g"));
    }
}
