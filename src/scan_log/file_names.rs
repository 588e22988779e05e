//! Names of the files of one scan log, as the first versions of clqd wrote them: `FILE` is the newest,
//! `FILE.1.zst` the newest closed one. A closed file is `FILE.1.packing` until it is compressed.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// The file with the same content as another, if it exists: `FILE.1.zst` for the `FILE.1.packing` that
/// it was compressed from, and either of the two for an unfinished `FILE.1.tmp`.
pub fn complete_copy(path: &Path) -> Option<PathBuf> {
    let compressed = path.with_extension("zst");
    let rotated = path.with_extension("packing");
    let is_numbered = path.file_stem().is_some_and(|stem| {
        let number = Path::new(stem).extension().and_then(|number| number.to_str());
        number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    });
    let candidates: &[PathBuf] = match path.extension()?.to_str()? {
        "tmp" => &[compressed, rotated],
        "packing" => &[compressed],
        _ => return None,
    };
    candidates.iter().find(|file| is_numbered && file.exists()).cloned()
}

/// The log that a file belongs to, and its place among the files of that log, the oldest first.
pub fn place_in_log(file: &Path) -> (PathBuf, Reverse<u32>) {
    let parse = || {
        let name = file.file_name()?.to_str()?;
        let name = name.strip_suffix(".zst").or_else(|| name.strip_suffix(".packing"))?;
        let (log, number) = name.rsplit_once('.')?;
        Some((file.with_file_name(log), number.parse().ok()?))
    };
    match parse() {
        Some((log, number)) => (log, Reverse(number)),
        None => (file.to_owned(), Reverse(0)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn unfinished_compression_is_detected_by_file_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let touch = |name: &str| fs::write(path(name), "").unwrap();
        let copy_of = |name: &str| complete_copy(&path(name));
        assert_eq!(copy_of("scans.jsonl.1.tmp"), None);
        touch("scans.jsonl.1.packing");
        assert_eq!(copy_of("scans.jsonl.1.tmp"), Some(path("scans.jsonl.1.packing")));
        assert_eq!(copy_of("scans.jsonl.1.packing"), None);
        touch("scans.jsonl.1.zst");
        for name in ["scans.jsonl.1.tmp", "scans.jsonl.1.packing"] {
            assert_eq!(copy_of(name), Some(path("scans.jsonl.1.zst")));
        }
        assert_eq!((copy_of("scans.jsonl"), copy_of("scans.jsonl.1.zst")), (None, None));
        touch("old.zst");
        assert_eq!(copy_of("old.tmp"), None);
    }
}
