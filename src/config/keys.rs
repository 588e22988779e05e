//! Every key of the configuration file: its type, its range and how a change is applied.
//! `config/clqd.toml` documents the keys; a test compares it with this table.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;

use Applies::{Reload, Restart};

use crate::api::{Permission, check_tag};
use crate::archive::ArchiveSettings;
use crate::board::order::{LowIsBetter, TieBreaker};
use crate::board::window::{BadSpec, WindowSpec};
use crate::limits::TEXT_BYTES_MAX;
use crate::master::{ListUrl, check_scheme};
use crate::model::WindowType;
use crate::model::calendar::Calendar;
use crate::rank::screen::SpectatorPoints;
use crate::rank::{RULES_NUMBER, RULES_NUMBER_MIN};
use crate::scan;
use crate::web::{PublicUrl, TokenHash};

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Name of the section, empty for top-level keys.
    pub section: &'static str,
    pub name: &'static str,
    pub kind: ValueType,
    pub change: Applies,
}

impl KeySpec {
    /// `scan.timeout_ms`, or `state_dir` where there is no section.
    pub fn path(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }
}

/// How a change of a key is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// SIGHUP, or `clqd reload`.
    Reload,
    /// A restart of the daemon.
    Restart,
}

/// The type and range of a value. Ranges are inclusive.
#[derive(Clone, Copy, Debug)]
pub enum ValueType {
    Bool,
    Whole {
        min: i64,
        max: i64,
        /// Empty for a plain number.
        unit: &'static str,
    },
    Decimal {
        min: f64,
        max: f64,
    },
    OneOf(&'static [&'static str]),
    /// A string; the function returns the error of an invalid one.
    Text(fn(&str) -> Result<(), String>),
    /// List of strings; the function returns the error of an invalid one.
    Texts(fn(&str) -> Result<(), String>),
}

impl ValueType {
    /// The range as written in `config/clqd.toml` and `docs/configuration.md`.
    pub fn range(&self) -> String {
        match self {
            ValueType::Bool => "true or false".to_owned(),
            ValueType::Whole { min, max, unit } => format!("{min} to {max} {unit}").trim_end().to_owned(),
            ValueType::Decimal { min, max } => format!("{min:?} to {max:?}"),
            ValueType::OneOf(names) => names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(" or "),
            ValueType::Text(_) => "string".to_owned(),
            ValueType::Texts(_) => "list of strings".to_owned(),
        }
    }

    /// The end of a sentence that begins with "expected".
    pub(super) fn expected(&self) -> String {
        match self {
            ValueType::Whole { .. } => format!("a whole number, {}", self.range()),
            ValueType::Decimal { .. } => format!("a number, {}", self.range()),
            ValueType::Text(_) => "a string in quotes".to_owned(),
            ValueType::Texts(_) => "a list of strings, such as [\"a\", \"b\"]".to_owned(),
            ValueType::Bool | ValueType::OneOf(_) => self.range(),
        }
    }
}

const fn key(section: &'static str, name: &'static str, kind: ValueType, change: Applies) -> KeySpec {
    KeySpec { section, name, kind, change }
}

const fn whole(min: i64, max: i64, unit: &'static str) -> ValueType {
    ValueType::Whole { min, max, unit }
}

const fn whole_in(range: RangeInclusive<u32>, unit: &'static str) -> ValueType {
    whole(*range.start() as i64, *range.end() as i64, unit)
}

/// All keys, in the order of `config/clqd.toml`.
pub const KEYS: &[KeySpec] = &[
    key("", "time_zone", ValueType::Text(time_zone), Restart),
    key("", "state_dir", ValueType::Text(absolute_path), Restart),
    key("", "control_socket", ValueType::Text(socket_path), Restart),
    key("", "log_filter", ValueType::Text(log_filter), Reload),
    key("scan", "timeout_ms", whole_in(scan::TIMEOUT_MS, "ms"), Reload),
    key("scan", "retries", whole(0, 10, ""), Reload),
    key("scan", "packets_per_second_max", whole(1, 1_000_000, "packets/s"), Reload),
    key("scan", "address_packets_per_second_max", whole(1, 100_000, "packets/s"), Reload),
    key("scan", "address_burst_packets", whole(1, 100_000, "packets"), Reload),
    key("scan", "subnet_packets_per_second_max", whole(1, 1_000_000, "packets/s"), Reload),
    key("scan", "subnet_burst_packets", whole(1, 1_000_000, "packets"), Reload),
    key("scan", "sockets_per_ip_version", whole(1, 64, ""), Restart),
    key("scan", "scans_in_flight_max", whole(1, 1_000_000, ""), Reload),
    key("scan", "dns_cache_ttl_s", whole_in(scan::DNS_CACHE_TTL_S, "s"), Reload),
    key("scan", "receive_buffer_bytes", whole(65_536, 1 << 30, "bytes"), Restart),
    key("scan", "allow_private", ValueType::Bool, Reload),
    key("scan", "limit_loopback", ValueType::Bool, Reload),
    key("scan", "authentication_min", ValueType::OneOf(&["address", "challenge", "nonce"]), Reload),
    key("scan", "opt_out", ValueType::Texts(check_network), Reload),
    key("scan", "contact", ValueType::Text(contact), Reload),
    key("scan", "class1_players_min", whole(1, 255, "players"), Reload),
    key("scan", "forget_silent_days", whole(0, 3_650, "days"), Reload),
    key("scan", "round_end_share", ValueType::Decimal { min: 0.0, max: 1.0 }, Reload),
    key("scan", "interval_class1_s", whole(1, 604_800, "s"), Reload),
    key("scan", "interval_class2_s", whole(1, 604_800, "s"), Reload),
    key("scan", "interval_class3_s", whole(1, 604_800, "s"), Reload),
    key("scan", "interval_class4_s", whole(1, 604_800, "s"), Reload),
    key("scan", "interval_class5_s", whole(1, 2_419_200, "s"), Reload),
    key("scan", "retry_failed_s", whole(0, 2_419_200, "s"), Reload),
    key("rules", "number", whole(RULES_NUMBER_MIN as i64, RULES_NUMBER as i64, ""), Reload),
    key("names", "ignore", ValueType::Texts(accept_any), Reload),
    key("names", "count_bots", ValueType::Bool, Reload),
    key("names", "ping_zero_is_bot", ValueType::Bool, Reload),
    key("names", "darkplaces_games", ValueType::Texts(accept_any), Reload),
    key("rounds", "round_drop_min", whole(1, 1_000_000, "points"), Reload),
    key("rounds", "round_drop_ratio", ValueType::Decimal { min: 0.0, max: 1.0 }, Reload),
    key("clq2", "quarter", ValueType::OneOf(&["whole", "exact"]), Reload),
    key("elo", "k", ValueType::Decimal { min: 0.1, max: 1_000.0 }, Reload),
    key("elo", "k_times_opponents_max", ValueType::Decimal { min: 0.0, max: 1_000_000.0 }, Reload),
    key("elo", "carry_over", ValueType::Bool, Reload),
    key("screen", "enabled", ValueType::Bool, Reload),
    key("screen", "frozen_after_s", whole(600, 31_536_000, "s"), Reload),
    key("screen", "new_games_per_day_max", whole(0, 1_000_000, "games"), Reload),
    key("screen", "new_maps_per_day_max", whole(0, 1_000_000, "maps"), Reload),
    key("screen", "new_names_per_day_max", whole(0, 1_000_000_000, "names"), Reload),
    key("screen", "games_max", whole(1, 1_000_000, "games"), Reload),
    key("screen", "maps_max", whole(1, 1_000_000_000, "maps"), Reload),
    key("screen", "spectator_points", ValueType::Texts(spectator_points), Reload),
    key("screen", "gain_max", whole(1, crate::limits::POINTS_ABS_MAX, "points"), Reload),
    key("boards", "windows", ValueType::Texts(window), Reload),
    key("boards", "low_is_better", ValueType::Texts(low_is_better), Reload),
    key("boards", "tie_breakers", ValueType::Texts(tie_breaker), Reload),
    key("boards", "closed_cache_bytes_max", whole(0, 1 << 40, "bytes"), Reload),
    key("clock", "synchronised", ValueType::OneOf(&["auto", "always", "never"]), Reload),
    key("clock", "trust_after_s", whole(0, 86_400, "s"), Reload),
    key("store", "cache_bytes", whole(16 << 20, 64 << 30, "bytes"), Restart),
    key("store", "commit_interval_ms", whole(10, 10_000, "ms"), Reload),
    key("store", "checkpoint_interval_s", whole(1, 86_400, "s"), Reload),
    key("store", "changes_bytes_max", whole(64 << 20, 64 << 30, "bytes"), Reload),
    key("store", "compact_bytes_min", whole(0, 1 << 50, "bytes"), Reload),
    key("store", "disk_free_bytes_min", whole(0, 1 << 50, "bytes"), Reload),
    key("store", "keep_weeks", whole(1, 520, "weeks"), Reload),
    key("store", "keep_players_weeks", whole(0, 5_200, "weeks"), Reload),
    key("archive", "url", ValueType::Text(mysql_url), Reload),
    key("archive", "password_file", ValueType::Text(optional_path), Reload),
    key("archive", "tls", ValueType::OneOf(&["off", "preferred", "required", "verify"]), Reload),
    key("archive", "tls_ca", ValueType::Text(optional_path), Reload),
    key("archive", "tls_cert", ValueType::Text(optional_path), Reload),
    key("archive", "tls_key", ValueType::Text(optional_path), Reload),
    key("archive", "interval_s", whole(2, 86_400, "s"), Reload),
    key("archive", "drain_timeout_s", whole(0, 3_600, "s"), Reload),
    key("archive", "outbox_entries_max", whole(1_000, 1_000_000_000, ""), Reload),
    key("archive", "connect_timeout_ms", whole(100, 60_000, "ms"), Reload),
    key("archive", "query_timeout_ms", whole(1_000, 600_000, "ms"), Reload),
    key("archive", "keep_weeks", whole(0, 5_200, "weeks"), Reload),
    key("archive", "keep_online_days", whole(0, 36_500, "days"), Reload),
    key("archive", "keep_top_board_days", whole(0, 36_500, "days"), Reload),
    key("archive", "on_older_database", ValueType::OneOf(&["resync", "stop"]), Reload),
    key("archive", "backoff_s_max", whole(1, 3_600, "s"), Reload),
    key("log", "keep_days", whole(1, 3_650, "days"), Reload),
    key("log", "bytes_max", whole(1 << 26, 1 << 50, "bytes"), Reload),
    key("capture", "dir", ValueType::Text(optional_path), Restart),
    key("capture", "share", ValueType::Decimal { min: 0.0, max: 1.0 }, Reload),
    key("capture", "keep_days", whole(1, 366, "days"), Reload),
    key("web", "listen", ValueType::Text(listen_address), Restart),
    key("web", "client_requests_per_second_max", whole(1, 100_000, "requests/s"), Restart),
    key("web", "client_burst_requests", whole(1, 100_000, "requests"), Restart),
    key("web", "search_memory_bytes", whole(0, 1 << 36, "bytes"), Restart),
    key("web", "proxies", ValueType::Texts(proxy), Restart),
    key("web", "public_url", ValueType::Text(public_url), Restart),
    key("web", "tls_cert", ValueType::Text(optional_path), Restart),
    key("web", "tls_key", ValueType::Text(optional_path), Restart),
];

/// The keys of an `[[import]]` section. They have no place in the shipped file.
pub const IMPORT_KEYS: &[KeySpec] = &[
    key("import", "master", ValueType::Text(master_url), Reload),
    key("import", "scheme", ValueType::Text(server_scheme), Reload),
    key("import", "tags", ValueType::Texts(tag), Reload),
    key("import", "every_s", whole(3_600, 2_419_200, "s"), Reload),
    key("import", "servers_max", whole(1, 1_000_000, "servers"), Reload),
];

/// The keys of a `[[web.token]]` section.
pub const TOKEN_KEYS: &[KeySpec] = &[
    key("web.token", "name", ValueType::Text(tag), Reload),
    key("web.token", "hash", ValueType::Text(token_hash), Reload),
    key("web.token", "may", ValueType::Texts(permission), Reload),
];

/// Names of the sections, in order.
pub fn sections() -> Vec<&'static str> {
    let mut names: Vec<&str> = KEYS.iter().map(|k| k.section).filter(|s| !s.is_empty()).collect();
    names.dedup();
    names
}

fn accept_any(_: &str) -> Result<(), String> {
    Ok(())
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(()) }
}

fn master_url(text: &str) -> Result<(), String> {
    text.parse::<ListUrl>().map(|_| ()).map_err(|error| error.to_string())
}

fn server_scheme(text: &str) -> Result<(), String> {
    check_scheme(text).map_err(|error| error.to_string())
}

fn tag(text: &str) -> Result<(), String> {
    check_tag(text).map_or(Ok(()), Err)
}

fn time_zone(text: &str) -> Result<(), String> {
    Calendar::new(text).map(|_| ()).map_err(|error| error.to_string())
}

/// A relative path depends on the current directory of the program: a command would not find the
/// daemon, or would open another state.
fn absolute_path(text: &str) -> Result<(), String> {
    not_empty(text)?;
    if !Path::new(text).is_absolute() {
        return Err(format!(
            "{text:?} is a relative path, which is another file for each directory that clqd is started in; write the \
             path from / on"
        ));
    }
    Ok(())
}

/// Empty, or an absolute path.
fn optional_path(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { absolute_path(text) }
}

/// `sockaddr_un` has space for 107 bytes and a zero.
fn socket_path(text: &str) -> Result<(), String> {
    absolute_path(text)?;
    if text.len() > 107 {
        return Err(format!("has {} bytes; the path of a Unix socket has at most 107", text.len()));
    }
    Ok(())
}

/// Empty, or an address and a port.
fn listen_address(text: &str) -> Result<(), String> {
    if text.is_empty() || text.parse::<std::net::SocketAddr>().is_ok() {
        return Ok(());
    }
    Err(format!("{text:?} is not an address and a port such as \"127.0.0.1:8480\" or \"[::1]:8480\""))
}

/// One line for people: an address, a page.
fn contact(text: &str) -> Result<(), String> {
    match text.len() {
        0..=TEXT_BYTES_MAX => Ok(()),
        bytes => Err(format!("has {bytes} bytes; expected at most {TEXT_BYTES_MAX}")),
    }
}

fn check_network(text: &str) -> Result<(), String> {
    scan::parse_network(text).map(|_| ()).map_err(|error| error.to_string())
}

/// The IPv4 address of a peer is not mapped to IPv6.
fn proxy(text: &str) -> Result<(), String> {
    let network = scan::parse_network(text).map_err(|error| error.to_string())?;
    if matches!(network.first_address(), IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        return Err(format!("{text:?} is an IPv4 address in IPv6; write the IPv4 address"));
    }
    Ok(())
}

/// SHA-256 in hexadecimal digits.
fn token_hash(text: &str) -> Result<(), String> {
    let expected = "expected the 64 hexadecimal digits that `clqd token new` prints";
    TokenHash::parse(text).map(|_| ()).ok_or_else(|| expected.to_owned())
}

fn permission(text: &str) -> Result<(), String> {
    Permission::parse(text).map(|_| ())
}

/// Empty, or scheme and host.
fn public_url(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { text.parse::<PublicUrl>().map(|_| ()).map_err(|error| error.to_string()) }
}

/// Weeks always exist, and `store.keep_weeks` sets how many are kept.
fn window(text: &str) -> Result<(), String> {
    let spec: WindowSpec = text.parse().map_err(|error: BadSpec| error.to_string())?;
    if spec.kind == WindowType::WEEK {
        return Err(format!(
            "window {text:?}: the week window always exists and cannot be listed; set store.keep_weeks instead"
        ));
    }
    Ok(())
}

fn low_is_better(text: &str) -> Result<(), String> {
    text.parse::<LowIsBetter>().map(|_| ()).map_err(|error| error.to_string())
}

fn spectator_points(text: &str) -> Result<(), String> {
    text.parse::<SpectatorPoints>().map(|_| ()).map_err(|error| error.to_string())
}

fn tie_breaker(text: &str) -> Result<(), String> {
    text.parse::<TieBreaker>().map(|_| ()).map_err(|error| error.to_string())
}

fn log_filter(text: &str) -> Result<(), String> {
    not_empty(text)?;
    // A bare word other than a level would be parsed as a module, and silence all others.
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let words = text.split(',').map(str::trim).filter(|part| !part.contains(['=', '[']));
    let unknown = words.filter(|word| !LEVELS.contains(&word.to_ascii_lowercase().as_str()));
    let problems: Vec<String> = unknown
        .map(|word| match crate::nearest::nearest(word, LEVELS) {
            Some(right) => format!("{word:?} is not a level; did you mean {right:?}?"),
            None => format!("{word:?} is not a level; expected one of {}", LEVELS.join(", ")),
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    tracing_subscriber::EnvFilter::try_new(text)
        .map(|_| ())
        .map_err(|error| format!("{error}; expected a level such as \"info\", or \"info,clqd::scan=debug\""))
}

fn mysql_url(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let expected = "expected \"mysql://user@host:3306/database\"";
    let rest = text.strip_prefix("mysql://").ok_or_else(|| format!("does not begin with mysql://; {expected}"))?;
    let (host, database) = rest.split_once('/').ok_or_else(|| format!("names no database; {expected}"))?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if host.is_empty() {
        return Err(format!("names no host; {expected}"));
    }
    if database.split('?').next().is_none_or(str::is_empty) {
        return Err(format!("names no database; {expected}"));
    }
    // Remaining errors are found when the archive connects.
    let settings = ArchiveSettings { url: text.to_owned(), ..ArchiveSettings::default() };
    settings.validate().map_err(|error| error.to_string().trim_start_matches("archive.url ").to_owned())
}
