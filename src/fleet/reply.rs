//! What a simulated server replies to a query, and what an attacker sends in its place.
//! Pure: used by the sockets ([`super::serve`]) and by tests in virtual time.

use super::address;
use super::faults::{SPOOFED_NAME, SPOOFED_POINTS, SpoofedReply};
use super::rng::SplitMix64;
use super::wire::{self, Answer, ChallengeCheck, Datagrams, ProtocolVariant, ServerView};
use super::world::World;
use crate::model::{Completeness, Player};

/// Players in a spoofed list.
const SPOOFED_PLAYERS: usize = 6;

/// A server and the client that queries it.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    pub server: u32,
    /// The port of the server.
    pub port: u16,
    /// Identifies the client: its challenge depends on it.
    pub client: u64,
}

/// Which of the players are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// All players are listed; this many more are announced.
    Missing(usize),
    /// The list has no entries, and their number is announced.
    Withheld,
}

/// Adds a server's reply at the time that it has reached to `out`. `None`: the server does not
/// reply to this query.
pub fn reply(
    world: &mut World,
    peers: Peers,
    query: &[u8],
    listing: Listing,
    rng: &mut SplitMix64,
    out: &mut Datagrams,
) -> Option<Answer> {
    let Peers { server, port, client } = peers;
    let seed = world.settings().seed;
    let mut snapshot = world.snapshot(server);
    let missing = match listing {
        Listing::Missing(missing) => missing,
        Listing::Withheld => {
            snapshot.count = snapshot.count.or(Some(snapshot.players.len() as u32));
            snapshot.players.clear();
            0
        }
    };
    let profile = world.profile(server);
    let view = ServerView {
        snapshot: &snapshot,
        profile,
        variant: &ProtocolVariant::of(seed, server, profile),
        port,
        challenge: wire::challenge(seed, server, client),
        challenge_check: ChallengeCheck::Required,
        missing,
    };
    wire::reply(profile.game.protocol, &view, query, rng, out)
}

/// The part of a spoofed reply that is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoofing {
    /// The source address is correct; the nonce is guessed. This is only for queries with a nonce,
    /// because a reply without one from the server's address would be valid.
    Address,
    /// The nonce or challenge is correct; the source is another address.
    Nonce,
}

/// A reply of an attacker, with absurd points. [`Spoofing::Address`] becomes
/// [`Spoofing::Nonce`] if the query has no nonce.
pub fn spoofed_reply(
    world: &mut World,
    peers: Peers,
    query: &[u8],
    spoofing: Spoofing,
    rng: &mut SplitMix64,
) -> SpoofedReply {
    let Peers { server, port, client } = peers;
    let seed = world.settings().seed;
    let mut snapshot = world.snapshot(server);
    let profile = world.profile(server);
    let protocol = profile.game.protocol;
    let player = |number| Player {
        name: format!("{SPOOFED_NAME}{number}").into(),
        points: Some(SPOOFED_POINTS),
        ping: Some(50),
        connected_ms: Some(600_000),
        bot: false,
        spectator: false,
    };
    snapshot.players = (1..=SPOOFED_PLAYERS).map(player).collect();
    snapshot.count = snapshot.count.map(|_| SPOOFED_PLAYERS as u32);
    snapshot.completeness = Completeness::Full;
    let guessed = (spoofing == Spoofing::Address).then(|| wire::with_wrong_nonce(protocol, query)).flatten();
    let (from, query) = match &guessed {
        Some(guessed) => (address::address_of(server), &guessed[..]),
        None => (address::spoofing_address(server), query),
    };
    let view = ServerView {
        snapshot: &snapshot,
        profile,
        variant: &ProtocolVariant::of(seed, server, profile),
        port,
        challenge: wire::challenge(seed, server, client),
        challenge_check: ChallengeCheck::Skipped,
        missing: 0,
    };
    let mut reply = Datagrams::default();
    // The caller has got a reply to this query from the server.
    let _ = wire::reply(protocol, &view, query, rng, &mut reply);
    SpoofedReply { from, reply }
}
