//! One query of a master: the requests, and the list from its parts and pages.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::response::{self, ListPart, MasterRefusal, ODAMEX_LIST, STEAM_START};
use super::text_list::TextMaster;
use super::url::MasterKind;
use crate::limits::MASTER_ADDRESSES_MAX;
use crate::proto::nonce::Nonce;
use crate::proto::teeworlds7_packet::{Packet, Tokens};
use crate::proto::zandronum_huffman;

/// Most pages of a Steam list: 231,000 servers, and 35 minutes at the rate that Steam's
/// master permits. It also ends a list that repeats itself.
const STEAM_PAGES_MAX: u32 = 1_000;

/// All regions.
const STEAM_REGION_ALL: u8 = 0xff;

/// The name of Quake III Arena in a request that must name a game.
const QUAKE3_GAME: &str = "Quake3Arena";

/// The message that requests a list from a Zandronum master, and the version of its protocol.
const ZANDRONUM_LIST: u32 = 5_660_028;
const ZANDRONUM_VERSION: u16 = 2;

/// The state of one query.
#[derive(Clone, Debug)]
pub struct MasterQuery {
    kind: MasterKind,
    /// The master's address. Over IPv6, dpmaster does not support the older request.
    master: IpAddr,
    addresses: BTreeSet<SocketAddr>,
    /// The address after which the next Steam page begins.
    page_after: SocketAddr,
    pages: u32,
    /// Tokens of Teeworlds 0.7, whose masters send a list only to a client with their token.
    tokens: Tokens,
    /// Parts of a Zandronum list that have arrived, and the highest one with the end mark.
    parts: BTreeSet<u8>,
    last_part: Option<u8>,
    has_reply: bool,
    has_end: bool,
    is_cut: bool,
}

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterStep {
    /// The datagram is not a reply, or has been handled before.
    Ignored,
    /// A part of the list. More may follow without another request.
    More,
    /// The master's token. It permits the request for the list, which must be sent now.
    Token,
    /// A page. The next one must be requested.
    NextPage,
    /// The part with the end of the list. Parts may still arrive if they were reordered.
    End,
    /// The master sends no list.
    Refused(MasterRefusal),
}

/// The addresses that a master returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MasterList {
    /// Each address once. A port may be 0, and an address need not be public.
    pub addresses: BTreeSet<SocketAddr>,
    /// False if the end of the list is missing, or a limit cut it. Two losses cannot be detected:
    /// of a datagram before the end, and of any datagram of a protocol without an end mark.
    pub is_complete: bool,
}

impl MasterQuery {
    /// A query over UDP. A [`MasterKind::Text`] has no datagrams, so all are ignored. `nonce`: what replies repeat
    /// if the protocol permits it.
    pub fn new(kind: MasterKind, master: IpAddr, nonce: Nonce) -> MasterQuery {
        MasterQuery {
            kind,
            master,
            addresses: BTreeSet::new(),
            page_after: STEAM_START,
            pages: 0,
            tokens: Tokens::new(nonce),
            parts: BTreeSet::new(),
            last_part: None,
            has_reply: false,
            has_end: false,
            is_cut: false,
        }
    }

    /// The request to send now, or again.
    pub fn request(&self) -> Vec<u8> {
        match &self.kind {
            MasterKind::Dpmaster { game: None, protocol } if self.master.is_ipv4() => {
                [b"\xff\xff\xff\xff", format!("getservers {protocol} empty full").as_bytes()].concat()
            }
            MasterKind::Dpmaster { game, protocol } => {
                let game = game.as_deref().unwrap_or(QUAKE3_GAME);
                let text = format!("getserversExt {game} {protocol} empty full ipv4 ipv6");
                [b"\xff\xff\xff\xff", text.as_bytes()].concat()
            }
            MasterKind::QuakeWorld => b"c\n\0".to_vec(),
            MasterKind::Quake2 => b"query\n\0".to_vec(),
            MasterKind::Steam { filter } => {
                let arguments = format!("{}\0{filter}\0", self.page_after);
                [&[b'1', STEAM_REGION_ALL], arguments.as_bytes()].concat()
            }
            MasterKind::Teeworlds => [&[0xff; 10][..], b"req2"].concat(),
            MasterKind::Teeworlds7 => self.tokens.packet(b"\xff\xff\xff\xffreq2"),
            // With more bytes it would be ignored.
            MasterKind::Odamex => ODAMEX_LIST.to_le_bytes().to_vec(),
            MasterKind::Zandronum => {
                let request = [&ZANDRONUM_LIST.to_le_bytes()[..], &ZANDRONUM_VERSION.to_le_bytes()].concat();
                zandronum_huffman::encode(&request)
            }
            MasterKind::Text(_) => TextMaster::REQUEST.to_vec(),
        }
    }

    /// Takes a datagram of the master. The caller checks its source.
    pub fn handle(&mut self, datagram: &[u8]) -> MasterStep {
        let content = match self.kind {
            MasterKind::Teeworlds7 => match self.tokens.handle(datagram) {
                Ok(Packet::Token) => return MasterStep::Token,
                Ok(Packet::Message(message)) => message,
                Err(_) => return MasterStep::Ignored,
            },
            _ => datagram,
        };
        if let Some(refusal) = response::refusal(&self.kind, content) {
            return MasterStep::Refused(refusal);
        }
        let Some(part) = response::decode(&self.kind, content) else { return MasterStep::Ignored };
        let last = part.addresses.last().copied();
        let is_steam = matches!(self.kind, MasterKind::Steam { .. });
        if is_steam && !part.has_end && (last.is_none() || last == Some(self.page_after)) {
            // The answer to a repeated request for an earlier page, or an empty one.
            return MasterStep::Ignored;
        }
        self.has_reply = true;
        let has_end = match self.kind {
            MasterKind::Zandronum => self.add_part(&part),
            _ => part.has_end,
        };
        for address in part.addresses {
            if self.addresses.len() < MASTER_ADDRESSES_MAX {
                self.addresses.insert(address);
            } else if !self.addresses.contains(&address) {
                self.is_cut = true;
            }
        }
        self.has_end |= has_end;
        if self.kind == MasterKind::Odamex && !has_end {
            // The datagram is the whole reply. Another one would not have more.
            self.is_cut = true;
        }
        if has_end || self.is_cut {
            return MasterStep::End;
        }
        let Some(last) = last.filter(|_| is_steam) else { return MasterStep::More };
        self.page_after = last;
        self.pages += 1;
        if self.pages == STEAM_PAGES_MAX {
            self.is_cut = true;
            return MasterStep::End;
        }
        MasterStep::NextPage
    }

    /// Notes that a numbered part has arrived. Returns whether all have.
    fn add_part(&mut self, part: &ListPart) -> bool {
        self.parts.insert(part.number);
        if part.has_end {
            // The list may have grown since an earlier reply.
            self.last_part = self.last_part.max(Some(part.number));
        }
        self.last_part.is_some_and(|last| (0..=last).all(|number| self.parts.contains(&number)))
    }

    /// Whether a list of this protocol says where it ends. Others end when nothing more
    /// arrives.
    pub fn has_end_mark(&self) -> bool {
        matches!(
            self.kind,
            MasterKind::Dpmaster { .. } | MasterKind::Steam { .. } | MasterKind::Odamex | MasterKind::Zandronum
        )
    }

    /// Whether the end of the list may come before other parts.
    pub fn is_unordered(&self) -> bool {
        !matches!(self.kind, MasterKind::Steam { .. } | MasterKind::Odamex | MasterKind::Zandronum)
    }

    /// Whether the master refuses a request within 10 s after the last one.
    pub fn needs_pause(&self) -> bool {
        matches!(self.kind, MasterKind::Zandronum)
    }

    /// Whether the master has sent a part of the list.
    pub fn has_reply(&self) -> bool {
        self.has_reply
    }

    /// Number of different addresses so far.
    pub fn address_count(&self) -> usize {
        self.addresses.len()
    }

    /// Ends the query. Without an end mark the list of a protocol that has one is
    /// incomplete.
    pub fn finish(self) -> MasterList {
        let is_complete = self.has_reply && !self.is_cut && (self.has_end || !self.has_end_mark());
        MasterList { addresses: self.addresses, is_complete }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    /// Its last bytes are the token of a Teeworlds 0.7 query.
    const NONCE: Nonce = Nonce(u32::from_be_bytes(*b"wxyz") as u64);

    fn start(kind: MasterKind) -> MasterQuery {
        MasterQuery::new(kind, V4, NONCE)
    }

    fn steam_page(entries: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let mut page = b"\xff\xff\xff\xfff\n".to_vec();
        for entry in entries {
            page.extend_from_slice(&entry.to_be_bytes());
            page.extend_from_slice(&if entry == 0 { [0, 0] } else { 27_015_u16.to_be_bytes() });
        }
        page
    }

    #[test]
    fn requests_have_the_form_of_each_protocol() {
        let request = |url: &str, master| {
            let url: super::super::MasterUrl = url.parse().expect("a URL");
            MasterQuery::new(url.kind().clone(), master, NONCE).request()
        };
        let ff4 = b"\xff\xff\xff\xff";
        assert_eq!(request("dpmaster://h/68", V4), [&ff4[..], b"getservers 68 empty full"].concat());
        for (url, master, game) in
            [("dpmaster://h/68", V6, "Quake3Arena 68"), ("dpmaster://h/Xonotic/3", V4, "Xonotic 3")]
        {
            let want = format!("getserversExt {game} empty full ipv4 ipv6");
            assert_eq!(request(url, master), [ff4, want.as_bytes()].concat());
        }
        assert_eq!(request("quakeworldmaster://h", V4), b"c\n\0");
        assert_eq!(request("quake2master://h", V4), b"query\n\0");
        assert_eq!(request("steammaster://h/\\appid\\440", V4), b"1\xff0.0.0.0:0\0\\appid\\440\0");
        assert_eq!(request("teeworldsmaster://h", V4), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffreq2");
        assert_eq!(request("odamexmaster://h", V4), b"\xa3\xdb\x0b\0");
        assert_eq!(request("zandronummaster://h", V4), ZANDRONUM_REQUEST);
        let decoded = zandronum_huffman::decode(ZANDRONUM_REQUEST, 9);
        assert_eq!(decoded, b"\x7c\x5d\x56\0\x02\0");
        assert_eq!(request("cube2master://h", V4), b"list\n");
    }

    const ZANDRONUM_REQUEST: &[u8] = b"\x06\x68\x12\xf1\x52\x27\x01";

    /// A part with one server, 1.1.1.1:`port`. `end`: 2 in the last part, else 7.
    fn zandronum_part(number: u8, port: u8, end: u8) -> Vec<u8> {
        [b"\xff\x06\0\0\0", &[number, 8, 1, 1, 1, 1, 1, port, 0, 0, end][..]].concat()
    }

    #[test]
    fn zandronum_list_is_complete_with_the_last_part_and_all_before_it() {
        let mut query = start(MasterKind::Zandronum);
        assert_eq!(query.handle(&zandronum_part(2, 3, 2)), MasterStep::More);
        assert_eq!(query.handle(&zandronum_part(2, 3, 2)), MasterStep::More, "a repeated part");
        assert_eq!(query.handle(&zandronum_part(0, 1, 7)), MasterStep::More);
        assert!(!query.clone().finish().is_complete);
        assert_eq!(query.handle(b"\xff\x06\0\0\0\x01\x08\x01\x01"), MasterStep::Ignored, "a cut part");
        assert_eq!(query.handle(&zandronum_part(1, 2, 7)), MasterStep::End);
        let list = query.finish();
        assert_eq!((list.addresses.len(), list.is_complete), (3, true));
        // Without the last part.
        let mut query = start(MasterKind::Zandronum);
        assert_eq!(query.handle(&zandronum_part(0, 1, 7)), MasterStep::More);
        assert!(!query.finish().is_complete);
        let mut query = start(MasterKind::Zandronum);
        assert_eq!(query.handle(&zandronum_part(0, 1, 2)), MasterStep::End);
        assert!(query.finish().is_complete);
    }

    #[test]
    fn zandronum_list_that_has_grown_needs_its_further_parts() {
        let mut query = start(MasterKind::Zandronum);
        assert_eq!(query.handle(&zandronum_part(1, 2, 2)), MasterStep::More);
        assert_eq!(query.handle(&zandronum_part(2, 3, 2)), MasterStep::More);
        assert_eq!(query.handle(&zandronum_part(0, 1, 7)), MasterStep::End);
    }

    #[test]
    fn refusal_is_not_a_reply() {
        let mut query = start(MasterKind::Zandronum);
        assert_eq!(query.handle(b"\xff\x04\0\0\0"), MasterStep::Refused(MasterRefusal::TooSoon));
        assert!(!query.has_reply() && query.needs_pause());
        assert!(!query.finish().is_complete);
    }

    #[test]
    fn odamex_list_ends_with_its_datagram() {
        let mut query = start(MasterKind::Odamex);
        assert_eq!(query.handle(b"\xa3\xdb\x0b\0"), MasterStep::Ignored, "the request");
        let entry = b"\x01\x01\x01\x01\x05\0";
        assert_eq!(query.clone().handle(&[b"\xa3\xdb\x0b\0\x01\0", &entry[..]].concat()), MasterStep::End);
        // One of two entries.
        assert_eq!(query.handle(&[b"\xa3\xdb\x0b\0\x02\0", &entry[..]].concat()), MasterStep::End);
        let list = query.finish();
        assert_eq!((list.addresses.len(), list.is_complete), (1, false));
    }

    #[test]
    fn reordered_and_repeated_parts_give_each_address_once() {
        let mut query = start(MasterKind::Dpmaster { game: None, protocol: 68 });
        let part = |entries: &[u8]| [b"\xff\xff\xff\xffgetserversResponse", entries].concat();
        assert_eq!(query.handle(b"nonsense"), MasterStep::Ignored);
        assert!(!query.has_reply());
        assert_eq!(query.handle(&part(b"\\\x01\x01\x01\x01\0\x05\\EOT\0\0\0")), MasterStep::End);
        assert_eq!(query.handle(&part(b"\\\x01\x01\x01\x01\0\x05\\\x02\x02\x02\x02\0\x05")), MasterStep::More);
        assert_eq!(query.address_count(), 2);
        assert!(query.finish().is_complete);
    }

    #[test]
    fn list_without_its_end_mark_is_incomplete() {
        let mut query = start(MasterKind::Dpmaster { game: None, protocol: 68 });
        query.handle(b"\xff\xff\xff\xffgetserversResponse\\\x01\x01\x01\x01\0\x05");
        let list = query.finish();
        assert_eq!((list.addresses.len(), list.is_complete), (1, false));
        // A protocol without an end mark, and a master that did not reply.
        let mut query = start(MasterKind::QuakeWorld);
        assert!(!query.clone().finish().is_complete);
        query.handle(b"\xff\xff\xff\xffd\n\x01\x01\x01\x01\0\x05");
        assert!(query.finish().is_complete);
    }

    #[test]
    fn steam_pages_continue_after_the_last_address() {
        let mut query = start(MasterKind::Steam { filter: String::new() });
        let (first, last) = (steam_page([0x0101_0101, 0x0202_0202]), steam_page([0x0303_0303, 0]));
        assert_eq!(query.handle(&first), MasterStep::NextPage);
        assert_eq!(query.request(), b"1\xff2.2.2.2:27015\0\0");
        assert_eq!(query.handle(&first), MasterStep::Ignored, "a repeated page");
        assert_eq!(query.handle(&steam_page([])), MasterStep::Ignored, "an empty page");
        assert_eq!(query.handle(&last), MasterStep::End);
        let list = query.finish();
        assert_eq!((list.addresses.len(), list.is_complete), (3, true));
    }

    #[test]
    fn steam_list_that_never_ends_is_cut() {
        let mut query = start(MasterKind::Steam { filter: String::new() });
        let pages = [steam_page([0x0101_0101]), steam_page([0x0202_0202])];
        let mut steps = (0..).map(|n| query.handle(&pages[n % 2]));
        assert_eq!(steps.position(|step| step == MasterStep::End), Some(STEAM_PAGES_MAX as usize - 1));
        let list = query.finish();
        assert_eq!((list.addresses.len(), list.is_complete), (2, false));
    }

    const TEEWORLDS7_TOKEN: &[u8] = b"\x04\0\0wxyz\x05MSTR";
    const TEEWORLDS7_LIST: &[u8] = b"\x21wxyzMSTR\xff\xff\xff\xfflis2";

    /// An entry of IPv4 address 1.1.1.`last`, port 8303.
    fn teeworlds7_entry(last: u8) -> [u8; 18] {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 1, 1, last, 0x20, 0x6f]
    }

    #[test]
    fn teeworlds7_list_is_requested_after_the_token_of_the_master() {
        let mut query = start(MasterKind::Teeworlds7);
        let request = query.request();
        assert_eq!(request[..12], *b"\x04\0\0\xff\xff\xff\xff\x05wxyz");
        assert_eq!(request.len(), 7 + 512);
        let part = |entries: &[&[u8]]| [TEEWORLDS7_LIST, &entries.concat()].concat();
        let [one, two, three] = [1, 2, 3].map(teeworlds7_entry);
        let v6 = b"\x2a\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x6f";
        assert_eq!(query.handle(&part(&[&one])), MasterStep::Ignored, "a list before the token");
        assert_eq!(query.handle(TEEWORLDS7_TOKEN), MasterStep::Token);
        assert_eq!(query.handle(TEEWORLDS7_TOKEN), MasterStep::Ignored, "a repeated token");
        assert!(!query.has_reply());
        assert_eq!(query.request(), b"\x21MSTRwxyz\xff\xff\xff\xffreq2");
        assert_eq!(query.handle(&part(&[&one, &two])), MasterStep::More);
        assert_eq!(query.handle(&part(&[&one, &two])), MasterStep::More, "a repeated part");
        assert_eq!(query.handle(&part(&[v6, &three[..17]])), MasterStep::More, "a truncated entry");
        let list = query.finish();
        let addresses: Vec<String> = list.addresses.iter().map(SocketAddr::to_string).collect();
        assert_eq!(addresses, ["1.1.1.1:8303", "1.1.1.2:8303", "[2a01::1]:8303"]);
        assert!(list.is_complete);
    }

    #[test]
    fn teeworlds7_packets_without_our_token_are_ignored() {
        let mut query = start(MasterKind::Teeworlds7);
        assert_eq!(query.handle(b"\x04\0\0wxyZ\x05MSTR"), MasterStep::Ignored);
        assert_eq!(query.handle(TEEWORLDS7_TOKEN), MasterStep::Token);
        let with_head = |head: &[u8]| [head, b"\xff\xff\xff\xfflis2", &teeworlds7_entry(1)].concat();
        for head in [&b"\x21wxyZMSTR"[..], b"\x21MSTRwxyz", b"\x20wxyzMSTR", b"\xff\xff\xff\xff\xff\xff", b""] {
            assert_eq!(query.handle(&with_head(head)), MasterStep::Ignored, "{head:?}");
        }
        assert_eq!(query.handle(b"\x21wxyzMSTR\xff\xff\xff\xffsiz2\0\x01"), MasterStep::Ignored);
        assert!(!query.has_reply());
        assert!(!query.finish().is_complete);
    }

    #[test]
    fn addresses_beyond_the_limit_are_dropped() {
        let mut query = start(MasterKind::QuakeWorld);
        let mut step = MasterStep::More;
        for datagram in 0..110_u32 {
            let mut bytes = b"\xff\xff\xff\xffd\n".to_vec();
            for entry in 0..10_000_u32 {
                bytes.extend_from_slice(&(datagram * 10_000 + entry).to_be_bytes());
                bytes.extend_from_slice(&[0, 1]);
            }
            step = query.handle(&bytes);
        }
        assert_eq!(step, MasterStep::End);
        let list = query.finish();
        assert_eq!((list.addresses.len(), list.is_complete), (MASTER_ADDRESSES_MAX, false));
    }

    proptest! {
        #[test]
        fn zandronum_list_is_complete_once_all_parts_have_arrived(
            numbers in proptest::collection::vec(0..6_u8, 0..20),
            last in 0..6_u8,
        ) {
            let mut query = start(MasterKind::Zandronum);
            for (n, &number) in numbers.iter().enumerate() {
                let step = query.handle(&zandronum_part(number, 1, if number == last { 2 } else { 7 }));
                let has_all = (0..=last).all(|number| numbers[..=n].contains(&number));
                prop_assert_eq!(step, if has_all { MasterStep::End } else { MasterStep::More });
            }
            let has_all = (0..=last).all(|number| numbers.contains(&number));
            prop_assert_eq!(query.finish().is_complete, has_all);
        }

        #[test]
        fn any_teeworlds7_packets_are_handled_or_ignored(
            packets in proptest::collection::vec((0..3_usize, proptest::collection::vec(any::<u8>(), 0..100)), 0..12),
        ) {
            let mut query = start(MasterKind::Teeworlds7);
            let mut bytes = 0;
            for (head, rest) in packets {
                let packet = [[&b""[..], TEEWORLDS7_TOKEN, TEEWORLDS7_LIST][head], &rest].concat();
                query.handle(&packet);
                bytes += rest.len();
                prop_assert!(!query.request().is_empty());
                prop_assert!(query.address_count() <= bytes / 18);
            }
        }
    }
}
