//! Wire formats: bytes to values and back, one file per protocol family.
//!
//! A scan is a [`Exchange`]: a state machine that says what to ask, is told
//! what arrived, and ends in a snapshot. It knows no socket, clock or chance:
//! the time of a datagram and the nonce are arguments. Pacing, retries and
//! time-outs belong to `scan`.
//!
//! Bytes from the network never panic here and never make more than
//! [`crate::limits::REPLY_BYTES_MAX`] be allocated.
//!
//! A new protocol is a file beside this one and a line in [`PROTOCOLS`].

pub mod a2s;
pub mod cursor;
pub mod nonce;
pub mod quake3;
mod scheme;

pub use nonce::{Nonce, NonceKey};

use crate::limits;
use crate::model::Snapshot;
use crate::model::name::{
    Name, {self},
};
pub use crate::proto::scheme::{ServerUrlError, parse_server_url};

/// One protocol that can be scanned, under its URL scheme.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The scheme of [`crate::model::ServerUrl`].
    pub scheme: &'static str,
    /// Protocols of one wire format send the same bytes: asking both is waste.
    pub wire_format: WireFormat,
    /// Where servers usually listen; the first is the default of the scheme.
    pub default_ports: &'static [u16],
    /// Packets sent to a server that answers each at once: what a scan costs.
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

/// One scan of one server, from the first question to the snapshot.
pub trait Exchange: Send {
    /// The packet that now waits for an answer. Send it to open, whenever a step
    /// says [`Step::Send`], and once more when the answer does not come.
    fn packet(&self) -> Vec<u8>;

    /// A datagram came from the asked address. `t_ms`: its arrival, Unix ms.
    fn on_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step;

    /// No answer is waited for any longer. Something, if the server proved to be
    /// alive: a partial snapshot, of the time of the last datagram understood.
    fn give_up(&mut self) -> Option<Snapshot>;
}

/// What follows from a datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Not an answer; the dialogue is where it was.
    Ignore(Ignored),
    /// The next question is due: send [`Exchange::packet`] now.
    Send,
    /// A part of the answer; more has to come.
    Wait,
    /// The end.
    Done(Box<Snapshot>),
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$why:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$why])* $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Name of its counter.
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
    /// Why a datagram from an asked address was not used.
    Ignored {
        /// Does not begin as any reply of the protocol does.
        NotAReply = "not_a_reply",
        /// A message of the protocol, but not one that was asked for now.
        OutOfTurn = "out_of_turn",
        /// The nonce is not ours, or is missing.
        WrongNonce = "wrong_nonce",
        /// Begins as it should and then breaks the format.
        Malformed = "malformed",
        /// A fragment that cannot belong to any whole.
        BadFragment = "bad_fragment",
        /// Compressed fragments that do not unpack to what they announce.
        BadCompression = "bad_compression",
        /// The whole would be larger than `limits::REPLY_BYTES_MAX`.
        TooLarge = "too_large",
        /// The server asks for one challenge after the other.
        TooManyChallenges = "too_many_challenges",
    }
);

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    #[error("ends at byte {at}, in the middle of {what}")]
    Cut { what: &'static str, at: usize },
    #[error("{what} is {value}, which cannot be")]
    Value { what: &'static str, value: u64 },
    #[error("does not begin as a reply of this protocol")]
    NotAReply,
    #[error("the challenge of the reply is not the one that was sent")]
    WrongNonce,
    #[error("announces {bytes} bytes, more than {max}", max = limits::REPLY_BYTES_MAX)]
    TooLarge { bytes: u64 },
    #[error("compressed data does not unpack")]
    Decompress,
    #[error("unpacked to {got} bytes instead of {announced}")]
    DecompressedSize { announced: u32, got: usize },
    #[error("checksum {got:08x} instead of {announced:08x}")]
    Checksum { announced: u32, got: u32 },
}

impl ProtoError {
    /// The counter that it belongs to.
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
    // No byte becomes less than one byte, so what is cut here could not stay.
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

/// Points within the limits of a snapshot.
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
        let cut = player_name(long.as_bytes());
        assert_eq!(cut.len(), 256);
        assert!(long.starts_with(cut.as_str()));
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
                if let Step::Done(snapshot) = dialogue.on_datagram(t_ms as i64, &bytes) {
                    check(&snapshot);
                    return Ok(());
                }
                prop_assert!(!dialogue.packet().is_empty());
            }
            if let Some(snapshot) = dialogue.give_up() {
                check(&snapshot);
            }
        }
    }

    /// What every snapshot that leaves this room keeps to.
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
