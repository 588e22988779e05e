//! Rows, boards and best positions (docs/rules.md 3, 5 to 8, 11) and the export of
//! docs/rules.md 13. The facts of a scope and the corrections are summed up in `sums`. For windows
//! other than weeks see `windows`.

use std::collections::BTreeMap;

use clqd::model::WeekKey;
use clqd::model::calendar::week_label;

use super::history::{Corrected, Target};
use super::{Oracle, PlayerId};

/// The servers or the game whose rounds and facts a board includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Server(String),
    Game(String),
    /// These servers, as if they had a tag from the beginning.
    Tag(Vec<String>),
    /// A tag of the log. The servers that have it at the end, with the ratings from rounds of servers
    /// that had it at the time of the round.
    Tagged(String),
}

/// A player in a week or another window, in a scope.
#[derive(Clone, Debug)]
pub struct Row {
    /// The week in which the window starts.
    pub week: u32,
    pub player: PlayerId,
    pub measured_ms: i64,
    pub starts: i64,
    /// docs/rules.md 15. The sum over the servers of the scope.
    pub time_est_ms: i64,
    /// s2; a sum like `time_est_ms`, as the next two are.
    pub time_est_variance: i64,
    /// `time_est_ms` with connected times.
    pub time_connected_ms: i64,
    /// s2.
    pub time_connected_variance: i64,
    /// The player was seen with points or is in a final list. Otherwise they are only on the time
    /// board.
    pub with_points: bool,
    pub points: i64,
    /// The ten best, descending, thousandths.
    pub clq1_segments: Vec<u64>,
    /// The ten best, descending.
    pub clq2_games: Vec<u64>,
    pub elo: f64,
    pub elo_rounds: usize,
    /// Those of the rounds that were sure.
    pub elo_rounds_sure: usize,
    /// When each score was reached, by ranking.
    pub reached: BTreeMap<&'static str, i64>,
    /// Positions by ranking, 1 is best; absent if not ranked.
    pub pos: BTreeMap<&'static str, usize>,
}

/// The best three (position, week) of a player on a server in a ranking, best first.
pub type Best = Vec<(usize, u32)>;

pub const RANKINGS: [&str; 5] = ["clq1", "clq2", "elo", "points", "time"];
/// Those with best positions.
const BEST: [&str; 3] = ["clq1", "clq2", "elo"];

impl Scope {
    /// Whether a setting of boards means this scope, such as `game:baseq3`.
    pub(super) fn is_named(&self, board: &str) -> bool {
        match self {
            Scope::Server(url) => board.strip_prefix("server:") == Some(url),
            Scope::Game(name) => board.strip_prefix("game:") == Some(name),
            Scope::Tagged(tag) => board.strip_prefix("tag:") == Some(tag),
            Scope::Tag(_) => false,
        }
    }
}

impl Row {
    pub fn time_ms(&self) -> i64 {
        self.measured_ms + 60_000 * self.starts
    }

    pub fn clq1(&self) -> u64 {
        self.clq1_segments.iter().sum()
    }

    pub fn clq2(&self) -> u64 {
        self.clq2_games.iter().sum()
    }

    /// The score in a ranking; `None`: not ranked (docs/rules.md 8).
    pub fn score(&self, ranking: &str) -> Option<f64> {
        match ranking {
            "clq1" => Some(self.clq1() as f64).filter(|&score| score > 0.0),
            "clq2" => Some(self.clq2() as f64).filter(|&score| score > 0.0),
            "elo" => Some(self.elo).filter(|_| self.elo_rounds > 0),
            "points" => Some(self.points as f64).filter(|_| self.with_points),
            "time" => Some(self.time_ms() as f64),
            _ => panic!("{ranking} is not a ranking"),
        }
    }

    /// A line of the export, in the format of `export.jsonl`.
    pub fn export_line(&self, server: &str) -> String {
        let list = |values: &[u64]| values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let text = |text: &str| serde_json::to_string(text).expect("text is JSON");
        let pos: Vec<String> = self.pos.iter().map(|(ranking, at)| format!("\"{ranking}\": {at}")).collect();
        format!(
            "{{\"week\": {}, \"server\": {}, \"game\": {}, \"player\": {}, \"measured_ms\": {}, \"starts\": {}, \
             \"time_ms\": {}, \"time_est_ms\": {}, \"time_est_error_ms\": {}, \"time_connected_ms\": {}, \
             \"time_connected_error_ms\": {}, \"points\": {}, \"clq1\": {}, \"clq1_segments\": [{}], \"clq2\": {}, \
             \"clq2_games\": [{}], \"elo\": {}, \"elo_rounds\": {}, \"elo_rounds_sure\": {}, \"pos\": {{{}}}}}",
            text(&week_label(WeekKey(self.week))),
            text(server),
            text(&self.player.game),
            text(&self.player.name),
            self.measured_ms,
            self.starts,
            self.time_ms(),
            self.time_est_ms,
            error_ms(self.time_est_variance),
            self.time_connected_ms,
            error_ms(self.time_connected_variance),
            self.points,
            self.clq1(),
            list(&self.clq1_segments),
            self.clq2(),
            list(&self.clq2_games),
            serde_json::to_string(&self.elo).expect("a rating is JSON"),
            self.elo_rounds,
            self.elo_rounds_sure,
            pos.join(", "),
        )
    }
}

impl Oracle {
    /// All rows of a week in a scope, with their positions, in order of player key.
    ///
    /// [open] Every player rated in the week has a row, even one that is only in a final list
    /// because they left before the first snapshot of the week. They are on the boards of points
    /// and time with 0.
    ///
    /// [open] A player who was seen both with and without points in a week is on the points board.
    ///
    /// [open] A player is on a board of a game or tag if they have a row on a server that counts
    /// there. The rating is that of the scope, whichever servers its rounds were on.
    pub fn rows(&self, week: u32, scope: &Scope) -> Vec<Row> {
        self.rows_at(week, scope, usize::MAX)
    }

    /// Those before a line of the log.
    fn rows_at(&self, week: u32, scope: &Scope, moment: usize) -> Vec<Row> {
        self.rows_of(&Target::week(&self.settings.calendar, week), scope, moment)
    }

    /// Those of any window.
    pub(super) fn rows_of(&self, target: &Target, scope: &Scope, moment: usize) -> Vec<Row> {
        let mut rows = self.sums(target, scope, moment);
        rows.sort_by_key(|row| self.player_key(&row.player));
        for ranking in RANKINGS {
            self.rank_at(&mut rows, ranking, scope, moment);
        }
        rows
    }

    /// docs/rules.md 8: ordered by score, highest first, then by the earlier time, then by the
    /// smaller key; ordinal positions. The settings of orders that name no scope apply.
    pub fn rank(&self, rows: &mut [Row], ranking: &'static str) {
        self.rank_in(rows, ranking, &Scope::Tag(Vec::new()));
    }

    /// The same with the settings of orders for a scope.
    pub fn rank_in(&self, rows: &mut [Row], ranking: &'static str, scope: &Scope) {
        self.rank_at(rows, ranking, scope, usize::MAX);
    }

    fn rank_at(&self, rows: &mut [Row], ranking: &'static str, scope: &Scope, moment: usize) {
        let settings = self.history.settings_at(moment);
        // Smaller is better.
        let key = |row: &Row, ranking: &str| {
            row.score(ranking).map(|score| if settings.is_low_better(ranking, scope) { score } else { -score })
        };
        let tie = settings.tie_breaker(ranking, scope);
        let tie_key = |row: &Row| tie.and_then(|other| key(row, other));
        let mut order: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].score(ranking).is_some()).collect();
        order.sort_by(|&a, &b| {
            let by_score = key(&rows[a], ranking).unwrap().total_cmp(&key(&rows[b], ranking).unwrap());
            let by_other = match (tie_key(&rows[a]), tie_key(&rows[b])) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            let by_time = rows[a].reached[ranking].cmp(&rows[b].reached[ranking]);
            // Rows are in order of player key.
            by_score.then(by_other).then(by_time).then(a.cmp(&b))
        });
        for (i, position) in order.into_iter().zip(1..) {
            rows[i].pos.insert(ranking, position);
        }
    }

    /// All rows of a week on all servers: URL, then player name, [open] then game.
    pub fn week_rows(&self, week: u32) -> Vec<(String, Row)> {
        self.week_rows_at(week, usize::MAX)
    }

    fn week_rows_at(&self, week: u32, moment: usize) -> Vec<(String, Row)> {
        let mut all = Vec::new();
        for server in &self.servers {
            let rows = self.rows_at(week, &Scope::Server(server.clone()), moment);
            all.extend(rows.into_iter().map(|row| (server.clone(), row)));
        }
        all.sort_by(|(a_server, a), (b_server, b)| {
            (a_server, &a.player.name, &a.player.game).cmp(&(b_server, &b.player.name, &b.player.game))
        });
        all
    }

    /// The expected output of `clqd export --week`.
    pub fn export(&self, week: u32) -> Vec<String> {
        self.week_rows(week).iter().map(|(server, row)| row.export_line(server)).collect()
    }

    /// docs/rules.md 11: the three best positions in clq1, clq2 and elo of each (player, server),
    /// over all closed weeks. A position is that of the moment at which its week was last closed.
    ///
    /// [open] A merged player keeps the better position of each week. Positions stay if the server is
    /// greylisted later, and if the week is deleted.
    pub fn best_positions(&self) -> BTreeMap<(PlayerId, String, &'static str), Best> {
        type ByWeek = BTreeMap<u32, usize>;
        let mut positions: BTreeMap<(PlayerId, String, &'static str), ByWeek> = BTreeMap::new();
        for week in self.weeks() {
            let closed = self.history.closed(&Target::week(&self.settings.calendar, week));
            let Some(closed) = closed.last().filter(|closed| closed.end == usize::MAX) else { continue };
            let later = self.history.corrections.iter().filter(|it| it.line >= closed.start);
            for (server, row) in self.week_rows_at(week, closed.start) {
                let mut player = Some(row.player.clone());
                for correction in later.clone() {
                    player = player.and_then(|player| correction.what.player_after(player));
                }
                for (ranking, position) in row.pos.into_iter().filter(|(ranking, _)| BEST.contains(ranking)) {
                    let Some(player) = player.clone() else { continue };
                    let at = positions.entry((player, server.clone(), ranking)).or_default();
                    let best = at.entry(week).or_insert(position);
                    *best = position.min(*best);
                }
            }
        }
        let best = |by_week: ByWeek| {
            let mut best: Best = by_week.into_iter().map(|(week, position)| (position, week)).collect();
            best.sort_unstable();
            best.truncate(3);
            best
        };
        positions.into_iter().map(|(key, by_week)| (key, best(by_week))).collect()
    }
}

/// docs/rules.md 15: in four cases of five the true time is not further away.
fn error_ms(variance: i64) -> i64 {
    (1281.552 * (variance as f64).sqrt()).round() as i64
}

impl Corrected {
    /// Whose data those of a player are after the correction.
    fn player_after(&self, player: PlayerId) -> Option<PlayerId> {
        match self {
            Corrected::Merged { from, into } if *from == player => Some(into.clone()),
            Corrected::Forgotten(forgotten) if *forgotten == player => None,
            _ => Some(player),
        }
    }
}
