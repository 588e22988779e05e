//! Games of the simulated servers, and the profile of each server: game, size, number of
//! players, how rounds end. Fixed by the seed; never changes.

use super::behaviours::Behaviour;
use super::rng::{Rng, hash_parts};

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

/// Games of servers with spectators ([`Behaviour::Spectators`]); no other server
/// plays them.
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
    unit: i32,
    share: f64,
) -> Game {
    Game {
        family,
        name,
        title,
        app_id,
        goldsrc,
        maps,
        scores_per_minute,
        points_per_score: unit,
        spectator_points: None,
        weight: share,
    }
}

/// Whether the map changes when a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapRotation {
    Always,
    Sometimes,
    Never,
}

/// The profile of a server.
#[derive(Clone, Debug)]
pub struct ServerProfile {
    pub game: &'static Game,
    pub hostname: Box<str>,
    pub slots: u16,
    /// Mean number of players at the busiest hour, if slots were unlimited.
    pub players_mean: f64,
    pub session_ms_mean: f64,
    /// Number of regular players.
    pub regulars: u32,
    /// Local time minus UTC.
    pub utc_offset_ms: i64,
    /// Bots fill up to this number of players while a player is on the server.
    pub bot_fill_target: u16,
    /// A round ends when a player has this many scores.
    pub score_limit: Option<i32>,
    pub round_ms_max: i64,
    pub rotation: MapRotation,
    /// Time of day at which the server is re-seeded, ms after 00:00 UTC.
    pub restart_time_of_day_ms: i64,
    /// Its special behaviour ([`super::behaviours`]).
    pub behaviour: Option<Behaviour>,
}

/// How the servers of a fleet are chosen.
#[derive(Clone, Copy, Debug)]
pub struct ProfileMix {
    /// Share of the servers with the Source protocol, 0 to 1; the rest is the Quake 3 family.
    pub source_share: f64,
    /// Factor for the number of arriving players; 1 is normal.
    pub activity: f64,
}

const TOPICS: &[&str] = &[
    "Frag Factory",
    "Instagib",
    "CTF Only",
    "Newbies Welcome",
    "24/7 DM17",
    "Sniper Den",
    "Public #",
    "Old School",
    "Rocket Arena",
    "Low Grav",
    "No AWP",
    "Clan War",
    "Zombie Escape",
    "Rail Only",
    "The Pit",
    "Café de l'Arène",
];
const OWNERS: &[&str] =
    &["[EU]", "{MAD}", "Reverse.nl", "*DE*", "US East", "=BR=", "[RUS]", "Vienna", "ESL", "Home of", "Ye Olde", "Büro"];
const ZONES_H: &[i64] = &[-8, -5, -3, 0, 1, 1, 1, 2, 3, 8, 9, 10];

impl ServerProfile {
    /// The profile of one server, without a behaviour.
    pub fn generate(seed: u64, server: u32, mix: ProfileMix) -> ServerProfile {
        let rng = &mut Rng::new(&[seed, 0x5E27E2, u64::from(server)]);
        let family = if rng.bool(mix.source_share) { Family::Source } else { Family::Quake3 };
        let game = pick_game(rng, family);
        let slots = *[8_u16, 10, 12, 16, 16, 16, 20, 24, 24, 32, 32, 64].get(rng.below(12)).unwrap_or(&16);
        // Most servers have few players or none; a few are always full.
        let activity_class = rng.unit();
        let within = rng.unit();
        let players = match activity_class {
            c if c < 0.45 => within * 0.2,
            c if c < 0.70 => 0.2 + within * 2.0,
            c if c < 0.90 => 2.0 + within * 8.0,
            c if c < 0.98 => 6.0 + within * 14.0,
            _ => f64::from(slots) * 2.5,
        };
        let players_mean = (players * mix.activity).min(f64::from(slots) * 3.0);
        let quake = family == Family::Quake3;
        let tag = if quake { rng.pick(&["^1", "^4", "^2", "", "", "^7", "^5"]) } else { "" };
        let tail = if tag.is_empty() { "" } else { "^7" };
        let hostname = format!("{tag}{}{tail} {} {}", rng.pick(OWNERS), rng.pick(TOPICS), server + 1).into();
        let minutes = if quake { 8 + rng.below(13) } else { 15 + rng.below(26) };
        let rotates = rng.unit();
        ServerProfile {
            game,
            hostname,
            slots,
            players_mean,
            session_ms_mean: 60_000.0 * (12.0 + 40.0 * rng.unit()),
            regulars: (players_mean * 14.0 + 8.0) as u32,
            utc_offset_ms: ZONES_H[rng.below(ZONES_H.len())] * 3_600_000,
            bot_fill_target: if quake && rng.bool(0.2) { 2 + rng.below(5) as u16 } else { 0 },
            score_limit: (quake && rng.bool(0.7)).then(|| 20 + 5 * rng.below(7) as i32),
            round_ms_max: minutes as i64 * 60_000,
            rotation: match rotates {
                r if r < 0.6 => MapRotation::Always,
                r if r < 0.85 => MapRotation::Sometimes,
                _ => MapRotation::Never,
            },
            restart_time_of_day_ms: (hash_parts(&[seed, 0xDA7, u64::from(server)]) % 86_400_000) as i64,
            behaviour: None,
        }
    }

    /// The activity at a time, relative to the busiest hour, 0 to 1.
    pub fn load_factor(&self, t_ms: i64) -> f64 {
        // Maximum at nine in the evening, minimum before dawn.
        const HOURS: [u8; 24] =
            [62, 46, 33, 24, 18, 16, 17, 20, 25, 30, 36, 42, 47, 50, 53, 57, 63, 70, 77, 84, 91, 96, 92, 79];
        let local_ms = t_ms + self.utc_offset_ms;
        let hour = local_ms.rem_euclid(86_400_000) / 3_600_000;
        let day = (local_ms.div_euclid(86_400_000) + 3).rem_euclid(7);
        let weekend = if day >= 5 { 1.0 } else { 0.85 };
        f64::from(HOURS[hour as usize]) / 96.0 * weekend
    }
}

fn pick_game(rng: &mut Rng, family: Family) -> &'static Game {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_cover_every_game_and_are_mostly_quiet() {
        let mixture = ProfileMix { source_share: 0.4, activity: 1.0 };
        let all: Vec<ServerProfile> = (0..5_000).map(|i| ServerProfile::generate(7, i, mixture)).collect();
        let part = |f: &dyn Fn(&ServerProfile) -> bool| all.iter().filter(|n| f(n)).count() as f64 / 5_000.0;
        assert!((part(&|n| n.game.family == Family::Source) - 0.4).abs() < 0.05);
        assert!(part(&|n| n.players_mean < 2.3) > 0.6);
        assert!(part(&|n| n.slots == 64 && n.players_mean > 60.0) > 0.0005);
        assert!(part(&|n| n.bot_fill_target > 0) > 0.05);
        for game in GAMES {
            assert!(part(&|n| std::ptr::eq(n.game, game)) > 0.01, "{}", game.title);
        }
        for profile in &all {
            assert!((0.0..=1.0).contains(&profile.load_factor(1_763_683_200_000)));
        }
    }
}
