//! QuakeWorld: `status` and its reply.
//!
//! The reply has no nonce. A long one is sent as several datagrams without number or end mark:
//! the first contains the infostring, and each is filled nearly to the size of a network packet
//! before the next one begins. Some servers (FTEQW, qwsv) send a long reply as one larger datagram.
//! The last datagram may be a full one by chance: so a reply is complete, too, when the reply to a
//! repeated request has as many datagrams.

use super::details::{DetailLevel, Details};
use super::exchange::{Authentication, Exchange, IgnoreReason, Step};
use super::infostring::{Infostring, split_at_line_end, without_final_zeros};
use super::quake_text::quake_name;
use super::text::points;
use crate::limits::PLAYERS_MAX;
use crate::model::{Completeness, Player, Snapshot};

/// Flags: 1 infostring, 2 players, 4 spectators, 16 teams.
const REQUEST: &[u8] = b"\xff\xff\xff\xffstatus 23\n";
const HEADER: &[u8] = b"\xff\xff\xff\xffn";

/// A datagram that is shorter than this had space for another player line, so it is the last.
/// Servers (mvdsv, ezquake) send when 1,400 bytes are reached; a line has at most 160.
const FULL_DATAGRAM_BYTES_MIN: usize = 1_200;

/// A datagram that is longer than this is the whole reply: a server that fills several sends none.
const FULL_DATAGRAM_BYTES_MAX: usize = 1_460;

/// Most datagrams of one reply. A server has at most 32 players and 32 spectators.
const DATAGRAMS_MAX: usize = 8;

/// The ping of a bot of mvdsv.
const MVDSV_BOT_PING: i32 = 10;

/// Points that a server reports for a spectator.
const SPECTATOR_POINTS: i64 = -9_999;

/// One `status` request and its reply.
#[derive(Clone, Debug, Default)]
pub struct StatusQuery {
    /// The datagram with the infostring, without its header.
    first: Option<Vec<u8>>,
    /// The other datagrams, without their headers, in order of arrival.
    others: Vec<Vec<u8>>,
    /// How many others the reply before had.
    others_before: Option<usize>,
    last_received_ms: i64,
}

impl StatusQuery {
    pub fn new() -> Self {
        StatusQuery::default()
    }

    fn player_lines(&self) -> PlayerLines<'_> {
        let (_, lines) = split_at_line_end(self.first.as_deref().unwrap_or_default());
        let mut list = PlayerLines::default();
        list.add(lines.unwrap_or_default());
        for datagram in &self.others {
            list.add(datagram);
        }
        list
    }

    fn snapshot(&self, completeness: Completeness) -> Option<Snapshot> {
        let (infostring, lines) = split_at_line_end(self.first.as_ref()?);
        let info = Infostring::read(infostring);
        let mut list = self.player_lines();
        if info.first_value(&["*version"]).is_some_and(|version| version.starts_with(b"MVDSV")) {
            let bots = list.players.iter_mut().filter(|p| p.ping == Some(MVDSV_BOT_PING) && !p.spectator);
            bots.for_each(|bot| bot.bot = true);
        }
        let is_whole = lines.is_some() && list.unparsed == 0;
        let completeness = if is_whole { completeness } else { Completeness::Partial };
        Some(Snapshot {
            t_ms: self.last_received_ms,
            game: info.game(&["*gamedir", "gamedir"], "qw"),
            map: info.text(&["map"]),
            hostname: quake_name(info.first_value(&["hostname"]).unwrap_or_default()).into_string(),
            slots: info.number(&["maxclients"]).unwrap_or(0),
            players: list.players,
            completeness,
            count: None,
            bots: None,
        })
    }
}

impl Exchange for StatusQuery {
    fn request(&self) -> Vec<u8> {
        REQUEST.to_vec()
    }

    fn handle_datagram(&mut self, t_ms: i64, bytes: &[u8]) -> Step {
        let Some(body) = bytes.strip_prefix(HEADER) else {
            let reason = match bytes.starts_with(b"\xff\xff\xff\xff") {
                true => IgnoreReason::UnexpectedMessage,
                false => IgnoreReason::NotAReply,
            };
            return Step::Ignore(reason);
        };
        let body = without_final_zeros(body);
        if body.is_empty() {
            return Step::Ignore(IgnoreReason::Malformed);
        }
        let is_first = body.starts_with(b"\\");
        if is_first {
            // The reply to a repeated request replaces the one before it.
            if self.first.is_some() {
                self.others_before = Some(self.others.len());
                self.others.clear();
            }
            self.first = Some(body.to_vec());
        } else if self.others.iter().any(|known| known == body) {
            return Step::Ignore(IgnoreReason::UnexpectedMessage);
        } else if self.others.len() >= DATAGRAMS_MAX {
            return Step::Ignore(IgnoreReason::TooLarge);
        } else {
            self.others.push(body.to_vec());
        }
        self.last_received_ms = t_ms;
        let is_last = !(FULL_DATAGRAM_BYTES_MIN..=FULL_DATAGRAM_BYTES_MAX).contains(&bytes.len())
            || self.others.iter().any(|other| other.len() + HEADER.len() < FULL_DATAGRAM_BYTES_MIN);
        match is_last.then(|| self.snapshot(Completeness::Full)).flatten() {
            Some(snapshot) => Step::Done(Box::new(snapshot)),
            None => Step::Wait,
        }
    }

    fn authentication(&self) -> Authentication {
        Authentication::Address
    }

    fn details(&self, _last_datagram: &[u8], level: DetailLevel) -> Details {
        let (infostring, _) = split_at_line_end(self.first.as_deref().unwrap_or_default());
        let teams = self.player_lines().teams.into_iter().map(|team| quake_name(team).into_string()).collect();
        Details::from_pairs(Infostring::read(infostring).pairs(), level).with_player_teams(teams)
    }

    fn partial_snapshot(&mut self) -> Option<Snapshot> {
        // Nearly always the time for more has passed.
        self.snapshot(Completeness::full_if(self.others_before == Some(self.others.len())))
    }
}

#[derive(Default)]
struct PlayerLines<'a> {
    players: Vec<Player>,
    /// One for each player, empty for none.
    teams: Vec<&'a [u8]>,
    /// Lines that could not be decoded, or exceed `PLAYERS_MAX`.
    unparsed: usize,
}

impl<'a> PlayerLines<'a> {
    fn add(&mut self, lines: &'a [u8]) {
        // The server prints a player's team and the line end separately, so a datagram may begin
        // with them: the line that they end is complete without them.
        let lines = match lines.starts_with(b" \"") {
            true => {
                let (end, lines) = split_at_line_end(lines);
                // The line that it ends is usually the last one before.
                if let Some(team) = self.teams.last_mut().filter(|team| team.is_empty()) {
                    *team = quoted(end).unwrap_or_default();
                }
                lines.unwrap_or_default()
            }
            false => lines,
        };
        for line in lines.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            match player(line) {
                Some((player, team)) if self.players.len() < PLAYERS_MAX => {
                    self.players.push(player);
                    self.teams.push(team);
                }
                _ => self.unparsed += 1,
            }
        }
    }
}

/// `userid frags minutes ping "name" "skin" top bottom "team"`. A spectator has `S` or -9999 as
/// frags, a negative ping, and `\s\` before the name; a bot of FTE has `BOT:` there. Returns the team, too; empty for none.
fn player(line: &[u8]) -> Option<(Player, &[u8])> {
    let open = line.iter().position(|&b| b == b'"')?;
    let mut columns = std::str::from_utf8(&line[..open]).ok()?.split_ascii_whitespace();
    let _userid: i32 = columns.next()?.parse().ok()?;
    let frags = columns.next()?;
    let minutes: i64 = columns.next()?.parse().ok()?;
    let ping: i32 = columns.next()?.parse().ok()?;
    let rest = &line[open + 1..];
    // A name may contain a quote; the skin after it begins with one.
    let close = memchr::memmem::find(rest, b"\" \"").or_else(|| rest.iter().position(|&b| b == b'"'))?;
    let name = &rest[..close];
    let (marked_name, bot_name) = (name.strip_prefix(b"\\s\\"), name.strip_prefix(b"BOT:"));
    let frags: Option<i64> = if frags == "S" { None } else { Some(frags.parse().ok()?) };
    let spectator = marked_name.is_some() || frags.is_none_or(|frags| frags == SPECTATOR_POINTS);
    let player = Player {
        name: quake_name(marked_name.or(bot_name).unwrap_or(name)),
        points: frags.map(points).filter(|_| !spectator),
        ping: Some(ping.saturating_abs()),
        connected_ms: u64::try_from(minutes).ok().and_then(|minutes| minutes.checked_mul(60_000)),
        bot: bot_name.is_some(),
        spectator,
    };
    Some((player, team(&rest[close + 1..]).unwrap_or_default()))
}

/// The team in ` "skin" top bottom "team"`.
fn team(after_name: &[u8]) -> Option<&[u8]> {
    let skin = quoted(after_name)?;
    let open = memchr::memchr(b'"', after_name)?;
    quoted(after_name.get(open + skin.len() + 2..)?)
}

/// The text between the first two quotes.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    let mut quotes = memchr::memchr_iter(b'"', text);
    let (open, close) = (quotes.next()?, quotes.next()?);
    Some(&text[open + 1..close])
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "\\maxclients\\8\\map\\dm6\\hostname\\a host\\*gamedir\\ktx\\*version\\MVDSV 0.36\n";

    fn datagram(body: &str) -> Vec<u8> {
        [HEADER, body.as_bytes()].concat()
    }

    fn line(number: usize) -> String {
        format!("{number} {} 3 40 \"player {number:04} {}\" \"\" 4 4 \"red\"\n", number * 2, "n".repeat(60))
    }

    fn lines(numbers: std::ops::Range<usize>) -> String {
        numbers.map(line).collect()
    }

    fn done(step: Step) -> Snapshot {
        match step {
            Step::Done(snapshot) => *snapshot,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_datagram_is_the_whole_reply() {
        let mut query = StatusQuery::new();
        let body = format!(
            "{INFO}12 25 14 38 \"\u{7f}Milton\" \"base\" 13 0 \"red\"\n13 -9999 2 -66 \"\\s\\watcher\" \"\" 0 0 \"\"\n\
             14 S 1 12 \"other\" \"\" 0 0\n\0"
        );
        let snapshot = done(query.handle_datagram(7, &datagram(&body)));
        assert_eq!((snapshot.game.as_str(), snapshot.map.as_str()), ("ktx", "dm6"));
        assert_eq!((snapshot.hostname.as_str(), snapshot.slots), ("a host", 8));
        assert_eq!((snapshot.completeness, snapshot.t_ms), (Completeness::Full, 7));
        let players: Vec<_> =
            snapshot.players.iter().map(|p| (p.name.as_str(), p.points, p.ping, p.spectator)).collect();
        assert_eq!(
            players,
            [
                ("_Milton", Some(25), Some(38), false),
                ("watcher", None, Some(66), true),
                ("other", None, Some(12), true)
            ]
        );
        assert_eq!(snapshot.players[0].connected_ms, Some(14 * 60_000));
        assert_eq!(query.details(b"", DetailLevel::Summary).player_teams, ["red", "", ""]);
    }

    #[test]
    fn bots_are_marked_by_their_name_or_their_ping() {
        let bots = |version: &str| {
            let lines = "1 5 3 10 \"frogbot\" \"\" 0 0 \"\"\n2 5 3 11 \"human\" \"\" 0 0 \"\"\n\
                3 -9999 3 -10 \"\\s\\near\" \"\" 0 0 \"\"\n4 5 3 30 \"BOT:Sarge\" \"\" 0 0 \"\"\n";
            let reply = datagram(&format!("\\map\\dm6\\*version\\{version}\n{lines}"));
            let snapshot = done(StatusQuery::new().handle_datagram(7, &reply));
            snapshot.players.into_iter().filter(|p| p.bot).map(|p| p.name.into_string()).collect::<Vec<_>>()
        };
        assert_eq!(bots("MVDSV 0.36"), ["frogbot", "Sarge"]);
        assert_eq!(bots("FTE 5.64"), ["Sarge"]);
    }

    #[test]
    fn long_reply_is_complete_with_its_short_datagram_in_any_order() {
        let first = datagram(&format!("{INFO}{}", lines(0..12)));
        let second = datagram(&lines(12..20));
        assert!(first.len() >= FULL_DATAGRAM_BYTES_MIN && second.len() < FULL_DATAGRAM_BYTES_MIN);
        for order in [[&first, &second], [&second, &first]] {
            let mut query = StatusQuery::new();
            assert_eq!(query.handle_datagram(1, order[0]), Step::Wait);
            let snapshot = done(query.handle_datagram(2, order[1]));
            assert_eq!((snapshot.players.len(), snapshot.completeness), (20, Completeness::Full));
        }
    }

    #[test]
    fn long_reply_without_its_end_is_partial() {
        let mut query = StatusQuery::new();
        assert_eq!(query.partial_snapshot(), None);
        let first = datagram(&format!("{INFO}{}", lines(0..12)));
        assert_eq!(query.handle_datagram(1, &first), Step::Wait);
        let snapshot = query.partial_snapshot().unwrap();
        assert_eq!((snapshot.players.len(), snapshot.completeness), (12, Completeness::Partial));
        // The reply to a repeated request does not add its players again, and shows that there are no others.
        assert_eq!(query.handle_datagram(2, &first), Step::Wait);
        let snapshot = query.partial_snapshot().unwrap();
        assert_eq!((snapshot.players.len(), snapshot.completeness), (12, Completeness::Full));
        // One of them has lost a datagram.
        assert_eq!(query.handle_datagram(3, &first), Step::Wait);
        assert_eq!(query.handle_datagram(3, &datagram(&lines(12..25))), Step::Wait);
        assert_eq!(query.partial_snapshot().unwrap().completeness, Completeness::Partial);
        let large = datagram(&format!("{INFO}{}", lines(0..16)));
        let snapshot = done(StatusQuery::new().handle_datagram(1, &large));
        assert_eq!((large.len() > FULL_DATAGRAM_BYTES_MAX, snapshot.completeness), (true, Completeness::Full));
    }

    #[test]
    fn line_may_end_in_the_next_datagram() {
        for (first_end, second_start) in [("", " \"red\"\n"), (" \"red\"", "\n")] {
            let mut query = StatusQuery::new();
            let first = datagram(&format!("{INFO}{}5 6 7 8 \"name\" \"skin\" 1 2{first_end}", lines(0..12)));
            assert_eq!(query.handle_datagram(1, &first), Step::Wait);
            let snapshot = done(query.handle_datagram(2, &datagram(&format!("{second_start}{}", lines(12..14)))));
            assert_eq!((snapshot.players.len(), snapshot.completeness), (15, Completeness::Full), "{second_start:?}");
            assert_eq!((snapshot.players[12].name.as_str(), snapshot.players[12].points), ("name", Some(6)));
            let teams = query.details(b"", DetailLevel::Summary).player_teams;
            let team_is_sent = !first_end.is_empty() || second_start.contains("red");
            assert_eq!((teams.len(), teams[12] == "red"), (15, team_is_sent), "{teams:?}");
        }
    }

    #[test]
    fn host_name_is_in_the_quake_character_set() {
        let mut query = StatusQuery::new();
        let reply = [HEADER, b"\\hostname\\\x10\xE1\xE2\x11 \x13\n"].concat();
        assert_eq!(done(query.handle_datagram(1, &reply)).hostname, "[ab] 1");
    }

    #[test]
    fn infostring_without_line_end_is_partial() {
        let mut query = StatusQuery::new();
        assert_eq!(query.handle_datagram(1, &datagram("\0")), Step::Ignore(IgnoreReason::Malformed));
        let snapshot = done(query.handle_datagram(1, &datagram("\\map\\dm")));
        assert_eq!((snapshot.map.as_str(), snapshot.completeness), ("dm", Completeness::Partial));
    }

    #[test]
    fn line_that_cannot_be_decoded_makes_the_snapshot_partial() {
        for bad in ["x", "1 2 3 \"n\"", "1 x 3 4 \"n\" \"\" 0 0", "1 2 3 4 \"open"] {
            let mut query = StatusQuery::new();
            let snapshot = done(query.handle_datagram(1, &datagram(&format!("{INFO}{bad}\n{}", line(1)))));
            assert_eq!((snapshot.players.len(), snapshot.completeness), (1, Completeness::Partial), "{bad}");
        }
    }

    #[test]
    fn other_messages_are_ignored() {
        let mut query = StatusQuery::new();
        assert_eq!(query.handle_datagram(0, b"\xff\xff\xff\xffprint\n"), Step::Ignore(IgnoreReason::UnexpectedMessage));
        assert_eq!(query.handle_datagram(0, b"n\\map\\dm6"), Step::Ignore(IgnoreReason::NotAReply));
        assert_eq!(query.handle_datagram(0, b""), Step::Ignore(IgnoreReason::NotAReply));
        assert_eq!(query.partial_snapshot(), None);
    }
}
