//! Publishes boards and totals: once in an interval, after everything else is written.

use std::collections::BTreeMap;
use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::jobs::NamesOutcome;
use super::{PassError, Worker};
use crate::archive::connect::Archive;
use crate::archive::job_source::JobSource;
use crate::model::outbox::OutboxKey;
use crate::model::top_board::{TopBoard, TopBoardKey};

/// What was published last.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// When, Unix ms.
    at_ms: Option<i64>,
    /// A hash of each board. A board that has not changed is not compared with the archive.
    boards: FxHashMap<TopBoardKey, u64>,
}

impl<S: JobSource> Worker<S> {
    /// Publishes what has changed, if an interval has passed.
    pub(super) async fn publish(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let (now_ms, interval_ms) = (self.report.now_ms(), i64::from(self.settings.interval_s) * 1_000);
        // Also after the clock was set back.
        if self.published.at_ms.is_some_and(|at_ms| (0..interval_ms).contains(&(now_ms - at_ms))) {
            return Ok(());
        }
        if let Some(totals) = self.source.site_totals().await? {
            let rows = archive.write_site_totals(&totals).await?;
            self.report.update(|it| it.rows_written += rows);
        }
        let (mut after, mut found) = (None, FxHashMap::default());
        loop {
            let boards = self.source.top_boards(after).await?;
            let Some(last) = boards.last() else { break };
            // The boards may contain players whose names are not in the archive yet.
            if self.write_names(archive, rejected).await? == NamesOutcome::PlayersRemoved {
                continue;
            }
            after = Some(last.key);
            for board in &boards {
                let hash = content_hash(board);
                if self.published.boards.get(&board.key) != Some(&hash) {
                    let rows = archive.write_top_board(board, now_ms).await?;
                    self.report.update(|it| it.rows_written += rows);
                }
                found.insert(board.key, hash);
            }
        }
        self.published = Published { at_ms: Some(now_ms), boards: found };
        Ok(())
    }
}

fn content_hash(board: &TopBoard) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(board.size);
    hasher.write_u8(board.window.closed.into());
    for entry in &board.entries {
        hasher.write_u32(entry.player.0);
        hasher.write_u64(entry.score.to_bits());
        hasher.write_i64(entry.reached_ms);
    }
    hasher.finish()
}
