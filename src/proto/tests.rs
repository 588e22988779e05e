//! Properties of every protocol.

use proptest::prelude::*;

use super::*;
use crate::limits;
use crate::model::Snapshot;

/// Every opening, except fragments, is part of a reply that its protocol accepts. With openings that are
/// refused at the first byte, the property below would show nothing.
#[test]
fn every_opening_is_accepted_by_a_protocol() {
    let address = "10.0.0.1:7777".parse().unwrap();
    let is_whole = |opening: &&Vec<u8>| opening.len() > 20 && !opening.starts_with(b"\xfe\xff\xff\xff");
    for opening in openings().iter().filter(is_whole) {
        let accepted = PROTOCOLS.iter().any(|protocol| {
            openings().iter().any(|before| {
                let mut exchange = protocol.start(Nonce(7), address);
                exchange.handle_datagram(0, before);
                !matches!(exchange.handle_datagram(1, opening), Step::Ignore(_) | Step::Fail(_))
            })
        });
        assert!(accepted, "{opening:?}");
    }
}

/// A server that challenges again and again, and in between replies as it should.
#[test]
fn scan_never_sends_more_packets_than_its_protocol_says() {
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.transport == Transport::Udp) {
        let mut exchange = protocol.start(Nonce(7), "10.0.0.1:7777".parse().unwrap());
        let mut packets = 1;
        for round in 0_u8..40 {
            let challenges = [
                [b"\xff\xff\xff\xffA123", &[round][..]].concat(),
                [b"\x09\x00\x00\x00\x07", round.to_string().as_bytes(), b"\0"].concat(),
                [b"\x04\0\0\0\0\0\x07\x05abc", &[round][..]].concat(),
            ];
            // Replies only after the challenges, because they would end the scan.
            let replies = if round < 20 { Vec::new() } else { openings() };
            let steps = challenges.iter().chain(&replies).map(|datagram| exchange.handle_datagram(0, datagram));
            packets += steps.filter(|step| *step == Step::Send).count() as u32;
        }
        assert_eq!(packets, protocol.packets_max, "{}", protocol.scheme);
    }
}

/// Over TCP a reply that is not expected ends the scan, so each pair of replies has its own.
#[test]
fn scan_over_tcp_never_sends_more_requests_than_its_protocol_says() {
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.transport == Transport::Tcp) {
        let openings = openings();
        let requests =
            openings.iter().flat_map(|first| openings.iter().map(move |second| [first, second])).map(|replies| {
                let mut exchange = protocol.start(Nonce(7), "10.0.0.1:7777".parse().unwrap());
                let steps = replies.map(|reply| exchange.handle_datagram(0, reply));
                1 + steps.iter().filter(|step| **step == Step::Send).count() as u32
            });
        assert_eq!(requests.max(), Some(protocol.packets_max), "{}", protocol.scheme);
    }
}

proptest! {
    #[test]
    fn arbitrary_datagrams_do_not_panic_in_any_protocol(
        which in 0..PROTOCOLS.len(),
        datagrams in proptest::collection::vec(
            (prop::sample::select(openings()), proptest::collection::vec(any::<u8>(), 0..80)),
            0..12,
        ),
    ) {
        let mut exchange = PROTOCOLS[which].start(Nonce(7), "10.0.0.1:7777".parse().unwrap());
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
        assert!(player.points.is_none_or(|points| points.abs() <= limits::POINTS_ABS_MAX));
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
        b"\xff\xff\xff\xffn\\map\\dm6\n1 2 3 4 \"n\" \"\" 0 0\n",
        b"\xff\xff\xff\xffn1 2 3 4 \"n\" \"\" 0 0\n",
        b"\xff\xff\xff\xffprint\n\\mapname\\q2dm1\n1 2 \"n\"\n",
        b"\\gamename\\ut\\player_0\\n\\frags_0\\7\\queryid\\1.1",
        b"\\final\\\\queryid\\1.2",
        b"\x00\x00\x00\x00\x07hostname\0h\0\0\0\x00\x01player_\0score_\0\0n\x007\0",
        b"\x09\x00\x00\x00\x0712345\0",
        b"\x00\x00\x00\x00\x07splitnum\0\x80\x00hostname\0h\0\0\x01player_\0\0n\0\0",
        b"\x00\x00\x00\x00\x07splitnum\0\x01\x01player_\0\x01n\0\0",
        b"\x80\0\0\0\0\0\0\0\0\x01\0\x61\x1e\0\0\x62\x1e\0\0\x02h\0\x02m\0\x02g\0\x02\0\0\0\x08\0\0\0",
        b"\x80\0\0\0\x02\x05\0\0\0\x02n\0\x28\0\0\0\x07\0\0\0\0\0\0\0",
        b"EYE1\x02g\x02p\x02h\x02t\x02m\x02v\x020\x021\x028\x01\x09\x02n\x027",
        b"SAMP\x0a\0\0\x01\x61\x1ep\0\0\0\x07",
        b"SAMP\x0a\0\0\x01\x61\x1ei\0\x01\0\x08\0\x01\0\0\0h\x01\0\0\0m\x01\0\0\0l",
        b"SAMP\x0a\0\0\x01\x61\x1ec\x01\0\x01n\x07\0\0\0",
        b"\xff\xffinfoResponse\0\0\0\0\x07\x41\0\x01\0si_name\0h\0\0\0\0\x28\0\0\0\0\0n\0",
        b"\xff\xffinfoExResponse\0\0\0\0\x07\x14\0\x0a\0\0\x04\0\0si_name\0h\0\0\0\0\x28\0n\0\0c\0\0\x20",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffinf37\0v\0h\0m\0g\x000\x001\x008\x001\x008\0n\0c\x000\x007\x001\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffiext7\0v\0h\0m\x001\x002\0g\x000\x002\x008\x002\x008\0\0",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffiex+7\x001\0\0n\0c\x000\x007\x001\0\0",
        b"\x04\0\0\0\0\0\x07\x05abcd",
        b"\x21\0\0\0\x07abcd\xff\xff\xff\xffinf3\x07v\0h\0\0m\0g\0\0\0\x01\x08\x01\x08n\0c\0\0\x07\0",
        b"\x1c\0\0\0\0\0\0\0\x0700000000\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78\0\x14MCPE;h;1;1;3;20;1;w;",
        b"\xff\xff\x01\0\0\0\0\0\0\0\0\x07\x01\x05\x80\x04\x01\0\x80\x56\x02\x08\0m\0h\0",
        b"\x01\0\0\0\0\0\0\0\0\x07\x80\xb3\x04\0\x01\x07m\0h\0\x10\x01\0",
        b"\0\x01\xff\0\0\0\0\0\0\0\0\x07\xff\x69\0\xf6\0",
        b"\0\x01\xff\0\0\0\0\0\0\0\0\x07\xff\x69\0\xf5\0\x25n\0t\0\0\0\0\0\0\x64\x32\x06\x01\x01\0\0\0",
        b"\xff\x77\x5d\x56\x00\x07\0\0\x003.1\0",
        b"\x03\x20\x03\xad\x00\x0b\0\0\x07\0\0\0\x07\0\0\0\x07\0\0\x0011.0.0\0",
        b"\0\x33\0\0",
        b"\0\x01\x03\x04\0\0\0\0\0\0\0\x07\0\0\0\x03\0\0\0\x25\0\x01\x19\x40",
        b"\x01\0\0\x40\x26\0\0\0\x03\0\0\0\x02\0\0\0OK\0\x03\0\0\0BF4\0\x06\0\0\x00157186\0",
        b"BZFS0221\0\0\x2cqg\0\x01\0\x18\0\x08\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\x08\0\x08\0\x08\0\x08\0\x08\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\x04qp\0\x08\0\x01",
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"clients\":1}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n[{\"name\":\"n\"}]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n[",
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
