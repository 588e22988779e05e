//! Snapshots whose list is not used: partial ones, and full ones that screening treats as partial.

use super::screening::apply_check;
use crate::engine::{GlobalState, ReadError, ServerState, StoreReader};
use crate::model::commit::MapRowKey;
use crate::model::packed_series::PackedSeries;
use crate::model::server::{PartialList, ScreenReason, ServerRecord};
use crate::model::snapshot::Snapshot;
use crate::model::{GameKey, MapKey, ServerKey, WeekKey};
use crate::rank::{INVISIBLE_GAP_MS, screen};
use crate::series::{self, slots};

impl GlobalState {
    /// A snapshot that was received as partial. Its count is a sample, and it may introduce a game and a map
    /// (docs/rules.md sections 10 and 14.4).
    pub(super) fn apply_partial(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
        server_state: &mut ServerState,
        snapshot: &Snapshot,
    ) -> Result<(), ReadError> {
        let rules = &self.settings.rules;
        if !rules.are_of_2() {
            self.apply_alive(server, server_state, snapshot, true, snapshot.announced_players());
            return Ok(());
        }
        let t_ms = snapshot.t_ms;
        let players = if rules.names.count_bots { snapshot.count } else { snapshot.announced_players() };
        let is_screened = rules.screen.enabled;
        let record = &mut *server_state.record;
        let is_unverified = players.is_some_and(|players| {
            is_screened
                && screen::is_unverified_count(snapshot.slots, players)
                && apply_check(record.screening.get_or_insert_default(), ScreenReason::UnverifiedCount, t_ms)
        });
        let week = self.calendar.week(t_ms);
        self.update_current_windows(source, t_ms);
        if record.greylist_reason.is_some() || !self.week_phase(week).is_open() {
            self.apply_alive(server, server_state, snapshot, true, players);
            server_state.record.recent.count_unverified |= is_unverified;
            server_state.record.class = self.class_of_answer(server_state);
            return Ok(());
        }

        let before = last_counted(record);
        let screening = record.screening.get_or_insert_default();
        screen::start_day_if_new(screening, self.calendar.day(t_ms));
        let game = match snapshot.game.is_empty() {
            true => record.game,
            false => match self.game_within_quota(screening, &snapshot.game, t_ms) {
                Some(game) => Some(game),
                None => {
                    self.apply_alive(server, server_state, snapshot, true, None);
                    return Ok(());
                }
            },
        };
        let map = match snapshot.map.is_empty() {
            true => before.map_or(record.map, |before| before.map),
            false => Some(self.map_within_quota(screening, &snapshot.map, t_ms).0),
        };
        self.update_server_info(server, server_state, snapshot, game, map);
        let record = &mut *server_state.record;
        if let Some(players) = players {
            record.count = players;
            record.recent.count_unverified = is_unverified;
        }
        if let Some(players) = players.filter(|_| !is_unverified) {
            self.credit_counted_gap(source, server, record, before, week, t_ms)?;
            record.recent.partial = Some(PartialList { t_ms, map });
            push_count(record, players);
            self.add_sample(server, server_state, t_ms);
            self.enqueue_changed_rows(week, server);
        }
        server_state.record.class = self.class_of_answer(server_state);
        Ok(())
    }

    /// A snapshot that only shows that the server is alive, its host name and slots, its game and map
    /// (`with_map`) and, if known, its player count. It never creates a key.
    pub(super) fn apply_alive(
        &mut self,
        server: ServerKey,
        server_state: &mut ServerState,
        snapshot: &Snapshot,
        with_map: bool,
        players: Option<u32>,
    ) {
        let (mut game, mut map) = (server_state.record.game, server_state.record.map);
        if with_map {
            game = self.games.find(&snapshot.game).map(GameKey).or(game);
            map = self.maps.find(&snapshot.map).map(MapKey);
        }
        self.update_server_info(server, server_state, snapshot, game, map);
        if let Some(players) = players {
            server_state.record.count = players;
            server_state.record.recent.count_unverified = false;
        }
        server_state.record.class = self.class_of_answer(server_state);
    }

    /// Credits the time since the last snapshot with a count to the map of that snapshot.
    pub(super) fn credit_counted_gap(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
        record: &mut ServerRecord,
        before: Option<PartialList>,
        week: WeekKey,
        t_ms: i64,
    ) -> Result<(), ReadError> {
        let assumed = series::assumed_players(record);
        match before.and_then(|before| Some((before.map?, t_ms - before.t_ms))) {
            Some((map, gap_ms)) if gap_ms <= INVISIBLE_GAP_MS => {
                let key = MapRowKey { week, server, map };
                self.credit_map_time(source, &mut record.map_time, key, gap_ms, assumed)
            }
            _ => Ok(()),
        }
    }

    /// Adds the assumed count to the series.
    pub(super) fn add_sample(&mut self, server: ServerKey, server_state: &mut ServerState, t_ms: i64) {
        let record = &mut *server_state.record;
        let series = server_state.series.get_or_insert_with(|| {
            self.pending.series.insert(server);
            PackedSeries::pack(&slots::new_series())
        });
        if slots::is_slot_over(&record.sums, t_ms)
            && series.change(|series| slots::advance(&mut record.sums, series, &self.calendar, t_ms))
        {
            self.pending.series.insert(server);
        }
        slots::add_sample(&mut record.sums, series::assumed_count(&record.counts));
    }
}

/// The last snapshot with a count.
pub(super) fn last_counted(record: &ServerRecord) -> Option<PartialList> {
    let full = || record.last_snapshot.as_ref().map(|last| PartialList { t_ms: last.t_ms, map: Some(last.map) });
    record.recent.partial.or_else(full)
}

/// Adds a count to the last three.
pub(super) fn push_count(record: &mut ServerRecord, count: u32) {
    if record.counts.is_full() {
        record.counts.remove(0);
    }
    record.counts.push(count);
}
