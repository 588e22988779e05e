//! `clqd backup` of a running daemon: the engine thread writes a checkpoint, another thread copies it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Shared;
use crate::api::requests::BackupRow;
use crate::api::{ApiError, ErrorCode, Line, Progress};
use crate::store::{BackupSummary, StoreError, dir_error, is_same_disk};
use crate::web::Lines;

/// How often the client's connection is checked.
const CLIENT_CHECK_EVERY: Duration = Duration::from_secs(2);

/// Cancels the copy when the client disconnects.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    pub(super) async fn backup(&self, dir: String, lines: &Lines<BackupRow>) -> Result<Vec<String>, ApiError> {
        let state_dir = self.config.lock().expect("config lock poisoned").state_dir.clone();
        if let Some(problem) = dir_error(Path::new(&dir), &state_dir) {
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        }
        let (summary, missing) = self.write_backup(&dir, lines).await?;
        let BackupSummary { now_ms: latest_event_ms, bytes, records } = summary;
        let backup = BackupRow { dir, latest_event_ms, bytes, records };
        lines.send(backup).await?;
        let note = || {
            format!(
                "{missing} changes wait in memory because the disk of the state is nearly full; they are not in the backup"
            )
        };
        Ok((missing > 0).then(note).into_iter().collect())
    }

    /// Writes a backup into a new directory. Returns what it has, and how many changes are missing.
    pub(super) async fn write_backup<L: Line>(
        &self,
        dir: &str,
        lines: &Lines<L>,
    ) -> Result<(BackupSummary, usize), ApiError> {
        let (state_dir, disk_free_bytes_min) = {
            let config = self.config.lock().expect("config lock poisoned");
            (config.state_dir.clone(), config.store.disk_free_bytes_min)
        };
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let _stop = CancelOnDrop(is_cancelled.clone());
        let asking = self.engine.call_later(|thread, reply| {
            thread.backup_source(reply);
            Ok(())
        });
        let asking = async { Ok(asking.await?) };
        let (source, missing) = while_client_connected(asking, lines).await?;
        let path = dir.to_owned();
        // The backup must not use the space that is reserved for the state, especially while
        // commits are paused.
        let reserve_bytes = if is_same_disk(Path::new(dir), &state_dir) { disk_free_bytes_min } else { 0 };
        let writing = blocking(move || {
            let written = source.and_then(|source| source.write(Path::new(&path), reserve_bytes, &is_cancelled));
            written.map_err(StoreError::of_running_daemon)
        });
        let summary = while_client_connected(writing, lines).await?;
        tracing::info!(dir, bytes = summary.bytes, "backup written");
        Ok((summary, missing))
    }
}

/// Waits for `work`, unless the client disconnects.
async fn while_client_connected<T, L: Line>(
    work: impl Future<Output = Result<T, ApiError>>,
    lines: &Lines<L>,
) -> Result<T, ApiError> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return result,
            () = tokio::time::sleep(CLIENT_CHECK_EVERY) => lines.progress(Progress::default()).await?,
        }
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?.map_err(failed)
}

fn failed(error: StoreError) -> ApiError {
    let text = format!("{:#}", anyhow::Error::new(error));
    let hint = match text.contains("Read-only file system") || text.contains("ermission denied") {
        true => {
            "; the daemon writes the backup itself: name a directory that its user may write to (with the systemd unit \
                 below /var/lib/clqd-backup)"
        }
        false => "",
    };
    ApiError::new(ErrorCode::Refused, format!("{text}{hint}"))
}
