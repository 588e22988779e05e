//! Players and servers online over time: of all servers, of each game and of each tag.
//!
//! They are the sums of the series of their servers, so nothing is stored for them. The sums are
//! computed once in ten minutes, in steps.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Engine, ReadModel, ServerState, ViewError};
use crate::model::calendar::{Calendar, HOUR_MS};
use crate::model::server::SeriesRecord;
use crate::model::{GameKey, ServerKey, TagKey, WeekKey};
use crate::series::slots::{SLOT_MS, decode_bytes, decode_slots};
use crate::view::{OnlineSeriesView, SlotsView};

/// Servers that one tick adds. It takes 3 ms for each group that a server belongs to (measured in a
/// copy of the loop).
const SERVERS_PER_TICK: u32 = 1_000;

/// The newest slots of ten minutes that are left out: a server's slot ends with the first scan
/// after it, which is up to ten minutes later.
const SLOTS_NOT_COMPLETE: i64 = 1;

/// Number of values of ten minutes, hours and days. It is one less than a server has, because the
/// newest slot of a server may not be complete for all servers.
const LENGTHS: [usize; 3] = [149, 767, 364];

/// Most weeks of a series: ten years.
const WEEKS_MAX: usize = 522;

/// The group whose servers are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeriesGroup {
    All,
    Game(GameKey),
    Tag(TagKey),
}

/// The sums of a group.
#[derive(Clone, Debug)]
struct Sums {
    /// Slots by resolution: ten minutes, hours, days, weeks; the newest last.
    slots: [Vec<Option<(f64, u32)>>; 4],
    /// Servers that were seen in the running week.
    servers_of_week: u32,
}

/// The number of the newest slot of each resolution.
type NewestSlots = [i64; 4];

#[derive(Debug, Default)]
pub(super) struct SiteSeries {
    shown: Option<Arc<Computed>>,
    computing: Option<Computed>,
}

#[derive(Debug)]
struct Computed {
    newest: NewestSlots,
    /// Complete hours of the running week.
    hours_of_week: usize,
    /// Servers below this one are added.
    next_server: u32,
    groups: FxHashMap<SeriesGroup, Sums>,
}

impl SiteSeries {
    pub fn replica(&self) -> SiteSeries {
        SiteSeries { shown: self.shown.clone(), computing: None }
    }
}

impl ReadModel {
    /// Players and servers online over time. `None`: not computed yet, or the group has no server
    /// that was seen.
    pub fn online_series(&self, group: SeriesGroup) -> Option<OnlineSeriesView> {
        let Computed { newest, hours_of_week, groups, .. } = self.site_series.shown.as_deref()?;
        let sums = groups.get(&group)?;
        let [ten_minutes, hours, days, weeks] = &sums.slots;
        let view = |newest_ms: i64, sums: &[Option<(f64, u32)>]| SlotsView {
            newest_ms,
            players: sums.iter().map(|sum| sum.map(|(players, _)| (players * 10.0).round() / 10.0)).collect(),
            servers: sums.iter().map(|sum| sum.map(|(_, servers)| servers)).collect(),
        };
        let calendar = &self.global.calendar;
        Some(OnlineSeriesView {
            ten_minutes: view(newest[0] * SLOT_MS, ten_minutes),
            hours: view(newest[1] * HOUR_MS, hours),
            days: view(calendar.day_start_ms(newest[2]), days),
            weeks: view(calendar.week_start_ms(WeekKey(newest[3].max(0) as u32)), weeks),
            week_coverage: sums.week_coverage(*hours_of_week),
        })
    }

    /// The group of a game or tag; of all servers without both.
    pub fn series_group(&self, game: Option<&str>, tag: Option<&str>) -> Result<SeriesGroup, ViewError> {
        match (game, tag) {
            (Some(game), _) => self.find_game(game).map(SeriesGroup::Game),
            (None, Some(tag)) => self.find_tag(tag).map(SeriesGroup::Tag),
            (None, None) => Ok(SeriesGroup::All),
        }
    }
}

impl Engine {
    /// Computes the next step, if a slot has ended since the last sums.
    pub(super) fn advance_site_series(&mut self) {
        let newest = newest_slots(&self.model.global.calendar, self.model.now_ms());
        let mut computed = match self.model.site_series.computing.take() {
            Some(computing) => computing,
            None if self.model.site_series.shown.as_ref().is_some_and(|shown| shown.newest == newest) => return,
            None => {
                let hours_of_week = hours_of_week(&self.model.global.calendar, self.model.now_ms(), &newest);
                Computed { newest, hours_of_week, next_server: 0, groups: FxHashMap::default() }
            }
        };
        let end = self.model.servers.end().0.min(computed.next_server + SERVERS_PER_TICK);
        for server in (computed.next_server..end).filter_map(|key| self.model.servers.get(ServerKey(key))) {
            computed.add(&self.model.global.calendar, server);
        }
        computed.next_server = end;
        if end == self.model.servers.end().0 {
            self.model.site_series.shown = Some(Arc::new(computed));
        } else {
            self.model.site_series.computing = Some(computed);
        }
    }

    /// Computes all of it now, for a process that does nothing else.
    pub fn complete_site_series(&mut self) {
        self.advance_site_series();
        while self.model.site_series.computing.is_some() {
            self.advance_site_series();
        }
    }
}

impl Computed {
    fn add(&mut self, calendar: &Calendar, ServerState { record, series, .. }: &ServerState) {
        let Some(series) = series.as_ref().filter(|_| !record.removed) else { return };
        let slots = slots_of(calendar, &series.unpack());
        let game = record.game.map(SeriesGroup::Game);
        let tags = record.tags.iter().map(|&tag| SeriesGroup::Tag(tag));
        for group in [SeriesGroup::All].into_iter().chain(game).chain(tags) {
            self.groups.entry(group).or_default().add(&slots, &self.newest, self.hours_of_week);
        }
    }
}

impl Default for Sums {
    fn default() -> Sums {
        let [ten_minutes, hours, days] = LENGTHS.map(|length| vec![None; length]);
        Sums { slots: [ten_minutes, hours, days, Vec::new()], servers_of_week: 0 }
    }
}

impl Sums {
    fn add(&mut self, slots: &[(i64, Vec<Option<f64>>); 4], newest: &NewestSlots, hours_of_week: usize) {
        let mut was_seen_in_week = false;
        for (which, ((newest_of_server, values), newest)) in slots.iter().zip(newest).enumerate() {
            let sums = &mut self.slots[which];
            for (back, value) in values.iter().rev().enumerate() {
                // From the end; negative: not complete yet.
                let from_end = newest - newest_of_server + back as i64;
                let (Some(value), Ok(from_end)) = (value, usize::try_from(from_end)) else { continue };
                if which == 3 && sums.len() <= from_end && from_end < WEEKS_MAX {
                    let missing = from_end + 1 - sums.len();
                    sums.splice(..0, std::iter::repeat_n(None, missing));
                }
                let Some(at) = sums.len().checked_sub(from_end + 1) else { break };
                let (players, servers) = sums[at].get_or_insert((0.0, 0));
                *players += value;
                *servers += 1;
                was_seen_in_week |= which == 1 && from_end < hours_of_week;
            }
        }
        self.servers_of_week += u32::from(was_seen_in_week);
    }

    fn week_coverage(&self, hours_of_week: usize) -> Option<f64> {
        let hours = &self.slots[1];
        let of_week = &hours[hours.len().saturating_sub(hours_of_week)..];
        let seen: u64 = of_week.iter().flatten().map(|(_, servers)| u64::from(*servers)).sum();
        let possible = u64::from(self.servers_of_week) * of_week.len() as u64;
        (possible > 0).then(|| seen as f64 / possible as f64)
    }
}

/// The numbers of the newest complete slots.
fn newest_slots(calendar: &Calendar, now_ms: i64) -> NewestSlots {
    let slot = now_ms.div_euclid(SLOT_MS) - SLOTS_NOT_COMPLETE;
    let hour = (slot * SLOT_MS).div_euclid(HOUR_MS);
    let day = calendar.day(hour * HOUR_MS);
    [slot - 1, hour - 1, day - 1, day.div_euclid(7) - 1]
}

/// Complete hours since the start of the week.
fn hours_of_week(calendar: &Calendar, now_ms: i64, newest: &NewestSlots) -> usize {
    let week_start_ms = calendar.week_start_ms(calendar.week(now_ms));
    let first_hour = (week_start_ms + HOUR_MS - 1).div_euclid(HOUR_MS);
    usize::try_from(newest[1] - first_hour + 1).unwrap_or(0)
}

/// The number of the newest slot of each resolution of a server, and its means.
fn slots_of(calendar: &Calendar, series: &SeriesRecord) -> [(i64, Vec<Option<f64>>); 4] {
    [
        (series.newest_ten_minutes_ms.div_euclid(SLOT_MS), decode_slots(&series.ten_minutes)),
        (series.newest_hour_ms.div_euclid(HOUR_MS), decode_bytes(&series.hours)),
        (calendar.day(series.newest_day_ms), decode_bytes(&series.days)),
        (i64::from(calendar.week(series.newest_week_ms).0), decode_bytes(&series.weeks)),
    ]
}
