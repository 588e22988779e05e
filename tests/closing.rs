//! A week that is closed a few records at a time, by lives that end at any
//! moment, is the week that is closed at one go: positions, best positions, map
//! rows, server ranks, series. Not a test of what they should be: that is the
//! oracle's.

use std::collections::BTreeMap;
use std::path::Path;

use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::fleet::rng::Rng;
use clqd::fleet::{History, Settings, World, address};
use clqd::hot::Hot;
use clqd::model::{ArchiveJob, OutboxKey, ServerUrl};
use clqd::store::StoreSettings;

const SERVERS: u32 = 30;
const HOUR_MS: i64 = 3_600_000;
const MONDAY_MS: i64 = 1_764_547_200_000; // 2025-12-01 00:00 UTC

fn open(dir: &Path, week_steps_per_tick: usize) -> Hot {
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    Hot::open(dir, store, EngineSettings { archive: true, week_steps_per_tick, ..EngineSettings::default() }).unwrap()
}

/// The last hours of a week, and the first minutes of the next, so that players
/// are present over its end. The busiest server is on the greylist by then.
fn play(hot: &mut Hot) {
    let start_ms = MONDAY_MS - 8 * HOUR_MS;
    let settings = Settings { servers: SERVERS, start_ms, activity: 3.0, truth: false, ..Settings::default() };
    let mut world = World::new(settings);
    let urls: Vec<ServerUrl> = (0..SERVERS)
        .map(|server| format!("{}://{}:27960", world.family(server).scheme(), address::address(server)))
        .map(|url| ServerUrl::parse(&url).expect("a URL"))
        .collect();
    let mut snapshots = vec![0; SERVERS as usize];
    for (_, server, snapshot) in History::new(&mut world, start_ms, MONDAY_MS + 300_000) {
        snapshots[server as usize] += snapshot.players.len();
        let (url, outcome) = (urls[server as usize].clone(), Outcome::Snapshot(snapshot));
        hot.handle(Event::Observed { url, outcome }).unwrap();
    }
    let busiest = (0..urls.len()).max_by_key(|&server| snapshots[server]).expect("there are servers");
    hot.engine.greylist(&urls[busiest], Some("for a test".to_owned())).unwrap();
    hot.commit().unwrap();
    assert!(hot.engine.has_week_to_close());
}

fn archived(hot: &Hot) -> BTreeMap<OutboxKey, ArchiveJob> {
    let jobs = hot.engine.archive_jobs(&hot.store, None, None, usize::MAX, usize::MAX).unwrap();
    jobs.into_iter().filter_map(|(entry, job)| Some((entry.key, job?))).collect()
}

#[test]
fn in_small_steps_and_many_lives_as_at_one_go() {
    let dir = tempfile::tempdir().unwrap();
    let mut hot = open(dir.path(), usize::MAX);
    play(&mut hot);
    let now_ms = hot.engine.now_ms();
    hot.handle(Event::Tick { now_ms }).unwrap();
    hot.commit().unwrap();
    assert!(!hot.engine.has_week_to_close());
    let want = archived(&hot);
    let rows = |job: &ArchiveJob| match job {
        ArchiveJob::Week(week) if week.closed => week.best.len(),
        _ => 0,
    };
    assert!(want.values().map(rows).max() > Some(60), "a server has more rows than most ticks have steps");

    for (seed, steps) in [(1, 1), (2, 7), (3, 50), (4, 500)] {
        let mut rng = Rng::new(&[seed]);
        let dir = tempfile::tempdir().unwrap();
        let mut hot = open(dir.path(), steps);
        play(&mut hot);
        let (mut ticks, mut lives) = (0, 1);
        // Enough for the largest server, which a new life begins anew.
        let life = 2 + 400 / steps;
        while hot.engine.has_week_to_close() {
            ticks += 1;
            assert!(ticks < 1_000_000, "it is closed some time");
            hot.handle(Event::Tick { now_ms }).unwrap();
            if rng.chance(0.3) {
                hot.commit().unwrap();
            }
            if rng.chance(1.0 / life as f64) {
                drop(hot);
                hot = open(dir.path(), steps);
                lives += 1;
            }
        }
        hot.commit().unwrap();
        eprintln!("{steps} steps a tick: {ticks} ticks, {lives} lives");
        assert!(lives > 2 || steps == 500);
        let got = archived(&hot);
        assert!(got.keys().eq(want.keys()));
        for (key, want) in &want {
            assert_eq!(&got[key], want, "{steps} steps a tick");
        }
    }
}
