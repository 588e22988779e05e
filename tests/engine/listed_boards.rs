//! Boards that are updated from lists, commit by commit, equal boards that are built from all rows: of players on one and
//! on several servers at once, with and without tags and tie-breakers, with corrections between the lists, and with records
//! that are in memory or not.

use clqd::engine::{BuiltBoards, CacheLimits, EngineSettings};
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::model::{Ranking, Scope, ServerUrl};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::{BoardQuery, BoardRow, BoardSelector, PlayerSelector};

use crate::scans;

const START_MS: i64 = 1_763_942_400_000; // Monday
const WEEK_MS: i64 = 7 * 24 * 3_600_000;
const SERVERS: usize = 6;
const PLAYERS: usize = 30;
const LISTS: usize = 400;

fn url(server: usize) -> String {
    format!("quake3://10.0.0.{}:27960", server + 1)
}

/// Key of a player, score and time.
type Entries = Vec<(u32, i64, i64)>;

/// The boards of the game and of both tags.
fn boards(state: &State) -> Vec<(String, Entries)> {
    let groups = [Scope::Game("baseq3".to_owned()), Scope::Tag("ctf".to_owned()), Scope::Tag("duel".to_owned())];
    let each = groups.into_iter().flat_map(|scope| Ranking::ALL.map(|ranking| (scope.clone(), ranking)));
    let board = |(scope, ranking): (Scope, Ranking)| {
        let name = format!("{scope} {}", ranking.name());
        let board = BoardSelector { scope, ranking, window: None, at_ms: None };
        let found = state.engine.model().query_board(&state.store, &board, &BoardQuery::Top { count: 100 }).unwrap();
        let entries = found.rows.into_iter().map(|row| match row {
            BoardRow::Entry(entry) => (entry.player_key, entry.at.raw_score, entry.at.reached_ms),
            other => panic!("{other:?}"),
        });
        (name, entries.collect())
    };
    each.map(board).collect()
}

/// A change by an admin.
fn correct(state: &mut State, rng: &mut SplitMix64, now_ms: i64) {
    state.commit().unwrap();
    let State { engine, store } = state;
    let mut any_of = |servers| ServerUrl::parse(&url(rng.below(servers))).unwrap();
    let (server, some) = (any_of(SERVERS), any_of(2));
    let mut name = || PlayerSelector::Name(format!("p{}", rng.below(PLAYERS)));
    let (one, other) = (name(), name());
    match rng.below(6) {
        0 => _ = engine.tag_server(&server, &["ctf".to_owned()], &["duel".to_owned()]).unwrap(),
        1 => _ = engine.tag_server(&server, &["duel".to_owned()], &["ctf".to_owned()]).unwrap(),
        // Most servers always count.
        2 => _ = engine.greylist(store, &some, Some("fake".to_owned())).unwrap(),
        3 => _ = engine.greylist(store, &some, None).unwrap(),
        // The player may be unknown, or both may be the same.
        4 => _ = engine.forget_player(store, "baseq3", &one, now_ms),
        _ => _ = engine.merge_players(store, "baseq3", &one, &other),
    }
    state.commit().unwrap();
}

fn play(seed: u64) {
    let mut rng = SplitMix64::from_parts(&[seed, 0xB0A2]);
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let ties = if seed.is_multiple_of(3) { vec!["points elo".parse().unwrap()] } else { Vec::new() };
    let settings = EngineSettings { tie_breakers: ties, ..EngineSettings::default() };
    let mut state = State::open(dir.path(), store, settings).unwrap();
    let player_windows_max = if seed.is_multiple_of(2) { 3 } else { 1_000 };
    state.engine.set_cache_limits(CacheLimits { player_windows_max, ..CacheLimits::NONE });
    for server in 0..SERVERS {
        let tags = [("ctf", server % 3 == 0), ("duel", server < 2)];
        let tags = tags.into_iter().filter(|(_, has)| *has).map(|(tag, _)| tag.to_owned()).collect();
        state.engine.add_server(ServerUrl::parse(&url(server)).unwrap(), tags, START_MS).unwrap();
    }
    let window = |state: &State| state.engine.model().running_windows()[0];
    // With some seeds a week ends half way.
    let mut now_ms = if seed.is_multiple_of(4) { START_MS + WEEK_MS - LISTS as i64 * 10_000 } else { START_MS };
    state.commit_and_build_boards(window(&state)).unwrap();
    // New boards, and the list before which they are installed.
    let mut building: Option<(usize, BuiltBoards)> = None;
    // The players on each server and their points. Some players are on several servers at once.
    let mut lists: Vec<Vec<(usize, i64)>> = vec![Vec::new(); SERVERS];
    for number in 0..LISTS {
        now_ms += 20_000;
        let server = rng.below(SERVERS);
        let list = &mut lists[server];
        list.retain(|_| rng.unit() > 0.1);
        if list.len() < 8 && rng.bool(0.6) {
            // Most have a server of their own.
            let player = if rng.bool(0.6) { server * 5 + rng.below(5) } else { rng.below(PLAYERS) };
            if list.iter().all(|(other, _)| *other != player) {
                list.push((player, 0));
            }
        }
        let is_new_round = rng.bool(0.08);
        for (_, points) in list.iter_mut() {
            *points = if is_new_round { 0 } else { *points + rng.below(4) as i64 };
        }
        let players = list.iter().map(|(player, points)| (format!("p{player}"), *points));
        scans::apply_snapshot(&mut state, &url(server), scans::snapshot(now_ms, players));
        if rng.bool(0.3) {
            state.commit().unwrap();
            _ = state.engine.refresh_boards(&state.store, None, 1 + rng.below(20)).unwrap();
        }
        if rng.bool(0.05) {
            correct(&mut state, &mut rng, now_ms);
        }
        if building.is_none() && rng.bool(0.02) {
            let plan = state.engine.plan_boards(window(&state));
            let built = clqd::state::build_boards(&plan, &state.store.reader()).unwrap();
            building = Some((number + rng.below(10), built));
        }
        if let Some((_, built)) = building.take_if(|(ends, _)| *ends <= number) {
            state.engine.install_boards(built);
        }
        if number % 100 != 99 {
            continue;
        }
        state.commit_and_build_boards(window(&state)).unwrap();
        building = None;
        let updated = boards(&state);
        assert!(updated[3..5].iter().all(|(_, entries)| number < 200 || !entries.is_empty()), "{updated:?}");
        let built =
            clqd::state::build_boards(&state.engine.plan_boards(window(&state)), &state.store.reader()).unwrap();
        state.engine.install_boards(built);
        state.commit_and_build_boards(window(&state)).unwrap();
        for (updated, built) in updated.iter().zip(&boards(&state)) {
            assert_eq!(updated, built, "seed {seed}, after list {number}");
        }
    }
}

#[test]
fn boards_updated_from_lists_equal_built_ones() {
    (1..=std::env::var("CLQD_SEEDS").map_or(12, |text| text.parse().unwrap())).for_each(play);
}

#[test]
fn round_that_ends_in_a_new_week_is_on_boards_of_players_known_on_other_servers() {
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
    let week_end_ms = START_MS + WEEK_MS;
    // The last server is never scanned.
    for (server, tags) in [&[][..], &[], &["ctf"], &["duel"]].into_iter().enumerate() {
        let tags = tags.iter().map(|tag| tag.to_string()).collect();
        state.engine.add_server(ServerUrl::parse(&url(server)).unwrap(), tags, START_MS).unwrap();
    }
    state.commit_and_build_boards(state.engine.model().running_windows()[0]).unwrap();
    let list = |state: &mut State, server: usize, t_ms: i64, players: &[(&str, i64)]| {
        let players = players.iter().map(|(name, points)| (name.to_string(), *points));
        scans::apply_snapshot(state, &url(server), scans::snapshot(t_ms, players));
    };
    let refresh = |state: &mut State| {
        state.commit().unwrap();
        while state.engine.refresh_boards(&state.store, None, usize::MAX).unwrap() {}
    };
    for (server, minute) in [(0, 3), (1, 3), (2, 3), (2, 1)] {
        list(&mut state, server, week_end_ms - minute * 60_000, &[("leaves", 20 - minute), ("stays", 15 - minute)]);
    }
    // The new week begins on two servers.
    for minute in 0..2 {
        for server in 0..2 {
            list(&mut state, server, week_end_ms + minute * 60_000, &[("leaves", 20 + minute), ("stays", 15)]);
            refresh(&mut state);
        }
    }
    // On the third one a player has left, and a round has ended.
    list(&mut state, 2, week_end_ms + 60_000, &[("stays", 0)]);
    refresh(&mut state);
    let (window, updated) = (state.engine.model().running_windows()[0], boards(&state));
    let built = clqd::state::build_boards(&state.engine.plan_boards(window), &state.store.reader()).unwrap();
    state.engine.install_boards(built);
    state.commit_and_build_boards(window).unwrap();
    assert_eq!(updated, boards(&state));
    let (name, clq2) = &updated[6];
    assert_eq!((&name[..], clq2.len()), ("tag:ctf clq2", 2), "{updated:?}");
}
