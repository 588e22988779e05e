//! The settings of the archive, a MySQL database: the `[archive]` section of the config.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql_async::{ClientIdentity, Opts, OptsBuilder, SslOpts};
use serde::{Deserialize, Serialize};

use super::error::SettingsError;
use super::hosts::ArchiveUrl;

/// The `[archive]` section.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveSettings {
    /// `mysql://user@host:3306/database`, or with `?socket=/path` for a Unix socket. The
    /// nodes of a cluster are separated by commas: `mysql://user@db1,db2:3307/database`.
    /// Empty: no archive.
    pub url: String,
    /// A file that contains only the password. Empty: no file.
    pub password_file: PathBuf,
    /// Name of a systemd credential (`LoadCredential=`) that contains the password. Empty: no
    /// credential.
    pub credential: String,
    /// Whether the connection uses TLS. A Unix socket never does.
    pub tls: Tls,
    /// A PEM file with the certificates of authorities; empty: those of the web. For [`Tls::Verify`].
    pub tls_ca: PathBuf,
    /// PEM files with the certificate of this client and its key. Empty: none.
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    /// Largest age of the archive's data, s. 2 to 86,400. Changes are written every half
    /// interval.
    pub interval_s: u32,
    /// Longest time to write pending entries when the daemon stops, s. 0 to 3,600.
    pub drain_timeout_s: u32,
    /// Timeout of a connection attempt, ms. 100 to 600,000.
    pub connect_timeout_ms: u32,
    /// Timeout of a statement, ms. 1,000 to 3,600,000.
    pub query_timeout_ms: u32,
    /// Most rows in one transaction. 1 to 100,000. The rows of a server, or of a server's
    /// week, are never split, so their transaction may have more.
    pub batch_rows_max: u32,
    /// Weeks whose rows of players, maps and servers are kept, before the newest. 0: all.
    pub keep_weeks: u32,
    /// Days for which players and servers online are kept. 0: for ever.
    pub keep_online_days: u32,
    /// Days for which a published board is kept after its window has ended. 0: for ever.
    pub keep_top_board_days: u32,
    /// Days for which sessions are kept; 0: for ever.
    pub keep_sessions_days: u32,
    /// What to do if the archive lacks what it had acknowledged.
    pub on_older_database: OnOlderDatabase,
    /// Back-off after the first failure, ms. 10 to 600,000. Each further failure doubles it.
    pub backoff_ms_min: u32,
    /// Longest back-off, ms. `backoff_ms_min` to 3,600,000.
    pub backoff_ms_max: u32,
}

/// Whether a connection uses TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tls {
    Off,
    /// If the server offers it. Its certificate is not checked.
    Preferred,
    /// Its certificate is not checked.
    Required,
    /// The certificate of the server must be valid for its name.
    Verify,
}

/// What to do if the archive is older than the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOlderDatabase {
    /// Write everything again.
    Resync,
    /// Write nothing until an admin decides.
    Stop,
}

impl Default for ArchiveSettings {
    fn default() -> Self {
        ArchiveSettings {
            url: String::new(),
            password_file: PathBuf::new(),
            tls: Tls::Off,
            tls_ca: PathBuf::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            credential: String::new(),
            interval_s: 600,
            drain_timeout_s: 20,
            connect_timeout_ms: 5_000,
            query_timeout_ms: 30_000,
            batch_rows_max: 10_000,
            keep_weeks: 0,
            keep_online_days: 0,
            keep_top_board_days: 0,
            keep_sessions_days: 0,
            on_older_database: OnOlderDatabase::Resync,
            backoff_ms_min: 1_000,
            backoff_ms_max: 60_000,
        }
    }
}

impl ArchiveSettings {
    /// Whether an archive is configured.
    pub fn is_on(&self) -> bool {
        !self.url.is_empty()
    }

    /// Validates every value, but reads no file.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let range = |name, value, min, max| {
            if (min..=max).contains(&value) { Ok(()) } else { Err(SettingsError::Range { name, value, min, max }) }
        };
        range("interval_s", self.interval_s, 2, 86_400)?;
        range("drain_timeout_s", self.drain_timeout_s, 0, 3_600)?;
        range("connect_timeout_ms", self.connect_timeout_ms, 100, 600_000)?;
        range("query_timeout_ms", self.query_timeout_ms, 1_000, 3_600_000)?;
        range("batch_rows_max", self.batch_rows_max, 1, 100_000)?;
        range("backoff_ms_min", self.backoff_ms_min, 10, 600_000)?;
        range("backoff_ms_max", self.backoff_ms_max, self.backoff_ms_min, 3_600_000)?;
        if !self.password_file.as_os_str().is_empty() && !self.credential.is_empty() {
            return Err(SettingsError::ConflictingPasswordSources);
        }
        let files = [("tls_ca", &self.tls_ca), ("tls_cert", &self.tls_cert), ("tls_key", &self.tls_key)];
        if let Some((name, _)) =
            files.into_iter().find(|(_, path)| self.tls == Tls::Off && !path.as_os_str().is_empty())
        {
            return Err(SettingsError::TlsIsOff { name });
        }
        if self.tls_cert.as_os_str().is_empty() != self.tls_key.as_os_str().is_empty() {
            return Err(SettingsError::TlsIdentity);
        }
        if self.is_on() {
            self.parsed_url()?;
        }
        Ok(())
    }

    /// Returns the address of the archive without the password, for messages:
    /// `user@host:3306/database`, with every host. Returns `(no archive)` if the URL is empty or
    /// invalid.
    pub fn target(&self) -> String {
        self.parsed_url().map_or_else(|_| "(no archive)".into(), |url| url.target())
    }

    /// Returns the connection options for the first host. Reads the password from its file or
    /// credential, which take precedence over a password in the URL.
    pub(super) fn opts(&self) -> Result<Opts, SettingsError> {
        self.validate()?;
        let url = self.parsed_url()?;
        let password = self.password()?.or_else(|| url.opts().pass().map(str::to_owned));
        Ok(OptsBuilder::from_opts(url.opts().clone())
            .pass(password)
            .ssl_opts(self.tls_options()?)
            // By default the driver silently replaces a connection to a loopback address by
            // one to the server's Unix socket. Behind a proxy or in a container, that
            // socket may belong to another server.
            .prefer_socket(false)
            .stmt_cache_size(0)
            .tcp_keepalive(Some(Duration::from_secs(30)))
            .into())
    }

    pub(super) fn parsed_url(&self) -> Result<ArchiveUrl, SettingsError> {
        if self.url.is_empty() {
            return Err(SettingsError::NoUrl);
        }
        ArchiveUrl::parse(&self.url)
    }

    fn tls_options(&self) -> Result<Option<SslOpts>, SettingsError> {
        if self.tls == Tls::Off {
            return Ok(None);
        }
        let is_checked = self.tls == Tls::Verify;
        let mut options = SslOpts::default()
            .with_danger_accept_invalid_certs(!is_checked)
            .with_danger_skip_domain_validation(!is_checked);
        if is_checked && !self.tls_ca.as_os_str().is_empty() {
            let authorities = read_pem("tls_ca", &self.tls_ca)?;
            options = options.with_disable_built_in_roots(true).with_root_certs(vec![authorities.into()]);
        }
        if !self.tls_cert.as_os_str().is_empty() {
            let (certificate, key) = (read_pem("tls_cert", &self.tls_cert)?, read_pem("tls_key", &self.tls_key)?);
            options = options.with_client_identity(Some(ClientIdentity::new(certificate.into(), key.into())));
        }
        Ok(Some(options))
    }

    fn password(&self) -> Result<Option<String>, SettingsError> {
        if !self.password_file.as_os_str().is_empty() {
            return read_password(&self.password_file).map(Some).map_err(|error| SettingsError::PasswordFile {
                path: self.password_file.display().to_string(),
                error,
            });
        }
        if !self.credential.is_empty() {
            let fail = |error| SettingsError::Credential { name: self.credential.clone(), error };
            let folder = std::env::var_os("CREDENTIALS_DIRECTORY")
                .ok_or_else(|| fail("CREDENTIALS_DIRECTORY is not set; clqd was not started by systemd".into()))?;
            return read_password(&Path::new(&folder).join(&self.credential)).map(Some).map_err(fail);
        }
        Ok(None)
    }
}

/// Reads a PEM file.
fn read_pem(name: &'static str, path: &Path) -> Result<Vec<u8>, SettingsError> {
    let fail = |error: String| SettingsError::TlsFile { name, path: path.display().to_string(), error };
    let text = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    match text.windows(11).any(|part| part == b"-----BEGIN ") {
        true => Ok(text),
        false => Err(fail("it is not a PEM file".to_owned())),
    }
}

/// Reads a password. Line ends at the end of the file are removed.
fn read_password(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Shows the address without the password.
impl fmt::Debug for ArchiveSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveSettings")
            .field("url", &self.target())
            .field("interval_s", &self.interval_s)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_url(url: &str) -> ArchiveSettings {
        ArchiveSettings { url: url.into(), ..ArchiveSettings::default() }
    }

    #[test]
    fn default_settings_are_valid_and_disabled() {
        let settings = ArchiveSettings::default();
        assert_eq!(settings.validate(), Ok(()));
        assert!(!settings.is_on());
        assert_eq!(settings.opts().unwrap_err(), SettingsError::NoUrl);
    }

    #[test]
    fn password_is_never_shown() {
        let settings = with_url("mysql://clqd:secret@db.example.org:3307/clqd");
        assert_eq!(settings.target(), "clqd@db.example.org:3307/clqd");
        assert!(!format!("{settings:?}").contains("secret"));
        assert_eq!(with_url("mysql://c:secret@a,b:3307/d").target(), "c@a:3306,b:3307/d");
        let settings = with_url("mysql://clqd@localhost/clqd?socket=/run/mysqld/mysqld.sock");
        assert_eq!(settings.target(), "clqd@/run/mysqld/mysqld.sock/clqd");
    }

    #[test]
    fn password_file_precedes_url_and_newline_is_stripped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, "s p\n").unwrap();
        let mut settings = with_url("mysql://clqd:other@localhost/clqd");
        settings.password_file = path;
        assert_eq!(settings.opts().unwrap().pass(), Some("s p"));
        settings.password_file = "/nowhere".into();
        assert!(settings.opts().unwrap_err().to_string().contains("/nowhere"));
        settings.credential = "clqd".into();
        assert_eq!(settings.opts().unwrap_err(), SettingsError::ConflictingPasswordSources);
    }

    #[test]
    fn invalid_setting_is_named_in_error() {
        for (url, want) in [
            ("postgres://x/y", "archive.url"),
            ("mysql://clqd@localhost", "names no database"),
            ("mysql://clqd@localhost/clqd?nonsense=1", "nonsense"),
        ] {
            let message = with_url(url).validate().unwrap_err().to_string();
            assert!(message.contains(want), "{message}");
        }
        let settings = ArchiveSettings { interval_s: 0, ..ArchiveSettings::default() };
        assert!(settings.validate().unwrap_err().to_string().contains("archive.interval_s = 0"));
        assert!(toml::from_str::<ArchiveSettings>("intervals = 3").is_err());
    }
}
