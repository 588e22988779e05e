//! Snapshots, servers and replies for the tests of the encoders, and rules that hold for
//! every protocol.

use strum::VariantArray;

use super::*;
use crate::fleet::profile::ProfileMix;
use crate::fleet::protocol::ProtocolShares;
use crate::fleet::rng::RngExt;
use crate::model::{Completeness, Player};

pub(super) const CHALLENGE: [u8; 4] = [1, 2, 3, 4];
pub(super) const PORT: u16 = 5_000;

pub(super) fn player(name: &str, points: i64, ping: i32, connected_ms: u64) -> Player {
    Player {
        name: name.into(),
        points: Some(points),
        ping: Some(ping),
        connected_ms: Some(connected_ms),
        bot: false,
        spectator: false,
    }
}

pub(super) fn snapshot(players: Vec<Player>) -> Snapshot {
    Snapshot {
        t_ms: 0,
        game: "baseq3".into(),
        map: "q3dm17".into(),
        hostname: "Büro".into(),
        slots: 16,
        players,
        completeness: Completeness::Full,
        count: None,
        bots: None,
    }
}

pub(super) fn only(out: &Datagrams) -> &[u8] {
    assert_eq!(out.len(), 1);
    out.iter().next().unwrap()
}

/// The reply of a server with a variant.
pub(super) fn reply_of(
    protocol: Protocol,
    snapshot: &Snapshot,
    change: impl FnOnce(&mut ProtocolVariant, &mut usize),
    query: &[u8],
) -> Option<(Answer, Vec<Vec<u8>>)> {
    let mix = ProfileMix { protocols: ProtocolShares::only(protocol), activity: 1.0 };
    let profile = ServerProfile::generate(1, 0, mix);
    let mut variant = ProtocolVariant::of(1, 0, &profile);
    let mut missing = 0;
    change(&mut variant, &mut missing);
    let server = ServerView {
        snapshot,
        profile: &profile,
        variant: &variant,
        port: PORT,
        challenge: CHALLENGE,
        challenge_check: ChallengeCheck::Required,
        missing,
    };
    let mut out = Datagrams::default();
    let answer = reply(protocol, &server, query, &mut SplitMix64::from_parts(&[1]), &mut out);
    assert!(answer.is_some() || out.is_empty());
    Some((answer?, out.iter().map(<[u8]>::to_vec).collect()))
}

pub(super) fn reply_to(protocol: Protocol, snapshot: &Snapshot, query: &[u8]) -> (Answer, Vec<Vec<u8>>) {
    reply_of(protocol, snapshot, |_, _| (), query).expect("a reply")
}

pub(super) fn refuses(protocol: Protocol, snapshot: &Snapshot, query: &[u8]) -> bool {
    reply_of(protocol, snapshot, |_, _| (), query).is_none()
}

#[test]
fn no_server_replies_to_noise() {
    let rng = &mut SplitMix64::from_parts(&[3]);
    let server = snapshot(vec![player("a", 1, 2, 3)]);
    for &protocol in Protocol::VARIANTS {
        for length in 0..600 {
            let noise: Vec<u8> = (0..length).map(|_| rng.bits() as u8).collect();
            if protocol != Protocol::Ase || noise.first() != Some(&b's') {
                assert!(refuses(protocol, &server, &noise), "{protocol:?}: {noise:?}");
            }
        }
    }
}

#[test]
fn wrong_nonce_differs_from_the_client_s() {
    let wrong = |protocol, query: &[u8]| with_wrong_nonce(protocol, query);
    assert_eq!(wrong(Protocol::Quake3, b"\xFF\xFF\xFF\xFFgetstatus ab\n").unwrap(), b"\xFF\xFF\xFF\xFFgetstatus `c\n");
    assert_eq!(wrong(Protocol::Quake3, b"\xFF\xFF\xFF\xFFgetstatus\n"), None);
    assert_eq!(wrong(Protocol::GameSpy2, b"\xFE\xFD\0abcd\xFF\xFF\xFF").unwrap(), b"\xFE\xFD\0`cbe\xFF\xFF\xFF");
    assert_eq!(wrong(Protocol::GameSpy2, b"\xFE\xFD\0ab"), None);
    assert_eq!(wrong(Protocol::Source, b"\xFF\xFF\xFF\xFFU1234"), None);
}
