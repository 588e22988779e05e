//! LOAD DATA LOCAL INFILE, with which rows are written where the database allows it. The rows are
//! sent from memory; a file that the database requests otherwise is refused.

use std::io;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use mysql_async::Error as MysqlError;

use super::connect::Archive;
use super::error::StatementError;
use super::write_method::WriteMethod;

/// Bytes of one packet to the database. It must not exceed the database's `max_allowed_packet`,
/// which is at least 1 KiB and by default 16 MiB.
const PACKET_BYTES: usize = 64 << 10;

/// Approximate bytes of one file. A transaction of 10,000 rows of players has 2.3 MB. The limit
/// bounds memory; the limit of packets does not apply to files.
pub(super) const FILE_BYTES_MAX: usize = 4 << 20;

impl Archive {
    /// Chooses the fastest method that the database allows.
    pub(super) fn choose_write_method(&mut self, is_local_infile_on: bool) {
        self.is_local_infile_on = is_local_infile_on;
        // A large LOAD DATA delays commits on the other nodes of a cluster.
        let may_load = is_local_infile_on && !self.is_cluster;
        self.write_method = if may_load { WriteMethod::LoadData } else { WriteMethod::Insert };
    }

    /// Stops using LOAD DATA on this connection.
    pub(super) fn stop_load_data(&mut self) {
        self.write_method = WriteMethod::Insert;
        self.load_data_failed = true;
    }

    /// The reason for the chosen write method.
    pub(super) fn write_method_reason(&self) -> &'static str {
        match self {
            Archive { load_data_failed: true, .. } => "LOAD DATA has failed",
            Archive { is_cluster: true, .. } => "the database is a cluster",
            Archive { is_local_infile_on: false, .. } => "the variable local_infile of the database is off",
            _ => "the variable local_infile of the database is on",
        }
    }

    /// Runs a LOAD DATA statement with `rows` as its file. The database only warns of a value that
    /// it changes, because it cannot stop the transmission of the file; here that is an error.
    pub(super) async fn load_data(&mut self, sql: &str, rows: Bytes) -> Result<(), StatementError> {
        let packets = (0..rows.len()).step_by(PACKET_BYTES).map(move |at| {
            let end = rows.len().min(at + PACKET_BYTES);
            Ok::<Bytes, io::Error>(rows.slice(at..end))
        });
        self.set_file_to_send(async move { Ok(stream::iter(packets).boxed()) });
        match self.execute(sql).await {
            Ok(()) => (),
            Err(fault) if fault.is_conflict() || fault.is_fatal() => return Err(fault),
            Err(StatementError::Mysql(MysqlError::Server(error))) => {
                return Err(StatementError::LoadData(format!("{} (error {})", error.message, error.code)));
            }
            Err(fault) => return Err(fault),
        }
        if self.warnings() == 0 {
            return Ok(());
        }
        let warnings: Vec<(String, u16, String)> = self.rows("SHOW WARNINGS LIMIT 1").await?;
        let first = warnings.into_iter().next().map(|(_, code, message)| format!("{message} (warning {code})"));
        Err(StatementError::LoadData(first.unwrap_or_else(|| "a warning without a message".to_owned())))
    }
}
