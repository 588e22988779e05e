//! The stream that FiveM's list server sends: frames, each with one server as a protobuf message. The list ends
//! with the document. RedM's servers are in the same list; a setting tells them.
//!
//! ```text
//! frame    length u32 little-endian, message
//! message  1 id, 2 data
//! data     12 setting, 18 endpoint, ...
//! setting  1 name, 2 value
//! ```
//!
//! An endpoint is `IP:PORT`, `HOST:PORT` or the URL of a proxy. All other fields are skipped.

use std::net::SocketAddr;

use super::server_list::ServerList;
use crate::limits::MASTER_ADDRESSES_MAX;
use crate::model::varint::Cursor;

/// Longest message, bytes. The game accepts no longer ones either.
const MESSAGE_BYTES_MAX: usize = 65_535;

/// The bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

// Numbers of fields.
const ID: u64 = 1;
const DATA: u64 = 2;
const SETTING: u64 = 12;
const SETTING_NAME: u64 = 1;
const SETTING_VALUE: u64 = 2;
const ENDPOINT: u64 = 18;

/// The setting that names the game, and its value for RedM: Red Dead Redemption 2.
const GAME_SETTING: &[u8] = b"gamename";
const REDM_GAME: &[u8] = b"rdr3";

/// Why a stream is not a list. Frames are counted from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FivemStreamError {
    #[error("a FiveM stream, but it is cut: frame {frame} ends early")]
    Cut { frame: usize },
    #[error("a FiveM stream, but frame {frame} has {bytes} bytes; at most {MESSAGE_BYTES_MAX}")]
    TooLong { frame: usize, bytes: u32 },
    #[error("a FiveM stream, but frame {frame} is not a server: {problem}")]
    Message { frame: usize, problem: &'static str },
    #[error("a FiveM stream, but none of its frames is a server")]
    NoServer,
    #[error("a FiveM stream, but it has more than {MASTER_ADDRESSES_MAX} endpoints")]
    TooMany,
}

/// Whether a document begins with a frame. No text does, because two bytes of the length are 0.
pub(super) fn is_fivem(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk().map(|&length| u32::from_le_bytes(length));
    length.is_some_and(|length| length > 0 && fits(length).is_some())
}

pub(super) fn parse(bytes: &[u8]) -> Result<ServerList, FivemStreamError> {
    let mut list = ServerList::new();
    let mut has_server = false;
    let mut rest = bytes;
    for frame in 1.. {
        if rest.is_empty() {
            break;
        }
        let cut = || FivemStreamError::Cut { frame };
        let (&length, after) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or_else(cut)?;
        let bytes = u32::from_le_bytes(length);
        let length = fits(bytes).ok_or(FivemStreamError::TooLong { frame, bytes })?;
        let (message, after) = after.split_at_checked(length).ok_or_else(cut)?;
        rest = after;
        has_server |= add_server(message, &mut list).map_err(|problem| FivemStreamError::Message { frame, problem })?;
        if list.servers.len() + list.invalid.len() > MASTER_ADDRESSES_MAX {
            return Err(FivemStreamError::TooMany);
        }
    }
    if has_server { Ok(list) } else { Err(FivemStreamError::NoServer) }
}

/// The length of a message, if it may be so long.
fn fits(bytes: u32) -> Option<usize> {
    usize::try_from(bytes).ok().filter(|&bytes| bytes <= MESSAGE_BYTES_MAX)
}

/// Adds the endpoints of a server. Returns whether the message is one; those without an id or data are ignored, as by
/// the game.
fn add_server(message: &[u8], list: &mut ServerList) -> Result<bool, &'static str> {
    let (mut has_id, mut data) = (false, None);
    let mut fields = Fields(Cursor::new(message));
    while let Some((number, value)) = fields.next_field()? {
        match number {
            ID => has_id |= !value.is_empty(),
            DATA => data = Some(value),
            _ => {}
        }
    }
    let Some(data) = data.filter(|_| has_id) else { return Ok(false) };
    let mut fields = Fields(Cursor::new(data));
    let (mut address, mut other, mut scheme) = (None, None, "fivem");
    while let Some((number, value)) = fields.next_field()? {
        if number == SETTING && is_redm(value)? {
            scheme = "redm";
        } else if number == ENDPOINT {
            let text = String::from_utf8_lossy(value);
            let endpoint = if text.parse::<SocketAddr>().is_ok() { &mut address } else { &mut other };
            if !text.is_empty() && !text.contains("://") {
                endpoint.get_or_insert(text);
            }
        }
    }
    // All endpoints lead to the same server.
    address.or(other).iter().for_each(|endpoint| list.add(endpoint, scheme));
    Ok(true)
}

/// Whether a setting says that the server is one of RedM.
fn is_redm(setting: &[u8]) -> Result<bool, &'static str> {
    let (mut fields, mut name, mut game) = (Fields(Cursor::new(setting)), &b""[..], &b""[..]);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            SETTING_NAME => name = value,
            SETTING_VALUE => game = value,
            _ => {}
        }
    }
    Ok(name == GAME_SETTING && game == REDM_GAME)
}

/// The fields of a protobuf message that remain.
struct Fields<'m>(Cursor<'m>);

impl<'m> Fields<'m> {
    /// The next field with bytes: its number and value. Numbers are skipped. Error: the message is malformed.
    fn next_field(&mut self) -> Result<Option<(u64, &'m [u8])>, &'static str> {
        while !self.0.is_empty() {
            let tag = self.varint()?;
            let number = tag >> 3;
            if number == 0 {
                return Err("a field has the number 0");
            }
            match tag & 7 {
                0 => _ = self.varint()?,
                1 => _ = self.take(8)?,
                2 => {
                    let length = self.varint()?;
                    return Ok(Some((number, self.take(length)?)));
                }
                5 => _ = self.take(4)?,
                _ => return Err("a field has an unknown type"),
            }
        }
        Ok(None)
    }

    fn take(&mut self, length: u64) -> Result<&'m [u8], &'static str> {
        let length = usize::try_from(length).ok();
        length.and_then(|length| self.0.bytes(length)).ok_or("a field is longer than its message")
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        self.0.u64().ok_or("a number is cut, or has more than 64 bits")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame around a message of less than 256 bytes.
    fn frame(message: &[u8]) -> Vec<u8> {
        [&[u8::try_from(message.len()).expect("a short message"), 0, 0, 0], message].concat()
    }

    /// A server with these bytes of data, less than 128.
    fn server(data: &[u8]) -> Vec<u8> {
        let length = u8::try_from(data.len()).expect("short data");
        frame(&[b"\x0a\x06abc123\x12", &[length][..], data].concat())
    }

    /// A field with an endpoint.
    fn endpoint(text: &str) -> Vec<u8> {
        [b"\x92\x01", &[u8::try_from(text.len()).expect("a short text")][..], text.as_bytes()].concat()
    }

    fn addresses(list: &ServerList) -> Vec<String> {
        list.servers.keys().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn stream_has_the_endpoints_of_each_server() {
        // Fields of all types: svMaxclients 300, hostname, a double, a float, a setting, and then the endpoint.
        let first = b"\x2e\0\0\0\x0a\x06abc123\x12\x24\x08\xac\x02\x22\x03a:1\x29\0\0\0\0\0\0\0\0\x35\0\0\0\0\x62\0\
                      \x92\x01\x09[::1]:256";
        assert_eq!(first.len(), 4 + 0x2e);
        let all = ["https://proxy.example", "host.example:30120", "192.0.2.1:30120", "192.0.2.2:30121", "host"];
        let second = server(&all.map(endpoint).concat());
        // Without data, without an id, and empty: no servers.
        let others = [frame(b"\x0a\x01x"), frame(b"\x12\x06\x92\x01\x0319:"), frame(b"")].concat();
        let third = server(&["https://proxy.example", "host", "other"].map(endpoint).concat());
        let stream = [&first[..], &second, &others, &second, &third].concat();
        assert!(is_fivem(&stream));
        let list = parse(&stream).expect("a list");
        assert_eq!(addresses(&list), ["192.0.2.1:30120", "[::1]:256"]);
        assert!(list.servers.values().all(|&scheme| scheme == "fivem"));
        assert_eq!(list.invalid, ["host"]);
    }

    #[test]
    fn setting_tells_servers_of_redm() {
        let setting = |name: &[u8], value: &[u8]| {
            let text = |number: u8, text: &[u8]| [&[number << 3 | 2, text.len() as u8][..], text].concat();
            text(12, &[text(1, name), text(2, value)].concat())
        };
        let redm = [setting(b"locale", b"en-US"), setting(b"gamename", b"rdr3"), endpoint("192.0.2.1:1")].concat();
        // The order of fields has no meaning.
        let last = [endpoint("192.0.2.2:1"), setting(b"gamename", b"rdr3")].concat();
        let fivem = [setting(b"gamename", b"gta5"), setting(b"sets", b"rdr3"), endpoint("192.0.2.3:1")].concat();
        let list = parse(&[server(&redm), server(&last), server(&fivem)].concat()).expect("a list");
        assert_eq!(list.servers.values().copied().collect::<Vec<_>>(), ["redm", "redm", "fivem"]);
        let cut = [endpoint("192.0.2.1:1"), b"\x62\x02\x0a\x08".to_vec()].concat();
        let problem = "a field is longer than its message";
        assert_eq!(parse(&server(&cut)), Err(FivemStreamError::Message { frame: 1, problem }));
    }

    #[test]
    fn malformed_frame_is_refused_with_its_number() {
        let good = server(&endpoint("192.0.2.1:30120"));
        let error = |bytes: &[u8]| parse(&[&good, bytes].concat()).expect_err("not a list");
        assert_eq!(error(b"\x01"), FivemStreamError::Cut { frame: 2 });
        assert_eq!(error(b"\x02\0\0\0\x08"), FivemStreamError::Cut { frame: 2 });
        assert_eq!(error(b"\0\0\x01\0\x08"), FivemStreamError::TooLong { frame: 2, bytes: 65_536 });
        assert_eq!(error(b"\xff\xff\xff\xff"), FivemStreamError::TooLong { frame: 2, bytes: u32::MAX });
        for (message, want) in [
            (&b"\x02\x00"[..], "a field has the number 0"),
            (b"\x0b", "a field has an unknown type"),
            (b"\x0a\x02x", "a field is longer than its message"),
            (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", "a field is longer than its message"),
            (b"\x09\0\0\0\0\0\0\0", "a field is longer than its message"),
            (b"\x08\x80", "a number is cut, or has more than 64 bits"),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number is cut, or has more than 64 bits"),
            (b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "a number is cut, or has more than 64 bits"),
            // In the data of a server.
            (b"\x0a\x01x\x12\x02\x92\x01", "a number is cut, or has more than 64 bits"),
        ] {
            assert_eq!(error(&frame(message)), FivemStreamError::Message { frame: 2, problem: want });
        }
    }

    #[test]
    fn stream_without_a_server_is_refused() {
        assert_eq!(parse(&frame(b"\x0a\x01x")), Err(FivemStreamError::NoServer));
        assert_eq!(parse(b"\0\0\0\0"), Err(FivemStreamError::NoServer));
        assert_eq!(addresses(&parse(&server(b"\x08\x01")).expect("a server without an endpoint")), [""; 0]);
    }

    #[test]
    fn other_documents_are_not_streams() {
        for bytes in [&b""[..], b"{\"a\":1}", b"host BZFS0221 00", b"\0\0\0\0", b"\x01\0\0", b"\0\0\x01\0", b"\n\n\n\n"]
        {
            assert!(!is_fivem(bytes), "{bytes:?}");
        }
        assert!(is_fivem(b"\xff\xff\0\0"));
    }

    #[test]
    fn stream_cut_at_any_byte_is_refused_unless_a_frame_ends_there() {
        let server = server(&endpoint("192.0.2.1:30120"));
        let stream = [&server[..], &server].concat();
        for length in (0..stream.len()).filter(|&length| length != server.len()) {
            assert!(parse(&stream[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_messages_are_parsed_or_refused(
            messages in proptest::collection::vec(
                (0..3_usize, proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x92), 0..16_u8], 0..40)),
                0..6,
            ),
        ) {
            let heads = [&b""[..], b"\x0a\x01x", b"\x0a\x01x\x12"];
            let frames = messages.iter().map(|(head, rest)| frame(&[heads[*head], rest].concat()));
            let stream: Vec<u8> = frames.collect::<Vec<_>>().concat();
            if let Ok(list) = parse(&stream) {
                prop_assert!(list.servers.len() + list.invalid.len() <= stream.len() / 3);
            }
        }
    }
}
