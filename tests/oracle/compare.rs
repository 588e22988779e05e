//! Compares exported rows, and a complete state as it would be archived, with the oracle. Used by
//! several tests, which run the engine or the program themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use clqd::engine::{EngineSettings, StoreReader};
use clqd::model::archive::{
    ArchiveJob, BestPositionsByRanking, BoardOrder, PlayerWeekArchive, ServerArchive, WeekArchive,
};
use clqd::model::calendar::week_label;
use clqd::model::row::Ranking;
use clqd::model::{OutboxKey, ServerKey, WeekKey};
use clqd::state::{State, StateError};
use clqd::store::{StoreError, StoreSettings};
use serde_json::Value;

use super::{ClassStep, MapTime, Oracle, PlayerId, Row, Scope, pack_slots, ranks_blob};

/// The number of compared segments, and of those that were one thousandth off.
#[derive(Clone, Copy, Default)]
pub struct Segments {
    pub all: usize,
    pub off: usize,
}

impl Segments {
    pub fn add(&mut self, other: Segments) {
        self.all += other.all;
        self.off += other.off;
    }

    /// The oracle computes exactly, so a rounded float may differ only if it is close to a half.
    pub fn assert_rounded_half_up(self) {
        assert!(self.off <= self.all / 1_000, "{} of {} segments are one thousandth off", self.off, self.all);
    }
}

/// Compares exactly, except for the last digits of ratings and one thousandth in a segment.
/// Positions are compared with those that follow from the exported values.
pub fn check_week(oracle: &Oracle, week: u32, export: &str, context: &str) -> Segments {
    let mut compared = Segments::default();
    let want = oracle.week_rows(week);
    let lines: Vec<&str> = export.lines().collect();
    let mut exported: Vec<(String, Row)> = Vec::new();
    for (line, (server, row)) in lines.iter().zip(&want) {
        let wanted_line = row.export_line(server);
        let got: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{context}: {e}: {line}"));
        let wanted: Value = serde_json::from_str(&wanted_line).expect("JSON");
        let fail = |field: &str| panic!("{context}: {field}\n   got {line}\noracle {wanted_line}");
        let exact =
            ["week", "server", "player", "game", "measured_ms", "starts", "time_ms", "points", "clq2", "clq2_games"];
        let estimates = ["time_est_ms", "time_est_error_ms", "time_connected_ms", "time_connected_error_ms"];
        for field in exact.into_iter().chain(["elo_rounds", "elo_rounds_sure"]).chain(estimates) {
            if got[field] != wanted[field] {
                fail(field);
            }
        }
        let segments: Vec<u64> = serde_json::from_value(got["clq1_segments"].clone()).unwrap_or_default();
        let elo = exact_float(line, "elo").unwrap_or(f64::NAN);
        let near = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= 1;
        if segments.len() != row.clq1_segments.len() || !segments.iter().zip(&row.clq1_segments).all(near) {
            fail("clq1_segments");
        }
        let off = segments.iter().zip(&row.clq1_segments).filter(|(a, b)| a != b).count();
        compared.add(Segments { all: segments.len(), off });
        if got["clq1"] != segments.iter().sum::<u64>() || !segments.is_sorted_by(|a, b| a >= b) {
            fail("clq1");
        }
        if elo.is_nan() || (elo - row.elo).abs() >= 1e-9 {
            fail("elo");
        }
        exported.push((server.clone(), Row { clq1_segments: segments, elo, ..row.clone() }));
    }
    assert_eq!(lines.len(), want.len(), "{context}: number of rows");
    check_positions(oracle, &lines, exported, context);
    compared
}

/// Checks the positions that follow from the exported scores and the oracle's times and keys.
fn check_positions(oracle: &Oracle, lines: &[&str], exported: Vec<(String, Row)>, context: &str) {
    let mut boards: BTreeMap<&str, Vec<(&str, Row)>> = BTreeMap::new();
    for (line, (server, row)) in lines.iter().zip(&exported) {
        let row = Row { pos: Default::default(), ..row.clone() };
        boards.entry(server).or_default().push((line, row));
    }
    for (server, mut board) in boards {
        let scope = Scope::Server(server.to_owned());
        board.sort_by_key(|(_, row)| oracle.player_key(&row.player));
        let (lines, mut rows): (Vec<&str>, Vec<Row>) = board.into_iter().unzip();
        for ranking in ["clq1", "clq2", "elo", "points", "time"] {
            oracle.rank_in(&mut rows, ranking, &scope);
        }
        for (line, row) in lines.iter().zip(&rows) {
            let got: Value = serde_json::from_str(line).expect("JSON");
            let want = serde_json::to_value(&row.pos).expect("JSON");
            assert!(
                got["pos"] == want,
                "{context}: pos\n   got {line}\noracle {want}, scores reached at {:?}",
                row.reached
            );
        }
    }
}

/// The first number with this name in a line, parsed exactly, which `serde_json` does not guarantee.
fn exact_float(line: &str, field: &str) -> Option<f64> {
    let (_, rest) = line.split_once(&format!("\"{field}\":"))?;
    rest.split([',', '}']).next()?.trim().parse().ok()
}

/// Opens a state. Waits for its lock, which sled releases with a delay.
pub fn open(path: &Path, engine: &EngineSettings) -> State {
    let store = StoreSettings { cache_bytes: 64 << 20, create: true };
    for _ in 0..2_000 {
        match State::open(path, store, engine.clone()) {
            Err(StateError::Store(StoreError::Locked { .. })) => std::thread::sleep(Duration::from_millis(5)),
            opened => return opened.expect("a state"),
        }
    }
    panic!("{} stays locked", path.display());
}

/// A complete state as it would be archived. The engine's outbox must be enabled and never
/// trimmed, so that it contains everything.
pub struct Archived {
    /// The time of the state.
    now_ms: i64,
    /// By URL.
    pub servers: BTreeMap<String, ServerArchive>,
    /// By week and URL.
    pub weeks: BTreeMap<(u32, String), WeekArchive>,
    games: HashMap<u32, String>,
    maps: HashMap<u32, String>,
    /// Players and their displayed names by key.
    players: BTreeMap<u32, (PlayerId, String)>,
}

impl Archived {
    /// Reads a state. All changes must be committed.
    pub fn read(state: &mut State) -> Archived {
        let (mut weeks, mut players) = (Vec::new(), Vec::new());
        let mut all = Archived {
            now_ms: state.engine.model().now_ms(),
            servers: BTreeMap::new(),
            weeks: BTreeMap::new(),
            games: HashMap::new(),
            maps: HashMap::new(),
            players: BTreeMap::new(),
        };
        let mut urls: HashMap<ServerKey, String> = HashMap::new();
        let jobs =
            state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).expect("a readable store");
        let tasks = state.engine.model().archive_tasks(&state.store).len();
        assert_eq!(jobs.len() + tasks, state.store.outbox_len());
        for (entry, job) in jobs {
            // The sessions of a day that waited for the archive as long as it may.
            if matches!((entry.key, &job), (OutboxKey::Session(_), None)) {
                continue;
            }
            match job.expect("no week was deleted") {
                ArchiveJob::Game { key, name } => drop(all.games.insert(key.0, name)),
                ArchiveJob::Map { key, name } => drop(all.maps.insert(key.0, name)),
                ArchiveJob::Player { key, game, name, display } => players.push((key, game, name, display)),
                ArchiveJob::PlayerRemoved { .. } => (),
                ArchiveJob::Server(server) => {
                    urls.insert(server.key, server.url.clone());
                    all.servers.insert(server.url.clone(), *server);
                }
                ArchiveJob::Week(week) => weeks.push(*week),
                ArchiveJob::LargeWeek { server, .. } => panic!("server {server} has too many rows for a test"),
                ArchiveJob::Session(..) => (),
                ArchiveJob::BestPositions(best) => panic!("server {}: weeks have the best positions", best.server),
                ArchiveJob::WeekTotals { week } => panic!("week {week}: nothing was resent"),
            }
        }
        for (key, game, name, display) in players {
            all.players.insert(key.0, (PlayerId { game: all.games[&game.0].clone(), name }, display));
        }
        for week in weeks {
            all.weeks.insert((week.week.0, urls[&week.server].clone()), week);
        }
        all
    }

    fn best(&self, week: &WeekArchive) -> BTreeMap<u32, [Vec<(u32, WeekKey)>; 3]> {
        week.best.iter().map(|it| (it.player.0, it.three.clone())).collect()
    }
}

/// Compares data that `clqd export` does not print: keys and names, maps, ranks, best positions,
/// series, classes. All weeks that have ended must be closed.
pub fn check_state(oracle: &Oracle, got: &Archived, context: &str) {
    check_names(oracle, got, context);
    let ranks = oracle.all_server_ranks();
    check_maps_and_ranks(oracle, got, &ranks, context);
    check_best(oracle, got, context);
    for server in &oracle.servers {
        let archived = got.servers.get(server).unwrap_or_else(|| panic!("{context}: {server} is not archived"));
        let history = oracle.class_history(server);
        // A server that was added may have no scan.
        let Some(last): Option<&ClassStep> = history.last() else { continue };
        let label = |what: &str| format!("{context}, {server}: {what}");
        assert_eq!((archived.missed, archived.class), (last.missed, last.class), "{}", label("missed and class"));
        assert_eq!(archived.last_scan_ms, Some(last.t), "{}", label("last scan"));
        let assumed = oracle.assumed_after_lines(server).last().copied();
        assert_eq!(Some(archived.assumed_players), assumed, "{}", label("assumed count"));
        if let Some(snapshot) = oracle.last_list(server) {
            let total: i64 = snapshot.entries.iter().filter(|e| !e.spectator).filter_map(|e| e.points).sum();
            assert_eq!(archived.total_points, total, "{}", label("total points"));
            // After three missed scans, or 20 minutes without a reply, no player is online.
            let seen_ms = archived.last_seen_ms.expect("a snapshot was received");
            let is_online = last.missed < 3 && got.now_ms - seen_ms < 20 * 60_000;
            assert!(is_online || archived.players == 0, "{}: {}", label("players"), archived.players);
            let list = archived.list.iter().map(|e| {
                let player = (!e.spectator).then_some(e.player.is_some());
                (e.name.as_str(), e.display.as_str(), e.points, e.spectator, player)
            });
            let want = snapshot.entries.iter().filter(|_| is_online).map(|e| {
                let player = (!e.spectator).then_some(e.player.is_some());
                (e.name.as_str(), e.display.as_str(), e.points, e.spectator, player)
            });
            assert!(list.eq(want), "{}: {:?}, oracle {:?}", label("list"), archived.list, snapshot.entries);
        }
        check_screened(oracle, archived, &label(""));
        check_series(oracle, archived, &ranks, &label(""));
    }
}

/// docs/rules.md 14: compares the reasons of the last 7 days and the number of unidentified bots.
fn check_screened(oracle: &Oracle, got: &ServerArchive, context: &str) {
    let now = oracle.lines.last().expect("a line of the server").t;
    let mut want: BTreeMap<&str, i64> = BTreeMap::new();
    for report in oracle.reports.iter().filter(|r| r.server == got.url) {
        let last = want.entry(report.reason.name()).or_default();
        *last = report.t.max(*last);
    }
    want.retain(|_, last| now < *last + 7 * 86_400_000);
    let reported: BTreeMap<&str, i64> = got.screened.iter().map(|(reason, at_ms)| (reason.name(), *at_ms)).collect();
    assert_eq!(reported, want, "{context}reasons");
    let unnamed = oracle.unnamed_bots.get(&got.url).copied().unwrap_or(0);
    assert_eq!(got.bots_unidentified, unnamed, "{context}bots that could not be identified");
}

fn check_names(oracle: &Oracle, got: &Archived, context: &str) {
    let players: Vec<(usize, &PlayerId)> =
        got.players.iter().map(|(key, (player, _))| (*key as usize, player)).collect();
    let want: Vec<(usize, &PlayerId)> = oracle.current_players.iter().map(|(key, player)| (*key, player)).collect();
    assert!(players == want, "{context}: players by key\n   got {players:?}\noracle {want:?}");
    let by_key: BTreeMap<u32, &str> = got.servers.values().map(|s| (s.key.0, s.url.as_str())).collect();
    assert!(by_key.values().eq(oracle.servers.iter()), "{context}: servers by key {by_key:?}");

    // Players with the same name may be on two servers at once: then either form is correct.
    let mut last_seen: HashMap<PlayerId, BTreeMap<&str, &str>> = HashMap::new();
    for snapshot in &oracle.snapshots {
        for entry in snapshot.ranked() {
            let player = entry.player.clone().expect("ranked");
            last_seen.entry(player).or_default().insert(&snapshot.server, &entry.display);
        }
    }
    for (player, display) in got.players.values() {
        let forms: BTreeSet<&str> = last_seen[player].values().copied().collect();
        assert!(
            forms.contains(display.as_str()),
            "{context}: {player:?} is displayed as {display:?}, last seen as {forms:?}"
        );
    }
}

fn check_maps_and_ranks(oracle: &Oracle, got: &Archived, ranks: &BTreeMap<u32, Vec<String>>, context: &str) {
    let mut maps: BTreeMap<(u32, String, String), MapTime> = BTreeMap::new();
    let mut ranked: BTreeMap<(u32, u32), &str> = BTreeMap::new();
    let weeks: BTreeSet<u32> = got.weeks.keys().map(|(week, _)| *week).chain(ranks.keys().copied()).collect();
    let closed: BTreeMap<u32, bool> = weeks.into_iter().map(|week| (week, oracle.is_closed(week))).collect();
    for ((week, server), archived) in &got.weeks {
        let closed = closed[week];
        assert_eq!(archived.closed, closed, "{context}: week {} of {server} is closed", archived.label);
        assert_eq!(archived.label, week_label(WeekKey(*week)));
        for map in &archived.maps {
            let time = MapTime { played_ms: map.played_ms as i64, player_ms: map.player_ms as i64 };
            maps.insert((*week, got.maps[&map.map.0].clone(), server.clone()), time);
        }
        assert_eq!(archived.player_ms, archived.maps.iter().map(|map| map.player_ms).sum::<u64>());
        if let Some(rank) = archived.server_rank {
            assert!(
                ranked.insert((*week, rank), server).is_none(),
                "{context}: duplicate rank {rank} in {}",
                archived.label
            );
        }
    }
    let want = oracle.map_times();
    for (key, time) in &want {
        assert_eq!(maps.get(key), Some(time), "{context}: time on a map {key:?}");
    }
    assert_eq!(maps.len(), want.len(), "{context}: number of map rows");
    let ranked_weeks = ranks.iter().filter(|(week, _)| closed[week]);
    let want = ranked_weeks
        .flat_map(|(&week, servers)| (1..).zip(servers).map(move |(rank, url)| ((week, rank), url.as_str())));
    assert!(
        ranked.iter().map(|(key, url)| (*key, *url)).eq(want),
        "{context}: server ranks {ranked:?}, oracle {ranks:?}"
    );
}

/// The position in a closed week.
fn final_position(row: &PlayerWeekArchive, ranking: Ranking) -> Option<u32> {
    match row.places[ranking as usize].as_ref()?.order {
        BoardOrder::Position(position) => Some(position),
        BoardOrder::SortKey(_) => panic!("a closed week has positions"),
    }
}

/// Compares best positions with the archived positions of all closed weeks; those in clq2, which do
/// not depend on last digits, also with the oracle's.
fn check_best(oracle: &Oracle, got: &Archived, context: &str) {
    let mut positions: BTreeMap<(&str, u32), BestPositionsByRanking> = BTreeMap::new();
    for ((week, server), archived) in got.weeks.iter().filter(|(_, archived)| archived.closed) {
        for row in &archived.rows {
            let lists = positions.entry((server, row.player.0)).or_default();
            for (list, ranking) in lists.iter_mut().zip(Ranking::WITH_BEST_POSITIONS) {
                list.extend(final_position(row, ranking).map(|position| (position, WeekKey(*week))));
            }
        }
    }
    for list in positions.values_mut().flatten() {
        list.sort_unstable();
        list.truncate(3);
    }
    let oracle_best = oracle.best_positions();
    for ((_, server), archived) in got.weeks.iter().filter(|(_, archived)| archived.closed) {
        let best = got.best(archived);
        assert_eq!(best.len(), archived.rows.len(), "{context}: best positions of each player on {server}");
        for (key, best) in best {
            let player = &got.players[&key].0;
            assert_eq!(positions[&(server.as_str(), key)], best, "{context}: best positions of {player:?} on {server}");
            let clq2 = best[1].iter().map(|&(position, week)| (position as usize, week.0)).collect::<Vec<_>>();
            let want = oracle_best.get(&(player.clone(), server.clone(), "clq2")).cloned().unwrap_or_default();
            assert_eq!(clq2, want, "{context}: best clq2 of {player:?} on {server}");
        }
    }
}

/// Compares the blobs up to the last period that had ended at the server's last line.
fn check_series(oracle: &Oracle, got: &ServerArchive, ranks: &BTreeMap<u32, Vec<String>>, context: &str) {
    let want = oracle.series(&got.url);
    let Some(&first) = want.slots.keys().next() else {
        assert!(got.series.is_none(), "{context}series of a server without snapshots");
        return;
    };
    let series = got.series.as_ref().unwrap_or_else(|| panic!("{context}no series"));
    let calendar = &oracle.settings.calendar;
    let last = got.last_scan_ms.expect("a line").div_euclid(600_000);
    let day = |slot: i64| calendar.day(slot.div_euclid(6) * 3_600_000);
    let blank = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0xff || byte == 0xfe);
    let check = |what: &str, newest_ms: i64, want_newest: Option<i64>, got: &[u8], want: &dyn Fn() -> Vec<u8>| {
        let Some(want_newest) = want_newest else {
            assert!(newest_ms == 0 && blank(got), "{context}{what}: no period has ended yet");
            return;
        };
        assert_eq!(newest_ms, want_newest, "{context}{what}: newest period");
        let want = want();
        assert!(got == want, "{context}{what}\n   got {got:?}\noracle {want:?}");
    };
    let newest = |first: i64, last: i64| (last > first).then(|| last - 1);
    let slot = newest(first, last);
    check("ten_minutes", series.newest_ten_minutes_ms, slot.map(|n| n * 600_000), &series.ten_minutes, &|| {
        pack_slots(&want.slots, slot.expect("a period"))
    });
    let hour = newest(first.div_euclid(6), last.div_euclid(6));
    check("hours", series.newest_hour_ms, hour.map(|n| n * 3_600_000), &series.hours, &|| {
        want.hours_blob(hour.expect("a period"))
    });
    let days = newest(day(first), day(last));
    check("days", series.newest_day_ms, days.map(|n| calendar.day_start_ms(n)), &series.days, &|| {
        want.days_blob(days.expect("a period"))
    });
    let weeks = newest(day(first).div_euclid(7), day(last).div_euclid(7));
    let week_start = |n: i64| calendar.week_start_ms(WeekKey(n as u32));
    check("weeks", series.newest_week_ms, weeks.map(week_start), &series.weeks, &|| {
        want.weeks_blob(weeks.expect("a period"))
    });
    let rank = |week: u32| {
        let closed = Some(week) < oracle.current_week();
        ranks.get(&week).filter(|_| closed)?.iter().position(|url| *url == got.url).map(|at| at + 1)
    };
    if let Some(newest) = series.newest_rank_week {
        assert_eq!(series.ranks, ranks_blob(rank, newest.0), "{context}ranks up to week {newest}");
        assert_eq!(got.rank.map(|rank| rank as usize), rank(newest.0), "{context}rank in week {newest}");
    }
    // A rank in a closed week must be in the series.
    let newest_ranked = ranks.keys().rev().copied().find(|&week| rank(week).is_some());
    assert!(newest_ranked <= series.newest_rank_week.map(|week| week.0), "{context}rank of week {newest_ranked:?}");
}
