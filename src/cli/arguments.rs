//! Parsers of arguments that several commands have.

use std::net::Ipv6Addr;

use clap::Args;

use crate::api::check_tag;
use crate::cli::output::format::quoted;
use crate::model::calendar::{WeekLabelError, parse_week_label};
use crate::model::row::Ranking;
use crate::model::server::Class;
use crate::model::url::ServerUrl;
use crate::proto::{ServerUrlError, parse_server_url, parse_server_url_or_auto};
use crate::view::board::PlayerSelector;

/// Why an argument is not the URL of a server, with advice in further lines.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UrlArgumentError(String);

/// The URL of a known server.
pub(super) fn parse_url(text: &str) -> Result<ServerUrl, UrlArgumentError> {
    parse_url_or(text, || known_servers(text))
}

/// As [`parse_url`], of `clqd top`.
pub(super) fn parse_url_of_top(text: &str) -> Result<ServerUrl, UrlArgumentError> {
    let text_quoted = quoted(text);
    parse_url_or(text, || format!("a game: clqd top --game {text_quoted}     a tag: clqd top --tag {text_quoted}"))
}

/// As [`parse_url`], of `clqd servers tag`.
pub(super) fn parse_url_to_tag(text: &str) -> Result<ServerUrl, UrlArgumentError> {
    parse_url_or(text, || format!("to add a tag: --add {}", quoted(text)))
}

fn known_servers(text: &str) -> String {
    format!("known servers: clqd servers list {}", quoted(text))
}

/// Parses the URL of a known server. A server from a scan log may have a scheme that cannot be scanned.
fn parse_url_or(text: &str, advice: impl Fn() -> String) -> Result<ServerUrl, UrlArgumentError> {
    if text.contains("://") {
        let url = parse_server_url(text).or_else(|_| ServerUrl::parse(text));
        return url.map_err(|error| UrlArgumentError(error.to_string()));
    }
    Err(UrlArgumentError(match is_address(text) {
        true => format!("{text:?} has no scheme, such as quake3://{}\n  {}", in_brackets(text), known_servers(text)),
        false => format!("{text:?} is no server URL, such as quake3://host:27960\n  {}", advice()),
    }))
}

/// Parses the URL of a server to scan. Without a scheme it needs a port, and becomes one of the scheme `auto`.
pub(super) fn parse_new_url(text: &str) -> Result<ServerUrl, UrlArgumentError> {
    parse_server_url_or_auto(text).map_err(|error| {
        UrlArgumentError(match error {
            ServerUrlError::Syntax { .. } if !text.contains("://") => {
                let name = text.split('.').next().filter(|name| parse_server_url(&format!("{name}://{text}")).is_ok());
                let scheme = name.unwrap_or("quake3");
                let host = in_brackets(text);
                // With a scheme that has a default port, the port is not what is missing.
                match parse_server_url(&format!("quake3://{host}")) {
                    Err(error) => error.to_string().replacen("quake3://", "", 1),
                    Ok(_) => format!(
                        "{text:?} is no server URL: write {host}:PORT, or a scheme such as {scheme}://; `clqd games` lists them"
                    ),
                }
            }
            ServerUrlError::UnknownScheme { .. } => format!("{}; `clqd games` lists the known ones", error.brief()),
            ServerUrlError::Syntax { .. } | ServerUrlError::Url(_) => error.brief(),
        })
    })
}

/// Adds the brackets that an IPv6 address needs in a URL. Other texts are not changed.
fn in_brackets(text: &str) -> String {
    if text.parse::<Ipv6Addr>().is_ok() { format!("[{text}]") } else { text.to_owned() }
}

/// Whether a text without a scheme is that of a host, and not a word.
fn is_address(text: &str) -> bool {
    text.contains(['.', ':'])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_without_a_scheme_is_refused_with_advice() {
        let error = |result: Result<ServerUrl, UrlArgumentError>| result.expect_err("refused").to_string();
        for (got, want) in [
            (
                error(parse_url("127.1.0.125:37341")),
                "\"127.1.0.125:37341\" has no scheme, such as quake3://127.1.0.125:37341\n  \
                 known servers: clqd servers list 127.1.0.125:37341",
            ),
            (
                error(parse_url_of_top("baseq3")),
                "\"baseq3\" is no server URL, such as quake3://host:27960\n  \
                 a game: clqd top --game baseq3     a tag: clqd top --tag baseq3",
            ),
            (
                error(parse_url_to_tag("ctf")),
                "\"ctf\" is no server URL, such as quake3://host:27960\n  to add a tag: --add ctf",
            ),
            (
                error(parse_url("quake3://h:0")),
                "server URL \"quake3://h:0\": port \"0\" is not a number from 1 to 65535",
            ),
            (
                error(parse_new_url("minecraft.example.org")),
                "\"minecraft.example.org\" is no server URL: write minecraft.example.org:PORT, or a scheme such as \
                 minecraft://; `clqd games` lists them",
            ),
            (
                error(parse_url("2001:db8::1")),
                "\"2001:db8::1\" has no scheme, such as quake3://[2001:db8::1]\n  \
                 known servers: clqd servers list 2001:db8::1",
            ),
            (
                error(parse_new_url("2001:db8::1")),
                "\"2001:db8::1\" is no server URL: write [2001:db8::1]:PORT, or a scheme such as quake3://; `clqd games` \
                 lists them",
            ),
            (
                error(parse_new_url("192.0.2.1:70000")),
                "server URL \"192.0.2.1:70000\": port \"70000\" is not a number from 1 to 65535",
            ),
            (
                error(parse_new_url("xonotik://h")),
                "server URL \"xonotik://h\": scheme \"xonotik\" is not known; did you mean xonotic://?; `clqd games` \
                 lists the known ones",
            ),
        ] {
            assert_eq!(got, want);
        }
        assert!(parse_url("oldscheme://h:1").is_ok(), "a scan log may have it");
    }
}
