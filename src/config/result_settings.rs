//! The settings that change a result. A scan log records them, and a replay applies them.

use serde_json::Value;

use super::keys::{KEYS, KeySpec};
use super::{Config, ConfigProblem};
use crate::log::RecordedSettings;

/// Whether a key changes rankings or statistics that are computed from the same scans. Keys that set
/// what is kept, such as `boards.windows`, do not.
fn changes_results(key: &KeySpec) -> bool {
    match key.section {
        "" => key.name == "time_zone",
        "rules" | "names" | "rounds" | "clq2" | "elo" | "screen" => true,
        "scan" => key.name == "class1_players_min",
        "boards" => matches!(key.name, "low_is_better" | "tie_breakers"),
        _ => false,
    }
}

/// Whether a key sets what a state keeps. In a cluster all engines keep the same.
fn sets_what_is_kept(key: &KeySpec) -> bool {
    matches!(
        (key.section, key.name),
        ("boards", "windows") | ("store", "keep_weeks" | "keep_players_weeks") | ("sessions", "keep_days")
    )
}

impl Config {
    /// The settings that change a result.
    pub fn result_settings(&self) -> RecordedSettings {
        self.recorded(changes_results)
    }

    /// The settings that the log has: in a cluster also those of what is kept.
    pub fn log_settings(&self) -> RecordedSettings {
        self.recorded(self.recorded_keys())
    }

    fn recorded_keys(&self) -> fn(&KeySpec) -> bool {
        match self.cluster.is_on() {
            true => |key| changes_results(key) || sets_what_is_kept(key),
            false => changes_results,
        }
    }

    fn recorded(&self, is_recorded: impl Fn(&KeySpec) -> bool) -> RecordedSettings {
        let all = serde_json::to_value(self).expect("Config is plain data");
        let value = |key: &KeySpec| match key.section {
            "" => all[key.name].clone(),
            section => all[section][key.name].clone(),
        };
        let recorded = KEYS.iter().filter(|key| is_recorded(key));
        RecordedSettings(recorded.map(|key| (key.path(), value(key))).collect())
    }

    /// This config with the settings of a log in place of its own. Keys that do not change results, or
    /// that this version does not know, are ignored. Error: a value is not valid.
    pub fn with_settings(&self, settings: &RecordedSettings) -> Result<Config, Vec<ConfigProblem>> {
        self.with_recorded(settings, changes_results)
    }

    /// This config with the settings of its own log. In a cluster that includes what is kept.
    pub fn with_log_settings(&self, settings: &RecordedSettings) -> Result<Config, Vec<ConfigProblem>> {
        self.with_recorded(settings, self.recorded_keys())
    }

    fn with_recorded(
        &self,
        settings: &RecordedSettings,
        is_recorded: impl Fn(&KeySpec) -> bool,
    ) -> Result<Config, Vec<ConfigProblem>> {
        let mut all = toml::Table::try_from(self).expect("Config is plain data");
        for key in KEYS.iter().filter(|key| is_recorded(key)) {
            let Some(value) = settings.0.get(&key.path()) else { continue };
            let value =
                toml_value(value).map_err(|message| vec![ConfigProblem { line: 0, key: key.path(), message }])?;
            match all.get_mut(key.section) {
                Some(toml::Value::Table(section)) => section.insert(key.name.to_owned(), value),
                _ => all.insert(key.name.to_owned(), value),
            };
        }
        Config::parse(&all.to_string())
    }
}

fn toml_value(value: &Value) -> Result<toml::Value, String> {
    toml::Value::try_from(value).map_err(|_| format!("{value} is not a value of a setting"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_settings_give_the_same_rules_again() {
        let text =
            "time_zone = \"Europe/Berlin\"\n[elo]\nk = 31.5\n[names]\nignore = [\"a\"]\n[clq2]\nquarter = \"exact\"\n";
        let recorded = Config::parse(text).unwrap().result_settings();
        let text = serde_json::to_string(&recorded).unwrap();
        let read: RecordedSettings = serde_json::from_str(&text).unwrap();
        let config = Config::default().with_settings(&read).unwrap();
        assert_eq!(config.result_settings(), recorded);
        assert_eq!((config.elo.k, &config.names.ignore[..]), (31.5, &["a".to_owned()][..]));
    }

    #[test]
    fn engines_of_a_cluster_keep_the_same() {
        let kept = "[boards]\nwindows = [\"day keep=3\"]\n[store]\nkeep_weeks = 9\n[sessions]\nkeep_days = 2\n";
        let cluster = "[archive]\nurl = \"mysql://clqd@localhost/clqd\"\n[cluster]\nengine = \"a\"\n";
        let leader = Config::parse(&format!("{kept}{cluster}")).unwrap();
        let follower = Config::parse(cluster).unwrap().with_log_settings(&leader.log_settings()).unwrap();
        assert_eq!(follower, leader);
        let single = Config::default().with_log_settings(&leader.log_settings()).unwrap();
        assert_eq!(single, Config::default());
        assert_eq!(Config::parse(kept).unwrap().log_settings(), Config::default().result_settings());
    }

    #[test]
    fn whole_numbers_unknown_keys_and_invalid_values() {
        let with = |text: &str| Config::default().with_settings(&serde_json::from_str(text).unwrap());
        assert_eq!(with(r#"{"elo.k":30}"#).unwrap().elo.k, 30.0);
        assert_eq!(with(r#"{"elo.later":1,"state_dir":"/x"}"#).unwrap(), Config::default());
        let problems = with(r#"{"elo.k":-1}"#).unwrap_err();
        assert!(problems[0].to_string().contains("elo.k"), "{problems:?}");
        assert!(with(r#"{"elo.k":null}"#).is_err());
    }
}
