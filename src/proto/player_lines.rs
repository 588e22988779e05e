//! Player lines of the Quake 2 and Quake 3 families, `score ping "name"`.

use super::quake_text::quake_name;
use super::text::{player_name, points, short_text};
use crate::limits::{PLAYERS_MAX, POINTS_ABS_MAX};
use crate::model::Player;

/// They differ in the characters of names, and in what a second text of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Quake2,
    Quake3,
}

/// The player lines of a reply.
pub(super) struct PlayerLines {
    pub(super) players: Vec<Player>,
    /// Complete lines that could not be decoded, or exceed `PLAYERS_MAX`.
    pub(super) unparsed: usize,
    /// The last line has no line end.
    pub(super) is_truncated: bool,
}

impl PlayerLines {
    pub(super) fn read(lines: &[u8], family: Family) -> PlayerLines {
        let mut list = PlayerLines { players: Vec::new(), unparsed: 0, is_truncated: false };
        for line in lines.split_inclusive(|&b| b == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                list.is_truncated = true;
                // It shows that a player exists, but its name may be truncated.
                list.unparsed += 1;
                break;
            };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            match player(line, family) {
                Some(player) if list.players.len() < PLAYERS_MAX => list.players.push(player),
                _ => list.unparsed += 1,
            }
        }
        list
    }
}

/// The teams of the players that [`PlayerLines::read`] returns, in the same order.
pub(super) fn player_teams(lines: &[u8]) -> Vec<String> {
    // The family does not decide whether a line can be decoded.
    let is_player = |line: &&[u8]| player(line, Family::Quake3).is_some();
    let complete = lines.split_inclusive(|&b| b == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    let lines = complete.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(is_player);
    lines.take(PLAYERS_MAX).map(|line| short_text(team(line))).collect()
}

/// The column between the ping and the name (DarkPlaces), or the word after the name (Warsow).
fn team(line: &[u8]) -> &[u8] {
    let mut quotes = memchr::memchr_iter(b'"', line);
    let (Some(open), Some(close)) = (quotes.next(), quotes.next_back()) else { return &[] };
    let words = |text| <[u8]>::split(text, u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words(&line[..open]).nth(2).or_else(|| words(&line[close + 1..]).next()).unwrap_or_default()
}

/// `score ping "name"`. Xonotic has a team before the name, Warsow after it. The name may contain quotes, so it ends at the
/// last quote. FTE has the team as another text before the name, an extension of Call of Duty the player's number as one after
/// it, and Alien Arena (Quake 2) an address as one after it.
fn player(line: &[u8], family: Family) -> Option<Player> {
    let open = line.iter().position(|&b| b == b'"')?;
    let close = line.iter().rposition(|&b| b == b'"').filter(|&close| close > open)?;
    let texts = &line[open + 1..close];
    let name = match memchr::memmem::find(texts, b"\" \"") {
        None => texts,
        Some(end) if family == Family::Quake2 => &texts[..end],
        Some(end) if texts[end + 3..].iter().all(u8::is_ascii_digit) => &texts[..end],
        Some(end) => &texts[end + 3..],
    };
    let mut columns = std::str::from_utf8(&line[..open]).ok()?.split_ascii_whitespace();
    let score = score(columns.next()?)?;
    let ping: i32 = columns.next()?.parse().ok()?;
    Some(Player {
        name: match family {
            Family::Quake2 => quake_name(name),
            Family::Quake3 => player_name(name),
        },
        points: Some(points(score)),
        ping: (ping >= 0).then_some(ping),
        ..Player::default()
    })
}

#[cfg_attr(not(test), expect(clippy::cast_possible_truncation, reason = "the score is in the range of an i64"))]
fn score(text: &str) -> Option<i64> {
    if let Ok(score) = text.parse::<i64>() {
        return Some(score);
    }
    // Mods with times as scores send fractions, or more digits than an i64 has.
    let score: f64 = text.parse().ok().filter(|s: &f64| s.is_finite())?;
    Some(score.clamp(-(POINTS_ABS_MAX as f64), POINTS_ABS_MAX as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn team_is_before_or_after_the_name_and_belongs_to_its_player() {
        let lines = b"3 40 14 \"blue \"x\" one\"\n\nnonsense\n5 40 \"none\"\r\n-1 0 \"warsow\" 2\n7 8 5 \"cut\"";
        for texts in ["\"Bob\"", "\"Bob\" \"1234\"", "\"red\" \"Bob\""] {
            let list = PlayerLines::read(format!("5 30 {texts}\n").as_bytes(), Family::Quake3);
            assert_eq!(list.players[0].name, "Bob", "{texts}");
        }
        let list = PlayerLines::read(lines, Family::Quake3);
        let names: Vec<_> = list.players.iter().map(|player| player.name.as_str()).collect();
        assert_eq!(names, ["blue \"x\" one", "none", "warsow"]);
        assert_eq!(player_teams(lines), ["14", "", "2"]);
        assert!(player_teams(b"").is_empty());
    }
}
