//! The thread of a rebuild. It replays the recorded scans into a separate state: first those until its
//! beginning, then those recorded in the meantime, until few are left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::daemon::disk_space::free_bytes;
use crate::engine::{EngineSettings, KnownBefore};
use crate::log::{self, LogEvent, ReadingGuard};
use crate::model::{AdminCommand, KnownServer, ServerUrl};
use crate::state::{ReplayFeed, State};
use crate::store::{StoreError, StoreSettings};

/// With fewer events left the thread has caught up.
const CAUGHT_UP_EVENTS_MAX: u64 = 1_000;

/// The input of the thread.
pub(super) struct ReplayJob {
    pub dir: PathBuf,
    pub store: StoreSettings,
    pub settings: EngineSettings,
    pub servers: Vec<KnownServer>,
    pub known_before: Arc<KnownBefore>,
    pub from_ms: i64,
    /// The directory of the log.
    pub log: PathBuf,
    /// The last batch of the log at the beginning, which is on disk.
    pub position: u64,
    /// Keeps the files of the log while they are read.
    pub _log_reading: ReadingGuard,
    pub is_cancelled: Arc<AtomicBool>,
    pub disk_free_bytes_min: u64,
}

/// A rebuild ends with this free space above the minimum, bytes. With less, nothing would be written any more, and so
/// its end could not be, either.
const SPARE_BYTES: u64 = 64 << 20;

impl ReplayJob {
    /// `next_position`: a later batch that is on disk; `None`: the daemon stops.
    pub fn run(mut self, next_position: &mut dyn FnMut() -> Option<u64>) -> anyhow::Result<State> {
        check_space(&self.dir, self.disk_free_bytes_min)?;
        let mut state = State::open(&self.dir.join("state"), self.store, self.settings.clone())?;
        state.engine.set_known_before(self.known_before.clone());
        for server in &self.servers {
            state.engine.add_server(server.url.clone(), server.tags.clone(), 0)?;
            state.engine.trust_server(&server.url, &server.exempt, &[])?;
        }
        let mut replay = Replay {
            feed: ReplayFeed::background(),
            from_ms: self.from_ms,
            greylisted: self.greylisted_before()?,
            tags: TagChanges::Ignored,
        };
        self.each_of_history(&mut |event| replay.apply(&mut state, event))?;
        replay.tags = TagChanges::Applied;
        loop {
            state.commit()?;
            let until = next_position().context("the daemon is stopping")?;
            let mut events = 0;
            self.each_of_log(self.position, until, &mut |event| {
                events += 1;
                replay.apply(&mut state, event)
            })?;
            self.position = until;
            if events < CAUGHT_UP_EVENTS_MAX {
                state.commit()?;
                return Ok(state);
            }
        }
    }

    /// Passes on the events until the beginning of the rebuild, from `from_ms` on.
    fn each_of_history(&self, each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let after = log::position_before(&self.log, self.from_ms)?;
        self.each_of_log(after, self.position, &mut |event| match is_needed(&event, self.from_ms) {
            true => each(event),
            false => Ok(()),
        })
    }

    /// Passes on the events of some batches of the log.
    fn each_of_log(
        &self,
        after: u64,
        until: u64,
        each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if after >= until {
            return Ok(());
        }
        let mut reader = log::LogReader::open_after(&self.log, after)?;
        let mut events = Vec::new();
        while reader.next_seq().is_none_or(|next| next <= until)
            && let Some(seq) = reader.read_batch(|event| events.push(event))?
        {
            self.check_cancelled()?;
            check_space(&self.dir, self.disk_free_bytes_min)?;
            events.drain(..).filter(|_| seq > after).try_for_each(&mut *each)?;
        }
        Ok(())
    }

    /// The servers that were greylisted when the log begins. These are the servers that its first list of known servers
    /// has as greylisted, or whose first greylist command, if it comes before, lifts the greylisting; and those with
    /// neither that are greylisted now.
    fn greylisted_before(&self) -> anyhow::Result<Vec<ServerUrl>> {
        let mut is_greylisted: BTreeMap<ServerUrl, bool> = BTreeMap::new();
        let mut note = |event| {
            let (server, was_greylisted) = match event {
                LogEvent::Known { server, .. } => (server.url, server.greylist_reason.is_some()),
                LogEvent::Command { command: AdminCommand::Greylist { server, .. }, .. } => (server, false),
                LogEvent::Command { command: AdminCommand::Lift { server }, .. } => (server, true),
                _ => return Ok(()),
            };
            is_greylisted.entry(server).or_insert(was_greylisted);
            Ok(())
        };
        self.each_of_history(&mut note)?;
        for server in self.servers.iter().filter(|server| server.greylist_reason.is_some()) {
            is_greylisted.entry(server.url.clone()).or_insert(true);
        }
        let greylisted = is_greylisted.into_iter().filter(|(_, is_greylisted)| *is_greylisted);
        Ok(greylisted.map(|(server, _)| server).collect())
    }

    fn check_cancelled(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.is_cancelled.load(Ordering::Relaxed), "the rebuild was cancelled");
        Ok(())
    }
}

/// Error: the disk has too little space for a rebuild.
pub(super) fn check_space(dir: &Path, min_bytes: u64) -> anyhow::Result<()> {
    let free = free_bytes(dir);
    anyhow::ensure!(
        min_bytes == 0 || free >= min_bytes + SPARE_BYTES,
        "{} has {free} bytes of free space left; a rebuild ends {SPARE_BYTES} bytes above store.disk_free_bytes_min, \
         which is {min_bytes}",
        dir.display()
    );
    Ok(())
}

/// Whether a rebuild of the time from `from_ms` on needs an event. After times of a wrong clock, the clock may be set to
/// an earlier time.
pub(super) fn is_needed(event: &LogEvent, from_ms: i64) -> bool {
    matches!(event, LogEvent::Settings { .. }) || event.sets_clock() || event.t_ms() >= from_ms
}

/// Applies events to the separate state.
struct Replay {
    feed: ReplayFeed,
    from_ms: i64,
    /// The servers that were greylisted before the log. Scan logs of the first versions have neither
    /// commands nor settings, and no lists of greylisted servers. So this applies from the first event with
    /// settings.
    greylisted: Vec<ServerUrl>,
    tags: TagChanges,
}

/// What happens to changes of tags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TagChanges {
    /// Before the beginning of the rebuild: the servers have the tags of that moment already.
    Ignored,
    Applied,
}

impl Replay {
    fn apply(&mut self, state: &mut State, event: LogEvent) -> anyhow::Result<()> {
        match event {
            event if !is_needed(&event, self.from_ms) => {}
            LogEvent::Scan { server, outcome } => self.feed.observe_scan(state, server, outcome)?,
            LogEvent::Settings { .. } => {
                for server in std::mem::take(&mut self.greylisted) {
                    state.engine.add_server(server.clone(), Vec::new(), 0)?;
                    state.engine.greylist(&state.store, &server, Some("before the log".to_owned()))?;
                }
            }
            event => apply_to_servers(state, &event, self.tags)?,
        }
        Ok(())
    }
}

/// Applies a command that decides which lists of a server count, and when, and for which tags. Other commands are not needed: the
/// import uses the present names of players, and the present settings apply.
pub(super) fn apply_to_servers(state: &mut State, event: &LogEvent, tag_changes: TagChanges) -> Result<(), StoreError> {
    let LogEvent::Command { t_ms, command } = event else { return Ok(()) };
    let has_tags = tag_changes == TagChanges::Applied;
    match command {
        AdminCommand::Add { server, tags, .. } => {
            let tags = if has_tags { tags.clone() } else { Vec::new() };
            state.apply_command(*t_ms, &AdminCommand::Add { server: server.clone(), tags, import: false }).map(drop)
        }
        AdminCommand::Tag { .. } | AdminCommand::DropTag { .. } if !has_tags => Ok(()),
        AdminCommand::Tag { .. }
        | AdminCommand::DropTag { .. }
        | AdminCommand::Remove { .. }
        | AdminCommand::Greylist { .. }
        | AdminCommand::Lift { .. }
        | AdminCommand::Trust { .. }
        | AdminCommand::Clock {} => state.apply_command(*t_ms, command).map(drop),
        _ => Ok(()),
    }
}

/// Time of the first event of the log, Unix ms; `None`: it has none.
pub(super) fn first_event_ms(log: &Path) -> Result<Option<i64>, log::LogError> {
    let (mut reader, mut first) = (log::LogReader::open(log)?, None);
    reader.read_batch(|event| _ = first.get_or_insert(event.t_ms()))?;
    Ok(first)
}

/// Time of the first scan in the log, Unix ms; `None`: it has none.
pub(super) fn first_scan_ms(log: &Path) -> Result<Option<i64>, log::LogError> {
    let mut reader = log::LogReader::open(log)?;
    let mut first = None;
    let note = |first: &mut Option<i64>, event: LogEvent| {
        if let LogEvent::Scan { outcome, .. } = event {
            first.get_or_insert(outcome.t_ms());
        }
    };
    while first.is_none() && reader.read_batch(|event| note(&mut first, event))?.is_some() {}
    Ok(first)
}
