//! A history of more than a day, up to two hours ago, and the expected boards, computed from the
//! plays window by window.

pub use clqd::model::calendar::{HOUR_MS, MINUTE_MS};
use std::collections::BTreeMap;

use clqd::board::window::{WindowTypes, label};
use clqd::model::WindowKey;
use clqd::model::calendar::Calendar;

pub const A: &str = "quake3://127.0.0.1:27960";
pub const B: &str = "quake3://127.0.0.1:27961";
pub const C: &str = "source://127.0.0.1:27015";

/// The windows of the config. Those of type 12 start an hour apart and overlap.
pub const WINDOWS: [&str; 5] = [
    "hour keep=0",
    "day keep=0",
    "month keep=0",
    "all-time",
    "12 base=2025-01-01T00:00:00Z duration=3h every=1h keep=0",
];

/// Points of a player on a server, and when they were seen.
#[derive(Clone, Copy)]
pub struct Play {
    pub t_ms: i64,
    pub server: &'static str,
    pub player: &'static str,
    pub points: i64,
}

pub struct Past {
    pub plays: Vec<Play>,
    windows: WindowTypes,
}

impl Past {
    /// The last play is in an hour that ended at least an hour before `now_ms`.
    pub fn new(now_ms: i64) -> Past {
        // No player is in a final list that a later scan of the server reveals: they would have
        // a row there, too.
        let hour_ms = now_ms - now_ms.rem_euclid(HOUR_MS);
        let mut plays = Vec::new();
        for (hours, server, players) in [
            (26, A, &[("Visor", 7)][..]),
            (26, C, &[("Gordon", 9)]),
            (4, A, &[("Visor", 30), ("Anarki", 10)]),
            (3, B, &[("Anarki", 20), ("Visor", 5), ("Sarge", 5)]),
            (3, C, &[("Gordon", 2), ("Visor", 4)]),
        ] {
            let t_ms = hour_ms - hours * HOUR_MS + 12 * MINUTE_MS;
            plays.extend(players.iter().map(|&(player, points)| Play { t_ms, server, player, points }));
        }
        let specs: Vec<_> = WINDOWS.iter().map(|text| text.parse().expect("a type")).collect();
        Past { plays, windows: WindowTypes::new(Calendar::default(), specs).expect("types") }
    }

    pub fn config() -> String {
        format!("[boards]\nwindows = {WINDOWS:?}\n")
    }

    /// The history as a scan log: every player enters with 0 points, and has their points two
    /// minutes later.
    pub fn log(&self) -> String {
        let mut lines = String::new();
        let mut scans: BTreeMap<(i64, &str), Vec<&Play>> = BTreeMap::new();
        for play in &self.plays {
            scans.entry((play.t_ms - 2 * MINUTE_MS, play.server)).or_default().push(play);
            scans.entry((play.t_ms, play.server)).or_default().push(play);
        }
        for ((t_ms, server), plays) in scans {
            let points = |play: &Play| if play.t_ms == t_ms { play.points } else { 0 };
            let players =
                plays.iter().map(|play| format!(r#"{{"name":"{}","points":{},"ping":30}}"#, play.player, points(play)));
            let (players, game) = (players.collect::<Vec<_>>().join(","), game(server));
            lines += &format!(
                "{{\"t\":{t_ms},\"server\":\"{server}\",\"game\":\"{game}\",\"map\":\"m\",\"slots\":16,\"players\":[{players}]}}\n"
            );
        }
        lines
    }

    /// Every window with at least one play.
    pub fn windows(&self) -> Vec<WindowKey> {
        let mut keys: Vec<WindowKey> = self.plays.iter().flat_map(|play| self.windows.windows_at(play.t_ms)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Names and points of a board, best first; players with equal points in order of the time
    /// at which they reached them, then of key. A name in two games is two players.
    pub fn points(&self, in_scope: impl Fn(&Play) -> bool, window: WindowKey) -> Vec<(String, i64)> {
        let mut sums: Vec<((&str, &str), i64, i64)> = Vec::new();
        let counted =
            self.plays.iter().filter(|play| in_scope(play) && self.windows.windows_at(play.t_ms).contains(&window));
        for play in counted {
            let player = (play.player, game(play.server));
            match sums.iter_mut().find(|(known, ..)| *known == player) {
                Some((_, sum, t_ms)) => (*sum, *t_ms) = (*sum + play.points, play.t_ms),
                None => sums.push((player, play.points, play.t_ms)),
            }
        }
        let known = |player| self.plays.iter().position(|play| (play.player, game(play.server)) == player);
        sums.sort_by_key(|(player, sum, t_ms)| (-sum, *t_ms, known(*player)));
        sums.into_iter().map(|((name, _), sum, _)| (name.to_owned(), sum)).collect()
    }

    pub fn label(window: WindowKey) -> String {
        label(window)
    }
}

pub fn game(server: &str) -> &'static str {
    if server == C { "cstrike" } else { "baseq3" }
}
