//! What each room gets of the configuration, in the room's own words.

use super::{Config, Quarter};
use crate::engine::EngineSettings;
use crate::model::week::{Calendar, UnknownZone};
use crate::rank::{EloRules, NameRules, RoundRules, Rules, clq2};
use crate::schedule::Intervals;

impl Config {
    pub fn engine_settings(&self) -> Result<EngineSettings, UnknownZone> {
        let rules = Rules {
            names: NameRules {
                ignore: self.names.ignore.iter().cloned().collect(),
                count_bots: self.names.count_bots,
                ping_zero_is_bot: self.names.ping_zero_is_bot,
                darkplaces_games: self.names.darkplaces_games.iter().map(|game| game.to_ascii_lowercase()).collect(),
            },
            round: RoundRules { drop_min: self.rounds.round_drop_min, drop_ratio: self.rounds.round_drop_ratio },
            clq2_quarter: match self.clq2.quarter {
                Quarter::Whole => clq2::Quarter::Whole,
                Quarter::Exact => clq2::Quarter::Exact,
            },
            elo: EloRules {
                k: self.elo.k,
                k_times_opponents_max: self.elo.k_times_opponents_max,
                carry_over: self.elo.carry_over,
            },
        };
        Ok(EngineSettings {
            rules,
            calendar: Calendar::new(&self.time_zone)?,
            intervals: Intervals(self.scan.intervals_s().map(|s| s as i64 * 1_000)),
            keep_weeks: self.store.keep_weeks as usize,
            archive: self.archive.is_on(),
            outbox_entries_max: self.archive.outbox_entries_max as usize,
            ..EngineSettings::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_says_what_the_rules_say() {
        let settings = Config::default().engine_settings().unwrap();
        assert_eq!(settings.rules, Rules::default());
        assert_eq!(settings.intervals, Intervals::default());
    }
}
