//! Decides which entries of a snapshot count, and under which name (docs/rules.md section 2).

use std::cmp::Ordering;
use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use crate::model::name::{ColourCodes, Name, is_plain, normalise_name};
use crate::model::server::PlayerEntry;
use crate::model::snapshot::Player;
use crate::rank::screen::ScreenRules;

/// Settings of docs/rules.md section 2.
#[derive(Clone, Debug, PartialEq)]
pub struct NameRules {
    /// Normalised names that are too generic to identify a player.
    pub ignore: FxHashSet<String>,
    pub count_bots: bool,
    pub ping_zero_is_bot: bool,
    /// Games, in lower case, whose names contain `^xRGB` colours.
    pub darkplaces_games: FxHashSet<String>,
    /// Names on Minecraft servers contain colours. Rules 1 do not know them.
    pub minecraft_colours: bool,
}

impl Default for NameRules {
    fn default() -> Self {
        let set = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        NameRules {
            ignore: set(&["UnnamedPlayer", "unnamed", "Player", "player", "unconnected", "nameless tee"]),
            count_bots: false,
            ping_zero_is_bot: true,
            darkplaces_games: set(&["nexuiz", "xonotic"]),
            minecraft_colours: true,
        }
    }
}

/// How a server's protocol and game write names and connected times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameFamily {
    pub codes: ColourCodes,
    /// Quake 3 family: a ping of 0 means a bot.
    pub zero_ping_is_bot: bool,
    /// Whether spectators are distinguished from players (docs/rules.md section 14.5).
    pub spectators: bool,
    /// Points that mean a spectator, in addition to the protocol's flag.
    pub spectator_points: Option<i64>,
    /// Connected times are rounded down to this.
    pub connected_step_ms: i64,
}

impl NameFamily {
    fn is_spectator(&self, player: &Player) -> bool {
        self.spectators && (player.spectator || (player.points.is_some() && player.points == self.spectator_points))
    }
}

impl NameRules {
    /// How a server writes names, and which of its entries are spectators.
    pub fn family(&self, screen: &ScreenRules, scheme: &str, quake3_family: bool, game: &str) -> NameFamily {
        let listed = self.is_darkplaces_game(game);
        NameFamily {
            codes: self.colour_codes(scheme, quake3_family, game),
            zero_ping_is_bot: quake3_family,
            spectators: screen.enabled,
            spectator_points: screen.spectator_points(scheme, game, listed),
            connected_step_ms: if matches!(scheme, "quakeworld" | "odamex") { 60_000 } else { 1_000 },
        }
    }

    /// The colour codes in names of a server.
    pub fn colour_codes(&self, scheme: &str, quake3_family: bool, game: &str) -> ColourCodes {
        match quake3_family {
            false if self.minecraft_colours && matches!(scheme, "minecraft" | "bedrock") => ColourCodes::Minecraft,
            false => ColourCodes::None,
            true if scheme == "darkplaces" || self.is_darkplaces_game(game) => ColourCodes::DarkPlaces,
            true => ColourCodes::Quake3,
        }
    }

    fn is_darkplaces_game(&self, game: &str) -> bool {
        self.darkplaces_games.iter().any(|listed| listed.eq_ignore_ascii_case(game))
    }

    /// Whether an entry is a bot and must be excluded.
    pub fn excludes(&self, player: &Player, family: NameFamily) -> bool {
        !self.count_bots && self.is_bot(player, family)
    }

    /// Whether an entry is a bot, by its flag or its ping.
    pub fn is_bot(&self, player: &Player, family: NameFamily) -> bool {
        player.bot || (family.zero_ping_is_bot && self.ping_zero_is_bot && player.ping == Some(0))
    }
}

/// The entries of a list that count, in its order, and which of them are usable.
#[derive(Debug, Default)]
pub struct PlayerList {
    /// The entries without bots (unless bots count). No entry has a presence yet.
    pub entries: Vec<PlayerEntry>,
    /// For each entry: it is not a spectator, and its name is not empty, not ignored, and
    /// unique in the list, including spectators.
    pub usable: Vec<bool>,
    /// For each entry how long the player has been connected, if the protocol says that; empty if it says so for none.
    pub connected_ms: Vec<Option<u64>>,
    pub by_name: EntriesByName,
    /// The previous list has the same names in the same order, all of them unique.
    same_unique_names: bool,
}

/// The previous list, and how it was read. Usually the next list has the same players in the
/// same order; then the results for a name are reused.
#[derive(Debug)]
pub struct PreviousList<'l> {
    /// Equal strings are moved from here to the next list, and the string of the next list is moved
    /// here. So a long name keeps its allocation, and the other copy is freed with this list.
    pub entries: &'l mut [PlayerEntry],
    pub by_name: &'l EntriesByName,
    pub family: NameFamily,
}

/// How many departed entries of the previous list are skipped when a name is matched without
/// normalising it again.
const LOOKAHEAD: usize = 2;

/// The entries of a list, sorted by the hash of their names and, for equal hashes, by their
/// text. So equal names are adjacent. Comparing only texts took half of the time of the
/// screening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntriesByName(Vec<Place>);

/// The position of a name: 48 bits of hash, then 16 bits of index. Equal names have equal
/// hashes; different names almost never do, unless an attacker constructs them.
type Place = u64;

fn index(place: Place) -> usize {
    usize::from(place as u16)
}

fn order(a: Place, entries_a: &[PlayerEntry], b: Place, entries_b: &[PlayerEntry]) -> Ordering {
    (a >> 16).cmp(&(b >> 16)).then_with(|| entries_a[index(a)].name.cmp(&entries_b[index(b)].name))
}

fn name_hash(name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish() & !0xFFFF
}

impl EntriesByName {
    /// At most [`crate::limits::PLAYERS_MAX`] entries.
    pub fn of(entries: &[PlayerEntry]) -> EntriesByName {
        EntriesByName::with_hash(entries, name_hash)
    }

    fn with_hash(entries: &[PlayerEntry], hash: impl Fn(&str) -> u64) -> EntriesByName {
        let mut places: Vec<Place> =
            entries.iter().zip(0_u16..).map(|(entry, index)| hash(&entry.name) | Place::from(index)).collect();
        places.sort_unstable();
        for same_hash in places.chunk_by_mut(|a, b| a >> 16 == b >> 16).filter(|same_hash| same_hash.len() > 1) {
            same_hash.sort_unstable_by(|&a, &b| order(a, entries, b, entries).then(a.cmp(&b)));
        }
        EntriesByName(places)
    }

    /// The places with the same name as the place at `at`, from there on.
    fn equal_names(&self, at: usize, entries: &[PlayerEntry]) -> &[Place] {
        let Some((&first, rest)) = self.0.get(at..).and_then(<[Place]>::split_first) else { return &[] };
        let more = rest.iter().take_while(|&&place| order(first, entries, place, entries).is_eq()).count();
        &self.0[at..=at + more]
    }
}

/// Reads a player list of at most [`crate::limits::PLAYERS_MAX`] entries. `before` is the
/// previous list, if there is one.
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
    let mut connected_ms = Vec::new();
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
        if player.connected_ms.is_some() {
            connected_ms.resize(entries.len(), None);
            connected_ms.push(player.connected_ms);
        }
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
            EntriesByName::of(&entries)
        }
    };
    let mut usable: Vec<bool> =
        entries.iter().map(|e| !e.spectator && !e.name.is_empty() && !rules.ignore.contains(e.name.as_str())).collect();
    let mut same_once = same;
    let mut at = 0;
    while let run @ [_, ..] = by_name.equal_names(at, &entries) {
        at += run.len();
        if run.len() > 1 {
            run.iter().for_each(|&place| usable[index(place)] = false);
            same_once = false;
        }
    }
    PlayerList { entries, usable, connected_ms, by_name, same_unique_names: same_once }
}

impl PlayerList {
    /// Pairs (index in the previous list, index in this one) of the names that are unique in
    /// both, usable or not, in the order of this list. Spectators count for uniqueness and are
    /// in no pair.
    pub fn unique_pairs(&self, before: &[PlayerEntry], by_name: &EntriesByName) -> Vec<(u16, u16)> {
        let plays = |p: u16, c: u16| !before[usize::from(p)].spectator && !self.entries[usize::from(c)].spectator;
        if self.same_unique_names {
            return (0..self.entries.len() as u16).filter(|&at| plays(at, at)).map(|at| (at, at)).collect();
        }
        let mut pairs = unique_in_both(before, by_name, &self.entries, &self.by_name);
        pairs.retain(|&(p, c)| plays(p, c));
        pairs.sort_unstable_by_key(|&(_, c)| c);
        pairs
    }

    /// Whether a name that is a duplicate in this or the previous list also occurs in the
    /// other: players with the same generic name may be the same people.
    pub fn shares_duplicate_name(&self, before: &[PlayerEntry], by_name: &EntriesByName) -> bool {
        let (mut left, mut right) = (0, 0);
        while let (Some(&p), Some(&c)) = (by_name.0.get(left), self.by_name.0.get(right)) {
            match order(p, before, c, &self.entries) {
                Ordering::Less => left += 1,
                Ordering::Greater => right += 1,
                Ordering::Equal => {
                    let (count_p, count_c) =
                        (by_name.equal_names(left, before).len(), self.by_name.equal_names(right, &self.entries).len());
                    if count_p > 1 || count_c > 1 {
                        return true;
                    }
                    left += count_p;
                    right += count_c;
                }
            }
        }
        false
    }

    /// Whether the name of this list's entry is a spectator in the previous list.
    pub fn was_spectator(&self, at: usize, before: &[PlayerEntry]) -> bool {
        before.iter().any(|entry| entry.spectator && entry.name == self.entries[at].name)
    }
}

fn unique_in_both(
    prev: &[PlayerEntry],
    prev_by_name: &EntriesByName,
    cur: &[PlayerEntry],
    cur_by_name: &EntriesByName,
) -> Vec<(u16, u16)> {
    let mut pairs = Vec::with_capacity(prev.len().min(cur.len()));
    let (mut left, mut right) = (0, 0);
    while let (Some(&p), Some(&c)) = (prev_by_name.0.get(left), cur_by_name.0.get(right)) {
        match order(p, prev, c, cur) {
            Ordering::Less => left += 1,
            Ordering::Greater => right += 1,
            Ordering::Equal => {
                let (count_p, count_c) =
                    (prev_by_name.equal_names(left, prev).len(), cur_by_name.equal_names(right, cur).len());
                if count_p == 1 && count_c == 1 {
                    pairs.push((p as u16, c as u16));
                }
                left += count_p;
                right += count_c;
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
        assert_eq!(got.entries.len(), 6, "a ping of 0 is not a bot there");
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
        assert_eq!(read_list(players, &rules, family, None).usable, [true], "screening is disabled");
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
        /// Compares every name with every other.
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

        /// The result does not depend on the cached previous list.
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

    /// If hashes are equal, as an attacker could achieve, the strings are compared.
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
        let one_hash = |entries: &[PlayerEntry]| EntriesByName::with_hash(entries, |_| 7 << 16);
        let (prev, cur) = (list(&["a", "b", "a", "c", "e"]), list(&["e", "d", "b", "a", "c", "c"]));
        let pairs = unique_in_both(&prev, &one_hash(&prev), &cur, &one_hash(&cur));
        assert_eq!(pairs, [(1, 2), (4, 0)]);
    }
}
