//! Server lists in JSON, in a file or on a website: the answer of Steam's Web API
//! (`IGameServersService/GetServerList`) and DDNet's `servers.json`. Both are one JSON object.
//!
//! ```json
//! {"response":{"servers":[{"addr":"192.0.2.1:27015"}]}}
//! {"servers":[{"addresses":["tw-0.6+udp://192.0.2.1:8303","tw-0.7+udp://192.0.2.1:8303"]}]}
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::server_list::ServerList;
use crate::limits::MASTER_ADDRESSES_MAX;

/// Most addresses of one server of a DDNet list; usual are two to four.
const ADDRESSES_PER_SERVER_MAX: usize = 64;

/// Why a document is not such a list.
#[derive(Debug, thiserror::Error)]
pub enum JsonListError {
    #[error("not a server list: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "a JSON object, but not a server list: expected response.servers[].addr (Steam) or servers[].addresses (DDNet)"
    )]
    Unknown,
}

/// Whether a document that begins like this is a JSON object.
pub(super) fn is_json(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    start.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
}

pub(super) fn parse(bytes: &[u8]) -> Result<ServerList, JsonListError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match serde_json::from_slice(bytes)? {
        File { response: Some(Response { servers }), .. } => {
            let mut list = ServerList::new();
            servers.0.iter().for_each(|server| list.add(&server.addr, "source"));
            Ok(list)
        }
        File { servers: Some(servers), .. } => {
            let mut list = ServerList::new();
            for DdnetServer { addresses } in &servers.0 {
                match ddnet_address(&addresses.0) {
                    Some((address, scheme)) => list.add(address, scheme),
                    None => addresses.0.iter().for_each(|url| list.add(url, "teeworlds")),
                }
            }
            Ok(list)
        }
        File { .. } => Err(JsonListError::Unknown),
    }
}

/// The address at which a server of DDNet is scanned, and its scheme. It lists 0.6, 0.7 and others, over IPv4 and IPv6:
/// players of all of them play together.
fn ddnet_address(urls: &[String]) -> Option<(&str, &'static str)> {
    let formats = [("tw-0.6+udp://", "teeworlds"), ("tw-0.7+udp://", "teeworlds7"), ("", "teeworlds")];
    formats.into_iter().find_map(|(prefix, scheme)| {
        let addresses = urls.iter().filter_map(|url| {
            let text = url.strip_prefix(prefix)?;
            Some((text.parse::<SocketAddr>().ok()?.is_ipv6(), text))
        });
        addresses.min_by_key(|(is_ipv6, _)| *is_ipv6).map(|(_, text)| (text, scheme))
    })
}

#[derive(Deserialize)]
struct File {
    response: Option<Response>,
    servers: Option<Limited<DdnetServer, MASTER_ADDRESSES_MAX>>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    servers: Limited<SteamServer, MASTER_ADDRESSES_MAX>,
}

#[derive(Deserialize)]
struct SteamServer {
    addr: String,
}

#[derive(Deserialize)]
struct DdnetServer {
    addresses: Limited<String, ADDRESSES_PER_SERVER_MAX>,
}

/// How many addresses an element of a list counts as.
trait AddressCount {
    fn address_count(&self) -> usize {
        1
    }
}

impl AddressCount for String {}

impl AddressCount for SteamServer {}

impl AddressCount for DdnetServer {
    fn address_count(&self) -> usize {
        // A server without any takes memory, too.
        self.addresses.0.len().max(1)
    }
}

/// A list that is refused if it has more than `MAX` addresses.
struct Limited<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> Default for Limited<T, MAX> {
    fn default() -> Self {
        Limited(Vec::new())
    }
}

impl<'de, T: Deserialize<'de> + AddressCount, const MAX: usize> Deserialize<'de> for Limited<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Elements<T, const MAX: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + AddressCount, const MAX: usize> Visitor<'de> for Elements<T, MAX> {
            type Value = Limited<T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MAX} addresses")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let (mut elements, mut addresses) = (Vec::new(), 0);
                while let Some(element) = from.next_element::<T>()? {
                    addresses += element.address_count();
                    if addresses > MAX {
                        return Err(de::Error::invalid_length(addresses, &self));
                    }
                    elements.push(element);
                }
                Ok(Limited(elements))
            }
        }

        from.deserialize_seq(Elements(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &ServerList) -> Vec<String> {
        list.servers.keys().map(SocketAddr::to_string).collect()
    }

    fn schemes(list: &ServerList) -> Vec<&str> {
        list.servers.values().copied().collect()
    }

    #[test]
    fn steam_web_api_answer_is_a_list() {
        let text = r#"{"response":{"servers":[
            {"addr":"192.0.2.1:27015","gameport":27015,"name":"a \"b\" \u00e4","secure":true},
            {"addr":"192.0.2.1:27015"},{"addr":"[2001:db8::1]:5"},{"addr":"host:1"}]}}"#;
        assert!(is_json(text.as_bytes()));
        let list = parse(text.as_bytes()).expect("a list");
        assert_eq!(addresses(&list), ["192.0.2.1:27015", "[2001:db8::1]:5"]);
        assert_eq!((schemes(&list), &list.invalid), (vec!["source"; 2], &vec!["host:1".to_owned()]));
        // No server matches the filter.
        assert_eq!(addresses(&parse(br#"{"response":{}}"#).expect("an empty list")), [""; 0]);
    }

    #[test]
    fn ddnet_list_has_each_server_once() {
        let text = "\u{feff} \n{\"servers\":[{\"addresses\":[\"tw-0.6+udp://192.0.2.1:8303\",\"tw-0.7+udp://192.0.2.1:8303\"],\
                    \"info\":{\"clients\":[{\"name\":\"x\"}]}},{\"addresses\":[\"tw-0.6+udp://[2001:db8::1]:8304\",\"ddnet+quic://192.0.2.1:8303\"]},\
                    {\"addresses\":[\"tw-0.6+udp://[2001:db8::2]:8303\",\"tw-0.6+udp://192.0.2.2:8303\"]},\
                    {\"addresses\":[\"tw-0.7+udp://192.0.2.3:8303\"]},{\"addresses\":[\"tw-1+tcp://x\"]}]}";
        assert!(is_json(text.as_bytes()));
        let list = parse(text.as_bytes()).expect("a list");
        let (v4, v6) = (["192.0.2.1:8303", "192.0.2.2:8303", "192.0.2.3:8303"], "[2001:db8::1]:8304");
        assert_eq!(addresses(&list), [&v4[..], &[v6]].concat());
        assert_eq!(schemes(&list), ["teeworlds", "teeworlds", "teeworlds7", "teeworlds"]);
        assert_eq!(list.invalid, ["tw-1+tcp://x"]);
    }

    #[test]
    fn other_files_are_refused_with_reason() {
        assert!(!is_json(b"quake3://a\n") && !is_json(b"# {\n") && !is_json(b""));
        let error = |text: &str| parse(text.as_bytes()).expect_err("not a list").to_string();
        assert!(error("{\"a\":1}").contains("response.servers[].addr"));
        assert!(error("{\"servers\":5}").contains("line 1 column 12"), "{}", error("{\"servers\":5}"));
        assert!(error("{\"servers\":[").contains("EOF"));
        let many = format!("{{\"servers\":[{{\"addresses\":[{}\"\"]}}]}}", "\"\",".repeat(ADDRESSES_PER_SERVER_MAX));
        assert!(error(&many).contains("at most 64 addresses"), "{}", error(&many));
    }

    #[test]
    fn addresses_of_all_ddnet_servers_are_counted_together() {
        let server = format!("{{\"addresses\":[{}\"\"]}},", "\"\",".repeat(ADDRESSES_PER_SERVER_MAX - 1));
        let servers = MASTER_ADDRESSES_MAX / ADDRESSES_PER_SERVER_MAX;
        let list = |last: &str| format!("{{\"servers\":[{}{last}]}}", server.repeat(servers));
        assert_eq!(servers * ADDRESSES_PER_SERVER_MAX, MASTER_ADDRESSES_MAX);
        let full = list("").replace(",]}", "]}");
        assert_eq!(parse(full.as_bytes()).expect("a list").invalid.len(), MASTER_ADDRESSES_MAX);
        for last in [r#"{"addresses":["192.0.2.1:1"]}"#, r#"{"addresses":[]}"#] {
            let error = parse(list(last).as_bytes()).expect_err("too many").to_string();
            assert!(error.contains("at most 1000000 addresses"), "{error}");
        }
    }

    #[test]
    fn file_cut_at_any_byte_is_refused() {
        let text = br#"{"servers":[{"addresses":["tw-0.6+udp://192.0.2.1:8303"]}]}"#;
        for length in 0..text.len() {
            assert!(parse(&text[..length]).is_err(), "{length}");
        }
    }
}
