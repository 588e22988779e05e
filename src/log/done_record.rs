//! The record of the forgotten names that a log does not contain any more: the file `forgotten.done` in
//! its directory. It has the times of the requests but no hashes, because a hash could be used to check a
//! guessed name. Without the file, or if it cannot be read, all segments are checked again.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::LogError;
use super::sync_dir;
use crate::model::NameHash;

const FILE: &str = "forgotten.done";

/// Requests whose names are in no segment.
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
        let text = fs::read(log.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the record to disk, all of it or nothing.
    pub fn write(&self, log: &Path) -> Result<(), LogError> {
        let (path, partial) = (log.join(FILE), log.join("forgotten.tmp"));
        let text = serde_json::to_vec(self).expect("numbers are serialisable");
        let written = File::create(&partial).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&partial, &path)
        });
        written.map_err(LogError::io("write", &path))?;
        sync_dir(log)
    }

    /// How many of these names, given with the time of the request, the log may contain.
    pub fn pending(&self, forgotten: &[(NameHash, i64)]) -> usize {
        forgotten.iter().filter(|(_, forgotten_ms)| self.forgotten_ms.binary_search(forgotten_ms).is_err()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_requests_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let hash = |name, forgotten_ms| (NameHash::of("baseq3", name), forgotten_ms);
        let forgotten = [hash("a", 7), hash("b", 7), hash("c", 9)];
        assert_eq!(DoneRecord::read(dir.path()).pending(&forgotten), 3);
        DoneRecord::new(vec![7, 7]).write(dir.path()).unwrap();
        // The clock was set back since.
        assert_eq!(DoneRecord::read(dir.path()).pending(&[&forgotten[..], &[hash("d", 3)]].concat()), 2);
        fs::write(dir.path().join(FILE), "{\"forgotten").unwrap();
        assert_eq!(DoneRecord::read(dir.path()).pending(&forgotten), 3);
    }
}
