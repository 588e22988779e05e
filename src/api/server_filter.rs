//! Which servers a list has.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ApiError, ErrorCode};
use crate::geo;
use crate::model::server::Class;
use crate::view::ServerFields;

/// Selects servers to list; all given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerFilter {
    /// The scan class, 1 to 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 7)]
    pub class: Option<Class>,
    /// Exactly this game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    /// Exactly this current map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// Exactly this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether the last list shows the current players.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<bool>,
    /// Whether a check of docs/rules.md section 14 has applied within the last 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screened: Option<bool>,
    /// Whether they are excluded from rankings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greylisted: Option<bool>,
    /// Whether they were removed; without it, servers that are not. Pages never contain removed servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<bool>,
    /// The code of their country (ISO 3166-1), such as `DE`. An error if no database of countries is configured
    /// (`geo.database`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// Part of the URL, host name or map; case is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl ServerFilter {
    /// Error: countries are not known.
    pub fn check(&self) -> Result<(), ApiError> {
        match self.country {
            Some(_) if !geo::is_set() => Err(ApiError::new(
                ErrorCode::Refused,
                "countries of servers are not known: the running daemon needs a database of them (setting geo.database)",
            )),
            _ => Ok(()),
        }
    }

    /// Whether a server has these fields. Call it once for a list of servers.
    pub fn matcher(&self) -> impl Fn(&ServerFields<'_>) -> bool {
        let ServerFilter { class, game, map, tag, online, screened, greylisted, removed, country, text } = self;
        let text = text.as_ref().map(|text| text.to_lowercase());
        move |server| {
            class.is_none_or(|class| server.class == class.number())
                && game.as_ref().is_none_or(|game| server.game == Some(game))
                && map.as_ref().is_none_or(|map| server.map == Some(map))
                && tag.as_ref().is_none_or(|tag| server.tags.contains(&tag.as_str()))
                && online.is_none_or(|online| server.online == online)
                && screened.is_none_or(|screened| server.is_screened == screened)
                && greylisted.is_none_or(|greylisted| server.is_greylisted == greylisted)
                && server.is_removed == removed.unwrap_or(false)
                && country.as_ref().is_none_or(|code| {
                    geo::country_of_url(server.url).is_some_and(|country| country.code.eq_ignore_ascii_case(code))
                })
                && text.as_ref().is_none_or(|text| {
                    let mut texts = [Some(server.url), Some(server.hostname), server.map].into_iter().flatten();
                    texts.any(|field| contains_lowercase(field, text))
                })
        }
    }
}

/// Whether a string contains another one, regardless of case. The string searched for is in lower
/// case.
fn contains_lowercase(text: &str, lower: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(lower);
    }
    // ASCII is compared without a copy: most strings are ASCII, and a search compares those of all
    // servers.
    let (text, lower) = (text.as_bytes(), lower.as_bytes());
    let Some(&first) = lower.first() else { return true };
    let starts = memchr::memchr2_iter(first, first.to_ascii_uppercase(), text);
    starts
        .map(|at| &text[at..])
        .any(|rest| rest.get(..lower.len()).is_some_and(|part| part.eq_ignore_ascii_case(lower)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_requires_every_condition() {
        let server = ServerFields {
            url: "quake3://a.example:1",
            class: 2,
            hostname: "The House of \u{c9}va",
            game: Some("baseq3"),
            map: Some("q3dm17"),
            online: true,
            tags: ["ctf"].into_iter().collect(),
            is_screened: false,
            is_greylisted: false,
            is_removed: false,
        };
        let text = |text: &str| ServerFilter { text: Some(text.into()), ..ServerFilter::default() };
        for (filter, fits) in [
            (ServerFilter::default(), true),
            (ServerFilter { class: Class::new(2), ..text("house") }, true),
            (ServerFilter { class: Class::new(1), ..text("house") }, false),
            (text("Q3DM"), true),
            (text("a.EX"), true),
            (text("dm18"), false),
            (text("\u{c9}VA"), true),
            (text("\u{e8}"), false),
            (ServerFilter { tag: Some("ctf".into()), ..ServerFilter::default() }, true),
            (ServerFilter { tag: Some("CTF".into()), ..ServerFilter::default() }, false),
            (ServerFilter { map: Some("q3dm17".into()), ..ServerFilter::default() }, true),
            (ServerFilter { map: Some("q3dm1".into()), ..ServerFilter::default() }, false),
            (ServerFilter { online: Some(true), ..text("house") }, true),
            (ServerFilter { online: Some(false), ..text("house") }, false),
            (ServerFilter { screened: Some(true), ..text("house") }, false),
            (ServerFilter { screened: Some(false), ..text("house") }, true),
            (ServerFilter { game: Some("baseoa".into()), ..ServerFilter::default() }, false),
            (ServerFilter { greylisted: Some(true), ..ServerFilter::default() }, false),
            (ServerFilter { greylisted: Some(false), ..ServerFilter::default() }, true),
            (ServerFilter { removed: Some(true), ..ServerFilter::default() }, false),
        ] {
            assert_eq!(filter.matcher()(&server), fits, "{filter:?}");
        }
    }
}
