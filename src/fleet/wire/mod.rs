//! The server side of the protocols (docs/protocols.md): parses a client's query and
//! encodes the reply of a correct server. No sockets, no faults. It shares no code with
//! `proto`, so that tests can compare the two.
//!
//! A protocol is one file with a function of type [`ReplyFn`], and one line in [`wire_format`].
//! Servers of one protocol differ, as real ones do: [`ProtocolVariant`] defines how, fixed
//! by the seed.

mod a2s;
mod all_seeing_eye;
mod armagetron;
mod bedrock;
mod bzflag;
mod cube;
mod datagrams;
mod doom3;
mod etqw;
mod fivem;
mod fragments;
mod frostbite;
mod gamespy1;
mod gamespy2;
mod gamespy3;
mod minecraft;
mod minecraft_status;
mod mumble;
mod odamex;
mod quake2;
mod quake3;
mod quakeworld;
mod samp;
mod teeworlds;
mod teeworlds7;
mod text;
mod unreal2;
mod variant;
mod zandronum;

use std::ops::Range;

pub use self::datagrams::Datagrams;
pub use self::fragments::{SplitFormat, split};
pub use self::variant::{ProtocolVariant, challenge};
use super::profile::ServerProfile;
use super::protocol::Protocol;
use super::rng::SplitMix64;
use crate::model::Snapshot;

/// The header of a message outside a connection, in many protocols.
const FF4: &[u8; 4] = &[0xFF; 4];

/// What a server knows when it replies.
#[derive(Clone, Copy, Debug)]
pub struct ServerView<'a> {
    pub snapshot: &'a Snapshot,
    pub profile: &'a ServerProfile,
    pub variant: &'a ProtocolVariant,
    /// The queried port.
    pub port: u16,
    /// The challenge that the client has to repeat, in protocols with one.
    pub challenge: [u8; 4],
    /// Whether the server checks the challenge; an attacker does not.
    pub challenge_check: ChallengeCheck,
    /// Number of players that are announced but not listed.
    pub missing: usize,
}

impl ServerView<'_> {
    /// For protocols that name the type of the game, and not the game.
    fn game_type(&self) -> &str {
        let game = self.profile.game;
        if self.snapshot.game == game.name { game.game_type } else { &self.snapshot.game }
    }

    /// The number of players that the server announces.
    fn announced(&self) -> usize {
        self.snapshot.count.map_or(self.snapshot.players.len(), |count| count as usize) + self.missing
    }

    /// The announced number without spectators.
    fn announced_playing(&self) -> usize {
        self.announced() - self.snapshot.players.iter().filter(|player| player.spectator).count()
    }

    fn accepts(&self, given: Option<[u8; 4]>) -> bool {
        self.challenge_check == ChallengeCheck::Skipped || given == Some(self.challenge)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeCheck {
    Required,
    Skipped,
}

/// What a reply contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The player list.
    Players,
    /// A challenge, or information about the server only.
    Other,
}

/// Parses a query and adds the reply to the datagrams. `None`: a server of this protocol does
/// not reply to it.
type ReplyFn = fn(&ServerView, &[u8], &mut SplitMix64, &mut Datagrams) -> Option<Answer>;

/// The server side of a protocol.
struct WireFormat {
    reply: ReplyFn,
    /// The bytes of a query that the server repeats in its reply and that the client chose.
    nonce: fn(&[u8]) -> Option<Range<usize>>,
}

fn wire_format(protocol: Protocol) -> WireFormat {
    match protocol {
        Protocol::Quake3 => WireFormat { reply: quake3::reply, nonce: quake3::nonce },
        Protocol::Source => WireFormat { reply: a2s::reply, nonce: |_| None },
        Protocol::QuakeWorld => WireFormat { reply: quakeworld::reply, nonce: |_| None },
        Protocol::Quake2 => WireFormat { reply: quake2::reply, nonce: |_| None },
        Protocol::GameSpy1 => WireFormat { reply: gamespy1::reply, nonce: |_| None },
        Protocol::GameSpy2 => WireFormat { reply: gamespy2::reply, nonce: |_| Some(3..7) },
        Protocol::GameSpy3 => WireFormat { reply: gamespy3::reply, nonce: |_| Some(3..7) },
        Protocol::Unreal2 => WireFormat { reply: unreal2::reply, nonce: |_| None },
        Protocol::Ase => WireFormat { reply: all_seeing_eye::reply, nonce: |_| None },
        Protocol::SaMp => WireFormat { reply: samp::reply, nonce: samp::nonce },
        Protocol::Doom3 => WireFormat { reply: doom3::reply, nonce: |_| Some(10..14) },
        Protocol::Teeworlds => WireFormat { reply: teeworlds::reply, nonce: |_| Some(14..15) },
        Protocol::Teeworlds7 => WireFormat { reply: teeworlds7::reply, nonce: teeworlds7::nonce },
        Protocol::Minecraft => WireFormat { reply: minecraft::reply, nonce: |_| Some(3..7) },
        Protocol::MinecraftStatus => WireFormat { reply: minecraft_status::reply, nonce: |_| None },
        Protocol::FiveM => WireFormat { reply: fivem::reply, nonce: |_| None },
        Protocol::Frostbite => WireFormat { reply: frostbite::reply, nonce: |_| None },
        Protocol::Cube2 => WireFormat { reply: cube::sauerbraten, nonce: cube::nonce },
        Protocol::Cube1 => WireFormat { reply: cube::assaultcube, nonce: cube::nonce },
        Protocol::Eclipse => WireFormat { reply: cube::redeclipse, nonce: cube::nonce },
        Protocol::Zandronum => WireFormat { reply: zandronum::reply, nonce: zandronum::nonce },
        Protocol::Odamex => WireFormat { reply: odamex::reply, nonce: odamex::nonce },
        Protocol::Bzflag => WireFormat { reply: bzflag::reply, nonce: |_| None },
        Protocol::Armagetron => WireFormat { reply: armagetron::reply, nonce: |_| None },
        Protocol::Mumble => WireFormat { reply: mumble::reply, nonce: |_| Some(4..12) },
        Protocol::Bedrock => WireFormat { reply: bedrock::reply, nonce: |_| Some(1..9) },
        Protocol::Etqw => WireFormat { reply: etqw::reply, nonce: |_| Some(12..16) },
    }
}

/// Adds the reply of a correct server to a query. `None`: it does not reply to it.
pub fn reply(
    protocol: Protocol,
    server: &ServerView,
    query: &[u8],
    rng: &mut SplitMix64,
    out: &mut Datagrams,
) -> Option<Answer> {
    (wire_format(protocol).reply)(server, query, rng, out)
}

/// The query with a wrong nonce: an attacker who cannot see the real one has to guess. `None`:
/// the protocol's reply to it has no nonce.
pub fn with_wrong_nonce(protocol: Protocol, query: &[u8]) -> Option<Vec<u8>> {
    let nonce = (wire_format(protocol).nonce)(query)?;
    let mut query = query.to_vec();
    for byte in query.get_mut(nonce)? {
        // A nonce of printable characters remains printable.
        *byte ^= 1;
    }
    Some(query)
}

#[cfg(test)]
mod tests;
