//! `clqd archive resend`: queues weeks for the archive, in steps.

use super::Shared;
use crate::api::requests::{ResendRow, WeekRange};
use crate::api::{ApiError, ErrorCode};
use crate::model::ServerKey;
use crate::model::archive::ResendStep;
use crate::model::calendar::week_label;

impl Shared {
    /// Replies when everything that it reports is on disk.
    pub(super) async fn resend(&self, range: Option<WeekRange>, take_over: bool) -> Result<ResendRow, ApiError> {
        let range = range.filter(|_| !take_over);
        let everything = range.is_none();
        let weeks = self.engine.call(|thread| Ok(thread.archived_weeks(range))).await??;
        let labels: Vec<String> = weeks.iter().copied().map(week_label).collect();
        let mut server_weeks = 0;
        if everything {
            server_weeks = self.engine.call_later(move |thread, reply| thread.resend_all(take_over, reply)).await??;
        }
        for &week in weeks.iter().filter(|_| !everything) {
            let mut from = Some(ServerKey(1));
            while let Some(server) = from {
                let step = self.engine.call_later(move |thread, reply| thread.resend_week(week, server, reply));
                match step.await?? {
                    ResendStep::Queued { servers, next } => {
                        server_weeks += servers;
                        from = next;
                    }
                    ResendStep::OutboxTooLong => {
                        self.engine.want_archive();
                        let message = format!(
                            "the outbox has more than half of archive.outbox_entries_max; {server_weeks} weeks of servers \
                             were queued, up to {}: repeat the rest when the archive has caught up",
                            week_label(week)
                        );
                        return Err(ApiError::new(ErrorCode::Busy, message));
                    }
                }
            }
        }
        self.engine.want_archive();
        tracing::info!(weeks = labels.join(", "), server_weeks, everything, "an admin had weeks archived again");
        Ok(ResendRow { weeks: labels, server_weeks, everything })
    }
}
