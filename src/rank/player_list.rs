//! Which entries of a snapshot count, and under which name (RULES section 2).

use std::cmp::Ordering;
use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use crate::model::name::{ColourCodes, Name, is_plain, normalise_name};
use crate::model::server::PlayerEntry;
use crate::model::snapshot::Player;
use crate::rank::screen::ScreenRules;

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
    pub zero_ping_is_bot: bool,
    /// Whether spectators are told from players (RULES section 14.5).
    pub spectators: bool,
    /// Points that mark a spectator, besides the protocol's own mark.
    pub spectator_points: Option<i64>,
}

impl NameFamily {
    fn is_spectator(&self, player: &Player) -> bool {
        self.spectators && (player.spectator || (player.points.is_some() && player.points == self.spectator_points))
    }
}

impl NameRules {
    /// How a server writes names, and which of its entries are spectators.
    pub fn family(&self, screen: &ScreenRules, scheme: &str, quake3_family: bool, game: &str) -> NameFamily {
        let listed = self.darkplaces_games.iter().any(|listed| listed.eq_ignore_ascii_case(game));
        let codes = match quake3_family {
            false => ColourCodes::None,
            true if listed || scheme == "darkplaces" => ColourCodes::DarkPlaces,
            true => ColourCodes::Quake3,
        };
        NameFamily {
            codes,
            zero_ping_is_bot: quake3_family,
            spectators: screen.enabled,
            spectator_points: screen.spectator_points(scheme, game, listed),
        }
    }

    /// Whether an entry is a bot's that is left out.
    pub fn excludes(&self, player: &Player, family: NameFamily) -> bool {
        !self.count_bots && self.is_bot(player, family)
    }

    /// Whether an entry is a bot's, by its mark or its ping.
    pub fn is_bot(&self, player: &Player, family: NameFamily) -> bool {
        player.bot || (family.zero_ping_is_bot && self.ping_zero_is_bot && player.ping == Some(0))
    }
}

/// The entries of a list that count, in its order, and which of them are usable.
#[derive(Debug, Default)]
pub struct PlayerList {
    /// Bots left out (unless they count). No presence yet.
    pub entries: Vec<PlayerEntry>,
    /// For each entry: it is no spectator's, and its name is not empty, not ignored,
    /// and in the list once, spectators included.
    pub usable: Vec<bool>,
    pub by_name: NameIndex,
    /// The list before has the same names at the same places, and each stands once.
    same_unique_names: bool,
}

/// The list before, and how it was read. Mostly the next one names the same players
/// at the same places: what was found out about a name is then not found out again.
#[derive(Debug)]
pub struct PreviousList<'l> {
    /// Texts that the next list has, too, are taken from here, and its own left in
    /// their place: a long name then stays where it is, and the other goes at once.
    pub entries: &'l mut [PlayerEntry],
    pub by_name: &'l NameIndex,
    pub family: NameFamily,
}

/// So many entries of the list before may have gone between two that stayed for
/// their names to be found without reading them anew.
const LOOKAHEAD: usize = 2;

/// The entries of a list, equal names beside each other. In an order that tells
/// names apart by a number, and by their text only where the numbers are equal:
/// comparing texts was half of the screening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameIndex(Vec<Place>);

/// Where a name stands: its mark, then 16 bits of index. The mark is equal for
/// equal names, and hardly ever for others, unless someone makes names to that
/// end.
type Place = u64;

fn index(place: Place) -> usize {
    usize::from(place as u16)
}

fn order(a: Place, of_a: &[PlayerEntry], b: Place, of_b: &[PlayerEntry]) -> Ordering {
    (a >> 16).cmp(&(b >> 16)).then_with(|| of_a[index(a)].name.cmp(&of_b[index(b)].name))
}

fn name_hash(name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish() & !0xFFFF
}

impl NameIndex {
    /// Of at most [`crate::limits::QUERY_PLAYERS_MAX`] entries.
    pub fn of(entries: &[PlayerEntry]) -> NameIndex {
        NameIndex::marked(entries, name_hash)
    }

    fn marked(entries: &[PlayerEntry], mark: impl Fn(&str) -> u64) -> NameIndex {
        let mut places: Vec<Place> =
            entries.iter().zip(0_u16..).map(|(entry, index)| mark(&entry.name) | Place::from(index)).collect();
        places.sort_unstable();
        for alike in places.chunk_by_mut(|a, b| a >> 16 == b >> 16).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by(|&a, &b| order(a, entries, b, entries).then(a.cmp(&b)));
        }
        NameIndex(places)
    }

    /// The places of the first name at or behind `at`.
    fn run(&self, at: usize, entries: &[PlayerEntry]) -> &[Place] {
        let Some((&first, rest)) = self.0.get(at..).and_then(<[Place]>::split_first) else { return &[] };
        let more = rest.iter().take_while(|&&place| order(first, entries, place, entries).is_eq()).count();
        &self.0[at..=at + more]
    }
}

/// Reads a player list of at most [`crate::limits::QUERY_PLAYERS_MAX`] entries. `before`:
/// the list before, if there is one.
pub fn read_list(
    players: Vec<Player>,
    rules: &NameRules,
    family: NameFamily,
    before: Option<PreviousList<'_>>,
) -> PlayerList {
    let mut before = before.filter(|before| before.family == family);
    let mut same = before.is_some();
    let mut at = 0;
    let mut entries = Vec::with_capacity(players.len());
    for player in players {
        if rules.excludes(&player, family) {
            continue;
        }
        let spectator = family.is_spectator(&player);
        let old = before.as_mut().map_or(&mut [][..], |before| &mut before.entries[at..]);
        let known = old.iter().take(LOOKAHEAD + 1).position(|entry| entry.display() == player.name);
        same &= known == Some(0);
        let (name, display) = match known {
            Some(gone) => {
                at += gone + 1;
                let entry = &mut old[gone];
                match entry.display.is_empty() {
                    true => (std::mem::replace(&mut entry.name, player.name), Name::default()),
                    false => (entry.name.clone(), std::mem::replace(&mut entry.display, player.name)),
                }
            }
            None if is_plain(&player.name, family.codes) => (player.name, Name::default()),
            None => match normalise_name(&player.name, family.codes) {
                name if name == player.name => (name, Name::default()),
                name => (name, player.name),
            },
        };
        entries.push(PlayerEntry {
            display,
            name,
            points: player.points,
            ping: player.ping,
            spectator,
            presence: None,
        });
    }
    let by_name = match before.filter(|before| same && at == before.entries.len()) {
        Some(before) => before.by_name.clone(),
        None => {
            same = false;
            NameIndex::of(&entries)
        }
    };
    let mut usable: Vec<bool> =
        entries.iter().map(|e| !e.spectator && !e.name.is_empty() && !rules.ignore.contains(e.name.as_str())).collect();
    let mut same_once = same;
    let mut at = 0;
    while let run @ [_, ..] = by_name.run(at, &entries) {
        at += run.len();
        if run.len() > 1 {
            run.iter().for_each(|&place| usable[index(place)] = false);
            same_once = false;
        }
    }
    PlayerList { entries, usable, by_name, same_unique_names: same_once }
}

impl PlayerList {
    /// Pairs (index in the list before, index in this one) of the names that are in
    /// both once, usable or not, in the order of this one. Spectators count for
    /// "once" and are in no pair.
    pub fn unique_pairs(&self, before: &[PlayerEntry], by_name: &NameIndex) -> Vec<(u16, u16)> {
        let plays = |p: u16, c: u16| !before[usize::from(p)].spectator && !self.entries[usize::from(c)].spectator;
        if self.same_unique_names {
            return (0..self.entries.len() as u16).filter(|&at| plays(at, at)).map(|at| (at, at)).collect();
        }
        let mut pairs = unique_in_both(before, by_name, &self.entries, &self.by_name);
        pairs.retain(|&(p, c)| plays(p, c));
        pairs.sort_unstable_by_key(|&(_, c)| c);
        pairs
    }

    /// Whether a name that is in this list or in the one before more than once is in
    /// the other, too: people with the same generic name may be the same people.
    pub fn shares_duplicate_name(&self, before: &[PlayerEntry], by_name: &NameIndex) -> bool {
        let (mut left, mut right) = (0, 0);
        while let (Some(&p), Some(&c)) = (by_name.0.get(left), self.by_name.0.get(right)) {
            match order(p, before, c, &self.entries) {
                Ordering::Less => left += 1,
                Ordering::Greater => right += 1,
                Ordering::Equal => {
                    let (of_p, of_c) = (by_name.run(left, before).len(), self.by_name.run(right, &self.entries).len());
                    if of_p > 1 || of_c > 1 {
                        return true;
                    }
                    left += of_p;
                    right += of_c;
                }
            }
        }
        false
    }

    /// Whether the list before has a spectator of the name of this list's entry.
    pub fn was_spectator(&self, at: usize, before: &[PlayerEntry]) -> bool {
        before.iter().any(|entry| entry.spectator && entry.name == self.entries[at].name)
    }
}

fn unique_in_both(
    prev: &[PlayerEntry],
    prev_by_name: &NameIndex,
    cur: &[PlayerEntry],
    cur_by_name: &NameIndex,
) -> Vec<(u16, u16)> {
    let mut pairs = Vec::with_capacity(prev.len().min(cur.len()));
    let (mut left, mut right) = (0, 0);
    while let (Some(&p), Some(&c)) = (prev_by_name.0.get(left), cur_by_name.0.get(right)) {
        match order(p, prev, c, cur) {
            Ordering::Less => left += 1,
            Ordering::Greater => right += 1,
            Ordering::Equal => {
                let (of_p, of_c) = (prev_by_name.run(left, prev).len(), cur_by_name.run(right, cur).len());
                if of_p == 1 && of_c == 1 {
                    pairs.push((p as u16, c as u16));
                }
                left += of_p;
                right += of_c;
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(name: &str, ping: i32, bot: bool) -> Player {
        Player { name: name.into(), points: Some(1), ping: Some(ping), connected_ms: None, bot, spectator: false }
    }

    #[test]
    fn bots_and_unusable_names_are_excluded() {
        let rules = NameRules::default();
        let q3 = rules.family(&ScreenRules::default(), "quake3", true, "baseq3");
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
        let got = read_list(list(), &rules, q3, None);
        let seen: Vec<_> = got.entries.iter().zip(&got.usable).map(|(e, u)| (e.name.as_str(), *u)).collect();
        assert_eq!(seen, [("Visor", true), ("UnnamedPlayer", false), ("twin", false), ("twin", false), ("", false)]);
        assert_eq!(got.entries[0].display(), "^1Visor");

        let source = rules.family(&ScreenRules::default(), "source", false, "cstrike");
        let got = read_list(list(), &rules, source, None);
        assert_eq!(got.entries.len(), 6, "ping 0 marks no bot there");
        assert_eq!(got.entries[0].name, "^1Visor");
    }

    #[test]
    fn spectators_count_for_duplicates_and_are_in_no_pair() {
        let rules = NameRules::default();
        let family = rules.family(&ScreenRules::default(), "quake3", true, "Xonotic");
        let list = |names: &[(&str, i64)]| {
            let players = names.iter().map(|&(name, points)| Player { points: Some(points), ..player(name, 9, false) });
            read_list(players.collect(), &rules, family, None)
        };
        let prev = list(&[("a", 1), ("b", -666), ("c", 3), ("twin", 1)]);
        let cur = list(&[("a", 1), ("b", 0), ("c", -666), ("twin", 1), ("twin", -666)]);
        assert_eq!(cur.usable, [true, true, false, false, false]);
        assert_eq!(cur.unique_pairs(&prev.entries, &prev.by_name), [(0, 0)]);
        assert!(cur.was_spectator(1, &prev.entries) && !cur.was_spectator(0, &prev.entries));
        assert!(cur.shares_duplicate_name(&prev.entries, &prev.by_name), "twin");
        assert!(prev.shares_duplicate_name(&cur.entries, &cur.by_name), "twin");
        assert!(!prev.shares_duplicate_name(&prev.entries, &prev.by_name));
        let off = ScreenRules { enabled: false, ..ScreenRules::default() };
        let players = vec![Player { points: Some(-666), spectator: true, ..player("a", 9, false) }];
        let family = rules.family(&off, "quake3", true, "Xonotic");
        assert_eq!(read_list(players, &rules, family, None).usable, [true], "screening is off");
    }

    #[test]
    fn unique_names_in_both_lists_are_paired() {
        let rules = NameRules::default();
        let family = rules.family(&ScreenRules::default(), "source", false, "x");
        let list =
            |names: &[&str]| read_list(names.iter().map(|n| player(n, 1, false)).collect(), &rules, family, None);
        let prev = list(&["b", "a", "twin", "", "c", "twice"]);
        let cur = list(&["c", "twin", "twin", "a", "d", "", "twice"]);
        let pairs = cur.unique_pairs(&prev.entries, &prev.by_name);
        assert_eq!(pairs, [(4, 0), (1, 3), (3, 5), (5, 6)]);
    }

    proptest::proptest! {
        /// Against every name with every other.
        #[test]
        fn pairs_and_usable_names_equal_naive_search(
            prev in proptest::collection::vec("[ab]{0,3}", 0..30),
            cur in proptest::collection::vec("[ab]{0,3}|player", 0..30),
        ) {
            let rules = NameRules::default();
            let family = rules.family(&ScreenRules::default(), "source", false, "x");
            let list = |names: &[String]| read_list(names.iter().map(|n| player(n, 1, false)).collect(), &rules, family, None);
            let once = |names: &[String], name: &String| names.iter().filter(|n| *n == name).count() == 1;
            let mut want = Vec::new();
            for (c, name) in (0..).zip(&cur) {
                if let Some(p) = prev.iter().position(|n| n == name).filter(|_| once(&prev, name) && once(&cur, name)) {
                    want.push((p as u16, c));
                }
            }
            let (p, c) = (list(&prev), list(&cur));
            proptest::prop_assert_eq!(c.unique_pairs(&p.entries, &p.by_name), want);
            let usable: Vec<bool> =
                cur.iter().map(|name| !name.is_empty() && name != "player" && once(&cur, name)).collect();
            proptest::prop_assert_eq!(c.usable, usable);
        }

        /// A list is read the same whatever is known of the one before.
        #[test]
        fn previous_list_does_not_change_the_result(
            lists in proptest::collection::vec(proptest::collection::vec("(\\^1)?[ab ]{0,2}|player|\u{e9}", 0..8), 1..6),
            stays in proptest::collection::vec(proptest::bool::ANY, 6),
        ) {
            let rules = NameRules::default();
            let (quake, source) = (rules.family(&ScreenRules::default(), "quake3", true, "x"), rules.family(&ScreenRules::default(), "source", false, "x"));
            let mut before: Option<(PlayerList, NameFamily)> = None;
            let mut names: Vec<String> = Vec::new();
            for (n, (list, stay)) in lists.into_iter().zip(stays).enumerate() {
                names = if stay { names } else { list };
                let family = if n % 4 == 3 { source } else { quake };
                let players = || names.iter().map(|name| player(name, 1, false)).collect();
                let was = before.as_ref().map(|(screened, _)| screened.entries.clone());
                let known = before.as_mut().map(|(screened, family)| PreviousList {
                    entries: &mut screened.entries,
                    by_name: &screened.by_name,
                    family: *family,
                });
                let (got, want) = (read_list(players(), &rules, family, known), read_list(players(), &rules, family, None));
                proptest::prop_assert_eq!(before.as_ref().map(|(screened, _)| &screened.entries), was.as_ref());
                proptest::prop_assert_eq!(&got.entries, &want.entries);
                proptest::prop_assert_eq!(&got.usable, &want.usable);
                proptest::prop_assert_eq!(&got.by_name, &want.by_name);
                if let Some((old, _)) = &before {
                    let pairs = got.unique_pairs(&old.entries, &old.by_name);
                    proptest::prop_assert_eq!(pairs, want.unique_pairs(&old.entries, &old.by_name));
                }
                before = Some((got, family));
            }
        }
    }

    /// Marks as someone could make them: the text decides.
    #[test]
    fn names_with_equal_hash_stay_distinct() {
        let list = |names: &[&str]| -> Vec<PlayerEntry> {
            let entry = |&name: &&str| PlayerEntry {
                display: Name::default(),
                name: name.into(),
                points: Some(0),
                ping: None,
                spectator: false,
                presence: None,
            };
            names.iter().map(entry).collect()
        };
        let one_mark = |entries: &[PlayerEntry]| NameIndex::marked(entries, |_| 7 << 16);
        let (prev, cur) = (list(&["a", "b", "a", "c", "e"]), list(&["e", "d", "b", "a", "c", "c"]));
        let pairs = unique_in_both(&prev, &one_mark(&prev), &cur, &one_mark(&cur));
        assert_eq!(pairs, [(1, 2), (4, 0)]);
    }
}
