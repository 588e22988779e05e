//! Writes a server's week in chunks. All chunks of one revision are one transaction, so
//! readers see either the old or the new week, also after a crash. Memory holds one
//! chunk. After a conflict the caller starts the transaction again.

use super::TransactionError;
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::model::archive::WeekArchive;

/// The result of a step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum WriteOutcome {
    /// The number of written rows.
    Done { rows: u64 },
    /// The transaction was rolled back and may be repeated: it lost a conflict, or rows could not
    /// be loaded and will be inserted.
    Repeat,
}

impl Archive {
    /// Starts writing a week in chunks.
    pub(in crate::archive) async fn begin_week_chunks(&mut self) -> Result<WriteOutcome, ArchiveError> {
        match self.begin().await {
            Ok(()) => Ok(WriteOutcome::Done { rows: 0 }),
            Err(failure) => self.roll_back_after(failure).await,
        }
    }

    /// Writes a chunk. After an error the whole week is rolled back.
    pub(in crate::archive) async fn write_week_chunk(
        &mut self,
        chunk: &WeekArchive,
    ) -> Result<WriteOutcome, ArchiveError> {
        match self.upsert_weeks(&[chunk]).await {
            Ok(rows) => Ok(WriteOutcome::Done { rows }),
            Err(failure) => self.roll_back_after(failure).await,
        }
    }

    /// Commits after the last chunk.
    pub(in crate::archive) async fn commit_week_chunks(&mut self) -> Result<WriteOutcome, ArchiveError> {
        match self.commit().await {
            Ok(()) => Ok(WriteOutcome::Done { rows: 0 }),
            Err(failure) => self.roll_back_after(failure).await,
        }
    }

    /// Rolls back all chunks.
    pub(in crate::archive) async fn rollback(&mut self) -> Result<(), ArchiveError> {
        self.run("rollback", "ROLLBACK").await
    }

    async fn roll_back_after(&mut self, failure: TransactionError) -> Result<WriteOutcome, ArchiveError> {
        match failure {
            TransactionError::Fault { fault, .. } if self.can_repeat_after(&fault) => {
                self.rollback().await?;
                Ok(WriteOutcome::Repeat)
            }
            failure => Err(self.roll_back(failure).await),
        }
    }
}
