//! Prepares a session: its settings, the check of its character set, and the named lock.

use super::{Archive, Purpose};
use crate::archive::error::ArchiveError;
use crate::archive::settings::ArchiveSettings;

/// Largest statement, bytes. Larger ones are no faster, and every database accepts this
/// size (`max_allowed_packet` is 16 MiB or more by default).
pub(super) const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// The database closes a connection that has been idle for this long, s. Then the lock of
/// a machine that failed is released. A restore, which only reads, computes for minutes between two pages.
const IDLE_TIMEOUT_S: u32 = 120;
const IDLE_READER_TIMEOUT_S: u32 = 28_800;

/// A string with characters of one to four bytes in UTF-8.
const CHARSET_PROBE: &str = "aß名😀";

impl Archive {
    pub(super) async fn prepare_session(
        &mut self,
        settings: &ArchiveSettings,
        purpose: Purpose,
    ) -> Result<(), ArchiveError> {
        // Waiting for a row lock must time out before the statement does.
        let lock_s = (settings.query_timeout_ms / 3_000).max(1);
        // The server may ignore the character set of the handshake
        // (skip-character-set-client-handshake), and init_connect may change it.
        self.run("session", "SET NAMES utf8mb4").await?;
        let idle_s = if purpose == Purpose::Read { IDLE_READER_TIMEOUT_S } else { IDLE_TIMEOUT_S };
        // In a zone whose clocks are changed, an hour each year is ambiguous: a lease would seem an hour older.
        let session = format!(
            "SET SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit=1, time_zone='+00:00', \
             wait_timeout={idle_s}, innodb_lock_wait_timeout={lock_s}"
        );
        self.run("session", &session).await?;
        self.check_charset().await?;
        let select = "SELECT @@max_allowed_packet, @@local_infile";
        let (packet, local_infile) = self.first::<(u64, bool)>("session", select).await?.unwrap_or((1 << 20, false));
        // Half of the maximum, because a statement ends with the row that exceeds the limit.
        self.statement_bytes_max = STATEMENT_BYTES_MAX.min(usize::try_from(packet / 2).unwrap_or(usize::MAX));
        self.choose_write_method(local_infile);
        Ok(())
    }

    /// Refuses a session in which text would be stored otherwise than it is sent.
    async fn check_charset(&mut self) -> Result<(), ArchiveError> {
        const VARIABLES: [&str; 3] = ["character_set_client", "character_set_connection", "character_set_results"];
        let select = format!("SELECT {}", VARIABLES.map(|name| format!("COALESCE(@@{name}, 'NULL')")).join(", "));
        let found: Option<(String, String, String)> = self.first("session", &select).await?;
        let refuse = |target: &str, why: String| Err(ArchiveError::Charset { target: target.to_owned(), why });
        let Some((client, connection, results)) = found else {
            return refuse(&self.target, "the session's character set cannot be read".to_owned());
        };
        for (name, value) in VARIABLES.iter().zip([client, connection, results]) {
            if value != "utf8mb4" {
                let why = format!(
                    "{name} of the session is {value} after SET NAMES utf8mb4; check for a proxy or server that changes it"
                );
                return refuse(&self.target, why);
            }
        }
        let select = format!("SELECT HEX('{CHARSET_PROBE}'), '{CHARSET_PROBE}'");
        // The returned bytes may be invalid UTF-8.
        let found: Option<(Vec<u8>, Vec<u8>)> = self.first("session", &select).await?;
        let (stored, back) = found.unwrap_or_default();
        let sent: String = CHARSET_PROBE.bytes().map(|byte| format!("{byte:02X}")).collect();
        if stored != sent.as_bytes() || back != CHARSET_PROBE.as_bytes() {
            let why = format!(
                "of {CHARSET_PROBE:?} ({sent}) the server receives {} and returns {:?}; configure it to accept utf8mb4 from clients",
                String::from_utf8_lossy(&stored),
                String::from_utf8_lossy(&back)
            );
            return refuse(&self.target, why);
        }
        Ok(())
    }

    /// Waits for the named lock of the database, which excludes other daemons from this
    /// database server. `previous` is the database's id of a connection to this server that
    /// this process had and abandoned: if it still holds the lock, it is killed. `previous` is
    /// set to the id of this connection.
    pub(super) async fn acquire_lock(
        &mut self,
        settings: &ArchiveSettings,
        previous: &mut Option<u32>,
    ) -> Result<(), ArchiveError> {
        const NAME: &str = "CONCAT('clqd.', LEFT(SHA1(DATABASE()), 32))";
        let holder = format!("SELECT IS_USED_LOCK({NAME})");
        let held_by = self.first::<Option<u64>>("lock", &holder).await?.flatten();
        if held_by.is_some() && held_by == previous.map(u64::from) {
            // It may have ended in the meantime, which is an error here.
            let _ = self.execute(&format!("KILL {}", held_by.unwrap_or_default())).await;
        }
        // Set before the request: the lock may be acquired although the response is lost.
        *previous = Some(self.conn.id());
        let wait_s = (settings.query_timeout_ms / 2_000).min(5);
        loop {
            let got = self.first::<Option<u8>>("lock", &format!("SELECT GET_LOCK({NAME}, {wait_s})")).await?;
            if got.flatten() == Some(1) {
                return Ok(());
            }
            // Otherwise no connection holds it: it was just released.
            if let Some(connection) = self.first::<Option<u64>>("lock", &holder).await?.flatten() {
                return Err(ArchiveError::InUse { target: self.target.clone(), connection });
            }
        }
    }
}
