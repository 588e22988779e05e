//! The lengths of the lists that were imported last, in a file of the state directory. A list that is much
//! longer than the last one may be forged, and is not applied.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::master::ListUrl;

/// The name of the file in the state directory.
const FILE: &str = "import-lengths.json";

/// Lists with fewer servers are always applied.
const CHECKED_SERVERS_MIN: usize = 1_000;

/// How many times as long as the last one a list may be.
const GROWTH_MAX: usize = 10;

/// The lengths by [`key_of`] the lists.
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
    pub(super) fn check(&self, list: &ListUrl, servers: usize, known: usize) -> Result<(), usize> {
        match self.servers.get(&key_of(list)) {
            Some(&last) if servers >= CHECKED_SERVERS_MIN && servers > GROWTH_MAX * last.max(known) => Err(last),
            _ => Ok(()),
        }
    }

    /// A list was applied. An empty one is no measure for the next one. An incomplete one is only if no list was complete,
    /// and may be a tenth of the whole.
    pub(super) fn set(&mut self, list: &ListUrl, servers: usize, is_complete: bool) {
        let key = key_of(list);
        if servers == 0 || !is_complete && self.servers.contains_key(&key) {
            return;
        }
        let length = if is_complete { servers } else { GROWTH_MAX * servers };
        if self.servers.insert(key, length) == Some(length) {
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

/// The URL as it is printed. If that is without a query, which may hold an API key, a hash of the whole URL follows.
fn key_of(list: &ListUrl) -> String {
    let (printed, whole) = (list.to_string(), String::from(list.clone()));
    if printed == whole {
        return printed;
    }
    let hash = Sha256::digest(&whole);
    let digits: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{printed}#{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ListUrl {
        text.parse().unwrap()
    }

    #[test]
    fn lists_that_differ_in_the_query_have_a_length_each_and_the_query_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|filter| url(&format!("https://h/v1/?key=SECRET&filter={filter}")));
        let mut lengths = ListLengths::open(dir.path());
        lengths.set(&a, 120, true);
        assert_eq!((lengths.check(&a, 3_500, 0), lengths.check(&b, 3_500, 0)), (Err(120), Ok(())));
        lengths.set(&b, 3_500, true);
        lengths.set(&url("https://h/v1/"), 7, true);
        let file = fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert!(file.contains("\"https://h/v1/\":7") && !file.contains("SECRET"), "{file}");
        let lengths = ListLengths::open(dir.path());
        assert_eq!((lengths.check(&a, 3_500, 0), lengths.check(&b, 35_001, 0)), (Err(120), Err(3_500)));
    }

    #[test]
    fn incomplete_list_may_be_a_tenth_of_the_whole_and_an_empty_one_is_no_measure() {
        let dir = tempfile::tempdir().unwrap();
        let list = url("dpmaster://a/68");
        let mut lengths = ListLengths::open(dir.path());
        lengths.set(&list, 0, true);
        assert_eq!(lengths.check(&list, 50_000, 0), Ok(()));
        lengths.set(&list, 200, false);
        lengths.set(&list, 900, false);
        assert_eq!(lengths.check(&list, 3_500, 0), Ok(()), "the first complete list");
        assert_eq!(lengths.check(&list, 20_001, 0), Err(2_000));
        lengths.set(&list, 3_500, true);
        lengths.set(&list, 200, false);
        assert_eq!(lengths.check(&list, 35_000, 0), Ok(()));
        assert_eq!(lengths.check(&list, 35_001, 0), Err(3_500));
    }

    #[test]
    fn list_ten_times_as_long_as_the_last_one_is_refused_unless_its_servers_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["dpmaster://a/68", "dpmaster://b/68"].map(url);
        let mut lengths = ListLengths::open(dir.path());
        assert_eq!(lengths.check(&a, 50_000, 0), Ok(()), "the first list");
        lengths.set(&a, 200, true);
        lengths.set(&b, 7, true);
        let lengths = ListLengths::open(dir.path());
        assert_eq!(lengths.check(&a, 2_000, 0), Ok(()));
        assert_eq!(lengths.check(&a, 2_001, 200), Err(200));
        assert_eq!(lengths.check(&a, 2_001, 201), Ok(()), "a tenth is known");
        assert_eq!(lengths.check(&b, 999, 0), Ok(()), "a short list");
        fs::write(dir.path().join(FILE), "{\"a\":").unwrap();
        assert_eq!(ListLengths::open(dir.path()).check(&a, 50_000, 0), Ok(()));
    }
}
