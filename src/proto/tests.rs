//! Properties of every protocol.

use proptest::prelude::*;

use super::*;
use crate::limits;
use crate::model::Snapshot;

proptest! {
    #[test]
    fn arbitrary_datagrams_do_not_panic_in_any_protocol(
        which in 0..PROTOCOLS.len(),
        datagrams in proptest::collection::vec(
            (prop::sample::select(openings()), proptest::collection::vec(any::<u8>(), 0..80)),
            0..12,
        ),
    ) {
        let mut exchange = PROTOCOLS[which].start(Nonce(7));
        for (t_ms, (opening, rest)) in datagrams.into_iter().enumerate() {
            let bytes = [opening, rest].concat();
            if let Step::Done(snapshot) = exchange.handle_datagram(t_ms as i64, &bytes) {
                check(&snapshot);
                return Ok(());
            }
            prop_assert!(!exchange.request().is_empty());
        }
        if let Some(snapshot) = exchange.partial_snapshot() {
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
