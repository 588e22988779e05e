//! Rows, boards and best positions (docs/rules.md 3, 5 to 8, 11) and the export of
//! docs/rules.md 13, computed from all facts of a scope. For windows other than weeks see
//! `windows`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clqd::model::WeekKey;
use clqd::model::calendar::week_label;

use super::{Fact, FactKind, Oracle, PlayerId, Round, elo_after, of_server};

/// The servers or the game whose rounds and facts a board includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Server(String),
    Game(String),
    /// The servers with one tag.
    Tag(Vec<String>),
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
    /// When each score was reached, by ranking.
    pub reached: BTreeMap<&'static str, i64>,
    /// Positions by ranking, 1 is best; absent if not ranked.
    pub pos: BTreeMap<&'static str, usize>,
}

/// Ratings of a window in a scope.
pub(super) struct Ratings {
    /// Ratings in the window, each with the time of its round.
    pub revealed: HashMap<PlayerId, Vec<(i64, f64)>>,
    /// The values that players carry over from earlier weeks.
    pub carried: HashMap<PlayerId, f64>,
}

/// The best three (position, week) of a player on a server in a ranking, best first.
pub type Best = Vec<(usize, u32)>;

pub const RANKINGS: [&str; 5] = ["clq1", "clq2", "elo", "points", "time"];

impl Scope {
    pub(super) fn contains(&self, server: &str, game: &str) -> bool {
        match self {
            Scope::Server(url) => url == server,
            Scope::Game(name) => name == game,
            Scope::Tag(servers) => servers.iter().any(|url| url == server),
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
             \"time_ms\": {}, \"time_est_ms\": {}, \"points\": {}, \"clq1\": {}, \"clq1_segments\": [{}], \"clq2\": {}, \
             \"clq2_games\": [{}], \"elo\": {}, \"elo_rounds\": {}, \"pos\": {{{}}}}}",
            text(&week_label(WeekKey(self.week))),
            text(server),
            text(&self.player.game),
            text(&self.player.name),
            self.measured_ms,
            self.starts,
            self.time_ms(),
            self.time_est_ms,
            self.points,
            self.clq1(),
            list(&self.clq1_segments),
            self.clq2(),
            list(&self.clq2_games),
            serde_json::to_string(&self.elo).expect("a rating is JSON"),
            self.elo_rounds,
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
    pub fn rows(&self, week: u32, scope: &Scope) -> Vec<Row> {
        self.rows_revealed(week, |_, of_week| of_week == week, self.ratings(week, scope), scope)
    }

    /// All rows of a window. `within` decides by time and week what the window includes.
    pub(super) fn rows_revealed(
        &self,
        week: u32,
        within: impl Fn(i64, u32) -> bool,
        ratings: Ratings,
        scope: &Scope,
    ) -> Vec<Row> {
        let in_scope = |f: &&Fact| within(f.t, f.week) && scope.contains(&f.server, &f.player.game);
        let mut facts: HashMap<&PlayerId, Vec<&Fact>> = HashMap::new();
        let all = match scope {
            Scope::Server(server) => of_server(&self.index.facts, &self.facts, server),
            _ => self.facts.iter().collect(),
        };
        for fact in all.into_iter().filter(in_scope) {
            facts.entry(&fact.player).or_default().push(fact);
        }
        let players: BTreeSet<&PlayerId> = facts.keys().copied().chain(ratings.revealed.keys()).collect();
        let mut rows: Vec<Row> = players
            .into_iter()
            .map(|player| {
                let facts = facts.get(player).map_or(&[][..], Vec::as_slice);
                let start = ratings.carried.get(player).copied().unwrap_or(1000.0);
                row(week, player, facts, start, ratings.revealed.get(player).map_or(&[][..], Vec::as_slice))
            })
            .collect();
        let all = match scope {
            Scope::Server(server) => of_server(&self.index.estimates, &self.estimates, server),
            _ => self.estimates.iter().collect(),
        };
        let mut time_est_ms: HashMap<&PlayerId, i64> = HashMap::new();
        for e in all.into_iter().filter(|e| within(e.t, e.week) && scope.contains(&e.server, &e.player.game)) {
            *time_est_ms.entry(&e.player).or_default() += e.ms;
        }
        for row in &mut rows {
            row.time_est_ms = time_est_ms.get(&row.player).copied().unwrap_or(0);
        }
        rows.sort_by_key(|row| self.player_key(&row.player));
        for ranking in RANKINGS {
            self.rank(&mut rows, ranking);
        }
        rows
    }

    /// docs/rules.md 8: ordered by score, highest first, then by the earlier time, then by the
    /// smaller key; ordinal positions.
    pub fn rank(&self, rows: &mut [Row], ranking: &'static str) {
        let mut order: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].score(ranking).is_some()).collect();
        order.sort_by(|&a, &b| {
            let by_score = rows[b].score(ranking).unwrap().total_cmp(&rows[a].score(ranking).unwrap());
            let by_time = rows[a].reached[ranking].cmp(&rows[b].reached[ranking]);
            // Rows are in order of player key.
            by_score.then(by_time).then(a.cmp(&b))
        });
        for (i, position) in order.into_iter().zip(1..) {
            rows[i].pos.insert(ranking, position);
        }
    }

    /// docs/rules.md 7: every rating in a week, by player, with the time of its round.
    ///
    /// [open] With `elo.carry_over` a player starts the week with their last rating in the scope,
    /// from any earlier week; it is in the row even if the player is not rated in the week.
    fn ratings(&self, week: u32, scope: &Scope) -> Ratings {
        let mut carried: HashMap<PlayerId, f64> = HashMap::new();
        let mut last: HashMap<PlayerId, (u32, f64)> = HashMap::new();
        let mut revealed: HashMap<PlayerId, Vec<(i64, f64)>> = HashMap::new();
        let in_scope = |r: &&Round| r.week <= week && scope.contains(&r.server, &r.game);
        let all = match scope {
            Scope::Server(server) => of_server(&self.index.rounds, &self.rounds, server),
            _ => self.rounds.iter().collect(),
        };
        for round in all.into_iter().filter(in_scope) {
            let player = |name: &str| PlayerId { game: round.game.clone(), name: name.to_owned() };
            let is_used = |rated_week: u32| rated_week == round.week || self.settings.elo_carry_over;
            let rating = |name: &str| last.get(&player(name)).filter(|(week, _)| is_used(*week)).map(|(_, r)| *r);
            let before: Vec<f64> =
                round.list.iter().map(|e| rating(&e.name).filter(|_| e.usable).unwrap_or(1000.0)).collect();
            let points: Vec<i64> = round.list.iter().map(|e| e.points).collect();
            for (entry, after) in round.list.iter().zip(elo_after(&points, &before, &self.settings)) {
                if entry.usable {
                    last.insert(player(&entry.name), (round.week, after));
                    if round.week == week {
                        revealed.entry(player(&entry.name)).or_default().push((round.t, after));
                    } else if self.settings.elo_carry_over {
                        carried.insert(player(&entry.name), after);
                    }
                }
            }
        }
        Ratings { revealed, carried }
    }

    /// All rows of a week on all servers: URL, then player name, [open] then game.
    pub fn week_rows(&self, week: u32) -> Vec<(String, Row)> {
        let mut all = Vec::new();
        for server in &self.servers {
            let rows = self.rows(week, &Scope::Server(server.clone()));
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
    /// over all closed weeks.
    pub fn best_positions(&self) -> BTreeMap<(PlayerId, String, &'static str), Best> {
        let mut best: BTreeMap<_, Best> = BTreeMap::new();
        for week in self.weeks().into_iter().filter(|&week| Some(week) != self.current_week()) {
            for (server, row) in self.week_rows(week) {
                for ranking in ["clq1", "clq2", "elo"] {
                    if let Some(&position) = row.pos.get(ranking) {
                        best.entry((row.player.clone(), server.clone(), ranking)).or_default().push((position, week));
                    }
                }
            }
        }
        for list in best.values_mut() {
            list.sort_unstable();
            list.truncate(3);
        }
        best
    }
}

fn row(week: u32, player: &PlayerId, facts: &[&Fact], start_rating: f64, ratings: &[(i64, f64)]) -> Row {
    let first_sighting =
        facts.iter().map(|f| f.t).chain(ratings.iter().map(|r| r.0)).min().expect("a fact or a rating");
    let valued = |value: fn(FactKind) -> Option<u64>| -> Vec<(i64, u64)> {
        facts.iter().filter_map(|f| Some((f.t, value(f.kind)?))).collect()
    };
    let gaps = valued(|kind| if let FactKind::Stayed { gap_ms } = kind { Some(gap_ms as u64) } else { None });
    let starts = valued(|kind| (kind == FactKind::Start).then_some(1));
    let gains = valued(|kind| if let FactKind::Gain(points) = kind { Some(points as u64) } else { None });
    let segments = valued(|kind| if let FactKind::Segment(thousandths) = kind { Some(thousandths) } else { None });
    let games = valued(|kind| if let FactKind::Game(score) = kind { Some(score) } else { None });

    let with_points = facts.iter().any(|f| f.kind == FactKind::Seen { with_points: true }) || !ratings.is_empty();

    let last = |of: &[(i64, u64)]| of.last().map(|(t, _)| *t);
    let reached = [
        ("clq1", best_ten_reached(&segments).unwrap_or(first_sighting)),
        ("clq2", best_ten_reached(&games).unwrap_or(first_sighting)),
        ("elo", ratings.last().map_or(first_sighting, |r| r.0)),
        ("points", last(&gains).unwrap_or(first_sighting)),
        ("time", last(&gaps).max(last(&starts)).unwrap_or(first_sighting)),
    ];
    Row {
        week,
        player: player.clone(),
        measured_ms: gaps.iter().map(|(_, gap)| *gap as i64).sum(),
        starts: starts.len() as i64,
        time_est_ms: 0,
        with_points,
        points: gains.iter().map(|(_, points)| *points as i64).sum(),
        clq1_segments: best_ten(&segments),
        clq2_games: best_ten(&games),
        elo: ratings.last().map_or(start_rating, |r| r.1),
        elo_rounds: ratings.len(),
        reached: BTreeMap::from(reached),
        pos: BTreeMap::new(),
    }
}

fn best_ten(all: &[(i64, u64)]) -> Vec<u64> {
    let mut values: Vec<u64> = all.iter().map(|(_, value)| *value).collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.truncate(10);
    values
}

/// When the sum of the ten best last changed.
fn best_ten_reached(all: &[(i64, u64)]) -> Option<i64> {
    let sum = |n: usize| best_ten(&all[..n]).iter().sum::<u64>();
    (0..all.len()).rev().find(|&n| sum(n) != sum(n + 1)).map(|n| all[n].0)
}
