//! When the commands of a log took effect: corrections of rows, greylisting, and the times at which
//! windows were closed.
//!
//! A moment is the index of a line: the state before that line is applied. `usize::MAX` is the end
//! of the log.
//!
//! [open] The log does not say when a window was closed. Here all windows that are over are closed
//! before each line and at the end of the log. So a week that is reopened although it is over is
//! closed again before the next line.

use std::collections::HashMap;
use std::ops::Range;

use super::{PlayerId, Settings};

#[derive(Default)]
pub struct History {
    /// `t` of each line.
    pub times: Vec<i64>,
    /// The settings, each with the first line for which they hold.
    pub settings: Vec<(usize, Settings)>,
    /// In order of the log.
    pub corrections: Vec<Correction>,
    /// Since which lines a server is greylisted or not any more.
    pub greylisted: HashMap<String, Vec<(usize, bool)>>,
    /// At which lines a removed server was added again.
    pub restored: HashMap<String, Vec<usize>>,
}

/// A command that changes rows, ratings or best positions of earlier lines.
pub struct Correction {
    pub line: usize,
    pub what: Corrected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Corrected {
    Merged { from: PlayerId, into: PlayerId },
    Forgotten(PlayerId),
    TagDropped(String),
    WeekReopened(u32),
    WindowsDeleted { before: i64 },
    ClockSetBack,
}

/// The lines before which a window was closed and at which it was reopened; `usize::MAX` if never.
pub type Closed = Range<usize>;

/// A window with its boundaries.
#[derive(Clone)]
pub struct Target {
    /// The week in which the window starts.
    pub week: u32,
    pub span: Range<i64>,
    /// The window is the week with which players begin anew.
    pub is_week: bool,
}

impl History {
    /// The settings that hold for a line.
    pub fn settings_at(&self, line: usize) -> &Settings {
        &self.settings.iter().rfind(|(from, _)| *from <= line).expect("settings from the first line").1
    }

    pub fn was_greylisted(&self, server: &str, moment: usize) -> bool {
        let changes = self.greylisted.get(server).into_iter().flatten();
        changes.take_while(|(line, _)| *line < moment).last().is_some_and(|(_, greylisted)| *greylisted)
    }

    /// When a window was closed.
    pub fn closed(&self, target: &Target) -> Vec<Closed> {
        let mut closed: Vec<Closed> = Vec::new();
        let mut corrections = self.corrections.iter().peekable();
        let mut open = true;
        for (line, &t) in self.times.iter().enumerate() {
            if open && t >= target.span.end {
                closed.push(line..usize::MAX);
                open = false;
            }
            while let Some(correction) = corrections.next_if(|it| it.line == line) {
                let reopens = match correction.what {
                    Corrected::WeekReopened(week) => target.is_week && week == target.week,
                    Corrected::ClockSetBack => target.span.end > t,
                    _ => false,
                };
                if reopens && !open {
                    closed.last_mut().expect("closed before").end = line;
                    open = true;
                }
            }
        }
        if open && self.times.last().is_some_and(|&now| now >= target.span.end) {
            closed.push(self.times.len()..usize::MAX);
        }
        closed
    }

    /// Whether a window is closed when a command at this line is applied.
    pub fn is_closed_for(&self, target: &Target, line: usize) -> bool {
        self.closed(target).iter().any(|closed| closed.contains(&line))
    }

    /// The line from which the facts of a server count in a window at a moment; `None`: none do.
    ///
    /// docs/corrections.md: a greylisted server counts in no open window, and a window that is closed
    /// meanwhile is closed without it, permanently. [open] That holds for windows of every kind.
    pub fn counted_from(&self, server: &str, target: &Target, moment: usize) -> Option<usize> {
        if !self.greylisted.contains_key(server) {
            return Some(0);
        }
        let mut closed = self.closed(target);
        closed.retain(|closed| closed.start < moment);
        let is_open = closed.last().is_none_or(|closed| closed.end < moment);
        if is_open && self.was_greylisted(server, moment) {
            return None;
        }
        Some(closed.iter().map(|it| it.start).filter(|&line| self.was_greylisted(server, line)).max().unwrap_or(0))
    }
}
