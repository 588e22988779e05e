//! A week of a server that comes in parts. All parts of one moment are one
//! transaction, so whoever reads the tables sees the week as it was or as it is,
//! and a crash anywhere leaves it as it was; what is held here at a time is one
//! part. A transaction that lost against another is begun anew by whoever has the
//! parts.

use super::connect::Archive;
use super::error::ArchiveError;
use super::write::TransactionError;
use crate::model::archive::WeekArchive;

/// What became of a step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// So many rows were written.
    Done { rows: u64 },
    /// The transaction lost against another and is taken back.
    Lost,
}

impl Archive {
    /// Begins a week that comes in parts.
    pub async fn begin_week_chunks(&mut self) -> Result<(), ArchiveError> {
        self.run("begin", "START TRANSACTION").await
    }

    /// Writes a part. After an error the whole week is taken back.
    pub async fn write_week_chunk(&mut self, part: &WeekArchive) -> Result<WriteOutcome, ArchiveError> {
        match self.upsert_weeks(&[part]).await {
            Ok(rows) => Ok(WriteOutcome::Done { rows }),
            Err(halt) => self.roll_back_after(halt).await,
        }
    }

    /// All parts are written.
    pub async fn commit_week_chunks(&mut self) -> Result<WriteOutcome, ArchiveError> {
        self.doing = "commit";
        match self.execute("COMMIT").await {
            Ok(()) => Ok(WriteOutcome::Done { rows: 0 }),
            Err(fault) => self.roll_back_after(TransactionError::Fault { fault, doing: "commit" }).await,
        }
    }

    /// Takes the parts back.
    pub async fn rollback(&mut self) -> Result<(), ArchiveError> {
        self.run("rollback", "ROLLBACK").await
    }

    /// Keeps the connection from being taken for one that is no more.
    pub async fn keep_alive(&mut self) -> Result<(), ArchiveError> {
        self.run("stay", "DO 0").await
    }

    async fn roll_back_after(&mut self, halt: TransactionError) -> Result<WriteOutcome, ArchiveError> {
        match halt {
            TransactionError::Fault { fault, .. } if fault.is_conflict() => {
                self.report_conflict(&fault);
                self.rollback().await?;
                Ok(WriteOutcome::Lost)
            }
            TransactionError::Fault { fault, doing } => {
                if !fault.is_fatal() {
                    let _ = self.execute("ROLLBACK").await;
                }
                Err(fault.classify(&self.target, doing))
            }
            TransactionError::Error(error) => {
                self.rollback().await?;
                Err(error)
            }
        }
    }
}
