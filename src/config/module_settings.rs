//! Converts the configuration to the settings of each module.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::{
    ArchiveConfig, Config, PASSWORD_CREDENTIAL, SiteConfig, StoreConfig, TokenConfig, UNIT_PASSWORD_FILE, WebConfig,
};
use crate::archive::ArchiveSettings;
use crate::board::order::{LowIsBetter, TieBreaker};
use crate::board::window::{BadSpec, Shape, WindowSpec, WindowTypes, WindowsError};
use crate::clock::ClockSettings;
use crate::engine::EngineSettings;
use crate::games::OwnGames;
use crate::geo::Countries;
use crate::log::Retention;
use crate::master::AddressRules;
use crate::model::WindowType;
use crate::model::calendar::DAY_MS;
use crate::model::calendar::{Calendar, UnknownZone};
use crate::rank::{NameRules, Rules, ScreenRules};
use crate::scan::{self, ScanSettings};
use crate::schedule::Intervals;
use crate::store::DatabaseSettings;
use crate::web::{Identity, Logo, SiteLink, TlsFiles, Token, TokenHash, WebSettings};

/// Why the configured windows are invalid.
#[derive(Debug, thiserror::Error)]
pub enum WindowSettingsError {
    #[error(transparent)]
    Zone(#[from] UnknownZone),
    #[error(transparent)]
    Spec(#[from] BadSpec),
    #[error(transparent)]
    Windows(#[from] WindowsError),
}

impl StoreConfig {
    pub fn checkpoint_interval_ms(&self) -> i64 {
        i64::from(self.checkpoint_interval_s) * 1_000
    }

    /// Changes at which a checkpoint begins, bytes. It is in memory while it is written, and so are those after it.
    pub fn checkpoint_bytes(&self) -> usize {
        usize::try_from(self.changes_bytes_max / 4).unwrap_or(usize::MAX)
    }

    /// When the database in the state directory is written and compacted.
    pub fn database_settings(&self) -> DatabaseSettings {
        DatabaseSettings {
            waiting_bytes_max: usize::try_from(self.changes_bytes_max / 2).unwrap_or(usize::MAX),
            compact_bytes_min: self.compact_bytes_min,
            disk_free_bytes_min: self.disk_free_bytes_min,
        }
    }
}

/// Largest files, bytes. Every visitor loads the logo.
const LOGO_BYTES_MAX: u64 = 1 << 16;
const GAMES_BYTES_MAX: u64 = 1 << 20;
const COUNTRIES_BYTES_MAX: u64 = 1 << 28;

/// Why a file that the website uses cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SiteFileError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {message}", path.display())]
    Invalid { path: PathBuf, message: String },
}

/// Reads a file, unless its path is empty.
fn read_file<T>(
    path: &Path,
    bytes_max: u64,
    parse: impl FnOnce(Vec<u8>) -> Result<T, String>,
) -> Result<Option<T>, SiteFileError> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    read.map_err(|source| SiteFileError::Read { path: path.to_owned(), source })?;
    let parsed = match bytes.len() as u64 > bytes_max {
        true => Err(format!("has more than {bytes_max} bytes")),
        false => parse(bytes),
    };
    parsed.map(Some).map_err(|message| SiteFileError::Invalid { path: path.to_owned(), message })
}

/// The file with the password of the archive, and the name of its credential; each may be empty. The unit provides an
/// empty credential if `unit_file` is missing: then the password of the URL is used. Commands have no credentials, so
/// they read `unit_file`, unless the URL has a password.
fn password_source(archive: &ArchiveConfig, credentials_dir: Option<&Path>, unit_file: &Path) -> (PathBuf, String) {
    let none = (archive.password_file.clone(), String::new());
    if !archive.password_file.as_os_str().is_empty() {
        return none;
    }
    let read = |file: &Path| fs::read_to_string(file).map(|password| !matches!(&*password, "" | "\n"));
    match credentials_dir {
        Some(dir) if read(&dir.join(PASSWORD_CREDENTIAL)).unwrap_or(false) => {
            (PathBuf::new(), PASSWORD_CREDENTIAL.to_owned())
        }
        // A file that cannot be read is named, so that the connection fails with the reason.
        None if !archive.has_password()
            && read(unit_file).unwrap_or_else(|error| error.kind() != ErrorKind::NotFound) =>
        {
            (unit_file.to_owned(), String::new())
        }
        _ => none,
    }
}

impl Config {
    pub fn engine_settings(&self) -> Result<EngineSettings, WindowSettingsError> {
        let rules = Rules {
            number: self.rules.number,
            names: NameRules {
                minecraft_colours: self.rules.number >= 2,
                ignore: self.names.ignore.iter().cloned().collect(),
                count_bots: self.names.count_bots,
                ping_zero_is_bot: self.names.ping_zero_is_bot,
                darkplaces_games: self.names.darkplaces_games.iter().map(|game| game.to_ascii_lowercase()).collect(),
            },
            round: self.rounds,
            clq2_quarter: self.clq2.quarter,
            elo: self.elo,
            screen: ScreenRules {
                enabled: self.screen.enabled,
                frozen_after_ms: self.screen.frozen_after_s as i64 * 1_000,
                new_games_per_day_max: self.screen.new_games_per_day_max,
                new_maps_per_day_max: self.screen.new_maps_per_day_max,
                new_names_per_day_max: self.screen.new_names_per_day_max,
                games_max: self.screen.games_max,
                maps_max: self.screen.maps_max,
                // Validated by the config check.
                spectator_points: self.screen.spectator_points.iter().filter_map(|text| text.parse().ok()).collect(),
                gain_max: self.screen.gain_max,
            },
        };
        Ok(EngineSettings {
            rules,
            windows: self.windows()?,
            low_is_better: self.low_is_better(),
            tie_breakers: self.tie_breakers(),
            closed_cache_bytes_max: self.boards.closed_cache_bytes_max,
            intervals: Intervals {
                classes_ms: self.scan.intervals_s().map(|s| s as i64 * 1_000),
                retry_failed_ms: Some(self.scan.retry_failed_s as i64 * 1_000).filter(|ms| *ms > 0),
            },
            class1_players_min: self.scan.class1_players_min,
            scan_budget: self.scan.budget,
            elastic_players_min: self.scan.elastic_players_min,
            keep_weeks: self.store.keep_weeks as usize,
            keep_players_weeks: self.store.keep_players_weeks,
            keep_sessions_days: self.sessions.keep_days.into(),
            archive_enabled: self.archive.is_enabled(),
            outbox_entries_max: self.archive.outbox_entries_max as usize,
            ..EngineSettings::default()
        })
    }

    /// Weeks, and the types of `boards.windows`. Never fails for a parsed config.
    pub fn windows(&self) -> Result<WindowTypes, WindowSettingsError> {
        let mut specs = vec![WindowSpec { kind: WindowType::WEEK, shape: Shape::Week, keep: self.store.keep_weeks }];
        for text in &self.boards.windows {
            specs.push(text.parse()?);
        }
        Ok(WindowTypes::new(Calendar::new(&self.time_zone)?, specs)?)
    }

    /// The boards on which the lowest score is best.
    pub fn low_is_better(&self) -> Vec<LowIsBetter> {
        // Validated by the config check.
        self.boards.low_is_better.iter().filter_map(|boards| boards.parse().ok()).collect()
    }

    /// The boards with a tie-breaker.
    pub fn tie_breakers(&self) -> Vec<TieBreaker> {
        // Validated by the config check.
        self.boards.tie_breakers.iter().filter_map(|boards| boards.parse().ok()).collect()
    }

    pub fn archive_settings(&self) -> ArchiveSettings {
        let archive = &self.archive;
        let credentials_dir = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        let (password_file, credential) =
            password_source(archive, credentials_dir.as_deref(), Path::new(UNIT_PASSWORD_FILE));
        ArchiveSettings {
            url: archive.url.clone(),
            password_file,
            credential,
            tls: archive.tls,
            tls_ca: archive.tls_ca.clone(),
            tls_cert: archive.tls_cert.clone(),
            tls_key: archive.tls_key.clone(),
            interval_s: archive.interval_s as u32,
            drain_timeout_s: archive.drain_timeout_s as u32,
            connect_timeout_ms: archive.connect_timeout_ms as u32,
            query_timeout_ms: archive.query_timeout_ms as u32,
            // A resync writes all weeks of the state again, so the archive keeps them.
            keep_weeks: match archive.keep_weeks {
                0 => 0,
                weeks => weeks.max(self.store.keep_weeks + 1),
            },
            keep_online_days: archive.keep_online_days,
            keep_top_board_days: archive.keep_top_board_days,
            keep_sessions_days: archive.keep_sessions_days,
            on_older_database: archive.on_older_database,
            backoff_ms_max: archive.backoff_s_max as u32 * 1_000,
            ..ArchiveSettings::default()
        }
    }

    pub fn clock_settings(&self) -> ClockSettings {
        ClockSettings { synchronised: self.clock.synchronised, trust_after_ms: self.clock.trust_after_s as i64 * 1_000 }
    }

    pub fn scan_settings(&self) -> ScanSettings {
        let scan = &self.scan;
        ScanSettings {
            timeout_ms: scan.timeout_ms as u32,
            retries: scan.retries,
            packets_per_second_max: scan.packets_per_second_max.into(),
            address_packets_per_second_max: scan.address_packets_per_second_max.into(),
            address_burst_packets: scan.address_burst_packets,
            subnet_packets_per_second_max: scan.subnet_packets_per_second_max.into(),
            subnet_burst_packets: scan.subnet_burst_packets,
            sockets_per_ip_version: scan.sockets_per_ip_version as u32,
            scans_in_flight_max: scan.scans_in_flight_max as u32,
            tcp_connections_max: scan.tcp_connections_max,
            dns_cache_ttl_s: scan.dns_cache_ttl_s as u32,
            receive_buffer_bytes: scan.receive_buffer_bytes as u32,
            allow_private: scan.allow_private,
            limit_loopback: scan.limit_loopback,
            authentication_min: scan.authentication_min,
            details: None,
            capture_share: if self.capture.is_enabled() { self.capture.share } else { 0.0 },
            // Validated by the config check.
            opt_out: scan.opt_out.iter().filter_map(|network| scan::parse_network(network).ok()).collect(),
        }
    }

    /// Memory for searches of names. `None`: they are off.
    pub fn name_search_bytes(&self) -> Option<usize> {
        let bytes = usize::try_from(self.web.search_memory_bytes).unwrap_or(usize::MAX);
        (bytes > 0).then_some(bytes)
    }

    /// `None`: no web interface.
    pub fn web_settings(&self) -> WebSettings {
        let WebConfig { client_requests_per_second_max, client_burst_requests, .. } = self.web;
        WebSettings {
            // Validated by the config check: only an empty string is not an address.
            listen: self.web.listen.parse().ok(),
            has_tls: self.tls_files().is_some(),
            client_requests_per_second_max,
            client_burst_requests,
            // Validated by the config check, too.
            proxies: self.web.proxies.iter().filter_map(|network| scan::parse_network(network).ok()).collect(),
            public_url: self.web.public_url.parse().ok(),
            identity: self.identity(),
            front_page_days_min: self.web.front_page_days_min,
        }
    }

    fn identity(&self) -> Identity {
        let SiteConfig { title, description, accent, links, .. } = &self.site;
        Identity {
            title: title.clone(),
            description: description.clone(),
            accent: (!accent.is_empty()).then(|| accent.clone()),
            // Validated by the config check.
            links: links.iter().filter_map(|link| SiteLink::parse(link).ok()).collect(),
            logo: None,
        }
    }

    /// The logo of the site.
    pub fn logo(&self) -> Result<Option<Logo>, SiteFileError> {
        read_file(&self.site.logo, LOGO_BYTES_MAX, Logo::parse)
    }

    /// The operator's names of games.
    pub fn own_games(&self) -> Result<Option<OwnGames>, SiteFileError> {
        read_file(&self.site.games, GAMES_BYTES_MAX, |bytes| {
            OwnGames::parse(str::from_utf8(&bytes).map_err(|error| error.to_string())?)
        })
    }

    /// The database of countries.
    pub fn countries(&self) -> Result<Option<Countries>, SiteFileError> {
        read_file(&self.geo.database, COUNTRIES_BYTES_MAX, Countries::parse)
    }

    /// The certificate of the port; `None`: it has no TLS.
    pub fn tls_files(&self) -> Option<TlsFiles> {
        let WebConfig { tls_cert, tls_key, .. } = &self.web;
        (!tls_cert.as_os_str().is_empty()).then(|| TlsFiles { cert: tls_cert.clone(), key: tls_key.clone() })
    }

    /// Who may send requests of admins over the port.
    pub fn tokens(&self) -> Vec<Token> {
        let token = |token: &TokenConfig| {
            // Validated by the config check.
            let hash = TokenHash::parse(&token.hash)?;
            Some(Token { name: token.name.clone(), hash, may: token.may.clone() })
        };
        self.web.token.iter().filter_map(token).collect()
    }

    /// Which addresses of a master's list are dropped.
    pub fn address_rules(&self) -> AddressRules {
        let ScanSettings { allow_private, opt_out, .. } = self.scan_settings();
        AddressRules { allow_private, opt_out, ..AddressRules::default() }
    }

    /// How much of the log is kept. It gives way before the disk counts as nearly full.
    pub fn log_retention(&self) -> Retention {
        Retention {
            keep_ms: i64::from(self.log.keep_days) * DAY_MS,
            bytes_max: self.log.bytes_max,
            free_bytes_min: 2 * self.store.disk_free_bytes_min,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::CLASS1_PLAYERS_MIN;
    use crate::schedule::elastic::{BUDGET, ELASTIC_PLAYERS_MIN};
    use crate::web::identity;

    #[test]
    fn shipped_config_equals_code_defaults() {
        let settings = Config::default().engine_settings().unwrap();
        assert_eq!(settings.rules, Rules::default());
        assert_eq!(settings.intervals, Intervals::default());
        assert_eq!(settings.class1_players_min, CLASS1_PLAYERS_MIN);
        assert_eq!((settings.scan_budget, settings.elastic_players_min), (BUDGET, ELASTIC_PLAYERS_MIN));
        assert_eq!(Config::default().scan_settings(), ScanSettings::default());
        let site = Config::default().site;
        assert_eq!((&*site.title, &*site.description), (identity::TITLE, identity::DESCRIPTION));
        assert_eq!(Config::default().clock_settings(), ClockSettings::default());
    }

    #[test]
    fn configured_windows_and_orders_are_built() {
        let kinds =
            |windows: WindowTypes| windows.specs().iter().map(|spec| (spec.kind.0, spec.keep)).collect::<Vec<_>>();
        assert_eq!(kinds(Config::default().windows().unwrap()), [(3, 4)]);
        let text = "time_zone = \"Asia/Kolkata\"\n[store]\nkeep_weeks = 9\n[boards]\n\
            windows = [\"month keep=13\", \"hour keep=48\", \"all-time\", \"12 base=2026-01-05T00:00:00Z duration=3d\"]\n\
            low_is_better = [\"points\", \"time tag:race\"]\ntie_breakers = [\"points time\", \"clq2 points game:x y\", \"elo time\"]\n";
        let config = Config::parse(text).expect("valid");
        let windows = config.windows().unwrap();
        assert_eq!(windows.calendar().zone_name(), "Asia/Kolkata");
        assert_eq!(kinds(windows), [(0, 0), (1, 48), (3, 9), (4, 13), (12, 4)]);
        assert_eq!((config.low_is_better().len(), config.tie_breakers().len()), (2, 3));
    }

    #[test]
    fn logo_is_small() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        assert!(config.logo().unwrap().is_none());
        config.site.logo = dir.path().join("logo");
        assert!(matches!(config.logo(), Err(SiteFileError::Read { .. })));
        fs::write(&config.site.logo, "<svg>".repeat(LOGO_BYTES_MAX as usize)).unwrap();
        assert!(config.logo().is_err_and(|error| error.to_string().ends_with("logo: has more than 65536 bytes")));
    }

    #[test]
    fn password_file_precedes_credential_and_empty_credential_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut archive = Config::default().archive;
        let source = |archive: &ArchiveConfig| password_source(archive, Some(dir.path()), Path::new("/"));
        let none = (PathBuf::new(), String::new());
        assert_eq!(source(&archive), none);
        for (text, is_password) in [("", false), ("\n", false), ("of the credential\n", true)] {
            fs::write(dir.path().join(PASSWORD_CREDENTIAL), text).unwrap();
            assert_eq!(source(&archive) != none, is_password, "{text:?}");
        }
        assert_eq!(source(&archive).1, PASSWORD_CREDENTIAL);
        archive.password_file = dir.path().join("own");
        assert_eq!(source(&archive), (archive.password_file.clone(), String::new()));
    }

    #[test]
    fn commands_read_the_password_file_of_the_unit_unless_the_url_has_a_password() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(PASSWORD_CREDENTIAL);
        let mut archive = Config::default().archive;
        archive.url = "mysql://clqd@localhost/clqd".to_owned();
        let uses = |archive: &ArchiveConfig, file: &Path| password_source(archive, None, file).0 == *file;
        assert!(!uses(&archive, &file), "there is none");
        for (text, is_used) in [("", false), ("\n", false), ("secret\n", true)] {
            fs::write(&file, text).unwrap();
            assert_eq!(uses(&archive, &file), is_used, "{text:?}");
        }
        // As a file without permission: it exists, and cannot be read.
        assert!(uses(&archive, dir.path()));
        archive.url = "mysql://clqd:other@localhost/clqd".to_owned();
        assert!(!uses(&archive, &file));
    }

    #[test]
    fn every_valid_proxy_is_used() {
        let web = |text: &str| Config::parse(text).expect("valid").web_settings();
        let defaults = web("");
        assert!(defaults.proxies.iter().all(|network| network.first_address().is_loopback()));
        assert_eq!((defaults.proxies.len(), defaults.public_url), (2, None));
        let text = "[web]\nproxies = [\"10.0.0.5\", \"192.0.2.0/24\", \"2001:db8::/32\", \"::1\"]\n\
            public_url = \"https://stats.example.org\"\n";
        let set = web(text);
        assert_eq!(set.proxies.len(), 4);
        assert_eq!(set.public_url.expect("given").as_str(), "https://stats.example.org");
        assert!(web("[web]\nproxies = []\n").proxies.is_empty());
    }

    #[test]
    fn every_valid_opt_out_network_is_used() {
        let text = "[scan]\nopt_out = [\"192.0.2.7\", \"192.0.2.0/24\", \"2001:db8::/32\", \"::1\", \"0.0.0.0/0\"]\n";
        assert_eq!(Config::parse(text).expect("valid").scan_settings().opt_out.len(), 5);
        assert!(Config::parse("[scan]\nopt_out = [\"192.0.2.9/24\"]\n").is_err(), "refused, not ignored");
    }
}
