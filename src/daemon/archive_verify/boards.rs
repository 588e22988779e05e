//! Compares published boards, and the totals of players in weeks.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{PLAYER_TOTAL, PLAYER_WEEK, ROUNDS_MAX, Verifier, failed};
use crate::api::{ApiError, Progress};
use crate::archive::{JobSource, RowDifference};
use crate::daemon::engine_thread::EngineEnded;
use crate::model::WindowKey;
use crate::model::top_board::{TopBoard, TopBoards};

/// Pause while boards are read into memory.
const BUILD_PAUSE: Duration = Duration::from_millis(100);

/// The comparison of a window's boards.
struct Compared {
    differences: Vec<RowDifference>,
    /// Whether all boards were compared: those of an open window only if this daemon has published them.
    is_whole: bool,
    is_closed: bool,
}

impl Compared {
    const NOTHING: Self = Self { differences: Vec::new(), is_whole: true, is_closed: true };
}

impl Verifier<'_> {
    /// Compares the published boards of a window and, of a week, the totals of its players.
    pub(super) async fn verify_boards(&mut self, window: WindowKey) -> Result<(), ApiError> {
        let week = window.week();
        for round in 0..=ROUNDS_MAX {
            if !self.awaits_publication(window).await? {
                let Compared { differences, is_whole, is_closed } = self.compare_boards(window).await?;
                // They may have been written again meanwhile: those of an open window in each interval.
                let is_at_rest = (is_closed || round > 0) && !self.awaits_publication(window).await?;
                if is_whole && differences.is_empty() || is_at_rest && (is_whole || round == ROUNDS_MAX) {
                    for difference in differences {
                        let player = week.zip(difference.number("player"));
                        let is_reported = player.is_some_and(|(week, player)| {
                            difference.table == PLAYER_TOTAL && self.different.contains(&(week, PLAYER_WEEK, player))
                        });
                        if !is_reported {
                            self.report(week, None, difference).await?;
                        }
                    }
                    self.summary.boards_skipped += u64::from(!is_whole);
                    return Ok(());
                }
            }
            self.wait_for_pass().await?;
        }
        self.summary.boards_skipped += 1;
        Ok(())
    }

    async fn awaits_publication(&self, window: WindowKey) -> Result<bool, ApiError> {
        let is_waiting = self.shared.engine.call(move |thread| {
            Ok(thread.state().engine.model().has_unpublished_boards(&thread.state().store, window))
        });
        Ok(is_waiting.await?)
    }

    async fn compare_boards(&mut self, window: WindowKey) -> Result<Compared, ApiError> {
        let (mut last, mut keys, mut is_whole) = (None::<TopBoard>, BTreeSet::new(), true);
        let mut found = Vec::new();
        loop {
            let after = last.as_ref().map(|last| last.key);
            match self.shared.engine.top_boards(Some(window), after).await.map_err(|_| EngineEnded)? {
                TopBoards::Building => {
                    tokio::time::sleep(BUILD_PAUSE).await;
                    self.lines.progress(Progress::default()).await?;
                    continue;
                }
                TopBoards::Deleted => return Ok(Compared::NOTHING),
                TopBoards::Next(boards) => {
                    let Some(board) = boards.last() else { break };
                    let published = self.shared.archive_worker_status().map(|status| status.published_boards);
                    let archive = self.connected().await?;
                    let compared = match board.closed {
                        true => archive.verify_top_boards(&boards, &mut keys).await,
                        false => {
                            let published = published.unwrap_or_default();
                            is_whole &= boards.iter().all(|board| published.contains_key(&board.key));
                            archive.verify_open_boards(&boards, &published, &mut keys).await
                        }
                    };
                    found.push(compared.map_err(failed)?);
                    last = Some(board.clone());
                }
            }
        }
        let Some(last) = last else { return Ok(Compared::NOTHING) };
        let archive = self.connected().await?;
        found.push(archive.verify_surplus_boards(&keys, &last).await.map_err(failed)?);
        if let (Some(week), Some((start_ms, end_ms))) = (window.week(), last.start_ms.zip(last.end_ms)) {
            found.push(archive.verify_player_totals(week, start_ms..end_ms).await.map_err(failed)?);
        }
        self.summary.rows += found.iter().map(|found| found.row_count()).sum::<u64>();
        let differences = found.into_iter().flat_map(|found| found.differences).collect();
        Ok(Compared { differences, is_whole, is_closed: last.closed })
    }
}
