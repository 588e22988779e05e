//! Sends the state of this engine to another one, as a backup that it writes first.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::api::requests::StatePart;
use crate::api::{ApiError, ErrorCode};
use crate::daemon::Shared;
use crate::daemon::backup::blocking;
use crate::log::RecordedSettings;
use crate::state::recovery::COPIED_SETTINGS;
use crate::store::{backup_files, io_error};
use crate::web::Lines;

/// Bytes of a file in one part.
const PART_BYTES: u64 = 256 << 10;

/// Directory of the copy: in the state directory, since the daemon may write nowhere else.
const COPY: &str = "copy";

/// Removes what was left of a copy when the process was killed.
pub(in crate::daemon) fn remove_leftovers(state_dir: &Path) {
    for name in [COPY.to_owned(), format!("{COPY}.partial")] {
        Temporary(state_dir.join(name)).remove();
    }
}

/// A directory that is removed with everything in it.
struct Temporary(PathBuf);

impl Temporary {
    fn remove(&self) {
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!("cannot remove {}: {error}", self.0.display());
            }
            _ => {}
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Shared {
    pub async fn copy_state(&self, lines: &Lines<StatePart>) -> Result<Vec<String>, ApiError> {
        if self.cluster.is_none() {
            return Err(ApiError::new(ErrorCode::NotFound, "this is the only engine: cluster.engine is empty"));
        }
        let Ok(_one) = self.copying.try_lock() else {
            return Err(ApiError::new(ErrorCode::Busy, "the state is being copied for another engine"));
        };
        let state_dir = self.config.lock().expect("config lock poisoned").state_dir.clone();
        let dir = Temporary(state_dir.join(COPY));
        let settings = self.settings_of_log().await?;
        self.write_backup(&dir.0.display().to_string(), lines).await?;
        let path = dir.0.clone();
        let files = blocking(move || backup_files(&path)).await?;
        for file in files {
            self.send_file(&dir.0, &file, lines).await?;
        }
        if self.settings_of_log().await? != settings {
            return Err(ApiError::new(ErrorCode::Busy, "the settings of the cluster have changed: copy again"));
        }
        let json = serde_json::to_vec_pretty(&settings).expect("settings are plain data");
        let (bytes, sha256) = (STANDARD.encode(&json), Some(hex(&Sha256::digest(&json))));
        lines.send(StatePart { file: COPIED_SETTINGS.to_owned(), bytes, sha256 }).await?;
        Ok(Vec::new())
    }

    async fn settings_of_log(&self) -> Result<RecordedSettings, ApiError> {
        let settings = self.engine.call(|thread| Ok(thread.log_settings())).await;
        settings.map_err(ApiError::internal)
    }

    async fn send_file(&self, dir: &Path, name: &Path, lines: &Lines<StatePart>) -> Result<(), ApiError> {
        let path = dir.join(name);
        let opened = path.clone();
        let mut file = blocking(move || File::open(&opened).map_err(io_error("open", &opened))).await?;
        let mut hash = Sha256::new();
        loop {
            let read = path.clone();
            let (next, part) = blocking(move || {
                let mut part = Vec::new();
                let taken = (&mut file).take(PART_BYTES).read_to_end(&mut part);
                taken.map(|_| (file, part)).map_err(io_error("read", &read))
            })
            .await?;
            file = next;
            hash.update(&part);
            let is_last = part.is_empty();
            lines
                .send(StatePart {
                    file: name.display().to_string(),
                    bytes: STANDARD.encode(&part),
                    sha256: is_last.then(|| hex(&hash.finalize_reset())),
                })
                .await?;
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
