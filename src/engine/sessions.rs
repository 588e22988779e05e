//! Completes sessions, deletes old ones, and answers queries about them (docs/rules.md section 16).
//!
//! An open session is a part of its presence. A complete one is stored by the day on which it ended, so that
//! old days are deleted as windows are. Sessions never enter a ranking.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::view::PLAYER_SERVERS_SEEN_MAX;
use super::windows::CLOSE_DELAY_MS;
use super::{Engine, GlobalState, ReadError, ReadModel, StateReader, StoreReader, ViewError};
use crate::model::calendar::{DAY_MS, HOUR_MS};
use crate::model::server::{PlayerRecord, Presence, ServerRecord};
use crate::model::{MapKey, OutboxKey, PlayerKey, Seen, ServerKey, ServerUrl, Session, SessionDay, SessionKey};
use crate::rank::INVISIBLE_GAP_MS;
use crate::view::ServerNameView;
use crate::view::board::PlayerSelector;
use crate::view::session::{Companion, ExportedSession, SessionView, Visitor, Visitors};

/// Servers whose sessions are completed in one tick because they are invisible: some 10 ms.
const INVISIBLE_PER_TICK: usize = 200;

impl Engine {
    /// Queues the check whether a server has become invisible, if it has open sessions.
    pub(super) fn queue_invisible(&mut self, server: ServerKey) {
        if self.invisible.is_queued(server) {
            return;
        }
        let until_ms = self.model.servers.get(server).and_then(|server_state| visible_until_ms(&server_state.record));
        if let Some(until_ms) = until_ms {
            // Replies in flight still show who stayed.
            self.invisible.queue(server, until_ms + CLOSE_DELAY_MS);
        }
    }

    /// Completes the sessions on servers that have become invisible, and deletes old days.
    pub(super) fn advance_sessions(&mut self, source: &dyn StoreReader) -> Result<(), ReadError> {
        for _ in 0..INVISIBLE_PER_TICK {
            let Some(server) = self.invisible.pop_due(self.model.now_ms()) else { break };
            let until_ms =
                self.model.servers.get(server).and_then(|server_state| visible_until_ms(&server_state.record));
            match until_ms {
                Some(until_ms) if until_ms + CLOSE_DELAY_MS <= self.model.now_ms() => {
                    self.complete_sessions(source, server, i64::MAX)?;
                }
                _ => self.queue_invisible(server),
            }
        }
        self.model.global.delete_old_sessions(source, self.close_limit_ms());
        Ok(())
    }

    /// Reads ahead what completing the sessions of a server reads.
    pub(super) fn read_seen(&mut self, source: &dyn StoreReader, server: ServerKey) -> Result<(), ReadError> {
        let Some(server_state) = self.model.servers.get(server) else { return Ok(()) };
        for presence in server_state.record.presences().filter(|presence| presence.session.is_some()) {
            if let Some(seen) = self.model.global.seen(source, presence.player)? {
                self.model.global.pending.seen.insert(presence.player, seen);
            }
        }
        Ok(())
    }

    /// Completes all open sessions of a server, at `until_ms` at the latest; the presences stay.
    pub(super) fn complete_sessions(
        &mut self,
        source: &dyn StoreReader,
        server: ServerKey,
        until_ms: i64,
    ) -> Result<(), ReadError> {
        let Some(server_state) = self.model.servers.get_mut(server) else { return Ok(()) };
        let Some(last) = &mut server_state.record.last_snapshot else { return Ok(()) };
        for presence in last.entries.iter_mut().filter_map(|entry| entry.presence.as_mut()) {
            if let Some(mut session) = presence.session.take() {
                let (player, at) = (presence.player, (last.t_ms.min(until_ms), last.map));
                session.start_ms = session.start_ms.min(at.0);
                self.model.global.complete_session(source, server, (player, player), session, at)?;
            }
        }
        self.model.global.server_record_changed(server);
        Ok(())
    }
}

/// Until when a server with open sessions is visible, Unix ms.
fn visible_until_ms(record: &ServerRecord) -> Option<i64> {
    let last = record.last_snapshot.as_ref()?;
    let has_open = record.presences().any(|presence| presence.session.is_some());
    has_open.then_some(last.t_ms + INVISIBLE_GAP_MS)
}

impl GlobalState {
    /// Opens the day of a snapshot, so that sessions that end with it can be stored.
    pub(super) fn open_session_day(&mut self, t_ms: i64) {
        if self.session_day(t_ms).is_none() && self.keeps_sessions(t_ms) {
            let day = SessionDay { generation: self.meta.session_generation, ..SessionDay::of(t_ms) };
            let at = self.meta.session_days.partition_point(|before| *before < day);
            self.meta.session_days.insert(at, day);
            self.pending.meta = true;
        }
    }

    /// The open day that contains a time.
    fn session_day(&self, t_ms: i64) -> Option<SessionDay> {
        self.meta.session_days.iter().rev().copied().find(|day| day.contains(t_ms))
    }

    /// Days that are opened from now on are other ones than deleted days of the same date.
    pub(super) fn begin_session_generation(&mut self) {
        self.meta.session_generation = self.meta.session_generation.wrapping_add(1);
        self.pending.meta = true;
    }

    /// Whether sessions that ended at a time are kept.
    fn keeps_sessions(&self, end_ms: i64) -> bool {
        let keep_ms = self.settings.keep_sessions_days * DAY_MS;
        keep_ms > 0 && end_ms >= self.meta.now_ms.saturating_sub(keep_ms)
    }

    /// Deletes the days whose sessions are too old at a time. A day with sessions that are not in the archive yet
    /// waits as long again as sessions are kept.
    fn delete_old_sessions(&mut self, source: &dyn StoreReader, now_ms: i64) {
        let keep_ms = self.settings.keep_sessions_days * DAY_MS;
        let kept_from_ms = now_ms.saturating_sub(keep_ms);
        let is_archived = |day: &SessionDay| {
            let is_pending = |key: &OutboxKey| matches!(key, OutboxKey::Session(key) if key.end_ms < day.end_ms());
            !self.settings.archive_enabled
                || day.end_ms() <= kept_from_ms.saturating_sub(keep_ms)
                || !(self.meta.resync
                    || source.outbox_oldest_session_ms().is_some_and(|oldest_ms| oldest_ms < day.end_ms())
                    || self.pending.outbox.iter().any(is_pending))
        };
        let is_old = |day: &&SessionDay| (keep_ms == 0 || day.end_ms() <= kept_from_ms) && is_archived(day);
        let old: Vec<SessionDay> = self.meta.session_days.iter().take_while(is_old).copied().collect();
        for day in old {
            self.meta.session_days.retain(|kept| *kept != day);
            self.pending.sessions.retain(|key, _| key.day() != day);
            self.pending.deleted_windows.push(day.into());
            self.pending.meta = true;
            if day.end_ms() > self.meta.now_ms.saturating_sub(DAY_MS) {
                self.begin_session_generation();
            }
        }
    }

    /// Stores a complete session. `player`: whose it is, and as whom it ended; `last`: time and map of the last list.
    pub(super) fn complete_session(
        &mut self,
        source: &dyn StateReader,
        server: ServerKey,
        (player, origin): (PlayerKey, PlayerKey),
        session: Session,
        (end_ms, map): (i64, MapKey),
    ) -> Result<(), ReadError> {
        let seen = match self.seen(source, player)? {
            Some(seen) => seen.and(session.start_ms, end_ms, self.meta.now_ms),
            None => {
                let first_ms = (player >= self.meta.first_seen_from).then_some(session.start_ms);
                Seen { first_ms, last_ms: end_ms }
            }
        };
        self.pending.seen.insert(player, seen);
        if let Some(SessionDay { generation, .. }) = self.session_day(end_ms) {
            let key = SessionKey { end_ms, server, player, origin, generation };
            self.put_session(key, Session { map, ..session });
        }
        Ok(())
    }

    fn put_session(&mut self, key: SessionKey, session: Session) {
        self.pending.sessions.insert(key, session);
        self.enqueue(OutboxKey::Session(key));
    }

    /// When a player was seen, as the next commit leaves it.
    fn seen(&self, source: &dyn StateReader, player: PlayerKey) -> Result<Option<Seen>, ReadError> {
        match self.pending.seen.get(&player) {
            Some(seen) => Ok(Some(*seen)),
            None if player >= self.first_uncommitted_player => Ok(None),
            None => source.seen(player),
        }
    }

    /// Moves the complete sessions of a player to another one. Nothing of them is pending.
    pub(super) fn move_sessions(
        &mut self,
        source: &dyn StateReader,
        from: PlayerKey,
        into: PlayerKey,
    ) -> Result<(), ReadError> {
        for key in self.delete_sessions(source, from)? {
            if let Some(session) = source.session(&key)? {
                self.put_session(SessionKey { player: into, ..key }, session);
            }
        }
        if let Some(from) = source.seen(from)? {
            let seen = self.seen(source, into)?.map_or(from, |into| into.merge(from));
            self.pending.seen.insert(into, seen);
        }
        Ok(())
    }

    /// Deletes the complete sessions of a player, and returns their keys. Nothing of them is pending.
    pub(super) fn delete_sessions(
        &mut self,
        source: &dyn StateReader,
        player: PlayerKey,
    ) -> Result<Vec<SessionKey>, ReadError> {
        let mut deleted = Vec::new();
        for &day in &self.meta.session_days {
            deleted.extend(source.sessions_of(day, player, usize::MAX)?);
        }
        self.pending.corrections.deleted_sessions.extend(&deleted);
        Ok(deleted)
    }

    /// Adds a list with the player to the open session. A session that was completed too early is not
    /// continued: another one begins.
    pub(super) fn add_to_session(presence: &mut Presence, t_ms: i64, map: MapKey, gain: Option<i64>) {
        presence.session.get_or_insert_with(|| Session::begin(t_ms, map)).add_list(gain);
    }
}

/// The newest sessions of a player whose companions are looked for, the servers with most time of them, and sessions
/// of each of these servers. Together some milliseconds.
const COMPANION_SESSIONS: usize = 50;
const COMPANION_SERVERS: usize = 5;
const COMPANION_SESSIONS_ON_SERVER: usize = 2_000;

/// Sessions of a week that has ended longer ago are stored: they are completed when their server has become invisible,
/// [`INVISIBLE_GAP_MS`] after its last list, and [`INVISIBLE_PER_TICK`] in each tick.
const UNSTORED_MS_MAX: i64 = HOUR_MS;

/// A session of a player on a server, and whether it is open.
type FoundSession = (SessionKey, Session, bool);

impl ReadModel {
    /// The newest sessions of a player, or of all players of a name, open ones first; at most `most`, which is at
    /// least 1.
    pub fn player_sessions(
        &self,
        source: &dyn StateReader,
        player: &PlayerSelector,
        most: usize,
    ) -> Result<Vec<SessionView>, ViewError> {
        let players: Vec<PlayerKey> = match player {
            PlayerSelector::Key(key) => self.current_player(source, PlayerKey(*key))?.into_iter().collect(),
            PlayerSelector::Name(name) => {
                self.players_named(source, name)?.into_iter().map(|(_, player)| player).collect()
            }
        };
        if players.is_empty() {
            return Err(match player {
                PlayerSelector::Key(key) => ViewError::UnknownPlayerKey(*key),
                PlayerSelector::Name(name) => ViewError::UnknownPlayer(name.clone()),
            });
        }
        let mut found = Vec::new();
        for player in players {
            found.extend(self.sessions_of(source, player, most)?);
        }
        self.newest_sessions(source, found, most)
    }

    fn sessions_of(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
        most: usize,
    ) -> Result<Vec<FoundSession>, ReadError> {
        let mut found = self.unstored_sessions_of(source, player)?;
        for &day in self.global.meta.session_days.iter().rev() {
            if found.len() >= most {
                break;
            }
            for key in source.sessions_of(day, player, most)? {
                if self.is_shown(key.end_ms)
                    && let Some(session) = source.session(&key)?
                {
                    found.push((key, session, false));
                }
            }
        }
        Ok(found)
    }

    /// The newest sessions on a server, of the last `last_s` seconds, open ones first; at most `most`, which is at
    /// least 1.
    pub fn server_sessions(
        &self,
        source: &dyn StateReader,
        url: &ServerUrl,
        last_s: Option<u32>,
        most: usize,
    ) -> Result<Vec<SessionView>, ViewError> {
        let (server, _) = self.find_server(url)?;
        let since_ms = last_s.map_or(0, |last_s| self.now_ms() - i64::from(last_s) * 1_000);
        let found = self.sessions_on(source, server, since_ms, most)?;
        self.newest_sessions(source, found, most)
    }

    /// The players of a server within the last `last_s` seconds, from at most `sessions_max` of the newest sessions; at
    /// most `most` of them with their names, each of which is read.
    pub fn server_visitors(
        &self,
        source: &dyn StateReader,
        url: &ServerUrl,
        last_s: u32,
        sessions_max: usize,
        most: usize,
    ) -> Result<Visitors, ViewError> {
        let (server, _) = self.find_server(url)?;
        let since_ms = self.now_ms() - i64::from(last_s) * 1_000;
        let mut sums: FxHashMap<PlayerKey, Visitor> = FxHashMap::default();
        for (SessionKey { player, end_ms, .. }, session, open) in
            self.sessions_on(source, server, since_ms, sessions_max)?.into_iter().take(sessions_max)
        {
            let sum = sums.entry(player).or_insert_with(|| Visitor::of(player.0));
            sum.sessions += 1;
            sum.time_ms += end_ms - session.start_ms;
            sum.points = session.points.map(|points| points.saturating_add(sum.points.unwrap_or(0))).or(sum.points);
            sum.last_ms = sum.last_ms.max(end_ms);
            sum.open |= open;
        }
        let count = sums.len() as u32;
        let mut longest: Vec<Visitor> = sums.into_values().collect();
        longest.sort_unstable_by_key(|visitor| (Reverse(visitor.time_ms), visitor.player_key));
        longest.truncate(most);
        for visitor in &mut longest {
            (visitor.name, visitor.display) = self.player_names(source, PlayerKey(visitor.player_key))?;
        }
        Ok(Visitors { count, longest })
    }

    /// The players who were there during the newest sessions of a player, those who were together longest first.
    pub fn companions(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
        most: usize,
    ) -> Result<Vec<Companion>, ViewError> {
        let current = self.current_player(source, player)?.ok_or(ViewError::UnknownPlayerKey(player.0))?;
        let mut own: BTreeMap<ServerKey, Vec<(i64, i64)>> = BTreeMap::new();
        for (key, session, _) in self.sessions_of(source, current, COMPANION_SESSIONS)? {
            own.entry(key.server).or_default().push((session.start_ms, key.end_ms));
        }
        let mut own: Vec<(ServerKey, Vec<(i64, i64)>)> = own.into_iter().collect();
        own.sort_by_key(|(_, times)| Reverse(times.iter().map(|(start_ms, end_ms)| end_ms - start_ms).sum::<i64>()));
        let mut together: FxHashMap<PlayerKey, i64> = FxHashMap::default();
        for (server, times) in own.into_iter().take(COMPANION_SERVERS) {
            let since_ms = times.iter().map(|(start_ms, _)| *start_ms).min().unwrap_or_default();
            for (key, session, _) in self.sessions_on(source, server, since_ms, COMPANION_SESSIONS_ON_SERVER)? {
                let overlap = |(start_ms, end_ms): &(i64, i64)| {
                    (*end_ms.min(&key.end_ms) - *start_ms.max(&session.start_ms)).max(0)
                };
                *together.entry(key.player).or_default() += times.iter().map(overlap).sum::<i64>();
            }
        }
        together.retain(|player, ms| *player != current && *ms > 0);
        let mut together: Vec<(PlayerKey, i64)> = together.into_iter().collect();
        together.sort_unstable_by_key(|(player, ms)| (Reverse(*ms), *player));
        together.truncate(most);
        let companion = |(player, together_ms): (PlayerKey, i64)| {
            let (name, display) = self.player_names(source, player)?;
            Ok(Companion { player_key: player.0, name, display, together_ms })
        };
        together.into_iter().map(companion).collect()
    }

    /// The complete sessions on a server, in the order of an export.
    pub fn export_sessions(
        &self,
        source: &dyn StateReader,
        server: ServerKey,
    ) -> Result<Vec<ExportedSession>, ViewError> {
        let mut found = self.sessions_on(source, server, i64::MIN, usize::MAX)?;
        found.retain(|(_, _, open)| !open);
        let views = self.session_views(source, found)?;
        let mut views: Vec<ExportedSession> = views.into_iter().map(ExportedSession::from).collect();
        // The rest of the order is that of equal sessions of merged players.
        fn order(session: &ExportedSession) -> (i64, i64, &str, &str, Option<i64>, &str, u32) {
            let ExportedSession { end, start, player, game, points, map, seen, .. } = session;
            (*end, *start, player, game, *points, map, *seen)
        }
        views.sort_by(|a, b| order(a).cmp(&order(b)));
        Ok(views)
    }

    /// When a player was first and last seen, Unix ms. `None`: the player comes from an archive, or was only
    /// seen before sessions were recorded.
    pub(super) fn seen_times(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
    ) -> Result<(Option<i64>, Option<i64>), ReadError> {
        let mut seen = source.seen(player)?;
        for (key, session, _) in self.unstored_sessions_of(source, player)? {
            let first_ms = (player >= self.global.meta.first_seen_from).then_some(session.start_ms);
            let before = seen.unwrap_or(Seen { first_ms, last_ms: key.end_ms });
            seen = Some(before.and(session.start_ms, key.end_ms, self.now_ms()));
        }
        let now_ms = self.now_ms();
        Ok((seen.and_then(|seen| seen.first_ms), seen.map(|seen| seen.last_ms).filter(|last_ms| *last_ms <= now_ms)))
    }

    /// Whether a complete session that ended at this time is shown. Later times come from a clock that was wrong.
    fn is_shown(&self, end_ms: i64) -> bool {
        self.global.keeps_sessions(end_ms) && end_ms <= self.now_ms()
    }

    /// The sessions on a server that are kept, the latest first.
    fn sessions_on(
        &self,
        source: &dyn StateReader,
        server: ServerKey,
        since_ms: i64,
        most: usize,
    ) -> Result<Vec<FoundSession>, ReadError> {
        let mut found: Vec<FoundSession> = self.unstored_sessions_on(server).collect();
        for &day in self.global.meta.session_days.iter().rev() {
            if found.len() >= most || day.end_ms() <= since_ms {
                break;
            }
            let stored = source.sessions_on(day, server, most)?.into_iter();
            found.extend(stored.map(|(key, session)| (key, session, false)));
        }
        found.retain(|(key, _, open)| *open || (self.is_shown(key.end_ms) && key.end_ms >= since_ms));
        Ok(found)
    }

    /// The sessions of the players in the last list of a server. One is complete when the server is invisible,
    /// even if it is not stored yet.
    fn unstored_sessions_on(&self, server: ServerKey) -> impl Iterator<Item = FoundSession> {
        let last = self.servers.get(server).and_then(|server_state| server_state.record.last_snapshot.as_ref());
        last.into_iter().flat_map(move |last| {
            let open = self.now_ms() - last.t_ms <= INVISIBLE_GAP_MS;
            let presences = last.entries.iter().filter_map(|entry| entry.presence.as_ref());
            presences.filter_map(move |presence| {
                let (end_ms, player) = (last.t_ms, presence.player);
                let session = Session { map: last.map, ..presence.session? };
                Some((SessionKey { end_ms, server, player, origin: player, generation: 0 }, session, open))
            })
        })
    }

    /// The sessions of a player that are not stored. The player has a row in the week of the last list of each of these
    /// servers.
    fn unstored_sessions_of(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
    ) -> Result<Vec<FoundSession>, ReadError> {
        let mut servers = BTreeSet::new();
        let ended_ms = |week| self.now_ms() - self.global.calendar.week_end_ms(week);
        let weeks = self.global.meta.weeks.iter().rev().take(2);
        for state in weeks.filter(|state| ended_ms(state.week) < UNSTORED_MS_MAX) {
            let player_window = self.global.latest_player_window(source, state.week.into(), player)?;
            let newest_first = player_window.iter().flat_map(|player_window| player_window.servers.iter().rev());
            servers.extend(newest_first.copied().take(PLAYER_SERVERS_SEEN_MAX));
        }
        let sessions = servers.into_iter().flat_map(|server| self.unstored_sessions_on(server));
        Ok(sessions.filter(|(key, _, _)| key.player == player).collect())
    }

    fn newest_sessions(
        &self,
        source: &dyn StateReader,
        mut found: Vec<FoundSession>,
        most: usize,
    ) -> Result<Vec<SessionView>, ViewError> {
        found.sort_by_key(|(key, session, open)| (Reverse(*open), Reverse(key.end_ms), session.start_ms, *key));
        found.truncate(most);
        self.session_views(source, found)
    }

    fn session_views(&self, source: &dyn StateReader, found: Vec<FoundSession>) -> Result<Vec<SessionView>, ViewError> {
        // Most players have several sessions.
        let mut names: FxHashMap<PlayerKey, (String, String, String)> = FxHashMap::default();
        let mut views = Vec::with_capacity(found.len());
        for (key, session, open) in found {
            let (game, name, display) = match names.entry(key.player) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let record = self.global.player_record(source, key.player)?;
                    place.insert(record.map_or_else(Default::default, |PlayerRecord { game, name, display }| {
                        (self.global.games.name(game.0).to_owned(), name.into(), display.into())
                    }))
                }
            };
            let ServerNameView { url: server, hostname } = self.server_name(key.server);
            views.push(SessionView {
                player_key: key.player.0,
                game: game.clone(),
                name: name.clone(),
                display: display.clone(),
                server,
                hostname,
                start_ms: session.start_ms,
                end_ms: key.end_ms,
                points: session.points,
                map: self.global.maps.name(session.map.0).to_owned(),
                seen: session.seen,
                open,
            });
        }
        Ok(views)
    }
}
