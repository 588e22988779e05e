//! Rows, boards and best positions (docs/rules.md 3, 5 to 8, 11) and the export of
//! docs/rules.md 13, computed from all facts of a scope. Windows other than weeks: see `windows`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use clqd::model::WeekKey;
use clqd::model::calendar::week_label;

use super::{Fact, FactKind, Oracle, Round, Who, elo_after, of_server};

/// Whose rounds and facts a board takes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Server(String),
    Game(String),
    /// The servers that an admin gave one tag.
    Tag(Vec<String>),
}

/// A player in one week, or another window, in one scope.
#[derive(Clone, Debug)]
pub struct Row {
    /// That in which the window begins.
    pub week: u32,
    pub who: Who,
    pub measured_ms: i64,
    pub starts: i64,
    /// docs/rules.md 15. Of several servers it is the sum of theirs.
    pub time_est_ms: i64,
    /// Was seen with points, or is in a final list. Otherwise the player is on the time board
    /// only.
    pub with_points: bool,
    pub points: i64,
    /// The ten best, descending, thousandths.
    pub clq1_segments: Vec<u64>,
    /// The ten best, descending.
    pub clq2_games: Vec<u64>,
    pub elo: f64,
    pub elo_rounds: usize,
    /// When each score was reached, by ranking; only of rankings that the player is in.
    pub reached: BTreeMap<&'static str, i64>,
    /// Position 1 is best; absent where not ranked.
    pub pos: BTreeMap<&'static str, usize>,
}

/// Ratings of a window in a scope.
pub(super) struct Ratings {
    /// Each with the moment of its round.
    pub revealed: HashMap<Who, Vec<(i64, f64)>>,
    /// The values that players carry over from earlier weeks.
    pub carried: HashMap<Who, f64>,
}

/// The best three (position, week) of a player on a server in a ranking, best first.
pub type Best = Vec<(usize, u32)>;

pub const RANKINGS: [&str; 5] = ["clq1", "clq2", "elo", "points", "time"];

impl Scope {
    pub(super) fn holds(&self, server: &str, game: &str) -> bool {
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

    /// The score in a ranking; `None`: absent from it (docs/rules.md 8).
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
            text(&self.who.game),
            text(&self.who.name),
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
    /// [open] Every player rated in the week has a row, even one who had left by its
    /// first snapshot and is only in a final list. The player is on the boards of
    /// points and time then, with 0.
    ///
    /// [open] A player who was seen with points and without in one week is on the
    /// points board.
    pub fn rows(&self, week: u32, scope: &Scope) -> Vec<Row> {
        self.rows_revealed(week, |_, of_week| of_week == week, self.ratings(week, scope), scope)
    }

    /// The same of any window: `within` tells by moment and week what it takes in.
    pub(super) fn rows_revealed(
        &self,
        week: u32,
        within: impl Fn(i64, u32) -> bool,
        ratings: Ratings,
        scope: &Scope,
    ) -> Vec<Row> {
        let in_scope = |f: &&Fact| within(f.t, f.week) && scope.holds(&f.server, &f.who.game);
        let mut facts: HashMap<&Who, Vec<&Fact>> = HashMap::new();
        let all = match scope {
            Scope::Server(server) => of_server(&self.index.facts, &self.facts, server),
            _ => self.facts.iter().collect(),
        };
        for fact in all.into_iter().filter(in_scope) {
            facts.entry(&fact.who).or_default().push(fact);
        }
        let who: BTreeSet<&Who> = facts.keys().copied().chain(ratings.revealed.keys()).collect();
        let mut rows: Vec<Row> = who
            .into_iter()
            .map(|who| {
                let facts = facts.get(who).map_or(&[][..], Vec::as_slice);
                let start = ratings.carried.get(who).copied().unwrap_or(1000.0);
                row(week, who, facts, start, ratings.revealed.get(who).map_or(&[][..], Vec::as_slice))
            })
            .collect();
        let all = match scope {
            Scope::Server(server) => of_server(&self.index.estimates, &self.estimates, server),
            _ => self.estimates.iter().collect(),
        };
        let mut time_est_ms: HashMap<&Who, i64> = HashMap::new();
        for e in all.into_iter().filter(|e| within(e.t, e.week) && scope.holds(&e.server, &e.who.game)) {
            *time_est_ms.entry(&e.who).or_default() += e.ms;
        }
        for row in &mut rows {
            row.time_est_ms = time_est_ms.get(&row.who).copied().unwrap_or(0);
        }
        rows.sort_by_key(|row| self.player_key(&row.who));
        for ranking in RANKINGS {
            self.rank(&mut rows, ranking);
        }
        rows
    }

    /// docs/rules.md 8: score descending, the earlier moment, the smaller key; ordinal.
    pub fn rank(&self, rows: &mut [Row], ranking: &'static str) {
        let mut order: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].score(ranking).is_some()).collect();
        order.sort_by(|&a, &b| {
            let by_score = rows[b].score(ranking).unwrap().total_cmp(&rows[a].score(ranking).unwrap());
            let by_moment = rows[a].reached[ranking].cmp(&rows[b].reached[ranking]);
            // Rows stand in order of player key.
            by_score.then(by_moment).then(a.cmp(&b))
        });
        for (place, i) in order.into_iter().enumerate() {
            rows[i].pos.insert(ranking, place + 1);
        }
    }

    /// docs/rules.md 7: every rating in a week, by player, with the moment of its round.
    ///
    /// [open] With `elo.carry_over` a player starts the week with the last rating in
    /// the scope, of any earlier week; the row shows it, rated or not.
    fn ratings(&self, week: u32, scope: &Scope) -> Ratings {
        let mut carried: HashMap<Who, f64> = HashMap::new();
        let mut last: HashMap<Who, (u32, f64)> = HashMap::new();
        let mut revealed: HashMap<Who, Vec<(i64, f64)>> = HashMap::new();
        let in_scope = |r: &&Round| r.week <= week && scope.holds(&r.server, &r.game);
        let all = match scope {
            Scope::Server(server) => of_server(&self.index.rounds, &self.rounds, server),
            _ => self.rounds.iter().collect(),
        };
        for round in all.into_iter().filter(in_scope) {
            let who = |name: &str| Who { game: round.game.clone(), name: name.to_owned() };
            let counts = |rated_week: u32| rated_week == round.week || self.settings.elo_carry_over;
            let rating = |name: &str| last.get(&who(name)).filter(|(week, _)| counts(*week)).map(|(_, r)| *r);
            let before: Vec<f64> =
                round.list.iter().map(|e| rating(&e.name).filter(|_| e.usable).unwrap_or(1000.0)).collect();
            let points: Vec<i64> = round.list.iter().map(|e| e.points).collect();
            for (entry, after) in round.list.iter().zip(elo_after(&points, &before, &self.settings)) {
                if entry.usable {
                    last.insert(who(&entry.name), (round.week, after));
                    if round.week == week {
                        revealed.entry(who(&entry.name)).or_default().push((round.t, after));
                    } else if self.settings.elo_carry_over {
                        carried.insert(who(&entry.name), after);
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
            (a_server, &a.who.name, &a.who.game).cmp(&(b_server, &b.who.name, &b.who.game))
        });
        all
    }

    /// What `clqd export --week` is to print.
    pub fn export(&self, week: u32) -> Vec<String> {
        self.week_rows(week).iter().map(|(server, row)| row.export_line(server)).collect()
    }

    /// docs/rules.md 11: the three best positions in clq1, clq2 and elo of each (player, server),
    /// over all closed weeks.
    pub fn best_positions(&self) -> BTreeMap<(Who, String, &'static str), Best> {
        let mut best: BTreeMap<_, Best> = BTreeMap::new();
        for week in self.weeks().into_iter().filter(|&week| Some(week) != self.running_week()) {
            for (server, row) in self.week_rows(week) {
                for ranking in ["clq1", "clq2", "elo"] {
                    if let Some(&position) = row.pos.get(ranking) {
                        best.entry((row.who.clone(), server.clone(), ranking)).or_default().push((position, week));
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

fn row(week: u32, who: &Who, facts: &[&Fact], start_rating: f64, ratings: &[(i64, f64)]) -> Row {
    let first_sighting = facts.iter().map(|f| f.t).chain(ratings.iter().map(|r| r.0)).min().expect("a reason");
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
        who: who.clone(),
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
