//! Compares the rows of servers in weeks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{LISTED_MAX, Verifier, failed, incomplete};
use crate::api::ApiError;
use crate::archive::RowDifference;
use crate::model::archive::{ExpectedStep, ExpectedWeek, WeekArchive, WeekChunk, WeekChunkRequest};
use crate::model::{GameKey, ServerKey, WeekKey};

/// Pause between two requests for a chunk that is being prepared.
const CHUNK_PAUSE: Duration = Duration::from_millis(20);

impl Verifier<'_> {
    /// Compares a week on all servers, or on some.
    pub(super) async fn verify_week(
        &mut self,
        week: WeekKey,
        only: Option<Arc<BTreeSet<ServerKey>>>,
    ) -> Result<(), ApiError> {
        let mut from = Some(ServerKey(1));
        while let Some(server) = from {
            let only = only.clone();
            let step = self.shared.engine.call(move |thread| thread.expected_weeks(week, server, only.as_deref()));
            match step.await?? {
                ExpectedStep::Weeks { weeks, next } => {
                    self.verify_servers(week, weeks).await?;
                    from = next;
                }
                ExpectedStep::NotKept => return Ok(()),
                ExpectedStep::Resync => return Err(incomplete()),
            }
        }
        Ok(())
    }

    async fn verify_servers(&mut self, week: WeekKey, servers: Vec<ExpectedWeek>) -> Result<(), ApiError> {
        let jobs: Vec<&WeekArchive> = servers.iter().filter_map(|expected| expected.values.as_deref()).collect();
        let last_game = self.last_game().await?;
        let found = self.connected().await?.verify_weeks(week, &jobs, last_game).await.map_err(failed)?;
        let mut by_server: BTreeMap<ServerKey, Vec<RowDifference>> = BTreeMap::new();
        for difference in found.differences {
            let server = ServerKey(difference.number("server").expect("rows of weeks belong to servers"));
            by_server.entry(server).or_default().push(difference);
        }
        let changed: Vec<ServerKey> = match by_server.is_empty() {
            true => Vec::new(),
            false => {
                let servers: Vec<ServerKey> = by_server.keys().copied().collect();
                self.shared
                    .engine
                    .call(move |thread| Ok(thread.state().engine.model().changed_weeks(week, &servers)))
                    .await?
            }
        };
        for ExpectedWeek { server, url, is_pending, values } in servers {
            if values.is_none() {
                self.verify_large_week(week, server, &url, is_pending).await?;
                continue;
            }
            let differences = by_server.remove(&server).unwrap_or_default();
            if !differences.is_empty() && (is_pending || changed.contains(&server)) {
                self.unsettled.entry(week).or_default().insert(server);
                continue;
            }
            self.summary.server_weeks += 1;
            self.summary.rows += found.rows.get(&Some(server)).copied().unwrap_or_default();
            for difference in differences {
                self.report(Some(week), Some(&url), difference).await?;
            }
        }
        Ok(())
    }

    /// Compares a week with more rows than one step may have, in chunks.
    async fn verify_large_week(
        &mut self,
        week: WeekKey,
        server: ServerKey,
        url: &str,
        is_pending: bool,
    ) -> Result<(), ApiError> {
        let last_game = self.last_game().await?;
        let (mut rows, mut differences, mut count) = (0, Vec::new(), 0);
        let mut request = WeekChunkRequest::First { week, server };
        let is_complete = loop {
            if is_pending {
                break false;
            }
            match self.shared.engine.call(move |thread| thread.expected_week_chunk(request)).await? {
                WeekChunk::Preparing => tokio::time::sleep(CHUNK_PAUSE).await,
                WeekChunk::NotAvailable => break false,
                WeekChunk::Chunk { copy_id, week: values } => {
                    let found =
                        self.connected().await?.verify_weeks(week, &[&values], last_game).await.map_err(failed)?;
                    rows += found.row_count();
                    count += found.differences.len() as u64;
                    differences.extend(found.differences);
                    differences.truncate(LISTED_MAX as usize);
                    let Some(after) = values.span.through else { break true };
                    request = WeekChunkRequest::Next { copy_id, after: Some(after) };
                }
            }
        };
        let servers = vec![server];
        let changed =
            self.shared.engine.call(move |thread| Ok(thread.state().engine.model().changed_weeks(week, &servers)));
        let has_changed = !changed.await?.is_empty();
        if !is_complete || (count > 0 && has_changed) {
            self.unsettled.entry(week).or_default().insert(server);
            return Ok(());
        }
        self.summary.server_weeks += 1;
        self.summary.rows += rows;
        self.summary.differences += count - differences.len() as u64;
        for difference in differences {
            self.report(Some(week), Some(url), difference).await?;
        }
        Ok(())
    }

    /// The last game that there is.
    async fn last_game(&self) -> Result<GameKey, ApiError> {
        Ok(self.shared.engine.call(|thread| Ok(GameKey(thread.state().engine.model().last_keys().game))).await?)
    }
}
