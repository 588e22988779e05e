//! Games of the simulated servers.

use super::rng::{RngExt, SplitMix64};

/// The protocol family of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    Quake3,
    Source,
}

impl Family {
    /// Scheme of the server's URL.
    pub fn scheme(self) -> &'static str {
        match self {
            Family::Quake3 => "quake3",
            Family::Source => "source",
        }
    }
}

/// A game: names, maps, and scoring.
#[derive(Debug)]
pub struct Game {
    pub family: Family,
    /// As `gamename` or the game directory on the wire.
    pub name: &'static str,
    /// As shown in A2S_INFO.
    pub title: &'static str,
    pub app_id: u16,
    /// The older engine, with its own fragment format.
    pub goldsrc: bool,
    pub maps: &'static [&'static str],
    /// Scores of a player of skill 1.
    pub scores_per_minute: f64,
    /// Points of one score.
    pub points_per_score: i32,
    /// Points shown for spectators; `None` if the game has none.
    pub spectator_points: Option<i64>,
    /// Share of its family's servers.
    weight: f64,
}

const Q3_MAPS: &[&str] =
    &["q3dm17", "q3dm6", "q3tourney2", "q3dm13", "q3dm7", "q3ctf1", "q3dm1", "q3tourney4", "q3dm11", "pro-q3dm6"];
const OA_MAPS: &[&str] =
    &["oa_dm1", "oa_rpg3dm2", "aggressor", "kaos2", "czest1dm", "oasago2", "wrackdm17", "am_galmevish2"];
const CPM_MAPS: &[&str] = &["cpm1a", "cpm3a", "cpm4a", "cpm15", "cpm22", "ztn3tourney1", "hub3aeroq3"];
const UT_MAPS: &[&str] =
    &["ut4_turnpike", "ut4_abbey", "ut4_casa", "ut4_uptown", "ut4_kingdom", "ut4_sanc", "ut4_riyadh"];
const TA_MAPS: &[&str] = &["mpteam1", "mpteam3", "mpterra1", "mpq3ctf2", "mpterra3"];
const CS_MAPS: &[&str] =
    &["de_dust2", "de_inferno", "de_nuke", "cs_office", "de_train", "cs_assault", "de_aztec", "fy_iceworld", "de_dust"];
const TF_MAPS: &[&str] =
    &["cp_dustbowl", "ctf_2fort", "pl_badwater", "koth_harvest_final", "pl_upward", "cp_badlands", "workshop/1234567"];
const HL_MAPS: &[&str] = &["dm_lockdown", "dm_overwatch", "dm_runoff", "dm_steamlab"];
const DOD_MAPS: &[&str] = &["dod_avalanche", "dod_anzio", "dod_flash", "dod_donner"];

const XON_MAPS: &[&str] = &["stormkeep", "xoylent", "afterslime", "solarium", "silentsiege", "implosion"];
const WARSOW_MAPS: &[&str] = &["wdm1", "wdm2", "wdm4", "wdm9", "wda1", "wbomb1"];

/// Games of servers with spectators (`Behaviour::Spectators`); no other server plays them.
pub static SPECTATOR_GAMES: &[Game] = &[
    Game {
        spectator_points: Some(-666),
        ..game(Family::Quake3, "Xonotic", "Xonotic", 0, false, XON_MAPS, 1.5, 1, 0.0)
    },
    Game {
        spectator_points: Some(-9_999),
        ..game(Family::Quake3, "Warsow", "Warsow", 0, false, WARSOW_MAPS, 1.5, 1, 0.0)
    },
];

/// All other games of a fleet. The order affects what a seed produces.
pub static GAMES: &[Game] = &[
    game(Family::Quake3, "baseq3", "Quake III Arena", 0, false, Q3_MAPS, 1.5, 1, 0.45),
    game(Family::Quake3, "baseoa", "OpenArena", 0, false, OA_MAPS, 1.5, 1, 0.25),
    game(Family::Quake3, "cpma", "CPMA", 0, false, CPM_MAPS, 2.5, 1, 0.1),
    game(Family::Quake3, "q3ut4", "Urban Terror", 0, false, UT_MAPS, 1.0, 1, 0.15),
    game(Family::Quake3, "missionpack", "Team Arena", 0, false, TA_MAPS, 0.8, 5, 0.05),
    game(Family::Source, "cstrike", "Counter-Strike: Source", 240, false, CS_MAPS, 0.7, 1, 0.3),
    game(Family::Source, "tf", "Team Fortress", 440, false, TF_MAPS, 1.2, 1, 0.3),
    game(Family::Source, "hl2mp", "Half-Life 2 Deathmatch", 320, false, HL_MAPS, 1.8, 1, 0.1),
    game(Family::Source, "dod", "Day of Defeat: Source", 300, false, DOD_MAPS, 0.9, 1, 0.1),
    game(Family::Source, "cstrike", "Counter-Strike", 10, true, CS_MAPS, 0.7, 1, 0.2),
];

#[expect(clippy::too_many_arguments)]
const fn game(
    family: Family,
    name: &'static str,
    title: &'static str,
    app_id: u16,
    goldsrc: bool,
    maps: &'static [&'static str],
    scores_per_minute: f64,
    points_per_score: i32,
    weight: f64,
) -> Game {
    Game {
        family,
        name,
        title,
        app_id,
        goldsrc,
        maps,
        scores_per_minute,
        points_per_score,
        spectator_points: None,
        weight,
    }
}

/// A random game of a family, by weight.
pub(super) fn pick_game(rng: &mut SplitMix64, family: Family) -> &'static Game {
    let of_family = || GAMES.iter().filter(move |game| game.family == family);
    let mut remaining = rng.unit() * of_family().map(|game| game.weight).sum::<f64>();
    for game in of_family() {
        remaining -= game.weight;
        if remaining < 0.0 {
            return game;
        }
    }
    &GAMES[0]
}
