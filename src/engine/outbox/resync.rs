//! A resync: everything that the state holds is written to the archive. It is needed
//! for an archive that is new or that another state has filled, and after the outbox
//! was full and dropped entries.
//!
//! The archive's worker requests chunk after chunk and acknowledges each when it is
//! written. The cursor is in `Meta`, so a resync continues after a restart of the
//! daemon or of the database. Nothing but another archive sets it back to the start.
//! Chunks do not go through the outbox: a million players would be two million
//! records written here only to be deleted again.

use super::changes::ChangedRows;
use super::{Engine, ReadError, StoreReader};
use crate::engine::GlobalState;
use crate::model::archive::{ArchiveJob, ResyncChunk, ResyncStep};
use crate::model::commit::Meta;
use crate::model::outbox::ResyncCursor;
use crate::model::restored::LastKeys;
use crate::model::server::PlayerRecord;
use crate::model::{GameKey, MapKey, OutboxKey, PlayerKey, ServerKey, WeekKey};

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

impl Engine {
    /// The ID of the archive that this state fills; `None`: none so far.
    pub fn archive_id(&self) -> Option<u64> {
        self.global.meta.resync_state.archive_id
    }

    /// Everything pending was in the archive at `at_ms`.
    pub fn archive_completed(&mut self, at_ms: i64) {
        self.global.archive_complete_ms = Some(at_ms);
        self.global.pending.archive_complete = true;
    }

    /// The largest keys that were ever assigned, 0 if there is none. No key in the archive of this
    /// state is larger.
    pub fn last_keys(&self) -> LastKeys {
        let Meta { next_game, next_map, next_player, next_server, .. } = &self.global.meta;
        LastKeys { game: next_game - 1, map: next_map - 1, player: next_player - 1, server: next_server - 1 }
    }

    /// Archives all weeks again, in addition to the rest of a resync in progress.
    pub(in crate::engine) fn resync_weeks(&mut self) {
        let meta = &mut self.global.meta;
        let next = &mut meta.resync_state.next;
        *next = if meta.resync { ResyncCursor::WEEKS.min(*next) } else { ResyncCursor::WEEKS };
        meta.resync = true;
        self.global.pending.meta = true;
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
        let chunk = ResyncChunk { from, next: from, names: vec![], records: vec![], postponed: vec![] };
        let mut reader = ChunkReader { engine: self, source, chunk, rows: 0 };
        for step in 0..steps_max {
            reader.chunk.next = match reader.chunk.next {
                // Players are read in batches: one by one takes four times as long.
                ResyncCursor::Player(key) => {
                    reader.chunk.next = reader.players(key, steps_max - step)?;
                    break;
                }
                at => reader.step(at)?,
            };
            if reader.chunk.next == ResyncCursor::End || reader.rows >= rows_max {
                break;
            }
        }
        Ok(ResyncStep::Chunk(Box::new(reader.chunk)))
    }

    /// A chunk is written, except for `postponed`, which is added to the outbox. Returns
    /// whether the chunk was the next one: if not, the resync was restarted and continues at
    /// another position.
    pub fn acknowledge_resync(&mut self, from: ResyncCursor, next: ResyncCursor, postponed: &[OutboxKey]) -> bool {
        let meta = &mut self.global.meta;
        let state = &mut meta.resync_state;
        if !meta.resync || state.next != from {
            return false;
        }
        state.next = next;
        if next == ResyncCursor::End {
            meta.resync = state.repeat;
            (state.next, state.repeat) = (ResyncCursor::START, false);
            for window in meta.kept_windows().collect::<Vec<_>>() {
                self.global.enqueue_now(OutboxKey::TopBoards(window));
            }
            self.global.enqueue_now(OutboxKey::LaterRows);
        }
        self.global.pending.meta = true;
        for &key in postponed {
            self.global.enqueue_now(key);
        }
        true
    }

    /// The position of the resync; `None`: none is needed.
    pub fn resync_position(&self) -> Option<ResyncCursor> {
        self.global.meta.resync.then_some(self.global.meta.resync_state.next)
    }
}

/// A chunk that is being read.
struct ChunkReader<'a> {
    engine: &'a Engine,
    source: &'a dyn StoreReader,
    chunk: ResyncChunk,
    /// Rows of players, maps and lists in the chunk.
    rows: usize,
}

impl ChunkReader<'_> {
    /// Reads the object at a position. Returns the next position.
    fn step(&mut self, at: ResyncCursor) -> Result<ResyncCursor, ReadError> {
        let meta = &self.engine.global.meta;
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
                    None => ResyncCursor::SESSIONS,
                }
            }
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
        self.chunk.names.extend(self.engine.archive_job(self.source, key)?);
        Ok(())
    }

    /// A server, preceded by the players of its list.
    fn server(&mut self, key: ServerKey) -> Result<(), ReadError> {
        let Some(server) = self.engine.server_archive(key) else { return Ok(()) };
        for player in server.list.iter().filter_map(|entry| entry.player) {
            self.name(OutboxKey::Player(player))?;
        }
        self.rows += 2 + 2 * server.list.len() + server.tags.len();
        self.chunk.records.push(ArchiveJob::Server(Box::new(server)));
        Ok(())
    }

    fn week(&mut self, week: WeekKey, server: ServerKey) -> Result<(), ReadError> {
        match self.engine.week_job(self.source, week, server, ChangedRows::All)? {
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
