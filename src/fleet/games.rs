//! Games of the simulated servers.

use super::protocol::Protocol;
use super::rng::{RngExt, SplitMix64};

/// A game: names, maps, and scoring.
#[derive(Debug)]
pub struct Game {
    pub protocol: Protocol,
    /// As lists name it: the `gamename`, the game directory, or the id in the table of games.
    pub name: &'static str,
    /// Sent by protocols that do not name the game.
    pub game_type: &'static str,
    /// As shown in A2S_INFO.
    pub title: &'static str,
    pub app_id: u16,
    /// The older engine, with its own fragment format.
    pub goldsrc: bool,
    pub maps: &'static [&'static str],
    /// Whether the list shows points.
    pub has_points: bool,
    /// Scores of a player of skill 1.
    pub scores_per_minute: f64,
    /// Points of one score.
    pub points_per_score: i32,
    /// Points shown for spectators; `None` if the game has none.
    pub spectator_points: Option<i64>,
    /// Share of its protocol's servers.
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

const QW_MAPS: &[&str] = &["dm4", "dm6", "dm2", "dm3", "e1m2", "aerowalk", "ztndm3", "povdmm4"];
const FORTRESS_MAPS: &[&str] = &["2fort5r", "well6", "rock2", "bam4"];
const Q2_MAPS: &[&str] = &["q2dm1", "q2dm3", "q2dm8", "q2duel5", "ztn2dm3", "match1"];
const AQ2_MAPS: &[&str] = &["urban", "urban2", "cliff", "riot", "jungle1"];
const UT99_MAPS: &[&str] = &["DM-Deck16][", "DM-Morpheus", "DM-Turbine", "CTF-Face", "CTF-LavaGiant", "DM-Fractal"];
const UNREAL_MAPS: &[&str] = &["DmDeck16", "DmCurse", "DmRadikus", "DmTundra"];
const BFV_MAPS: &[&str] = &["hue-1968", "ho_chi_minh_trail", "operation_flaming_dart", "saigon1968"];
const HALO_MAPS: &[&str] = &["bloodgulch", "sidewinder", "hangemhigh", "ratrace"];
const BF2_MAPS: &[&str] = &["strike_at_karkand", "dalian_plant", "gulf_of_oman", "wake_island_2007"];
const UT3_MAPS: &[&str] = &["DM-Deck", "DM-HeatRay", "CTF-Coret", "VCTF-Suspense"];
const UT2004_MAPS: &[&str] = &["DM-Rankin", "DM-Asbestos", "CTF-FaceClassic", "CTF-Bridge"];
const KF_MAPS: &[&str] = &["KF-WestLondon", "KF-BioticsLab", "KF-Farm", "KF-Manor"];
const MTA_MAPS: &[&str] = &["None", "San Andreas", "race-hotring", "race-glendale"];
/// Game modes: SA-MP has one map.
const SAMP_MODES: &[&str] = &["Freeroam", "Roleplay", "Team Deathmatch", "Stunt"];
const DOOM3_MAPS: &[&str] = &["game/mp/d3dm1", "game/mp/d3dm3", "game/mp/d3dm5", "game/mp/d3ctf1"];
const QUAKE4_MAPS: &[&str] = &["mp/q4dm1", "mp/q4dm7", "mp/q4tourney1", "mp/q4ctf2"];
const ETQW_MAPS: &[&str] = &["valley", "area22", "sewer", "refinery", "salvage"];
const TEEWORLDS_MAPS: &[&str] = &["dm1", "dm2", "dm6", "dm7", "dm8", "dm9"];
const CTF_MAPS: &[&str] = &["ctf1", "ctf2", "ctf3", "ctf5", "ctf7"];
const MINECRAFT_MAPS: &[&str] = &["world", "lobby", "survival"];
/// Replies without a map.
const NO_MAPS: &[&str] = &[""];
const FIVEM_MAPS: &[&str] = &["fivem-map-skater", "fivem-map-hipster", "San Andreas"];
const BF4_MAPS: &[&str] = &["MP_Abandoned", "MP_Damage", "MP_Flooded", "MP_Prison", "MP_Siege"];
const BFH_MAPS: &[&str] = &["MP_Bank", "MP_Bloodout", "MP_Desert05", "MP_Downtown", "MP_Eastside"];
const SAUERBRATEN_MAPS: &[&str] = &["complex", "turbine", "metl4", "reissen", "forge", "hallo", "dust2"];
const ASSAULTCUBE_MAPS: &[&str] = &["ac_desert", "ac_complex", "ac_arctic", "ac_shine", "ac_mines", "ac_depot"];
const REDECLIPSE_MAPS: &[&str] = &["echo", "nova", "enyo", "ghost", "deadsimple", "ubik"];
const ZANDRONUM_MAPS: &[&str] = &["MAP01", "MAP07", "D2DUEL1", "ODAMAP02", "DWANGO01", "ZDCTF03"];
const ODAMEX_MAPS: &[&str] = &["MAP01", "MAP07", "ODAMAP02", "DWANGO01", "CTF1"];
/// Styles of the game: replies of BZFlag name no map.
const BZFLAG_STYLES: &[&str] = &["ClassicCTF", "OpenFFA", "TeamFFA", "RabbitChase"];
const BEDROCK_MAPS: &[&str] = &["Bedrock level", "Skyblock"];

/// Games of Quake 3 servers with spectators (`Behaviour::Spectators`); no other server plays
/// them.
pub static SPECTATOR_GAMES: &[Game] = &[
    Game { spectator_points: Some(-666), ..quake3("Xonotic", "Xonotic", XON_MAPS, 1.5, 1, 0.0) },
    Game { spectator_points: Some(-9_999), ..quake3("Warsow", "Warsow", WARSOW_MAPS, 1.5, 1, 0.0) },
];

/// All other games of a fleet. The order affects what a seed produces.
pub static GAMES: &[Game] = &[
    quake3("baseq3", "Quake III Arena", Q3_MAPS, 1.5, 1, 0.45),
    quake3("baseoa", "OpenArena", OA_MAPS, 1.5, 1, 0.25),
    quake3("cpma", "CPMA", CPM_MAPS, 2.5, 1, 0.1),
    quake3("q3ut4", "Urban Terror", UT_MAPS, 1.0, 1, 0.15),
    quake3("missionpack", "Team Arena", TA_MAPS, 0.8, 5, 0.05),
    source("cstrike", "Counter-Strike: Source", 240, CS_MAPS, 0.7, 0.3),
    source("tf", "Team Fortress", 440, TF_MAPS, 1.2, 0.3),
    source("hl2mp", "Half-Life 2 Deathmatch", 320, HL_MAPS, 1.8, 0.1),
    source("dod", "Day of Defeat: Source", 300, DOD_MAPS, 0.9, 0.1),
    Game { goldsrc: true, ..source("cstrike", "Counter-Strike", 10, CS_MAPS, 0.7, 0.2) },
    other(Protocol::QuakeWorld, "qw", QW_MAPS, 2.5, 1, 0.7),
    other(Protocol::QuakeWorld, "fortress", FORTRESS_MAPS, 1.0, 1, 0.3),
    other(Protocol::Quake2, "baseq2", Q2_MAPS, 2.0, 1, 0.6),
    other(Protocol::Quake2, "action", AQ2_MAPS, 1.0, 1, 0.4),
    other(Protocol::GameSpy1, "ut", UT99_MAPS, 1.5, 1, 0.8),
    other(Protocol::GameSpy1, "unreal", UNREAL_MAPS, 1.5, 1, 0.2),
    other(Protocol::GameSpy2, "bfvietnam", BFV_MAPS, 0.7, 1, 0.5),
    other(Protocol::GameSpy2, "halor", HALO_MAPS, 1.2, 1, 0.5),
    other(Protocol::GameSpy3, "battlefield2", BF2_MAPS, 1.0, 2, 0.7),
    other(Protocol::GameSpy3, "ut3pc", UT3_MAPS, 1.5, 1, 0.3),
    of_type("xDeathMatch", other(Protocol::Unreal2, "ut2004", UT2004_MAPS, 1.5, 1, 0.5)),
    of_type("KFGameType", other(Protocol::Unreal2, "killingfloor", KF_MAPS, 2.0, 1, 0.5)),
    other(Protocol::Ase, "mta", MTA_MAPS, 0.5, 1, 0.6),
    // A game mode that sets no score.
    without_points(Protocol::Ase, "mta", MTA_MAPS, 0.4),
    other(Protocol::SaMp, "samp", SAMP_MODES, 0.3, 1, 1.0),
    without_points(Protocol::Doom3, "baseDOOM-1", DOOM3_MAPS, 0.5),
    without_points(Protocol::Doom3, "baseQUAKE4-1", QUAKE4_MAPS, 0.5),
    of_type("DM", other(Protocol::Teeworlds, "teeworlds", TEEWORLDS_MAPS, 2.0, 1, 0.5)),
    of_type("CTF", other(Protocol::Teeworlds, "teeworlds", CTF_MAPS, 1.5, 1, 0.5)),
    of_type("DM", other(Protocol::Teeworlds7, "teeworlds", TEEWORLDS_MAPS, 2.0, 1, 0.5)),
    of_type("CTF", other(Protocol::Teeworlds7, "teeworlds", CTF_MAPS, 1.5, 1, 0.5)),
    without_points(Protocol::Minecraft, "MINECRAFT", MINECRAFT_MAPS, 1.0),
    without_points(Protocol::MinecraftStatus, "MINECRAFT", NO_MAPS, 1.0),
    of_type("Freeroam", without_points(Protocol::FiveM, "fivem", FIVEM_MAPS, 1.0)),
    without_points(Protocol::Bedrock, "minecraft", BEDROCK_MAPS, 1.0),
    other(Protocol::Etqw, "baseETQW-1", ETQW_MAPS, 1.0, 1, 1.0),
    of_type("ConquestLarge0", other(Protocol::Frostbite, "bf4", BF4_MAPS, 1.5, 100, 0.6)),
    of_type("TurfWarLarge0", other(Protocol::Frostbite, "bfh", BFH_MAPS, 1.5, 100, 0.4)),
    other(Protocol::Cube2, "sauerbraten", SAUERBRATEN_MAPS, 2.0, 1, 1.0),
    other(Protocol::Cube1, "assaultcube", ASSAULTCUBE_MAPS, 1.5, 1, 1.0),
    without_points(Protocol::Eclipse, "redeclipse", REDECLIPSE_MAPS, 1.0),
    of_type("Deathmatch", other(Protocol::Zandronum, "zandronum", ZANDRONUM_MAPS, 2.0, 1, 0.5)),
    of_type("CTF", other(Protocol::Zandronum, "zandronum", ZANDRONUM_MAPS, 1.0, 1, 0.5)),
    of_type("Deathmatch", other(Protocol::Odamex, "odamex", ODAMEX_MAPS, 2.0, 1, 0.5)),
    of_type("CTF", other(Protocol::Odamex, "odamex", ODAMEX_MAPS, 1.0, 1, 0.5)),
    other(Protocol::Bzflag, "bzflag", BZFLAG_STYLES, 1.0, 1, 1.0),
    without_points(Protocol::Armagetron, "armagetron", NO_MAPS, 1.0),
    without_points(Protocol::Mumble, "mumble", NO_MAPS, 1.0),
];

/// A game that is called by its name.
const fn other(
    protocol: Protocol,
    name: &'static str,
    maps: &'static [&'static str],
    scores_per_minute: f64,
    points_per_score: i32,
    weight: f64,
) -> Game {
    Game {
        protocol,
        name,
        game_type: name,
        title: name,
        app_id: 0,
        goldsrc: false,
        maps,
        has_points: true,
        scores_per_minute,
        points_per_score,
        spectator_points: None,
        weight,
    }
}

const fn quake3(
    name: &'static str,
    title: &'static str,
    maps: &'static [&'static str],
    scores_per_minute: f64,
    points_per_score: i32,
    weight: f64,
) -> Game {
    Game { title, ..other(Protocol::Quake3, name, maps, scores_per_minute, points_per_score, weight) }
}

const fn source(
    name: &'static str,
    title: &'static str,
    app_id: u16,
    maps: &'static [&'static str],
    scores_per_minute: f64,
    weight: f64,
) -> Game {
    Game { title, app_id, ..other(Protocol::Source, name, maps, scores_per_minute, 1, weight) }
}

const fn of_type(game_type: &'static str, game: Game) -> Game {
    Game { game_type, ..game }
}

/// A game whose list shows no points.
const fn without_points(protocol: Protocol, name: &'static str, maps: &'static [&'static str], weight: f64) -> Game {
    Game { has_points: false, ..other(protocol, name, maps, 1.0, 1, weight) }
}

/// A random game of a protocol, by weight.
pub(super) fn pick_game(rng: &mut SplitMix64, protocol: Protocol) -> &'static Game {
    let of_protocol = || GAMES.iter().filter(move |game| game.protocol == protocol);
    let mut remaining = rng.unit() * of_protocol().map(|game| game.weight).sum::<f64>();
    for game in of_protocol() {
        remaining -= game.weight;
        if remaining < 0.0 {
            return game;
        }
    }
    // Because of rounding, no game may be found; then it is the last one.
    of_protocol().next_back().expect("every protocol has a game")
}
