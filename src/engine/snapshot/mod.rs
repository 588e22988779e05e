//! Applies the outcome of a scan: presence, points, rounds, maps, series, class (docs/rules.md sections
//! 2 to 7, 9, 10).

pub(in crate::engine) mod screening;

use std::hint::black_box;

use super::{Engine, GlobalState, Notice, Outcome, ServerState, StateReader};
use crate::engine::snapshot::screening::{Credible, ScreeningResult};
use crate::model::commit::{MapRowKey, RowKey, WeekPhase};
use crate::model::row::{PlayerRow, Rating};
use crate::model::server::{Class, CurrentMapRow, LastSnapshot, PlayerEntry, Presence, PresenceRows, Screening};
use crate::model::snapshot::{Completeness, Snapshot};
use crate::model::{GameKey, MapKey, OutboxKey, PlayerKey, ServerKey, TagKey, WeekKey, WindowKey};
use crate::rank::estimate::{self, Rates};
use crate::rank::{INVISIBLE_GAP_MS, clq1, clq2, elo, player_list, points, round};
use crate::schedule::class_of;
use crate::series::{self, slots};

/// A scan whose first packet is later than this after its due time is counted as late.
const LATE_SCAN_MS: i64 = 2_000;

/// Pause before a first scan is repeated after a local failure.
const FIRST_SCAN_RETRY_MS: i64 = 60_000;

impl Engine {
    pub(super) fn handle_scanned<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        id: u64,
        sent_ms: Option<i64>,
        outcome: Outcome,
    ) -> Result<(), S::Error> {
        let Some(scan) = self.schedule.complete(server, id) else {
            return Ok(()); // requested before a restart, or cancelled
        };
        let t_ms = outcome.t_ms();
        self.advance_time(t_ms);
        let Some(slot) = self.server_state_mut(server) else { return Ok(()) };
        slot.scan_requested = false;
        if slot.record.removed {
            return Ok(());
        }
        let class_before = slot.record.class;
        let missed = match &outcome {
            Outcome::Snapshot(_) => None,
            Outcome::Miss { reason, .. } => Some(reason.clone()),
        };
        let full = self.apply_outcome(source, server, outcome)?;
        let partial = missed.is_none() && !full;
        let lag_ms = sent_ms.map(|sent| sent - scan.due_ms);
        // A requested scan is due at once, and many of them may wait for the scanner's budgets.
        // So the lag is counted for scheduled scans only.
        if let Some(lag_ms) = lag_ms.filter(|_| !scan.requested) {
            self.lag_histogram.add(lag_ms);
            self.counts.late_scans += u64::from(lag_ms > LATE_SCAN_MS);
        }
        if full {
            self.counts.snapshots_by_class[usize::from(scan.class.number()) - 1] += 1;
        }
        let class = self.server_state(server).expect("checked above").record.class;
        self.notices.push_back(Notice {
            server,
            t_ms,
            requested: scan.requested,
            partial,
            class_before,
            class,
            lag_ms,
            missed,
        });
        Ok(())
    }

    /// Handles a scan that failed for a local reason. This says nothing about the server, so
    /// the scan is scheduled again. A server that was never scanned has no interval, so its
    /// first scan is repeated after a pause.
    pub fn handle_local_scan_failure(&mut self, server: ServerKey, id: u64, t_ms: i64, reason: &str) {
        let Some(scan) = self.schedule.complete(server, id) else { return };
        self.advance_time(t_ms);
        let now_ms = self.now_ms();
        let Some(slot) = self.server_state_mut(server) else { return };
        if slot.record.removed {
            return;
        }
        let awaits_first_scan = slot.record.awaits_first_scan();
        slot.scan_requested = awaits_first_scan;
        let class = slot.record.class;
        self.notices.push_back(Notice {
            server,
            t_ms,
            requested: scan.requested,
            partial: false,
            class_before: class,
            class,
            lag_ms: None,
            missed: Some(reason.to_owned()),
        });
        match awaits_first_scan {
            true => self.schedule.schedule_now(server, now_ms + FIRST_SCAN_RETRY_MS),
            false => self.schedule.schedule_next(server, class, now_ms),
        }
    }

    /// Credits an outcome and schedules the next scan. Returns whether its list was complete
    /// and credible, and so was compared with the previous list.
    pub(super) fn apply_outcome<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        outcome: Outcome,
    ) -> Result<bool, S::Error> {
        let t_ms = outcome.t_ms();
        self.global.blanked_names.clear();
        let slot = self.servers[server.0 as usize].as_mut().expect("outcomes are of known servers");
        let latest = slot.record.last_scan_ms.unwrap_or(i64::MIN);
        if t_ms <= latest {
            self.counts.out_of_order += 1;
            self.schedule.schedule_next(server, slot.record.class, self.global.meta.now_ms);
            return Ok(false);
        }
        let global = &mut self.global;
        let mut compared = false;
        match outcome {
            Outcome::Miss { .. } => {
                self.counts.misses += 1;
                global.apply_miss(slot);
            }
            Outcome::Snapshot(mut snapshot) => {
                let family = global.name_family(slot, &snapshot.game);
                global.blank_forgotten_names(
                    &mut snapshot.players,
                    family,
                    &snapshot.game,
                    slot.record.last_snapshot.as_ref(),
                );
                if snapshot.completeness == Completeness::Partial {
                    self.counts.partial_snapshots += 1;
                    global.apply_partial(slot, &snapshot, snapshot.announced_players());
                } else {
                    let week = global.calendar.week(t_ms);
                    global.update_current_windows(source, t_ms);
                    if global.week_phase(week) != WeekPhase::Running {
                        // Too late for the statistics of the week, but the server is alive.
                        self.counts.out_of_order += 1;
                        global.apply_partial(slot, &snapshot, None);
                    } else {
                        match global.screen(slot, &mut snapshot, family) {
                            ScreeningResult::Implausible { players } => {
                                self.counts.implausible_snapshots += 1;
                                global.apply_partial(slot, &snapshot, players);
                            }
                            ScreeningResult::Credible(credible) => {
                                self.counts.snapshots += 1;
                                let rated =
                                    global.apply_snapshot(source, server, slot, snapshot, family, credible, week)?;
                                self.counts.rounds += u64::from(rated);
                                compared = true;
                            }
                        }
                    }
                }
            }
        }
        slot.record.last_scan_ms = Some(t_ms);
        if let Some(series) = &mut slot.series {
            // A full snapshot has advanced it already, before adding its sample.
            if slots::advance(&mut slot.record.sums, series, &global.calendar, t_ms) {
                global.pending.series.insert(server);
            }
        }
        global.server_changed(server);
        self.schedule.schedule_next(server, slot.record.class, t_ms.max(global.meta.now_ms));
        self.queue_expiry(server);
        Ok(compared)
    }
}

impl GlobalState {
    fn apply_miss(&mut self, slot: &mut ServerState) {
        let record = &mut slot.record;
        record.missed = record.missed.saturating_add(1);
        slot.record.class = match record.class {
            Class::UNKNOWN | Class::FAILED => Class::FAILED,
            _ => class_of(record.missed, self.is_populated(slot)),
        };
    }

    /// A snapshot whose list is not used. It shows that the server is alive, its map and, if
    /// known, its player count. It never creates a key.
    fn apply_partial(&mut self, slot: &mut ServerState, snapshot: &Snapshot, players: Option<u32>) {
        let game = self.games.find(&snapshot.game).map(GameKey);
        let map = self.maps.find(&snapshot.map).map(MapKey);
        self.update_server_info(slot, snapshot, game.or(slot.record.game), map);
        if let Some(players) = players {
            slot.record.count = players;
        }
        slot.record.class = class_of(0, self.is_populated(slot));
    }

    /// Applies the fields that every reply contains, complete or not.
    fn update_server_info(
        &mut self,
        slot: &mut ServerState,
        snapshot: &Snapshot,
        game: Option<GameKey>,
        map: Option<MapKey>,
    ) {
        let record = &mut slot.record;
        record.missed = 0;
        record.last_seen_ms = Some(snapshot.t_ms);
        record.game = game;
        record.map = map;
        record.slots = snapshot.slots;
        if record.hostname != snapshot.hostname {
            record.hostname.clone_from(&snapshot.hostname);
        }
    }

    /// Applies a full and credible snapshot. Returns whether it revealed the end of a round
    /// that was rated.
    #[allow(clippy::too_many_arguments)] // one snapshot with the results of its checks
    fn apply_snapshot<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        slot: &mut ServerState,
        mut snapshot: Snapshot,
        family: player_list::NameFamily,
        credible: Credible,
        week: WeekKey,
    ) -> Result<bool, S::Error> {
        let t_ms = snapshot.t_ms;
        slot.record.last_snapshot.iter().for_each(|last| prefetch_rows(&last.entries));
        let players = std::mem::take(&mut snapshot.players);
        let assumed_before = series::assumed_players(&slot.record);
        let Credible { game, map, map_without_key, players: players_announced } = credible;
        self.update_server_info(slot, &snapshot, Some(game), Some(map));
        let record = &mut slot.record;

        let read = slot.name_index.take();
        let before = record.last_snapshot.as_mut().zip(read.as_ref()).map(|(last, (family, by_name))| {
            player_list::PreviousList { entries: &mut last.entries, by_name, family: *family }
        });
        let mut list = player_list::read_list(players, &self.settings.rules.names, family, before);
        let ignored = record.greylist_reason.is_some();

        let mut rated = false;
        let mut prev = record.last_snapshot.take().filter(|_| !ignored);
        let mut before = PreviousSighting::Invisible;
        if let Some(prev) = &mut prev {
            let by_name = read.map_or_else(|| player_list::NameIndex::of(&prev.entries), |(_, by_name)| by_name);
            let common = list.unique_pairs(&prev.entries, &by_name);
            let same_map = match (&prev.map_without_key, &map_without_key) {
                (None, None) => prev.map == map,
                // Compare the map as received: it may have got a key since the previous
                // snapshot.
                _ => prev.map_without_key.as_deref().unwrap_or_else(|| self.maps.name(prev.map.0)) == snapshot.map,
            };
            let repeats = || list.shares_duplicate_name(&prev.entries, &by_name);
            let rules = self.settings.rules.round;
            let restarted = !same_map || round::restarted(&prev.entries, &list.entries, &common, repeats, rules);
            let gap = Gap { from_ms: prev.t_ms, to_ms: t_ms, restarted };
            let mut stays = Vec::new();
            if gap.ms() <= INVISIBLE_GAP_MS {
                before = PreviousSighting::Visible(gap);
                if prev.game == game {
                    stays = common;
                    stays.retain(|&(_, c)| list.usable[usize::from(c)]);
                }
                for presence in prev.entries.iter_mut().filter_map(|entry| entry.presence.as_mut()) {
                    self.load_missing_rows(source, server, prev.game, presence)?;
                }
                self.estimate_unseen(&mut prev.entries, &list.entries, &stays, gap);
            }
            if restarted {
                rated = self.rate_round(source, server, prev.game, &record.tags, &mut prev.entries, t_ms)?;
            }
            if let PreviousSighting::Visible(gap) = before {
                for (p, c) in stays {
                    let (before, now) = (&mut prev.entries[usize::from(p)], &mut list.entries[usize::from(c)]);
                    self.credit_stay(source, server, prev.game, before, now, gap, &mut record.screening)?;
                }
                self.credit_map_time(source, server, &mut record.map_time, prev.map, week, gap.ms(), assumed_before)?;
            }
            for entry in &mut prev.entries {
                self.end_presence(server, entry.presence.take());
            }
        }
        if !ignored {
            let prev_entries = prev.as_ref().map_or(&[][..], |prev| &prev.entries);
            for at in (0..list.entries.len()).filter(|&at| list.usable[at]) {
                if list.entries[at].presence.is_some() {
                    continue;
                }
                let player = match self.player_key(source, game, &list.entries[at])? {
                    Some(player) => player,
                    None if self.may_introduce_name(&mut record.screening, t_ms) => {
                        self.new_player(game, &list.entries[at])
                    }
                    None => continue, // over the quota of new names: unusable in this snapshot
                };
                // Two names of a list may belong to one player. The entry that has the presence
                // keeps it; without one, the first entry of the list gets it.
                let mut present = list.entries.iter().filter_map(|entry| Some(entry.presence.as_ref()?.player));
                if present.any(|other| other == player) {
                    continue;
                }
                let before = match before {
                    PreviousSighting::Visible(gap) if list.was_spectator(at, prev_entries) => {
                        PreviousSighting::Spectating(gap)
                    }
                    before => before,
                };
                self.credit_entry(
                    source,
                    server,
                    game,
                    player,
                    &mut list.entries[at],
                    before,
                    t_ms,
                    &mut record.screening,
                )?;
            }
            self.enqueue(OutboxKey::Week { week, server });
            self.board_cache.mark_list_dirty(&self.current_windows.keys, &list.entries);
        }

        let player_list::PlayerList { entries, by_name, .. } = list;
        let count = players_announced.unwrap_or(entries.len() as u32);
        if record.counts.is_full() {
            record.counts.remove(0);
        }
        record.counts.push(count);
        record.count = count;
        record.total_points = entries.iter().filter_map(PlayerEntry::playing_points).sum();
        record.last_snapshot = Some(LastSnapshot { t_ms, map, map_without_key, game, entries });
        slot.name_index = Some((family, by_name));
        slot.record.class = class_of(0, self.is_populated(slot));
        if !ignored {
            let record = &mut slot.record;
            let series = slot.series.get_or_insert_with(|| {
                self.pending.series.insert(server);
                Box::new(slots::new_series())
            });
            if slots::advance(&mut record.sums, series, &self.calendar, t_ms) {
                self.pending.series.insert(server);
            }
            slots::add_sample(&mut record.sums, series::assumed_count(&record.counts));
        }
        Ok(rated)
    }

    /// Whether a server that answers is of class 1.
    pub(super) fn is_populated(&self, slot: &ServerState) -> bool {
        let players_min = self.settings.class1_players_min;
        slot.record.count >= players_min || series::assumed_players(&slot.record) >= players_min
    }

    fn name_family(&self, slot: &ServerState, game: &str) -> player_list::NameFamily {
        let (url, rules) = (&slot.record.url, &self.settings.rules);
        rules.names.family(&rules.screen, url.scheme(), url.is_quake3_family(), game)
    }

    /// Estimates what a gap hides (docs/rules.md section 15), in the windows in which the players had a
    /// row before this snapshot: half of the gap as time of players who left, the points that
    /// they probably scored in it, and the points that all players probably scored between the
    /// last scan of a round and its end. The presences must hold all rows of their players
    /// ([`GlobalState::load_missing_rows`]).
    fn estimate_unseen(&self, prev: &mut [PlayerEntry], cur: &[PlayerEntry], stays: &[(u16, u16)], gap: Gap) {
        let is_present = |entry: &&PlayerEntry| entry.presence.is_some();
        let staying = stays.iter().filter(|&&(p, _)| prev[usize::from(p)].presence.is_some()).count();
        if !gap.restarted && staying == prev.iter().filter(is_present).count() {
            return;
        }
        let mut points_now: Vec<Option<i64>> = vec![None; prev.len()];
        let mut stay = vec![false; prev.len()];
        for &(p, c) in stays {
            stay[usize::from(p)] = true;
            points_now[usize::from(p)] = cur[usize::from(c)].points;
        }
        for &window in &self.current_windows.keys {
            let rates = Rates::of(prev.iter().filter_map(|entry| row_with_points(entry, window)));
            let mut at_end_ms = 0.0;
            if gap.restarted {
                let (mut points, mut rate) = (0_i64, 0.0);
                for (entry, now) in prev.iter().zip(&points_now) {
                    if let (Some(row), Some(now)) = (row_with_points(entry, window), now) {
                        points = points.saturating_add(points::gain_from_zero(*now));
                        rate += rates.rate(row);
                    }
                }
                at_end_ms = estimate::unseen_at_round_end_ms(gap.ms(), points, rate);
            }
            let before_leaving_ms = estimate::unseen_before_leaving_ms(gap.ms(), gap.restarted);
            for (entry, &stays) in prev.iter_mut().zip(&stay) {
                let has_points = entry.points.is_some();
                let Some(row) = entry.presence.as_mut().and_then(|presence| presence.row_mut(window)) else { continue };
                if has_points {
                    let unseen_ms = if stays { at_end_ms } else { before_leaving_ms };
                    let points = estimate::thousandths(rates.rate(row), unseen_ms);
                    row.points_unseen_thousandths = row.points_unseen_thousandths.saturating_add(points);
                }
                if !stays {
                    row.time_est_ms += gap.ms() as u64 / 2;
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // one player in one gap
    fn credit_stay<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        before: &mut PlayerEntry,
        now: &mut PlayerEntry,
        gap: Gap,
        screening: &mut Option<Box<Screening>>,
    ) -> Result<(), S::Error> {
        let Some(mut presence) = before.presence.take() else { return Ok(()) };
        let gain = match (before.points, now.points) {
            (_, Some(now)) if gap.restarted => points::gain_from_zero(now),
            (Some(before), Some(now)) => points::gain_stayed(before, now),
            _ => 0,
        };
        let gain = self.credible_gain(gain, screening, gap.to_ms);
        let (start, segment) = (&mut presence.segment_start_ms, &mut presence.segment_points);
        let complete = clq1::spread_gain(start, segment, gain, gap.from_ms, gap.to_ms);
        let has_points = now.points.is_some();
        let mut saturated = false;
        for (_, row) in self.current_rows(source, server, game, &mut presence, gap.to_ms)? {
            row.measured_ms += gap.ms() as u64;
            row.time_est_ms += gap.ms() as u64;
            row.time_at_ms = gap.to_ms;
            row.has_points |= has_points;
            if gain > 0 {
                saturated |= !row.add_points(gain, gap.to_ms);
            }
            complete.iter().for_each(|&value| row.clq1_segments.insert(value, gap.to_ms));
        }
        self.points_saturated += u64::from(saturated);
        if before.display() != now.display() {
            self.rename(source, presence.player, now.display())?;
        }
        now.presence = Some(presence);
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // one player who joins
    fn credit_entry<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        player: PlayerKey,
        entry: &mut PlayerEntry,
        before: PreviousSighting,
        t_ms: i64,
        screening: &mut Option<Box<Screening>>,
    ) -> Result<(), S::Error> {
        let mut presence = Presence { player, segment_start_ms: t_ms, segment_points: 0.0, rows: PresenceRows::new() };
        let from_zero = points::gain_from_zero(entry.points.unwrap_or(0));
        let (starts, gain, time_est_ms) = match before {
            PreviousSighting::Invisible => (1, 0, 60_000),
            PreviousSighting::Visible(gap) => (1, from_zero, gap.ms() as u64 / 2),
            PreviousSighting::Spectating(gap) => (0, if gap.restarted { from_zero } else { 0 }, gap.ms() as u64 / 2),
        };
        let gain = self.credible_gain(gain, screening, t_ms);
        let has_points = entry.points.is_some();
        let mut saturated = false;
        for (_, row) in self.current_rows(source, server, game, &mut presence, t_ms)? {
            row.starts = row.starts.saturating_add(starts);
            row.time_est_ms += time_est_ms;
            row.has_points |= has_points;
            if starts > 0 {
                row.time_at_ms = t_ms;
            }
            if gain > 0 {
                saturated |= !row.add_points(gain, t_ms);
            }
        }
        self.points_saturated += u64::from(saturated);
        entry.presence = Some(presence);
        Ok(())
    }

    pub(super) fn end_presence(&mut self, server: ServerKey, presence: Option<Presence>) {
        let Some(Presence { player, rows, .. }) = presence else { return };
        for (window, row) in rows {
            self.board_cache.mark_dirty(window, player);
            self.put_row(RowKey { window, server, player }, &row);
        }
    }

    /// Rates a final list: ELO and CLQ2 (docs/rules.md sections 4, 6, 7), credited to the windows of the
    /// snapshot that revealed the restart. `game` is the game of the list.
    fn rate_round<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        tags: &[TagKey],
        entries: &mut [PlayerEntry],
        t_ms: i64,
    ) -> Result<bool, S::Error> {
        let Some(order) = round::final_list(entries) else { return Ok(false) };
        for &(at, _) in &order {
            if let Some(presence) = &mut entries[usize::from(at)].presence {
                self.current_rows(source, server, game, presence, t_ms)?;
            }
        }
        // Prefetched, as in `prefetch_rows`: these fields are reached through a pointer in the
        // rows.
        black_box(rows_of(entries).fold(0, |all, row| all ^ row.clq2_games.sum()));
        let descending: Vec<i64> = order.iter().map(|&(_, points)| points).collect();
        let games = clq2::game_points(&descending, self.settings.rules.clq2_quarter);
        for (&(at, _), game) in order.iter().zip(games) {
            let Some(presence) = &mut entries[usize::from(at)].presence else { continue };
            for (_, row) in &mut presence.rows {
                row.clq2_games.insert(game, t_ms);
                row.has_points = true;
            }
        }
        // Ratings are computed in the order of the server's list.
        let mut order = order;
        order.sort_unstable_by_key(|&(at, _)| at);
        let points: Vec<i64> = order.iter().map(|&(_, points)| points).collect();
        let elo = self.settings.rules.elo;
        let tags = self.existing_tags(tags);
        for at in 0..self.current_windows.keys.len() {
            let window = self.current_windows.keys[at];
            let presence = |&(i, _): &(u16, i64)| entries[usize::from(i)].presence.as_ref();
            let players: Vec<_> = order.iter().map(|place| presence(place).map(|p| p.player)).collect();
            let before = |place| presence(place).map_or(elo::ELO_START, |p| p.rows[at].1.elo);
            let ratings: Vec<f64> = order.iter().map(before).collect();
            let ratings = elo::new_ratings(&points, &ratings, elo);
            for (&(i, _), rating) in order.iter().zip(ratings) {
                let Some(presence) = &mut entries[usize::from(i)].presence else { continue };
                let row = &mut presence.rows[at].1;
                let rounds = row.elo_rounds.saturating_add(1);
                row.set_rating(Rating { elo: rating, rounds, at_ms: t_ms });
            }
            self.rate_scope(source, window, game, None, &players, &points, t_ms)?;
            for &tag in &tags {
                self.rate_scope(source, window, game, Some(tag), &players, &points, t_ms)?;
            }
        }
        Ok(true)
    }

    /// Rates the same round for the separate rating of a scope: the game, or a tag. `players`
    /// and `points` are in the order of the list.
    #[allow(clippy::too_many_arguments)] // one round of one scope
    fn rate_scope<S: StateReader>(
        &mut self,
        source: &S,
        window: WindowKey,
        game: GameKey,
        tag: Option<TagKey>,
        players: &[Option<PlayerKey>],
        points: &[i64],
        t_ms: i64,
    ) -> Result<(), S::Error> {
        self.player_windows.prefetch(players.iter().flatten().map(|player| (window, *player)));
        let mut before = Vec::with_capacity(players.len());
        for player in players {
            let rating = match *player {
                Some(player) => match self.player_window(source, window, game, player)?.rating(tag) {
                    Some(rating) => Some(rating),
                    None => self.carried_over_rating(source, window, game, tag, player)?,
                },
                None => None,
            };
            before.push(rating.unwrap_or(Rating { elo: elo::ELO_START, rounds: 0, at_ms: t_ms }));
        }
        let ratings: Vec<f64> = before.iter().map(|rating| rating.elo).collect();
        let ratings = elo::new_ratings(points, &ratings, self.settings.rules.elo);
        for ((player, before), elo) in players.iter().zip(before).zip(ratings) {
            let Some(player) = *player else { continue };
            let rating = Rating { elo, rounds: before.rounds.saturating_add(1), at_ms: t_ms };
            self.player_window_mut(source, window, game, player)?.set_rating(tag, rating);
        }
        Ok(())
    }

    /// With `elo.carry_over`, the last rating of the player in the scope in an earlier week.
    fn carried_over_rating<S: StateReader>(
        &mut self,
        source: &S,
        window: WindowKey,
        game: GameKey,
        tag: Option<TagKey>,
        player: PlayerKey,
    ) -> Result<Option<Rating>, S::Error> {
        if !self.settings.rules.elo.carry_over || window.week().is_none() {
            return Ok(None);
        }
        for older in self.weeks_before(window) {
            if let Some(rating) = self.player_window(source, older, game, player)?.rating(tag) {
                return Ok(Some(Rating { rounds: 0, ..rating }));
            }
        }
        Ok(None)
    }

    #[allow(clippy::too_many_arguments)] // one gap of one map
    fn credit_map_time<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        map_time: &mut Option<CurrentMapRow>,
        map: MapKey,
        week: WeekKey,
        gap_ms: i64,
        assumed: u32,
    ) -> Result<(), S::Error> {
        if !matches!(map_time, Some(m) if m.week == week && m.map == map) {
            self.flush_map_time(server, map_time.take());
            let key = MapRowKey { week, server, map };
            let pending = self.pending.map_rows.get(&(week, server)).and_then(|rows| rows.get(&map));
            let row = match pending {
                Some(row) => *row,
                None => source.map_row(key)?.unwrap_or_default(),
            };
            *map_time = Some(CurrentMapRow { week, map, row });
        }
        if let Some(CurrentMapRow { row, .. }) = map_time {
            row.played_ms += gap_ms as u64;
            row.player_ms += gap_ms as u64 * u64::from(assumed);
        }
        Ok(())
    }

    pub(super) fn flush_map_time(&mut self, server: ServerKey, map_time: Option<CurrentMapRow>) {
        if let Some(CurrentMapRow { week, map, row }) = map_time {
            self.pending.map_rows.entry((week, server)).or_default().insert(map, row);
        }
    }

    /// Returns the rows of the presence in the windows of `t_ms`. Missing rows are read or
    /// created; rows of windows that have ended are moved to the pending rows.
    fn current_rows<'a, S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        presence: &'a mut Presence,
        t_ms: i64,
    ) -> Result<&'a mut [(WindowKey, Box<PlayerRow>)], S::Error> {
        let held = presence.rows.iter().map(|(window, _)| *window);
        if !held.eq(self.current_windows.keys.iter().copied()) {
            let player = presence.player;
            let rows = std::mem::take(&mut presence.rows).into_iter();
            let (mut now, old): (Vec<_>, Vec<_>) =
                rows.partition(|(window, _)| self.current_windows.keys.contains(window));
            // Before any row is read: a new row may carry over the rating of an older one.
            for (window, row) in old {
                self.put_row(RowKey { window, server, player }, &row);
            }
            for at in 0..self.current_windows.keys.len() {
                let window = self.current_windows.keys[at];
                let row = match now.iter().position(|(w, _)| *w == window) {
                    Some(at) => now.swap_remove(at).1,
                    None => self.load_or_create_row(source, RowKey { window, server, player }, game, t_ms)?,
                };
                presence.rows.push((window, row));
            }
        }
        Ok(&mut presence.rows)
    }

    /// Adds to the presence the player's rows in the current windows that it does not hold:
    /// rows of windows that were imported, and all rows after a merge.
    fn load_missing_rows<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        presence: &mut Presence,
    ) -> Result<(), S::Error> {
        let player = presence.player;
        for at in 0..self.current_windows.keys.len() {
            let window = self.current_windows.keys[at];
            if presence.row(window).is_some()
                || !self.player_window(source, window, game, player)?.servers.contains(&server)
            {
                continue;
            }
            if let Some(row) = self.row(source, RowKey { window, server, player })? {
                let at = presence.rows.partition_point(|(before, _)| *before < window);
                presence.rows.insert(at, (window, Box::new(row)));
            }
        }
        Ok(())
    }

    fn load_or_create_row<S: StateReader>(
        &mut self,
        source: &S,
        key: RowKey,
        game: GameKey,
        t_ms: i64,
    ) -> Result<Box<PlayerRow>, S::Error> {
        // The servers in the player's window record show whether there is a stored row.
        if self.player_window(source, key.window, game, key.player)?.servers.contains(&key.server) {
            if let Some(row) = self.row(source, key)? {
                return Ok(Box::new(row));
            }
        } else {
            self.player_window_mut(source, key.window, game, key.player)?.servers.push(key.server);
        }
        Ok(Box::new(PlayerRow::new(t_ms, self.initial_elo(source, key)?)))
    }

    /// 1000, or with `elo.carry_over` the last rating on that server.
    fn initial_elo<S: StateReader>(&self, source: &S, key: RowKey) -> Result<f64, S::Error> {
        if !self.settings.rules.elo.carry_over || key.window.week().is_none() {
            return Ok(elo::ELO_START);
        }
        for window in self.weeks_before(key.window) {
            if let Some(row) = self.row(source, RowKey { window, ..key })? {
                return Ok(row.elo);
            }
        }
        let best = source.best(key.server, key.player)?;
        Ok(best.and_then(|best| best.elo).unwrap_or(elo::ELO_START))
    }
}

/// The time between two snapshots that are compared.
#[derive(Clone, Copy)]
struct Gap {
    from_ms: i64,
    to_ms: i64,
    restarted: bool,
}

impl Gap {
    fn ms(self) -> i64 {
        self.to_ms - self.from_ms
    }
}

/// What the previous snapshot shows about a player who joins.
#[derive(Clone, Copy)]
enum PreviousSighting {
    /// No snapshot, or one too long ago: the points only set the baseline.
    Invisible,
    /// A list without the player.
    Visible(Gap),
    /// A list with the player as a spectator.
    Spectating(Gap),
}

/// Prefetches the rows of a list, so that their cache misses overlap. Without it the misses
/// take a quarter of the time of a snapshot (20,000 servers).
fn prefetch_rows(entries: &[PlayerEntry]) {
    let bytes = entries.iter().fold(0, |all, entry| all ^ entry.display().as_bytes().first().copied().unwrap_or(0));
    black_box(rows_of(entries).fold(i64::from(bytes), |all, row| all ^ row.time_at_ms));
}

/// The row of an entry that has points.
fn row_with_points(entry: &PlayerEntry, window: WindowKey) -> Option<&PlayerRow> {
    entry.presence.as_ref()?.row(window).filter(|_| entry.points.is_some())
}

/// The rows held by the presences of a list.
fn rows_of(entries: &[PlayerEntry]) -> impl Iterator<Item = &PlayerRow> {
    let presences = entries.iter().filter_map(|entry| entry.presence.as_ref());
    presences.flat_map(|presence| &presence.rows).map(|(_, row)| &**row)
}
