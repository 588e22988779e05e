//! What a log has recorded about itself: its settings, and the time that it covers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::cli::replay::obey;
use crate::config::Config;
use crate::log::{EachEvent, LogEvent, RecordedSettings};
use crate::model::WeekKey;
use crate::model::calendar::Calendar;

/// Settings and times of a log.
#[derive(Debug)]
pub struct RecordedHistory {
    /// Time of the first and the last event, Unix ms.
    pub first_ms: i64,
    pub last_ms: i64,
    pub scans: u64,
    /// For each key, all recorded values in order. Successive values differ.
    values: BTreeMap<String, Vec<Value>>,
}

/// A setting whose new value differs from a recorded one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedSetting {
    /// Such as `elo.k`.
    pub key: String,
    /// The recorded values, in order of time.
    pub before: Vec<Value>,
    pub after: Value,
}

impl RecordedHistory {
    /// Reads all events. `None`: there is none.
    pub fn read(each_event: EachEvent) -> anyhow::Result<Option<RecordedHistory>> {
        let mut found: Option<RecordedHistory> = None;
        each_event(&mut |event| {
            found.get_or_insert_with(|| RecordedHistory::beginning(event.t_ms())).add(event);
            Ok(())
        })?;
        Ok(found)
    }

    fn beginning(t_ms: i64) -> RecordedHistory {
        RecordedHistory { first_ms: t_ms, last_ms: t_ms, scans: 0, values: BTreeMap::new() }
    }

    fn add(&mut self, event: LogEvent) {
        // Recorded time may be set back.
        self.first_ms = self.first_ms.min(event.t_ms());
        self.last_ms = self.last_ms.max(event.t_ms());
        match event {
            LogEvent::Scan { .. } => self.scans += 1,
            LogEvent::Settings { settings, .. } => {
                for (key, value) in settings.0 {
                    let values = self.values.entry(key).or_default();
                    if values.last() != Some(&value) {
                        values.push(value);
                    }
                }
            }
            LogEvent::Command { .. }
            | LogEvent::Known { .. }
            | LogEvent::Rebuild { .. }
            | LogEvent::Archive { .. }
            | LogEvent::Tick { .. } => {}
        }
    }

    /// `config` with the first recorded settings. Settings that the log does not record have their
    /// defaults. Error: the log has settings that are not valid.
    pub fn first_config(&self, config: &Config) -> anyhow::Result<Config> {
        let mut settings = Config::default().result_settings();
        let first = |(key, values): (&String, &Vec<Value>)| Some((key.clone(), values.first()?.clone()));
        settings.update(RecordedSettings(self.values.iter().filter_map(first).collect()));
        obey(config, &settings)
    }

    /// The settings of `config` that differ from a recorded value, or from the default if the log records
    /// none.
    pub fn changed_settings(&self, config: &Config) -> Vec<ChangedSetting> {
        let defaults = Config::default().result_settings();
        let changed = |(key, after): (String, Value)| {
            let recorded = self.values.get(&key).cloned();
            let before = recorded.unwrap_or_else(|| vec![defaults.0[&key].clone()]);
            let is_changed = before.iter().any(|value| !is_equal(value, &after));
            is_changed.then_some(ChangedSetting { key, before, after })
        };
        config.result_settings().0.into_iter().filter_map(changed).collect()
    }

    /// Keys of settings that the log never records.
    pub fn missing_settings(&self) -> Vec<String> {
        let all = Config::default().result_settings().0.into_iter().map(|(key, _)| key);
        all.filter(|key| !self.values.contains_key(key)).collect()
    }

    /// All weeks of the log, oldest first.
    pub fn weeks(&self, calendar: &Calendar) -> Vec<WeekKey> {
        (calendar.week(self.first_ms).0..=calendar.week(self.last_ms).0).map(WeekKey).collect()
    }

    /// Whether the log has all events of a week.
    pub fn covers(&self, calendar: &Calendar, week: WeekKey) -> bool {
        self.first_ms <= calendar.week_start_ms(week) && calendar.week_end_ms(week) <= self.last_ms
    }
}

/// `25` and `25.0` are equal.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| other.as_f64() == Some(number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::Outcome;
    use crate::model::ServerUrl;

    fn settings(t_ms: i64, settings: Value) -> LogEvent {
        LogEvent::Settings { t_ms, settings: serde_json::from_value(settings).unwrap() }
    }

    fn miss(t_ms: i64) -> LogEvent {
        LogEvent::Scan {
            server: ServerUrl::parse("quake3://10.0.0.1:27960").unwrap(),
            outcome: Outcome::Miss { t_ms, reason: String::new() },
        }
    }

    fn history(events: Vec<LogEvent>) -> RecordedHistory {
        RecordedHistory::read(&|each| events.iter().cloned().try_for_each(each)).unwrap().unwrap()
    }

    fn changed(key: &str, before: Vec<Value>, after: Value) -> ChangedSetting {
        ChangedSetting { key: key.to_owned(), before, after }
    }

    #[test]
    fn settings_that_changed_in_the_log_have_all_values() {
        let found = history(vec![
            settings(0, json!({"elo.k": 25, "clq2.quarter": "whole"})),
            miss(1),
            settings(2, json!({"elo.k": 30.0})),
            settings(3, json!({"elo.k": 30.0})),
        ]);
        let config = |text: &str| Config::parse(text).unwrap();
        assert_eq!(
            found.changed_settings(&config("[elo]\nk = 30.0")),
            [changed("elo.k", vec![json!(25), json!(30.0)], json!(30.0))]
        );
        assert_eq!(found.first_config(&config("[elo]\nk = 99.0\ncarry_over = true")).unwrap().elo, {
            // The log does not record `elo.carry_over`.
            Config::default().elo
        });
        assert!(found.missing_settings().contains(&"elo.carry_over".to_owned()));
        assert!(!found.missing_settings().contains(&"elo.k".to_owned()));
    }

    #[test]
    fn equal_settings_are_not_changed() {
        let found = history(vec![settings(0, json!({"elo.k": 25}))]);
        assert_eq!(found.changed_settings(&Config::default()), []);
        let config = Config::parse("[clq2]\nquarter = \"exact\"").unwrap();
        assert_eq!(found.changed_settings(&config), [changed("clq2.quarter", vec![json!("whole")], json!("exact"))]);
    }

    #[test]
    fn first_and_last_week_are_covered_only_completely() {
        let calendar = Calendar::default();
        let week = calendar.week(1_764_064_800_000);
        let (start, end) = (calendar.week_start_ms(week), calendar.week_end_ms(week));
        let covers = |from, to| history(vec![miss(from), miss(to)]).covers(&calendar, week);
        assert!(covers(start, end));
        assert!(!covers(start + 1, end) && !covers(start, end - 1));
        let found = history(vec![miss(start), miss(end), miss(start + 5)]);
        assert_eq!(found.weeks(&calendar), [week, WeekKey(week.0 + 1)]);
        assert_eq!((found.scans, found.last_ms), (3, end));
    }

    #[test]
    fn log_without_events_has_no_history() {
        assert!(RecordedHistory::read(&|_| Ok(())).unwrap().is_none());
    }
}
