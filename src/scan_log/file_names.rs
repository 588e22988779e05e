//! Names of the files of one scan log, as the first versions of clqd wrote them: `FILE` is the newest,
//! `FILE.1.zst` the newest closed one.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// The log that a file belongs to, and its place among the files of that log, the oldest first.
pub fn place_in_log(file: &Path) -> (PathBuf, Reverse<u32>) {
    let parse = || {
        let (log, number) = file.file_name()?.to_str()?.strip_suffix(".zst")?.rsplit_once('.')?;
        Some((file.with_file_name(log), number.parse().ok()?))
    };
    match parse() {
        Some((log, number)) => (log, Reverse(number)),
        None => (file.to_owned(), Reverse(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_file_of_a_log_is_first() {
        let place = |name: &str| place_in_log(Path::new(name));
        let places = ["d/scans.jsonl.10.zst", "d/scans.jsonl.2.zst", "d/scans.jsonl.1.zst", "d/scans.jsonl"].map(place);
        assert!(places.is_sorted() && places.iter().all(|(log, _)| *log == places[3].0));
        assert_eq!(place("d/old.zst").0, Path::new("d/old.zst"));
    }
}
