//! Where a list of servers comes from: a master server or a website.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::exchange::{self, MasterError, Timing};
use super::http::{self, HttpError, HttpLimits, HttpUrl, HttpUrlError};
use super::server_list::ServerList;
use super::text_exchange::{self, TextLimits};
use crate::proto::master::{MasterKind, MasterUrl, MasterUrlError};

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
    let master = match url {
        ListUrl::Master(master) => master,
        ListUrl::Http(url) => return Ok(http::fetch(url, user_agent, HttpLimits::default()).await?),
    };
    let (addresses, is_complete, invalid) = match *master.kind() {
        MasterKind::Text(game) => {
            let list = text_exchange::fetch(master, game, TextLimits::default()).await?;
            (list.addresses, list.is_complete, list.invalid)
        }
        _ => {
            let list = exchange::fetch(master, Timing::default(), progress).await?;
            (list.addresses, list.is_complete, Vec::new())
        }
    };
    let scheme = master.kind().server_scheme();
    Ok(ServerList { servers: addresses.into_iter().map(|address| (address, scheme)).collect(), is_complete, invalid })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn list_of_a_text_master_has_scheme_and_query_ports() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("eclipsemaster://{}", listener.local_addr().expect("bound")).parse().expect("a URL");
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 5];
            stream.read_exact(&mut request).expect("a request");
            assert_eq!(&request, b"list\n");
            let list = b"clearservers\naddserver 1.1.1.1 28801 0 \"a b\"\naddserver host 28801\n";
            stream.write_all(list).expect("sent");
        });
        let list = fetch(&url, "clqd", |_| ()).await.expect("a list");
        serving.join().expect("served");
        let servers: Vec<_> = list.servers.iter().map(|(address, scheme)| format!("{scheme}://{address}")).collect();
        assert_eq!(
            (servers, list.invalid),
            (vec!["eclipse://1.1.1.1:28802".to_owned()], vec!["host:28801".to_owned()])
        );
        assert!(list.is_complete);
    }

    #[test]
    fn url_is_a_master_or_a_website_by_its_scheme() {
        for (text, shown, scheme) in [
            ("dpmaster://H/68", "dpmaster://h:27950/68", Some("quake3")),
            ("cube2master://h", "cube2master://h:28787", Some("cube2")),
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
