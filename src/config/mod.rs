//! The configuration file: one TOML file. The shipped `config/clqd.toml` contains the
//! defaults and documents every key.
//!
//! [`Config`] is plain data. [`module_settings`] converts it to the settings of each
//! module. [`keys`] is the table of all keys, [`renamed`] that of their former
//! names; [`validate`] checks a file.

pub mod keys;
mod module_settings;
mod paths;
mod result_settings;
#[cfg(test)]
mod shipped;
pub mod validate;

use std::fmt;
use std::path::{Path, PathBuf};

use keys::{Applies, KEYS};
pub use paths::rebuild_dir;
use serde::{Deserialize, Serialize};

use crate::api::Permission;
use crate::archive::{OnOlderDatabase, Tls};
use crate::clock::SyncCheck;
pub use crate::config::module_settings::WindowSettingsError;
pub use crate::config::validate::ConfigProblem;
use crate::config::validate::KeyLines;
use crate::limits::IMPORTED_SERVERS_MAX;
use crate::master::ListUrl;
use crate::proto::Authentication;
use crate::rank::{EloRules, Quarter, RoundRules};

/// The shipped file: all keys, with their defaults.
pub const DEFAULTS: &str = include_str!("../../config/clqd.toml");

/// Default configuration file of an installed daemon.
pub const DEFAULT_CONFIG_FILE: &str = "/etc/clqd/clqd.toml";

/// Name of the systemd credential that holds the password of the archive.
pub const PASSWORD_CREDENTIAL: &str = "mysql_password";

/// The file of that credential in systemd/clqd.service.
const UNIT_PASSWORD_FILE: &str = "/etc/clqd/mysql_password";

/// Largest configuration file read, bytes; the shipped one has about 12,000.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// All settings. Units and ranges are in `config/clqd.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub time_zone: String,
    pub state_dir: PathBuf,
    pub control_socket: PathBuf,
    pub log_filter: String,
    pub scan: ScanConfig,
    pub rules: RulesConfig,
    pub names: NamesConfig,
    pub rounds: RoundRules,
    pub clq2: Clq2Config,
    pub elo: EloRules,
    pub screen: ScreenConfig,
    pub boards: BoardsConfig,
    pub clock: ClockConfig,
    pub store: StoreConfig,
    pub archive: ArchiveConfig,
    pub log: LogConfig,
    pub sessions: SessionsConfig,
    pub capture: CaptureConfig,
    pub web: WebConfig,
    pub site: SiteConfig,
    pub geo: GeoConfig,
    pub cluster: ClusterConfig,
    /// Messages about servers and boards; the shipped file has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhook: Vec<WebhookConfig>,
    /// Scheduled imports; the shipped file has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub import: Vec<ImportConfig>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanConfig {
    pub timeout_ms: u64,
    pub retries: u32,
    /// Packets.
    pub packets_per_second_max: u32,
    pub address_packets_per_second_max: u32,
    pub address_burst_packets: u32,
    pub subnet_packets_per_second_max: u32,
    pub subnet_burst_packets: u32,
    pub sockets_per_ip_version: usize,
    pub scans_in_flight_max: usize,
    pub tcp_connections_max: u32,
    pub dns_cache_ttl_s: u64,
    pub receive_buffer_bytes: usize,
    pub allow_private: bool,
    pub limit_loopback: bool,
    pub authentication_min: Authentication,
    /// Addresses and networks that are never queried.
    pub opt_out: Vec<String>,
    /// Empty: none.
    pub contact: String,
    pub class1_players_min: u32,
    /// 0: never.
    pub forget_silent_days: u32,
    pub region: String,
    pub confirm_miss_by: u32,
    pub budget: f64,
    pub elastic_players_min: u32,
    pub interval_class1_s: u64,
    pub interval_class2_s: u64,
    pub interval_class3_s: u64,
    pub interval_class4_s: u64,
    pub interval_class5_s: u64,
    /// 0: servers of classes 6 and 7 are scanned on request only.
    pub retry_failed_s: u64,
}

impl ScanConfig {
    /// Seconds between two scans of a server of class 1 to 5.
    pub fn intervals_s(&self) -> [u64; 5] {
        [
            self.interval_class1_s,
            self.interval_class2_s,
            self.interval_class3_s,
            self.interval_class4_s,
            self.interval_class5_s,
        ]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamesConfig {
    pub ignore: Vec<String>,
    pub count_bots: bool,
    pub ping_zero_is_bot: bool,
    pub darkplaces_games: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesConfig {
    pub number: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clq2Config {
    pub quarter: Quarter,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreenConfig {
    pub enabled: bool,
    pub frozen_after_s: u64,
    pub new_games_per_day_max: u32,
    pub new_maps_per_day_max: u32,
    pub new_names_per_day_max: u32,
    pub games_max: u32,
    pub maps_max: u32,
    pub spectator_points: Vec<String>,
    pub gain_max: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardsConfig {
    /// Types of windows besides the week: see [`Config::windows`].
    pub windows: Vec<String>,
    /// See [`Config::low_is_better`].
    pub low_is_better: Vec<String>,
    /// See [`Config::tie_breakers`].
    pub tie_breakers: Vec<String>,
    pub closed_cache_bytes_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockConfig {
    pub synchronised: SyncCheck,
    pub trust_after_s: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    pub cache_bytes: u64,
    pub commit_interval_ms: u64,
    pub checkpoint_interval_s: u32,
    pub changes_bytes_max: u64,
    pub compact_bytes_min: u64,
    pub disk_free_bytes_min: u64,
    pub keep_weeks: u32,
    pub keep_players_weeks: u32,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveConfig {
    /// Empty: no archive. May hold a password: see [`ArchiveConfig::url_without_password`].
    pub url: String,
    pub password_file: PathBuf,
    pub tls: Tls,
    pub tls_ca: PathBuf,
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    pub interval_s: u64,
    pub drain_timeout_s: u64,
    pub outbox_entries_max: u64,
    pub connect_timeout_ms: u64,
    pub query_timeout_ms: u64,
    pub keep_weeks: u32,
    pub keep_online_days: u32,
    pub keep_top_board_days: u32,
    pub keep_sessions_days: u32,
    pub on_older_database: OnOlderDatabase,
    pub backoff_s_max: u64,
}

impl ArchiveConfig {
    pub fn is_enabled(&self) -> bool {
        !self.url.is_empty()
    }

    fn tls_files(&self) -> [(&'static str, &Path); 3] {
        [("archive.tls_ca", &self.tls_ca), ("archive.tls_cert", &self.tls_cert), ("archive.tls_key", &self.tls_key)]
    }

    fn has_password(&self) -> bool {
        self.url_without_password() != self.url
    }

    /// The URL without its password, for logs and messages.
    pub fn url_without_password(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return self.url.clone();
        };
        match rest.rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split_once(':').map_or(user, |(user, _)| user);
                format!("{scheme}://{user}@{host}")
            }
            None => self.url.clone(),
        }
    }
}

impl fmt::Debug for ArchiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("url", &self.url_without_password()).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    pub keep_days: u32,
    pub bytes_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionsConfig {
    pub keep_days: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureConfig {
    /// Empty: no captures.
    pub dir: PathBuf,
    /// Share of the scans that are captured, 0 to 1.
    pub share: f64,
    pub keep_days: u32,
}

impl CaptureConfig {
    pub fn is_enabled(&self) -> bool {
        !self.dir.as_os_str().is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// Empty: there is no cluster.
    pub engine: String,
    /// A URL; empty: unknown.
    pub address: String,
    pub keep_log_days: u32,
}

impl ClusterConfig {
    pub fn is_on(&self) -> bool {
        !self.engine.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebConfig {
    /// Address and port; empty: no web interface.
    pub listen: String,
    pub client_requests_per_second_max: u32,
    pub client_burst_requests: u32,
    /// 0: no searches for parts of names.
    pub search_memory_bytes: u64,
    /// Addresses and networks.
    pub proxies: Vec<String>,
    /// Empty: the address of `listen`.
    pub public_url: String,
    pub front_page_days_min: u32,
    /// Empty: the port has no TLS.
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    /// The shipped file has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token: Vec<TokenConfig>,
}

/// Whose site it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteConfig {
    pub title: String,
    pub description: String,
    /// `#rrggbb`, or empty.
    pub accent: String,
    /// Empty: the title only.
    pub logo: PathBuf,
    /// Empty: the names of the table of games.
    pub games: PathBuf,
    /// Each a name and a URL.
    pub links: Vec<String>,
}

/// Who may send requests of admins over the port: a `[[web.token]]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenConfig {
    pub name: String,
    /// SHA-256 in hexadecimal digits.
    pub hash: String,
    pub may: Vec<Permission>,
}

/// Where servers are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeoConfig {
    /// Empty: servers have no country.
    pub database: PathBuf,
}

/// Messages about servers and boards: a `[[webhook]]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// For messages of the log.
    pub name: String,
    pub url: SecretUrl,
    #[serde(default)]
    pub kind: WebhookKind,
    pub events: Vec<WebhookEvent>,
    /// Whose servers and boards; a tag or a game.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
}

/// The form of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookKind {
    Discord,
    #[default]
    Json,
}

/// What a webhook tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WebhookEvent {
    ServerDown,
    ServerUp,
    WeekClosed,
    NewLeader,
}

/// A URL that is never printed, because anyone who knows it can send messages.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretUrl(String);

impl SecretUrl {
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretUrl")
    }
}

/// A scheduled import of the servers of a list: an `[[import]]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportConfig {
    /// A master, or a list on a website.
    pub master: ListUrl,
    /// `None`: by the kind of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default = "import_every_s")]
    pub every_s: u64,
    /// Further servers of the list are dropped.
    #[serde(default = "import_servers_max")]
    pub servers_max: usize,
}

fn import_servers_max() -> usize {
    IMPORTED_SERVERS_MAX
}

fn import_every_s() -> u64 {
    86_400
}

/// Why the configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}", file.display())]
    Read { file: PathBuf, source: std::io::Error },
    #[error("{} has more than {FILE_BYTES_MAX} bytes; this is not a configuration file", .0.display())]
    TooLong(PathBuf),
    #[error("{}", listed(file, problems))]
    Problems { file: PathBuf, problems: Vec<ConfigProblem> },
}

fn listed(file: &Path, problems: &[ConfigProblem]) -> String {
    let lines: Vec<_> = problems.iter().map(|p| format!("{}:{}: {p}", file.display(), p.line)).collect();
    let count = if lines.len() == 1 { "a problem".to_owned() } else { format!("{} problems", lines.len()) };
    format!("the configuration has {count}\n{}", lines.join("\n"))
}

impl Default for Config {
    /// The shipped file.
    fn default() -> Self {
        toml::from_str(DEFAULTS).expect("config/clqd.toml fits Config: a test reads it")
    }
}

impl Config {
    /// Reads a file. Omitted keys have their defaults.
    pub fn load(file: &Path) -> Result<Config, ConfigError> {
        read_file(file, Config::parse)
    }

    /// The control socket that a file names, for a command that needs no other setting. If the file
    /// cannot be read or has problems, they are returned, too. Then the path is that in the
    /// readable part of the file, or else the default.
    pub fn control_socket_of(file: &Path) -> (PathBuf, Option<ConfigError>) {
        let error = match Config::load(file) {
            Ok(config) => return (config.control_socket, None),
            Err(error) => error,
        };
        let text = read_bytes(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let named = text.and_then(|text| validate::lenient_text(&text, "control_socket")).map(PathBuf::from);
        (named.unwrap_or_else(|| Config::default().control_socket), Some(error))
    }

    /// Reads a file and checks the files and the address that it names.
    pub fn check(file: &Path) -> Result<CheckedConfig, ConfigError> {
        let mut checked = Config::check_files(file, false)?;
        checked.notes.extend(paths::notes_on_owner(&checked.config, file).into_iter().map(shown));
        Ok(checked)
    }

    /// As the daemon, for which a file that it may not read is a problem.
    pub fn check_as_daemon(file: &Path) -> Result<CheckedConfig, ConfigError> {
        Config::check_files(file, true)
    }

    fn check_files(file: &Path, is_daemon: bool) -> Result<CheckedConfig, ConfigError> {
        read_file(file, |text| {
            let (config, lines) = Config::parse_with_lines(text)?;
            let mut found = paths::check_files(&config);
            if is_daemon {
                found.problems.append(&mut found.notes);
            }
            let problems = lines.problems(found.problems);
            let notes = found.notes.into_iter().map(shown).collect();
            let checked = CheckedConfig { config, notes, file: file.to_owned(), lines };
            if problems.is_empty() { Ok(checked) } else { Err(problems) }
        })
    }

    /// Parses the text of a file. Error: all problems, by line.
    pub fn parse(text: &str) -> Result<Config, Vec<ConfigProblem>> {
        Config::parse_with_lines(text).map(|(config, _)| config)
    }

    fn parse_with_lines(text: &str) -> Result<(Config, KeyLines), Vec<ConfigProblem>> {
        let (mut problems, lines) = validate::check(text);
        if !problems.is_empty() {
            return Err(problems);
        }
        let of_text = |message: String| vec![ConfigProblem { line: 1, key: String::new(), message }];
        let mut all: toml::Table = DEFAULTS.parse().expect("config/clqd.toml is TOML: a test reads it");
        let given: toml::Table = text.parse().map_err(|e: toml::de::Error| of_text(e.message().to_owned()))?;
        for (name, value) in given {
            match (all.get_mut(&name), value) {
                (Some(toml::Value::Table(section)), toml::Value::Table(given)) => section.extend(given),
                (_, value) => {
                    all.insert(name, value);
                }
            }
        }
        let config = Config::deserialize(toml::Value::Table(all)).map_err(|e| of_text(e.message().to_owned()))?;
        let intervals_s = config.scan.intervals_s();
        for class in 2..=5 {
            let (shorter, longer) = (intervals_s[class - 2], intervals_s[class - 1]);
            if longer < shorter {
                let key = format!("scan.interval_class{class}_s");
                let previous = format!("scan.interval_class{}_s", class - 1);
                problems.push(ConfigProblem {
                    line: lines.of(&key).max(lines.of(&previous)),
                    message: format!("{longer} is less than {previous}, {shorter}; expected at least as much"),
                    key,
                });
            }
        }
        problems.extend(lines.problems(config.tls_problems()));
        if config.cluster.is_on() && config.archive.url.is_empty() {
            let message = "is set, but archive.url is empty: the log of a cluster is in that database".to_owned();
            problems.extend(lines.problems(vec![("cluster.engine", message)]));
        }
        let (players, weeks) = (config.store.keep_players_weeks, config.store.keep_weeks);
        if (1..=weeks).contains(&players) {
            let message = format!("{players} is not more than store.keep_weeks, {weeks}; 0 keeps everything");
            problems.extend(lines.problems(vec![("store.keep_players_weeks", message)]));
        }
        // Each string is valid, but two of them may have the same type.
        if let Err(error) = config.windows() {
            let key = "boards.windows".to_owned();
            problems.push(ConfigProblem { line: lines.of(&key), key, message: error.to_string() });
        }
        problems.extend(lines.problems(paths::conflicts(&config)));
        problems.sort_by_key(|problem| problem.line);
        if problems.is_empty() { Ok((config, lines)) } else { Err(problems) }
    }

    /// Settings of TLS that do not fit together.
    fn tls_problems(&self) -> Vec<paths::Finding> {
        let (archive, web) = (&self.archive, &self.web);
        let is_set = |path: &Path| !path.as_os_str().is_empty();
        let mut found = Vec::new();
        let mut pair = |cert: (&'static str, &Path), key: (&'static str, &Path)| {
            for ((missing, path), (given, other)) in [(cert, key), (key, cert)] {
                if !is_set(path) && is_set(other) {
                    found.push((missing, format!("is empty, but {given} is not; set both")));
                }
            }
        };
        pair(("web.tls_cert", &web.tls_cert), ("web.tls_key", &web.tls_key));
        if archive.is_enabled() {
            pair(("archive.tls_cert", &archive.tls_cert), ("archive.tls_key", &archive.tls_key));
            let files = archive.tls_files().into_iter().filter(|(_, path)| archive.tls == Tls::Off && is_set(path));
            found.extend(files.map(|(key, _)| (key, "is set, but archive.tls is \"off\"".to_owned())));
        }
        found
    }

    /// Merges a newly read config: applies keys that can be reloaded and keeps the
    /// others.
    pub fn plan_reload(&self, new: &Config) -> ReloadPlan {
        let table = |config: &Config| toml::Table::try_from(config).expect("Config is plain data");
        let (mut kept_table, new_table) = (table(self), table(new));
        let mut reloaded = ReloadPlan { config: self.clone(), changed: Vec::new(), needs_restart: Vec::new() };
        for key in KEYS {
            let section = |t: &toml::Table| -> Option<toml::Value> {
                if key.section.is_empty() {
                    t.get(key.name).cloned()
                } else {
                    t.get(key.section)?.get(key.name).cloned()
                }
            };
            let (old, new) = (section(&kept_table), section(&new_table));
            if old == new {
                continue;
            }
            if key.change == Applies::Restart {
                reloaded.needs_restart.push(key.path());
                continue;
            }
            reloaded.changed.push(key.path());
            let new = new.expect("every key has a value: a test compares the table with the file");
            if key.section.is_empty() {
                kept_table.insert(key.name.to_owned(), new);
            } else if let Some(toml::Value::Table(inner)) = kept_table.get_mut(key.section) {
                inner.insert(key.name.to_owned(), new);
            }
        }
        if self.import != new.import {
            reloaded.changed.push("import".to_owned());
        }
        reloaded.config = Config::deserialize(toml::Value::Table(kept_table)).expect("values of two valid configs");
        reloaded.config.import.clone_from(&new.import);
        if self.webhook != new.webhook {
            reloaded.changed.push("webhook".to_owned());
        }
        reloaded.config.webhook.clone_from(&new.webhook);
        if self.web.token != new.web.token {
            reloaded.changed.push("web.token".to_owned());
        }
        reloaded.config.web.token.clone_from(&new.web.token);
        reloaded
    }
}

fn shown((key, note): paths::Finding) -> String {
    format!("{key}: {note}")
}

/// Reads the text of a file and passes it to `parse`.
fn read_file<T>(file: &Path, parse: impl FnOnce(&str) -> Result<T, Vec<ConfigProblem>>) -> Result<T, ConfigError> {
    let bytes = read_bytes(file)?;
    let parsed = match std::str::from_utf8(&bytes) {
        Ok(text) => parse(text),
        Err(error) => Err(vec![validate::not_utf8(&bytes, error.valid_up_to())]),
    };
    parsed.map_err(|problems| ConfigError::Problems { file: file.to_owned(), problems })
}

fn read_bytes(file: &Path) -> Result<Vec<u8>, ConfigError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|source| ConfigError::Read { file: file.to_owned(), source })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ConfigError::TooLong(file.to_owned()));
    }
    Ok(bytes)
}

/// A configuration file without a problem.
#[derive(Debug)]
pub struct CheckedConfig {
    pub config: Config,
    /// Files that this user, or the owner of the state, may not inspect.
    pub notes: Vec<String>,
    file: PathBuf,
    lines: KeyLines,
}

impl CheckedConfig {
    /// The error of a key whose problem was found after parsing.
    pub fn problem(&self, key: &'static str, message: String) -> ConfigError {
        let problems = self.lines.problems(vec![(key, message)]);
        ConfigError::Problems { file: self.file.clone(), problems }
    }
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq)]
pub struct ReloadPlan {
    /// The effective config.
    pub config: Config,
    /// Keys with a new value.
    pub changed: Vec<String>,
    /// Keys that keep their old value until a restart, for a warning.
    pub needs_restart: Vec<String>,
}

#[cfg(test)]
mod tests;
