//! Which entries of a snapshot count, and under which name (RULES section 2).

use rustc_hash::FxHashSet;

use crate::model::name::{ColourCodes, normalise};
use crate::model::server::Entry;
use crate::model::snapshot::Player;

/// Settings of RULES section 2.
#[derive(Clone, Debug, PartialEq)]
pub struct NameRules {
    /// Normalised names that nobody is known by.
    pub ignore: FxHashSet<String>,
    pub count_bots: bool,
    pub ping_zero_is_bot: bool,
    /// Games, in lower case, whose names carry `^xRGB` colours.
    pub darkplaces_games: FxHashSet<String>,
}

impl Default for NameRules {
    fn default() -> Self {
        let set = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        NameRules {
            ignore: set(&["UnnamedPlayer", "unnamed", "Player", "player", "unconnected", "nameless tee"]),
            count_bots: false,
            ping_zero_is_bot: true,
            darkplaces_games: set(&["nexuiz", "xonotic"]),
        }
    }
}

/// How a server's protocol and game write names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameFamily {
    pub codes: ColourCodes,
    /// Quake 3 family: a ping of 0 marks a bot.
    pub ping_tells_bots: bool,
}

impl NameRules {
    pub fn family(&self, scheme: &str, quake3_family: bool, game: &str) -> NameFamily {
        let darkplaces = || scheme == "darkplaces" || self.darkplaces_games.contains(&game.to_ascii_lowercase());
        let codes = match quake3_family {
            false => ColourCodes::None,
            true if darkplaces() => ColourCodes::DarkPlaces,
            true => ColourCodes::Quake3,
        };
        NameFamily { codes, ping_tells_bots: quake3_family }
    }

    fn is_bot(&self, player: &Player, family: NameFamily) -> bool {
        player.bot || (family.ping_tells_bots && self.ping_zero_is_bot && player.ping == Some(0))
    }
}

/// The entries of a list that count, in its order, and who of them is usable.
#[derive(Debug, Default)]
pub struct Screened {
    /// Bots left out (unless they count). No presence yet.
    pub entries: Vec<Entry>,
    /// For each entry: its name is not empty, not ignored, and stands once.
    pub usable: Vec<bool>,
    /// Indices of `entries` in order of name.
    pub by_name: Vec<u16>,
}

/// Screens a player list of at most [`crate::limits::PLAYERS_MAX`] entries.
pub fn screen(players: Vec<Player>, rules: &NameRules, family: NameFamily) -> Screened {
    let mut entries = Vec::with_capacity(players.len());
    for player in players {
        if !rules.count_bots && rules.is_bot(&player, family) {
            continue;
        }
        let name = normalise(&player.name, family.codes);
        let display = if name == player.name { String::new() } else { player.name };
        entries.push(Entry { display, name, points: player.points, ping: player.ping, presence: None });
    }
    let by_name = order_by_name(&entries);
    let mut usable: Vec<bool> = entries.iter().map(|e| !e.name.is_empty() && !rules.ignore.contains(&e.name)).collect();
    for run in runs_of_one_name(&entries, &by_name) {
        if run.len() > 1 {
            for &i in run {
                usable[usize::from(i)] = false;
            }
        }
    }
    Screened { entries, usable, by_name }
}

/// Indices of the entries in order of name.
pub fn order_by_name(entries: &[Entry]) -> Vec<u16> {
    let mut order: Vec<u16> = (0..entries.len() as u16).collect();
    order.sort_unstable_by(|&a, &b| entries[usize::from(a)].name.cmp(&entries[usize::from(b)].name));
    order
}

fn runs_of_one_name<'a>(entries: &'a [Entry], by_name: &'a [u16]) -> impl Iterator<Item = &'a [u16]> {
    by_name.chunk_by(|&a, &b| entries[usize::from(a)].name == entries[usize::from(b)].name)
}

/// Pairs (index in prev, index in cur) of the names that stand once in both,
/// usable or not, in order of name.
pub fn in_common(prev: &[Entry], cur: &[Entry], cur_by_name: &[u16]) -> Vec<(u16, u16)> {
    let prev_by_name = order_by_name(prev);
    let mut pairs = Vec::with_capacity(prev.len().min(cur.len()));
    let mut left = runs_of_one_name(prev, &prev_by_name).peekable();
    let mut right = runs_of_one_name(cur, cur_by_name).peekable();
    while let (Some(p), Some(c)) = (left.peek(), right.peek()) {
        match prev[usize::from(p[0])].name.cmp(&cur[usize::from(c[0])].name) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                if p.len() == 1 && c.len() == 1 {
                    pairs.push((p[0], c[0]));
                }
                left.next();
                right.next();
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(name: &str, ping: i32, bot: bool) -> Player {
        Player { name: name.to_owned(), points: 1, ping: Some(ping), connected_ms: None, bot }
    }

    #[test]
    fn screening() {
        let rules = NameRules::default();
        let q3 = rules.family("quake3", true, "baseq3");
        let list = || {
            vec![
                player("^1Visor", 48, false),
                player("Bones", 0, false),
                player("Sarge", 48, true),
                player("UnnamedPlayer", 10, false),
                player("twin", 10, false),
                player("^2twin", 10, false),
                player("^7", 10, false),
            ]
        };
        let got = screen(list(), &rules, q3);
        let seen: Vec<_> = got.entries.iter().zip(&got.usable).map(|(e, u)| (e.name.as_str(), *u)).collect();
        assert_eq!(seen, [("Visor", true), ("UnnamedPlayer", false), ("twin", false), ("twin", false), ("", false)]);
        assert_eq!(got.entries[0].display(), "^1Visor");

        let source = rules.family("source", false, "cstrike");
        let got = screen(list(), &rules, source);
        assert_eq!(got.entries.len(), 6, "ping 0 marks no bot there");
        assert_eq!(got.entries[0].name, "^1Visor");
    }

    #[test]
    fn names_that_stand_once_in_both() {
        let rules = NameRules::default();
        let family = rules.family("source", false, "x");
        let list = |names: &[&str]| screen(names.iter().map(|n| player(n, 1, false)).collect(), &rules, family);
        let prev = list(&["b", "a", "twin", "", "c", "twice"]);
        let cur = list(&["c", "twin", "twin", "a", "d", "", "twice"]);
        let pairs = in_common(&prev.entries, &cur.entries, &cur.by_name);
        assert_eq!(pairs, [(3, 5), (1, 3), (4, 0), (5, 6)]);
    }
}
