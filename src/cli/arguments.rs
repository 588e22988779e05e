//! Parsers of arguments that several commands have.

use crate::api::check_tag;
use crate::model::calendar::{WeekLabelError, parse_week_label};
use crate::model::row::Ranking;
use crate::model::server::Class;
use crate::model::url::{ServerUrl, UrlError};
use crate::proto::parse_server_url;

/// The URL of a known server. A server from a scan log may have a scheme that cannot be scanned.
pub(super) fn parse_url(text: &str) -> Result<ServerUrl, UrlError> {
    parse_server_url(text).or_else(|_| ServerUrl::parse(text))
}

pub(super) fn parse_tag(text: &str) -> Result<String, String> {
    check_tag(text).map_or_else(|| Ok(text.to_owned()), Err)
}

pub(super) fn parse_class(text: &str) -> Result<Class, String> {
    let number: Option<u8> = text.parse().ok();
    number.and_then(Class::new).ok_or_else(|| "expected 1 to 7".to_owned())
}

pub(super) fn parse_ranking(text: &str) -> Result<Ranking, String> {
    Ranking::from_name(&text.to_ascii_lowercase()).ok_or_else(|| {
        let names = Ranking::ALL.map(Ranking::name);
        match crate::nearest::nearest(text, names) {
            Some(right) => format!("did you mean {right}?"),
            None => format!("expected one of {}", names.join(", ")),
        }
    })
}

pub(super) fn parse_week(text: &str) -> Result<String, WeekLabelError> {
    parse_week_label(text).map(|_| text.to_owned())
}
