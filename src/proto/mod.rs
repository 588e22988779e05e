//! Wire formats: bytes to values and back, one file per protocol family.
//!
//! A scan is an [`Exchange`]: a state machine that returns the next request, takes
//! each received datagram, and ends with a snapshot. It uses no socket, clock or
//! randomness: the time of a datagram and the nonce are arguments. Pacing, retries
//! and time-outs belong to `scan`.
//!
//! Bytes from the network never cause a panic here, and never an allocation of more
//! than [`crate::limits::REPLY_BYTES_MAX`].
//!
//! A new protocol is a new file in this directory and an entry in [`PROTOCOLS`].

pub mod a2s;
pub mod cursor;
pub mod nonce;
pub mod quake3;
mod scheme;

pub use nonce::{Nonce, NonceKey};

use crate::limits;
use crate::model::Snapshot;
use crate::model::name::{self, Name};
pub use crate::proto::scheme::{ServerUrlError, parse_server_url};

/// A protocol that can be scanned, and its URL scheme.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The scheme of [`crate::model::ServerUrl`].
    pub scheme: &'static str,
    /// Protocols with the same wire format send the same requests; only one is tried per port.
    pub wire_format: WireFormat,
    /// Ports that servers usually use; the first is the default of the scheme.
    pub default_ports: &'static [u16],
    /// Packets sent to a server that replies to each at once.
    pub packets_typical: u32,
    start: fn(Nonce) -> Box<dyn Exchange>,
}

impl Protocol {
    /// A new scan. The nonce authenticates replies where the protocol echoes one.
    pub fn start(&self, nonce: Nonce) -> Box<dyn Exchange> {
        (self.start)(nonce)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireFormat {
    Quake3,
    Source,
}

/// Every protocol that can be scanned.
pub static PROTOCOLS: &[Protocol] = &[
    Protocol {
        scheme: "quake3",
        wire_format: WireFormat::Quake3,
        default_ports: &[27960],
        packets_typical: 1,
        start: |nonce| Box::new(quake3::StatusQuery::new(nonce)),
    },
    Protocol {
        scheme: "darkplaces",
        wire_format: WireFormat::Quake3,
        default_ports: &[26000],
        packets_typical: 1,
        start: |nonce| Box::new(quake3::StatusQuery::new(nonce)),
    },
    Protocol {
        scheme: "source",
        wire_format: WireFormat::Source,
        default_ports: &[27015, 27016],
        packets_typical: 3,
        start: |_| Box::new(a2s::A2sQuery::new()),
    },
];

/// The protocol of a URL scheme, if it can be scanned.
pub fn protocol_of(scheme: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.scheme == scheme)
}

/// One scan of one server, from the first request to the snapshot.
pub trait Exchange: Send {
    /// The packet to send now. Send it at the start, after each [`Step::Send`], and
    /// again when the reply is lost.
    fn request(&self) -> Vec<u8>;

    /// Handles a datagram from the queried address. `t_ms`: its arrival, Unix ms.
    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step;

    /// Returns a partial snapshot if the server has sent any valid reply, with the
    /// time of the last one. Call it when the scan times out.
    fn partial_snapshot(&mut self) -> Option<Snapshot>;
}

/// The result of a datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Not a usable reply; the exchange has not changed.
    Ignore(Ignored),
    /// The next request is due: send [`Exchange::request`] now.
    Send,
    /// Part of the reply; more has to arrive.
    Wait,
    /// The exchange is complete.
    Done(Box<Snapshot>),
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$why:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$why])* $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name of its counter.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use named_enum;

named_enum!(
    /// Why a datagram from a queried address was not used.
    Ignored {
        /// Does not begin like any reply of the protocol.
        NotAReply = "not_a_reply",
        /// A message of the protocol, but not one that is expected now.
        UnexpectedMessage = "unexpected_message",
        /// The nonce is wrong or missing.
        WrongNonce = "wrong_nonce",
        /// Begins correctly, then violates the format.
        Malformed = "malformed",
        /// A fragment that cannot belong to any reply.
        BadFragment = "bad_fragment",
        /// Compressed fragments that do not decompress to the announced data.
        BadCompression = "bad_compression",
        /// The complete reply would be larger than `limits::REPLY_BYTES_MAX`.
        TooLarge = "too_large",
        /// The server sent too many challenges.
        TooManyChallenges = "too_many_challenges",
    }
);

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    #[error("truncated at byte {at}, in {what}")]
    Cut { what: &'static str, at: usize },
    #[error("{what} is {value}, which is invalid")]
    Value { what: &'static str, value: u64 },
    #[error("not a reply of this protocol")]
    NotAReply,
    #[error("the reply does not contain the challenge that was sent")]
    WrongNonce,
    #[error("announces {bytes} bytes, more than {max}", max = limits::REPLY_BYTES_MAX)]
    TooLarge { bytes: u64 },
    #[error("the compressed data cannot be decompressed")]
    Decompress,
    #[error("decompressed to {got} bytes instead of {announced}")]
    DecompressedSize { announced: u32, got: usize },
    #[error("checksum {got:08x} instead of {announced:08x}")]
    Checksum { announced: u32, got: u32 },
}

impl ProtoError {
    /// The counter of this error.
    pub fn ignore_reason(self) -> Ignored {
        match self {
            ProtoError::Cut { .. } | ProtoError::Value { .. } => Ignored::Malformed,
            ProtoError::NotAReply => Ignored::NotAReply,
            ProtoError::WrongNonce => Ignored::WrongNonce,
            ProtoError::TooLarge { .. } => Ignored::TooLarge,
            ProtoError::Decompress | ProtoError::DecompressedSize { .. } | ProtoError::Checksum { .. } => {
                Ignored::BadCompression
            }
        }
    }
}

/// Bytes of a reply as a player's name, at most `limits::NAME_BYTES_MAX` long.
pub fn player_name(bytes: &[u8]) -> Name {
    text(bytes, limits::NAME_BYTES_MAX).into()
}

/// Bytes of a reply as a map, game or host name, at most `limits::TEXT_BYTES_MAX` long.
pub fn short_text(bytes: &[u8]) -> String {
    text(bytes, limits::TEXT_BYTES_MAX)
}

fn text(bytes: &[u8], bytes_max: usize) -> String {
    // Decoding never shortens a byte, so bytes beyond this limit cannot be in the result.
    let mut text = name::decode_text(&bytes[..bytes.len().min(bytes_max + 4)]);
    truncate_at_char(&mut text, bytes_max);
    text
}

fn truncate_at_char(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
    }
}

/// Points, clamped to the limits of a snapshot.
pub fn points(raw: i64) -> i64 {
    raw.clamp(-limits::POINTS_ABS_MAX, limits::POINTS_ABS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn first_default_port_is_that_of_the_url_scheme() {
        for protocol in PROTOCOLS {
            let url = crate::model::ServerUrl::parse(&format!("{}://h", protocol.scheme)).unwrap();
            assert_eq!(url.port(), protocol.default_ports[0]);
            assert!(std::ptr::eq(protocol_of(protocol.scheme).unwrap(), protocol));
        }
        assert!(protocol_of("gopher").is_none());
    }

    #[test]
    fn long_name_is_truncated_at_a_char_boundary() {
        let long = "é".repeat(200);
        let truncated = player_name(long.as_bytes());
        assert_eq!(truncated.len(), 256);
        assert!(long.starts_with(truncated.as_str()));
        let odd = format!("a{long}");
        assert_eq!(player_name(odd.as_bytes()).len(), 255);
        // 300 bytes that are not UTF-8: Windows-1252, two or three bytes each.
        assert!(player_name(&[0x80; 300]).len() <= 256);
    }

    proptest! {
        #[test]
        fn truncating_before_decoding_gives_the_same_name(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut whole = name::decode_text(&bytes);
            truncate_at_char(&mut whole, limits::NAME_BYTES_MAX);
            prop_assert_eq!(player_name(&bytes), whole);
        }

        #[test]
        fn arbitrary_datagrams_do_not_panic_in_any_protocol(
            which in 0..PROTOCOLS.len(),
            datagrams in proptest::collection::vec(
                (prop::sample::select(crate::proto::tests::openings()), proptest::collection::vec(any::<u8>(), 0..80)),
                0..12,
            ),
        ) {
            let mut dialogue = PROTOCOLS[which].start(Nonce(7));
            for (t_ms, (opening, rest)) in datagrams.into_iter().enumerate() {
                let bytes = [opening, rest].concat();
                if let Step::Done(snapshot) = dialogue.handle_datagram(t_ms as i64, &bytes) {
                    check(&snapshot);
                    return Ok(());
                }
                prop_assert!(!dialogue.request().is_empty());
            }
            if let Some(snapshot) = dialogue.partial_snapshot() {
                check(&snapshot);
            }
        }
    }

    /// Asserts the limits that every decoded snapshot satisfies.
    pub(crate) fn check(snapshot: &Snapshot) {
        assert!(snapshot.players.len() <= limits::PLAYERS_MAX);
        for text in [&snapshot.game, &snapshot.map, &snapshot.hostname] {
            assert!(text.len() <= limits::TEXT_BYTES_MAX);
        }
        for player in &snapshot.players {
            assert!(player.name.len() <= limits::NAME_BYTES_MAX);
            assert!(player.points.is_some_and(|points| points.abs() <= limits::POINTS_ABS_MAX));
        }
    }

    fn openings() -> Vec<Vec<u8>> {
        let mut info = b"\xff\xff\xff\xff\x49\x11host\0map\0dir\0game\0\xf0\x00\x03\x20\x00dl\x00\x011.0\0".to_vec();
        let mut openings = vec![vec![], info.clone()];
        info.push(0xf1);
        openings.push(info);
        for opening in [
            &b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0000000000000007\\mapname\\m\n"[..],
            b"\xff\xff\xff\xffstatusResponse\n",
            b"\xff\xff\xff\xff\x49",
            b"\xff\xff\xff\xff\x6d",
            b"\xff\xff\xff\xff\x41\x01\x02\x03\x04",
            b"\xff\xff\xff\xff\x44",
            b"\xff\xff\xff\xff\x44\x01\x00name\0\x01\x00\x00\x00",
            b"\xfe\xff\xff\xff\x01\x00\x00\x00\x02\x00\xe0\x04\xff\xff\xff\xff\x44\x01",
            b"\xfe\xff\xff\xff\x01\x00\x00\x00\x02\x01",
            b"\xfe\xff\xff\xff\x01\x00\x00\x80\x01\x00\x40\x00\x00\x00\x00\x00\x00\x00BZh",
            b"\xfe\xff\xff\xff\x01\x00\x00\x00\x02\xff\xff\xff\xff\x44\x01",
        ] {
            openings.push(opening.to_vec());
        }
        openings
    }
}
