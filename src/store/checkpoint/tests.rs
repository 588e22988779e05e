//! Random files against a map, and merges.

use std::collections::BTreeMap;

use super::*;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn all(files: &CheckpointFiles) -> Map {
    files.records().unwrap().collect::<Result<_, _>>().unwrap()
}

fn begin_merge_if_due(files: &mut CheckpointFiles) {
    if files.is_merge_due() {
        files.begin_merge(0);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(40))]
    /// Random files with changed and deleted records and deleted prefixes, merged now and then, have the
    /// records of a `BTreeMap`, also after they are opened again.
    #[test]
    fn files_equal_a_btree_map(
        rounds in proptest::collection::vec(
            (
                proptest::collection::btree_map("[ab]{0,6}", proptest::option::of(0_usize..200), 0..60),
                proptest::option::of("[ab]{1,3}"),
                0_u8..6,
            ),
            1..12,
        ),
        big in 0_usize..200_000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut files = CheckpointFiles::open(dir.path()).unwrap();
        let mut map = Map::new();
        for (n, (changes, prefix, then)) in rounds.into_iter().enumerate() {
            let value = |len: usize| vec![n as u8; if len == 7 { big } else { len }];
            let changes: Vec<(Vec<u8>, Option<Vec<u8>>)> =
                changes.into_iter().map(|(key, len)| (key.into_bytes(), len.map(value))).collect();
            let prefixes: Vec<Vec<u8>> = prefix.into_iter().map(String::into_bytes).collect();
            files.write(&prefixes, changes.iter().cloned()).unwrap();
            begin_merge_if_due(&mut files);
            for (key, value) in changes {
                match value {
                    Some(value) => _ = map.insert(key, value),
                    None => _ = map.remove(&key),
                }
            }
            map.retain(|key, _| !prefixes.iter().any(|prefix| key.starts_with(prefix)));
            if then == 0 {
                files.finish_merge();
                files.request_merge();
                begin_merge_if_due(&mut files);
                files.finish_merge();
                proptest::prop_assert_eq!(files.files.len(), 1);
            }
            if then == 1 {
                files = CheckpointFiles::open(dir.path()).unwrap();
                files.remove_leftovers().unwrap();
            }
            proptest::prop_assert!(all(&files) == map);
        }
    }
}

#[test]
fn merge_while_files_are_written_keeps_their_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = CheckpointFiles::open(dir.path()).unwrap();
    let mut map = Map::new();
    for n in 0..300_u32 {
        let changes: Vec<_> =
            (0..50_u32).map(|i| ((i * (n % 7 + 1)).to_be_bytes().to_vec(), n.to_be_bytes())).collect();
        let sorted: Map = changes.iter().map(|(key, value)| (key.clone(), value.to_vec())).collect();
        files.write(&[], sorted.clone().into_iter().map(|(key, value)| (key, Some(value)))).unwrap();
        begin_merge_if_due(&mut files);
        map.extend(sorted);
    }
    assert!(all(&files) == map);
    // However slow the thread of the merge was, this one or the next has all files.
    for _ in 0..2 {
        files.finish_merge();
        assert!(files.base_number() > Some(1) && all(&files) == map, "{:?}", files.files);
        begin_merge_if_due(&mut files);
    }
    files.finish_merge();
    assert!(files.files.len() <= 2 * DELTAS_MAX, "{:?}", files.files);
    let opened = CheckpointFiles::open(dir.path()).unwrap();
    assert_eq!(opened.files, files.files);
}

#[test]
fn merge_that_did_not_fit_needs_space_for_all_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = CheckpointFiles::open(dir.path()).unwrap();
    for n in [1_u32, 1_000, 1_000] {
        let changes = (0..n).map(|key| (key.to_be_bytes().to_vec(), Some(n.to_be_bytes().to_vec())));
        files.write(&[], changes).unwrap();
    }
    let all_bytes: u64 = files.files.iter().map(|file| file.bytes).sum();
    assert_eq!(files.merge_bytes(), files.files[0].bytes / 2 * 3, "hardly more than the base");
    let full = StoreError::NoDiskSpace { dir: dir.path().to_owned(), needed: 1, free: 0, advice: "" };
    let thread = std::thread::spawn(|| Err(full));
    files.merge = Some(Merge { is_cancelled: Arc::default(), thread });
    files.finish_merge();
    assert_eq!(files.merge_bytes(), all_bytes);
    files.begin_merge(0);
    files.finish_merge();
    assert_eq!((files.files.len(), files.merge_bytes()), (1, files.files[0].bytes / 2 * 3), "merged");
}

#[test]
fn what_a_killed_merge_leaves_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = CheckpointFiles::open(dir.path()).unwrap();
    for n in 0..3_u8 {
        files.write(&[], [(vec![n], Some(vec![n]))].into_iter()).unwrap();
    }
    let expected = all(&files);
    // Killed after the new base got its name.
    let merged = merge(&files.dir, &files.files, 0, &AtomicBool::new(false)).unwrap();
    drop(files);
    let files = CheckpointFiles::open(dir.path()).unwrap();
    assert_eq!(files.files, [merged]);
    files.remove_leftovers().unwrap();
    assert_eq!(file_names(&files.dir).unwrap(), [PathBuf::from("000000000003.base")]);
    assert!(all(&files) == expected);
}
