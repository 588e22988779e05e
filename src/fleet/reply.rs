//! What a simulated server replies to a query, and what an attacker sends in its place.
//! Pure: used by the sockets ([`super::serve`]) and by tests in virtual time.

use super::address;
use super::faults::{SPOOFED_NAME, SPOOFED_POINTS, SpoofedReply};
use super::rng::{RngExt, SplitMix64};
use super::wire::{self, ClientQuery, Datagrams, ProtocolVariant};
use super::world::World;
use crate::model::Player;

/// Players in a spoofed list.
const SPOOFED_PLAYERS: usize = 6;

/// The nonce of an attacker who does not know the right one.
pub const GUESSED_NONCE: &[u8] = b"0123456789abcdef";

/// A server and the client that queries it.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    pub server: u32,
    /// The port of the server.
    pub port: u16,
    /// Identifies the client: its challenge depends on it.
    pub client: u64,
}

/// Adds a server's reply at the time that it has reached to `out`. `missing` players are
/// announced but not listed.
pub fn reply(
    world: &mut World,
    peers: Peers,
    query: ClientQuery,
    missing: usize,
    rng: &mut SplitMix64,
    out: &mut Datagrams,
) {
    let Peers { server, port, client } = peers;
    let seed = world.settings().seed;
    let challenge = wire::challenge(seed, server, client);
    let variant = ProtocolVariant::of(seed, server, world.profile(server));
    match query {
        ClientQuery::Status { challenge } => wire::quake3_status(&world.snapshot(server), challenge, out),
        ClientQuery::Info { challenge } => wire::quake3_info(&world.snapshot(server), challenge, out),
        ClientQuery::A2sInfo { challenge: given } if variant.info_challenge && given != Some(challenge) => {
            wire::a2s_challenge(challenge, out);
        }
        ClientQuery::A2sInfo { .. } => {
            let snapshot = world.snapshot(server);
            wire::a2s_info(&snapshot, world.profile(server), &variant, snapshot.players.len(), port, out);
        }
        ClientQuery::A2sPlayer { challenge: given } | ClientQuery::A2sRules { challenge: given }
            if given != challenge =>
        {
            wire::a2s_challenge(challenge, out);
        }
        ClientQuery::A2sPlayer { .. } => {
            let players = world.snapshot(server).players;
            wire::a2s_players(&players, players.len() + missing, &variant, rng.bits() as u32, out);
        }
        ClientQuery::A2sRules { .. } => wire::a2s_rules(out),
    }
}

/// What a spoofed reply has right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoofing {
    /// The source address; the nonce is guessed. Quake 3 only: A2S replies carry no nonce,
    /// so one from the server's address would be valid.
    Address,
    /// The nonce or challenge; the source is another address.
    Nonce,
}

/// A reply of an attacker, with absurd points.
pub fn spoofed_reply(world: &mut World, peers: Peers, query: ClientQuery, spoofing: Spoofing) -> SpoofedReply {
    let Peers { server, port, .. } = peers;
    let mut snapshot = world.snapshot(server);
    let player = |number| Player {
        name: format!("{SPOOFED_NAME}{number}").into(),
        points: Some(SPOOFED_POINTS),
        ping: Some(50),
        connected_ms: Some(600_000),
        bot: false,
        spectator: false,
    };
    snapshot.players = (1..=SPOOFED_PLAYERS).map(player).collect();
    let mut reply = Datagrams::default();
    let out = &mut reply;
    let profile = world.profile(server);
    let variant = ProtocolVariant::of(world.settings().seed, server, profile);
    let nonce = |right| if spoofing == Spoofing::Address { GUESSED_NONCE } else { right };
    match query {
        ClientQuery::Status { challenge } => wire::quake3_status(&snapshot, nonce(challenge), out),
        ClientQuery::Info { challenge } => wire::quake3_info(&snapshot, nonce(challenge), out),
        ClientQuery::A2sInfo { .. } => wire::a2s_info(&snapshot, profile, &variant, SPOOFED_PLAYERS, port, out),
        ClientQuery::A2sPlayer { .. } => wire::a2s_players(&snapshot.players, SPOOFED_PLAYERS, &variant, 1, out),
        ClientQuery::A2sRules { .. } => wire::a2s_rules(out),
    }
    let from = match spoofing {
        Spoofing::Address => address::address_of(server),
        Spoofing::Nonce => address::spoofing_address(server),
    };
    SpoofedReply { from, reply }
}
