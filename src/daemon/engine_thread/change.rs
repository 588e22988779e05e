//! Requests that change something. They are executed in turn, and answered when the change is on disk.

use tokio::sync::oneshot;

use super::{EngineEnded, EngineHandle, EngineThread};
use crate::api::{ApiError, ErrorCode, Request};
use crate::engine::{AdminError, CorrectionError};
use crate::store::StoreError;

/// A request that the engine thread executes.
pub trait Change: Request {
    /// Takes some milliseconds at most, because scans wait meanwhile.
    fn apply(&self, thread: &mut EngineThread, now_ms: i64) -> Result<Self::Answer, ChangeError>;

    /// Shows readers the change. It is not called if `apply` refused.
    fn commit(thread: &mut EngineThread) -> anyhow::Result<()> {
        thread.commit()
    }
}

/// Why a change was not made.
pub enum ChangeError {
    Refused(ApiError),
    /// The engine thread cannot go on.
    Fatal(anyhow::Error),
}

impl ChangeError {
    pub(super) fn refused(message: impl Into<String>) -> ChangeError {
        ChangeError::Refused(ApiError::new(ErrorCode::Refused, message))
    }
}

impl From<ApiError> for ChangeError {
    fn from(error: ApiError) -> ChangeError {
        ChangeError::Refused(error)
    }
}

impl From<anyhow::Error> for ChangeError {
    fn from(error: anyhow::Error) -> ChangeError {
        ChangeError::Fatal(error)
    }
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> ChangeError {
        ChangeError::Fatal(error.into())
    }
}

impl From<AdminError> for ChangeError {
    fn from(error: AdminError) -> ChangeError {
        match error {
            AdminError::Store(error) => ChangeError::Fatal(StoreError::from(error).into()),
            error => ChangeError::Refused(admin_error(error)),
        }
    }
}

impl From<CorrectionError> for ChangeError {
    fn from(error: CorrectionError) -> ChangeError {
        let code = match error {
            CorrectionError::View(error) => return ChangeError::Refused(error.into()),
            CorrectionError::SamePlayer(_) => ErrorCode::Refused,
            _ => ErrorCode::NotFound,
        };
        ChangeError::Refused(ApiError::new(code, error.to_string()))
    }
}

pub(super) fn admin_error(error: AdminError) -> ApiError {
    let code = match error {
        AdminError::UnknownServer(_) | AdminError::RemovedServer(_) | AdminError::UnknownTag { .. } => {
            ErrorCode::NotFound
        }
        AdminError::TooManyServers(_)
        | AdminError::TooManyTags { .. }
        | AdminError::NotScheduled(..)
        | AdminError::TooManyBoosts => ErrorCode::Refused,
        AdminError::Store(_) => ErrorCode::Internal,
    };
    ApiError::new(code, error.to_string())
}

impl EngineHandle {
    /// Executes a request. The answer comes when the change is on disk.
    pub(in crate::daemon) async fn change<R: Change>(
        &self,
        request: R,
    ) -> Result<Result<R::Answer, ApiError>, EngineEnded> {
        self.call_later(move |thread, reply| thread.change(&request, reply)).await
    }
}

impl EngineThread {
    fn change<R: Change>(
        &mut self,
        request: &R,
        reply: oneshot::Sender<Result<R::Answer, ApiError>>,
    ) -> anyhow::Result<()> {
        let now_ms = self.clock.now_ms();
        if reply.is_closed() {
            // The client has disconnected.
            return Ok(());
        }
        if !self.disk.check(now_ms) {
            _ = reply.send(Err(self.disk.refusal()));
            return Ok(());
        }
        let answer = match request.apply(self, now_ms) {
            Ok(answer) => {
                R::commit(self)?;
                Ok(answer)
            }
            Err(ChangeError::Refused(error)) => {
                // The time of the command was noted.
                self.commit()?;
                Err(error)
            }
            Err(ChangeError::Fatal(error)) => return Err(error),
        };
        if answer.is_err() && (self.disk.is_paused() || self.log.awaits_database(now_ms)) {
            // Nothing is written until there is space, or the database answers.
            _ = reply.send(answer);
        } else {
            self.reply_when_synced(reply, answer);
        }
        Ok(())
    }
}
