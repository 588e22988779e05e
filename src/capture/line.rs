//! The format of capture files: one JSON object a line, the datagrams of one scan. A replay
//! decodes them again, without the network: a reply of an odd server becomes a test.

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::limits::REPLY_BYTES_MAX;
use crate::lines::{self, TooLong};
use crate::model::{ServerKey, ServerUrl, Snapshot};
use crate::proto::{DetailLevel, Exchange, Nonce, Protocol, Step, Transport, protocol_of};
use crate::scan::{Attempt, Capture, Miss, MissReason, ScanOutcome};

/// Longest line: the largest capture in base64, and the other fields.
const LINE_BYTES_MAX: u64 = 2 * REPLY_BYTES_MAX as u64;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// The URL under which the server was queried, with the protocol and port of the capture.
    server: ServerUrl,
    address: SocketAddr,
    /// 16 hex digits.
    nonce: String,
    datagrams: Vec<Datagram>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Datagram {
    /// Arrival, Unix ms.
    t: i64,
    base64: String,
}

/// Why a line cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("nonce {0:?} is not 16 hex digits")]
    Nonce(String),
    #[error("datagram {0} is not base64: {1}")]
    Base64(usize, base64::DecodeError),
    #[error("scheme {0:?} is not known")]
    Scheme(String),
    #[error("the line has more than {LINE_BYTES_MAX} bytes")]
    TooLong,
}

/// Appends the datagrams of a scan. `server`: the URL that was requested.
pub fn write(out: &mut impl Write, server: &ServerUrl, capture: &Capture) -> io::Result<()> {
    let datagram = |(t, bytes): &(i64, Vec<u8>)| Datagram { t: *t, base64: BASE64.encode(bytes) };
    let line = Line {
        server: server.with_scheme_and_port(capture.scheme, capture.address.port()),
        address: capture.address,
        nonce: capture.nonce.hex(),
        datagrams: capture.datagrams.iter().map(datagram).collect(),
    };
    writeln!(out, "{}", crate::api::json::to_string(&line))
}

/// Calls `each` with the number and the outcome of each line that is not empty. `level`: the
/// details that outcomes have.
pub fn replay(
    from: impl BufRead,
    level: DetailLevel,
    mut each: impl FnMut(usize, Result<(ServerUrl, ScanOutcome), LineError>) -> io::Result<()>,
) -> io::Result<()> {
    lines::read(from, LINE_BYTES_MAX, |number, line| match line {
        Err(TooLong) => each(number, Err(LineError::TooLong)),
        Ok(bytes) if bytes.trim_ascii().is_empty() => Ok(()),
        Ok(bytes) => each(number, decode(bytes, level)),
    })
}

fn decode(line: &[u8], level: DetailLevel) -> Result<(ServerUrl, ScanOutcome), LineError> {
    let line: Line = serde_json::from_slice(line)?;
    let nonce = Some(&line.nonce).filter(|text| text.len() == 16);
    let nonce = nonce.and_then(|text| u64::from_str_radix(text, 16).ok()).map(Nonce);
    let nonce = nonce.ok_or_else(|| LineError::Nonce(line.nonce.clone()))?;
    let protocol =
        protocol_of(line.server.scheme()).ok_or_else(|| LineError::Scheme(line.server.scheme().to_owned()))?;
    let pieces = (1..).zip(&line.datagrams).map(|(number, datagram)| {
        let bytes = BASE64.decode(&datagram.base64).map_err(|error| LineError::Base64(number, error))?;
        Ok((datagram.t, bytes))
    });
    let pieces = pieces.collect::<Result<Vec<(i64, Vec<u8>)>, LineError>>()?;
    let t_ms = pieces.last().map_or(0, |(t_ms, _)| *t_ms);
    let Decoded { exchange, mut snapshot, last } = decode_with(protocol, nonce, line.address, &pieces);
    // The line does not say whether the server answered the fallback of its protocol.
    let fallback = protocol.fallback.filter(|_| snapshot.is_none());
    let fallback = fallback.map(|fallback| decode_with(fallback, nonce, line.address, &pieces));
    let (exchange, last) = match fallback {
        Some(decoded) if decoded.snapshot.is_some() => {
            snapshot = decoded.snapshot;
            (decoded.exchange, decoded.last)
        }
        _ => (exchange, last),
    };
    if let Some(snapshot) = &mut snapshot {
        snapshot.drop_impossible_values();
    }
    let reason = if line.datagrams.is_empty() { MissReason::Timeout } else { MissReason::Malformed };
    let result = snapshot.ok_or(Miss { t_ms, reason });
    let outcome = ScanOutcome {
        id: 0,
        server: ServerKey(0),
        sent_ms: None,
        rtt_ms: None,
        authentication: result.is_ok().then(|| exchange.authentication()),
        details: result.is_ok().then(|| Box::new(exchange.details(&last, level))),
        capture: None,
        attempts: vec![Attempt {
            scheme: protocol.scheme,
            port: line.server.port(),
            result: result.as_ref().map(drop).map_err(|miss| miss.reason),
        }],
        result,
    };
    Ok((line.server, outcome))
}

/// The result of an exchange that gets what was captured.
struct Decoded {
    exchange: Box<dyn Exchange>,
    snapshot: Option<Snapshot>,
    /// The datagram that completed it.
    last: Vec<u8>,
}

fn decode_with(protocol: &Protocol, nonce: Nonce, address: SocketAddr, pieces: &[(i64, Vec<u8>)]) -> Decoded {
    let mut exchange = protocol.start(nonce, address);
    for (t_ms, bytes) in pieces {
        // Over TCP nothing stands for the end of a connection.
        let step = match protocol.transport == Transport::Tcp && bytes.is_empty() {
            true => exchange.handle_end(*t_ms),
            false => exchange.handle_datagram(*t_ms, bytes),
        };
        if let Step::Done(done) = step {
            return Decoded { exchange, snapshot: Some(*done), last: bytes.clone() };
        }
    }
    let snapshot = exchange.partial_snapshot();
    Decoded { exchange, snapshot, last: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Completeness;

    #[test]
    fn replies_over_tcp_and_of_fallbacks_are_replayed() {
        let status = "{\"players\":{\"max\":8,\"online\":1,\"sample\":[{\"name\":\"n\"}]}}";
        let status = [&[status.len() as u8 + 2, 0, status.len() as u8], status.as_bytes()].concat();
        let head = "HTTP/1.0 200 OK\r\n\r\n";
        // A server that ends the connection after each response.
        let [counts, list] = ["{\"clients\":1}", "[{\"name\":\"n\"}]"].map(|body| format!("{head}{body}").into_bytes());
        let pieces = |bytes: &[u8]| bytes.chunks(9).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let ends = vec![Vec::new()];
        let responses = [pieces(&counts), ends.clone(), pieces(&list), ends].concat();
        let mut file = Vec::new();
        for (scheme, pieces) in [("minecraft", pieces(&status)), ("fivem", responses)] {
            let datagrams = (1..).zip(pieces).collect();
            let address = "10.0.0.1:25565".parse().unwrap();
            let url = ServerUrl::parse(&format!("{scheme}://10.0.0.1:25565")).unwrap();
            write(&mut file, &url, &Capture { scheme, address, nonce: Nonce(1), datagrams }).unwrap();
        }
        let mut seen = Vec::new();
        replay(&file[..], DetailLevel::Summary, |_, result| {
            let snapshot = result.unwrap().1.result.unwrap();
            seen.push((snapshot.completeness, snapshot.players.len()));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(Completeness::Full, 1), (Completeness::Full, 1)]);
    }

    #[test]
    fn written_capture_is_replayed_and_bad_lines_are_reported() {
        let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
        let reply = include_bytes!("../../tests/fixtures/openarena-six-bots.bin");
        let capture = |datagrams| Capture {
            scheme: "quake3",
            address: "10.0.0.1:27960".parse().unwrap(),
            nonce: Nonce(0x0123_4567_89ab_cdef),
            datagrams,
        };
        let mut file = Vec::new();
        let requested = ServerUrl::parse("auto://10.0.0.1:9").unwrap();
        write(&mut file, &requested, &capture(vec![(5, b"noise".to_vec()), (7, reply.to_vec())])).unwrap();
        file.extend_from_slice(b"\nnonsense\n");
        write(&mut file, &url, &capture(vec![(5, b"noise".to_vec())])).unwrap();
        for bad in [("0123456789abcdef", "xyz"), ("\"quake3://", "\"gopher://"), ("bm9pc2U=", "!")] {
            let mut line = Vec::new();
            write(&mut line, &url, &capture(vec![(5, b"noise".to_vec())])).unwrap();
            file.extend_from_slice(String::from_utf8(line).unwrap().replace(bad.0, bad.1).as_bytes());
        }
        let mut seen = Vec::new();
        replay(&file[..], DetailLevel::Rules, |number, result| {
            seen.push((number, result));
            Ok(())
        })
        .unwrap();
        let (server, outcome) = seen[0].1.as_ref().unwrap();
        let snapshot = outcome.result.as_ref().unwrap();
        assert_eq!((seen[0].0, server), (1, &url));
        assert_eq!((snapshot.t_ms, snapshot.players.len(), snapshot.completeness), (7, 6, Completeness::Full));
        assert!(!outcome.details.as_ref().unwrap().rules.is_empty());
        let errors: Vec<_> =
            seen.iter().filter_map(|(n, result)| Some((*n, result.as_ref().err()?.to_string()))).collect();
        assert_eq!(errors.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 5, 6, 7]);
        for (error, want) in errors.iter().zip(["expected", "nonce \"xyz\"", "\"gopher\"", "datagram 1"]) {
            assert!(error.1.contains(want), "{error:?}");
        }
        let miss = seen[2].1.as_ref().unwrap().1.result.as_ref().unwrap_err();
        assert_eq!(miss.reason, MissReason::Malformed);
    }
}
