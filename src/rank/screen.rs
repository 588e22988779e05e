//! Screening: which entries of a list are players, and which lists are credible (docs/rules.md section
//! 14).
//!
//! Pure checks of one snapshot against the [`Screening`] state of its server. The engine calls
//! them in the order of the section, assigns the keys that check 4 limits, and reports the
//! reasons. This module does not use keys or windows.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::limits::BOT_NAMES_MAX;
use crate::model::calendar::HOUR_MS;
use crate::model::name::{ColourCodes, Name, is_plain, normalise_name};
use crate::model::server::{NewKeyCounts, ScreenReason, Screening, UnchangedList};
use crate::model::snapshot::Player;

/// Entries that a list may have beyond the server's slots: this number, or a quarter of the
/// slots if that is more.
const EXTRA_ENTRIES_MIN: u32 = 8;

/// The minimum number of non-bot entries with points for a frozen list.
const FROZEN_ENTRIES_MIN: usize = 4;

/// A larger count of a partial list is not believed.
const PARTIAL_COUNT_MAX: u32 = 1_000;

/// Settings of docs/rules.md section 14.
#[derive(Clone, Debug, PartialEq)]
pub struct ScreenRules {
    pub enabled: bool,
    pub frozen_after_ms: i64,
    /// The maximum number of new games, maps and names that one server may introduce a day.
    pub new_games_per_day_max: u32,
    pub new_maps_per_day_max: u32,
    pub new_names_per_day_max: u32,
    /// The maximum number of games and maps in total.
    pub games_max: u32,
    pub maps_max: u32,
    /// Points that mean a spectator.
    pub spectator_points: Vec<SpectatorPoints>,
    /// A larger gain counts as 0.
    pub gain_max: i64,
}

impl Default for ScreenRules {
    fn default() -> Self {
        let markers = ["darkplaces_games=-666", "Warsow=-9999", "Warfork=-9999", "quakeworld://=-9999"];
        ScreenRules {
            enabled: true,
            frozen_after_ms: 6 * HOUR_MS,
            new_games_per_day_max: 4,
            new_maps_per_day_max: 200,
            new_names_per_day_max: 2_000,
            games_max: 10_000,
            maps_max: 1_000_000,
            spectator_points: markers.into_iter().map(|marker| marker.parse().expect("valid marker")).collect(),
            gain_max: 1_000_000,
        }
    }
}

/// Where a certain number of points means a spectator: `"Warsow=-9999"`,
/// `"quakeworld://=-9999"`, `"darkplaces_games=-666"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpectatorPoints {
    pub scope: SpectatorScope,
    pub points: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpectatorScope {
    /// A game, compared without case.
    Game(String),
    /// All servers of a URL scheme.
    Scheme(String),
    /// The games of `names.darkplaces_games`.
    DarkPlacesGames,
}

/// The string is not a valid spectator marker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not GAME=POINTS, SCHEME://=POINTS or darkplaces_games=POINTS, such as \"Warsow=-9999\"")]
pub struct SpectatorPointsError(pub String);

impl std::str::FromStr for SpectatorPoints {
    type Err = SpectatorPointsError;

    fn from_str(text: &str) -> Result<SpectatorPoints, SpectatorPointsError> {
        let bad = || SpectatorPointsError(text.to_owned());
        let (scope, points) = text.rsplit_once('=').ok_or_else(bad)?;
        let points = points.trim().parse().map_err(|_| bad())?;
        let scope = match scope.trim() {
            "" | "://" => return Err(bad()),
            "darkplaces_games" => SpectatorScope::DarkPlacesGames,
            scope => match scope.strip_suffix("://") {
                Some(scheme) => SpectatorScope::Scheme(scheme.to_owned()),
                None => SpectatorScope::Game(scope.to_owned()),
            },
        };
        Ok(SpectatorPoints { scope, points })
    }
}

impl std::fmt::Display for SpectatorPoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.scope {
            SpectatorScope::Game(game) => write!(f, "{game}={}", self.points),
            SpectatorScope::Scheme(scheme) => write!(f, "{scheme}://={}", self.points),
            SpectatorScope::DarkPlacesGames => write!(f, "darkplaces_games={}", self.points),
        }
    }
}

impl ScreenRules {
    /// The points that mean a spectator on a server; `None`: no points do. The first matching
    /// marker applies.
    pub fn spectator_points(&self, scheme: &str, game: &str, is_darkplaces_game: bool) -> Option<i64> {
        let applies = |marker: &&SpectatorPoints| match &marker.scope {
            SpectatorScope::Game(marked) => marked.eq_ignore_ascii_case(game),
            SpectatorScope::Scheme(marked) => marked == scheme,
            SpectatorScope::DarkPlacesGames => is_darkplaces_game,
        };
        self.spectator_points.iter().filter(|_| self.enabled).find(applies).map(|marker| marker.points)
    }
}

/// Whether a count without a list is not believed (check 7).
pub fn is_unverified_count(slots: u32, players: u32) -> bool {
    players > PARTIAL_COUNT_MAX || (slots > 0 && players > slots)
}

/// Check 1: more entries, bots included, than the server can have players.
pub fn has_more_players_than_slots(slots: u32, entries: usize) -> bool {
    let places = slots.saturating_add(EXTRA_ENTRIES_MIN.max(slots / 4));
    slots > 0 && entries > places as usize
}

/// Check 2: flags bots that the protocol counts but does not flag, and updates the known bot
/// names. Returns the number of bots that could not be distinguished from players, 0 if the
/// protocol reports no bots.
pub fn mark_bots(
    screening: &mut Screening,
    players: &mut [Player],
    count: Option<u32>,
    bots: Option<u32>,
    codes: ColourCodes,
) -> u32 {
    let Some(bots) = bots else { return 0 };
    let entries = players.len() as u32;
    let normal = |player: &Player| match is_plain(&player.name, codes) {
        true => player.name.clone(),
        false => normalise_name(&player.name, codes),
    };
    if bots == 0 {
        if !screening.bot_names.is_empty() {
            for name in players.iter().map(normal) {
                screening.bot_names.retain(|bot| *bot != name);
            }
        }
        return 0;
    }
    if bots >= count.unwrap_or(entries) && bots >= entries {
        players.iter_mut().for_each(|player| player.bot = true);
        remember_bot_names(&mut screening.bot_names, players.iter().map(normal).filter(|name| !name.is_empty()));
        return 0;
    }
    let mut marked = 0;
    if !screening.bot_names.is_empty() {
        for player in players.iter_mut() {
            if marked < bots && screening.bot_names.contains(&normal(player)) {
                player.bot = true;
                marked += 1;
            }
        }
    }
    bots - marked
}

/// Moves names to the end of a list without duplicates, and drops the oldest ones beyond its
/// limit.
fn remember_bot_names(names: &mut Vec<Name>, seen: impl Iterator<Item = Name>) {
    let seen: Vec<Name> = seen.collect();
    if names.ends_with(&seen) && (1..seen.len()).all(|at| !seen[..at].contains(&seen[at])) {
        return; // the same list as before, as usual
    }
    for name in seen {
        names.retain(|known| *known != name);
        names.push(name);
    }
    let beyond = names.len().saturating_sub(BOT_NAMES_MAX);
    names.drain(..beyond);
}

/// Check 3: records a list, and returns whether it is frozen: it has enough entries, and map,
/// names and points have not changed for `frozen_after_ms`.
///
/// `list`: names as received and points of the non-bot entries that have points.
pub fn is_frozen<'l>(
    screening: &mut Screening,
    map: &str,
    list: impl Iterator<Item = (&'l str, i64)>,
    t_ms: i64,
    frozen_after_ms: i64,
) -> bool {
    let (mut digest, mut entries) = (0_u64, 0);
    for (name, points) in list {
        // A sum, so that the order of the list does not matter.
        digest = digest.wrapping_add(hash(name.as_bytes(), points));
        entries += 1;
    }
    if entries < FROZEN_ENTRIES_MIN {
        screening.unchanged = None;
        return false;
    }
    let digest = digest.wrapping_add(hash(map.as_bytes(), i64::MIN));
    match screening.unchanged {
        Some(unchanged) if unchanged.digest == digest => t_ms - unchanged.since_ms >= frozen_after_ms,
        _ => {
            screening.unchanged = Some(UnchangedList { digest, since_ms: t_ms });
            false
        }
    }
}

/// The digest is stored, so this function must never change.
fn hash(text: &[u8], number: i64) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(text);
    hasher.write(&number.to_le_bytes());
    hasher.finish()
}

/// Check 4: resets the counts on a new day.
pub fn start_day_if_new(screening: &mut Screening, day: i64) {
    if screening.introduced.day != day {
        screening.introduced = NewKeyCounts { day, ..NewKeyCounts::default() };
    }
}

/// Check 4: whether a server may introduce one more key of a kind. Counts it if so. The limit
/// per day does not apply to an exempt server; the total limit does.
pub fn take_quota(introduced: &mut u32, per_day_max: u32, is_exempt: bool, known: u32, known_max: u32) -> bool {
    let may = (is_exempt || *introduced < per_day_max) && known < known_max;
    *introduced += u32::from(may);
    may
}

/// Check 6: returns the gain, or 0 if it is impossible; then the reason is recorded.
pub fn credible_gain(gain: i64, screening: &mut Screening, gain_max: i64, t_ms: i64) -> i64 {
    if gain <= gain_max || screening.is_exempt(ScreenReason::ImpossibleGain) {
        return gain;
    }
    screening.record_reason(ScreenReason::ImpossibleGain, t_ms);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn players(names: &[&str]) -> Vec<Player> {
        let player = |name: &&str| Player { name: (*name).into(), points: Some(1), ..Player::default() };
        names.iter().map(player).collect()
    }

    #[test]
    fn list_beyond_slots_is_implausible() {
        for (slots, entries, want) in [
            (0, 1_000, false),
            (8, 16, false),
            (8, 17, true),
            (32, 40, false),
            (32, 41, true),
            (64, 80, false),
            (64, 81, true),
        ] {
            assert_eq!(has_more_players_than_slots(slots, entries), want, "{entries} on {slots}");
        }
        assert!(!has_more_players_than_slots(u32::MAX, 1_024));
    }

    #[test]
    fn bots_of_bot_only_lists_are_recognised_among_players() {
        let mut screening = Screening::default();
        let mut mark = |names: &[&str], count, bots| {
            let mut list = players(names);
            let unidentified = mark_bots(&mut screening, &mut list, count, bots, ColourCodes::None);
            let marked: Vec<String> =
                list.into_iter().filter(|player| player.bot).map(|player| player.name.to_string()).collect();
            (marked.join(" "), unidentified)
        };
        assert_eq!(mark(&["a", "b", ""], Some(3), Some(3)), ("a b ".to_owned(), 0), "only bots");
        assert_eq!(mark(&["x", "b", "a"], Some(3), Some(1)), ("b".to_owned(), 0), "at most as many as announced");
        assert_eq!(mark(&["x", "b", "c"], Some(3), Some(2)), ("b".to_owned(), 1));
        assert_eq!(mark(&["x", "b"], None, Some(2)), ("x b".to_owned(), 0), "count is the number of entries");
        assert_eq!(mark(&["x", "b"], Some(3), None), (String::new(), 0), "no bots are announced");
        assert_eq!(mark(&["x", "c"], Some(2), Some(0)), (String::new(), 0), "x is a player's name now");
        assert_eq!(mark(&["x", "b"], Some(3), Some(1)), ("b".to_owned(), 0));
        assert_eq!(mark(&["x", "y"], Some(5), Some(3)), (String::new(), 3));
    }

    #[test]
    fn most_recent_bot_names_are_kept() {
        let mut screening = Screening::default();
        for first in 0..3 {
            let names: Vec<String> = (first * 30..first * 30 + 30).map(|n| format!("bot{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            mark_bots(&mut screening, &mut players(&names), None, Some(30), ColourCodes::None);
        }
        assert_eq!(screening.bot_names.len(), BOT_NAMES_MAX);
        assert_eq!((screening.bot_names[0].as_str(), screening.bot_names[63].as_str()), ("bot26", "bot89"));
        mark_bots(&mut screening, &mut players(&["bot26", "new", "new"]), None, Some(3), ColourCodes::None);
        let names: Vec<&str> = screening.bot_names.iter().map(Name::as_str).collect();
        assert_eq!((names[0], names[62], names[63]), ("bot28", "bot26", "new"));
    }

    #[test]
    fn unchanged_list_is_frozen_after_six_hours_in_any_order() {
        let hours = |n: i64| n * 3_600_000;
        let mut screening = Screening::default();
        let list = [("a", 1), ("b", 2), ("c", 3), ("d", 4)];
        let turned: Vec<_> = list.into_iter().rev().collect();
        let swapped = [("a", 2), ("b", 1), ("c", 3), ("d", 4)];
        let mut frozen = |map: &str, list: &[(&str, i64)], hour| {
            is_frozen(&mut screening, map, list.iter().copied(), hours(hour), hours(6))
        };
        assert!(!frozen("m", &list, 0));
        assert!(!frozen("m", &turned, 5));
        assert!(frozen("m", &list, 6));
        assert!(frozen("m", &turned, 7));
        assert!(!frozen("m", &swapped, 8), "points of two entries were swapped");
        assert!(!frozen("n", &swapped, 14), "another map");
        assert!(!frozen("n", &list[..3], 20), "three entries");
        assert!(!frozen("n", &list, 21));
        assert!(!frozen("n", &list, 26));
        assert!(frozen("n", &list, 27));
    }

    #[test]
    fn quota_of_new_keys_is_counted_by_day_and_in_total() {
        let mut screening = Screening::default();
        start_day_if_new(&mut screening, 7);
        let games = &mut screening.introduced.games;
        assert!(take_quota(games, 2, false, 0, 9) && take_quota(games, 2, false, 1, 9));
        assert!(!take_quota(games, 2, false, 2, 9), "the third of the day");
        assert!(take_quota(games, 2, true, 2, 9), "an exempt server");
        assert!(!take_quota(games, 2, true, 9, 9), "the total limit applies to exempt servers too");
        start_day_if_new(&mut screening, 7);
        assert_eq!(screening.introduced.games, 3);
        start_day_if_new(&mut screening, 8);
        assert_eq!(screening.introduced.games, 0);
    }

    #[test]
    fn impossible_gain_counts_as_zero_unless_exempt() {
        let gain_max = ScreenRules::default().gain_max;
        let mut screening = Screening::default();
        assert_eq!(credible_gain(1_000_000, &mut screening, gain_max, 5), 1_000_000);
        assert_eq!(screening.reasons(5).count(), 0);
        assert_eq!(credible_gain(1_000_001, &mut screening, gain_max, 5), 0);
        assert!(screening.reasons(5).eq([(ScreenReason::ImpossibleGain, 5)]));
        assert_eq!(screening.reasons(5 + 7 * 86_400_000).count(), 0, "reported for 7 days");
        screening.set_exempt(ScreenReason::ImpossibleGain, true);
        assert_eq!(credible_gain(1_000_001, &mut screening, gain_max, 5), 1_000_001);
    }

    #[test]
    fn spectator_points_depend_on_game_and_scheme() {
        let rules = ScreenRules::default();
        assert_eq!(rules.spectator_points("quake3", "Xonotic", true), Some(-666));
        assert_eq!(rules.spectator_points("quake3", "warsow", false), Some(-9999));
        assert_eq!(rules.spectator_points("quakeworld", "qw", false), Some(-9999));
        assert_eq!(rules.spectator_points("quake3", "baseq3", false), None);
        for text in ["Warsow", "=-1", "://=-1", "Warsow=many"] {
            assert!(text.parse::<SpectatorPoints>().is_err(), "{text}");
        }
        for text in ["a=b=-3", "quakeworld://=-9999", "darkplaces_games=-666"] {
            assert_eq!(text.parse::<SpectatorPoints>().unwrap().to_string(), text);
        }
    }
}
