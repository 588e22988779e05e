//! From an outcome of a scan to what it changes: presence, points, rounds,
//! maps, series, class (RULES sections 2 to 7, 9, 10).

use std::hint::black_box;

use super::{Books, Engine, Notice, Outcome, Slot, Source};
use crate::model::commit::{MapRowKey, RowKey, WeekPhase};
use crate::model::row::{Rating, WeekRow};
use crate::model::server::{Class, Entry, LastSnapshot, MapTime, Presence, Rows};
use crate::model::snapshot::{Completeness, Snapshot};
use crate::model::{GameKey, MapKey, OutboxKey, PlayerKey, ServerKey, TagKey, WeekKey, WindowKey};
use crate::rank::{INVISIBLE_GAP_MS, clq1, clq2, elo, names, points, round};
use crate::schedule::{POPULATED_MIN, class_of};
use crate::series::{self, slots};

/// A scan that begins later than this after it was due is counted as late.
const LATE_MS: i64 = 2_000;

/// Pause before the first scan of a server that we could not make.
const FIRST_SCAN_AGAIN_MS: i64 = 60_000;

impl Engine {
    pub(super) fn on_scanned<S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        id: u64,
        sent_ms: Option<i64>,
        outcome: Outcome,
    ) -> Result<(), S::Error> {
        let Some(scan) = self.schedule.land(server, id) else {
            return Ok(()); // asked by a life before this one, or taken back
        };
        let t_ms = outcome.t_ms();
        self.see_time(t_ms);
        let Some(slot) = self.slot_mut(server) else { return Ok(()) };
        slot.asked = false;
        if slot.record.removed {
            return Ok(());
        }
        let class_before = slot.record.class;
        let missed = match &outcome {
            Outcome::Snapshot(_) => None,
            Outcome::Miss { reason, .. } => Some(reason.clone()),
        };
        let full = matches!(&outcome, Outcome::Snapshot(s) if s.completeness == Completeness::Full);
        let partial = missed.is_none() && !full;
        self.on_outcome(source, server, outcome)?;
        let lag_ms = sent_ms.map(|sent| sent - scan.due_ms);
        // What is asked for is due at once, however much of it there is: it may
        // wait for the scanner's budgets. Lag tells of the schedule.
        if let Some(lag_ms) = lag_ms.filter(|_| !scan.asked) {
            self.lags.add(lag_ms);
            self.counts.late += u64::from(lag_ms > LATE_MS);
        }
        if full {
            self.counts.snapshots_by_class[usize::from(scan.class.number()) - 1] += 1;
        }
        let class = self.slot(server).expect("it was there above").record.class;
        self.notices.push_back(Notice {
            server,
            t_ms,
            asked: scan.asked,
            partial,
            class_before,
            class,
            lag_ms,
            missed,
        });
        Ok(())
    }

    /// A scan could not be made, by a fault of our own: it says nothing about
    /// the server, which is simply planned again. One that was never scanned
    /// has no interval to be planned by, and is asked again after a pause.
    pub fn scan_failed_here(&mut self, server: ServerKey, id: u64, t_ms: i64, reason: &str) {
        let Some(scan) = self.schedule.land(server, id) else { return };
        self.see_time(t_ms);
        let now_ms = self.now_ms();
        let Some(slot) = self.slot_mut(server) else { return };
        if slot.record.removed {
            return;
        }
        let owed = slot.record.awaits_first_scan();
        slot.asked = owed;
        let class = slot.record.class;
        self.notices.push_back(Notice {
            server,
            t_ms,
            asked: scan.asked,
            partial: false,
            class_before: class,
            class,
            lag_ms: None,
            missed: Some(reason.to_owned()),
        });
        match owed {
            true => self.schedule.ask(server, now_ms + FIRST_SCAN_AGAIN_MS),
            false => self.schedule.plan(server, class, now_ms),
        }
    }

    /// Credits an outcome and plans the next scan.
    pub(super) fn on_outcome<S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        outcome: Outcome,
    ) -> Result<(), S::Error> {
        let t_ms = outcome.t_ms();
        self.books.emptied.clear();
        let slot = self.servers[server.0 as usize].as_mut().expect("outcomes are of known servers");
        let latest = slot.record.last_scan_ms.unwrap_or(i64::MIN);
        if t_ms <= latest {
            self.counts.out_of_order += 1;
            self.schedule.plan(server, slot.record.class, self.books.meta.now_ms);
            return Ok(());
        }
        let books = &mut self.books;
        match outcome {
            Outcome::Miss { .. } => {
                self.counts.misses += 1;
                books.miss(slot);
            }
            Outcome::Snapshot(snapshot) if snapshot.completeness != Completeness::Full => {
                self.counts.partials += 1;
                books.partial(slot, snapshot);
            }
            Outcome::Snapshot(snapshot) => {
                let week = books.calendar.week(t_ms);
                books.see_windows(source, t_ms);
                if books.week_phase(week) != WeekPhase::Open {
                    // Too late for the week's statistics; alive all the same.
                    self.counts.out_of_order += 1;
                    books.seen(slot, &snapshot);
                    slot.record.class = class_of(0, is_populated(slot));
                } else {
                    self.counts.snapshots += 1;
                    self.counts.rounds += u64::from(books.full(source, server, slot, snapshot, week)?);
                }
            }
        }
        slot.record.last_scan_ms = Some(t_ms);
        if let Some(series) = &mut slot.series {
            // A full snapshot has advanced it already, before its sample.
            if slots::advance(&mut slot.record.sums, series, &books.calendar, t_ms) {
                books.pending.series.insert(server);
            }
        }
        books.server_changed(server);
        self.schedule.plan(server, slot.record.class, t_ms.max(books.meta.now_ms));
        Ok(())
    }
}

impl Books {
    fn miss(&mut self, slot: &mut Slot) {
        let record = &mut slot.record;
        record.missed = record.missed.saturating_add(1);
        slot.record.class = match record.class {
            Class::UNKNOWN | Class::FAILED => Class::FAILED,
            _ => class_of(record.missed, is_populated(slot)),
        };
    }

    /// A partial snapshot proves that the server is alive and gives its map
    /// and, where the server told it, its count; it is never compared. What its
    /// torn list holds, bots and all, is no count.
    fn partial(&mut self, slot: &mut Slot, mut snapshot: Snapshot) {
        let Completeness::Partial { count } = snapshot.completeness else { unreachable!("checked by the caller") };
        let family = self.name_family(slot, &snapshot.game);
        self.empty_forgotten(&mut snapshot.players, family, &snapshot.game, slot.record.last.as_ref());
        self.seen(slot, &snapshot);
        if let Some(count) = count {
            slot.record.count = count;
        }
        slot.record.class = class_of(0, is_populated(slot));
    }

    /// What every reply tells, whole or not.
    fn seen(&mut self, slot: &mut Slot, snapshot: &Snapshot) {
        let (game, map) = (self.game_key(&snapshot.game), self.map_key(&snapshot.map));
        let record = &mut slot.record;
        record.missed = 0;
        record.last_seen_ms = Some(snapshot.t_ms);
        record.game = Some(game);
        record.map = Some(map);
        record.slots = snapshot.slots;
        if record.hostname != snapshot.hostname {
            record.hostname.clone_from(&snapshot.hostname);
        }
    }

    /// A full snapshot. Returns whether a round that counts was rated.
    fn full<S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        slot: &mut Slot,
        mut snapshot: Snapshot,
        week: WeekKey,
    ) -> Result<bool, S::Error> {
        let t_ms = snapshot.t_ms;
        slot.record.last.iter().for_each(|last| ask_for_rows(&last.entries));
        let game_before = slot.record.last.as_ref().map(|last| last.game);
        let mut players = std::mem::take(&mut snapshot.players);
        let assumed_before = series::assumed(&slot.record);
        self.seen(slot, &snapshot);
        let family = self.name_family(slot, &snapshot.game);
        self.empty_forgotten(&mut players, family, &snapshot.game, slot.record.last.as_ref());
        let record = &mut slot.record;
        let (game, map) = (record.game.expect("just seen"), record.map.expect("just seen"));

        let read = slot.read.take();
        let before = record.last.as_mut().zip(read.as_ref()).map(|(last, (family, by_name))| names::Before {
            entries: &mut last.entries,
            by_name,
            family: *family,
        });
        let screened = names::screen(players, &self.settings.rules.names, family, before);
        let ignored = record.greylist.is_some();
        let common = match record.last.as_ref().filter(|_| !ignored) {
            Some(last) => {
                let by_name = read.map_or_else(|| names::ByName::of(&last.entries), |(_, by_name)| by_name);
                screened.in_common(&last.entries, &by_name)
            }
            None => Vec::new(),
        };
        let names::Screened { mut entries, usable, by_name, .. } = screened;

        let mut rated = false;
        let mut prev = record.last.take();
        if let Some(prev) = prev.as_mut().filter(|_| !ignored) {
            let rules = self.settings.rules.round;
            let restarted = round::restarted(prev.map, &prev.entries, map, &entries, &common, rules);
            if restarted {
                rated = self.rate_round(source, server, prev.game, &record.tags, &mut prev.entries, t_ms)?;
            }
            let gap_ms = t_ms - prev.t_ms;
            if gap_ms <= INVISIBLE_GAP_MS {
                if game_before == Some(game) {
                    for &(p, c) in common.iter().filter(|&&(_, c)| usable[usize::from(c)]) {
                        let before = &mut prev.entries[usize::from(p)];
                        let now = &mut entries[usize::from(c)];
                        let gap = Gap { from_ms: prev.t_ms, to_ms: t_ms, restarted };
                        self.stay(source, server, prev.game, before, now, gap)?;
                    }
                }
                self.map_time(source, server, &mut record.map_time, prev.map, week, gap_ms, assumed_before)?;
            }
            for entry in &mut prev.entries {
                self.leave(server, entry.presence.take());
            }
        }
        if !ignored {
            let visible = prev.as_ref().is_some_and(|prev| t_ms - prev.t_ms <= INVISIBLE_GAP_MS);
            for at in (0..entries.len()).filter(|&at| usable[at]) {
                if entries[at].presence.is_some() {
                    continue;
                }
                let player = self.player_key(source, game, &entries[at])?;
                // Of two names of one person the one that is there already, or else
                // the first of the list, is his presence.
                let mut present = entries.iter().filter_map(|entry| Some(entry.presence.as_ref()?.player));
                if !present.any(|other| other == player) {
                    self.enter(source, server, game, player, &mut entries[at], visible, t_ms)?;
                }
            }
            self.archive(OutboxKey::Week { week, server });
            self.shelf.changed_all(&self.windows.keys, &entries);
        }

        let count = entries.len() as u32;
        if record.counts.is_full() {
            record.counts.remove(0);
        }
        record.counts.push(count);
        record.count = count;
        record.total_points = entries.iter().map(|e| e.points).sum();
        record.last = Some(LastSnapshot { t_ms, map, game, entries });
        slot.read = Some((family, by_name));
        slot.record.class = class_of(0, is_populated(slot));
        if !ignored {
            let record = &mut slot.record;
            let series = slot.series.get_or_insert_with(|| {
                self.pending.series.insert(server);
                Box::new(slots::empty())
            });
            if slots::advance(&mut record.sums, series, &self.calendar, t_ms) {
                self.pending.series.insert(server);
            }
            slots::sample(&mut record.sums, series::assumed_count(&record.counts));
        }
        Ok(rated)
    }

    fn name_family(&self, slot: &Slot, game: &str) -> names::NameFamily {
        let url = &slot.record.url;
        self.settings.rules.names.family(url.scheme(), url.is_quake3_family(), game)
    }

    fn stay<S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        before: &mut Entry,
        now: &mut Entry,
        gap: Gap,
    ) -> Result<(), S::Error> {
        let Some(mut presence) = before.presence.take() else { return Ok(()) };
        let gain = match gap.restarted {
            true => points::gain_from_zero(now.points),
            false => points::gain_stayed(before.points, now.points),
        };
        let (start, segment) = (&mut presence.segment_start_ms, &mut presence.segment_points);
        let complete = clq1::spread(start, segment, gain, gap.from_ms, gap.to_ms);
        for (_, row) in self.touch(source, server, game, &mut presence, gap.to_ms)? {
            row.measured_ms += (gap.to_ms - gap.from_ms) as u64;
            row.time_at = gap.to_ms;
            if gain > 0 {
                row.points += gain;
                row.points_at = gap.to_ms;
            }
            complete.iter().for_each(|&value| row.clq1_segments.offer(value, gap.to_ms));
        }
        if before.display() != now.display() {
            self.rename(source, presence.player, now.display())?;
        }
        now.presence = Some(presence);
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // one entrance, told whole
    fn enter<S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        player: PlayerKey,
        entry: &mut Entry,
        visible: bool,
        t_ms: i64,
    ) -> Result<(), S::Error> {
        let mut presence = Presence { player, segment_start_ms: t_ms, segment_points: 0.0, rows: Rows::new() };
        let gain = if visible { points::gain_from_zero(entry.points) } else { 0 };
        for (_, row) in self.touch(source, server, game, &mut presence, t_ms)? {
            row.starts = row.starts.saturating_add(1);
            row.time_at = t_ms;
            if gain > 0 {
                row.points += gain;
                row.points_at = t_ms;
            }
        }
        entry.presence = Some(presence);
        Ok(())
    }

    pub(super) fn leave(&mut self, server: ServerKey, presence: Option<Presence>) {
        let Some(Presence { player, rows, .. }) = presence else { return };
        for (window, row) in rows {
            self.shelf.changed(window, player);
            self.put_row(RowKey { window, server, player }, &row);
        }
    }

    /// ELO and CLQ2 of a final list (RULES sections 4, 6, 7), credited to the
    /// windows of the snapshot that revealed the restart. `game` is that of the
    /// list, which its players are known in.
    fn rate_round<S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        tags: &[TagKey],
        entries: &mut [Entry],
        t_ms: i64,
    ) -> Result<bool, S::Error> {
        let Some(order) = round::final_list(entries) else { return Ok(false) };
        for presence in entries.iter_mut().filter_map(|entry| entry.presence.as_mut()) {
            self.touch(source, server, game, presence, t_ms)?;
        }
        // Asked for together, as in `ask_for_rows`: they lie behind what that reads.
        black_box(rows_of(entries).fold(0, |all, row| all ^ row.clq2_games.sum()));
        let points: Vec<i64> = entries.iter().map(|entry| entry.points).collect();
        let descending: Vec<i64> = order.iter().map(|&i| points[usize::from(i)]).collect();
        let games = clq2::game_points(&descending, self.settings.rules.clq2_quarter);
        for (&i, game) in order.iter().zip(games) {
            let Some(presence) = &mut entries[usize::from(i)].presence else { continue };
            presence.rows.iter_mut().for_each(|(_, row)| row.clq2_games.offer(game, t_ms));
        }
        let elo = self.settings.rules.elo;
        let tags = self.tags_there(tags);
        for at in 0..self.windows.keys.len() {
            let window = self.windows.keys[at];
            let before = |entry: &Entry| entry.presence.as_ref().map_or(elo::ELO_START, |p| p.rows[at].1.elo);
            let ratings: Vec<f64> = entries.iter().map(before).collect();
            let ratings = elo::new_ratings(&points, &ratings, elo);
            for (entry, rating) in entries.iter_mut().zip(ratings) {
                let Some(presence) = &mut entry.presence else { continue };
                let row = &mut presence.rows[at].1;
                let rounds = row.elo_rounds.saturating_add(1);
                row.set_rating(Rating { elo: rating, rounds, at_ms: t_ms });
            }
            let players: Vec<_> = entries.iter().map(|entry| entry.presence.as_ref().map(|p| p.player)).collect();
            self.rate_scope(source, window, game, None, &players, &points, t_ms)?;
            for &tag in &tags {
                self.rate_scope(source, window, game, Some(tag), &players, &points, t_ms)?;
            }
        }
        Ok(true)
    }

    /// The same round for the rating of its own that a scope has: the game, or a
    /// tag. `players` and `points` are in the order of the list.
    #[allow(clippy::too_many_arguments)] // one round of one scope, told whole
    fn rate_scope<S: Source>(
        &mut self,
        source: &S,
        window: WindowKey,
        game: GameKey,
        tag: Option<TagKey>,
        players: &[Option<PlayerKey>],
        points: &[i64],
        t_ms: i64,
    ) -> Result<(), S::Error> {
        self.player_windows.ask_for(players.iter().flatten().map(|player| (window, *player)));
        let mut before = Vec::with_capacity(players.len());
        for player in players {
            let rating = match *player {
                Some(player) => match self.player_window(source, window, game, player)?.rating(tag) {
                    Some(rating) => Some(rating),
                    None => self.carried_rating(source, window, game, tag, player)?,
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

    /// With `elo.carry_over`, the last rating in that scope in an earlier week.
    fn carried_rating<S: Source>(
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

    #[allow(clippy::too_many_arguments)] // one gap of one map, told whole
    fn map_time<S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        map_time: &mut Option<MapTime>,
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
            *map_time = Some(MapTime { week, map, row });
        }
        if let Some(MapTime { row, .. }) = map_time {
            row.played_ms += gap_ms as u64;
            row.player_ms += gap_ms as u64 * u64::from(assumed);
        }
        Ok(())
    }

    pub(super) fn flush_map_time(&mut self, server: ServerKey, map_time: Option<MapTime>) {
        if let Some(MapTime { week, map, row }) = map_time {
            self.pending.map_rows.entry((week, server)).or_default().insert(map, row);
        }
    }

    /// The rows of the presence in the windows of `t_ms`, made or fetched where
    /// they are not at hand; rows of windows that it has left go to their place.
    fn touch<'a, S: Source>(
        &mut self,
        source: &S,
        server: ServerKey,
        game: GameKey,
        presence: &'a mut Presence,
        t_ms: i64,
    ) -> Result<&'a mut [(WindowKey, Box<WeekRow>)], S::Error> {
        let at_hand = presence.rows.iter().map(|(window, _)| *window);
        if !at_hand.eq(self.windows.keys.iter().copied()) {
            let player = presence.player;
            let rows = std::mem::take(&mut presence.rows).into_iter();
            let (mut now, old): (Vec<_>, Vec<_>) = rows.partition(|(window, _)| self.windows.keys.contains(window));
            // Before any is fetched: a new row may go on from an older one.
            for (window, row) in old {
                self.put_row(RowKey { window, server, player }, &row);
            }
            for at in 0..self.windows.keys.len() {
                let window = self.windows.keys[at];
                let row = match now.iter().position(|(w, _)| *w == window) {
                    Some(at) => now.swap_remove(at).1,
                    None => self.fetch_row(source, RowKey { window, server, player }, game, t_ms)?,
                };
                presence.rows.push((window, row));
            }
        }
        Ok(&mut presence.rows)
    }

    fn fetch_row<S: Source>(
        &mut self,
        source: &S,
        key: RowKey,
        game: GameKey,
        t_ms: i64,
    ) -> Result<Box<WeekRow>, S::Error> {
        // Where he has been in the window says whether there is a row to be read.
        if self.player_window(source, key.window, game, key.player)?.servers.contains(&key.server) {
            if let Some(row) = self.row(source, key)? {
                return Ok(Box::new(row));
            }
        } else {
            self.player_window_mut(source, key.window, game, key.player)?.servers.push(key.server);
        }
        Ok(Box::new(WeekRow::new(t_ms, self.first_elo(source, key)?)))
    }

    /// 1000, or with `elo.carry_over` the last rating on that server.
    fn first_elo<S: Source>(&self, source: &S, key: RowKey) -> Result<f64, S::Error> {
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

/// Reads a little of each row that lives with a list. Memory answers for all of
/// them together; where each is first looked at when its turn comes, each is waited
/// for: a quarter of the time of a snapshot with 20,000 servers.
fn ask_for_rows(entries: &[Entry]) {
    let texts = entries.iter().fold(0, |all, entry| all ^ entry.display().as_bytes().first().copied().unwrap_or(0));
    black_box(rows_of(entries).fold(i64::from(texts), |all, row| all ^ row.time_at));
}

/// The rows that live with a list.
fn rows_of(entries: &[Entry]) -> impl Iterator<Item = &WeekRow> {
    let presences = entries.iter().filter_map(|entry| entry.presence.as_ref());
    presences.flat_map(|presence| &presence.rows).map(|(_, row)| &**row)
}

fn is_populated(slot: &Slot) -> bool {
    slot.record.count >= POPULATED_MIN || series::assumed(&slot.record) >= POPULATED_MIN
}
