//! Converts the oracle's settings to those of clqd: a config file, or the rules of an engine.

use clqd::rank::Rules;

use super::{Quarter, Settings};

/// The text of a config file.
pub fn config(settings: &Settings) -> String {
    let quarter = if settings.clq2_quarter == Quarter::Exact { "exact" } else { "whole" };
    let screen = &settings.screen;
    format!(
        "time_zone = \"{}\"\n\n[names]\nignore = {:?}\ncount_bots = {}\nping_zero_is_bot = {}\n\
         darkplaces_games = {:?}\n\n[rounds]\nround_drop_min = {}\nround_drop_ratio = {:?}\n\n\
         [clq2]\nquarter = \"{quarter}\"\n\n[elo]\nk = {:?}\nk_times_opponents_max = {:?}\ncarry_over = {}\n\n\
         [screen]\nenabled = {}\nfrozen_after_s = {}\nnew_games_per_day_max = {}\nnew_maps_per_day_max = {}\n\
         new_names_per_day_max = {}\ngames_max = {}\nmaps_max = {}\nspectator_points = {:?}\ngain_max = {}\n\n\
         [scan]\nclass1_players_min = {}\n\n\
         [rules]\nnumber = {}\n\n[boards]\nlow_is_better = {:?}\ntie_breakers = {:?}\nwindows = {:?}\n\n\
         [sessions]\nkeep_days = {}\n",
        settings.calendar.zone_name(),
        settings.ignore,
        settings.count_bots,
        settings.ping_zero_is_bot,
        settings.darkplaces_games,
        settings.round_drop_min,
        settings.round_drop_ratio,
        settings.elo_k,
        settings.elo_k_times_opponents_max,
        settings.elo_carry_over,
        screen.enabled,
        screen.frozen_after_s,
        screen.new_games_per_day_max,
        screen.new_maps_per_day_max,
        screen.new_names_per_day_max,
        screen.games_max,
        screen.maps_max,
        screen.spectator_points.iter().map(|(game, points)| format!("{game}={points}")).collect::<Vec<_>>(),
        screen.gain_max,
        settings.class1_players_min,
        settings.rules,
        settings.low_is_better,
        settings.tie_breakers,
        settings.windows,
        settings.keep_sessions_days,
    )
}

/// The rules of an engine.
pub fn rules(settings: &Settings) -> Rules {
    let config = clqd::config::Config::parse(&config(settings)).expect("a config");
    config.engine_settings().expect("settings").rules
}
