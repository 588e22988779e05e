//! Handles commands of `clqd archive`: each is a step of some milliseconds.

use std::collections::BTreeSet;

use tokio::sync::oneshot;

use super::EngineThread;
use crate::api::requests::WeekRange;
use crate::api::{ApiError, ErrorCode};
use crate::engine::WeekRangeError;
use crate::model::archive::{ExpectedObjects, ExpectedStep, ResendStep, WeekChunk, WeekChunkRequest};
use crate::model::calendar::parse_week_label;
use crate::model::outbox::{ArchiveStep, ResyncCursor};
use crate::model::{ServerKey, WeekKey};
use crate::state::State;

/// Servers whose week is queued in one step: some milliseconds.
const SERVERS_PER_RESEND_STEP: u32 = 2_000;

/// Servers in one step of a verification.
const VERIFIED_SERVERS_MAX: usize = 500;

/// Names, or servers on which best positions or sessions are read, in one step of a verification.
const VERIFIED_OBJECTS_MAX: usize = 2_000;

/// Rows of weeks after which a step of a verification ends: 10 ms.
const VERIFIED_ROWS_MAX: usize = 5_000;

impl EngineThread {
    pub(in crate::daemon) fn archived_weeks(&self, weeks: Option<WeekRange>) -> Result<Vec<WeekKey>, ApiError> {
        let parse = |label: &str| {
            parse_week_label(label).map_err(|error| ApiError::new(ErrorCode::BadRequest, error.to_string()))
        };
        let range = match weeks {
            Some(WeekRange { first, last }) => Some((parse(&first)?, parse(&last)?)),
            None => None,
        };
        self.state.engine.model().archived_weeks(range).map_err(|error| {
            let code = match error {
                WeekRangeError::NoArchive => ErrorCode::Refused,
                WeekRangeError::Reversed { .. } => ErrorCode::BadRequest,
                WeekRangeError::NotKept { .. } => ErrorCode::NotFound,
            };
            ApiError::new(code, error.to_string())
        })
    }

    pub(in crate::daemon) fn resend_week(
        &mut self,
        week: WeekKey,
        from: ServerKey,
        reply: oneshot::Sender<Result<ResendStep, ApiError>>,
    ) -> anyhow::Result<()> {
        self.commit()?;
        if self.disk.is_paused() {
            _ = reply.send(Err(self.disk.refusal()));
            return Ok(());
        }
        let State { engine, store } = &self.state;
        let (step, event) = engine.model().plan_resend(store, week, from, SERVERS_PER_RESEND_STEP);
        event.into_iter().for_each(|event| self.apply_archive_step(event));
        self.commit()?;
        self.reply_when_synced(reply, Ok(step));
        Ok(())
    }

    pub(in crate::daemon) fn resend_all(
        &mut self,
        adopts: bool,
        reply: oneshot::Sender<Result<u64, ApiError>>,
    ) -> anyhow::Result<()> {
        if !self.disk.check(self.clock.now_ms()) {
            _ = reply.send(Err(self.disk.refusal()));
            return Ok(());
        }
        self.apply_archive_step(ArchiveStep::Resync { adopts });
        self.commit()?;
        self.reply_when_synced(reply, Ok(self.state.engine.model().server_weeks()));
        Ok(())
    }

    pub(in crate::daemon) fn expected_weeks(
        &mut self,
        week: WeekKey,
        from: ServerKey,
        only: Option<&BTreeSet<ServerKey>>,
    ) -> anyhow::Result<Result<ExpectedStep, ApiError>> {
        self.commit()?;
        if self.disk.is_paused() {
            // Nothing is archived meanwhile.
            return Ok(Err(self.disk.refusal()));
        }
        let State { engine, store } = &mut self.state;
        Ok(Ok(engine.expected_weeks(store, week, from, only, VERIFIED_SERVERS_MAX, VERIFIED_ROWS_MAX)?))
    }

    /// `None`: a resync is in progress.
    pub(in crate::daemon) fn expected_objects(
        &mut self,
        from: ResyncCursor,
    ) -> anyhow::Result<Result<Option<ExpectedObjects>, ApiError>> {
        self.commit()?;
        if self.disk.is_paused() {
            return Ok(Err(self.disk.refusal()));
        }
        let State { engine, store } = &self.state;
        Ok(Ok(engine.model().expected_objects(store, from, VERIFIED_OBJECTS_MAX, VERIFIED_ROWS_MAX)?))
    }

    pub(in crate::daemon) fn expected_week_chunk(&mut self, request: WeekChunkRequest) -> anyhow::Result<WeekChunk> {
        Ok(self.state.engine.expected_week_chunk(&self.state.store, request)?)
    }

    pub(in crate::daemon) fn end_verification(&mut self) {
        self.state.engine.end_verification();
    }
}
