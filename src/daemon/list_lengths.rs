//! The lengths of the lists that were imported last, in a file of the state directory. A list that is much
//! longer than the last one may be forged, and is not applied.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The name of the file in the state directory.
const FILE: &str = "import-lengths.json";

/// Lists with fewer servers are always applied.
const CHECKED_SERVERS_MIN: usize = 1_000;

/// How many times as long as the last one a list may be.
const GROWTH_MAX: usize = 10;

/// The lengths by the URLs of the lists, as they are printed.
#[derive(Debug)]
pub(super) struct ListLengths {
    path: PathBuf,
    servers: BTreeMap<String, usize>,
}

impl ListLengths {
    /// Without a file, or with one that cannot be read, no list has a last length.
    pub(super) fn open(state_dir: &Path) -> ListLengths {
        let path = state_dir.join(FILE);
        let read = fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        let servers = read.unwrap_or_else(|error: io::Error| {
            if error.kind() != ErrorKind::NotFound {
                let path = path.display();
                tracing::warn!("{path}: {error}; the next list of each import is applied, whatever its length");
            }
            BTreeMap::new()
        });
        ListLengths { path, servers }
    }

    /// Whether a list with so many servers, of which so many are known, may be applied. Error: the
    /// length of the last one.
    pub(super) fn check(&self, list: &str, servers: usize, known: usize) -> Result<(), usize> {
        match self.servers.get(list) {
            Some(&last) if servers >= CHECKED_SERVERS_MIN && servers > GROWTH_MAX * last.max(known) => Err(last),
            _ => Ok(()),
        }
    }

    /// A list was applied.
    pub(super) fn set(&mut self, list: &str, servers: usize) {
        if self.servers.insert(list.to_owned(), servers) == Some(servers) {
            return;
        }
        if let Err(error) = self.write() {
            tracing::warn!("{}: {error}; a restart forgets the lengths of imported lists", self.path.display());
        }
    }

    fn write(&self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&self.servers)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_ten_times_as_long_as_the_last_one_is_refused_unless_its_servers_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let mut lengths = ListLengths::open(dir.path());
        assert_eq!(lengths.check("a", 50_000, 0), Ok(()), "the first list");
        lengths.set("a", 200);
        lengths.set("b", 7);
        let lengths = ListLengths::open(dir.path());
        assert_eq!(lengths.check("a", 2_000, 0), Ok(()));
        assert_eq!(lengths.check("a", 2_001, 200), Err(200));
        assert_eq!(lengths.check("a", 2_001, 201), Ok(()), "a tenth is known");
        assert_eq!(lengths.check("b", 999, 0), Ok(()), "a short list");
        fs::write(dir.path().join(FILE), "{\"a\":").unwrap();
        assert_eq!(ListLengths::open(dir.path()).check("a", 50_000, 0), Ok(()));
    }
}
