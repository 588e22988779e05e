//! The checks of a snapshot that all targets use, and the conversion of one input to
//! several datagrams.

use clqd::limits;
use clqd::model::Snapshot;

#[allow(dead_code, reason = "one target uses only `datagrams`")]
pub fn check(snapshot: &Snapshot) {
    assert!(snapshot.players.len() <= limits::PLAYERS_MAX);
    for text in [&snapshot.game, &snapshot.map, &snapshot.hostname] {
        assert!(text.len() <= limits::TEXT_BYTES_MAX);
    }
    for player in &snapshot.players {
        assert!(player.name.len() <= limits::NAME_BYTES_MAX);
        assert!(player.points.is_none_or(|points| points.abs() <= limits::POINTS_ABS_MAX));
    }
}

/// Datagrams, each after its length in two bytes, little-endian.
#[allow(dead_code, reason = "one target uses only `check`")]
pub fn datagrams(mut input: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = input.split_first_chunk::<2>()?;
        let (datagram, rest) = rest.split_at(usize::from(u16::from_le_bytes(*len)).min(rest.len()));
        input = rest;
        Some(datagram)
    })
}
