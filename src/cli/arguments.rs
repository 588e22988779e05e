//! Parsers of arguments that several commands have.

use clap::Args;

use crate::api::check_tag;
use crate::model::calendar::{WeekLabelError, parse_week_label};
use crate::model::row::Ranking;
use crate::model::server::Class;
use crate::model::url::{ServerUrl, UrlError};
use crate::proto::parse_server_url;
use crate::view::board::PlayerSelector;

/// The URL of a known server. A server from a scan log may have a scheme that cannot be scanned.
pub(super) fn parse_url(text: &str) -> Result<ServerUrl, UrlError> {
    parse_server_url(text).or_else(|_| ServerUrl::parse(text))
}

/// `#` followed by a number is a key, anything else a name.
pub(super) fn selector_of(text: &str) -> PlayerSelector {
    let key = text.strip_prefix('#').and_then(|key| key.parse().ok());
    key.map_or_else(|| PlayerSelector::Name(text.to_owned()), PlayerSelector::Key)
}

/// A player, by name or key.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PlayerArg {
    /// The name without colour codes; case matters
    name: Option<String>,
    /// The player's key, as lists show it
    #[arg(long, value_name = "KEY")]
    key: Option<u32>,
}

impl PlayerArg {
    pub(super) fn selector(self) -> PlayerSelector {
        match self.key {
            Some(key) => PlayerSelector::Key(key),
            None => selector_of(&self.name.expect("clap requires a name or a key")),
        }
    }
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
