//! Where a list of servers comes from: a master server, or a JSON list on a website.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::exchange::{self, MasterError, Timing};
use super::http::{self, HttpError, HttpLimits, HttpUrl, HttpUrlError};
use crate::proto::master::{MasterUrl, MasterUrlError};

/// The URL of a list. Its `Display` and `Debug` have no query, which may hold an API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ListUrl {
    Master(MasterUrl),
    Http(HttpUrl),
}

/// The text is not the URL of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListUrlError {
    #[error(transparent)]
    Master(#[from] MasterUrlError),
    #[error(transparent)]
    Http(#[from] HttpUrlError),
}

impl ListUrl {
    /// Whether a string is the URL of a website.
    pub fn is_http(text: &str) -> bool {
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    }

    /// The scheme of the URLs of the listed servers. `None`: only the list shows it.
    pub fn server_scheme(&self) -> Option<&'static str> {
        match self {
            ListUrl::Master(master) => Some(master.kind().server_scheme()),
            ListUrl::Http(_) => None,
        }
    }
}

impl FromStr for ListUrl {
    type Err = ListUrlError;

    fn from_str(text: &str) -> Result<ListUrl, ListUrlError> {
        if ListUrl::is_http(text) { Ok(ListUrl::Http(text.parse()?)) } else { Ok(ListUrl::Master(text.parse()?)) }
    }
}

impl fmt::Display for ListUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListUrl::Master(url) => url.fmt(f),
            ListUrl::Http(url) => url.fmt(f),
        }
    }
}

impl TryFrom<String> for ListUrl {
    type Error = ListUrlError;

    fn try_from(text: String) -> Result<ListUrl, ListUrlError> {
        text.parse()
    }
}

/// With the query.
impl From<ListUrl> for String {
    fn from(url: ListUrl) -> String {
        match url {
            ListUrl::Master(url) => url.into(),
            ListUrl::Http(url) => url.into_secret_text(),
        }
    }
}

/// The servers of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerList {
    /// Each address once.
    pub addresses: BTreeSet<SocketAddr>,
    /// The scheme of the servers.
    pub scheme: &'static str,
    /// False if the end of the list did not arrive.
    pub is_complete: bool,
    /// Strings that are not addresses, such as host names.
    pub invalid: Vec<String>,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error(transparent)]
    Master(#[from] MasterError),
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// Fetches a list. `user_agent`: the name that websites see. `progress` gets the number of
/// addresses that a master has sent so far.
pub async fn fetch(url: &ListUrl, user_agent: &str, progress: impl FnMut(usize)) -> Result<ServerList, ListError> {
    match url {
        ListUrl::Master(master) => {
            let list = exchange::fetch(master, Timing::default(), progress).await?;
            let scheme = master.kind().server_scheme();
            let addresses = list.addresses;
            Ok(ServerList { addresses, scheme, is_complete: list.is_complete, invalid: Vec::new() })
        }
        ListUrl::Http(url) => {
            let list = http::fetch(url, user_agent, HttpLimits::default()).await?;
            Ok(ServerList { addresses: list.addresses, scheme: list.scheme, is_complete: true, invalid: list.invalid })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_a_master_or_a_website_by_its_scheme() {
        for (text, shown, scheme) in [
            ("dpmaster://H/68", "dpmaster://h:27950/68", Some("quake3")),
            ("https://h/servers.json?key=SECRET", "https://h/servers.json", None),
            ("HTTP://h/servers.json", "http://h/servers.json", None),
        ] {
            let url: ListUrl = text.parse().expect(text);
            assert_eq!((url.to_string().as_str(), url.server_scheme()), (shown, scheme));
            assert_eq!(ListUrl::try_from(String::from(url.clone())), Ok(url));
        }
        let error = "htps://h/?key=SECRET".parse::<ListUrl>().expect_err("no scheme").to_string();
        assert!(error.contains("https://") && !error.contains("SECRET"), "{error}");
    }
}
