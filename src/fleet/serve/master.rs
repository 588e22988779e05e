//! A master server that lists the servers of the fleet, on 127.0.0.1: one socket for all
//! protocols of masters, because their requests differ.
//!
//! The list has the servers whose scheme belongs to the protocol of the request. Games,
//! protocol numbers and filters of requests are ignored. All addresses are IPv4.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::POLL_TIMEOUT;
use super::shared::Shared;

/// Longest request, bytes.
const REQUEST_BYTES_MAX: usize = 1_400;

/// Addresses in one datagram, so that it fits into a packet of 1,400 bytes.
const DATAGRAM_ADDRESSES_MAX: usize = 190;

/// As Steam's master.
const STEAM_PAGE_ADDRESSES_MAX: usize = 231;

/// As the masters of Teeworlds.
const TEEWORLDS_ADDRESSES_MAX: usize = 75;

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
            for datagram in answer(&buffer[..length], &servers) {
                // The client repeats its request.
                let _ = socket.send_to(&datagram, client);
            }
        }
    })?;
    Ok((port, thread))
}

/// The datagrams that answer a request; none if it is not one.
fn answer(request: &[u8], servers: &[ListedServer]) -> Vec<Vec<u8>> {
    let of_schemes = |schemes: &[&str]| -> Vec<SocketAddrV4> {
        servers.iter().filter(|(scheme, _)| schemes.contains(scheme)).map(|&(_, address)| address).collect()
    };
    if let Some(text) = request.strip_prefix(FF4) {
        let head: &[u8] = match () {
            () if text.starts_with(b"getserversExt ") => b"getserversExtResponse",
            () if text.starts_with(b"getservers ") => b"getserversResponse",
            () if text == b"\xff\xff\xff\xff\xff\xffreq2" => {
                return teeworlds_list(&of_schemes(&["teeworlds"]));
            }
            () => return Vec::new(),
        };
        return dpmaster_list(head, &of_schemes(&["quake3", "darkplaces"]));
    }
    match request {
        b"c\n\0" | b"c\n" => datagrams(b"d\n", &of_schemes(&["quakeworld"])),
        [b'q', b'u', b'e', b'r', b'y', ..] => datagrams(b"servers ", &of_schemes(&["quake2"])),
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

fn teeworlds_list(servers: &[SocketAddrV4]) -> Vec<Vec<u8>> {
    let datagram = |servers: &[SocketAddrV4]| {
        let mut bytes = [FF4, b"\xff\xff\xff\xff\xff\xfflis2"].concat();
        for server in servers {
            bytes.extend_from_slice(&server.ip().to_ipv6_mapped().octets());
            bytes.extend_from_slice(&server.port().to_be_bytes());
        }
        bytes
    };
    servers.chunks(TEEWORLDS_ADDRESSES_MAX).map(datagram).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr, SocketAddr};

    use super::*;
    use crate::proto::Nonce;
    use crate::proto::master::{MasterQuery, MasterStep, MasterUrl};

    /// A list of 500 servers of each scheme, fetched by the client's decoder.
    #[track_caller]
    fn check(url: &str, master: IpAddr, scheme: &str, requests: usize) {
        let schemes = ["quake3", "quakeworld", "quake2", "source", "teeworlds"];
        let address = |n: usize| SocketAddrV4::new(Ipv4Addr::new(127, 1, (n / 200) as u8, (n % 200) as u8), 1_000);
        let servers: Vec<ListedServer> = (0..2_500).map(|n| (schemes[n % 5], address(n))).collect();
        let url: MasterUrl = url.parse().expect("a URL");
        let mut query = MasterQuery::new(url.kind().clone(), master, Nonce(7));
        for _ in 0..requests {
            for datagram in answer(&query.request(), &servers) {
                assert!(datagram.len() <= 1_400);
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
    }

    #[test]
    fn other_requests_are_not_answered() {
        for request in [&b""[..], FF4, b"\xff\xff\xff\xffgetstatus x", b"1", b"1\xffx\0\0", b"1\xff\xff\xff\0", b"x"] {
            assert_eq!(answer(request, &[]), Vec::<Vec<u8>>::new(), "{request:?}");
        }
    }
}
