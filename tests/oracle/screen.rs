//! Which lists are credible, and which entries are players (docs/rules.md 14): converts scan
//! log lines to full snapshots with keys. Point 6, impossible gains, is in `facts`.
//!
//! Where section 14 leaves a choice, the choices made here are:
//!
//! - A check that treats a snapshot as partial ends the checks of that snapshot. What
//!   earlier checks stored of it (names of bots, the list of point 3) stays stored.
//! - So a list with too many entries does not change how long the list has been the same.
//!   Neither does a partial snapshot. A list of one new game too many does.
//! - Point 1 counts the entries as received.
//! - Point 2: the names of entries marked as bots are treated like other names. The count
//!   is the number of entries as received minus `bots`.
//! - Point 3: entries without points are not compared. A change of the game alone is not a
//!   change. With `count_bots` bots are treated like players.
//! - Point 3: after the counts are cleared, the assumed count of prev is 0.
//! - Point 4: a game or map gets its key from its first snapshot that is not treated as
//!   partial. The map `(other)` needs no key.
//! - Point 4: the name of a spectator gets no key and does not count for the quota.
//! - `screen.enabled = false` also turns off the flag of spectators. Entries without points
//!   still have no gain and are not in a final list.
//! - An exemption from a check of point 4 does not lift the limits of games and maps in total. What
//!   an exempt server introduces counts towards its limits of that day if the check applies again.
//! - An exempt list is still compared with earlier ones for point 3.
//! - A list of a greylisted server is used for its count alone: it changes nothing that these checks
//!   store, and is not reported. Point 1 still takes away the count.
//! - What these checks store of a server stays stored while it is greylisted or removed.

use std::collections::{BTreeSet, HashMap, HashSet};

use clqd::model::name::{ColourCodes, normalise};
use clqd::model::url::ServerUrl;

use super::facts::{Entry, Snapshot};
use super::log::{Line, LineKind, LoggedPlayer};
use super::names::Names;
use super::{PlayerId, Settings};

/// The settings of docs/rules.md 14, with the defaults of that section.
#[derive(Clone, Debug, PartialEq)]
pub struct Screen {
    pub enabled: bool,
    pub frozen_after_s: i64,
    pub new_games_per_day_max: usize,
    pub new_maps_per_day_max: usize,
    pub new_names_per_day_max: usize,
    pub games_max: usize,
    pub maps_max: usize,
    /// A game, `scheme://` or `darkplaces_games`, and the points that mark a spectator there.
    pub spectator_points: Vec<(String, i64)>,
    pub gain_max: i64,
}

impl Default for Screen {
    fn default() -> Screen {
        let marked = [("darkplaces_games", -666), ("Warsow", -9_999), ("Warfork", -9_999), ("quakeworld://", -9_999)];
        Screen {
            enabled: true,
            frozen_after_s: 6 * 3_600,
            new_games_per_day_max: 4,
            new_maps_per_day_max: 200,
            new_names_per_day_max: 2_000,
            games_max: 10_000,
            maps_max: 1_000_000,
            spectator_points: marked.map(|(of, points)| (of.to_owned(), points)).to_vec(),
            gain_max: 1_000_000,
        }
    }
}

/// Maximum number of bots' names stored for a server, from lists that contain only bots.
const BOT_NAMES_MAX: usize = 64;
/// Minimum length of a list that can be frozen.
const FROZEN_ENTRIES_MIN: usize = 4;
/// The map for which further new maps count.
pub const OTHER_MAP: &str = "(other)";

/// Why a snapshot, or a part of it, was not used as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    MorePlayersThanSlots,
    FrozenList,
    TooManyNewGames,
    TooManyNewMaps,
    TooManyNewNames,
    ImpossibleGain,
    UnverifiedCount,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Reason::MorePlayersThanSlots => "more_players_than_slots",
            Reason::FrozenList => "frozen_list",
            Reason::TooManyNewGames => "too_many_new_games",
            Reason::TooManyNewMaps => "too_many_new_maps",
            Reason::TooManyNewNames => "too_many_new_names",
            Reason::ImpossibleGain => "impossible_gain",
            Reason::UnverifiedCount => "unverified_count",
        }
    }
}

/// A check that applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub t: i64,
    pub server: String,
    pub reason: Reason,
}

/// The result of the checks of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Miss,
    /// Received as partial or treated as partial.
    Partial {
        count: Option<u32>,
    },
    /// Received as partial, with a count that is a sample.
    Counted {
        count: u32,
    },
    /// Received as partial, with a count that is only shown.
    Unverified,
    /// Treated as partial with count 0; the last three counts are cleared.
    Frozen,
    /// The line is the next of `Oracle::snapshots`.
    Full,
    /// The server is removed.
    Ignored,
}

/// docs/rules.md 1, 2 and 14.
#[derive(Default)]
pub struct Screener {
    pub names: Names,
    pub reports: Vec<Report>,
    /// Bots that were announced but not identified, in the last list of each server that was
    /// not too long.
    pub unnamed_bots: HashMap<String, u32>,
    servers: HashMap<String, Server>,
    games: HashSet<String>,
    maps: HashSet<String>,
}

/// Map, names and points, and since when they have been the same, Unix ms.
type SameList = (String, Vec<(String, i64)>, i64);

#[derive(Default)]
struct Server {
    /// Names of bots; the most recently seen is the last.
    bots: Vec<String>,
    /// Map, names and points, and since when they have been the same.
    same: Option<SameList>,
    /// The day of `new`.
    day: i64,
    new: New,
}

/// What a server introduced on one day.
#[derive(Default)]
struct New {
    games: usize,
    maps: usize,
    names: usize,
}

/// An entry of a list as received.
struct Listed<'a> {
    player: &'a LoggedPlayer,
    /// Normalised.
    name: String,
    bot: bool,
}

impl Screener {
    /// `exempt` has the names of the checks that do not apply.
    pub fn full(&mut self, line: &Line, settings: &Settings, exempt: &BTreeSet<String>) -> Result<Snapshot, Outcome> {
        let LineKind::Full { game, map, slots, count, bots, players } = &line.kind else { unreachable!() };
        let screen = &settings.screen;
        let server = self.servers.entry(line.server.clone()).or_default();
        let applies = |reason: Reason| screen.enabled && !exempt.contains(reason.name());
        let mut report = |reason| self.reports.push(Report { t: line.t, server: line.server.clone(), reason });

        // 1. More entries than slots.
        if applies(Reason::MorePlayersThanSlots) && has_more_than_slots(*slots, players) {
            report(Reason::MorePlayersThanSlots);
            return Err(Outcome::Partial { count: None });
        }

        // 2. Bots that are counted but not named.
        let mut list: Vec<Listed> = players.iter().map(|player| listed(line, game, player, settings)).collect();
        let mut unnamed_bots = 0;
        let mut player_count = list.iter().filter(|e| !e.bot).count() as u32;
        if let Some(bots) = bots.filter(|_| screen.enabled && !settings.count_bots) {
            let entries = list.len() as u32;
            unnamed_bots = server.mark_bots(&mut list, bots, count.unwrap_or(entries));
            player_count = entries.saturating_sub(bots);
        }
        self.unnamed_bots.insert(line.server.clone(), unnamed_bots);
        list.retain(|e| !e.bot);

        // 3. A list that does not change.
        let since = server.same_since(line.t, map, &list);
        let with_points = list.iter().filter(|e| e.player.points.is_some()).count();
        let frozen = with_points >= FROZEN_ENTRIES_MIN && line.t - since >= 1_000 * screen.frozen_after_s;
        if applies(Reason::FrozenList) && frozen {
            report(Reason::FrozenList);
            return Err(Outcome::Frozen);
        }

        // 4. Too many new games, maps or names.
        let day = settings.calendar.day(line.t);
        if server.day != day {
            (server.day, server.new) = (day, New::default());
        }
        let is_below = |reason, new: usize, per_day_max: usize| !applies(reason) || new < per_day_max;
        if !self.games.contains(game) {
            let in_total = !screen.enabled || self.games.len() < screen.games_max;
            if !in_total || !is_below(Reason::TooManyNewGames, server.new.games, screen.new_games_per_day_max) {
                report(Reason::TooManyNewGames);
                return Err(Outcome::Partial { count: None });
            }
            self.games.insert(game.clone());
            server.new.games += 1;
        }
        let mut counted_map = map.clone();
        if !self.maps.contains(map) && map != OTHER_MAP {
            let in_total = !screen.enabled || self.maps.len() < screen.maps_max;
            if in_total && is_below(Reason::TooManyNewMaps, server.new.maps, screen.new_maps_per_day_max) {
                self.maps.insert(map.clone());
                server.new.maps += 1;
            } else {
                report(Reason::TooManyNewMaps);
                counted_map = OTHER_MAP.to_owned();
            }
        }

        // 5. Spectators; and 2: which entries are usable.
        let times = |name: &str| list.iter().filter(|other| other.name == name).count();
        let mut entries = Vec::new();
        let mut refused = false;
        for e in &list {
            let spectator = screen.enabled && is_spectator(line, game, e.player, settings);
            let once = times(&e.name) == 1;
            let mut usable = once && !e.name.is_empty() && !settings.ignore.contains(&e.name);
            let who = PlayerId { game: game.clone(), name: e.name.clone() };
            if usable && !spectator && self.names.player(&who).is_none() {
                if is_below(Reason::TooManyNewNames, server.new.names, screen.new_names_per_day_max) {
                    server.new.names += 1;
                    self.names.add(who.clone());
                } else {
                    usable = false;
                    refused = true;
                }
            }
            entries.push(Entry {
                name: e.name.clone(),
                display: e.player.name.clone(),
                points: e.player.points,
                connected_ms: e.player.connected_ms,
                once,
                usable,
                spectator,
                player: self.names.player(&who).filter(|_| usable && !spectator),
            });
        }
        if refused {
            report(Reason::TooManyNewNames);
        }
        Ok(Snapshot {
            t: line.t,
            line: line.number,
            gap_ms: None,
            server: line.server.clone(),
            game: game.clone(),
            map: map.clone(),
            counted_map,
            count: player_count,
            entries,
            gains_exempt: exempt.contains(Reason::ImpossibleGain.name()),
        })
    }

    /// A partial list by rules 2: its result, and the map that time is counted for, if it names one.
    ///
    /// [open] Point 7 compares the count without bots. A count that is not believed does not keep the game
    /// and the map from getting keys.
    pub fn partial(
        &mut self,
        line: &Line,
        settings: &Settings,
        exempt: &BTreeSet<String>,
        greylisted: bool,
    ) -> (Outcome, Option<String>) {
        let LineKind::Partial { game, map, slots, count, bots } = &line.kind else { unreachable!() };
        let screen = &settings.screen;
        let count =
            count.map(|count| if settings.count_bots { count } else { count.saturating_sub(bots.unwrap_or(0)) });
        let applies = |reason: Reason| screen.enabled && !exempt.contains(reason.name());
        let mut outcome = match count {
            Some(count) if count > 1_000 || (*slots > 0 && count > *slots) => match applies(Reason::UnverifiedCount) {
                true => Outcome::Unverified,
                false => Outcome::Counted { count },
            },
            Some(count) => Outcome::Counted { count },
            None => Outcome::Partial { count: None },
        };
        let mut report = |reason| self.reports.push(Report { t: line.t, server: line.server.clone(), reason });
        if outcome == Outcome::Unverified {
            report(Reason::UnverifiedCount);
        }
        if greylisted {
            if let Outcome::Counted { count } = outcome {
                outcome = Outcome::Partial { count: Some(count) };
            }
            return (outcome, None);
        }
        let server = self.servers.entry(line.server.clone()).or_default();
        let day = settings.calendar.day(line.t);
        if server.day != day {
            (server.day, server.new) = (day, New::default());
        }
        let is_below = |reason, new: usize, per_day_max: usize| !applies(reason) || new < per_day_max;
        if !game.is_empty() && !self.games.contains(game) {
            let in_total = !screen.enabled || self.games.len() < screen.games_max;
            if !in_total || !is_below(Reason::TooManyNewGames, server.new.games, screen.new_games_per_day_max) {
                report(Reason::TooManyNewGames);
                return (Outcome::Partial { count: None }, None);
            }
            self.games.insert(game.clone());
            server.new.games += 1;
        }
        if map.is_empty() {
            return (outcome, None);
        }
        if self.maps.contains(map) || map == OTHER_MAP {
            return (outcome, Some(map.clone()));
        }
        let in_total = !screen.enabled || self.maps.len() < screen.maps_max;
        if in_total && is_below(Reason::TooManyNewMaps, server.new.maps, screen.new_maps_per_day_max) {
            self.maps.insert(map.clone());
            server.new.maps += 1;
            return (outcome, Some(map.clone()));
        }
        report(Reason::TooManyNewMaps);
        (outcome, Some(OTHER_MAP.to_owned()))
    }

    /// Names of a forgotten player are no longer remembered as names of bots.
    pub fn forget(&mut self, names: &HashSet<PlayerId>) {
        for server in self.servers.values_mut() {
            server.bots.retain(|bot| names.iter().all(|name| name.name != *bot));
        }
    }

    /// The recorded time is set back. [open] No list has been the same since a later time.
    pub fn set_clock_back(&mut self, to: i64) {
        for (_, _, since) in self.servers.values_mut().filter_map(|server| server.same.as_mut()) {
            *since = to.min(*since);
        }
    }
}

/// The count of a list of a greylisted server.
pub fn count_alone(line: &Line, settings: &Settings, exempt: &BTreeSet<String>) -> Option<u32> {
    let LineKind::Full { game, slots, bots, players, .. } = &line.kind else { unreachable!() };
    let enabled = settings.screen.enabled;
    if enabled && !exempt.contains(Reason::MorePlayersThanSlots.name()) && has_more_than_slots(*slots, players) {
        return None;
    }
    match bots.filter(|_| enabled && !settings.count_bots) {
        Some(bots) => Some((players.len() as u32).saturating_sub(bots)),
        None => Some(players.iter().filter(|player| !listed(line, game, player, settings).bot).count() as u32),
    }
}

/// Point 1.
fn has_more_than_slots(slots: u32, players: &[LoggedPlayer]) -> bool {
    slots > 0 && players.len() as u32 > slots + (slots / 4).max(8)
}

impl Server {
    /// Point 2. Marks the bots that their names identify. Returns the number of others.
    fn mark_bots(&mut self, list: &mut [Listed], bots: u32, count: u32) -> u32 {
        let mut left = bots;
        if bots == 0 {
            self.bots.retain(|bot| list.iter().all(|e| e.name != *bot));
        } else if bots >= count && bots as usize >= list.len() {
            for e in list {
                e.bot = true;
                self.bots.retain(|bot| *bot != e.name);
                if !e.name.is_empty() {
                    self.bots.push(e.name.clone());
                }
            }
            let too_many = self.bots.len().saturating_sub(BOT_NAMES_MAX);
            self.bots.drain(..too_many);
            // Bots that the list does not have are on no board.
            left = 0;
        } else {
            for e in list.iter_mut().filter(|e| self.bots.contains(&e.name)) {
                if left > 0 {
                    e.bot = true;
                    left -= 1;
                }
            }
        }
        left
    }

    /// Point 3. The time since which map, names and points have not changed.
    fn same_since(&mut self, t: i64, map: &str, list: &[Listed]) -> i64 {
        let shown = list.iter().filter_map(|e| Some((e.player.name.clone(), e.player.points?)));
        let mut shown: Vec<(String, i64)> = shown.collect();
        shown.sort();
        if self.same.as_ref().is_none_or(|(old_map, old, _)| (old_map.as_str(), old) != (map, &shown)) {
            self.same = Some((map.to_owned(), shown, t));
        }
        self.same.as_ref().expect("just set").2
    }
}

/// docs/rules.md 2: the normalised name, and whether the protocol or the ping shows a bot.
fn listed<'a>(line: &Line, game: &str, player: &'a LoggedPlayer, settings: &Settings) -> Listed<'a> {
    let by_ping = settings.ping_zero_is_bot && line.url.is_quake3_family() && player.ping == Some(0);
    let bot = !settings.count_bots && (player.bot || by_ping);
    Listed { player, name: normalised(&line.url, game, &player.name, settings), bot }
}

/// docs/rules.md 2.
pub fn normalised(url: &ServerUrl, game: &str, name: &str, settings: &Settings) -> String {
    let codes = match url.is_quake3_family() {
        true if url.scheme() == "darkplaces" || of_darkplaces(game, settings) => ColourCodes::DarkPlaces,
        true => ColourCodes::Quake3,
        false if settings.rules >= 2 && ["minecraft", "bedrock"].contains(&url.scheme()) => ColourCodes::Minecraft,
        false => ColourCodes::None,
    };
    normalise(name, codes)
}

fn of_darkplaces(game: &str, settings: &Settings) -> bool {
    settings.darkplaces_games.iter().any(|of| of.eq_ignore_ascii_case(game))
}

/// Point 5.
fn is_spectator(line: &Line, game: &str, player: &LoggedPlayer, settings: &Settings) -> bool {
    let marks = |of: &str| match of.strip_suffix("://") {
        Some(scheme) => line.url.scheme() == scheme,
        None if of == "darkplaces_games" => of_darkplaces(game, settings),
        None => of == game,
    };
    let mut markers = settings.screen.spectator_points.iter();
    player.spectator || markers.any(|(of, points)| marks(of) && player.points == Some(*points))
}
