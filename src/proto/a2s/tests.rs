//! Complete exchanges with Source and GoldSrc servers, byte for byte.

use super::*;
use crate::model::Player;

const CHALLENGE: &[u8] = b"\xff\xff\xff\xffA\x0b\xf3\x9a\x01";

fn info(players: u8, bots: u8) -> Vec<u8> {
    let mut bytes = b"\xff\xff\xff\xffI\x11Host\0de_dust2\0cstrike\0Counter-Strike: Source\0\xf0\x00".to_vec();
    bytes.extend_from_slice(&[players, 32, bots]);
    bytes.extend_from_slice(b"dl\x00\x011.0\0\x00");
    bytes
}

fn players(announced: u8, list: &[(&str, i32, f32)]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xff, 0xff, 0xff, b'D', announced];
    for (name, score, seconds) in list {
        bytes.push(0);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&score.to_le_bytes());
        bytes.extend_from_slice(&seconds.to_le_bytes());
    }
    bytes
}

fn done(step: Step) -> Snapshot {
    match step {
        Step::Done(snapshot) => *snapshot,
        other => panic!("not done: {other:?}"),
    }
}

/// The snapshot of a server that sends no challenge.
fn scan(info: &[u8], players: &[u8]) -> Snapshot {
    let mut query = A2sQuery::new();
    assert_eq!(query.handle_datagram(10, info), Step::Send);
    done(query.handle_datagram(20, players))
}

#[test]
fn player_query_reuses_the_challenge_of_info() {
    let mut query = A2sQuery::new();
    assert_eq!(query.request(), b"\xff\xff\xff\xffTSource Engine Query\0");
    assert_eq!(query.handle_datagram(1, CHALLENGE), Step::Send);
    assert_eq!(query.request(), b"\xff\xff\xff\xffTSource Engine Query\0\x0b\xf3\x9a\x01");
    assert_eq!(query.handle_datagram(2, &info(2, 0)), Step::Send);
    assert_eq!(query.request(), b"\xff\xff\xff\xffU\x0b\xf3\x9a\x01");
    let snapshot = done(query.handle_datagram(3, &players(2, &[("a", 5, 61.5), ("b", -2, f32::NAN)])));
    let player = |name: &str, points, connected_ms| Player {
        name: name.into(),
        points: Some(points),
        connected_ms,
        ..Player::default()
    };
    assert_eq!(
        snapshot,
        Snapshot {
            t_ms: 3,
            game: "cstrike".to_owned(),
            map: "de_dust2".to_owned(),
            hostname: "Host".to_owned(),
            slots: 32,
            players: vec![player("a", 5, Some(61_500)), player("b", -2, None)],
            completeness: Completeness::Full,
            count: Some(2),
            bots: Some(0),
        }
    );
}

#[test]
fn info_without_challenge_is_accepted() {
    let mut query = A2sQuery::new();
    assert_eq!(query.handle_datagram(1, &info(0, 0)), Step::Send);
    assert_eq!(query.request(), b"\xff\xff\xff\xffU\xff\xff\xff\xff");
    assert_eq!(query.handle_datagram(2, CHALLENGE), Step::Send);
    assert_eq!(query.request(), b"\xff\xff\xff\xffU\x0b\xf3\x9a\x01");
    assert_eq!(done(query.handle_datagram(3, &players(0, &[]))).completeness, Completeness::Full);
    assert_eq!(query.authentication(), Authentication::Challenge);
    // Nor does it want one for the list: anybody may have sent both.
    let mut query = A2sQuery::new();
    assert_eq!(query.handle_datagram(1, &info(0, 0)), Step::Send);
    assert_eq!(done(query.handle_datagram(2, &players(0, &[]))).completeness, Completeness::Full);
    assert_eq!(query.authentication(), Authentication::Address);
}

#[test]
fn challenges_beyond_the_limit_are_ignored() {
    let mut query = A2sQuery::new();
    let sent = (0..100).filter(|_| query.handle_datagram(1, CHALLENGE) == Step::Send).count();
    assert_eq!(sent, CHALLENGES_MAX as usize);
    assert_eq!(query.handle_datagram(1, CHALLENGE), Step::Ignore(IgnoreReason::TooManyChallenges));
    assert_eq!(query.partial_snapshot(), None);
}

#[test]
fn missing_player_reply_gives_partial_snapshot_with_human_count() {
    let mut query = A2sQuery::new();
    assert_eq!(query.partial_snapshot(), None);
    query.handle_datagram(10, &info(7, 3));
    let snapshot = query.partial_snapshot().unwrap();
    assert_eq!((snapshot.t_ms, snapshot.completeness), (10, Completeness::Partial));
    assert_eq!(snapshot.announced_players(), Some(4));
    assert_eq!(snapshot.map, "de_dust2");
}

#[test]
fn lost_fragment_gives_partial_snapshot() {
    let long: Vec<(String, i32, f32)> = (0..40).map(|i| (format!("player {i}"), i, 1.0)).collect();
    let list: Vec<_> = long.iter().map(|(n, s, t)| (n.as_str(), *s, *t)).collect();
    let whole = players(40, &list);
    let datagrams = fragments::tests::split_source(&whole, 5, 300);
    let mut query = A2sQuery::new();
    query.handle_datagram(1, &info(40, 0));
    for (t_ms, datagram) in datagrams.iter().enumerate().skip(1) {
        assert_eq!(query.handle_datagram(t_ms as i64, datagram), Step::Wait);
    }
    let last = datagrams.len() as i64 - 1;
    let snapshot = query.clone().partial_snapshot().unwrap();
    assert_eq!((snapshot.t_ms, snapshot.completeness, snapshot.count), (last, Completeness::Partial, Some(40)));
    // The missing fragment arrives after all.
    let snapshot = done(query.handle_datagram(99, &datagrams[0]));
    assert_eq!((snapshot.t_ms, snapshot.players.len(), snapshot.completeness), (99, 40, Completeness::Full));
}

#[test]
fn short_or_hidden_player_list_is_partial() {
    let one = [("a", 1, 1.0)];
    // Fewer entries than the header of the list announces.
    let snapshot = scan(&info(3, 1), &players(3, &one));
    assert_eq!((snapshot.players.len(), snapshot.completeness, snapshot.count), (1, Completeness::Partial, Some(3)));
    assert_eq!(snapshot.announced_players(), Some(2));
    // CS:GO with host_players_show 1.
    let snapshot = scan(&info(12, 0), &players(1, &[("Max Players", 32, 5_000.0)]));
    assert_eq!((snapshot.players.len(), snapshot.completeness, snapshot.count), (0, Completeness::Partial, Some(12)));
}

#[test]
fn short_a2s_list_is_partial() {
    let names: Vec<String> = (0..64).map(|n| format!("p{n}")).collect();
    for (announced, listed, want) in [
        (0, 0, Completeness::Full),
        (1, 0, Completeness::Partial),
        (2, 0, Completeness::Partial),
        (2, 1, Completeness::Full),
        (3, 0, Completeness::Partial),
        (10, 8, Completeness::Full),
        (10, 7, Completeness::Partial),
        (30, 27, Completeness::Full),
        (30, 26, Completeness::Partial),
        (64, 58, Completeness::Full),
        (64, 57, Completeness::Partial),
    ] {
        let list: Vec<_> = names[..listed].iter().map(|name| (name.as_str(), 1, 1.0)).collect();
        let snapshot = scan(&info(announced, 0), &players(listed as u8, &list));
        assert_eq!(snapshot.completeness, want, "{listed} of {announced}");
        assert_eq!((snapshot.count, snapshot.bots), (Some(announced.into()), Some(0)));
    }
}

#[test]
fn empty_list_is_whole_if_only_bots_are_announced() {
    for (bots, want) in [(0, Completeness::Partial), (1, Completeness::Partial), (2, Completeness::Full)] {
        let snapshot = scan(&info(2, bots), b"\xff\xff\xff\xffD\x00");
        assert_eq!((snapshot.completeness, snapshot.count), (want, Some(2)), "{bots}");
    }
}

#[test]
fn entries_are_marked_as_bots_only_when_all_are_bots() {
    let two = [("x", 1, 1.0), ("y", 2, 2.0)];
    let bots = |info: &[u8]| scan(info, &players(2, &two)).players.iter().filter(|p| p.bot).count();
    assert_eq!(bots(&info(2, 2)), 2);
    assert_eq!(bots(&info(2, 3)), 2);
    assert_eq!(bots(&info(2, 1)), 0);
    assert_eq!(bots(&info(2, 0)), 0);
    // A player joined between the two replies: bots and humans cannot be told apart.
    assert_eq!(bots(&info(1, 1)), 0);
}

#[test]
fn game_without_a_directory_is_that_of_the_application() {
    let without = |app: u16| {
        let head = b"\xff\xff\xff\xffI\x11Host\0map\0\0A mode of the game\0";
        [&head[..], &app.to_le_bytes(), b"\x01\x20\x00dl\x00\x011.0\0\x00"].concat()
    };
    for (app, game) in [(440, "tf"), (4_920, "naturalselection2"), (65_000, "A mode of the game")] {
        assert_eq!(scan(&without(app), &players(1, &[("a", 1, 1.0)])).game, game);
    }
}

#[test]
fn lists_without_names_or_scores_have_no_points() {
    let of_app = |app: u64| {
        let mut info = info(4, 0);
        *info.last_mut().unwrap() = 1; // only the game id follows
        info.extend_from_slice(&app.to_le_bytes());
        info
    };
    let points = |info: &[u8], list| scan(info, &players(4, list)).players.iter().map(|p| p.points).collect::<Vec<_>>();
    let (dayz, rust, csgo) = (of_app(221_100), of_app(252_490), of_app(730));
    assert_eq!(points(&dayz, &[("", 0, 60.0); 4]), [None; 4]);
    assert_eq!(points(&csgo, &[("", 0, 60.0); 4]), [None; 4]);
    assert_eq!(points(&rust, &[("named", 0, 60.0); 4]), [None; 4]);
    assert_eq!(points(&csgo, &[("named", 0, 60.0); 4]), [Some(0); 4]);
}

#[test]
fn list_of_more_than_255_players_goes_on_to_the_end() {
    let mut info = info(255, 0);
    *info.last_mut().unwrap() = 0x21;
    info.extend_from_slice(b"mp500,cp300\0");
    info.extend_from_slice(&252_490_u64.to_le_bytes());
    let list = [("n", 0, 1.0); 300];
    let snapshot = scan(&info, &players(255, &list));
    assert_eq!((snapshot.players.len(), snapshot.completeness), (300, Completeness::Full));
    let snapshot = scan(&info, &players(255, &list[..254]));
    assert_eq!((snapshot.players.len(), snapshot.completeness), (254, Completeness::Partial));
    let many = vec![("n", 0, 1.0); 1_500];
    assert_eq!(scan(&info, &players(255, &many)).players.len(), crate::limits::PLAYERS_MAX);
}

#[test]
fn proxy_for_spectators_is_not_asked_for_players() {
    let source = |kind: &[u8]| [&info(12, 0)[..56], kind, b"l\x00\x011.0\0\x00"].concat();
    let goldsrc = |kind: &[u8]| {
        [&b"\xff\xff\xff\xffm127.0.0.1:27015\0Old\0crossfire\0valve\0Half-Life\0\x0c\x10\x2f"[..], kind, b"l\0\0\0\0"]
            .concat()
    };
    for kind in [b"p", b"P"] {
        for info in [source(kind), goldsrc(kind)] {
            let mut query = A2sQuery::new();
            let snapshot = done(query.handle_datagram(3, &info));
            assert_eq!((snapshot.completeness, snapshot.count, snapshot.t_ms), (Completeness::Partial, Some(12), 3));
            assert!(snapshot.players.is_empty());
        }
    }
    for info in [source(b"d"), goldsrc(b"l")] {
        assert_eq!(A2sQuery::new().handle_datagram(3, &info), Step::Send);
    }
}

#[test]
fn goldsrc_double_info_reply_is_accepted() {
    let old = b"\xff\xff\xff\xffm127.0.0.1:27015\0Old\0crossfire\0valve\0Half-Life\0\x02\x10\x2fdl\x00\x00\x00\x00";
    let mut query = A2sQuery::new();
    assert_eq!(query.handle_datagram(1, old), Step::Send);
    assert_eq!(query.handle_datagram(2, &info(1, 0)), Step::Wait);
    let snapshot = done(query.handle_datagram(3, &players(1, &[("a", 1, 1.0)])));
    assert_eq!((snapshot.game.as_str(), snapshot.slots), ("cstrike", 32));
    // The list may also arrive before the newer format.
    let mut query = A2sQuery::new();
    query.handle_datagram(1, old);
    let snapshot = done(query.handle_datagram(3, &players(1, &[("a", 1, 1.0)])));
    assert_eq!((snapshot.game.as_str(), snapshot.map.as_str(), snapshot.slots), ("valve", "crossfire", 16));
}

#[test]
fn fragmented_info_reply_is_reassembled() {
    let mut query = A2sQuery::new();
    let whole = info(0, 0);
    let datagrams = fragments::tests::split_source(&whole, 1, 30);
    for datagram in &datagrams[..datagrams.len() - 1] {
        assert_eq!(query.handle_datagram(1, datagram), Step::Wait);
    }
    assert_eq!(query.handle_datagram(1, &datagrams[datagrams.len() - 1]), Step::Send);
}

#[test]
fn unexpected_datagrams_are_ignored_with_a_reason() {
    for (bytes, reason) in [
        (&b""[..], IgnoreReason::NotAReply),
        (b"\xff\xff", IgnoreReason::NotAReply),
        (b"\xff\xff\xff\xff", IgnoreReason::NotAReply),
        (b"\xff\xff\xff\xffZ", IgnoreReason::NotAReply),
        (b"\xff\xff\xff\xffA\x01", IgnoreReason::Malformed),
        (b"\xff\xff\xff\xffI", IgnoreReason::Malformed),
        (b"\xff\xff\xff\xffI\x11host", IgnoreReason::Malformed),
        (b"\xff\xff\xff\xffm", IgnoreReason::Malformed),
        (b"\xff\xff\xff\xffD\x00", IgnoreReason::UnexpectedMessage),
        (b"\xfe\xff\xff\xff", IgnoreReason::BadFragment),
        (b"\xfe\xff\xff\xff\x01\x00\x00\x00\x01", IgnoreReason::BadFragment),
        // Split replies of ten and eleven bytes.
        (b"\xff\xff\xff\xffstatusResponse\n", IgnoreReason::NotAReply),
    ] {
        let mut query = A2sQuery::new();
        assert_eq!(query.handle_datagram(0, bytes), Step::Ignore(reason), "{bytes:?}");
        assert_eq!(query.request(), A2sQuery::new().request());
    }
    let mut query = A2sQuery::new();
    query.handle_datagram(0, &info(1, 0));
    assert_eq!(query.handle_datagram(0, &info(1, 0)), Step::Ignore(IgnoreReason::UnexpectedMessage));
    assert_eq!(query.handle_datagram(0, b"\xff\xff\xff\xffD"), Step::Ignore(IgnoreReason::Malformed));
}

#[test]
fn reply_of_64_kib_is_decoded() {
    let name = "n".repeat(200);
    let list: Vec<_> = (0..255).map(|i| (name.as_str(), i, 1.0)).collect();
    let bytes = players(255, &list);
    assert!(bytes.len() > 50_000);
    assert_eq!(scan(&info(255, 0), &bytes).players.len(), 255);
}
