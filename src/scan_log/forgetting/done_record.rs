//! The record of the forgotten names that a log does not contain any more: a file beside the log,
//! `.FILE.forgotten`. It has the times of the requests but no hashes, because a hash could be used
//! to check a guessed name. Without the file, or if it cannot be read, all files of the log are
//! checked again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::hidden_file;
use crate::model::NameHash;
use crate::scan_log::rotation::sync_directory;

/// Requests whose names are in no file of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneRecord {
    /// Unix ms, in order.
    forgotten_ms: Vec<i64>,
}

impl DoneRecord {
    pub fn new(forgotten_ms: Vec<i64>) -> DoneRecord {
        DoneRecord { forgotten_ms }
    }

    /// Reads the record of a log. Empty if there is none.
    pub fn read(log: &Path) -> DoneRecord {
        let text = fs::read(hidden_file(log, ".forgotten")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the record to disk, all of it or nothing.
    pub fn write(&self, log: &Path) -> io::Result<()> {
        let (path, partial) = (hidden_file(log, ".forgotten"), hidden_file(log, ".forgotten.tmp"));
        let mut file = File::create(&partial)?;
        file.write_all(&serde_json::to_vec(self).expect("numbers are serialisable"))?;
        file.sync_all()?;
        fs::rename(&partial, &path)?;
        sync_directory(&path)
    }

    /// How many of these names, given with the time of the request, the log may contain.
    pub fn pending(&self, forgotten: &[(NameHash, i64)]) -> usize {
        forgotten.iter().filter(|(_, forgotten_ms)| self.forgotten_ms.binary_search(forgotten_ms).is_err()).count()
    }
}
