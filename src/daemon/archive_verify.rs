//! `clqd archive verify`: compares the archive with the state, some servers in each step. The
//! engine thread returns values, and this task compares them with the rows of the database, over a
//! connection of its own that only reads.
//!
//! A difference is reported only if the compared values did not change meanwhile
//! (`engine/outbox/verify.rs`). Other differences are compared again after the next pass of the
//! archive's worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use crate::api::requests::{ArchiveDifference, DifferenceKind, VerifyLine, VerifyRow, WeekRange};
use crate::api::{ApiError, ErrorCode, Progress};
use crate::archive::{Archive, ArchiveError, ArchiveSettings, JobSource, RowDifference};
use crate::daemon::engine_thread::EngineEnded;
use crate::model::archive::{ArchiveJob, ExpectedStep, ExpectedWeek, WeekArchive, WeekChunk, WeekChunkRequest};
use crate::model::calendar::week_label;
use crate::model::top_board::{TopBoard, TopBoards};
use crate::model::{MapKey, OutboxKey, PlayerKey, ServerKey, WeekKey};
use crate::web::Lines;

/// Most differences that are listed; further ones are only counted.
const LISTED_MAX: u64 = 5_000;

/// How often weeks that changed are compared again.
const ROUNDS_MAX: u32 = 2;

/// Names in one step.
const NAMES_PER_STEP: usize = 1_000;

/// How often the end of the archive's pass, and the client's connection, are checked.
const PASS_POLL: Duration = Duration::from_millis(500);

/// Pause between two requests for a chunk that is being prepared.
const CHUNK_PAUSE: Duration = Duration::from_millis(20);

const PLAYER_WEEK: &str = "player_week";
const PLAYER_TOTAL: &str = "player_total";

/// Pause while boards are read into memory.
const BUILD_PAUSE: Duration = Duration::from_millis(100);

impl Shared {
    pub(super) async fn verify_archive(
        &self,
        range: Option<WeekRange>,
        lines: &Lines<VerifyLine>,
    ) -> Result<(), ApiError> {
        let Ok(_verifying) = self.verifying.try_lock() else {
            return Err(ApiError::new(ErrorCode::Busy, "another verification is in progress"));
        };
        let weeks = self.engine.call(|thread| Ok(thread.archived_weeks(range))).await??;
        let settings = self.config.lock().expect("config lock poisoned").archive_settings();
        let summary = VerifyRow { weeks: weeks.iter().copied().map(week_label).collect(), ..VerifyRow::default() };
        let mut verifier = Verifier {
            shared: self,
            lines,
            summary,
            players: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            different_weeks: BTreeSet::new(),
            different_maps: BTreeSet::new(),
            different_players: BTreeSet::new(),
        };
        let verified = verifier.run(&settings, &weeks).await;
        let summary = verifier.summary;
        let ending = self.engine.call(|thread| {
            thread.end_verification();
            Ok(())
        });
        ending.await?;
        verified?;
        Ok(lines.send(VerifyLine::ArchiveVerified(summary)).await?)
    }
}

struct Verifier<'a> {
    shared: &'a Shared,
    lines: &'a Lines<VerifyLine>,
    summary: VerifyRow,
    /// Players with rows in the compared weeks.
    players: BTreeSet<PlayerKey>,
    /// Weeks of servers that changed or waited in the outbox meanwhile.
    unsettled: BTreeMap<WeekKey, BTreeSet<ServerKey>>,
    different_weeks: BTreeSet<WeekKey>,
    /// Maps and players with differences. Differences in their totals are not reported.
    different_maps: BTreeSet<(WeekKey, MapKey)>,
    different_players: BTreeSet<(WeekKey, String)>,
}

impl Verifier<'_> {
    async fn run(&mut self, settings: &ArchiveSettings, weeks: &[WeekKey]) -> Result<(), ApiError> {
        let mut archive = connect(settings).await?;
        for &week in weeks {
            self.verify_week(&mut archive, week, None).await?;
        }
        for _ in 0..ROUNDS_MAX {
            if self.unsettled.is_empty() {
                break;
            }
            // The database closes connections that are idle for long.
            archive.close().await;
            self.wait_for_pass(settings).await?;
            archive = connect(settings).await?;
            for (week, servers) in std::mem::take(&mut self.unsettled) {
                self.verify_week(&mut archive, week, Some(Arc::new(servers))).await?;
            }
        }
        self.summary.server_weeks_skipped = self.unsettled.values().map(|servers| servers.len() as u64).sum();
        for &week in weeks {
            let found = archive.verify_map_totals(week).await.map_err(failed)?;
            self.summary.rows += found.rows.values().sum::<u64>();
            for difference in found.differences {
                if difference.map.is_none_or(|map| !self.different_maps.contains(&(week, map))) {
                    self.report(Some(week), None, difference).await?;
                }
            }
        }
        for &week in weeks {
            archive = self.verify_boards(archive, settings, week).await?;
        }
        self.verify_names(&mut archive).await?;
        archive.close().await;
        let bounds = self.different_weeks.first().zip(self.different_weeks.last());
        self.summary.resend_weeks =
            bounds.map(|(&first, &last)| WeekRange { first: week_label(first), last: week_label(last) });
        Ok(())
    }

    /// Compares a week on all servers, or on some.
    async fn verify_week(
        &mut self,
        archive: &mut Archive,
        week: WeekKey,
        only: Option<Arc<BTreeSet<ServerKey>>>,
    ) -> Result<(), ApiError> {
        let mut from = Some(ServerKey(1));
        while let Some(server) = from {
            let only = only.clone();
            let step = self.shared.engine.call(move |thread| thread.expected_weeks(week, server, only.as_deref()));
            match step.await?? {
                ExpectedStep::Weeks { weeks, next } => {
                    self.verify_servers(archive, week, weeks).await?;
                    from = next;
                }
                ExpectedStep::NotKept => return Ok(()),
                ExpectedStep::Resync => {
                    let message = "a resync is in progress, or the outbox is full, so the archive is incomplete: try again \
                                   when `clqd status` shows no resync";
                    return Err(ApiError::new(ErrorCode::Refused, message));
                }
            }
        }
        Ok(())
    }

    async fn verify_servers(
        &mut self,
        archive: &mut Archive,
        week: WeekKey,
        servers: Vec<ExpectedWeek>,
    ) -> Result<(), ApiError> {
        let jobs: Vec<&WeekArchive> = servers.iter().filter_map(|expected| expected.values.as_deref()).collect();
        let found = archive.verify_weeks(week, &jobs).await.map_err(failed)?;
        let mut by_server: BTreeMap<ServerKey, Vec<RowDifference>> = BTreeMap::new();
        for difference in found.differences {
            let server = difference.server.expect("rows of weeks belong to servers");
            by_server.entry(server).or_default().push(difference);
        }
        let changed: Vec<ServerKey> = match by_server.is_empty() {
            true => Vec::new(),
            false => {
                let servers: Vec<ServerKey> = by_server.keys().copied().collect();
                self.shared.engine.call(move |thread| Ok(thread.changed_weeks(week, &servers))).await?
            }
        };
        for ExpectedWeek { server, url, is_pending, values } in servers {
            let Some(values) = values else {
                self.verify_large_week(archive, week, server, &url, is_pending).await?;
                continue;
            };
            let differences = by_server.remove(&server).unwrap_or_default();
            if !differences.is_empty() && (is_pending || changed.contains(&server)) {
                self.unsettled.entry(week).or_default().insert(server);
                continue;
            }
            self.summary.server_weeks += 1;
            self.summary.rows += found.rows.get(&Some(server)).copied().unwrap_or_default();
            self.players.extend(values.rows.iter().map(|row| row.player));
            for difference in differences {
                self.report(Some(week), Some(&url), difference).await?;
            }
        }
        Ok(())
    }

    /// Compares a week with more rows than one step may have, in chunks.
    async fn verify_large_week(
        &mut self,
        archive: &mut Archive,
        week: WeekKey,
        server: ServerKey,
        url: &str,
        is_pending: bool,
    ) -> Result<(), ApiError> {
        let (mut rows, mut players, mut differences, mut count) = (0, Vec::new(), Vec::new(), 0);
        let mut request = WeekChunkRequest::First { week, server };
        let is_complete = loop {
            if is_pending {
                break false;
            }
            match self.shared.engine.call(move |thread| thread.expected_week_chunk(request)).await? {
                WeekChunk::Preparing => tokio::time::sleep(CHUNK_PAUSE).await,
                WeekChunk::NotAvailable => break false,
                WeekChunk::Chunk { copy_id, week: values } => {
                    let found = archive.verify_weeks(week, &[&values]).await.map_err(failed)?;
                    rows += found.rows.values().sum::<u64>();
                    players.extend(values.rows.iter().map(|row| row.player));
                    count += found.differences.len() as u64;
                    differences.extend(found.differences);
                    differences.truncate(LISTED_MAX as usize);
                    let Some(after) = values.span.through else { break true };
                    request = WeekChunkRequest::Next { copy_id, after: Some(after) };
                }
            }
        };
        let servers = vec![server];
        let changed = self.shared.engine.call(move |thread| Ok(thread.changed_weeks(week, &servers))).await?;
        if !is_complete || (count > 0 && !changed.is_empty()) {
            self.unsettled.entry(week).or_default().insert(server);
            return Ok(());
        }
        self.summary.server_weeks += 1;
        self.summary.rows += rows;
        self.summary.differences += count - differences.len() as u64;
        self.players.extend(players);
        for difference in differences {
            self.report(Some(week), Some(url), difference).await?;
        }
        Ok(())
    }

    /// Compares the published boards of a week, if it is closed, and the totals of its players.
    async fn verify_boards(
        &mut self,
        mut archive: Archive,
        settings: &ArchiveSettings,
        week: WeekKey,
    ) -> Result<Archive, ApiError> {
        for _ in 0..=ROUNDS_MAX {
            if !self.awaits_publication(week).await? {
                let differences = self.compare_boards(&mut archive, week).await?;
                // They may have been written again meanwhile.
                if differences.is_empty() || !self.awaits_publication(week).await? {
                    for difference in differences {
                        let player = (week, difference.key.clone());
                        if difference.table != PLAYER_TOTAL || !self.different_players.contains(&player) {
                            self.report(Some(week), None, difference).await?;
                        }
                    }
                    return Ok(archive);
                }
            }
            // The database closes connections that are idle for long.
            archive.close().await;
            self.wait_for_pass(settings).await?;
            archive = connect(settings).await?;
        }
        self.summary.boards_skipped += 1;
        Ok(archive)
    }

    async fn awaits_publication(&self, week: WeekKey) -> Result<bool, ApiError> {
        let tasks = self.shared.engine.tasks().await.map_err(|_| EngineEnded)?;
        Ok(tasks.iter().any(|task| task.key == OutboxKey::TopBoards(week.into())))
    }

    async fn compare_boards(&mut self, archive: &mut Archive, week: WeekKey) -> Result<Vec<RowDifference>, ApiError> {
        let (window, mut last, mut keys) = (Some(week.into()), None::<TopBoard>, BTreeSet::new());
        let mut found = Vec::new();
        loop {
            let after = last.as_ref().map(|last| last.key);
            match self.shared.engine.top_boards(window, after).await.map_err(|_| EngineEnded)? {
                TopBoards::Building => {
                    tokio::time::sleep(BUILD_PAUSE).await;
                    self.lines.progress(Progress::default()).await?;
                    continue;
                }
                TopBoards::Deleted => return Ok(Vec::new()),
                TopBoards::Next(boards) => {
                    let Some(board) = boards.last() else { break };
                    // Boards of a running week are published once in an interval.
                    if board.window.closed {
                        found.push(archive.verify_top_boards(&boards, &mut keys).await.map_err(failed)?);
                    }
                    last = Some(board.clone());
                }
            }
        }
        let Some(last) = last else { return Ok(Vec::new()) };
        if last.window.closed {
            found.push(archive.verify_surplus_boards(&keys, &last).await.map_err(failed)?);
        }
        if let Some((start_ms, end_ms)) = last.window.start_ms.zip(last.window.end_ms) {
            found.push(archive.verify_player_totals(week, start_ms..end_ms).await.map_err(failed)?);
        }
        self.summary.rows += found.iter().flat_map(|found| found.rows.values()).sum::<u64>();
        Ok(found.into_iter().flat_map(|found| found.differences).collect())
    }

    /// Compares the names of all players with rows.
    async fn verify_names(&mut self, archive: &mut Archive) -> Result<(), ApiError> {
        let players: Vec<PlayerKey> = std::mem::take(&mut self.players).into_iter().collect();
        for players in players.chunks(NAMES_PER_STEP) {
            let (before, pending) = self.expected_names(players.to_vec()).await?;
            self.summary.names_skipped += pending;
            let jobs: Vec<ArchiveJob> = before.values().cloned().collect();
            let found = archive.verify_names(&jobs).await.map_err(failed)?;
            self.summary.rows += found.rows.values().sum::<u64>();
            let player_of = |difference: &RowDifference| {
                let key = difference.key.strip_prefix("player=").and_then(|key| key.parse().ok());
                PlayerKey(key.expect("the key of a player"))
            };
            let different: BTreeSet<PlayerKey> = found.differences.iter().map(player_of).collect();
            if different.is_empty() {
                continue;
            }
            // A name that changed in between, or that changes now, may be equal soon.
            let (after, _) = self.expected_names(different.iter().copied().collect()).await?;
            let at_rest = |player: &PlayerKey| before.get(player) == after.get(player);
            self.summary.names_skipped += different.iter().filter(|player| !at_rest(player)).count() as u64;
            for difference in found.differences {
                if at_rest(&player_of(&difference)) {
                    self.summary.resend_everything = true;
                    self.report(None, None, difference).await?;
                }
            }
        }
        Ok(())
    }

    /// Names of players that should be in the archive, and the number of those that wait in the outbox.
    async fn expected_names(
        &self,
        players: Vec<PlayerKey>,
    ) -> Result<(BTreeMap<PlayerKey, ArchiveJob>, u64), ApiError> {
        let names = self.shared.engine.call(move |thread| thread.expected_names(&players)).await??;
        let pending = names.iter().filter(|name| name.is_pending).count() as u64;
        let at_rest = names.into_iter().filter(|name| !name.is_pending);
        Ok((at_rest.filter_map(|name| Some((name.player, name.job?))).collect(), pending))
    }

    /// Waits for the end of a pass of the archive's worker, an interval at most.
    async fn wait_for_pass(&mut self, settings: &ArchiveSettings) -> Result<(), ApiError> {
        let passes = || self.shared.archive_worker_status().map(|status| status.passes);
        let (before, limit) = (passes(), Duration::from_secs(settings.interval_s.into()));
        let mut waited = Duration::ZERO;
        while passes() == before && waited < limit {
            tokio::time::sleep(PASS_POLL).await;
            waited += PASS_POLL;
            self.lines.progress(Progress::default()).await?;
        }
        Ok(())
    }

    async fn report(
        &mut self,
        week: Option<WeekKey>,
        url: Option<&str>,
        difference: RowDifference,
    ) -> Result<(), ApiError> {
        self.different_weeks.extend(week);
        self.different_maps.extend(week.zip(difference.map));
        self.different_players
            .extend(week.filter(|_| difference.table == PLAYER_WEEK).map(|it| (it, difference.key.clone())));
        self.summary.differences += 1;
        if self.summary.listed == LISTED_MAX {
            return Ok(());
        }
        self.summary.listed += 1;
        let RowDifference { table, key, column, expected, found, .. } = difference;
        let kind = match (column, &expected) {
            (Some(_), _) => DifferenceKind::Value,
            (None, Some(_)) => DifferenceKind::Missing,
            (None, None) => DifferenceKind::Surplus,
        };
        let row = ArchiveDifference {
            difference: kind,
            week: week.map(week_label),
            server: url.map(str::to_owned),
            table: table.to_owned(),
            key,
            column: column.map(str::to_owned),
            expected: expected.filter(|_| column.is_some()),
            found: found.filter(|_| column.is_some()),
        };
        Ok(self.lines.send(VerifyLine::ArchiveDifference(Box::new(row))).await?)
    }
}

async fn connect(settings: &ArchiveSettings) -> Result<Archive, ApiError> {
    let mut archive = Archive::connect_to_read(settings).await.map_err(failed)?;
    archive.check_schema().await.map_err(failed)?;
    Ok(archive)
}

fn failed(error: ArchiveError) -> ApiError {
    ApiError::new(ErrorCode::Refused, error.to_string())
}
