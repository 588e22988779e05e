//! A resync: everything that the state holds is written to the archive. It is needed
//! for an archive that is new or that another state has filled, and after the outbox
//! was full and dropped entries.
//!
//! The archive's worker requests chunk after chunk and acknowledges each when it is
//! written. The cursor is in `Meta`, so a resync continues after a restart of the
//! daemon or of the database. Nothing but another archive sets it back to the start.
//! Chunks do not go through the outbox: a million players would be two million
//! records written here only to be deleted again.

use std::mem::Discriminant;

use super::changes::ChangedRows;
use super::{BestPositionsIn, Engine, ReadError, ReadModel, StoreReader};
use crate::engine::GlobalState;
use crate::model::archive::{ArchiveJob, KeyRange, ObjectRange, PlayerKeyRange, ResyncChunk, ResyncStep};
use crate::model::commit::Meta;
use crate::model::outbox::{ResyncCursor, ResyncState};
use crate::model::restored::LastKeys;
use crate::model::server::PlayerRecord;
use crate::model::{GameKey, MapKey, OutboxKey, PlayerKey, ServerKey, SessionDay, WeekKey};

impl GlobalState {
    /// Requests a resync: the outbox has dropped an entry, or there is no archive.
    pub(in crate::engine) fn require_resync(&mut self) {
        let state = &mut self.meta.resync_state;
        if !self.meta.resync {
            self.meta.resync = true;
            (state.next, state.repeat) = (ResyncCursor::START, false);
            self.pending.meta = true;
        } else if state.next != ResyncCursor::START && !state.repeat {
            state.repeat = true;
            self.pending.meta = true;
        }
    }
}

impl ReadModel {
    /// The ID of the archive that this state fills; `None`: none so far.
    pub fn archive_id(&self) -> Option<u64> {
        self.global.meta.resync_state.archive_id
    }

    /// Whether the resync in progress replaces and deletes what differs in the archive.
    pub fn repairs_archive(&self) -> bool {
        self.global.meta.resync && self.global.meta.resync_state.repairs
    }

    /// The largest keys that were ever assigned, 0 if there is none. No key in the archive of this
    /// state is larger.
    pub fn last_keys(&self) -> LastKeys {
        let Meta { next_game, next_map, next_player, next_server, .. } = &self.global.meta;
        LastKeys { game: next_game - 1, map: next_map - 1, player: next_player - 1, server: next_server - 1 }
    }

    /// The chunk at `from`, or at the first position that is not acknowledged. It reads
    /// at most `steps_max` records of names or servers, and no more weeks once their
    /// rows reach `rows_max`. There must be no change that is not committed.
    pub fn resync_chunk(
        &self,
        source: &dyn StoreReader,
        from: Option<ResyncCursor>,
        steps_max: usize,
        rows_max: usize,
    ) -> Result<ResyncStep, ReadError> {
        assert!(!self.has_changes(), "commit before archiving");
        let settings = &self.global.settings;
        let from = from.unwrap_or(self.global.meta.resync_state.next);
        if !self.global.meta.resync || !settings.archive_enabled || from == ResyncCursor::End {
            return Ok(ResyncStep::Idle);
        }
        // While entries are dropped, anything written now would be written again later.
        if settings.outbox_full || source.outbox_len() > settings.outbox_entries_max / 2 {
            return Ok(ResyncStep::DrainFirst);
        }
        Ok(ResyncStep::Chunk(Box::new(self.read_objects(source, from, steps_max, rows_max)?)))
    }

    /// The objects at a position, all of one kind: at most `steps_max` of them, and no more once their rows reach
    /// `rows_max`. Not at the end.
    pub(in crate::engine) fn read_objects(
        &self,
        source: &dyn StoreReader,
        from: ResyncCursor,
        steps_max: usize,
        rows_max: usize,
    ) -> Result<ResyncChunk, ReadError> {
        let chunk = ResyncChunk { from, next: from, range: None, names: vec![], records: vec![], postponed: vec![] };
        let mut reader = ChunkReader { model: self, source, chunk, rows: 0 };
        for step in 0..steps_max {
            let at = reader.chunk.next;
            reader.chunk.next = match at {
                // Players are read in batches: one by one takes four times as long.
                ResyncCursor::Player(key) => reader.players(key, steps_max - step)?,
                at => reader.step(at)?,
            };
            let next = reader.chunk.next;
            let is_part = matches!(
                (at, next),
                (ResyncCursor::Player(_), _)
                    | (ResyncCursor::BestPositions { after: Some(_), .. }, _)
                    | (_, ResyncCursor::BestPositions { after: Some(_), .. })
            );
            if is_part || next == at || group(next) != group(from) || reader.rows >= rows_max {
                break;
            }
        }
        reader.chunk.range = self.range_of(from, reader.chunk.next);
        Ok(reader.chunk)
    }

    /// What is completely in a chunk between two positions.
    fn range_of(&self, from: ResyncCursor, next: ResyncCursor) -> Option<ObjectRange> {
        let last = (group(next) == group(from)).then(|| number(next).saturating_sub(1));
        let keys = KeyRange { first: number(from), last };
        Some(match from {
            ResyncCursor::Game(_) => ObjectRange::Games(keys),
            ResyncCursor::Map(_) => ObjectRange::Maps(keys),
            ResyncCursor::Server(_) => ObjectRange::Servers(keys),
            ResyncCursor::Player(_) => ObjectRange::Players(keys),
            ResyncCursor::BestPositions { after, .. } => {
                let is_whole =
                    self.global.settings.keep_players_weeks == 0 && self.global.meta.players_dropped.is_none();
                let (servers, through) = match next {
                    ResyncCursor::BestPositions { server, after: through @ Some(_) } => {
                        (KeyRange { last: Some(server.0), ..keys }, through)
                    }
                    _ => (keys, None),
                };
                ObjectRange::BestPositions { servers, players: PlayerKeyRange { after, through }, is_whole }
            }
            ResyncCursor::Sessions { day, .. } => {
                let days = &self.global.meta.session_days;
                if !days.contains(&day) {
                    return None;
                }
                // Before its first day the state may have had no sessions, because it was restored. Of a day that came
                // again, each generation has a part.
                let is_whole = days.first().is_some_and(|oldest| oldest.day < day.day)
                    && days.iter().filter(|kept| kept.day == day.day).count() == 1;
                ObjectRange::Sessions { servers: keys, day, is_whole }
            }
            ResyncCursor::RemovedPlayers { .. } | ResyncCursor::Week { .. } | ResyncCursor::End => return None,
        })
    }

    /// The position of the resync; `None`: none is needed.
    pub fn resync_position(&self) -> Option<ResyncCursor> {
        self.global.meta.resync.then_some(self.global.meta.resync_state.next)
    }
}

impl Engine {
    /// From now on nothing is noted for the archive, if there was none so far: the first one gets everything by a
    /// resync, which would write once more what the outbox has.
    pub fn leave_all_to_first_archive(&mut self) {
        if self.model.archive_id().is_none() {
            self.model.global.require_resync();
        }
    }

    /// Everything pending was in the archive at `at_ms`.
    pub fn archive_completed(&mut self, at_ms: i64) {
        self.model.global.archive_complete_ms = Some(at_ms);
        self.model.global.pending.archive_complete = true;
    }

    /// Archives all weeks again, in addition to the rest of a resync in progress.
    pub(in crate::engine) fn resync_weeks(&mut self) {
        let meta = &mut self.model.global.meta;
        let next = &mut meta.resync_state.next;
        *next = if meta.resync { ResyncCursor::WEEKS.min(*next) } else { ResyncCursor::WEEKS };
        meta.resync = true;
        self.model.global.pending.meta = true;
    }

    /// A chunk is written, except for `postponed`, which is added to the outbox. Returns
    /// whether the chunk was the next one: if not, the resync was restarted and continues at
    /// another position.
    pub fn acknowledge_resync(&mut self, from: ResyncCursor, next: ResyncCursor, postponed: &[OutboxKey]) -> bool {
        let meta = &mut self.model.global.meta;
        let state = &mut meta.resync_state;
        if !meta.resync || state.next != from {
            return false;
        }
        state.next = next;
        if next == ResyncCursor::End {
            meta.resync = state.repeat;
            (state.next, state.repeat, state.repairs) = (ResyncCursor::START, false, state.repairs && state.repeat);
            for window in meta.kept_windows().collect::<Vec<_>>() {
                self.model.global.enqueue_now(OutboxKey::TopBoards(window));
            }
            self.model.global.enqueue_now(OutboxKey::LaterRows);
        }
        self.model.global.pending.meta = true;
        for &key in postponed {
            self.model.global.enqueue_now(key);
        }
        true
    }

    /// Another engine has completed the resync.
    pub(in crate::engine) fn end_resync(&mut self) {
        let meta = &mut self.model.global.meta;
        let archive_id = meta.resync_state.archive_id;
        (meta.resync, meta.resync_state) = (false, ResyncState { archive_id, ..ResyncState::default() });
    }
}

/// Positions of one group may be in one chunk.
fn group(at: ResyncCursor) -> (Discriminant<ResyncCursor>, Option<SessionDay>) {
    let day = match at {
        ResyncCursor::Sessions { day, .. } => Some(day),
        _ => None,
    };
    (std::mem::discriminant(&at), day)
}

/// The key at a position.
fn number(at: ResyncCursor) -> u32 {
    match at {
        ResyncCursor::Game(key) => key.0,
        ResyncCursor::Map(key) => key.0,
        ResyncCursor::Server(server)
        | ResyncCursor::Week { server, .. }
        | ResyncCursor::BestPositions { server, .. }
        | ResyncCursor::Sessions { server, .. } => server.0,
        ResyncCursor::Player(key) => key.0,
        ResyncCursor::RemovedPlayers { .. } | ResyncCursor::End => 0,
    }
}

/// A chunk that is being read.
struct ChunkReader<'a> {
    model: &'a ReadModel,
    source: &'a dyn StoreReader,
    chunk: ResyncChunk,
    /// Rows of players, maps and lists in the chunk.
    rows: usize,
}

impl ChunkReader<'_> {
    /// Reads the object at a position. Returns the next position.
    fn step(&mut self, at: ResyncCursor) -> Result<ResyncCursor, ReadError> {
        let meta = &self.model.global.meta;
        Ok(match at {
            ResyncCursor::Game(key) if key.0 < meta.next_game => {
                self.name(OutboxKey::Game(key))?;
                ResyncCursor::Game(GameKey(key.0 + 1))
            }
            ResyncCursor::Game(_) => ResyncCursor::Map(MapKey(1)),
            ResyncCursor::Map(key) if key.0 < meta.next_map => {
                self.name(OutboxKey::Map(key))?;
                ResyncCursor::Map(MapKey(key.0 + 1))
            }
            ResyncCursor::Map(_) => ResyncCursor::RemovedPlayers { after: None },
            ResyncCursor::RemovedPlayers { after } => match self.source.removed_players_after(after, 1)?.first() {
                Some(&player) => {
                    self.name(OutboxKey::Player(player))?;
                    ResyncCursor::RemovedPlayers { after: Some(player) }
                }
                None => ResyncCursor::Server(ServerKey(1)),
            },
            ResyncCursor::Server(key) if key.0 < meta.next_server => {
                self.server(key)?;
                ResyncCursor::Server(ServerKey(key.0 + 1))
            }
            ResyncCursor::Server(_) => ResyncCursor::Player(PlayerKey(1)),
            ResyncCursor::Player(key) => self.players(key, 1)?,
            ResyncCursor::Week { week, server } => {
                match meta.weeks.iter().map(|state| state.week).find(|kept| *kept >= week) {
                    Some(kept) if kept > week => ResyncCursor::Week { week: kept, server: ServerKey(1) },
                    Some(_) if server.0 < meta.next_server => {
                        self.week(week, server)?;
                        ResyncCursor::Week { week, server: ServerKey(server.0 + 1) }
                    }
                    Some(_) => ResyncCursor::Week { week: WeekKey(week.0 + 1), server: ServerKey(1) },
                    None => ResyncCursor::BEST_POSITIONS,
                }
            }
            ResyncCursor::BestPositions { server, after } if server.0 < meta.next_server => {
                let best = self.model.best_positions(self.source, server, after)?;
                let through = best.players.through;
                if through.is_some() && at != self.chunk.from {
                    // A part of a server is a chunk of its own.
                    return Ok(at);
                }
                self.rows += 5 * best.best.len();
                if after.is_some() || !best.best.is_empty() {
                    self.chunk.records.push(ArchiveJob::BestPositions(Box::new(best)));
                }
                let server = if through.is_some() { server } else { ServerKey(server.0 + 1) };
                ResyncCursor::BestPositions { server, after: through }
            }
            ResyncCursor::BestPositions { .. } => ResyncCursor::SESSIONS,
            ResyncCursor::Sessions { day, server } => match meta.session_days.iter().find(|kept| **kept >= day) {
                Some(&kept) if kept > day => ResyncCursor::Sessions { day: kept, server: ServerKey(1) },
                Some(_) if server.0 < meta.next_server => {
                    let sessions = self.source.sessions_on(day, server, usize::MAX)?;
                    self.rows += sessions.len();
                    let jobs = sessions.into_iter().map(|(key, session)| ArchiveJob::Session(key, session));
                    self.chunk.records.extend(jobs);
                    ResyncCursor::Sessions { day, server: ServerKey(server.0 + 1) }
                }
                Some(_) => ResyncCursor::Sessions { day: day.next(), server: ServerKey(1) },
                None => ResyncCursor::End,
            },
            ResyncCursor::End => ResyncCursor::End,
        })
    }

    /// Reads players from a key on. Returns the next position.
    fn players(&mut self, from: PlayerKey, most: usize) -> Result<ResyncCursor, ReadError> {
        let found = self.source.players_after(from.0.checked_sub(1).map(PlayerKey), most)?;
        let next = match found.last() {
            Some((last, _)) if found.len() == most => ResyncCursor::Player(PlayerKey(last.0 + 1)),
            _ => ResyncCursor::WEEKS,
        };
        let job = |(key, PlayerRecord { game, name, display }): (PlayerKey, PlayerRecord)| ArchiveJob::Player {
            key,
            game,
            name: name.into(),
            display: display.into(),
        };
        self.chunk.names.extend(found.into_iter().map(job));
        Ok(next)
    }

    fn name(&mut self, key: OutboxKey) -> Result<(), ReadError> {
        self.chunk.names.extend(self.model.archive_job(self.source, key)?);
        Ok(())
    }

    /// A server, preceded by the players of its list.
    fn server(&mut self, key: ServerKey) -> Result<(), ReadError> {
        let Some(server) = self.model.server_archive(key) else { return Ok(()) };
        for player in server.list.iter().filter_map(|entry| entry.player) {
            self.name(OutboxKey::Player(player))?;
        }
        self.rows += 2 + 2 * server.list.len() + server.tags.len();
        self.chunk.records.push(ArchiveJob::Server(Box::new(server)));
        Ok(())
    }

    fn week(&mut self, week: WeekKey, server: ServerKey) -> Result<(), ReadError> {
        match self.model.week_job(self.source, week, server, ChangedRows::All, BestPositionsIn::Objects)? {
            Some(ArchiveJob::Week(job)) => {
                self.rows += 1 + job.rows.len() + job.maps.len();
                self.chunk.records.push(ArchiveJob::Week(job));
            }
            // It is written in chunks, through the outbox.
            Some(_) => self.chunk.postponed.push(OutboxKey::Week { week, server }),
            None => {}
        }
        Ok(())
    }
}
