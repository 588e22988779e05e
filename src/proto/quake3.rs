//! Quake 3 family: `getstatus` and `statusResponse` (docs/protocols.md).
//! DarkPlaces games (Xonotic, Nexuiz) use the same messages and add a team column.
//!
//! Only `getstatus` is sent: ioquake3 takes `getinfo` from the same bucket of ten. DarkPlaces answers it with
//! `infoResponse`, which has no players, if the list does not fit into a datagram.
//! The reply repeats our nonce as `challenge`. A server that answers twice without any challenge
//! is accepted by its address alone; a wrong challenge is never accepted.

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::infostring::{Infostring, split_at_line_end, without_final_zeros};
use super::nonce::Nonce;
use super::player_lines::{Family, PlayerLines, player_teams};
use crate::limits::PLAYERS_MAX;
use crate::model::{Completeness, Snapshot};

const HEADER: &[u8] = b"\xff\xff\xff\xffstatusResponse";
const HEADER_WITHOUT_LIST: &[u8] = b"\xff\xff\xff\xffinfoResponse";

/// ioquake3 builds the reply in `MAX_MSGLEN` bytes (`SV_Status`, sv_main.c) and
/// silently drops the player lines that do not fit.
const MAX_MSGLEN_BYTES: usize = 16_384;

/// Longest usual player line: two numbers of 11 characters, a team, a name of
/// 35 bytes, spaces and quotes. A reply that ends closer than this to the end of
/// the server's buffer may have lost a line.
const PLAYER_LINE_BYTES_MAX: usize = 80;

/// Points of a spectator of a DarkPlaces game.
const SPECTATOR_POINTS: i64 = -666;

/// One `getstatus` request, one reply.
#[derive(Clone, Debug)]
pub struct StatusQuery {
    nonce: Nonce,
    /// Arrival of the first reply without a challenge, Unix ms.
    unproven_ms: Option<i64>,
    authentication: Authentication,
}

/// Two replies without a challenge that are closer than this are copies of one: a resend is
/// later.
const RESEND_MS_MIN: i64 = 1_000;

impl StatusQuery {
    pub fn new(nonce: Nonce) -> Self {
        StatusQuery { nonce, unproven_ms: None, authentication: Authentication::Nonce }
    }

    /// Whether the server has now answered twice without a challenge.
    fn is_second_unproven(&mut self, t_ms: i64) -> bool {
        let first_ms = *self.unproven_ms.get_or_insert(t_ms);
        t_ms - first_ms >= RESEND_MS_MIN
    }
}

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        [b"\xff\xff\xff\xffgetstatus ", self.nonce.hex().as_bytes(), b"\n"].concat()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        if is_other_oob_message(bytes) {
            return Step::Ignore(IgnoreReason::UnexpectedMessage);
        }
        let snapshot = match read(t_ms, bytes, self.nonce) {
            Ok((snapshot, Echo::Right)) => snapshot,
            Ok((snapshot, Echo::Missing)) if self.is_second_unproven(t_ms) => {
                self.authentication = Authentication::Address;
                snapshot
            }
            Ok(_) => return Step::Ignore(IgnoreReason::WrongNonce),
            Err(reason) => return Step::Ignore(reason),
        };
        Step::Done(Box::new(snapshot))
    }

    fn authentication(&self) -> Authentication {
        self.authentication
    }

    fn details(&self, last_datagram: &[u8], level: DetailLevel) -> Details {
        let (infostring, lines) = infostring_and_lines(last_datagram).unwrap_or_default();
        let teams = player_teams(lines.unwrap_or_default());
        Details::from_pairs(Infostring::read(infostring).pairs(), level).with_player_teams(teams)
    }
}

/// `print`, `disconnect`: connectionless, but not a status.
fn is_other_oob_message(bytes: &[u8]) -> bool {
    let is_status = bytes.starts_with(HEADER) || bytes.starts_with(HEADER_WITHOUT_LIST);
    bytes.starts_with(b"\xff\xff\xff\xff") && bytes.len() > 4 && !is_status
}

/// Decodes a complete datagram, a `statusResponse` or an `infoResponse`.
///
/// Errors: another kind of datagram; another nonce.
pub fn decode(t_ms: i64, datagram: &[u8], nonce: Nonce) -> Result<Snapshot, IgnoreReason> {
    match read(t_ms, datagram, nonce)? {
        (snapshot, Echo::Right) => Ok(snapshot),
        _ => Err(IgnoreReason::WrongNonce),
    }
}

/// Whether a reply repeats the nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Right,
    Wrong,
    /// It has no challenge, or an empty one.
    Missing,
}

/// The infostring, and the player lines if they follow it whole. After that of an `infoResponse` is the rest of the list
/// that did not fit.
fn infostring_and_lines(datagram: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (body, has_list) = match datagram.strip_prefix(HEADER) {
        Some(body) => (body, true),
        None => (datagram.strip_prefix(HEADER_WITHOUT_LIST)?, false),
    };
    let (infostring, lines) = split_at_line_end(without_final_zeros(body.strip_prefix(b"\n").unwrap_or(body)));
    Some((infostring, lines.filter(|_| has_list)))
}

fn read(t_ms: i64, datagram: &[u8], nonce: Nonce) -> Result<(Snapshot, Echo), IgnoreReason> {
    let (infostring, lines) = infostring_and_lines(datagram).ok_or(IgnoreReason::NotAReply)?;
    let info = Infostring::read(infostring);
    let echo = echo(&info, nonce);
    let mut list = PlayerLines::read(lines.unwrap_or_default(), Family::Quake3);
    if are_scores_times(&info) {
        list.players.iter_mut().for_each(|p| p.points = p.points.filter(|&points| points == SPECTATOR_POINTS));
    }
    // An infostring without its line end is truncated.
    let cut = lines.is_none() || list.is_truncated || datagram.len() + PLAYER_LINE_BYTES_MAX > MAX_MSGLEN_BYTES;
    let announced = announced_players(&info);
    let missing = announced.is_some_and(|announced| announced as usize > list.players.len());
    let (completeness, count) = if cut || missing || list.unparsed > 0 {
        let seen = u32::try_from(list.players.len() + list.unparsed).unwrap_or(u32::MAX);
        // Bots that the server counts among its clients are not players.
        let count = announced.map(|announced| announced.saturating_sub(bots(&info)));
        (Completeness::Partial, count.or((!cut).then_some(seen)))
    } else {
        (Completeness::Full, None)
    };
    let snapshot = Snapshot {
        t_ms,
        game: info.game(&["gamename", "game", "fs_game", "gamedir"], "baseq3"),
        map: info.text(&["mapname", "map"]),
        hostname: info.text(&["sv_hostname", "hostname"]),
        slots: info.number(&["sv_maxclients", "maxclients"]).unwrap_or(0),
        players: list.players,
        completeness,
        count,
        // Bots are recognised by a ping of 0.
        bots: None,
    };
    Ok((snapshot, echo))
}

/// Whether a lower score is better: it is the time of a race. Xonotic names the scores of players after `::`, first the one
/// in the list, and marks those with `<`: `cts:0.8.6:P1:S9:F0:MXonotic::fastest<!!`.
fn are_scores_times(info: &Infostring) -> bool {
    let status = info.first_value(&["qcstatus"]).unwrap_or_default();
    let labels = memchr::memmem::find(status, b"::").map_or(&[][..], |at| &status[at + 2..]);
    labels.iter().take_while(|b| !b",:".contains(b)).any(|&b| b == b'<')
}

/// A mod may add its own `challenge`; ours may be at any position.
fn echo(info: &Infostring, nonce: Nonce) -> Echo {
    let nonce = nonce.hex();
    let mut echo = Echo::Missing;
    for (_, value) in info.pairs().filter(|(key, _)| key.eq_ignore_ascii_case(b"challenge")) {
        if value == nonce.as_bytes() {
            return Echo::Right;
        }
        if !value.is_empty() {
            echo = Echo::Wrong;
        }
    }
    echo
}

/// Number of players that the server reports, bots included: DarkPlaces' `clients`. Some mods
/// report humans only, `g_humanplayers`. This number may be less than the list contains, so it can
/// only show that lines are missing.
fn announced_players(info: &Infostring) -> Option<u32> {
    info.number(&["clients"]).max(info.number(&["g_humanplayers"])).filter(|&n| n as usize <= PLAYERS_MAX)
}

fn bots(info: &Infostring) -> u32 {
    if info.number(&["clients"]).is_some() { info.number(&["bots"]).unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::POINTS_ABS_MAX;

    const NONCE: Nonce = Nonce(0x0123_4567_89ab_cdef);

    fn reply(info: &str, lines: &str) -> Vec<u8> {
        let mut bytes = HEADER.to_vec();
        bytes.extend_from_slice(format!("\n\\challenge\\{}{info}\n{lines}", NONCE.hex()).as_bytes());
        bytes
    }

    fn read(info: &str, lines: &str) -> Snapshot {
        decode(5, &reply(info, lines), NONCE).unwrap()
    }

    #[test]
    fn team_column_is_shown_in_details() {
        let query = StatusQuery::new(NONCE);
        let lines = "10 20 5 \"^1red\"\n-666 0 0 \"watcher\"\n3 30 14 \"blue\"\n";
        let details = query.details(&reply("\\gamename\\Xonotic", lines), DetailLevel::Summary);
        assert_eq!((details.player_teams, details.rules), (vec!["5".into(), "0".into(), "14".into()], vec![]));
        let openarena = include_bytes!("../../tests/fixtures/openarena-six-bots.bin");
        let details = query.details(openarena, DetailLevel::Rules);
        assert!(details.player_teams.is_empty() && !details.rules.is_empty());
    }

    #[test]
    fn request_carries_the_nonce() {
        assert_eq!(StatusQuery::new(NONCE).request(), b"\xff\xff\xff\xffgetstatus 0123456789abcdef\n");
    }

    #[test]
    fn captured_openarena_reply_is_decoded() {
        let bytes = include_bytes!("../../tests/fixtures/openarena-six-bots.bin");
        let snapshot = decode(5, bytes, NONCE).unwrap();
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("baseoa", "oa_dm1"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("noname", 12));
        assert_eq!(snapshot.completeness, Completeness::Full);
        let players: Vec<_> = snapshot.players.iter().map(|p| (p.points.unwrap(), p.ping, p.name.as_str())).collect();
        assert_eq!(
            players,
            [
                (13, Some(0), "Cyber-Garg"),
                (14, Some(0), "Rai"),
                (10, Some(0), "Gargoyle"),
                (13, Some(0), "Penguin"),
                (9, Some(0), "Sorceress"),
                (9, Some(0), "Assassin")
            ]
        );
    }

    #[test]
    fn infostring_keys_ignore_case_and_empty_values_are_skipped() {
        let s = read("\\MapName\\q3dm17\\SV_HOSTNAME\\\\hostname\\h\\Sv_MaxClients\\16\\game\\cpma\\gamename\\", "");
        assert_eq!((s.map.as_str(), s.hostname.as_str(), s.slots, s.game.as_str()), ("q3dm17", "h", 16, "cpma"));
        assert_eq!((s.completeness, s.players.len(), s.t_ms), (Completeness::Full, 0, 5));
        // Warsow replies `\challenge\\` to a request without a challenge; ours has one.
        let warsow = b"\xff\xff\xff\xffstatusResponse\n\\challenge\\\\mapname\\wdm1\n";
        assert_eq!(decode(5, warsow, NONCE), Err(IgnoreReason::WrongNonce));
        for (info, game) in [
            ("", "baseq3"),
            ("\\fs_game\\osp", "osp"),
            ("\\gamedir\\x", "x"),
            ("\\gamename\\baseoa\\game\\mod", "baseoa"),
        ] {
            assert_eq!(read(info, "").game, game);
        }
    }

    #[test]
    fn bad_player_line_makes_the_snapshot_partial() {
        let list = |lines: String| {
            let s = read("", &lines);
            let players: Vec<_> =
                s.players.into_iter().map(|p| (p.points.unwrap(), p.ping, p.name.into_string())).collect();
            (players, s.completeness, s.count)
        };
        for (line, want) in [
            ("12 48 \"^1Visor\"", (12, Some(48), "^1Visor")),
            ("-3 999 \"\"", (-3, Some(999), "")),
            ("0 0 \"a \\b\\ \"c\" d\"", (0, Some(0), "a \\b\\ \"c\" d")),
            ("-666 23 2 \"^xF00Xon ^7x\"", (-666, Some(23), "^xF00Xon ^7x")),
            ("4 50 \"wsw\" 3", (4, Some(50), "wsw")),
            ("1.5 -1 \"half\"", (1, None, "half")),
            ("99999999999999999999 1 \"much\"", (POINTS_ABS_MAX, Some(1), "much")),
        ] {
            let (name, ping, points) = (want.2.to_owned(), want.1, want.0);
            assert_eq!(list(format!("{line}\n")), (vec![(points, ping, name)], Completeness::Full, None), "{line}");
        }
        for bad in ["x", "1 \"one\"", "1 2 three", "1 2 \"", "nan 2 \"n\"", "1 x \"n\""] {
            let (players, completeness, count) = list(format!("{bad}\n3 4 \"ok\"\n"));
            assert_eq!(players.len(), 1, "{bad}");
            assert_eq!((completeness, count), (Completeness::Partial, Some(2)), "{bad}");
        }
    }

    #[test]
    fn latin1_names_are_decoded() {
        let mut bytes = reply("\\sv_hostname\\caf", "");
        bytes.pop();
        bytes.extend_from_slice(b"\xe9\n1 2 \"\xfcber\"\n");
        let s = decode(0, &bytes, NONCE).unwrap();
        assert_eq!((s.hostname.as_str(), s.players[0].name.as_str()), ("café", "über"));
    }

    #[test]
    fn truncated_reply_is_partial() {
        // Incomplete last line: its name cannot be trusted, and more lines may follow.
        let s = read("", "1 2 \"whole\"\n3 4 \"cu");
        assert_eq!((s.players.len(), s.completeness, s.count), (1, Completeness::Partial, None));
        let s = read("", "1 2 \"whole\"\n3 4 \"perhaps\"");
        assert_eq!((s.players.len(), s.completeness, s.count), (1, Completeness::Partial, None));
        // Cut in the infostring.
        let mut bytes = reply("\\mapname\\q3", "");
        bytes.pop();
        let s = decode(0, &bytes, NONCE).unwrap();
        assert_eq!((s.map.as_str(), s.completeness, s.count), ("q3", Completeness::Partial, None));
        // Near the end of the server's buffer, complete lines may have been dropped.
        let line = format!("1 2 \"{}\"\n", "n".repeat(30));
        let many = read("", &line.repeat(450));
        assert_eq!((many.players.len(), many.completeness, many.count), (450, Completeness::Partial, None));
        assert_eq!(read("", &line.repeat(400)).completeness, Completeness::Full);
    }

    #[test]
    fn fewer_lines_than_announced_are_partial() {
        let s = read("\\clients\\3\\bots\\1", "1 2 \"a\"\n");
        assert_eq!((s.completeness, s.count), (Completeness::Partial, Some(2)));
        assert_eq!(read("\\clients\\1\\bots\\0", "1 2 \"a\"\n").completeness, Completeness::Full);
        assert_eq!(read("\\g_humanplayers\\0", "1 0 \"bot\"\n").completeness, Completeness::Full);
        let s = read("\\g_humanPlayers\\2", "1 2 \"a\"\n");
        assert_eq!((s.completeness, s.count), (Completeness::Partial, Some(2)));
    }

    #[test]
    fn times_of_races_are_no_points() {
        let points = |status: &str| {
            let s = read(&format!("\\qcstatus\\{status}"), "2534 20 \"a\"\n-666 30 \"b\"\n0 40 \"c\"\n");
            s.players.iter().map(|player| player.points).collect::<Vec<_>>()
        };
        assert_eq!(points("cts:git:P0:S9:F0:MXonotic::fastest<!!"), [None, Some(-666), None]);
        for status in [
            "dm:git:P0:S9:F0:MXonotic::score!!,deaths<",
            "rc:git:P0:S9:F0:MXonotic::laps!!,time<!",
            "ctf:git:P0:S9:F0:MXonotic::score!!:caps!!,time<:5:1:14:0",
            "fastest<!!",
        ] {
            assert_eq!(points(status), [Some(2534), Some(-666), Some(0)], "{status}");
        }
    }

    #[test]
    fn reply_without_a_list_that_does_not_fit_is_partial_with_a_count() {
        let reply = b"\xff\xff\xff\xffinfoResponse\n\\gamename\\Xonotic\\sv_maxclients\\32\\clients\\24\\bots\\2\
            \\mapname\\stormkeep\\hostname\\h\\challenge\\0123456789abcdef\nf\n1 2 \"rest\"\n";
        let mut query = StatusQuery::new(NONCE);
        let Step::Done(s) = query.handle_datagram(5, reply) else { panic!("not done") };
        assert_eq!((s.completeness, s.count, s.slots, s.players.len()), (Completeness::Partial, Some(22), 32, 0));
        assert_eq!((s.game.as_str(), s.map.as_str(), s.hostname.as_str()), ("Xonotic", "stormkeep", "h"));
        assert!(query.details(reply, DetailLevel::Summary).player_teams.is_empty());
    }

    #[test]
    fn long_reply_is_decoded_up_to_players_max() {
        let lines: String = (0..64).map(|i| format!("{i} 5 \"player number {i}\"\n")).collect();
        let s = read("\\sv_maxclients\\64", &lines);
        assert_eq!((s.players.len(), s.completeness), (64, Completeness::Full));
        assert_eq!((s.players[63].points, s.players[63].name.as_str()), (Some(63), "player number 63"));
        let s = read("", &"0 0 \"\"\n".repeat(1_500));
        assert_eq!(s.players.len(), PLAYERS_MAX);
        assert_eq!((s.completeness, s.count), (Completeness::Partial, Some(1_500)));
    }

    #[test]
    fn server_that_answers_twice_without_a_challenge_is_believed_by_its_address() {
        let warsow = b"\xff\xff\xff\xffstatusResponse\n\\challenge\\\\mapname\\wdm1\n1 2 \"n\"\n";
        let wrong = Step::Ignore(IgnoreReason::WrongNonce);
        let mut query = StatusQuery::new(NONCE);
        assert_eq!(query.handle_datagram(5_000, warsow), wrong);
        assert_eq!(query.handle_datagram(5_999, warsow), wrong, "a copy of the first");
        let Step::Done(snapshot) = query.handle_datagram(6_000, warsow) else { panic!("not believed") };
        assert_eq!((snapshot.map.as_str(), query.authentication()), ("wdm1", Authentication::Address));
        // A reply with another challenge than ours answers another client.
        let forged = b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0123\\mapname\\m\n";
        let mut query = StatusQuery::new(NONCE);
        assert!([0, 2_000, 4_000].iter().all(|&t_ms| query.handle_datagram(t_ms, forged) == wrong));
        assert!(matches!(query.handle_datagram(9, &reply("", "")), Step::Done(_)));
        assert_eq!(query.authentication(), Authentication::Nonce);
    }

    #[test]
    fn other_messages_and_wrong_nonces_are_ignored() {
        for (bytes, reason) in [
            (&b""[..], IgnoreReason::NotAReply),
            (b"\xff", IgnoreReason::NotAReply),
            (b"\xff\xff\xff\xff", IgnoreReason::NotAReply),
            (b"statusResponse\n", IgnoreReason::NotAReply),
            (b"\xff\xff\xff\xffprint\nbusy\n", IgnoreReason::UnexpectedMessage),
            (b"\xff\xff\xff\xffinfoResponse\n\\challenge\\0123456789abcdee\n", IgnoreReason::WrongNonce),
            (b"\xff\xff\xff\xffstatusResponse", IgnoreReason::WrongNonce),
            (b"\xff\xff\xff\xffstatusResponse\n\\challenge", IgnoreReason::WrongNonce),
            (b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0123456789abcdee\n", IgnoreReason::WrongNonce),
        ] {
            let mut status = StatusQuery::new(NONCE);
            assert_eq!(status.handle_datagram(0, bytes), Step::Ignore(reason), "{bytes:?}");
            assert_eq!(status.partial_snapshot(), None);
        }
    }

    proptest! {
        #[test]
        fn every_prefix_of_a_reply_is_ignored_or_partial(cut in 0usize..200) {
            let whole = reply("\\mapname\\m\\sv_maxclients\\8", "1 2 \"one\"\n3 4 \"two\"\n");
            prop_assert_eq!(decode(0, &whole, NONCE).unwrap().completeness, Completeness::Full);
            let cut = cut.min(whole.len() - 1);
            if let Ok(s) = decode(0, &whole[..cut], NONCE) {
                // Truncation between two lines cannot be detected; a size limit does not truncate there.
                let between = whole[..cut].ends_with(b"\n");
                prop_assert!(between || s.completeness != Completeness::Full);
            }
        }

        #[test]
        fn arbitrary_bytes_after_the_header_do_not_panic(info in ".{0,60}", rest in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = reply(&info, "");
            bytes.extend_from_slice(&rest);
            if let Ok(snapshot) = decode(0, &bytes, NONCE) {
                crate::proto::tests::check(&snapshot);
            }
        }
    }
}
