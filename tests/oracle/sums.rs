//! Sums of facts into rows, and ratings, step by step in order of the log. A merge, a forgotten
//! player, a dropped tag and deleted windows are steps as well (docs/corrections.md).
//!
//! Where the rules leave a choice, the choices made here are:
//!
//! - [open] A merged score was reached when the last of its parts was: for the ten best, the last of
//!   those that are kept. If both are 0, the earlier of the first sightings counts.
//! - [open] A player who is not rated has in their row the rating with which they began the week. With
//!   `elo.carry_over` that is the last rating in the scope, from any earlier week, deleted weeks
//!   included. The setting holds that applied when the row began. At a merge it is a rating of 0
//!   rounds.
//! - [open] The row of a closed window of a greylisted server is deleted. A rating that it had is
//!   still carried over.

use std::collections::{BTreeMap, HashMap};

use super::history::{Corrected, Target};
use super::{Estimate, EstimatedTime, Fact, FactKind, Oracle, PlayerId, Round, Row, Scope, elo_after, of_server};

enum Step<'a> {
    Fact(&'a Fact),
    Estimate(&'a Estimate),
    Round(&'a Round),
    Corrected(&'a Corrected),
}

/// A row without its rating.
#[derive(Clone, Default)]
struct Sums {
    first_sighting: i64,
    measured_ms: i64,
    starts: i64,
    estimated: EstimatedTime,
    with_points: bool,
    points: i64,
    segments: BestTen,
    games: BestTen,
    /// When each score last changed.
    points_at: Option<i64>,
    time_at: Option<i64>,
}

#[derive(Clone, Copy)]
struct Rating {
    rating: f64,
    rounds: usize,
    /// Those of the rounds that were sure.
    sure: usize,
    /// `t` of the last rated round.
    at: i64,
}

/// Weeks by number; other windows are number 0.
type ByWeek<T> = BTreeMap<u32, T>;

#[derive(Default)]
struct Board {
    rows: HashMap<PlayerId, Sums>,
    rated: HashMap<PlayerId, ByWeek<Rating>>,
    /// The ratings with which players began; with `elo.carry_over` in any week, else empty.
    begun: HashMap<PlayerId, ByWeek<f64>>,
}

impl Oracle {
    /// The rows of a window in a scope before a line, without positions, in no order.
    pub(super) fn sums(&self, target: &Target, scope: &Scope, moment: usize) -> Vec<Row> {
        let carries = target.is_week && self.history.settings.iter().any(|(_, settings)| settings.elo_carry_over);
        let number = |week: u32| if target.is_week { week } else { 0 };
        let is_target = |t: i64, week: u32| if target.is_week { week == target.week } else { target.span.contains(&t) };
        let takes = |t: i64, week: u32| is_target(t, week) || carries && week < target.week;
        let mut counted: HashMap<&str, Option<usize>> = HashMap::new();
        for server in self.servers_of(scope) {
            counted.insert(server, self.history.counted_from(server, target, moment));
        }
        // Whether what a line reveals about a server is in a row.
        let counts =
            |server: &str, line: usize| counted.get(server).copied().flatten().is_some_and(|from| line >= from);

        let mut board = Board::default();
        for (line, step) in self.steps(scope, moment, takes) {
            let carries = carries && self.history.settings_at(line).elo_carry_over;
            match step {
                Step::Fact(f) => {
                    if !self.is_of_game(scope, &f.player.game) {
                        continue;
                    }
                    if carries {
                        board.begin(&f.player, f.week);
                    }
                    if is_target(f.t, f.week) && counts(&f.server, line) {
                        board.row(&f.player, f.t).add(f.t, f.kind);
                    }
                }
                Step::Estimate(e) => {
                    let counted = is_target(e.t, e.week) && counts(&e.server, line);
                    if let Some(row) = board.rows.get_mut(&e.player).filter(|_| counted) {
                        row.estimated.add(e.time);
                    }
                }
                Step::Round(round) => {
                    if !self.is_of_game(scope, &round.game) {
                        continue;
                    }
                    let players = || round.list.iter().filter_map(|e| e.player.as_ref());
                    if carries {
                        players().for_each(|player| board.begin(player, round.week));
                    }
                    if is_target(round.t, round.week) && counts(&round.server, line) {
                        players().for_each(|player| board.row(player, round.t).with_points = true);
                    }
                    let of_scope = match scope {
                        Scope::Tagged(tag) => round.tags.contains(tag),
                        // The ratings of a server are in its rows.
                        Scope::Server(_) => !is_target(round.t, round.week) || counts(&round.server, line),
                        Scope::Game(_) | Scope::Tag(_) => true,
                    };
                    if of_scope {
                        board.rate(round, number(round.week), self.history.settings_at(line));
                    }
                }
                Step::Corrected(Corrected::Merged { from, into }) => board.merge(from, into),
                Step::Corrected(Corrected::Forgotten(player)) => {
                    board.rows.remove(player);
                    board.rated.remove(player);
                    board.begun.remove(player);
                }
                Step::Corrected(Corrected::TagDropped(tag)) => {
                    if *scope == Scope::Tagged(tag.clone()) {
                        board.rated.clear();
                        board.begun.clear();
                    }
                }
                Step::Corrected(Corrected::WindowsDeleted { before }) => {
                    if self.is_deleted(target, *before, line) {
                        board.rows.clear();
                        if !carries {
                            board.rated.values_mut().for_each(|rated| _ = rated.remove(&number(target.week)));
                        }
                    }
                }
                Step::Corrected(Corrected::WeekReopened(_) | Corrected::ClockSetBack) => (),
            }
        }
        board.into_rows(target.week, number(target.week))
    }

    /// All that a scope needs for a window, in order.
    fn steps<'a>(&'a self, scope: &Scope, moment: usize, takes: impl Fn(i64, u32) -> bool) -> Vec<(usize, Step<'a>)> {
        fn of_scope<'a, T>(indices: &HashMap<String, Vec<usize>>, items: &'a [T], scope: &Scope) -> Vec<&'a T> {
            match scope {
                Scope::Server(server) => of_server(indices, items, server),
                Scope::Tag(servers) => servers.iter().flat_map(|server| of_server(indices, items, server)).collect(),
                Scope::Game(_) | Scope::Tagged(_) => items.iter().collect(),
            }
        }
        let mut steps: Vec<(usize, Step)> = Vec::new();
        let facts = of_scope(&self.index.facts, &self.facts, scope);
        steps.extend(facts.into_iter().filter(|f| takes(f.t, f.week)).map(|f| (f.line, Step::Fact(f))));
        let rounds = of_scope(&self.index.rounds, &self.rounds, scope);
        steps.extend(rounds.into_iter().filter(|r| takes(r.t, r.week)).map(|r| (r.line, Step::Round(r))));
        let estimates = of_scope(&self.index.estimates, &self.estimates, scope);
        steps.extend(estimates.into_iter().filter(|e| takes(e.t, e.week)).map(|e| (e.line, Step::Estimate(e))));
        steps.extend(self.history.corrections.iter().map(|it| (it.line, Step::Corrected(&it.what))));
        steps.retain(|(line, _)| *line < moment);
        steps.sort_by_key(|(line, _)| *line);
        steps
    }

    /// The servers whose rows a scope has.
    fn servers_of<'a>(&'a self, scope: &'a Scope) -> Vec<&'a str> {
        match scope {
            Scope::Server(server) => vec![server],
            Scope::Tag(servers) => servers.iter().map(String::as_str).collect(),
            Scope::Game(_) => self.servers.iter().map(String::as_str).collect(),
            Scope::Tagged(tag) => {
                let tagged = self.servers.iter().filter(|server| self.tags[*server].contains(tag));
                tagged.map(String::as_str).collect()
            }
        }
    }

    fn is_of_game(&self, scope: &Scope, game: &str) -> bool {
        !matches!(scope, Scope::Game(of) if of != game)
    }

    /// docs/boards-and-windows.md: deletes closed windows that had ended by a time; a week only if no
    /// older one is kept.
    fn is_deleted(&self, target: &Target, before: i64, line: usize) -> bool {
        let calendar = &self.settings.calendar;
        let older = self.weeks().into_iter().filter(|&week| target.is_week && week < target.week);
        let older = older.map(|week| Target::week(calendar, week));
        let mut all = older.chain([target.clone()]);
        all.all(|window| window.span.end <= before && self.history.is_closed_for(&window, line))
    }
}

impl Board {
    fn row(&mut self, player: &PlayerId, t: i64) -> &mut Sums {
        if !self.rows.contains_key(player) {
            self.rows.insert(player.clone(), Sums { first_sighting: t, ..Sums::default() });
        }
        self.rows.get_mut(player).expect("just inserted")
    }

    /// Sets the rating with which a player begins a week, that of their last earlier week.
    fn begin(&mut self, player: &PlayerId, week: u32) {
        if self.begun.get(player).is_some_and(|begun| begun.contains_key(&week)) {
            return;
        }
        let earlier = self.rated.get(player).and_then(|rated| rated.range(..week).next_back());
        let rating = earlier.map_or(1000.0, |(_, rating)| rating.rating);
        self.begun.entry(player.clone()).or_default().insert(week, rating);
    }

    fn rating(&self, player: &PlayerId, week: u32) -> f64 {
        let rated = self.rated.get(player).and_then(|rated| rated.get(&week)).map(|rated| rated.rating);
        rated.or_else(|| self.begun.get(player)?.get(&week).copied()).unwrap_or(1000.0)
    }

    /// docs/rules.md 7.
    fn rate(&mut self, round: &Round, week: u32, settings: &super::Settings) {
        let rating = |player: &Option<PlayerId>| player.as_ref().map_or(1000.0, |player| self.rating(player, week));
        let before: Vec<f64> = round.list.iter().map(|e| rating(&e.player)).collect();
        let points: Vec<i64> = round.list.iter().map(|e| e.points).collect();
        for (entry, rating) in round.list.iter().zip(elo_after(&points, &before, settings)) {
            let Some(player) = entry.player.clone() else { continue };
            let rated = self.rated.entry(player).or_default();
            let (rounds, sure) = rated.get(&week).map_or((0, 0), |rated| (rated.rounds, rated.sure));
            let (rounds, sure) = (rounds + 1, sure + usize::from(round.sure));
            rated.insert(week, Rating { rating, rounds, sure, at: round.t });
        }
    }

    /// docs/corrections.md: sums are added, the ten best are merged, and of two ratings the one with
    /// more rounds is kept, or the target's.
    fn merge(&mut self, from: &PlayerId, into: &PlayerId) {
        if let Some(row) = self.rows.remove(from) {
            match self.rows.get_mut(into) {
                Some(of_into) => of_into.merge(row),
                None => _ = self.rows.insert(into.clone(), row),
            }
        }
        for (week, rating) in self.rated.remove(from).into_iter().flatten() {
            let kept = self.rated.entry(into.clone()).or_default().entry(week).or_insert(rating);
            if rating.rounds > kept.rounds {
                *kept = rating;
            }
        }
        for (week, rating) in self.begun.remove(from).into_iter().flatten() {
            self.begun.entry(into.clone()).or_default().entry(week).or_insert(rating);
        }
    }

    fn into_rows(mut self, week: u32, number: u32) -> Vec<Row> {
        let rows = std::mem::take(&mut self.rows);
        rows.into_iter()
            .map(|(player, sums)| {
                let rated = self.rated.get(&player).and_then(|rated| rated.get(&number)).copied();
                let elo = self.rating(&player, number);
                sums.into_row(week, player, elo, rated)
            })
            .collect()
    }
}

impl Sums {
    fn add(&mut self, t: i64, fact: FactKind) {
        match fact {
            FactKind::Seen { with_points } => self.with_points |= with_points,
            FactKind::Start => {
                self.starts += 1;
                self.time_at = Some(t);
            }
            FactKind::Stayed { gap_ms } => {
                self.measured_ms += gap_ms;
                self.time_at = Some(t);
            }
            FactKind::Gain(points) => {
                self.points += points;
                self.points_at = Some(t);
            }
            FactKind::Segment(thousandths) => self.segments.add(thousandths, t),
            FactKind::Game(score) => self.games.add(score, t),
        }
    }

    fn merge(&mut self, other: Sums) {
        self.first_sighting = self.first_sighting.min(other.first_sighting);
        self.measured_ms += other.measured_ms;
        self.starts += other.starts;
        self.estimated.add(other.estimated);
        self.with_points |= other.with_points;
        self.points += other.points;
        other.segments.0.into_iter().for_each(|(segment, t)| self.segments.add(segment, t));
        other.games.0.into_iter().for_each(|(score, t)| self.games.add(score, t));
        self.points_at = self.points_at.max(other.points_at);
        self.time_at = self.time_at.max(other.time_at);
    }

    fn into_row(self, week: u32, player: PlayerId, elo: f64, rated: Option<Rating>) -> Row {
        let or_first = |at: Option<i64>| at.unwrap_or(self.first_sighting);
        let reached = [
            ("clq1", or_first(self.segments.at())),
            ("clq2", or_first(self.games.at())),
            ("elo", or_first(rated.map(|rated| rated.at))),
            ("points", or_first(self.points_at)),
            ("time", or_first(self.time_at)),
        ];
        Row {
            week,
            player,
            measured_ms: self.measured_ms,
            starts: self.starts,
            time_est_ms: self.estimated.ms,
            time_est_variance: self.estimated.variance,
            time_connected_ms: self.estimated.connected_ms,
            time_connected_variance: self.estimated.connected_variance,
            with_points: self.with_points,
            points: self.points,
            clq1_segments: self.segments.values(),
            clq2_games: self.games.values(),
            elo,
            elo_rounds: rated.map_or(0, |rated| rated.rounds),
            elo_rounds_sure: rated.map_or(0, |rated| rated.sure),
            reached: BTreeMap::from(reached),
            pos: BTreeMap::new(),
        }
    }
}

/// The ten best values, each with its time, best first. Of equal values the earlier is better.
#[derive(Clone, Default)]
struct BestTen(Vec<(u64, i64)>);

impl BestTen {
    fn add(&mut self, value: u64, t: i64) {
        self.0.push((value, t));
        self.0.sort_by_key(|&(value, t)| (std::cmp::Reverse(value), t));
        self.0.truncate(10);
    }

    fn values(&self) -> Vec<u64> {
        self.0.iter().map(|(value, _)| *value).collect()
    }

    /// When their sum was reached. A value that is replaced later has made room for a later one.
    fn at(&self) -> Option<i64> {
        self.0.iter().map(|(_, t)| *t).max()
    }
}
