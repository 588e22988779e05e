//! Screening of full snapshots (docs/rules.md section 14): which lists are used, under which game and
//! map, and what is reported about a server.
//!
//! The checks are pure functions in [`crate::rank::screen`]; this module applies them to the
//! keys of games, maps and players, and to the server's record.

use crate::engine::{AdminError, Engine, GlobalState, ReadError, ReadModel, ServerState};
use crate::model::name::Name;
use crate::model::server::{ScreenReason, Screening, ServerRecord};
use crate::model::snapshot::Snapshot;
use crate::model::{GameKey, MapKey, ServerUrl};
use crate::rank::player_list::NameFamily;
use crate::rank::screen;

/// The map that replaces all maps that a server may not introduce.
const OTHER_MAP_NAME: &str = "(other)";

/// The result of screening a full snapshot.
pub(super) enum ScreeningResult {
    Credible(Credible),
    /// Treated as partial. `players`: the count to show, if the check provides one.
    Implausible {
        players: Option<u32>,
    },
}

/// A snapshot that is compared with the previous one.
pub(super) struct Credible {
    pub game: GameKey,
    pub map: MapKey,
    /// The map's name if it is counted as [`OTHER_MAP_NAME`].
    pub map_without_key: Option<Name>,
    /// The player count, if the list does not show it because the reply only counts bots.
    pub players: Option<u32>,
    /// How its names are read.
    pub family: NameFamily,
}

impl ReadModel {
    /// The current screening reasons of a server, each with the time when it last applied, Unix ms.
    pub(in crate::engine) fn screened(&self, record: &ServerRecord) -> Vec<(ScreenReason, i64)> {
        record.screening.iter().flat_map(|screening| screening.reasons(self.now_ms())).collect()
    }

    /// The checks from which a server is exempt.
    pub fn exempt_checks(&self, url: &ServerUrl) -> Vec<ScreenReason> {
        let server_state = self.find_key(url).ok().and_then(|key| self.servers.get(key));
        let screening = server_state.and_then(|server_state| server_state.record.screening.as_ref());
        screening.into_iter().flat_map(|screening| screening.exempt_reasons()).collect()
    }
}

impl Engine {
    /// Exempts a server from checks, or applies checks again. Returns whether that changed
    /// anything.
    pub fn trust_server(
        &mut self,
        url: &ServerUrl,
        except: &[ScreenReason],
        revoke: &[ScreenReason],
    ) -> Result<bool, AdminError> {
        let key = self.model.find_key(url)?;
        let screening =
            self.model.servers.get_mut(key).expect("named servers exist").record.screening.get_or_insert_default();
        let before = screening.exempt;
        except.iter().for_each(|reason| screening.set_exempt(*reason, true));
        revoke.iter().for_each(|reason| screening.set_exempt(*reason, false));
        let changed = screening.exempt != before;
        if changed {
            self.model.global.server_changed(key);
        }
        Ok(changed)
    }
}

impl GlobalState {
    /// Applies the checks of docs/rules.md section 14, in order, that judge the list as a whole: 1 to
    /// 4. Flags bots. Assigns keys to a new game and a new map.
    pub(super) fn screen(
        &mut self,
        server_state: &mut ServerState,
        snapshot: &mut Snapshot,
        family: NameFamily,
    ) -> ScreeningResult {
        let t_ms = snapshot.t_ms;
        let rules = &self.settings.rules;
        if !rules.screen.enabled {
            if server_state.record.greylist_reason.is_some() {
                return self.known_keys(snapshot, None, family);
            }
            let (game, map) = (self.game_key(&snapshot.game), self.map_key(&snapshot.map));
            return ScreeningResult::Credible(Credible { game, map, map_without_key: None, players: None, family });
        }
        let record = &mut *server_state.record;
        let screening = record.screening.get_or_insert_default();
        let entries = snapshot.players.len();
        if screen::has_more_players_than_slots(snapshot.slots, entries)
            && apply_check(screening, ScreenReason::MorePlayersThanSlots, t_ms)
        {
            return ScreeningResult::Implausible { players: None };
        }

        let mut players = None;
        if !rules.names.count_bots {
            screening.bots_unidentified =
                screen::mark_bots(screening, &mut snapshot.players, snapshot.count, snapshot.bots, family.codes);
            players = snapshot.bots.map(|bots| (entries as u32).saturating_sub(bots));
        }

        let non_bots = snapshot.players.iter().filter(|player| !rules.names.excludes(player, family));
        let with_points = non_bots.filter_map(|player| Some((player.name.as_str(), player.points?)));
        let frozen_after_ms = rules.screen.frozen_after_ms;
        if screen::is_frozen(screening, &snapshot.map, with_points, t_ms, frozen_after_ms)
            && apply_check(screening, ScreenReason::FrozenList, t_ms)
        {
            record.counts.clear();
            return ScreeningResult::Implausible { players: Some(0) };
        }

        if record.greylist_reason.is_some() {
            return self.known_keys(snapshot, players, family);
        }
        screen::start_day_if_new(screening, self.calendar.day(t_ms));
        let Some(game) = self.game_within_quota(screening, &snapshot.game, t_ms) else {
            return ScreeningResult::Implausible { players: None };
        };
        let (map, map_without_key) = self.map_within_quota(screening, &snapshot.map, t_ms);
        ScreeningResult::Credible(Credible { game, map, map_without_key, players, family })
    }

    /// The key of a game. `None`: the server may not introduce it (check 4), which is recorded.
    pub(super) fn game_within_quota(&mut self, screening: &mut Screening, name: &str, t_ms: i64) -> Option<GameKey> {
        let rules = &self.settings.rules.screen;
        let is_known = |name| self.known_before.as_ref().is_some_and(|before| before.has_game(name));
        if !rules.enabled || self.games.find(name).is_some() || is_known(name) {
            return Some(self.game_key(name));
        }
        let exempt = screening.is_exempt(ScreenReason::TooManyNewGames);
        let (introduced, known) = (&mut screening.introduced.games, self.games.len());
        if !screen::take_quota(introduced, rules.new_games_per_day_max, exempt, known, rules.games_max) {
            screening.record_reason(ScreenReason::TooManyNewGames, t_ms);
            return None;
        }
        Some(self.game_key(name))
    }

    /// The key of a map, or that of [`OTHER_MAP_NAME`] and the map's name, if the server may not introduce
    /// it (check 4), which is recorded.
    pub(super) fn map_within_quota(
        &mut self,
        screening: &mut Screening,
        name: &str,
        t_ms: i64,
    ) -> (MapKey, Option<Name>) {
        let rules = &self.settings.rules.screen;
        let is_known = |name| self.known_before.as_ref().is_some_and(|before| before.has_map(name));
        if !rules.enabled || self.maps.find(name).is_some() || is_known(name) {
            return (self.map_key(name), None);
        }
        let exempt = screening.is_exempt(ScreenReason::TooManyNewMaps);
        let known = self.maps.len() - u32::from(self.maps.find(OTHER_MAP_NAME).is_some());
        let introduced = &mut screening.introduced.maps;
        if screen::take_quota(introduced, rules.new_maps_per_day_max, exempt, known, rules.maps_max) {
            return (self.map_key(name), None);
        }
        screening.record_reason(ScreenReason::TooManyNewMaps, t_ms);
        (self.map_key(OTHER_MAP_NAME), Some(Name::from(name)))
    }

    /// The keys of a snapshot of a greylisted server, which gets no new ones. Without them only its
    /// player count is used.
    fn known_keys(&self, snapshot: &Snapshot, players: Option<u32>, family: NameFamily) -> ScreeningResult {
        match (self.games.find(&snapshot.game), self.maps.find(&snapshot.map)) {
            (Some(game), Some(map)) => {
                let (game, map) = (GameKey(game), MapKey(map));
                ScreeningResult::Credible(Credible { game, map, map_without_key: None, players, family })
            }
            _ => {
                let names = &self.settings.rules.names;
                let counted =
                    || snapshot.players.iter().filter(|player| !names.excludes(player, family)).count() as u32;
                ScreeningResult::Implausible { players: players.or_else(|| Some(counted())) }
            }
        }
    }

    /// Whether a server may introduce one more player name (check 4). Counts the name and
    /// records the reason.
    pub(super) fn may_introduce_name(
        &self,
        screening: &mut Option<Box<Screening>>,
        game: GameKey,
        name: &str,
        t_ms: i64,
    ) -> Result<bool, ReadError> {
        let rules = &self.settings.rules.screen;
        if !rules.enabled {
            return Ok(true);
        }
        if let Some(before) = &self.known_before
            && before.has_player(self.games.name(game.0), name)?
        {
            return Ok(true);
        }
        let screening = screening.get_or_insert_default();
        let exempt = screening.is_exempt(ScreenReason::TooManyNewNames);
        let introduced = &mut screening.introduced.names;
        let allowed = screen::take_quota(introduced, rules.new_names_per_day_max, exempt, 0, u32::MAX);
        if !allowed {
            screening.record_reason(ScreenReason::TooManyNewNames, t_ms);
        }
        Ok(allowed)
    }

    /// Returns the gain, or 0 if it is impossible (check 6). Records the reason.
    pub(super) fn credible_gain(&self, gain: i64, screening: &mut Option<Box<Screening>>, t_ms: i64) -> i64 {
        let rules = &self.settings.rules.screen;
        match rules.enabled && gain > rules.gain_max {
            true => screen::credible_gain(gain, screening.get_or_insert_default(), rules.gain_max, t_ms),
            false => gain,
        }
    }
}

/// Records a reason, unless the server is exempt from it. Returns whether it applies.
pub(super) fn apply_check(screening: &mut Screening, reason: ScreenReason, t_ms: i64) -> bool {
    let applies = !screening.is_exempt(reason);
    if applies {
        screening.record_reason(reason, t_ms);
    }
    applies
}
