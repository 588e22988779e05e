//! Lists on websites, and files with such a list: which format they have, and their servers.
//!
//! | list | format | module |
//! |---|---|---|
//! | Steam's Web API, DDNet | a JSON object | [`json_list`] |
//! | BZFlag | lines of text | [`bzflag_list`] |
//! | FiveM | frames of protobuf | [`fivem_stream`] |

use super::bzflag_list::{self, BzflagListError};
use super::fivem_stream::{self, FivemStreamError};
use super::json_list::{self, JsonListError};
use super::server_list::ServerList;

/// Why a document is not such a list.
#[derive(Debug, thiserror::Error)]
pub enum WebListError {
    #[error(transparent)]
    Json(#[from] JsonListError),
    #[error(transparent)]
    Bzflag(#[from] BzflagListError),
    #[error(transparent)]
    Fivem(#[from] FivemStreamError),
    #[error("not a server list: the document is empty")]
    Empty,
    #[error("not a server list: expected JSON (Steam, DDNet), lines of a BZFlag list, or a FiveM stream")]
    Unknown,
}

/// Whether a file that begins like this is a JSON list, and not a list of URLs.
pub fn is_json_list(start: &[u8]) -> bool {
    json_list::is_json(start)
}

/// Parses a list of any of the formats. The content shows which one it is.
pub fn parse_web_list(bytes: &[u8]) -> Result<ServerList, WebListError> {
    match () {
        () if bytes.is_empty() => Err(WebListError::Empty),
        // This must be first: a frame begins with its length, whose first byte may be any character, such as `{`.
        () if fivem_stream::is_fivem(bytes) => Ok(fivem_stream::parse(bytes)?),
        () if json_list::is_json(bytes) => Ok(json_list::parse(bytes)?),
        () if bzflag_list::is_bzflag(bytes) => Ok(bzflag_list::parse(bytes)?),
        () => Err(WebListError::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BZFLAG: &[u8] = b"NOTICE: hello\nhost:5155 BZFS0221 0000 192.0.2.1 title\n";
    /// A frame whose length is the number of the character `{`.
    const FIVEM: &[u8] = b"\x7b\0\0\0\x0a\x01x\x12\x76\
        \x92\x01\x0f192.0.2.1:30120\x22\x62\
        01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567";

    #[test]
    fn content_shows_the_format() {
        for (bytes, scheme) in [
            (&br#"{"response":{"servers":[{"addr":"192.0.2.1:1"}]}}"#[..], "source"),
            (br#" {"servers":[{"addresses":["tw-0.6+udp://192.0.2.1:1"]}]}"#, "teeworlds"),
            (BZFLAG, "bzflag"),
            (FIVEM, "fivem"),
        ] {
            let list = parse_web_list(bytes).expect(scheme);
            assert_eq!(list.servers.into_values().collect::<Vec<_>>(), [scheme]);
        }
    }

    #[test]
    fn other_documents_are_refused_with_reason() {
        let error = |bytes: &[u8]| parse_web_list(bytes).expect_err("not a list").to_string();
        assert_eq!(error(b""), "not a server list: the document is empty");
        for bytes in [&b"<!DOCTYPE html>\n<html>"[..], b"[]", b"quake3://h\n", b"\n", b"\0", b"\xff\xff\xff\xff\x0a"] {
            assert!(error(bytes).starts_with("not a server list: expected JSON"), "{bytes:?}");
        }
        assert!(error(b"{\"a\":1}").contains("response.servers[].addr"));
        assert!(error(&BZFLAG[..BZFLAG.len() - 1]).starts_with("a BZFlag list, but "));
        assert!(error(&FIVEM[..FIVEM.len() - 1]).starts_with("a FiveM stream, but "));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(
            head in 0..6_usize,
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>(), Just(b' '), Just(b'\n'), Just(0), Just(0x92)],
                0..300,
            ),
        ) {
            let heads = [&b""[..], b"{\"servers\":", BZFLAG, b"h BZFS0221 ", FIVEM, b"\x40\0\0\0\x12\x20"];
            let document = [heads[head], &bytes].concat();
            if let Ok(list) = parse_web_list(&document) {
                prop_assert!(list.servers.len() + list.invalid.len() <= document.len());
            }
        }
    }
}
