//! Boards of windows that have ended are in MySQL as closed, and complete, although the daemon is killed again and
//! again: in the middle of a publication, between the end of a window and its publication, and during a start.
//!
//! A window ends every five seconds. `CLQD_KILLS` is the number of kills (10), `CLQD_SEED` the seed.

use std::time::Duration;

use crate::database::Database;
use crate::sandbox::{Sandbox, fleet, number, seed, wait_for, wait_until};
use clqd::board::window;
use clqd::config::Config;
use clqd::fleet::FaultShares;
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::state::State;
use clqd::view::board::WindowPhase;

#[test]
fn boards_of_ended_windows_are_published_despite_kills() {
    let (kills, seed) = (number("CLQD_KILLS", 10), seed());
    eprintln!("seed {seed}, {kills} kills");
    let mut rng = SplitMix64::from_parts(&[seed, 5]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let windows: Vec<String> =
        (0..12).map(|n| format!("{} base=2026-01-05T00:00:{:02}Z duration=1m keep=0", 12 + n, 5 * n)).collect();
    let sandbox = Sandbox::new(&format!(
        "[archive]\nurl = {:?}\ninterval_s = 2\n[boards]\nwindows = {windows:?}",
        database.url()
    ));
    sandbox.ok(["migrate"]);
    let fleet = fleet(8, seed, 60.0, FaultShares::NONE);
    let mut daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(200 + rng.below(6_000) as u64));
        daemon.kill();
        while rng.bool(0.3) {
            let starting = sandbox.spawn();
            std::thread::sleep(Duration::from_millis(rng.below(400) as u64));
            starting.kill();
        }
        daemon = sandbox.start();
    }
    drop(fleet);
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let rows = |sql: &str| runtime.block_on(database.rows(sql));
    // Windows end until the daemon stops, and then what is pending is written.
    wait_until("some windows are closed in MySQL", || {
        value("SELECT COUNT(DISTINCT window_label) > 9 FROM top_board WHERE closed") == "1"
    });
    daemon.stop();

    let config = Config::load(&sandbox.config()).expect("the config");
    let mut state = wait_for("the state is closed", || State::open_configured(&config, &sandbox.state(), true).ok());
    let now_ms = state.engine.model().now_ms();
    // A window is closed some seconds after its end, and its boards are written within a pass.
    let ended = state.engine.model().windows().into_iter().filter(|listed| {
        listed.phase == WindowPhase::Closed && listed.window.end_ms.is_some_and(|end_ms| end_ms + 20_000 < now_ms)
    });
    let (mut windows, mut positions) = (0, 0);
    for label in ended.map(|listed| listed.window.window).collect::<Vec<_>>() {
        let key = window::parse_label(&label).expect("a label");
        state.commit_and_build_boards(key).expect("a store");
        let boards = state.engine.model().top_boards(Some(key), None, usize::MAX);
        let mut want: Vec<[String; 5]> = Vec::new();
        for board in &boards {
            let head = [board.key.scope.name(), &board.scope_name, board.key.ranking.name()].map(str::to_owned);
            let line = |position: usize, player: u32| {
                [head[0].clone(), head[1].clone(), head[2].clone(), position.to_string(), player.to_string()]
            };
            want.push(line(0, board.size));
            want.extend(board.entries.iter().zip(1..).map(|(entry, position)| line(position, entry.player.0)));
        }
        let of_window = format!("FROM top_board WHERE window_label = '{label}' AND closed");
        let mut found = rows(&format!("SELECT scope_type, scope, ranking, 0, players {of_window}"));
        found.extend(rows(&format!(
            "SELECT scope_type, scope, ranking, position, player FROM top_board JOIN top_board_row USING (board) \
             WHERE window_label = '{label}' AND closed"
        )));
        want.sort();
        found.sort();
        assert!(found == want, "seed {seed}, {label}: {} lines in MySQL, {} in the state", found.len(), want.len());
        windows += 1;
        positions += want.len() - boards.len();
    }
    assert!(windows > 4 && positions > 20, "{windows} windows with {positions} positions");
    eprintln!("{windows} windows with {positions} positions");
}

#[test]
fn boards_of_a_deleted_tag_disappear() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let sandbox = Sandbox::new(&format!("[archive]\nurl = {:?}\ninterval_s = 2", database.url()));
    sandbox.ok(["migrate"]);
    let fleet = fleet(6, 5, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    sandbox.ok([vec!["servers".into(), "tag".into(), "--add".into(), "ctf".into()], fleet.urls()].concat());
    let boards = |scope: &str| {
        let count = format!("SELECT COUNT(*) FROM top_board WHERE scope_type = '{scope}'");
        runtime.block_on(database.value(&count)).parse::<u32>().unwrap()
    };
    wait_until("the tag has boards", || boards("tag") > 0);
    sandbox.ok(["servers", "tag", "--drop", "ctf", "--yes"]);
    wait_until("they are gone", || boards("tag") == 0);
    assert!(boards("all") > 0 && boards("game") > 0);
    assert_eq!(
        runtime.block_on(
            database.value("SELECT COUNT(*) FROM top_board_row WHERE board NOT IN (SELECT board FROM top_board)")
        ),
        "0"
    );
    daemon.stop();
}
