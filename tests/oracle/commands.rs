//! Applies a log line by line: scans, commands of an admin, and settings (docs/rules.md 13).
//!
//! Where the rules leave a choice, the choices made here are:
//!
//! - [open] A removed server is unknown to every command except `add`.
//! - [open] Removing a server changes no row and no board: its history is kept. Its tags, exemptions,
//!   counts and greylisting are those of before if it is added again. Its class is that of a new
//!   address.
//! - [open] A tag is unknown if no server ever had it since it was last dropped.
//! - [open] A merge of two names of one player is skipped, and so is the reopening of a week that is
//!   not closed.
//! - [open] A time zone that is set after the first scan is skipped: weeks cannot change then.
//! - [open] The last three counts of a server stay while it is greylisted.

use std::collections::{BTreeSet, HashMap};

use clqd::model::WeekKey;
use clqd::model::calendar::Calendar;
use serde_json::Value;

use super::facts::{Comparer, Snapshot};
use super::history::{Corrected, Correction, History, Target};
use super::log::{Command, Line, LineKind, Logged, What};
use super::screen::{Outcome, Screener, count_alone};
use super::{PlayerId, SEGMENT_MS, Settings};

/// A log that is being applied.
pub struct Run {
    pub settings: Settings,
    /// The scans, and the result of each.
    pub lines: Vec<Line>,
    pub outcomes: Vec<Outcome>,
    pub snapshots: Vec<Snapshot>,
    pub comparer: Comparer,
    pub screener: Screener,
    /// In order of their keys.
    pub servers: Vec<String>,
    pub known: HashMap<String, Known>,
    pub history: History,
    /// Commands that named something unknown, and settings with unknown keys.
    pub skipped: usize,
    /// Gaps that are credited to maps.
    pub map_gaps: Vec<MapGap>,
    /// Time and map of the last list of each server with a count that is a sample.
    counted: HashMap<String, (i64, Option<String>)>,
    /// Tags that a server had since they were last dropped.
    tags: BTreeSet<String>,
}

/// The time between two lists of a server with counts.
pub struct MapGap {
    pub server: String,
    /// Of the second list.
    pub t: i64,
    /// Index of its line among all scans.
    pub line: usize,
    pub gap_ms: i64,
    /// The map of the first list.
    pub map: String,
}

/// A known server.
#[derive(Default)]
pub struct Known {
    pub removed: bool,
    pub greylisted: bool,
    pub tags: BTreeSet<String>,
    /// The names of the checks that do not apply.
    exempt: BTreeSet<String>,
}

/// Something that a command names is unknown.
struct Unknown;

impl Run {
    pub fn over(log: Vec<Logged>, settings: Settings) -> Run {
        let history = History { settings: vec![(0, settings.clone())], ..History::default() };
        let mut run = Run {
            settings,
            lines: Vec::new(),
            outcomes: Vec::new(),
            snapshots: Vec::new(),
            comparer: Comparer::default(),
            screener: Screener::default(),
            servers: Vec::new(),
            known: HashMap::new(),
            history,
            skipped: 0,
            map_gaps: Vec::new(),
            counted: HashMap::new(),
            tags: BTreeSet::new(),
        };
        for Logged { t, what } in log {
            run.history.times.push(t);
            match what {
                What::Scan(line) => run.scan(line),
                What::Command(command) => run.skipped += usize::from(run.command(t, command).is_err()),
                What::Settings(settings) => run.set(&settings),
            }
        }
        run
    }

    /// The index of the line that is being applied.
    fn line(&self) -> usize {
        self.history.times.len() - 1
    }

    fn scan(&mut self, line: Line) {
        self.add(&line.server);
        let server = &self.known[&line.server];
        let mut map = None;
        let outcome = match &line.kind {
            _ if server.removed => Outcome::Ignored,
            LineKind::Miss => Outcome::Miss,
            LineKind::Partial { count, bots, .. } if self.settings.rules < 2 => {
                Outcome::Partial { count: count.map(|count| count.saturating_sub(bots.unwrap_or(0))) }
            }
            LineKind::Partial { .. } => {
                let (outcome, of) = self.screener.partial(&line, &self.settings, &server.exempt, server.greylisted);
                map = of;
                outcome
            }
            LineKind::Full { .. } if server.greylisted => {
                Outcome::Partial { count: count_alone(&line, &self.settings, &server.exempt) }
            }
            LineKind::Full { .. } => match self.screener.full(&line, &self.settings, &server.exempt) {
                Ok(snapshot) => {
                    map = Some(snapshot.counted_map.clone());
                    self.snapshots.push(self.comparer.compare(snapshot, &self.settings, &server.tags));
                    Outcome::Full
                }
                Err(outcome) => outcome,
            },
        };
        if matches!(outcome, Outcome::Full | Outcome::Counted { .. }) {
            let before = self.counted.remove(&line.server);
            let map = map.or_else(|| before.as_ref()?.1.clone());
            if let Some((since, Some(map))) = before
                && line.t - since <= SEGMENT_MS
            {
                let (server, gap_ms) = (line.server.clone(), line.t - since);
                self.map_gaps.push(MapGap { server, t: line.t, line: self.lines.len(), gap_ms, map });
            }
            self.counted.insert(line.server.clone(), (line.t, map));
        }
        self.outcomes.push(outcome);
        self.lines.push(line);
    }

    /// Adds a server that is not known.
    fn add(&mut self, server: &str) {
        if !self.known.contains_key(server) {
            self.servers.push(server.to_owned());
            self.known.insert(server.to_owned(), Known::default());
        }
    }

    fn server(&mut self, server: &str) -> Result<&mut Known, Unknown> {
        self.known.get_mut(server).filter(|known| !known.removed).ok_or(Unknown)
    }

    fn player(&self, game: &str, name: &str) -> Result<PlayerId, Unknown> {
        let name = PlayerId { game: game.to_owned(), name: name.to_owned() };
        self.screener.names.player(&name).ok_or(Unknown)
    }

    fn correct(&mut self, what: Corrected) {
        let line = self.line();
        self.history.corrections.push(Correction { line, what });
    }

    fn command(&mut self, t: i64, command: Command) -> Result<(), Unknown> {
        match command {
            Command::Add { server, tags } => {
                self.add(&server);
                let known = self.known.get_mut(&server).expect("just added");
                if std::mem::take(&mut known.removed) {
                    let line = self.history.times.len() - 1;
                    self.history.restored.entry(server.clone()).or_default().push(line);
                }
                known.tags.extend(tags.iter().cloned());
                self.tags.extend(tags);
            }
            Command::Remove { server } => {
                self.server(&server)?.removed = true;
                self.counted.remove(&server);
                self.comparer.end_presences(&server);
            }
            Command::Tag { server, add, remove } => {
                let known = self.server(&server)?;
                known.tags.extend(add.iter().cloned());
                known.tags.retain(|tag| !remove.contains(tag));
                self.tags.extend(add);
            }
            Command::DropTag { tag } => {
                if !self.tags.remove(&tag) {
                    return Err(Unknown);
                }
                self.known.values_mut().for_each(|known| _ = known.tags.remove(&tag));
                self.correct(Corrected::TagDropped(tag));
            }
            Command::Greylist { server } => self.greylist(&server, true)?,
            Command::Lift { server } => self.greylist(&server, false)?,
            Command::Trust { server, except, revoke } => {
                let known = self.server(&server)?;
                known.exempt.extend(except);
                known.exempt.retain(|check| !revoke.contains(check));
            }
            Command::Merge { game, from, into } => {
                let (from, into) = (self.player(&game, &from)?, self.player(&game, &into)?);
                if from == into {
                    return Err(Unknown);
                }
                self.screener.names.merge(&from, &into);
                self.comparer.merge(&from, &into);
                self.correct(Corrected::Merged { from, into });
            }
            Command::Forget { game, player } => {
                let player = self.player(&game, &player)?;
                let names = self.screener.names.forget(&player);
                self.comparer.forget(&player, &names);
                self.screener.forget(&names);
                self.correct(Corrected::Forgotten(player));
            }
            // The lists of a log contain no forgotten name.
            Command::Allow => (),
            Command::Reopen { week } => {
                if !self.history.is_closed_for(&Target::week(&self.settings.calendar, week), self.line()) {
                    return Err(Unknown);
                }
                self.correct(Corrected::WeekReopened(week));
            }
            Command::DeleteWindows { before } => self.correct(Corrected::WindowsDeleted { before }),
            Command::Clock => {
                let ended = self.comparer.set_clock_back(t);
                self.counted.retain(|server, _| !ended.contains(server));
                // [open] A count without a list is one of the moment to which the clock is set back.
                self.counted.values_mut().for_each(|(counted, _)| *counted = t.min(*counted));
                self.screener.set_clock_back(t);
                self.correct(Corrected::ClockSetBack);
            }
        }
        Ok(())
    }

    fn greylist(&mut self, server: &str, greylisted: bool) -> Result<(), Unknown> {
        self.server(server)?.greylisted = greylisted;
        if greylisted {
            self.comparer.end_presences(server);
            self.counted.remove(server);
        }
        let line = self.line();
        self.history.greylisted.entry(server.to_owned()).or_default().push((line, greylisted));
        Ok(())
    }

    fn set(&mut self, settings: &[(String, Value)]) {
        for (key, value) in settings {
            let too_late = key == "time_zone" && !self.lines.is_empty() && *value != self.settings.calendar.zone_name();
            if too_late || !self.settings.set(key, value) {
                self.skipped += 1;
            }
        }
        self.history.settings.push((self.line(), self.settings.clone()));
    }
}

impl Target {
    pub fn week(calendar: &Calendar, week: u32) -> Target {
        let span = calendar.week_start_ms(WeekKey(week))..calendar.week_start_ms(WeekKey(week + 1));
        Target { week, span, is_week: true }
    }
}
