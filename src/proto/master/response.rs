//! Decodes the datagrams of masters. All addresses are big-endian, and so are ports, but for those of Odamex and
//! Zandronum.
//!
//! | master | begins with | entry | end |
//! |---|---|---|---|
//! | dpmaster | `FF4 getserversResponse`, `FF4 getserversExtResponse` | `\` and 6 bytes, `/` and 18 bytes | `\EOT` |
//! | QuakeWorld | `FF4 d \n` | 6 bytes | none |
//! | Quake 2 | `FF4 servers`, one byte | 6 bytes | none |
//! | Steam | `FF4 f \n` | 6 bytes | 0.0.0.0:0 |
//! | Teeworlds 0.6 | `FF` ten times, `lis2` | 18 bytes | none |
//! | Teeworlds 0.7 | after the tokens: `FF4 lis2` | 18 bytes | none |
//! | Odamex | `A3 DB 0B 00`, number of entries | 6 bytes | that number |
//! | Zandronum | Huffman code: `06 00 00 00`, number of the part, `08` | count, address, ports | `00 02` |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::url::MasterKind;
use crate::proto::zandronum_huffman;

const V4_BYTES: usize = 6;
const V6_BYTES: usize = 18;

/// The bytes after dpmaster's last separator, in place of an address.
const END_MARK: &[u8] = b"EOT";

/// A request to an Odamex master, and the beginning of its reply.
pub(super) const ODAMEX_LIST: u32 = 777_123;

/// Longest datagram of a Zandronum master before compression, bytes; usual are 1,024.
const ZANDRONUM_BYTES_MAX: usize = 8_192;

/// The message of a Zandronum master with a part of its list.
const ZANDRONUM_PART: u32 = 6;
/// Before the servers of a part.
const ZANDRONUM_BLOCKS: u8 = 8;
/// After the servers of the last part, and of other parts.
const ZANDRONUM_LAST: u8 = 2;
const ZANDRONUM_MORE: u8 = 7;

/// The addresses of one datagram: at most 65,535 / 6, of Zandronum 8,192 / 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListPart {
    /// In the order of the datagram; a port may be 0.
    pub addresses: Vec<SocketAddr>,
    /// The datagram contains the end of the list.
    pub has_end: bool,
    /// The place of the datagram in the list. 0 if the protocol does not number its datagrams.
    pub number: u8,
}

/// Why a Zandronum master sends no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MasterRefusal {
    #[error("it has banned the address of this host")]
    Banned,
    #[error("it accepts one request in 10 s from an address; try again in a minute")]
    TooSoon,
    #[error("it requires another version of its protocol")]
    WrongVersion,
}

/// Decodes a datagram, of Teeworlds 0.7 the content after its tokens. `None`: it is not a reply of such a master.
/// An incomplete entry at the end of the datagram is ignored, but a part of Zandronum must be complete.
pub(super) fn decode(kind: &MasterKind, datagram: &[u8]) -> Option<ListPart> {
    match kind {
        MasterKind::Dpmaster { .. } => dpmaster(datagram),
        MasterKind::QuakeWorld => Some(v4_list(datagram.strip_prefix(b"\xff\xff\xff\xffd\n")?)),
        // The byte after the word is a space; Q2PRO takes any white space.
        MasterKind::Quake2 => match datagram.strip_prefix(b"\xff\xff\xff\xffservers")? {
            [] => Some(ListPart::default()),
            [space, entries @ ..] => space.is_ascii_whitespace().then(|| v4_list(entries)),
        },
        MasterKind::Steam { .. } => {
            let mut part = v4_list(datagram.strip_prefix(b"\xff\xff\xff\xfff\n")?);
            let end = part.addresses.iter().position(|&address| address == STEAM_START);
            if let Some(end) = end {
                part.addresses.truncate(end);
                part.has_end = true;
            }
            Some(part)
        }
        MasterKind::Teeworlds => Some(v6_list(datagram.strip_prefix(&[0xff; 10])?.strip_prefix(b"lis2")?)),
        MasterKind::Teeworlds7 => Some(v6_list(datagram.strip_prefix(b"\xff\xff\xff\xfflis2")?)),
        MasterKind::Odamex => odamex(datagram),
        MasterKind::Zandronum => zandronum(&zandronum_huffman::decode(datagram, ZANDRONUM_BYTES_MAX)),
        MasterKind::Text(_) => None,
    }
}

/// The refusal that a master sends in place of a list.
pub(super) fn refusal(kind: &MasterKind, datagram: &[u8]) -> Option<MasterRefusal> {
    let MasterKind::Zandronum = kind else { return None };
    let message = zandronum_huffman::decode(datagram, 4);
    match u32::from_le_bytes(*message.first_chunk()?) {
        3 => Some(MasterRefusal::Banned),
        4 => Some(MasterRefusal::TooSoon),
        5 => Some(MasterRefusal::WrongVersion),
        _ => None,
    }
}

/// Where a Steam list starts, and its end mark.
pub(super) const STEAM_START: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

fn dpmaster(datagram: &[u8]) -> Option<ListPart> {
    let rest = datagram.strip_prefix(b"\xff\xff\xff\xffgetservers")?;
    let (rest, extended) = match rest.strip_prefix(b"ExtResponse") {
        Some(rest) => (rest, true),
        None => (rest.strip_prefix(b"Response")?, false),
    };
    // Some masters send white space or a zero before the first entry.
    let start = rest.iter().position(|&b| b == b'\\' || (extended && b == b'/')).unwrap_or(rest.len());
    let mut rest = &rest[start..];
    let mut part = ListPart::default();
    loop {
        match rest {
            [b'\\', after @ ..] if is_end(after) => {
                part.has_end = true;
                return Some(part);
            }
            [b'\\', after @ ..] => {
                let Some((entry, after)) = after.split_first_chunk() else { return Some(part) };
                part.addresses.push(v4_entry(entry));
                rest = after;
            }
            [b'/', after @ ..] if extended => {
                let Some((entry, after)) = after.split_first_chunk() else { return Some(part) };
                part.addresses.push(v6_entry(entry));
                rest = after;
            }
            _ => return Some(part),
        }
    }
}

/// Whether the bytes after a separator are the end mark: `EOT`, then nothing or zeros. An
/// address that begins with the bytes of `EOT` has a port.
fn is_end(after: &[u8]) -> bool {
    after.strip_prefix(END_MARK).is_some_and(|rest| rest.iter().take(V4_BYTES - END_MARK.len()).all(|&b| b == 0))
}

/// A list in one datagram. What follows the announced entries is ignored.
fn odamex(datagram: &[u8]) -> Option<ListPart> {
    let (count, entries) = datagram.strip_prefix(&ODAMEX_LIST.to_le_bytes())?.split_first_chunk()?;
    let count = usize::from(u16::from_le_bytes(*count));
    let entries = entries.as_chunks::<V4_BYTES>().0.iter().take(count);
    let addresses: Vec<SocketAddr> =
        entries.map(|&[a, b, c, d, low, high]| v4_entry(&[a, b, c, d, high, low])).collect();
    Some(ListPart { has_end: addresses.len() == count, addresses, number: 0 })
}

/// A part, decompressed.
fn zandronum(message: &[u8]) -> Option<ListPart> {
    let (&number, rest) = message.strip_prefix(&ZANDRONUM_PART.to_le_bytes())?.split_first()?;
    let mut rest = rest.strip_prefix(&[ZANDRONUM_BLOCKS])?;
    let mut addresses = Vec::new();
    loop {
        let (&count, block) = rest.split_first()?;
        if count == 0 {
            let has_end = match *block.first()? {
                ZANDRONUM_LAST => true,
                ZANDRONUM_MORE => false,
                _ => return None,
            };
            return Some(ListPart { addresses, has_end, number });
        }
        let (&ip, block) = block.split_first_chunk::<4>()?;
        let (ports, after) = block.split_at_checked(usize::from(count) * 2)?;
        addresses.extend(ports.as_chunks().0.iter().map(|&port| SocketAddr::from((ip, u16::from_le_bytes(port)))));
        rest = after;
    }
}

fn v4_list(entries: &[u8]) -> ListPart {
    let addresses = entries.as_chunks::<V4_BYTES>().0.iter().map(v4_entry).collect();
    ListPart { addresses, ..ListPart::default() }
}

fn v6_list(entries: &[u8]) -> ListPart {
    let addresses = entries.as_chunks::<V6_BYTES>().0.iter().map(v6_entry).collect();
    ListPart { addresses, ..ListPart::default() }
}

fn v4_entry(&[a, b, c, d, high, low]: &[u8; V4_BYTES]) -> SocketAddr {
    SocketAddr::from(([a, b, c, d], u16::from_be_bytes([high, low])))
}

/// An IPv4 address that is mapped to IPv6 is returned as IPv4.
fn v6_entry(entry: &[u8; V6_BYTES]) -> SocketAddr {
    let (ip, port) = entry.split_first_chunk::<16>().expect("the entry has 18 bytes");
    let port = port.try_into().map(u16::from_be_bytes).expect("two bytes remain");
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from(*ip)).to_canonical(), port)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds() -> [MasterKind; 8] {
        [
            MasterKind::Dpmaster { game: None, protocol: 68 },
            MasterKind::QuakeWorld,
            MasterKind::Quake2,
            MasterKind::Steam { filter: String::new() },
            MasterKind::Teeworlds,
            MasterKind::Teeworlds7,
            MasterKind::Odamex,
            MasterKind::Zandronum,
        ]
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    }

    #[track_caller]
    fn check(kind: &MasterKind, datagram: &[u8], texts: &[&str], has_end: bool) {
        let want = ListPart { addresses: addresses(texts), has_end, number: 0 };
        assert_eq!(decode(kind, datagram), Some(want.clone()));
        // Cut at any byte: nothing, or a prefix of the same list.
        for length in 0..datagram.len() {
            let Some(part) = decode(kind, &datagram[..length]) else { continue };
            assert!(want.addresses.starts_with(&part.addresses), "{length}: {part:?}");
        }
    }

    #[test]
    fn dpmaster_list_ends_at_its_mark() {
        let kind = &kinds()[0];
        let head = b"\xff\xff\xff\xffgetserversResponse";
        let two = b"\\\x01\x02\x03\x04\x6d\x38\\\\\\//\x00\x01";
        check(kind, &[&head[..], two, b"\\EOT\0\0\0"].concat(), &["1.2.3.4:27960", "92.92.47.47:1"], true);
        check(kind, &[&head[..], two].concat(), &["1.2.3.4:27960", "92.92.47.47:1"], false);
        // Forms of the end and of the start that masters of other games send.
        check(kind, &[&head[..], b"\\EOT"].concat(), &[], true);
        check(kind, &[&head[..], b"\n\0\\\x01\x02\x03\x04\0\x05\\EOT"].concat(), &["1.2.3.4:5"], true);
        // An address that begins as the end mark does.
        check(kind, &[&head[..], b"\\EOT\x01\0\x05\\EOT\0\0\0"].concat(), &["69.79.84.1:5"], true);
        check(kind, head, &[], false);
        // Not an entry: the rest is ignored. Without "Ext", `/` begins none.
        check(kind, &[&head[..], b"\\\x01\x02\x03\x04\0\x05x\x01\x02\x03\x04\0\x05"].concat(), &["1.2.3.4:5"], false);
        check(kind, &[&head[..], b"/0123456789abcdef\0\x05\\EOT\0\0\0"].concat(), &[], true);
    }

    #[test]
    fn extended_dpmaster_list_has_ipv4_and_ipv6() {
        let head = b"\xff\xff\xff\xffgetserversExtResponse";
        let v6 = b"/\x2a\x01\x04\xf8\0\0\0\0\0\0\0\0\0\0\0\x01\x65\x90";
        let list = [&head[..], b"\\\x01\x02\x03\x04\x65\x90", v6, b"\\EOT\0\0\0"].concat();
        check(&kinds()[0], &list, &["1.2.3.4:26000", "[2a01:4f8::1]:26000"], true);
    }

    #[test]
    fn quake_lists_have_no_end_mark() {
        let entries = b"\x01\x02\x03\x04\x69\x78\x05\x06\x07\x08\0\0";
        let texts = ["1.2.3.4:27000", "5.6.7.8:0"];
        check(&kinds()[1], &[b"\xff\xff\xff\xffd\n", &entries[..]].concat(), &texts, false);
        check(&kinds()[2], &[b"\xff\xff\xff\xffservers ", &entries[..]].concat(), &texts, false);
        check(&kinds()[2], b"\xff\xff\xff\xffservers", &[], false);
        assert_eq!(decode(&kinds()[2], b"\xff\xff\xff\xffserversX123456"), None);
    }

    #[test]
    fn steam_list_ends_at_the_zero_address() {
        let head = b"\xff\xff\xff\xfff\n";
        let entry = b"\x01\x02\x03\x04\x69\x87";
        check(&kinds()[3], &[head, &entry[..]].concat(), &["1.2.3.4:27015"], false);
        check(&kinds()[3], &[head, &entry[..], &[0; 6], entry].concat(), &["1.2.3.4:27015"], true);
    }

    #[test]
    fn teeworlds_lists_map_ipv4() {
        let v4 = b"\0\0\0\0\0\0\0\0\0\0\xff\xff\x01\x02\x03\x04\x20\x6f";
        let v6 = b"\x2a\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x6f";
        let texts = ["1.2.3.4:8303", "[2a01::1]:8303"];
        for (kind, head) in [(4, &[&[0xff; 10][..], b"lis2"].concat()[..]), (5, b"\xff\xff\xff\xfflis2")] {
            check(&kinds()[kind], &[head, v4, v6].concat(), &texts, false);
            check(&kinds()[kind], &[head, v4, v6, &v4[..17]].concat(), &texts, false);
            check(&kinds()[kind], head, &[], false);
        }
    }

    #[test]
    fn odamex_list_ends_after_the_announced_entries() {
        let kind = &kinds()[6];
        let entries = b"\x01\x02\x03\x04\xaa\x29\x05\x06\x07\x08\xab\x29";
        let texts = ["1.2.3.4:10666", "5.6.7.8:10667"];
        check(kind, &[b"\xa3\xdb\x0b\0\x02\0", &entries[..]].concat(), &texts, true);
        check(kind, &[b"\xa3\xdb\x0b\0\x02\0", &entries[..], entries].concat(), &texts, true);
        check(kind, &[b"\xa3\xdb\x0b\0\x03\0", &entries[..]].concat(), &texts, false);
        check(kind, b"\xa3\xdb\x0b\0\0\0", &[], true);
        // The request, and a count that is cut.
        assert_eq!(decode(kind, b"\xa3\xdb\x0b\0"), None);
        assert_eq!(decode(kind, b"\xa3\xdb\x0b\0\x02"), None);
    }

    #[test]
    fn zandronum_part_has_addresses_with_several_ports() {
        let kind = &kinds()[7];
        let blocks = b"\x02\x01\x02\x03\x04\xaa\x29\xab\x29\x01\x05\x06\x07\x08\x01\0";
        let texts = ["1.2.3.4:10666", "1.2.3.4:10667", "5.6.7.8:1"];
        let part = |number: u8, end: &[u8]| [b"\xff\x06\0\0\0", &[number, 8][..], blocks, end].concat();
        check(kind, &part(0, b"\0\x02"), &texts, true);
        check(kind, &part(0, b"\0\x07"), &texts, false);
        let want = ListPart { addresses: addresses(&texts), has_end: true, number: 255 };
        assert_eq!(decode(kind, &part(255, b"\0\x02")), Some(want.clone()));
        let compressed = zandronum_huffman::encode(&part(255, b"\0\x02")[1..]);
        assert_ne!(compressed[0], 0xff);
        assert_eq!(decode(kind, &compressed), Some(want));
        check(kind, b"\xff\x06\0\0\0\0\x08\0\x02", &[], true);
        // Another end, no end, a block that is cut, no blocks.
        for bad in [&part(0, b"\0\x03"), &part(0, b"\0"), &part(0, b""), &part(0, b"\x01\x01\x02\x03\x04\x05")] {
            assert_eq!(decode(kind, bad), None, "{bad:?}");
        }
        assert_eq!(decode(kind, b"\xff\x06\0\0\0\0\x09\0\x02"), None);
    }

    #[test]
    fn zandronum_part_that_is_too_long_is_refused() {
        let blocks = b"\x01\x05\x06\x07\x08\x01\0".repeat(ZANDRONUM_BYTES_MAX / 7 + 1);
        assert_eq!(decode(&kinds()[7], &[b"\xff\x06\0\0\0\0\x08", &blocks[..], b"\0\x02"].concat()), None);
    }

    #[test]
    fn zandronum_refusal_is_recognised() {
        let of = |datagram: &[u8]| refusal(&MasterKind::Zandronum, datagram);
        assert_eq!(of(b"\xff\x03\0\0\0"), Some(MasterRefusal::Banned));
        assert_eq!(of(b"\xff\x04\0\0\0"), Some(MasterRefusal::TooSoon));
        assert_eq!(of(b"\xff\x05\0\0\0"), Some(MasterRefusal::WrongVersion));
        assert_eq!(of(&zandronum_huffman::encode(b"\x04\0\0\0")), Some(MasterRefusal::TooSoon));
        for other in [&b"\xff\x06\0\0\0"[..], b"\xff\x03\0\0", b"\xff\x03\0\0\x01", b"\x03\0\0\0", b"\xff", b""] {
            assert_eq!(of(other), None, "{other:?}");
        }
        assert_eq!(refusal(&MasterKind::Odamex, b"\xff\x03\0\0\0"), None);
    }

    #[test]
    fn other_datagrams_are_not_lists() {
        for kind in kinds() {
            for datagram in
                [&b""[..], b"\xff\xff\xff\xff", b"\xff\xff\xff\xffstatusResponse\n", b"getserversResponse\\EOT\0\0\0"]
            {
                assert_eq!(decode(&kind, datagram), None, "{kind:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(
            head in 0..9_usize,
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'/'), Just(0)], 0..2_000),
        ) {
            let heads = [
                &b""[..],
                b"\xff\xff\xff\xffgetserversResponse\\",
                b"\xff\xff\xff\xffgetserversExtResponse/",
                b"\xff\xff\xff\xffservers ",
                b"\xff\xff\xff\xfff\n",
                b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfflis2",
                b"\xff\xff\xff\xfflis2",
                b"\xa3\xdb\x0b\0\xff",
                b"\xff\x06\0\0\0\0\x08",
            ];
            let datagram = [heads[head], &bytes[..]].concat();
            for kind in kinds() {
                // A compressed port has at least two codes of three bits.
                let most = match kind {
                    MasterKind::Zandronum => datagram.len() * 8 / 6,
                    _ => datagram.len() / V4_BYTES,
                };
                if let Some(part) = decode(&kind, &datagram) {
                    prop_assert!(part.addresses.len() <= most);
                }
                refusal(&kind, &datagram);
            }
        }
    }
}
