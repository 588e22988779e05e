//! The files of a scan log besides the active one: names, order, compression.
//!
//! `FILE.1.zst` is the newest compressed file. A rotated file is named `FILE.1.packing` until
//! it is compressed. The compressed file is renamed into place before the plain file is
//! deleted; if both exist, the plain file can be deleted. So an interrupted compression can
//! always be repeated.
//!
//! `file-rotate` and `tracing-appender` are not used, because they do not write the file and its
//! directory to disk before the caller continues.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::active_file::{RecordError, record_error};

/// Renames the active file to the rotated one, and moves the compressed ones by one number.
/// `keep_files` is the number of compressed files kept; 0: all. Error: the active file is not
/// renamed.
pub(super) fn rotate(path: &Path, keep_files: u32) -> Result<(), RecordError> {
    let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(record_error("rename", from));
    let count = (1..).take_while(|&n| compressed_file(path, n).exists()).last().unwrap_or(0);
    let moved = if keep_files == 0 { count } else { count.min(keep_files - 1) };
    for n in (1..=moved).rev() {
        rename(&compressed_file(path, n), &compressed_file(path, n + 1))?;
    }
    // If one file is kept, it is deleted when it is replaced. It must not exist together
    // with a rotated file, because that would mean that the latter is compressed.
    if moved < count {
        let oldest = compressed_file(path, 1);
        fs::remove_file(&oldest).or_else(ignore_not_found).map_err(record_error("remove", &oldest))?;
    }
    rename(path, &rotated_file(path))
}

/// Compresses the rotated file. If the compressed file exists, only deletes the plain one.
pub(super) fn compress(path: &Path) -> Result<(), RecordError> {
    let (rotated, compressed) = (rotated_file(path), compressed_file(path, 1));
    if !compressed.exists() {
        compress_file(&rotated, &compressed).map_err(record_error("compress", &rotated))?;
    }
    fs::remove_file(&rotated).map_err(record_error("remove", &rotated))
}

fn compress_file(rotated: &Path, compressed: &Path) -> io::Result<()> {
    let partial = compressed.with_extension("tmp");
    let mut out = zstd::Encoder::new(File::create(&partial)?, 3)?;
    // Detects flipped bits.
    out.include_checksum(true)?;
    io::copy(&mut File::open(rotated)?, &mut out)?;
    out.finish()?.sync_all()?;
    fs::rename(&partial, compressed)?;
    // The plain file must not be deleted before the compressed one has its name.
    sync_directory(compressed)
}

fn ignore_not_found(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// The compressed files of an active one, oldest first. While a file is being rotated
/// and compressed, one number is missing.
pub fn compressed_files(path: &Path) -> Vec<PathBuf> {
    let exists = |n: u32| compressed_file(path, n).exists();
    let numbers = (1..).take_while(|&n| exists(n) || exists(n + 1));
    let mut files: Vec<PathBuf> = numbers.map(|n| compressed_file(path, n)).filter(|file| file.exists()).collect();
    files.reverse();
    files
}

/// The file with the same content as another, if it exists: `FILE.1.zst` for the rotated file that
/// it was compressed from, and either of the two for an unfinished compressed file.
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

/// `FILE.1.packing`: the rotated file until it is compressed. It is newer than the compressed
/// ones.
pub fn rotated_file(path: &Path) -> PathBuf {
    compressed_file(path, 1).with_extension("packing")
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

/// `FILE.n.zst`; 1 is the newest.
pub(super) fn compressed_file(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}.zst"));
    name.into()
}

/// Writes the directory entries of a path and its neighbours to disk.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_found_while_one_is_compressed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        for numbers in [&[][..], &[1], &[2], &[1, 2, 3], &[2, 3, 4], &[1, 2, 4]] {
            numbers.iter().for_each(|&n| fs::write(compressed_file(&path, n), "").unwrap());
            let files = compressed_files(&path);
            assert!(
                files.iter().eq(numbers.iter().rev().map(|&n| compressed_file(&path, n)).collect::<Vec<_>>().iter())
            );
            files.iter().for_each(|file| fs::remove_file(file).unwrap());
        }
    }

    #[test]
    fn unfinished_compression_is_detected_by_file_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let partial = compressed_file(&path, 1).with_extension("tmp");
        let touch = |path: &Path| fs::write(path, "").unwrap();
        assert_eq!(complete_copy(&partial), None);
        touch(&rotated_file(&path));
        assert_eq!((complete_copy(&partial), complete_copy(&rotated_file(&path))), (Some(rotated_file(&path)), None));
        touch(&compressed_file(&path, 1));
        assert_eq!(
            (complete_copy(&partial), complete_copy(&rotated_file(&path))),
            (Some(compressed_file(&path, 1)), Some(compressed_file(&path, 1)))
        );
        assert_eq!((complete_copy(&path), complete_copy(&compressed_file(&path, 1))), (None, None));
        touch(&dir.path().join("old.zst"));
        assert_eq!(complete_copy(&dir.path().join("old.tmp")), None);
    }
}
