//! Queries a master over TCP: one request, and a text until the master closes the connection. The bytes and the time
//! of a connection are limited.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::exchange::{MasterError, resolve};
use crate::proto::master::{MasterUrl, StreamEnd, TextList, TextMaster};

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1_024;

/// Limits of one query.
#[derive(Clone, Copy, Debug)]
pub struct TextLimits {
    /// Timeout for connecting.
    pub connect: Duration,
    /// Timeout for the request and the whole list. Games wait 20 s.
    pub total: Duration,
    /// Largest list. A master of Sauerbraten has at most 4,096 servers, which are 130 kB.
    pub bytes_max: usize,
}

impl Default for TextLimits {
    fn default() -> TextLimits {
        TextLimits { connect: Duration::from_secs(10), total: Duration::from_secs(20), bytes_max: 4 << 20 }
    }
}

/// Queries a master for its list. If the connection breaks or the time is over, the list has what arrived before, and
/// is incomplete. If nothing answers at an address of the master, the next one is tried; the error is that of the first.
pub async fn fetch(url: &MasterUrl, game: TextMaster, limits: TextLimits) -> Result<TextList, MasterError> {
    fetch_from_any(&resolve(url).await?, game, limits).await
}

async fn fetch_from_any(
    addresses: &[SocketAddr],
    game: TextMaster,
    limits: TextLimits,
) -> Result<TextList, MasterError> {
    let mut first_error = None;
    for &address in addresses {
        match fetch_from_address(address, game, limits).await {
            Err(error) if error.is_unreachable() => _ = first_error.get_or_insert(error),
            result => return result,
        }
    }
    Err(first_error.expect("there is an address"))
}

async fn fetch_from_address(
    address: SocketAddr,
    game: TextMaster,
    limits: TextLimits,
) -> Result<TextList, MasterError> {
    let socket_error = |source| MasterError::Socket { address, source };
    let connected = timeout(limits.connect, TcpStream::connect(address)).await;
    let mut stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(socket_error)?;
    let deadline = Instant::now() + limits.total;
    let mut text = Vec::new();
    let received = timeout_at(deadline, receive(&mut stream, game, limits.bytes_max, &mut text)).await;
    if text.len() > limits.bytes_max {
        return Err(MasterError::TooLarge { address, bytes_max: limits.bytes_max });
    }
    let end = match received {
        Ok(Ok(())) => StreamEnd::Closed,
        Ok(Err(error)) if text.is_empty() => return Err(socket_error(error)),
        Err(_) if text.is_empty() => return Err(MasterError::Silent { address, limit: limits.total }),
        Ok(Err(_)) | Err(_) => StreamEnd::Broken,
    };
    if text.is_empty() {
        return Err(MasterError::NoList { address });
    }
    game.decode(&text, end).ok_or(MasterError::NotText { address, bytes: text.len() })
}

/// Sends the request and receives the text, until the master closes the connection, the text has its end mark, or it
/// is longer than permitted.
async fn receive(stream: &mut TcpStream, game: TextMaster, bytes_max: usize, text: &mut Vec<u8>) -> io::Result<()> {
    stream.write_all(TextMaster::REQUEST).await?;
    let mut buffer = vec![0; READ_BYTES];
    while !game.has_end(text) && text.len() <= bytes_max {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..length]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    const FAST: TextLimits =
        TextLimits { connect: Duration::from_secs(5), total: Duration::from_millis(300), bytes_max: 1_000 };

    /// No test listens at a port below 1024.
    const CLOSED: &str = "127.9.97.1:1";

    /// What a master does after it has sent everything.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum After {
        Close,
        /// Waits until the client closes the connection.
        Wait,
    }

    /// A master that sends these pieces after the request. Returns the URL, and the request when it has ended.
    fn master(scheme: &str, pieces: &[&[u8]], after: After) -> (MasterUrl, JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("{scheme}://{}", listener.local_addr().expect("bound")).parse().expect("a URL");
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = vec![0; TextMaster::REQUEST.len()];
            stream.read_exact(&mut request).expect("a request");
            stream.set_nodelay(true).expect("set");
            for piece in pieces {
                // The client may close the connection before it has read everything.
                let _ = stream.write_all(&piece);
                std::thread::sleep(Duration::from_millis(5));
            }
            if after == After::Wait {
                let _ = stream.read(&mut [0]);
            }
            request
        });
        (url, serving)
    }

    async fn fetch_from(game: TextMaster, pieces: &[&[u8]], after: After) -> Result<(Vec<String>, bool), MasterError> {
        let scheme = match game {
            TextMaster::Sauerbraten => "cube2master",
            TextMaster::RedEclipse => "eclipsemaster",
        };
        let (url, serving) = master(scheme, pieces, after);
        let fetched = fetch(&url, game, FAST).await;
        assert_eq!(serving.join().expect("served"), b"list\n");
        fetched.map(|list| (list.addresses.iter().map(SocketAddr::to_string).collect(), list.is_complete))
    }

    #[tokio::test]
    async fn list_arrives_in_pieces() {
        let pieces = [&b"addserver 1.1.1.1 287"[..], b"85\nadd", b"server 2.2.2.2 1000\n\0"];
        let want = || (vec!["1.1.1.1:28786".to_owned(), "2.2.2.2:1001".to_owned()], true);
        // The end mark ends the list of a master that keeps the connection.
        for after in [After::Close, After::Wait] {
            assert_eq!(fetch_from(TextMaster::Sauerbraten, &pieces, after).await.expect("a list"), want());
        }
        let pieces = [&b"clearservers\n"[..], b"addserver 1.1.1.1 28785 1 \"a b\"\naddserver 2.2.2.2 1000\n"];
        assert_eq!(fetch_from(TextMaster::RedEclipse, &pieces, After::Close).await.expect("a list"), want());
    }

    #[tokio::test]
    async fn list_without_its_end_is_incomplete() {
        let pieces = [&b"addserver 1.1.1.1 28785\naddserver 2.2.2.2 10"[..]];
        let want = || (vec!["1.1.1.1:28786".to_owned()], false);
        for game in [TextMaster::Sauerbraten, TextMaster::RedEclipse] {
            for after in [After::Close, After::Wait] {
                assert_eq!(fetch_from(game, &pieces, after).await.expect("a list"), want(), "{game:?}");
            }
        }
        let whole_lines = [&b"addserver 1.1.1.1 28785\n"[..]];
        assert_eq!(fetch_from(TextMaster::Sauerbraten, &whole_lines, After::Close).await.expect("a list"), want());
        assert_eq!(fetch_from(TextMaster::RedEclipse, &whole_lines, After::Wait).await.expect("a list"), want());
    }

    #[tokio::test]
    async fn bad_lists_are_errors() {
        let long = [&b"addserver 1.1.1.1 28785\n".repeat(60)[..]];
        for (pieces, after, want) in [
            (&[][..], After::Close, "closed the connection without a list"),
            (&[], After::Wait, "sent nothing within 0 s"),
            (&[&b"HTTP/1.1 400 Bad Request\r\n"[..]], After::Close, "sent 26 bytes that are not a server list"),
            (&[b"\x16\x03\x01\0"], After::Close, "sent 4 bytes that are not a server list"),
            (&long, After::Close, "more than 1000 bytes"),
            (&long, After::Wait, "more than 1000 bytes"),
        ] {
            let error = fetch_from(TextMaster::Sauerbraten, pieces, after).await.expect_err(want).to_string();
            assert!(error.contains(want), "{error}");
        }
        let url = format!("cube2master://{CLOSED}").parse().expect("a URL");
        let error = fetch(&url, TextMaster::Sauerbraten, FAST).await.expect_err("no list");
        assert!(matches!(error, MasterError::Socket { .. }), "{error}");
    }

    #[tokio::test]
    async fn next_address_of_a_master_is_queried_if_the_first_does_not_answer() {
        let closed = CLOSED.parse().expect("an address");
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (url, serving) = master("cube2master", &[&b"addserver 1.1.1.1 28785\n\0"[..]], After::Close);
        let last = resolve(&url).await.expect("an address")[0];
        let addresses = [closed, silent.local_addr().expect("bound"), last];
        let list = fetch_from_any(&addresses, TextMaster::Sauerbraten, FAST).await.expect("a list");
        assert_eq!(list.addresses.len(), 1);
        serving.join().expect("served");
        let error = fetch_from_any(&addresses[1..2], TextMaster::Sauerbraten, FAST).await.expect_err("no list");
        assert!(matches!(error, MasterError::Silent { .. }), "{error}");
    }
}
