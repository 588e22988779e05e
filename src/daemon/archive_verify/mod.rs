//! `clqd archive verify`: compares the archive with the state, in small steps. The engine thread returns values, and
//! this task compares them with the rows of the database, over a connection of its own that only reads.
//!
//! A difference is reported only if the compared values did not change meanwhile and do not wait in the outbox. All
//! others are compared again after the next pass of the archive's worker.

mod boards;
mod objects;
mod weeks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use self::objects::Candidates;
use super::Shared;
use crate::api::requests::{ArchiveDifference, DifferenceKind, VerifyLine, VerifyRow, WeekRange};
use crate::api::{ApiError, ErrorCode, Progress};
use crate::archive::{Archive, ArchiveError, ArchiveSettings, JobSource, RowDifference};
use crate::daemon::engine_thread::EngineEnded;
use crate::model::calendar::week_label;
use crate::model::{ServerKey, WeekKey, WindowKey};
use crate::web::Lines;

/// Most differences that are listed; further ones are only counted.
const LISTED_MAX: u64 = 5_000;

/// How often what changed is compared again.
const ROUNDS_MAX: u32 = 2;

/// How often the end of the archive's pass, and the client's connection, are checked.
const PASS_POLL: Duration = Duration::from_millis(500);

impl Shared {
    /// Compares weeks, or everything.
    pub(super) async fn verify_archive(
        &self,
        range: Option<WeekRange>,
        lines: &Lines<VerifyLine>,
    ) -> Result<(), ApiError> {
        let Ok(_verifying) = self.verifying.try_lock() else {
            return Err(ApiError::new(ErrorCode::Busy, "another verification is in progress"));
        };
        let is_whole = range.is_none();
        let weeks = self.engine.call(|thread| Ok(thread.archived_weeks(range))).await??;
        let settings = self.config.lock().expect("config lock poisoned").archive_settings();
        let summary = VerifyRow { weeks: weeks.iter().copied().map(week_label).collect(), ..VerifyRow::default() };
        let mut verifier = Verifier {
            shared: self,
            lines,
            settings,
            archive: None,
            summary,
            unsettled: BTreeMap::new(),
            candidates: Candidates::new(),
            different_weeks: BTreeSet::new(),
            different: BTreeSet::new(),
        };
        let verified = verifier.run(&weeks, is_whole).await;
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
    settings: ArchiveSettings,
    /// `None`: not connected.
    archive: Option<Archive>,
    summary: VerifyRow,
    /// Weeks of servers that changed or waited in the outbox meanwhile.
    unsettled: BTreeMap<WeekKey, BTreeSet<ServerKey>>,
    /// Objects that differ, to be compared again.
    candidates: Candidates,
    different_weeks: BTreeSet<WeekKey>,
    /// Maps and players with differences in a week, by table and key. Differences in their totals are not reported.
    different: BTreeSet<(WeekKey, &'static str, u32)>,
}

impl Verifier<'_> {
    async fn run(&mut self, weeks: &[WeekKey], is_whole: bool) -> Result<(), ApiError> {
        for &week in weeks {
            self.verify_week(week, None).await?;
        }
        if is_whole {
            self.verify_all_objects().await?;
        }
        for _ in 0..ROUNDS_MAX {
            if self.unsettled.is_empty() && self.candidates.is_empty() {
                break;
            }
            self.wait_for_pass().await?;
            for (week, servers) in std::mem::take(&mut self.unsettled) {
                self.verify_week(week, Some(Arc::new(servers))).await?;
            }
            self.verify_candidates().await?;
        }
        self.summary.server_weeks_skipped = self.unsettled.values().map(|servers| servers.len() as u64).sum();
        self.summary.objects_skipped = self.candidates.values().map(|objects| objects.len() as u64).sum();
        for &week in weeks {
            self.verify_totals_of_week(week).await?;
        }
        let windows: Vec<WindowKey> = match is_whole {
            true => self.shared.engine.call(|thread| Ok(thread.state().engine.model().begun_windows())).await?,
            false => weeks.iter().map(|&week| week.into()).collect(),
        };
        for window in windows {
            self.verify_boards(window).await?;
        }
        if is_whole {
            self.verify_bounds().await?;
        }
        self.disconnect().await;
        let bounds = self.different_weeks.first().zip(self.different_weeks.last());
        self.summary.resend_weeks =
            bounds.map(|(&first, &last)| WeekRange { first: week_label(first), last: week_label(last) });
        Ok(())
    }

    /// Compares the totals of maps in a week, and finds rows of servers that there are not.
    async fn verify_totals_of_week(&mut self, week: WeekKey) -> Result<(), ApiError> {
        let found = self.connected().await?.verify_map_totals(week).await.map_err(failed)?;
        self.summary.rows += found.row_count();
        for difference in found.differences {
            let map = difference.number("map");
            if map.is_none_or(|map| !self.different.contains(&(week, MAP_WEEK, map))) {
                self.report(Some(week), None, difference).await?;
            }
        }
        let of_servers = self.connected().await?.servers_of_week(week).await.map_err(failed)?;
        let unknown = self.shared.engine.call(move |thread| {
            let is_unknown = |difference: &RowDifference| {
                difference
                    .number("server")
                    .is_none_or(|server| !thread.state().engine.model().has_server(ServerKey(server)))
            };
            Ok(of_servers.into_iter().filter(is_unknown).collect::<Vec<_>>())
        });
        for difference in unknown.await? {
            self.report(Some(week), None, difference).await?;
        }
        Ok(())
    }

    /// Finds rows that are later than the state.
    async fn verify_bounds(&mut self) -> Result<(), ApiError> {
        for is_last in [false, true] {
            let Some(bounds) = self.shared.engine.bounds().await.map_err(|_| EngineEnded)? else { break };
            let found = self.connected().await?.verify_bounds(&bounds).await.map_err(failed)?;
            // Rows may have been written since the bounds were read.
            if is_last {
                for difference in found.differences {
                    self.report(None, None, difference).await?;
                }
            } else if found.differences.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// The connection to the database.
    async fn connected(&mut self) -> Result<&mut Archive, ApiError> {
        if self.archive.is_none() {
            let mut archive = Archive::connect_to_read(&self.settings).await.map_err(failed)?;
            archive.check_schema().await.map_err(failed)?;
            self.archive = Some(archive);
        }
        Ok(self.archive.as_mut().expect("just connected"))
    }

    async fn disconnect(&mut self) {
        if let Some(archive) = self.archive.take() {
            archive.close().await;
        }
    }

    /// Waits for the end of a pass of the archive's worker, an interval at most.
    async fn wait_for_pass(&mut self) -> Result<(), ApiError> {
        // The database closes connections that are idle for long.
        self.disconnect().await;
        let passes = || self.shared.archive_worker_status().map(|status| status.passes);
        let (before, limit) = (passes(), Duration::from_secs(self.settings.interval_s.into()));
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
        self.summary.resend_everything |= week.is_none();
        let column = if difference.table == MAP_WEEK { "map" } else { "player" };
        if let Some((week, number)) = week.zip(difference.number(column)) {
            self.different.insert((week, difference.table, number));
        }
        self.summary.differences += 1;
        if self.summary.listed == LISTED_MAX {
            return Ok(());
        }
        self.summary.listed += 1;
        // Week and server are named beside the key.
        let named: &[&str] = match (week, url) {
            (Some(_), Some(_)) => &["week", "server"],
            (Some(_), None) => &["week"],
            (None, _) => &[],
        };
        let key = difference.key_without(named);
        let RowDifference { table, column, expected, found, .. } = difference;
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

const MAP_WEEK: &str = "map_week";
const PLAYER_WEEK: &str = "player_week";
const PLAYER_TOTAL: &str = "player_total";

fn failed(error: ArchiveError) -> ApiError {
    ApiError::new(ErrorCode::Refused, error.to_string())
}

/// A resync is in progress.
fn incomplete() -> ApiError {
    let message = "a resync is in progress, or the outbox is full, so the archive is incomplete: try again when `clqd \
                   status` shows no resync";
    ApiError::new(ErrorCode::Refused, message)
}
