//! A master server that lists the servers of the fleet, on 127.0.0.1: one socket for all
//! protocols of masters, because their requests differ.
//!
//! The list has the servers whose scheme belongs to the protocol of the request. Games,
//! protocol numbers and filters of requests are ignored. All addresses are IPv4.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::POLL_TIMEOUT;
use super::shared::Shared;
use crate::fleet::rng::hash_parts;
use crate::fleet::wire::challenge;

/// Longest request, bytes.
const REQUEST_BYTES_MAX: usize = 1_400;

/// Addresses in one datagram, so that it fits into a packet of 1,400 bytes.
const DATAGRAM_ADDRESSES_MAX: usize = 190;

/// As Steam's master.
const STEAM_PAGE_ADDRESSES_MAX: usize = 231;

/// As the masters of Teeworlds.
const TEEWORLDS_ADDRESSES_MAX: usize = 75;

/// As old masters of Odamex, whose datagrams have 8,192 bytes.
const ODAMEX_ADDRESSES_MAX: usize = 1_364;

/// The message of both a request and a list of Odamex: 777123.
const ODAMEX_LIST: &[u8] = b"\xa3\xdb\x0b\0";

/// Addresses of a part, so that it has about 1,024 bytes, as those of Zandronum's master.
const ZANDRONUM_ADDRESSES_MAX: usize = 140;

/// The request of Zandronum, 5660028 and the version 2, as the Huffman code and uncompressed.
const ZANDRONUM_REQUEST: &[u8] = b"\x06\x68\x12\xf1\x52\x27\x01";
const ZANDRONUM_REQUEST_UNCOMPRESSED: &[u8] = b"\xff\x7c\x5d\x56\0\x02\0";

/// Shortest request for a token of Teeworlds 0.7: 7 bytes of header, 512 of data.
const TEEWORLDS7_TOKEN_REQUEST_BYTES_MIN: usize = 519;

const FF4: &[u8] = b"\xff\xff\xff\xff";

/// A server of the fleet: its scheme and address.
pub(super) type ListedServer = (&'static str, SocketAddrV4);

/// Binds 127.0.0.1 and starts to answer; port 0: the kernel chooses. Returns the port.
pub(super) fn start(port: u16, servers: Vec<ListedServer>, shared: Arc<Shared>) -> io::Result<(u16, JoinHandle<()>)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| io::Error::new(error.kind(), format!("port {port} for the master server: {error}")))?;
    socket.set_read_timeout(Some(POLL_TIMEOUT))?;
    let port = socket.local_addr()?.port();
    let thread = std::thread::Builder::new().name("fleet-master".to_owned()).spawn(move || {
        let mut buffer = [0; REQUEST_BYTES_MAX];
        while !shared.stopping.load(Ordering::Relaxed) {
            let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
            let token = token(shared.seed, client);
            for datagram in answer(&buffer[..length], token, &servers) {
                // The client repeats its request.
                let _ = socket.send_to(&datagram, client);
            }
        }
    })?;
    Ok((port, thread))
}

/// The token that a client of Teeworlds 0.7 must repeat.
fn token(seed: u64, client: SocketAddr) -> [u8; 4] {
    let ip = match client {
        SocketAddr::V4(client) => client.ip().to_bits(),
        SocketAddr::V6(_) => 0,
    };
    challenge(seed, u32::MAX, hash_parts(&[u64::from(ip), u64::from(client.port())]))
}

/// The datagrams that answer a request; none if it is not one. `token`: of the client.
fn answer(request: &[u8], token: [u8; 4], servers: &[ListedServer]) -> Vec<Vec<u8>> {
    let of_schemes = |schemes: &[&str]| -> Vec<SocketAddrV4> {
        servers.iter().filter(|(scheme, _)| schemes.contains(scheme)).map(|&(_, address)| address).collect()
    };
    if let Some(text) = request.strip_prefix(FF4) {
        let head: &[u8] = match () {
            () if text.starts_with(b"getserversExt ") => b"getserversExtResponse",
            () if text.starts_with(b"getservers ") => b"getserversResponse",
            () if text == b"\xff\xff\xff\xff\xff\xffreq2" => {
                return teeworlds_list(&[FF4, b"\xff\xff\xff\xff\xff\xfflis2"].concat(), &of_schemes(&["teeworlds"]));
            }
            () => return Vec::new(),
        };
        return dpmaster_list(head, &of_schemes(&["quake3", "darkplaces"]));
    }
    match request {
        b"c\n\0" | b"c\n" => datagrams(b"d\n", &of_schemes(&["quakeworld"])),
        ODAMEX_LIST => vec![odamex_list(&of_schemes(&["odamex"]))],
        ZANDRONUM_REQUEST | ZANDRONUM_REQUEST_UNCOMPRESSED => zandronum_list(&of_schemes(&["zandronum"])),
        [b'q', b'u', b'e', b'r', b'y', ..] => datagrams(b"servers ", &of_schemes(&["quake2"])),
        [4, 0, 0, 0xff, 0xff, 0xff, 0xff, 5, a, b, c, d, ..] if request.len() >= TEEWORLDS7_TOKEN_REQUEST_BYTES_MIN => {
            vec![[&[4, 0, 0, *a, *b, *c, *d, 5][..], &token].concat()]
        }
        [0x21, tokens_and_request @ ..] => match tokens_and_request.split_at_checked(8) {
            Some((tokens, b"\xff\xff\xff\xffreq2")) if tokens[..4] == token => {
                let head = [b"\x21", &tokens[4..], &token, FF4, b"lis2"].concat();
                teeworlds_list(&head, &of_schemes(&["teeworlds7"]))
            }
            _ => Vec::new(),
        },
        [b'1', _region, arguments @ ..] => steam_page(arguments, &of_schemes(&["source"])).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Address and port, big-endian.
fn entry(address: &SocketAddrV4) -> [u8; 6] {
    let [a, b, c, d] = address.ip().octets();
    let [high, low] = address.port().to_be_bytes();
    [a, b, c, d, high, low]
}

/// A list without an end mark.
fn datagrams(head: &[u8], servers: &[SocketAddrV4]) -> Vec<Vec<u8>> {
    let datagram = |servers: &[SocketAddrV4]| {
        [FF4, head].concat().into_iter().chain(servers.iter().flat_map(entry)).collect::<Vec<u8>>()
    };
    if servers.is_empty() {
        return vec![datagram(&[])];
    }
    servers.chunks(DATAGRAM_ADDRESSES_MAX).map(datagram).collect()
}

/// A list whose last datagram has the end mark.
fn dpmaster_list(head: &[u8], servers: &[SocketAddrV4]) -> Vec<Vec<u8>> {
    let mut list: Vec<Vec<u8>> = vec![[FF4, head].concat()];
    for (number, server) in servers.iter().enumerate() {
        if number > 0 && number % DATAGRAM_ADDRESSES_MAX == 0 {
            list.push([FF4, head].concat());
        }
        if let Some(datagram) = list.last_mut() {
            datagram.push(b'\\');
            datagram.extend_from_slice(&entry(server));
        }
    }
    if let Some(datagram) = list.last_mut() {
        datagram.extend_from_slice(b"\\EOT\0\0\0");
    }
    list
}

/// The page after the address in the request; the first one after 0.0.0.0:0 or an address
/// that is not in the list.
fn steam_page(arguments: &[u8], servers: &[SocketAddrV4]) -> Option<Vec<u8>> {
    let after = arguments.split(|&b| b == 0).next()?;
    let after: SocketAddrV4 = std::str::from_utf8(after).ok()?.parse().ok()?;
    let start = servers.iter().position(|&server| server == after).map_or(0, |at| at + 1);
    let end = servers.len().min(start + STEAM_PAGE_ADDRESSES_MAX);
    let mut page = [FF4, b"f\n"].concat();
    page.extend(servers[start..end].iter().flat_map(entry));
    if end == servers.len() {
        page.extend_from_slice(&[0; 6]);
    }
    Some(page)
}

/// A list of either version; `head`: what precedes the entries.
fn teeworlds_list(head: &[u8], servers: &[SocketAddrV4]) -> Vec<Vec<u8>> {
    let datagram = |servers: &[SocketAddrV4]| {
        let mut bytes = head.to_vec();
        for server in servers {
            bytes.extend_from_slice(&server.ip().to_ipv6_mapped().octets());
            bytes.extend_from_slice(&server.port().to_be_bytes());
        }
        bytes
    };
    servers.chunks(TEEWORLDS_ADDRESSES_MAX).map(datagram).collect()
}

/// One datagram. Ports are little-endian.
fn odamex_list(servers: &[SocketAddrV4]) -> Vec<u8> {
    let servers = &servers[..servers.len().min(ODAMEX_ADDRESSES_MAX)];
    let mut bytes = ODAMEX_LIST.to_vec();
    bytes.extend_from_slice(&(servers.len() as u16).to_le_bytes());
    for server in servers {
        bytes.extend_from_slice(&server.ip().octets());
        bytes.extend_from_slice(&server.port().to_le_bytes());
    }
    bytes
}

/// Numbered parts, each uncompressed. Servers of one address that follow each other are one block. Ports are
/// little-endian.
fn zandronum_list(servers: &[SocketAddrV4]) -> Vec<Vec<u8>> {
    let mut chunks: Vec<&[SocketAddrV4]> = servers.chunks(ZANDRONUM_ADDRESSES_MAX).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    let last = chunks.len() - 1;
    let part = |(number, servers): (usize, &&[SocketAddrV4])| {
        let mut bytes = vec![0xff, 6, 0, 0, 0, number as u8, 8];
        for block in servers.chunk_by(|a, b| a.ip() == b.ip()) {
            bytes.push(block.len() as u8);
            bytes.extend_from_slice(&block[0].ip().octets());
            bytes.extend(block.iter().flat_map(|server| server.port().to_le_bytes()));
        }
        bytes.extend_from_slice(&[0, if number == last { 2 } else { 7 }]);
        bytes
    };
    chunks.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;
    use crate::proto::Nonce;
    use crate::proto::master::{MasterQuery, MasterStep, MasterUrl};

    const TOKEN: [u8; 4] = *b"MSTR";

    /// A list of 500 servers of each scheme, fetched by the client's decoder.
    #[track_caller]
    fn check(url: &str, master: IpAddr, scheme: &str, requests: usize) {
        let schemes = ["quake3", "quakeworld", "quake2", "source", "teeworlds", "teeworlds7", "odamex", "zandronum"];
        let address = |n: usize| SocketAddrV4::new(Ipv4Addr::new(127, 1, (n / 200) as u8, (n % 200) as u8), 1_000);
        let servers: Vec<ListedServer> = (0..4_000).map(|n| (schemes[n % 8], address(n))).collect();
        let url: MasterUrl = url.parse().expect("a URL");
        let mut query = MasterQuery::new(url.kind().clone(), master, Nonce(7));
        for _ in 0..requests {
            for datagram in answer(&query.request(), TOKEN, &servers) {
                assert!(datagram.len() <= if scheme == "odamex" { 8_192 } else { 1_400 });
                assert_ne!(query.handle(&datagram), MasterStep::Ignored);
            }
        }
        let list = query.finish();
        let want: Vec<SocketAddr> =
            servers.iter().filter(|(of, _)| *of == scheme).map(|&(_, address)| address.into()).collect();
        assert!(list.is_complete && list.addresses.into_iter().eq(want), "{url}");
    }

    #[test]
    fn each_protocol_lists_the_servers_of_its_scheme() {
        let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        check("dpmaster://h/68", v4, "quake3", 1);
        check("dpmaster://h/68", v6, "quake3", 1);
        check("dpmaster://h/Xonotic/3", v4, "quake3", 1);
        check("quakeworldmaster://h", v4, "quakeworld", 1);
        check("quake2master://h", v4, "quake2", 1);
        check("steammaster://h/\\appid\\440", v4, "source", 3);
        check("teeworldsmaster://h", v4, "teeworlds", 1);
        check("teeworlds7master://h", v4, "teeworlds7", 2);
        check("odamexmaster://h", v4, "odamex", 1);
        check("zandronummaster://h", v4, "zandronum", 1);
    }

    #[test]
    fn zandronum_answers_equal_handwritten_bytes() {
        let server = |last, port| ("zandronum", SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, last), port));
        let servers = [server(1, 10_666), server(1, 10_667), server(2, 10_666)];
        let want = b"\xff\x06\0\0\0\0\x08\x02\x7f\x01\0\x01\xaa\x29\xab\x29\x01\x7f\x01\0\x02\xaa\x29\0\x02";
        for request in [ZANDRONUM_REQUEST, ZANDRONUM_REQUEST_UNCOMPRESSED] {
            assert_eq!(answer(request, TOKEN, &servers), [want]);
        }
        let part_ends = |servers: usize| -> Vec<(u8, u8)> {
            let servers = vec![server(1, 10_666); servers];
            answer(ZANDRONUM_REQUEST, TOKEN, &servers).iter().map(|part| (part[5], part[part.len() - 1])).collect()
        };
        assert_eq!(part_ends(0), [(0, 2)]);
        assert_eq!(part_ends(140), [(0, 2)]);
        assert_eq!(part_ends(281), [(0, 7), (1, 7), (2, 2)]);
    }

    #[test]
    fn odamex_answers_equal_handwritten_bytes() {
        let servers = [("odamex", SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, 2), 10_666))];
        assert_eq!(answer(ODAMEX_LIST, TOKEN, &servers), [b"\xa3\xdb\x0b\0\x01\0\x7f\x01\0\x02\xaa\x29"]);
        assert_eq!(answer(ODAMEX_LIST, TOKEN, &[]), [b"\xa3\xdb\x0b\0\0\0"]);
        assert!(answer(b"\xa3\xdb\x0b\0\0", TOKEN, &servers).is_empty());
    }

    #[test]
    fn teeworlds7_answers_equal_handwritten_bytes() {
        let servers = [("teeworlds7", SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, 2), 8_304))];
        let mut request = b"\x04\0\0\xff\xff\xff\xff\x05abcd".to_vec();
        request.resize(519, 0);
        assert_eq!(answer(&request, TOKEN, &servers), [b"\x04\0\0abcd\x05MSTR"]);
        assert!(answer(&request[..518], TOKEN, &servers).is_empty());
        let want = b"\x21abcdMSTR\xff\xff\xff\xfflis2\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\x01\0\x02\x20\x70";
        assert_eq!(answer(b"\x21MSTRabcd\xff\xff\xff\xffreq2", TOKEN, &servers), [want]);
        for request in [
            &b"\x21MSTSabcd\xff\xff\xff\xffreq2"[..],
            b"\x21MSTRabcd\xff\xff\xff\xffreq2x",
            b"\x21MSTRabcd\xff\xff\xff\xffcou2",
            b"\x21MSTRabc",
        ] {
            assert!(answer(request, TOKEN, &servers).is_empty(), "{request:?}");
        }
    }

    #[test]
    fn token_belongs_to_the_client() {
        let of = |text: &str| token(1, text.parse().expect("an address"));
        assert_eq!(of("127.0.0.1:1"), of("127.0.0.1:1"));
        assert_ne!(of("127.0.0.1:1"), of("127.0.0.1:2"));
        assert_ne!(of("127.0.0.1:1"), of("127.0.0.2:1"));
    }

    #[test]
    fn other_requests_are_not_answered() {
        for request in [&b""[..], FF4, b"\xff\xff\xff\xffgetstatus x", b"1", b"1\xffx\0\0", b"1\xff\xff\xff\0", b"x"] {
            assert_eq!(answer(request, TOKEN, &[]), Vec::<Vec<u8>>::new(), "{request:?}");
        }
    }
}
