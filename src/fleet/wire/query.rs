//! Parses the queries of clients.

use crate::fleet::games::Family;

const SINGLE_HEADER: [u8; 4] = [0xFF; 4];
const INFO_QUERY: &[u8] = b"\xFF\xFF\xFF\xFFTSource Engine Query\0";

/// Longest challenge that a Quake 3 server accepts (ioq3 `SVC_Status`).
const QUAKE3_CHALLENGE_BYTES_MAX: usize = 128;

/// A client's query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientQuery<'a> {
    /// Quake 3: all fields.
    Status {
        challenge: &'a [u8],
    },
    /// Quake 3: all fields except the players' names.
    Info {
        challenge: &'a [u8],
    },
    /// A2S_INFO, with the challenge if one was sent.
    A2sInfo {
        challenge: Option<[u8; 4]>,
    },
    A2sPlayer {
        challenge: [u8; 4],
    },
    A2sRules {
        challenge: [u8; 4],
    },
}

impl ClientQuery<'_> {
    /// Parses a query. `None` if a server of this family does not reply to it.
    pub fn parse(family: Family, bytes: &[u8]) -> Option<ClientQuery<'_>> {
        let body = bytes.strip_prefix(&SINGLE_HEADER)?;
        match family {
            Family::Quake3 => parse_quake3(body),
            Family::Source => parse_a2s(bytes, body),
        }
    }
}

fn parse_quake3(body: &[u8]) -> Option<ClientQuery<'_>> {
    let line = body.split(|&b| b == b'\n' || b == 0).next()?;
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let command = words.next()?;
    let challenge = words.next().unwrap_or_default();
    if challenge.len() > QUAKE3_CHALLENGE_BYTES_MAX {
        return None;
    }
    match command {
        b"getstatus" => Some(ClientQuery::Status { challenge }),
        b"getinfo" => Some(ClientQuery::Info { challenge }),
        _ => None,
    }
}

fn parse_a2s<'a>(bytes: &'a [u8], body: &'a [u8]) -> Option<ClientQuery<'a>> {
    let (&kind, rest) = body.split_first()?;
    if kind == b'T' {
        let tail = bytes.strip_prefix(INFO_QUERY)?;
        return Some(ClientQuery::A2sInfo { challenge: tail.try_into().ok() });
    }
    let challenge = rest.try_into().ok()?;
    match kind {
        b'U' => Some(ClientQuery::A2sPlayer { challenge }),
        b'V' => Some(ClientQuery::A2sRules { challenge }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_both_families_are_parsed() {
        use Family::*;
        for (family, bytes, want) in [
            (Quake3, &b"\xFF\xFF\xFF\xFFgetstatus abc\n"[..], Some(ClientQuery::Status { challenge: b"abc" })),
            (Quake3, b"\xFF\xFF\xFF\xFFgetstatus", Some(ClientQuery::Status { challenge: b"" })),
            (Quake3, b"\xFF\xFF\xFF\xFFgetinfo x", Some(ClientQuery::Info { challenge: b"x" })),
            (Quake3, b"getstatus\n", None),
            (Quake3, b"\xFF\xFF\xFF\xFF", None),
            (Quake3, b"\xFF\xFF\xFF\xFFrcon x", None),
            (Source, b"\xFF\xFF\xFF\xFFTSource Engine Query\0", Some(ClientQuery::A2sInfo { challenge: None })),
            (
                Source,
                b"\xFF\xFF\xFF\xFFTSource Engine Query\0\x01\x02\x03\x04",
                Some(ClientQuery::A2sInfo { challenge: Some([1, 2, 3, 4]) }),
            ),
            (Source, b"\xFF\xFF\xFF\xFFTSource", None),
            (Source, b"\xFF\xFF\xFF\xFFU\xFF\xFF\xFF\xFF", Some(ClientQuery::A2sPlayer { challenge: [255; 4] })),
            (Source, b"\xFF\xFF\xFF\xFFV\x01\0\0\0", Some(ClientQuery::A2sRules { challenge: [1, 0, 0, 0] })),
            (Source, b"\xFF\xFF\xFF\xFFU\x01", None),
            (Source, b"\xFF\xFF\xFF\xFFgetstatus\n", None),
            (Source, b"", None),
        ] {
            assert_eq!(ClientQuery::parse(family, bytes), want, "{bytes:?}");
        }
        let long = |n: usize| [&b"\xFF\xFF\xFF\xFFgetstatus "[..], &vec![b'a'; n]].concat();
        assert!(ClientQuery::parse(Quake3, &long(128)).is_some() && ClientQuery::parse(Quake3, &long(129)).is_none());
    }
}
