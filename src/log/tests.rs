//! Round trips, and every damage of one bit and every cut of a small log.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::engine::Outcome;
use crate::model::commit::WindowState;
use crate::model::outbox::{ArchiveStep, WriterBeat};
use crate::model::rebuild::{RebuildStep, RebuiltPlayer, RebuiltPlayers, RebuiltRow, RebuiltServer};
use crate::model::row::{MapRow, PlayerRow, Rating};
use crate::model::server::ScreenReason;
use crate::model::{
    AdminCommand, Completeness, KnownServer, NameHash, Player, ServerKey, ServerUrl, Snapshot, WeekKey, WindowKey,
    WindowType,
};

const T_MS: i64 = 1_763_683_200_000;

fn player(name: &str, points: i64) -> Player {
    Player { name: name.into(), points: Some(points), ping: Some(48), connected_ms: None, bot: false, spectator: false }
}

fn snapshot(t_ms: i64, players: Vec<Player>) -> Outcome {
    Outcome::Snapshot(Snapshot {
        t_ms,
        game: "baseq3".into(),
        map: "q3dm17".into(),
        hostname: "a server".into(),
        slots: 16,
        players,
        completeness: Completeness::Full,
        count: None,
        bots: None,
    })
}

fn url(server: u16) -> ServerUrl {
    ServerUrl::parse(&format!("quake3://10.0.0.1:{}", 27_000 + server)).unwrap()
}

fn scan(server: u16, outcome: Outcome) -> LogEvent {
    LogEvent::Scan { server: url(server), outcome }
}

/// An event in a form that can be compared.
fn text(event: &LogEvent) -> String {
    format!("{event:?}")
}

fn read_all(dir: &Path) -> Result<Vec<String>, LogError> {
    let mut reader = LogReader::open(dir)?;
    let mut events = Vec::new();
    while reader.read_batch(|event| events.push(text(&event)))?.is_some() {}
    Ok(events)
}

fn settings(dir: &Path) -> WriterSettings {
    WriterSettings { dir: dir.to_owned(), segment_bytes_max: 1 << 20, segment_ms_max: 3_600_000 }
}

/// A log whose batches are written by the thread that fills them.
struct Log {
    writer: LogWriter,
    builder: BatchBuilder,
    cut: Option<Cut>,
}

impl Log {
    fn open(settings: &WriterSettings) -> Result<Log, LogError> {
        let (writer, builder, cut) = LogWriter::open(settings, 1, T_MS)?;
        Ok(Log { writer, builder, cut })
    }

    fn append(&mut self, event: &LogEvent) {
        self.builder.append(event);
    }

    fn sync(&mut self, now_ms: i64) {
        let batch = self.builder.take(now_ms).expect("an event was added");
        self.writer.write(batch, now_ms).unwrap();
    }
}

fn open(dir: &Path) -> Log {
    Log::open(&settings(dir)).unwrap()
}

#[test]
fn unchanged_list_takes_few_bytes() {
    let mut encoder = Encoder::default();
    let mut out = Vec::new();
    let list = |points| (0..8).map(|n| player(&format!("a player's name {n}"), points)).collect();
    encoder.encode(&scan(1, snapshot(T_MS, list(1))), &mut out);
    let first = out.len();
    encoder.encode(&scan(1, snapshot(T_MS + 120_000, list(2))), &mut out);
    assert!((200..400).contains(&first), "{first}");
    assert!(out.len() - first < 40, "{}", out.len() - first);
}

fn any_player() -> impl Strategy<Value = Player> {
    let name = prop_oneof!["[a-c]", "\\PC{0,30}"];
    let points = prop_oneof![Just(None), (-50..50_i64).prop_map(Some), any::<i64>().prop_map(Some)];
    let connected_ms =
        prop_oneof![Just(None), any::<u32>().prop_map(|ms| Some(ms.into())), any::<u64>().prop_map(Some)];
    (name, points, any::<Option<i32>>(), connected_ms, any::<bool>(), any::<bool>()).prop_map(
        |(name, points, ping, connected_ms, bot, spectator)| Player {
            name: name.into(),
            points,
            ping,
            connected_ms,
            bot,
            spectator,
        },
    )
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let t_ms = prop_oneof![0..200_000_i64, any::<i64>()];
    let texts = ("[ab]", "[mn]", "\\PC{0,20}");
    let numbers = (0..3_u32, any::<Option<u32>>(), any::<Option<u32>>(), any::<bool>());
    let players = prop::collection::vec(any_player(), 0..8);
    let snapshot = (t_ms.clone(), texts, numbers, players).prop_map(
        |(t_ms, (game, map, hostname), (slots, count, bots, is_full), players)| {
            let completeness = Completeness::full_if(is_full);
            Outcome::Snapshot(Snapshot { t_ms, game, map, hostname, slots, players, completeness, count, bots })
        },
    );
    let miss = (t_ms, "[a-z]{0,8}").prop_map(|(t_ms, reason)| Outcome::Miss { t_ms, reason });
    prop_oneof![9 => snapshot, 1 => miss]
}

fn any_command() -> impl Strategy<Value = AdminCommand> {
    let server = (0..3_u16).prop_map(url).boxed();
    let tags = || prop::collection::vec("[a-z]{1,4}", 0..3);
    let add = (server.clone(), tags(), any::<bool>()).prop_map(|(server, tags, import)| AdminCommand::Add {
        server,
        tags,
        import,
    });
    let greylist =
        (server.clone(), "\\PC{0,20}").prop_map(|(server, reason)| AdminCommand::Greylist { server, reason });
    let trust = server.prop_map(|server| AdminCommand::Trust {
        server,
        except: vec![ScreenReason::FrozenList],
        revoke: ScreenReason::ALL.to_vec(),
    });
    let merge = ("[ab]", "[a-c]", "\\PC{1,20}").prop_map(|(game, from, into)| AdminCommand::Merge { game, from, into });
    let allow = "[a-c]".prop_map(|name| AdminCommand::Allow { hash: NameHash::of("a", &name) });
    let delete = any::<i64>().prop_map(|before| AdminCommand::DeleteWindows { before });
    prop_oneof![add, greylist, trust, merge, allow, delete, Just(AdminCommand::Clock {})]
}

fn any_rebuild_step() -> impl Strategy<Value = RebuildStep> {
    let window = WindowKey { kind: WindowType::WEEK, index: 2_900 };
    let row =
        ("[ab]", "[a-c]", "\\PC{0,30}", any::<i64>(), any::<i32>()).prop_map(|(game, name, display, t_ms, elo)| {
            let mut row = PlayerRow::new(t_ms, f64::from(elo) / 3.0);
            row.clq1_segments.insert(7, t_ms);
            RebuiltRow { game, name: name.into(), display: display.into(), row }
        });
    let removed = prop::collection::vec(("[ab]", "[a-c]").prop_map(|(game, name)| (game, name.into())), 0..3);
    let map_row = (any::<u64>(), any::<u64>()).prop_map(|(played_ms, player_ms)| MapRow { played_ms, player_ms });
    let rows = (prop::collection::vec(row, 0..4), removed, prop::collection::vec(("[mn]", map_row), 0..3));
    let of_server = (0..3_u16, rows).prop_map(move |(server, (rows, removed, maps))| {
        RebuildStep::Server(Box::new(RebuiltServer { window, server: url(server), rows, removed, maps }))
    });
    let rating = (any::<i32>(), any::<u32>(), any::<i64>());
    let rating =
        rating.prop_map(|(elo, rounds, at_ms)| Rating { elo: f64::from(elo) / 7.0, rounds, sure: rounds / 3, at_ms });
    let servers = prop::collection::vec((0..3_u16).prop_map(url), 0..3);
    let ratings = (prop::option::of(rating.clone()), prop::collection::vec(("[xy]", rating), 0..3));
    let player = ("[ab]", "\\PC{0,30}", servers, ratings).prop_map(|(game, name, servers, ratings)| {
        let (game_rating, tag_ratings) = ratings;
        RebuiltPlayer { game, name: name.into(), servers, game_rating, tag_ratings }
    });
    let players = prop::collection::vec(player, 0..4)
        .prop_map(move |players| RebuildStep::Players(RebuiltPlayers { window, players }));
    let begin = RebuildStep::Begin { windows: vec![WindowState { window, start_ms: i64::MIN, end_ms: 7 }] };
    let give_up = RebuildStep::GiveUp { windows: vec![window] };
    let types = any::<Option<i64>>().prop_map(|from_ms| RebuildStep::Types { from_ms });
    prop_oneof![3 => of_server, 3 => players, 1 => types, 1 => Just(begin), 1 => Just(give_up), 1 => Just(RebuildStep::End {})]
}

fn any_event() -> impl Strategy<Value = LogEvent> {
    let command = (any::<i64>(), any_command()).prop_map(|(t_ms, command)| LogEvent::Command { t_ms, command });
    let settings = (0..200_000_i64, -9..9_i64).prop_map(|(t_ms, k)| {
        let settings = serde_json::json!({ "elo.k": k, "names.ignore": ["a"] });
        LogEvent::Settings { t_ms, settings: serde_json::from_value(settings).unwrap() }
    });
    let scan = (0..3_u16, any_outcome()).prop_map(|(server, outcome)| scan(server, outcome));
    let tick = (any::<i64>(), any::<i64>());
    let tick = tick.prop_map(|(t_ms, close_until_ms)| LogEvent::Tick { t_ms, close_until_ms });
    let known = (any::<i64>(), prop::option::of(".{0,9}")).prop_map(|(t_ms, greylist_reason)| {
        let (tags, exempt) = (vec!["ctf".to_owned()], vec![ScreenReason::FrozenList]);
        LogEvent::Known {
            t_ms,
            server: KnownServer { url: url(1), tags, exempt, greylist_reason, budget: None, imported: true },
        }
    });
    let archive = prop_oneof![
        any::<u64>().prop_map(|id| ArchiveStep::Claim { id }),
        any::<(u64, u64)>().prop_map(|(previous, epoch)| ArchiveStep::Epoch { previous, epoch }),
        any::<bool>().prop_map(|adopts| ArchiveStep::Resync { adopts }),
        any::<(u64, u64, u64)>()
            .prop_map(|(batch, epoch, beat)| ArchiveStep::Archived { batch, at: WriterBeat { epoch, beat } }),
        any::<(u32, u32, u32)>().prop_map(|(week, from, servers)| ArchiveStep::Resend {
            week: WeekKey(week),
            from: ServerKey(from),
            servers
        }),
    ];
    let archive = (any::<i64>(), archive).prop_map(|(t_ms, step)| LogEvent::Archive { t_ms, step });
    let rebuild = (any::<i64>(), any_rebuild_step()).prop_map(|(t_ms, step)| LogEvent::Rebuild { t_ms, step });
    prop_oneof![8 => scan, 2 => command, 1 => settings, 1 => tick, 1 => known, 2 => rebuild, 1 => archive]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_events_round_trip(events in prop::collection::vec(any_event(), 0..40)) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for batch in events.chunks(3) {
            let mut body = Vec::new();
            batch.iter().for_each(|event| encoder.encode(event, &mut body));
            let mut decoded = Vec::new();
            decoder.decode(&body, |event| decoded.push(text(&event))).unwrap();
            let want: Vec<String> = batch.iter().map(text).collect();
            prop_assert_eq!(decoded, want);
        }
    }

    /// Damage that the checksum does not find must not do more than return an error.
    #[test]
    fn any_bytes_decode_or_fail(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut events = 0;
        _ = Decoder::default().decode(&body, |_| events += 1);
        prop_assert!(events <= body.len());
    }
}

/// A log of three segments. Each has three batches, except the last. Returns its events.
fn write_small_log(dir: &Path) -> Vec<String> {
    let mut writer = Log::open(&WriterSettings { segment_ms_max: 300, ..settings(dir) }).unwrap();
    let mut events = Vec::new();
    for n in 1..=8 {
        let event = scan(1, snapshot(T_MS + n * 100, vec![player("a", n), player("b", 7)]));
        events.push(text(&event));
        writer.append(&event);
        writer.sync(T_MS + n * 100);
    }
    events
}

#[test]
fn log_of_several_segments_and_starts_is_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut want = write_small_log(dir.path());
    assert_eq!(segments(dir.path()).unwrap().len(), 3);
    for n in 10..13 {
        let event = scan(2, snapshot(T_MS + n * 1_000, vec![player("c", n)]));
        want.push(text(&event));
        let mut writer = open(dir.path());
        writer.append(&event);
        writer.sync(T_MS);
        // A start without an event leaves nothing.
        drop(writer);
        drop(open(dir.path()));
    }
    assert_eq!(read_all(dir.path()).unwrap(), want);
    let (summaries, cut) = check(dir.path()).unwrap();
    assert_eq!((summaries.len(), cut), (7, None));
    assert_eq!(
        summaries.iter().map(|it| (it.batches, it.events)).fold((0, 0), |(b, e), (n, m)| (b + n, e + m)),
        (11, 11)
    );
}

#[test]
fn second_writer_is_refused_and_names_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let _writer = open(dir.path());
    let error = LogWriter::open(&settings(dir.path()), 1, T_MS).unwrap_err().to_string();
    assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
}

/// Every prefix of the newest segment is the log before a batch, and the next start continues
/// there.
#[test]
fn every_cut_of_the_end_keeps_the_batches_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let want = write_small_log(dir.path());
    let last = segments(dir.path()).unwrap().pop().unwrap().path;
    let whole = fs::read(&last).unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    for len in 0..whole.len() {
        fs::write(&last, &whole[..len]).unwrap();
        let read = read_all(dir.path());
        if len < 40 {
            // The segment before announces this one.
            let error = read.unwrap_err();
            assert!(matches!(error, LogError::Header { .. }), "{len}: {error}");
            continue;
        }
        let read = read.unwrap();
        assert_eq!(read, want[..read.len()], "{len}");
        lengths.insert(read.len());
        let files = segments(dir.path()).unwrap();
        let mut writer = open(dir.path());
        if let Some(cut) = &writer.cut {
            assert_eq!(cut.position + cut.bytes, len as u64);
        }
        let event = scan(1, snapshot(T_MS + 9_000, vec![player("z", 1)]));
        writer.append(&event);
        writer.sync(T_MS);
        drop(writer);
        let continued = read_all(dir.path()).unwrap();
        assert_eq!((&continued[..read.len()], &continued[read.len()]), (&read[..], &text(&event)), "{len}");
        for file in segments(dir.path()).unwrap() {
            if !files.contains(&file) {
                fs::remove_file(file.path).unwrap();
            }
        }
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [6, 7]);
}

#[test]
fn rebuild_of_many_windows_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let window = |index| WindowKey { kind: WindowType(3), index };
    let state = |index| WindowState { window: window(index), start_ms: T_MS + i64::from(index), end_ms: i64::MAX };
    let event =
        LogEvent::Rebuild { t_ms: T_MS, step: RebuildStep::Begin { windows: (0..20_000).map(state).collect() } };
    log.append(&event);
    log.sync(T_MS);
    assert_eq!(read_all(dir.path()).unwrap(), [text(&event)]);
}

/// A crash while the end of a segment is written: its successor is on disk, and has no batch.
#[test]
fn torn_end_of_a_segment_before_an_empty_one_is_a_cut() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    let events = [1, 2].map(|n| scan(n, snapshot(T_MS, vec![player("a", i64::from(n))])));
    events.iter().for_each(|event| log.append(event));
    let batch = log.builder.take_and_end_segment(T_MS).unwrap();
    log.writer.write(batch, T_MS).unwrap();
    drop(log);
    let files = segments(dir.path()).unwrap();
    let [ended, empty] = &files[..] else { panic!("{files:?}") };
    let whole = fs::read(&ended.path).unwrap();
    let (body, end) = whole.split_at(whole.len() - super::batch::BATCH_HEADER_BYTES);
    let want = events.each_ref().map(text);
    for len in 0..end.len() {
        for zeros in [0, 1, end.len() - len] {
            let torn = [body, &end[..len], &vec![0; zeros]].concat();
            if torn == whole {
                continue;
            }
            fs::write(&ended.path, &torn).unwrap();
            let rest = len + zeros;
            assert_eq!(read_all(dir.path()).unwrap(), want, "{len}");
            let log = open(dir.path());
            assert_eq!(log.cut.as_ref().map_or(0, |cut| cut.bytes), rest as u64);
            drop(log);
            assert_eq!(fs::read(&ended.path).unwrap(), whole, "it is announced again");
            assert_eq!(check(dir.path()).unwrap().1, None);
        }
    }
    // Of a successor with a batch the end was on disk.
    let mut log = open(dir.path());
    log.append(&events[0]);
    log.sync(T_MS);
    fs::write(&ended.path, [body, &[0]].concat()).unwrap();
    assert!(matches!(read_all(dir.path()), Err(LogError::Damaged { .. })));
    assert!(fs::metadata(&empty.path).unwrap().len() > 100);
}

/// Every bit of every file: the events are read as they were, or a cut or an error is reported.
#[test]
fn every_flipped_bit_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let want = write_small_log(dir.path());
    for (number, file) in segments(dir.path()).unwrap().into_iter().enumerate() {
        let whole = fs::read(&file.path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file.path, &damaged).unwrap();
            match check(dir.path()) {
                Err(_) => {}
                // Only the last batch of the log has nothing after it.
                Ok((summaries, Some(cut))) => {
                    assert_eq!((number, &cut.path), (2, &file.path), "bit {bit}");
                    let events: u64 = summaries.iter().map(|it| it.events).sum();
                    assert_eq!(events as usize, want.len() - 1, "bit {bit} of {}", file.path.display());
                }
                Ok((_, None)) => panic!("bit {bit} of {} is not noticed", file.path.display()),
            }
        }
        fs::write(&file.path, &whole).unwrap();
    }
    assert_eq!(read_all(dir.path()).unwrap(), want);
}

#[test]
fn every_missing_segment_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let want = write_small_log(dir.path());
    let files = segments(dir.path()).unwrap();
    for (number, file) in files.iter().enumerate() {
        let bytes = fs::read(&file.path).unwrap();
        fs::remove_file(&file.path).unwrap();
        match (number, read_all(dir.path())) {
            // Old segments are removed, the oldest first. That is no damage.
            (0, read) => assert_eq!(read.unwrap(), want[3..]),
            (1, read) => assert!(matches!(read, Err(LogError::Sequence { .. }))),
            (_, read) => assert!(matches!(read, Err(LogError::MissingSegment { .. }))),
        }
        fs::write(&file.path, bytes).unwrap();
    }
}

#[test]
fn name_that_looks_like_a_batch_is_not_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut forged = vec![0; 32];
    super::batch::BatchHeader { seq: 2, last_ms: 0, events: 0 }.seal(0, &mut forged);
    forged.retain(u8::is_ascii);
    let name = String::from_utf8(forged).unwrap();
    let mut writer = open(dir.path());
    writer.append(&scan(1, snapshot(T_MS, vec![player(&name, 1)])));
    writer.sync(T_MS);
    let path = segments(dir.path()).unwrap().pop().unwrap().path;
    let len = fs::metadata(&path).unwrap().len();
    drop(writer);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len - 1).unwrap();
    let (_, cut) = check(dir.path()).unwrap();
    assert_eq!(cut.map(|cut| cut.position), Some(40));
}

#[test]
fn segments_are_removed_only_when_no_batch_of_them_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let want = write_small_log(dir.path());
    let firsts = || segments(dir.path()).unwrap().iter().map(|file| file.first_seq).collect::<Vec<_>>();
    _ = open(dir.path());
    assert_eq!(firsts(), [1, 4, 7, 9]);
    for (position, kept) in [(2, &[1, 4, 7, 9][..]), (3, &[4, 7, 9]), (7, &[7, 9]), (8, &[9])] {
        let retention = Retention { keep_ms: 0, bytes_max: 1 << 40, free_bytes_min: 0 };
        retention.apply(dir.path(), &LogFileLock::default(), position, T_MS + 1_000_000).unwrap();
        assert_eq!(firsts(), kept, "{position}");
        let mut reader = LogReader::open_after(dir.path(), position).unwrap();
        let mut read = Vec::new();
        while reader.read_batch(|event| read.push(text(&event))).unwrap().is_some() {}
        assert!(want.ends_with(&read) && read.len() >= want.len() - position as usize, "{position}");
        if let Some(before) = kept[0].checked_sub(2).filter(|&before| before > 0) {
            let error = LogReader::open_after(dir.path(), before).unwrap_err();
            assert!(matches!(error, LogError::Gap { .. }), "{error}");
        }
    }
}

#[test]
fn segment_can_end_with_and_without_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    assert!(log.builder.take_and_end_segment(T_MS).is_none(), "the segment is empty");
    let mut want = Vec::new();
    for n in 0..4 {
        let event = LogEvent::Tick { t_ms: T_MS + n, close_until_ms: T_MS };
        want.push(text(&event));
        log.append(&event);
        if n % 2 == 0 {
            log.sync(T_MS);
        }
        let batch = log.builder.take_and_end_segment(T_MS).unwrap();
        log.writer.write(batch, T_MS).unwrap();
    }
    assert_eq!(read_all(dir.path()).unwrap(), want);
    assert_eq!(segments(dir.path()).unwrap().len(), 5);
    assert_eq!(log.builder.last_seq(), 4);
}

#[test]
fn old_segments_are_removed_by_age_and_by_size() {
    let dir = tempfile::tempdir().unwrap();
    write_small_log(dir.path());
    _ = open(dir.path());
    let firsts = || segments(dir.path()).unwrap().iter().map(|file| file.first_seq).collect::<Vec<_>>();
    let lock = LogFileLock::default();
    // The segments begin at 0, 300, 600 and (a new process) 0 ms.
    let by_age = Retention { keep_ms: 1_000, bytes_max: 1 << 40, free_bytes_min: 0 };
    by_age.apply(dir.path(), &lock, 8, T_MS + 1_300).unwrap();
    assert_eq!(firsts(), [1, 4, 7, 9]);
    let reading = lock.begin_reading();
    by_age.apply(dir.path(), &lock, 8, T_MS + 1_301).unwrap();
    assert_eq!(firsts(), [1, 4, 7, 9], "the log is being read");
    drop(reading);
    by_age.apply(dir.path(), &lock, 8, T_MS + 1_301).unwrap();
    assert_eq!(firsts(), [4, 7, 9]);
    let by_size = Retention { keep_ms: i64::MAX, bytes_max: 1, free_bytes_min: 0 };
    by_size.apply(dir.path(), &lock, 5, T_MS).unwrap();
    assert_eq!(firsts(), [4, 7, 9], "a start needs batch 6");
    by_size.apply(dir.path(), &lock, 6, T_MS).unwrap();
    assert_eq!(firsts(), [7, 9]);
    let by_space = Retention { keep_ms: i64::MAX, bytes_max: u64::MAX, free_bytes_min: u64::MAX };
    by_space.apply(dir.path(), &lock, 8, T_MS).unwrap();
    assert_eq!(firsts(), [9]);
}

#[test]
fn names_are_replaced_in_all_segments_but_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let mut want = Vec::new();
    let mut log = Log::open(&WriterSettings { segment_ms_max: 300, ..settings(dir.path()) }).unwrap();
    for n in 1..=9 {
        // The third segment does not have the name.
        let name = if n > 6 { "other" } else { "forgotten one" };
        let mut list = snapshot(T_MS + n * 100, vec![player(name, n), player("b", 7)]);
        log.append(&scan(1, list.clone()));
        let merge = AdminCommand::Merge { game: "baseq3".into(), from: name.into(), into: "b".into() };
        log.append(&LogEvent::Command { t_ms: T_MS + n * 100, command: merge.clone() });
        log.sync(T_MS + n * 100);
        let mut merge = LogEvent::Command { t_ms: T_MS + n * 100, command: merge };
        replace(&mut merge);
        if let Outcome::Snapshot(list) = &mut list {
            list.players[0].name = list.players[0].name.replace("forgotten one", "#").as_str().into();
        }
        want.extend([text(&scan(1, list)), text(&merge)]);
    }
    fn replace(event: &mut LogEvent) -> bool {
        let is_it = |name: &str| name == "forgotten one";
        match event {
            LogEvent::Scan { outcome: Outcome::Snapshot(list), .. } => {
                let found: Vec<_> = list.players.iter_mut().filter(|player| is_it(&player.name)).collect();
                let is_found = !found.is_empty();
                found.into_iter().for_each(|player| player.name = "#".into());
                is_found
            }
            LogEvent::Command { command: AdminCommand::Merge { from, .. }, .. } if is_it(from) => {
                *from = "#".to_owned();
                true
            }
            _ => false,
        }
    }
    let has_name = |file: &super::segment::SegmentFile| {
        memchr::memmem::find(&fs::read(&file.path).unwrap(), b"forgotten one").is_some()
    };
    let files = segments(dir.path()).unwrap();
    let bytes_of_third = fs::read(&files[2].path).unwrap();
    assert_eq!(files.iter().map(has_name).collect::<Vec<_>>(), [true, true, false, false]);
    // What a killed process leaves.
    let leftover = files[0].path.with_extension("rewriting");
    fs::write(&leftover, "forgotten one").unwrap();

    let lock = LogFileLock::default();
    let mut rewriting = SegmentRewriting::new(dir.path(), lock.clone(), 0);
    let reading = lock.begin_reading();
    let mut pauses = 0;
    let stopped = rewriting.run(
        &replace,
        &mut || {
            pauses += 1;
            pauses < 30
        },
        &mut |_| (),
    );
    assert!(matches!(stopped, Err(SegmentRewriteError::Stopped)), "{stopped:?}");
    assert!(has_name(&files[0]), "a reader has the log open");
    drop(reading);
    assert_eq!(rewriting.run(&replace, &mut || true, &mut |_| ()).unwrap(), 2);
    assert_eq!(rewriting.run(&replace, &mut || true, &mut |_| ()).unwrap(), 0);
    assert!(!files.iter().any(has_name) && !leftover.exists());
    assert_eq!(fs::read(&files[2].path).unwrap(), bytes_of_third);
    assert_eq!(read_all(dir.path()).unwrap(), want);
    drop(log);
    let mut log = open(dir.path());
    assert_eq!(log.builder.last_seq(), 9);
    log.append(&scan(1, snapshot(T_MS + 2_000, Vec::new())));
    log.sync(T_MS + 2_000);
    assert_eq!(read_all(dir.path()).unwrap().len(), want.len() + 1);
}

#[test]
fn damaged_segment_is_reported_after_the_others_are_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    write_small_log(dir.path());
    let files = segments(dir.path()).unwrap();
    let mut bytes = fs::read(&files[0].path).unwrap();
    bytes[60] ^= 1;
    fs::write(&files[0].path, bytes).unwrap();
    let mut rewriting = SegmentRewriting::new(dir.path(), LogFileLock::default(), 0);
    let rename = |event: &mut LogEvent| {
        let LogEvent::Scan { outcome: Outcome::Snapshot(list), .. } = event else { return false };
        list.players[0].name = "#".into();
        true
    };
    let error = rewriting.run(&rename, &mut || true, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains(&files[0].path.display().to_string()), "{error}");
    let second = LogReader::of(files[1..].to_vec()).read_batch(|event| assert!(text(&event).contains("\"#\"")));
    assert_eq!(second.unwrap(), Some(4));
}
