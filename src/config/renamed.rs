//! The former names of settings and of their values, and removed settings. A file that has one is refused
//! with what to write instead.

/// Keys: the path of the former name, and that of the setting.
const RENAMED_KEYS: &[(&str, &str)] = &[
    ("log", "log_filter"),
    ("scan.per_second_max", "scan.packets_per_second_max"),
    ("scan.per_address_per_second_max", "scan.address_packets_per_second_max"),
    ("scan.per_address_burst", "scan.address_burst_packets"),
    ("scan.per_subnet_per_second_max", "scan.subnet_packets_per_second_max"),
    ("scan.per_subnet_burst", "scan.subnet_burst_packets"),
    ("scan.sockets", "scan.sockets_per_ip_version"),
    ("scan.in_flight_max", "scan.scans_in_flight_max"),
    ("scan.resolve_ttl_s", "scan.dns_cache_ttl_s"),
    ("boards.ties", "boards.tie_breakers"),
    ("boards.closed_bytes_max", "boards.closed_cache_bytes_max"),
    ("clock.steady_s", "clock.trust_after_s"),
    ("store.compact_min_bytes", "store.compact_bytes_min"),
    ("store.disk_free_min_bytes", "store.disk_free_bytes_min"),
    ("archive.drain_s_max", "archive.drain_timeout_s"),
    ("archive.retry_s_max", "archive.backoff_s_max"),
];

/// Values: the path of the key, the former value, and the value.
const RENAMED_VALUES: &[(&str, &str, &str)] = &[("clock.synchronised", "ask", "auto")];

/// Keys and sections that no longer exist, and why.
const REMOVED_KEYS: &[(&str, &str)] = &[("record", NO_SCAN_LOG), ("scan_log", NO_SCAN_LOG)];

const NO_SCAN_LOG: &str = "there is no scan log any more, because the log in state_dir has every scan (log.keep_days); \
                           remove this. `clqd log import FILES` puts an old scan log into the log";

/// The message about a key, if it is a former name or was removed.
pub(super) fn key_message(path: &str) -> Option<String> {
    if let Some((_, why)) = REMOVED_KEYS.iter().find(|(old, _)| *old == path) {
        return Some((*why).to_owned());
    }
    let (_, new) = RENAMED_KEYS.iter().find(|(old, _)| *old == path)?;
    let section = |path: &str| path.split_once('.').map_or(String::new(), |(section, _)| section.to_owned());
    Some(match new.split_once('.') {
        Some((into, name)) if section(path) != into => {
            format!("this setting is now called {new}; write it as {name} in section [{into}]")
        }
        _ => format!("this setting is now called {new}"),
    })
}

/// The message about the value of a key, if it is a former name of the value.
pub(super) fn value_message(path: &str, value: &str) -> Option<String> {
    let (_, old, new) = RENAMED_VALUES.iter().find(|(key, old, _)| *key == path && *old == value)?;
    Some(format!("the value {old:?} is now called {new:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::{KEYS, KeySpec};
    use crate::config::{Config, DEFAULTS, Problem};

    /// A file with one key, on line 3 or 4.
    fn file_with(path: &str, value: &str) -> (String, usize) {
        match path.split_once('.') {
            Some((section, name)) => (format!("\n\n[{section}]\n{name} = {value}\n"), 4),
            None => (format!("\n\n{path} = {value}\n"), 3),
        }
    }

    fn key(path: &str) -> Option<&'static KeySpec> {
        KEYS.iter().find(|key| key.path() == path)
    }

    /// The value of a key in the shipped file.
    fn default_of(path: &str) -> String {
        let all: toml::Table = DEFAULTS.parse().unwrap();
        let found = path.split('.').fold(toml::Value::Table(all), |table, name| table[name].clone());
        found.to_string()
    }

    #[test]
    fn every_renamed_key_is_refused_with_its_line_and_new_name() {
        for (old, new) in RENAMED_KEYS {
            assert!(key(old).is_none(), "{old} is a key");
            assert!(key(new).is_some(), "{new} is not a key");
            for value in [&default_of(new), "[]"] {
                let (text, line) = file_with(old, value);
                let problems = Config::parse(&text).unwrap_err();
                let [Problem { line: found, key, message }] = &problems[..] else { panic!("{problems:?}") };
                assert_eq!((*found, key.as_str()), (line, *old));
                let want = format!("this setting is now called {new}");
                assert!(*message == want || message.starts_with(&format!("{want};")), "{message}");
            }
            let (text, _) = file_with(new, &default_of(new));
            assert_eq!(Config::parse(&text).unwrap(), Config::default());
        }
    }

    #[test]
    fn every_removed_key_is_refused_with_its_line_and_the_reason() {
        for (text, removed) in [("\nrecord = \"/a\"\n", "record"), ("\n[scan_log]\npath = \"/a\"\n", "scan_log")] {
            let want = Problem { line: 2, key: removed.to_owned(), message: NO_SCAN_LOG.to_owned() };
            assert_eq!(Config::parse(text).unwrap_err(), [want]);
        }
    }

    #[test]
    fn every_renamed_value_is_refused_with_its_line_and_new_name() {
        for (path, old, new) in RENAMED_VALUES {
            let (text, line) = file_with(path, &format!("{old:?}"));
            let problems = Config::parse(&text).unwrap_err();
            let want =
                Problem { line, key: (*path).to_owned(), message: format!("the value {old:?} is now called {new:?}") };
            assert_eq!(problems, [want]);
            let (text, _) = file_with(path, &format!("{new:?}"));
            assert!(Config::parse(&text).is_ok(), "{text}");
        }
    }
}
