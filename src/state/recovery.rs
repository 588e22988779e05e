//! Opens a state directory and applies the events of the log that it does not contain.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::{State, StateError, log_dir};
use crate::config::Config;
use crate::log::{
    Cut, LogError, LogEvent, LogReader, RecordedSettings, has_segments, read_from_disk, segments, sync_dir,
};
use crate::model::AdminCommand;
use crate::model::calendar::utc;
use crate::store::{self, BackupSummary, Store, StoreError, StoreSettings, dir_error, is_same_disk};

pub use crate::store::COPIED_SETTINGS;

/// The position of a state that has no log, and is not empty: the log of a cluster begins after it, so that nobody
/// follows it without that state.
pub const WITHOUT_LOG: u64 = 1;

/// Events between two commits to memory.
const EVENTS_PER_COMMIT: u64 = 1_000;

/// Events between two messages about progress: some seconds.
const EVENTS_PER_MESSAGE: u64 = 200_000;

#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the settings of the log are not valid: {0}")]
    Settings(String),
    #[error(
        "{} has a log, but the state beside it is empty: it was lost or replaced; restore a backup, or move the log away",
        dir.display()
    )]
    StateMissing { dir: PathBuf },
    /// The log has no forgotten names, so an older state cannot follow it.
    #[error(
        "the newest checkpoint file of {} is missing: it must have the request to forget a player of {}; put it back, \
         or restore a backup", dir.display(), utc(*.t_ms)
    )]
    CheckpointMissing { dir: PathBuf, t_ms: i64 },
    #[error("{0}")]
    BackupDir(String),
    #[error("stopped before the log was applied")]
    Cancelled,
}

impl RecoveryError {
    /// Whether another process had the state directory open all the time.
    pub fn is_locked(&self) -> bool {
        matches!(self, RecoveryError::State(StateError::Store(StoreError::Locked { .. })))
    }

    pub fn is_state_dir_missing(&self) -> bool {
        matches!(self, RecoveryError::State(StateError::Store(StoreError::MissingStateDir { .. })))
    }
}

impl From<StoreError> for RecoveryError {
    fn from(error: StoreError) -> RecoveryError {
        RecoveryError::State(error.into())
    }
}

/// A state with all events of its log. Its changes since the last checkpoint are in memory.
pub struct Recovered {
    pub state: State,
    /// With the settings in effect.
    pub applier: EventApplier,
    /// The last batch that the state on disk contains; `None`: it was written without a log.
    pub position: Option<u64>,
    /// Events that were applied.
    pub events: u64,
    /// The last batch of the log.
    pub last_seq: u64,
    /// The incomplete end of the log.
    pub cut: Option<Cut>,
    /// Whether the log has a request to forget a player after the position.
    has_forget: bool,
    /// One of them whose player the state on disk does not have by that name.
    unwritten_forget: Option<UnwrittenForget>,
}

/// A request to forget a player that the state on disk does not have, nor a player with the name. Names are removed from
/// the log after a checkpoint, so a checkpoint may be missing.
#[derive(Clone, Copy, Debug)]
struct UnwrittenForget {
    t_ms: i64,
    /// Something follows it.
    is_followed: bool,
}

impl Recovered {
    /// Whether the state must be on disk before anything else is in the log.
    pub fn needs_checkpoint(&self) -> bool {
        self.has_forget
    }

    /// Reports an incomplete end. Error: the last checkpoint is missing, which only a database shows otherwise,
    /// and a private copy has none.
    fn check_copy(&self, dir: &Path, on_warning: &OnWarning<'_>) -> Result<(), RecoveryError> {
        self.cut.iter().for_each(|cut| on_warning(cut));
        let Some(UnwrittenForget { t_ms, is_followed }) = self.unwritten_forget else { return Ok(()) };
        let missing = RecoveryError::CheckpointMissing { dir: dir.to_owned(), t_ms };
        if is_followed {
            return Err(missing);
        }
        on_warning(&format_args!("unless the daemon was stopped before it answered the request, {missing}"));
        Ok(())
    }
}

/// Opens a state directory for a daemon. Its database is compared with the checkpoint files before the first
/// checkpoint.
pub fn open(config: &Config, dir: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<Recovered, RecoveryError> {
    prepare_log(dir)?;
    let open = || {
        let store = open_store(config, dir, true, Store::open_comparing_later)?;
        recover(config, store, dir, is_cancelled, &mut Err)
    };
    match open() {
        // Not compared, so the database may be the reason: now it is compared first.
        Err(RecoveryError::State(StateError::Store(error))) if store::is_uncompared(dir)? => {
            tracing::warn!("{}", error.with_causes());
            open()
        }
        opened => opened,
    }
}
/// Makes the requested correction of the clock, and lets the disk answer. No process writes the log.
fn prepare_log(dir: &Path) -> Result<(), LogError> {
    super::clock_correction::apply_requested(dir)?;
    if has_segments(&log_dir(dir))? {
        read_from_disk(&log_dir(dir))?;
    }
    Ok(())
}

/// Opens a store. If a delta of its checkpoint files is damaged or missing, the log replaces it, if it reaches
/// back so far.
fn open_store(
    config: &Config,
    dir: &Path,
    create: bool,
    open: fn(&Path, StoreSettings) -> Result<Store, StoreError>,
) -> Result<Store, StoreError> {
    let settings = StoreSettings { cache_bytes: config.store.cache_bytes, create };
    let has_log_after = |position| has_log_after(&log_dir(dir), position);
    store::open_without_unusable_deltas(dir, &has_log_after, &|| open(dir, settings))
}

/// As `open_store`, a private copy; see [`Store::open_read_only`].
pub(super) fn open_store_read_only(
    config: &Config,
    dir: &Path,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Store, StoreError> {
    let has_log_after = |position| has_log_after(&log_dir(dir), position);
    Store::open_read_only(dir, config.store.cache_bytes, is_cancelled, &has_log_after)
}

/// Whether a log has everything after a position: all batches, and no request to forget a player, because a
/// log does not have the name.
fn has_log_after(log: &Path, position: u64) -> bool {
    let read_all = || {
        let mut reader = LogReader::open_after(log, position)?;
        let (mut has_forget, mut has_all) = (false, true);
        while let Some(seq) = reader.read_batch(|event| has_forget |= is_forget(&event))? {
            has_all &= seq <= position || !has_forget;
            has_forget = false;
        }
        Ok::<_, LogError>(has_all && reader.cut().is_none())
    };
    read_all().is_ok_and(|has_all| has_all)
}

fn is_forget(event: &LogEvent) -> bool {
    matches!(event, LogEvent::Command { command: AdminCommand::Forget { .. }, .. })
}

/// Gets what may be damage.
pub type OnWarning<'w> = dyn Fn(&dyn Display) + 'w;

/// Opens a state directory for a command that writes to it without a log. All events of its log are in
/// the state on disk.
pub fn open_without_log(config: &Config, dir: &Path, on_warning: &OnWarning<'_>) -> Result<State, RecoveryError> {
    let store = open_store(config, dir, true, Store::open)?;
    prepare_log(dir)?;
    let Recovered { mut state, position, last_seq, cut, .. } = recover(config, store, dir, &|| false, &mut Err)?;
    cut.iter().for_each(|cut| on_warning(cut));
    if position.is_some() {
        state.write_checkpoint(last_seq)?;
    } else if state.engine.model().has_changed_types() {
        // No log has their past.
        state.engine.start_types_empty();
    }
    state.store.stop_deferring();
    Ok(state)
}

/// Opens a private copy of a state directory, for a command that only reads; see
/// [`Store::open_read_only`].
pub fn open_copy(
    config: &Config,
    dir: &Path,
    is_cancelled: &dyn Fn() -> bool,
    on_warning: &OnWarning<'_>,
) -> Result<State, RecoveryError> {
    let store = open_store_read_only(config, dir, is_cancelled)?;
    store::check_times(dir)?;
    let recovered = recover(config, store, dir, is_cancelled, &mut Err)?;
    recovered.check_copy(dir, on_warning)?;
    Ok(recovered.state)
}

/// Backs up a state directory that no process has open, with all events of its log.
pub fn backup_closed(
    config: &Config,
    dir: &Path,
    backup: &Path,
    on_warning: &OnWarning<'_>,
) -> Result<BackupSummary, RecoveryError> {
    let state_dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    if let Some(problem) = dir_error(backup, &state_dir) {
        return Err(RecoveryError::BackupDir(problem));
    }
    // The space that is reserved for the state.
    let reserve_bytes = if is_same_disk(backup, dir) { config.store.disk_free_bytes_min } else { 0 };
    let copy = open_store_read_only(config, dir, &|| false)?;
    store::check_times(dir)?;
    let recovered = recover(config, copy, dir, &|| false, &mut Err)?;
    recovered.check_copy(dir, on_warning)?;
    let Recovered { mut state, position, last_seq, .. } = recovered;
    if position.is_some() {
        state.write_checkpoint(last_seq)?;
    }
    Ok(state.store.backup_source()?.write(backup, reserve_bytes, &AtomicBool::new(false))?)
}

/// What a repair of the log would do, or has done.
#[derive(Debug)]
pub struct Repair {
    /// The damage: the log cannot be used from there on.
    pub damage: LogError,
    /// Events after the last checkpoint that can be read, and are kept.
    pub events: u64,
    /// Latest time of the state with these events, Unix ms.
    pub now_ms: i64,
    /// Whether it was done.
    pub is_done: bool,
    /// The new path of the log; `None`: there was none, or nothing was changed.
    pub moved_to: Option<PathBuf>,
}

/// Finds out what damage of the log costs. `None`: it has none.
pub fn plan_repair(config: &Config, dir: &Path, on_warning: &OnWarning<'_>) -> Result<Option<Repair>, RecoveryError> {
    let store = open_store_read_only(config, dir, &|| false)?;
    Ok(recover_what_is_readable(config, store, dir, on_warning)?.1)
}

/// Accepts the loss that damage of the log causes: the state gets the events until there, and the log is
/// moved away, so that a daemon begins another one. `None`: it has no damage.
pub fn repair(config: &Config, dir: &Path, on_warning: &OnWarning<'_>) -> Result<Option<Repair>, RecoveryError> {
    let store = open_store(config, dir, false, Store::open)?;
    // Damage is what is repaired, and a missing log, whose times cannot be corrected.
    let repaired = match prepare_log(dir) {
        Err(error) if !error.is_damage() && log_dir(dir).exists() => Err(error.into()),
        _ => repair_opened(config, store, dir, on_warning),
    };
    // Whatever has become of it: opening writes files.
    store::keep_owner(dir)?;
    repaired
}

fn repair_opened(
    config: &Config,
    store: Store,
    dir: &Path,
    on_warning: &OnWarning<'_>,
) -> Result<Option<Repair>, RecoveryError> {
    let (Recovered { mut state, last_seq, .. }, repair) = recover_what_is_readable(config, store, dir, on_warning)?;
    let Some(mut repair) = repair else { return Ok(None) };
    // Without the log, the state must not refer to it. Killed in between, it is repaired again.
    state.write_checkpoint(last_seq)?;
    // Its events are in the state, or lost.
    if let Some(by_ms) = super::clock_correction::withdraw(dir)? {
        on_warning(&format_args!(
            "the times of the events since the wrong clock are not corrected: they are {by_ms} ms too late; if the system \
             clock is right now, start the daemon and set recorded time back: clqd clock reset"
        ));
    }
    let log = log_dir(dir);
    let free_name = (1..).map(|n| dir.join(format!("log.damaged-{n}"))).find(|path| !path.exists());
    let moved_to = free_name.expect("some number is not used");
    if log.exists() {
        let failed = |source| LogError::Io { what: "rename", path: log.clone(), source };
        std::fs::rename(&log, &moved_to).map_err(failed)?;
        // Later than the position, a power cut would bring the log back.
        sync_dir(dir)?;
        repair.moved_to = Some(moved_to);
    }
    state.write_checkpoint(0)?;
    state.store.merge_files()?;
    repair.is_done = true;
    Ok(Some(repair))
}

fn recover_what_is_readable(
    config: &Config,
    store: Store,
    dir: &Path,
    on_warning: &OnWarning<'_>,
) -> Result<(Recovered, Option<Repair>), RecoveryError> {
    let mut damage = None;
    let note = &mut |error| {
        damage.get_or_insert(error);
        Ok(())
    };
    let recovered = recover(config, store, dir, &|| false, note)?;
    recovered.cut.iter().for_each(|cut| on_warning(cut));
    let has_log = recovered.position.is_some_and(|position| position > 0);
    // Older segments are kept for rebuilds.
    let damage = damage.or_else(|| if has_log { crate::log::check(&log_dir(dir)).err() } else { None });
    let (events, now_ms) = (recovered.events, recovered.state.engine.model().now_ms());
    Ok((recovered, damage.map(|damage| Repair { damage, events, now_ms, is_done: false, moved_to: None })))
}

/// Gets damage of the log. `Ok`: the state is recovered without what follows.
type OnDamage<'d> = dyn FnMut(LogError) -> Result<(), LogError> + 'd;

fn recover(
    config: &Config,
    mut store: Store,
    dir: &Path,
    is_cancelled: &dyn Fn() -> bool,
    on_damage: &mut OnDamage<'_>,
) -> Result<Recovered, RecoveryError> {
    // A private copy of the state has no log. It reads that of the original, which may have grown.
    let log = &log_dir(dir);
    let mut position = store.log_position()?;
    let has_segments = has_segments(log)?;
    if position == Some(0) && config.cluster.is_on() && has_segments {
        // A restored state. The engine may have begun the log of its cluster, and written no checkpoint yet.
        let begins_after = segments(log)?.first().map(|first| first.first_seq - 1);
        position = begins_after.filter(|after| *after == WITHOUT_LOG).or(position);
    }
    let reader = match position {
        None if has_segments => return Err(RecoveryError::StateMissing { dir: log.clone() }),
        None => None,
        // Nothing was ever written to it.
        Some(0) if !has_segments => None,
        // The state is a copy of that of another engine; the log comes from the database.
        Some(_) if !has_segments && config.cluster.is_on() => None,
        Some(position) if !has_segments => {
            on_damage(LogError::Missing { dir: log.clone(), position })?;
            None
        }
        Some(position) => match LogReader::open_after(log, position) {
            Ok(reader) => Some(reader),
            Err(error) => {
                on_damage(error)?;
                None
            }
        },
    };
    let settings = match position.filter(|_| reader.is_some()) {
        Some(position) => match first_settings(dir, position) {
            Err(RecoveryError::Log(error)) => {
                on_damage(error)?;
                None
            }
            settings => settings?,
        },
        None => copied_settings(dir)?,
    };
    let obeyed = settings.map_or(Ok(config.clone()), |settings| obey(config, &settings))?;
    store.defer_commits();
    let engine = obeyed.engine_settings().map_err(StateError::from)?;
    let mut state = State::with_store(store, engine)?;
    let mut tail = Tail { applier: EventApplier::new(obeyed), events: 0, cut: None, forgets: Forgets::default() };
    let last_seq = match reader {
        Some(reader) => tail.apply(&mut state, reader, log, position.unwrap_or(0), is_cancelled, on_damage)?,
        None => position.unwrap_or(0),
    };
    let Tail { mut applier, events, cut, forgets } = tail;
    let (has_forget, unwritten_forget) = (forgets.last_ms.is_some(), forgets.unwritten);
    // In a cluster, settings that change results come from the log.
    if applier.config != *config && !config.cluster.is_on() {
        state.commit()?;
        state.engine.reload(config.engine_settings().map_err(StateError::from)?);
        applier.config = config.clone();
    }
    Ok(Recovered { state, applier, position, events, last_seq, cut, has_forget, unwritten_forget })
}

/// Opens a state that was copied from another engine, with its settings.
pub fn open_with_copied_settings(config: &Config, dir: &Path) -> Result<State, RecoveryError> {
    let settings = copied_settings(dir)?;
    let config = settings.map_or(Ok(config.clone()), |settings| obey(config, &settings))?;
    Ok(State::open_configured(&config, dir, false)?)
}

/// The settings of a state that was copied from another engine, and has no log yet.
fn copied_settings(dir: &Path) -> Result<Option<RecordedSettings>, RecoveryError> {
    let path = dir.join(COPIED_SETTINGS);
    let json = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(LogError::io("read", &path))?,
    };
    let settings = serde_json::from_slice(&json);
    settings.map(Some).map_err(|error| RecoveryError::Settings(format!("{}: {error}", path.display())))
}

/// The settings that held for the first event after a position.
fn first_settings(dir: &Path, position: u64) -> Result<Option<RecordedSettings>, RecoveryError> {
    let mut reader = LogReader::open_after(&log_dir(dir), position)?;
    let mut found: Option<RecordedSettings> = None;
    let note = |found: &mut Option<RecordedSettings>, event| {
        if let LogEvent::Settings { settings, .. } = event {
            found.get_or_insert_default().update(settings);
        }
    };
    while reader.next_seq().is_none_or(|next| next <= position) {
        if reader.read_batch(|event| note(&mut found, event))?.is_none() {
            // The files of a copied state may not have its last batches yet.
            return Ok(copied_settings(dir)?.or(found));
        }
    }
    // A segment begins with its settings.
    if found.is_none() {
        reader.read_batch(|event| note(&mut found, event))?;
    }
    Ok(found)
}

/// The config with the settings of a log.
fn obey(config: &Config, settings: &RecordedSettings) -> Result<Config, RecoveryError> {
    config.with_log_settings(settings).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        RecoveryError::Settings(problems.join("; "))
    })
}

/// Applies the events of a log, with the settings that it has.
#[derive(Debug)]
pub struct EventApplier {
    /// The settings in effect.
    config: Config,
}

impl EventApplier {
    /// `config`: the settings in effect.
    pub fn new(config: Config) -> EventApplier {
        EventApplier { config }
    }

    /// The settings in effect, as a log has them.
    pub fn settings(&self) -> RecordedSettings {
        self.config.log_settings()
    }

    /// Other settings than those of a log have changed.
    pub fn reload(&mut self, state: &mut State, config: &Config) -> Result<(), RecoveryError> {
        self.config = obey(config, &self.settings())?;
        state.engine.reload(self.config.engine_settings().map_err(StateError::from)?);
        Ok(())
    }

    pub fn apply(&mut self, state: &mut State, event: LogEvent) -> Result<(), RecoveryError> {
        match event {
            LogEvent::Scan { server, outcome } => state.replay_scan(server, outcome)?,
            LogEvent::Command { t_ms, command } => _ = state.apply_command(t_ms, &command)?,
            LogEvent::Rebuild { step, .. } => state.apply_rebuild(&step)?,
            LogEvent::Tick { t_ms, close_until_ms } => state.tick(t_ms, close_until_ms)?,
            LogEvent::Archive { step, .. } => state.engine.apply_archive_step(step),
            LogEvent::Known { .. } => {}
            LogEvent::Settings { settings, .. } => {
                let obeyed = obey(&self.config, &settings)?;
                if obeyed != self.config {
                    state.commit()?;
                    state.engine.reload(obeyed.engine_settings().map_err(StateError::from)?);
                    self.config = obeyed;
                }
            }
        }
        Ok(())
    }
}

/// The events of the log after the position of the state.
struct Tail {
    applier: EventApplier,
    events: u64,
    cut: Option<Cut>,
    forgets: Forgets,
}

/// The requests to forget players in the log after the position of the state.
#[derive(Debug, Default)]
struct Forgets {
    last_ms: Option<i64>,
    /// The time of the last one whose player was found by a name. The other names of the player follow.
    by_name_ms: Option<i64>,
    unwritten: Option<UnwrittenForget>,
}

impl Forgets {
    fn note(&mut self, state: &State, t_ms: i64, command: &AdminCommand) -> Result<(), StoreError> {
        let AdminCommand::Forget { game, player, key, hash } = command else { return Ok(()) };
        self.last_ms = Some(t_ms);
        if let Some((key, hash)) = key.zip(*hash)
            && state.has_name_to_forget(game, player, key, hash)?
        {
            self.by_name_ms = Some(t_ms);
        } else if self.by_name_ms != Some(t_ms) {
            self.unwritten.get_or_insert(UnwrittenForget { t_ms, is_followed: false });
        }
        Ok(())
    }
}

impl Tail {
    /// Returns the last batch of the log.
    fn apply(
        &mut self,
        state: &mut State,
        mut reader: LogReader,
        log: &Path,
        position: u64,
        is_cancelled: &dyn Fn() -> bool,
        on_damage: &mut OnDamage<'_>,
    ) -> Result<u64, RecoveryError> {
        let mut events = Vec::new();
        loop {
            let seq = match reader.read_batch(|event| events.push(event)) {
                Ok(Some(seq)) => seq,
                Ok(None) => break,
                Err(error) => {
                    on_damage(error)?;
                    break;
                }
            };
            self.forgets.unwritten.iter_mut().for_each(|forget| forget.is_followed = true);
            if seq > position && state.must_sweep() {
                // The engine that wrote this batch had done so.
                state.commit()?;
                state.write_checkpoint(seq - 1)?;
                while state.sweep()? {}
            }
            for event in events.drain(..) {
                if seq <= position {
                    continue;
                }
                self.apply_event(state, event)?;
                self.events += 1;
                if self.events.is_multiple_of(EVENTS_PER_COMMIT) {
                    state.commit()?;
                    if is_cancelled() {
                        return Err(RecoveryError::Cancelled);
                    }
                }
                if self.events.is_multiple_of(EVENTS_PER_MESSAGE) {
                    tracing::info!(events = self.events, "applying the log since the last checkpoint");
                }
            }
        }
        state.commit()?;
        self.cut = reader.cut().cloned();
        let last = reader.next_seq().map_or(0, |next| next - 1);
        // Another engine's state may be ahead of the files until they have the whole segment.
        if last < position && !self.applier.config.cluster.is_on() {
            on_damage(LogError::Behind { dir: log.to_owned(), last, position })?;
        }
        Ok(last.max(position))
    }

    fn apply_event(&mut self, state: &mut State, event: LogEvent) -> Result<(), RecoveryError> {
        if let LogEvent::Command { t_ms, command } = &event {
            self.forgets.note(state, *t_ms, command)?;
        }
        self.applier.apply(state, event)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::engine::{Outcome, StateReader};
    use crate::log::{HistoryWriter, WriterSettings};
    use crate::model::calendar::DAY_MS;
    use crate::model::commit::{Meta, WindowState};
    use crate::model::rebuild::{RebuildStep, RebuiltRow, RebuiltServer};
    use crate::model::{
        Completeness, Player, PlayerKey, PlayerRow, ServerKey, ServerUrl, Snapshot, WindowKey, WindowType,
    };
    use crate::state::clock_correction::ClockCorrection;

    /// 2025-11-25 10:00 UTC
    const FROM_MS: i64 = 1_764_064_800_000;
    const SERVERS: u32 = 500;
    const PLAYERS: u32 = 40;
    const WINDOW: WindowKey = WindowKey { kind: WindowType(10), index: 0 };

    /// Of an engine of a cluster, with a window that begins on a day of November.
    fn config(day: u32) -> Config {
        let window = format!("10 base=2025-11-{day:02}T00:00:00Z duration=28d repeat=1");
        let archive = "[archive]\nurl = \"mysql://clqd@localhost/clqd\"\n";
        let text = format!("{archive}[cluster]\nengine = \"a\"\n[boards]\nwindows = [\"{window}\"]\n");
        Config::parse(&text).expect("valid")
    }

    fn url(server: u32) -> ServerUrl {
        ServerUrl::parse(&format!("quake3://10.0.{}.{}:27960", server / 250, server % 250 + 1)).expect("a URL")
    }

    fn scan(server: u32, scan: i64) -> LogEvent {
        let player = |n| Player { name: format!("p{server}x{n}").into(), points: Some(scan), ..Player::default() };
        let snapshot = Snapshot {
            t_ms: FROM_MS + scan * 120_000 + i64::from(server),
            game: "baseq3".into(),
            map: "q3dm17".into(),
            hostname: String::new(),
            slots: 64,
            // In the end they leave, and their rows are in the store.
            players: (0..PLAYERS).filter(|_| scan < 3).map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        LogEvent::Scan { server: url(server), outcome: Outcome::Snapshot(snapshot) }
    }

    fn append(dir: &Path, after: u64, events: &[LogEvent]) -> u64 {
        let mut log = HistoryWriter::open(&WriterSettings::new(log_dir(dir)), after + 1, FROM_MS).unwrap();
        events.iter().for_each(|event| log.append(event).unwrap());
        log.finish().unwrap()
    }

    fn open_now(dir: &Path) -> Recovered {
        open(&config(1), dir, &|| false).unwrap()
    }

    /// All rows of the window.
    fn rows(state: &State) -> Vec<(PlayerKey, PlayerRow)> {
        (1..=SERVERS).flat_map(|server| state.store.rows(WINDOW, ServerKey(server)).unwrap()).collect()
    }

    #[test]
    fn repair_reports_the_correction_of_the_clock_that_it_drops() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        open_now(dir).state.write_checkpoint(0).unwrap();
        let last = append(dir, 0, &[scan(0, 0), scan(0, 1)]);
        open_now(dir).state.write_checkpoint(last).unwrap();
        ClockCorrection::new(last, DAY_MS).request(dir).unwrap();
        std::fs::remove_dir_all(log_dir(dir)).unwrap();
        let warnings = RefCell::new(Vec::new());
        let repaired = repair(&config(1), dir, &|warning| warnings.borrow_mut().push(warning.to_string()));
        assert!(repaired.unwrap().is_some_and(|repair| repair.is_done));
        let warnings = warnings.into_inner();
        assert!(warnings.len() == 1 && warnings[0].contains("they are 86400000 ms too late"), "{warnings:?}");
    }

    #[test]
    fn state_whose_times_are_not_corrected_yet_is_not_copied() {
        let place = tempfile::tempdir().unwrap();
        let (dir, backup) = (&place.path().join("state"), place.path().join("backup"));
        open_now(dir).state.write_checkpoint(0).unwrap();
        let last = append(dir, 0, &[scan(0, 0), scan(0, 1)]);
        ClockCorrection::new(last, DAY_MS).request(dir).unwrap();
        let open_copy = || open_copy(&config(1), dir, &|| false, &|_| ()).map(|_| ());
        let back_up = || backup_closed(&config(1), dir, &backup, &|_| ()).map(|_| ());
        let prepare = |_: &Meta, _: &Path| Ok::<_, StoreError>(());
        let restored = place.path().join("restored");
        let restore = || store::restore(dir, &restored, 16 << 20, prepare).map(|_| ()).map_err(RecoveryError::from);
        let all = || [open_copy(), back_up(), restore()];
        for result in all() {
            let is_refused = matches!(
                &result,
                Err(RecoveryError::State(StateError::Store(StoreError::TimesUncorrected { path })))
                    if path.ends_with("clock-correction")
            );
            assert!(is_refused, "{:?}", result.map_err(|error| error.to_string()));
        }
        prepare_log(dir).unwrap();
        all().into_iter().for_each(|result| result.unwrap());
    }

    #[test]
    fn rows_of_a_deleted_window_are_not_in_a_new_one_after_a_restart() {
        let settings = |t_ms, day| LogEvent::Settings { t_ms, settings: config(day).log_settings() };
        let rebuild = |step| LogEvent::Rebuild { t_ms: FROM_MS + DAY_MS, step };
        let mut before = vec![settings(FROM_MS, 1)];
        before.extend((0..4).flat_map(|n| (0..SERVERS).map(move |server| scan(server, n))));
        let deletion =
            [settings(FROM_MS + DAY_MS, 2), rebuild(RebuildStep::Types { from_ms: Some(FROM_MS - 90 * DAY_MS) })];
        let start_ms = config(2).engine_settings().unwrap().windows.span(WINDOW).unwrap().start;
        let window = WindowState { window: WINDOW, start_ms, end_ms: start_ms + 28 * DAY_MS };
        let row = |n: u32| RebuiltRow {
            game: "baseq3".into(),
            name: format!("p0x{n}").into(),
            display: format!("p0x{n}").into(),
            row: PlayerRow::new(1, 1000.0),
        };
        let of_server = RebuiltServer {
            window: WINDOW,
            server: url(0),
            rows: (0..5).map(row).collect(),
            removed: Vec::new(),
            maps: Vec::new(),
        };
        let after = [
            settings(FROM_MS + DAY_MS, 2),
            rebuild(RebuildStep::Begin { windows: vec![window] }),
            rebuild(RebuildStep::Server(Box::new(of_server))),
            rebuild(RebuildStep::End {}),
        ];
        let [goes_on, starts_again] = [true, false].map(|sweeps| {
            let dir = tempfile::tempdir().unwrap();
            open_now(dir.path()).state.write_checkpoint(0).unwrap();
            let last = append(dir.path(), 0, &before);
            let mut recovered = open_now(dir.path());
            assert_eq!(rows(&recovered.state).len(), (SERVERS * PLAYERS) as usize);
            recovered.state.write_checkpoint(last).unwrap();
            recovered.state.store.merge_files().unwrap();
            drop(recovered);
            let last = append(dir.path(), last, &deletion);
            let Recovered { mut state, .. } = open_now(dir.path());
            assert!(state.must_sweep());
            state.write_checkpoint(last).unwrap();
            while sweeps && state.sweep().unwrap() {}
            drop(state);
            let last = append(dir.path(), last, &after);
            let Recovered { mut state, .. } = open_now(dir.path());
            state.write_checkpoint(last).unwrap();
            while state.sweep().unwrap() {}
            rows(&state)
        });
        assert_eq!((goes_on.len(), starts_again == goes_on), (5, true));
    }
}
