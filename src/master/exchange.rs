//! Queries a master over UDP: sends the requests, repeats them, and waits for the parts of the list.
//!
//! One socket for one query, connected to the master: datagrams from other addresses or ports
//! are not received, and a closed port is an error at once.

#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "the socket of a query"))]

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, sleep, timeout};

use crate::limits::DATAGRAM_BYTES_MAX;
use crate::proto::Nonce;
use crate::proto::master::{MasterKind, MasterList, MasterQuery, MasterRefusal, MasterStep, MasterUrl};

/// Requests sent again, for each page, before the query ends.
const RESENDS_MAX: u32 = 3;

/// Most addresses of a master that are tried.
const ADDRESSES_MAX: usize = 4;

/// Timeout of a look-up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for all parts of all requests, whatever arrives. Pauses between pages do not count.
const TOTAL_MAX: Duration = Duration::from_secs(60);

/// Requested size of the receive buffer, bytes: a master sends all parts at once.
const RECEIVE_BUFFER_BYTES: usize = 4 * 1_024 * 1_024;

/// Waits of a query.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Wait for the first part of a reply. dpmaster with a flood limit permits 1 request in 3 s.
    pub reply: Duration,
    /// Wait for each further part, and for parts that arrive after the end.
    pub part: Duration,
    /// Between two pages. Steam's master permits 30 packets a minute.
    pub page: Duration,
    /// Between two requests to a master that refuses frequent ones. Zandronum's does within 10 s.
    pub pause: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            reply: Duration::from_secs(3),
            part: Duration::from_secs(1),
            page: Duration::from_millis(2_100),
            pause: Duration::from_secs(11),
        }
    }
}

/// Why a master returned no list.
#[derive(Debug, thiserror::Error)]
pub enum MasterError {
    #[error("cannot resolve the host name {host:?}")]
    Lookup { host: String, source: io::Error },
    #[error("cannot query {address}")]
    Socket { address: SocketAddr, source: io::Error },
    #[error("no reply from {address} to {} requests; check host and port", RESENDS_MAX + 1)]
    NoReply { address: SocketAddr },
    #[error("{address} sent {datagrams} datagrams that are not a server list; is it a master of another protocol?")]
    NotAList { address: SocketAddr, datagrams: u64 },
    #[error("{address} sends no list: {refusal}")]
    Refused { address: SocketAddr, refusal: MasterRefusal },
    #[error("{address} closed the connection without a list")]
    NoList { address: SocketAddr },
    #[error("{address} sent nothing within {} s; is it a master of another protocol?", .limit.as_secs())]
    Silent { address: SocketAddr, limit: Duration },
    #[error("{address} sent {bytes} bytes that are not a server list; is it a master of another protocol?")]
    NotText { address: SocketAddr, bytes: usize },
    #[error("{address} sent a list of more than {bytes_max} bytes")]
    TooLarge { address: SocketAddr, bytes_max: usize },
}

impl MasterError {
    /// Whether nothing answers at the address. Another one of the master may.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self, MasterError::Socket { .. } | MasterError::NoReply { .. } | MasterError::Silent { .. })
    }
}

/// Queries a master for its list. `progress` gets the number of addresses so far.
///
/// If the end of the list does not arrive, the request is sent again, and the list is the
/// union of all replies. If nothing answers at an address of the master, the next one is tried.
/// Error: no reply at all; that of the first address, if nothing answers at any.
pub async fn fetch(url: &MasterUrl, timing: Timing, progress: impl FnMut(usize)) -> Result<MasterList, MasterError> {
    fetch_from_any(&resolve(url).await?, url.kind(), timing, progress).await
}

async fn fetch_from_any(
    addresses: &[SocketAddr],
    kind: &MasterKind,
    timing: Timing,
    mut progress: impl FnMut(usize),
) -> Result<MasterList, MasterError> {
    let mut first_error = None;
    for &address in addresses {
        match fetch_from_address(address, kind, timing, &mut progress).await {
            Err(error) if error.is_unreachable() => _ = first_error.get_or_insert(error),
            result => return result,
        }
    }
    Err(first_error.expect("there is an address"))
}

async fn fetch_from_address(
    address: SocketAddr,
    kind: &MasterKind,
    timing: Timing,
    progress: &mut impl FnMut(usize),
) -> Result<MasterList, MasterError> {
    let socket_error = |source| MasterError::Socket { address, source };
    let socket = connect(address).await.map_err(socket_error)?;
    let mut query = MasterQuery::new(kind.clone(), address.ip(), random_nonce().map_err(socket_error)?);
    let mut not_list = 0;
    let mut resends = 0;
    let mut refusal = None;
    let mut left = TOTAL_MAX;
    while !left.is_zero() {
        let began = Instant::now();
        let received = match socket.send(&query.request()).await {
            Ok(_) => receive_parts(&socket, address, &mut query, timing, left, &mut not_list, progress).await,
            Err(error) => Err(error),
        };
        left = left.saturating_sub(began.elapsed());
        match received {
            Ok(Received::Page) => {
                resends = 0;
                sleep(timing.page).await;
                continue;
            }
            Ok(Received::Token) => {
                resends = 0;
                continue;
            }
            Ok(Received::End) => break,
            Ok(Received::Nothing) => {}
            Ok(Received::Refused(why)) => {
                refusal = Some(why);
                if why != MasterRefusal::TooSoon {
                    break;
                }
            }
            Err(error) if !query.has_reply() => return Err(socket_error(error)),
            Err(_) => break,
        }
        if resends == RESENDS_MAX {
            break;
        }
        resends += 1;
        if query.needs_pause() {
            sleep(timing.pause.saturating_sub(began.elapsed())).await;
        }
    }
    match (query.has_reply(), refusal, not_list) {
        (true, ..) => Ok(query.finish()),
        (false, Some(refusal), _) => Err(MasterError::Refused { address, refusal }),
        (false, None, 0) => Err(MasterError::NoReply { address }),
        (false, None, datagrams) => Err(MasterError::NotAList { address, datagrams }),
    }
}

/// How the wait after a request ended.
enum Received {
    /// A page; the next one is to be requested.
    Page,
    /// The master's token; the list is to be requested with it.
    Token,
    /// The list is complete, as far as its protocol shows.
    End,
    /// The master sends no list.
    Refused(MasterRefusal),
    /// Timeout before that.
    Nothing,
}

/// Receives the parts that follow one request, for a time.
async fn receive_parts(
    socket: &UdpSocket,
    master: SocketAddr,
    query: &mut MasterQuery,
    timing: Timing,
    most: Duration,
    not_list: &mut u64,
    progress: &mut impl FnMut(usize),
) -> io::Result<Received> {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    let (mut has_part, mut has_end) = (false, false);
    let receiving = async {
        loop {
            let wait = if has_part { timing.part } else { timing.reply };
            let Ok(received) = timeout(wait, socket.recv_from(&mut buffer)).await else { return Ok(None) };
            let (length, source) = received?;
            // A datagram from elsewhere may have arrived before the socket was connected.
            let is_from_master = source == master;
            match if is_from_master { query.handle(&buffer[..length]) } else { MasterStep::Ignored } {
                MasterStep::Ignored => *not_list += u64::from(is_from_master),
                MasterStep::More => has_part = true,
                MasterStep::Token => {
                    *not_list += 1;
                    return Ok(Some(Received::Token));
                }
                MasterStep::NextPage => return Ok(Some(Received::Page)),
                MasterStep::Refused(refusal) => return Ok(Some(Received::Refused(refusal))),
                MasterStep::End if query.is_unordered() => (has_part, has_end) = (true, true),
                MasterStep::End => return Ok(Some(Received::End)),
            }
            progress(query.address_count());
        }
    };
    let ended: io::Result<Option<Received>> = timeout(most, receiving).await.unwrap_or(Ok(None));
    progress(query.address_count());
    Ok(ended?.unwrap_or(match has_end || (has_part && !query.has_end_mark()) {
        true => Received::End,
        false => Received::Nothing,
    }))
}

/// A nonce that nobody else can guess.
fn random_nonce() -> io::Result<Nonce> {
    let nonce = getrandom::u64();
    nonce.map(Nonce).map_err(|error| io::Error::other(format!("the system has no random numbers: {error}")))
}

/// The addresses of a master, in the order in which they are tried; one at least.
pub(super) async fn resolve(url: &MasterUrl) -> Result<Vec<SocketAddr>, MasterError> {
    let error = |source| MasterError::Lookup { host: url.host().to_owned(), source };
    let addresses = timeout(LOOKUP_TIMEOUT, lookup_host((url.host(), url.port()))).await;
    let addresses = addresses.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(error)?;
    let addresses = addresses.map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()));
    // IPv4 first: few masters listen on IPv6.
    let addresses: BTreeSet<SocketAddr> = addresses.collect();
    if addresses.is_empty() {
        return Err(error(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    Ok(addresses.into_iter().take(ADDRESSES_MAX).collect())
}

async fn connect(master: SocketAddr) -> io::Result<UdpSocket> {
    let any = if master.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    // The kernel may grant less.
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
    socket.connect(master).await?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Timing = Timing {
        reply: Duration::from_millis(200),
        part: Duration::from_millis(50),
        page: Duration::from_millis(1),
        pause: Duration::from_millis(400),
    };

    /// No test listens at a port below 1024.
    const CLOSED: &str = "127.9.97.1:1";

    const HEAD: &[u8] = b"\xff\xff\xff\xffgetserversResponse";

    fn part(entries: &[u8]) -> Vec<u8> {
        [HEAD, entries].concat()
    }

    /// A master that answers the n-th request with `replies[n]`, and further ones not at all.
    /// Before each reply a list is sent from another port. Returns the URL and the task.
    async fn master(scheme: &str, path: &str, replies: Vec<Vec<Vec<u8>>>) -> (MasterUrl, tokio::task::JoinHandle<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("{scheme}://{}{path}", socket.local_addr().expect("bound")).parse().expect("a URL");
        let serving = tokio::spawn(async move {
            let mut buffer = [0; 512];
            for datagrams in replies {
                let (_, client) = socket.recv_from(&mut buffer).await.expect("a request");
                let elsewhere = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
                let forged = part(b"\\\x09\x09\x09\x09\0\x09\\EOT\0\0\0");
                elsewhere.send_to(&forged, client).await.expect("sent");
                for datagram in datagrams {
                    socket.send_to(&datagram, client).await.expect("sent");
                }
            }
            // Keeps the port open.
            std::future::pending::<()>().await;
        });
        (url, serving)
    }

    async fn fetch_addresses(url: &MasterUrl) -> (Vec<String>, bool) {
        let list = fetch(url, FAST, |_| ()).await.expect("a list");
        (list.addresses.iter().map(SocketAddr::to_string).collect(), list.is_complete)
    }

    #[tokio::test]
    async fn list_is_complete_and_datagrams_from_elsewhere_are_ignored() {
        let parts =
            vec![part(b"\\\x01\x01\x01\x01\0\x05\\EOT\0\0\0"), part(b"\\\x02\x02\x02\x02\0\x05"), b"x".to_vec()];
        let (url, serving) = master("dpmaster", "/68", vec![parts]).await;
        assert_eq!(fetch_addresses(&url).await, (vec!["1.1.1.1:5".to_owned(), "2.2.2.2:5".to_owned()], true));
        serving.abort();
    }

    #[tokio::test]
    async fn missing_end_repeats_the_request_and_leaves_the_list_incomplete() {
        let first = vec![part(b"\\\x01\x01\x01\x01\0\x05")];
        let (url, serving) = master("dpmaster", "/68", vec![first.clone(), vec![], first.clone(), vec![]]).await;
        assert_eq!(fetch_addresses(&url).await, (vec!["1.1.1.1:5".to_owned()], false));
        serving.abort();
        // A later answer completes it.
        let end = vec![part(b"\\\x02\x02\x02\x02\0\x05\\EOT\0\0\0")];
        let (url, serving) = master("dpmaster", "/68", vec![vec![], first, end]).await;
        assert_eq!(fetch_addresses(&url).await, (vec!["1.1.1.1:5".to_owned(), "2.2.2.2:5".to_owned()], true));
        serving.abort();
    }

    #[tokio::test]
    async fn steam_pages_are_fetched_until_the_end() {
        let page = |entries: &[u8]| vec![[b"\xff\xff\xff\xfff\n", entries].concat()];
        let (first, last) = (page(b"\x01\x01\x01\x01\0\x05"), page(b"\x02\x02\x02\x02\0\x05\0\0\0\0\0\0"));
        // The reply to the first request for the second page is lost.
        let (url, serving) = master("steammaster", "", vec![first, vec![], last]).await;
        assert_eq!(fetch_addresses(&url).await, (vec!["1.1.1.1:5".to_owned(), "2.2.2.2:5".to_owned()], true));
        serving.abort();
    }

    const LIST7: &[u8] = b"\xff\xff\xff\xfflis2";

    /// An entry of a Teeworlds list: 1.1.1.`last`, port 5.
    fn entry7(last: u8) -> [u8; 18] {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 1, 1, last, 0, 5]
    }

    /// A Teeworlds 0.7 master that loses the first request for its token and the first one for
    /// its list. Before each reply, packets with the client's token are sent from another port.
    async fn teeworlds7_master(parts: Vec<Vec<u8>>) -> (MasterUrl, tokio::task::JoinHandle<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("teeworlds7master://{}", socket.local_addr().expect("bound")).parse().expect("a URL");
        let serving = tokio::spawn(async move {
            let elsewhere = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
            let mut buffer = [0; 1_024];
            let mut counts = [0, 0];
            loop {
                let (length, client) = socket.recv_from(&mut buffer).await.expect("a request");
                let is_token_request = length == 519;
                let token = if is_token_request { &buffer[8..12] } else { &buffer[5..9] };
                let token_reply = |own: &[u8]| [b"\x04\0\0", token, b"\x05", own].concat();
                let forged = [b"\x21", token, b"EVIL", LIST7, &entry7(9)].concat();
                for datagram in [token_reply(b"EVIL"), forged] {
                    elsewhere.send_to(&datagram, client).await.expect("sent");
                }
                counts[usize::from(is_token_request)] += 1;
                if counts[usize::from(is_token_request)] == 1 {
                    continue;
                }
                if is_token_request {
                    socket.send_to(&token_reply(b"MSTR"), client).await.expect("sent");
                    continue;
                }
                assert_eq!(buffer[..5], *b"\x21MSTR");
                for part in &parts {
                    socket.send_to(&[b"\x21", token, b"MSTR", &part[..]].concat(), client).await.expect("sent");
                }
                let wrong_token = [b"\x21", &b"nope"[..], b"MSTR", LIST7, &entry7(8)].concat();
                socket.send_to(&wrong_token, client).await.expect("sent");
            }
        });
        (url, serving)
    }

    #[tokio::test]
    async fn teeworlds7_list_follows_the_tokens() {
        let parts = [1, 2].map(|last| [LIST7, &entry7(last)].concat()).to_vec();
        let (url, serving) = teeworlds7_master(parts).await;
        assert_eq!(fetch_addresses(&url).await, (vec!["1.1.1.1:5".to_owned(), "1.1.1.2:5".to_owned()], true));
        serving.abort();
    }

    #[tokio::test]
    async fn teeworlds7_server_that_sends_only_its_token_is_not_a_master() {
        let (url, serving) = teeworlds7_master(vec![]).await;
        let error = fetch(&url, FAST, |_| ()).await.expect_err("no list");
        assert!(matches!(error, MasterError::NotAList { .. }), "{error}");
        serving.abort();
    }

    #[tokio::test]
    async fn odamex_list_is_one_datagram() {
        let list = b"\xa3\xdb\x0b\0\x01\0\x01\x01\x01\x01\x05\0".to_vec();
        let (url, serving) = master("odamexmaster", "", vec![vec![], vec![list]]).await;
        assert_eq!(fetch_addresses(&url).await, (vec!["1.1.1.1:5".to_owned()], true));
        serving.abort();
    }

    /// A part of a Zandronum list, with 1.1.1.1:`port`.
    fn zandronum_part(number: u8, port: u8, end: u8) -> Vec<u8> {
        [b"\xff\x06\0\0\0", &[number, 8, 1, 1, 1, 1, 1, port, 0, 0, end][..]].concat()
    }

    #[tokio::test]
    async fn zandronum_request_is_repeated_after_the_pause() {
        // The second reply has the part that was lost. Its parts are reordered.
        let first = vec![zandronum_part(2, 7, 2), zandronum_part(0, 5, 7)];
        let second = vec![zandronum_part(1, 6, 7)];
        let (url, serving) = master("zandronummaster", "", vec![first, second]).await;
        let began = Instant::now();
        let want = ["1.1.1.1:5", "1.1.1.1:6", "1.1.1.1:7"].map(str::to_owned).to_vec();
        assert_eq!(fetch_addresses(&url).await, (want, true));
        assert!(began.elapsed() >= FAST.pause);
        serving.abort();
    }

    #[tokio::test]
    async fn zandronum_master_that_was_queried_too_soon_is_queried_again() {
        let too_soon = || vec![b"\xff\x04\0\0\0".to_vec()];
        let replies = vec![too_soon(), vec![zandronum_part(0, 5, 2)]];
        let (url, serving) = master("zandronummaster", "", replies).await;
        assert_eq!(fetch_addresses(&url).await, (vec!["1.1.1.1:5".to_owned()], true));
        serving.abort();
        let (url, serving) = master("zandronummaster", "", (0..4).map(|_| too_soon()).collect()).await;
        let error = fetch(&url, FAST, |_| ()).await.expect_err("no list");
        assert!(matches!(error, MasterError::Refused { refusal: MasterRefusal::TooSoon, .. }), "{error}");
        serving.abort();
    }

    #[tokio::test]
    async fn refusal_of_a_zandronum_master_is_the_error() {
        for (datagram, want) in [(b"\xff\x03\0\0\0", "has banned the address"), (b"\xff\x05\0\0\0", "another version")]
        {
            let (url, serving) = master("zandronummaster", "", vec![vec![datagram.to_vec()]]).await;
            let began = Instant::now();
            let error = fetch(&url, FAST, |_| ()).await.expect_err("no list").to_string();
            assert!(error.contains("sends no list: ") && error.contains(want), "{error}");
            assert!(began.elapsed() < FAST.pause, "the request is not repeated");
            serving.abort();
        }
    }

    #[tokio::test]
    async fn silent_closed_and_foreign_masters_are_errors() {
        let error = async |url: &MasterUrl| fetch(url, FAST, |_| ()).await.expect_err("no list");
        let (url, serving) = master("dpmaster", "/68", vec![]).await;
        assert!(matches!(error(&url).await, MasterError::NoReply { .. }));
        serving.abort();
        let (url, serving) = master("quake2master", "", vec![vec![b"\xff\xff\xff\xffd\n".to_vec()]]).await;
        assert!(matches!(error(&url).await, MasterError::NotAList { datagrams: 1, .. }));
        serving.abort();
        let url = format!("dpmaster://{CLOSED}/68").parse().expect("a URL");
        assert!(matches!(error(&url).await, MasterError::Socket { .. }));
    }

    #[tokio::test]
    async fn next_address_of_a_master_is_queried_if_the_first_does_not_answer() {
        let closed = CLOSED.parse().expect("an address");
        let silent = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let silent_address = silent.local_addr().expect("bound");
        let (url, serving) = master("dpmaster", "/68", vec![vec![part(b"\\\x01\x01\x01\x01\0\x05\\EOT\0\0\0")]]).await;
        let address = resolve(&url).await.expect("an address")[0];
        let fetch = async |addresses: &[SocketAddr]| fetch_from_any(addresses, url.kind(), FAST, |_| ()).await;
        let list = fetch(&[closed, silent_address, address]).await.expect("a list");
        assert_eq!(list.addresses.len(), 1);
        let error = fetch(&[closed, silent_address]).await.expect_err("no list");
        assert!(matches!(error, MasterError::Socket { address, .. } if address == closed), "{error}");
        serving.abort();
        // A master that answers is the one, whatever it sends.
        let (url, serving) = master("quake2master", "", vec![vec![b"x".to_vec()]]).await;
        let address = resolve(&url).await.expect("an address")[0];
        let error = fetch_from_any(&[address, closed], url.kind(), FAST, |_| ()).await.expect_err("no list");
        assert!(matches!(error, MasterError::NotAList { .. }), "{error}");
        serving.abort();
    }
}
