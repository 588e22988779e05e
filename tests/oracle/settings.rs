//! The settings that change a result, and the orders of boards that they define.

use clqd::model::calendar::Calendar;
use serde_json::Value;

use super::{Scope, Screen};

/// The settings that docs/rules.md names, with its defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `rules.number`: 1 or 2.
    pub rules: i64,
    pub calendar: Calendar,
    pub count_bots: bool,
    pub ping_zero_is_bot: bool,
    pub ignore: Vec<String>,
    pub darkplaces_games: Vec<String>,
    pub round_drop_min: i64,
    pub round_drop_ratio: f64,
    pub clq2_quarter: Quarter,
    pub elo_k: f64,
    /// 0: no cap.
    pub elo_k_times_opponents_max: f64,
    pub elo_carry_over: bool,
    pub screen: Screen,
    pub class1_players_min: u32,
    /// Such as `points` or `points game:baseq3`.
    pub low_is_better: Vec<String>,
    /// Such as `points time` or `points time tag:ctf`.
    pub tie_breakers: Vec<String>,
    /// Not used: the oracle has all windows.
    pub windows: Vec<String>,
    /// `sessions.keep_days`.
    pub keep_sessions_days: i64,
}

/// `clq2.quarter`: what "at least 25 % of the pivot's points" means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quarter {
    /// `floor(pivot / points) <= 4`.
    Whole,
    /// `4 * points >= pivot`.
    Exact,
}

impl Default for Settings {
    fn default() -> Settings {
        let ignore = ["UnnamedPlayer", "unnamed", "Player", "player", "unconnected", "nameless tee"];
        Settings {
            rules: 2,
            calendar: Calendar::default(),
            count_bots: false,
            ping_zero_is_bot: true,
            ignore: ignore.map(str::to_owned).to_vec(),
            darkplaces_games: vec!["Nexuiz".to_owned(), "Xonotic".to_owned()],
            round_drop_min: 5,
            round_drop_ratio: 0.5,
            clq2_quarter: Quarter::Whole,
            elo_k: 25.0,
            elo_k_times_opponents_max: 225.0,
            elo_carry_over: false,
            screen: Screen::default(),
            class1_players_min: 3,
            low_is_better: Vec::new(),
            tie_breakers: Vec::new(),
            windows: Vec::new(),
            keep_sessions_days: 7,
        }
    }
}

impl Settings {
    /// Applies one setting of a line of the log. Panics on a value that a config file cannot have.
    /// Returns whether the key is known.
    pub fn set(&mut self, key: &str, value: &Value) -> bool {
        let whole = || value.as_i64().unwrap_or_else(|| panic!("{key} = {value}"));
        let number = || value.as_f64().unwrap_or_else(|| panic!("{key} = {value}"));
        let flag = || value.as_bool().unwrap_or_else(|| panic!("{key} = {value}"));
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{key} = {value}")).to_owned();
        let texts = || -> Vec<String> { value.as_array().expect("a list").iter().map(text).collect() };
        let screen = &mut self.screen;
        match key {
            "rules.number" => self.rules = whole(),
            "time_zone" => self.calendar = Calendar::new(&text(value)).expect("a zone"),
            "names.ignore" => self.ignore = texts(),
            "names.count_bots" => self.count_bots = flag(),
            "names.ping_zero_is_bot" => self.ping_zero_is_bot = flag(),
            "names.darkplaces_games" => self.darkplaces_games = texts(),
            "rounds.round_drop_min" => self.round_drop_min = whole(),
            "rounds.round_drop_ratio" => self.round_drop_ratio = number(),
            "clq2.quarter" if value == "whole" => self.clq2_quarter = Quarter::Whole,
            "clq2.quarter" if value == "exact" => self.clq2_quarter = Quarter::Exact,
            "elo.k" => self.elo_k = number(),
            "elo.k_times_opponents_max" => self.elo_k_times_opponents_max = number(),
            "elo.carry_over" => self.elo_carry_over = flag(),
            "screen.enabled" => screen.enabled = flag(),
            "screen.frozen_after_s" => screen.frozen_after_s = whole(),
            "screen.new_games_per_day_max" => screen.new_games_per_day_max = whole() as usize,
            "screen.new_maps_per_day_max" => screen.new_maps_per_day_max = whole() as usize,
            "screen.new_names_per_day_max" => screen.new_names_per_day_max = whole() as usize,
            "screen.games_max" => screen.games_max = whole() as usize,
            "screen.maps_max" => screen.maps_max = whole() as usize,
            "screen.gain_max" => screen.gain_max = whole(),
            "screen.spectator_points" => {
                let marker = |text: String| {
                    let (of, points) = text.rsplit_once('=').expect("a game and points");
                    (of.to_owned(), points.parse().expect("points"))
                };
                screen.spectator_points = texts().into_iter().map(marker).collect();
            }
            "scan.class1_players_min" => self.class1_players_min = whole() as u32,
            "boards.low_is_better" => self.low_is_better = texts(),
            "boards.tie_breakers" => self.tie_breakers = texts(),
            "boards.windows" => self.windows = texts(),
            _ => return false,
        }
        true
    }

    /// Whether the lowest score is best.
    pub fn is_low_better(&self, ranking: &str, scope: &Scope) -> bool {
        self.low_is_better.iter().any(|text| match text.split_once(' ') {
            None => text == ranking,
            Some((of, board)) => of == ranking && scope.is_named(board),
        })
    }

    /// The ranking that orders equal scores: the last setting for the scope, or else the last without
    /// a scope.
    pub fn tie_breaker(&self, ranking: &str, scope: &Scope) -> Option<&str> {
        let mut by = (None, None);
        for text in &self.tie_breakers {
            let mut words = text.splitn(3, ' ');
            let (of, other, board) = (words.next(), words.next(), words.next());
            match board {
                _ if of != Some(ranking) => (),
                None => by.1 = other,
                Some(board) if scope.is_named(board) => by.0 = other,
                Some(_) => (),
            }
        }
        by.0.or(by.1)
    }
}
