//! The simulation against what its snapshots show.

use std::collections::HashMap;

use strum::VariantArray;

use super::*;
use crate::fleet::behaviours::BehaviourShares;
use crate::fleet::protocol::ProtocolShares;
use crate::fleet::rng::{RngExt, SplitMix64};
use crate::fleet::truth::PlayerTruth;
use crate::model::WeekKey;
use crate::model::calendar::HOUR_MS;

const START_MS: i64 = 1_763_931_600_000; // Sunday, not at a tick of any server

fn world(servers: u32, seed: u64) -> World {
    World::new(WorldSettings {
        servers,
        seed,
        start_ms: START_MS,
        activity: 2.0,
        round_results_max: usize::MAX,
        ..WorldSettings::default()
    })
}

fn states(world: &mut World) -> Vec<(Snapshot, ServerTruth)> {
    (0..world.servers()).map(|server| (world.snapshot(server), world.server_truth(server))).collect()
}

#[test]
fn state_does_not_depend_on_how_often_it_is_advanced() {
    let end_ms = START_MS + 40 * HOUR_MS;
    let mut once = world(60, 5);
    once.advance_all(end_ms);
    let mut often = world(60, 5);
    let mut rng = SplitMix64::from_parts(&[9]);
    for _ in 0..3_000 {
        let server = rng.below(60) as u32;
        let t_ms = (often.now_ms(server) + rng.below(4 * HOUR_MS as usize) as i64).min(end_ms);
        often.advance(server, t_ms);
        often.advance(server, t_ms - HOUR_MS); // changes nothing
        often.snapshot(server);
    }
    for server in (0..60).rev() {
        often.advance(server, end_ms);
    }
    assert!(states(&mut once) == states(&mut often));
    let mut other = world(60, 6);
    other.advance_all(end_ms);
    assert!(states(&mut once) != states(&mut other));
}

#[test]
fn state_at_a_time_does_not_depend_on_start_ms() {
    let end_ms = START_MS + 50 * HOUR_MS;
    let mut long = world(60, 5);
    long.advance_all(end_ms);
    let mut late = World::new(WorldSettings { start_ms: end_ms - HOUR_MS, truth: false, ..long.settings().clone() });
    late.advance_all(end_ms - HOUR_MS / 2);
    late.advance_all(end_ms);
    for server in 0..60 {
        assert_eq!(long.snapshot(server), late.snapshot(server));
    }
    assert!(late.server_truth(0).players.is_empty());
}

/// Observes a world at every tick and compares the ground truth with the snapshots.
#[test]
fn ground_truth_matches_the_snapshots_of_every_tick() {
    let mut world = world(40, 11);
    let (mut points_checked, mut rounds_checked, mut resets) = (0_u64, 0_u64, 0_u64);
    for server in 0..40 {
        let phase_ms = (START_MS - world.profile(server).restart_time_of_day_ms).rem_euclid(TICK_MS);
        let mut t_ms = START_MS - phase_ms + TICK_MS;
        world.advance(server, t_ms);
        let mut present_ms: HashMap<Person, i64> = HashMap::new();
        let mut before = world.servers[server as usize].players.clone();
        let truth_at_start = world.server_truth(server);
        let mut truth = truth_at_start.clone();
        let net = |truth: &ServerTruth, person: Person| -> i64 {
            truth.players.iter().filter(|((_, p), _)| *p == person).map(|(_, d)| d.points_gained - d.points_lost).sum()
        };
        for _ in 0..6 * 360 {
            for p in &before {
                *present_ms.entry(p.person).or_default() += TICK_MS;
            }
            t_ms += TICK_MS;
            world.advance(server, t_ms);
            let now = world.servers[server as usize].players.clone();
            if before.is_empty() && now.is_empty() {
                continue;
            }
            let after = world.server_truth(server);
            let ended = (after.rounds > truth.rounds).then(|| after.final_lists.back()).flatten();
            for p in &before {
                let same = |q: &&ActivePlayer| q.person == p.person && q.joined_ms == p.joined_ms;
                let Some(q) = now.iter().find(same) else { continue };
                let points = match ended {
                    Some(last) if last.t_ms == t_ms => {
                        rounds_checked += 1;
                        match last.final_list.iter().find(|(person, _)| *person == p.person) {
                            Some(&(_, points)) => points,
                            None => continue,
                        }
                    }
                    Some(_) => continue,
                    None if after.rounds > truth.rounds => continue,
                    None => q.points,
                };
                let recorded = net(&after, p.person) - net(&truth, p.person);
                points_checked += u64::from(points != p.points);
                if points == 0 && recorded >= 0 {
                    resets += u64::from(recorded != -i64::from(p.points));
                    continue; // the points may have been reset
                }
                assert_eq!(recorded, i64::from(points - p.points), "server {server} at {t_ms}: {p:?} {q:?}");
            }
            truth = after;
            before = now;
        }
        let recorded_ms = |truth: &ServerTruth| -> i64 { truth.players.values().map(|d| d.present_ms).sum() };
        let observed: i64 = present_ms.values().sum();
        assert_eq!(
            recorded_ms(&world.server_truth(server)) - recorded_ms(&truth_at_start),
            observed,
            "server {server}"
        );
    }
    assert!(points_checked > 2_000 && rounds_checked > 100, "{points_checked} {rounds_checked}");
    assert!(resets * 200 < points_checked, "{resets} {points_checked}");
}

#[test]
fn intermission_shows_the_final_list() {
    let mut world = World::new(WorldSettings { intermissions: true, ..world(60, 4).settings().clone() });
    let (mut shown, mut at_once) = (0, 0);
    for server in 0..60 {
        world.advance(server, START_MS + 4 * HOUR_MS);
        let rounds = world.server_truth(server).final_lists;
        at_once += rounds.iter().filter(|round| round.next_round_ms == round.t_ms).count();
    }
    let mut again = World::new(world.settings().clone());
    for server in 0..60 {
        for round in world.server_truth(server).final_lists {
            let pause_ms = round.next_round_ms - round.t_ms;
            assert!((0..=3 * TICK_MS).contains(&pause_ms) && pause_ms % TICK_MS == 0, "{pause_ms}");
            if pause_ms == 0 {
                continue;
            }
            again.advance(server, round.next_round_ms - 1);
            let players = &again.servers[server as usize].players;
            for (person, points) in round.final_list {
                let Some(p) = players.iter().find(|p| p.person == person) else { continue };
                if p.points == points {
                    shown += 1;
                } else {
                    assert_eq!(p.points, 0, "left and joined again");
                }
            }
        }
    }
    assert!(shown > 500 && at_once > 5, "{shown} {at_once}");
}

#[test]
fn ground_truth_is_kept_by_week() {
    // The start is a Sunday, 21:00 UTC: the week ends three hours later.
    let mut world = world(30, 3);
    world.advance_all(START_MS + 3 * HOUR_MS);
    let first: Vec<ServerTruth> = (0..30).map(|server| world.server_truth(server)).collect();
    world.advance_all(START_MS + 6 * HOUR_MS);
    let mut in_both = 0;
    for (server, first) in first.iter().enumerate() {
        let weeks = |truth: &ServerTruth, week: &str| {
            let of_week = |((w, _), _): &(&(WeekKey, Person), &PlayerTruth)| calendar::week_label(*w) == week;
            truth
                .players
                .iter()
                .filter(of_week)
                .map(|(_, d)| (d.points_gained, d.present_ms))
                .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
        };
        let last = world.server_truth(server as u32);
        // Nothing is added to a week that is over.
        assert_eq!(weeks(&last, "2025-W47").1, weeks(first, "2025-W47").1);
        in_both += usize::from(weeks(&last, "2025-W47").0 > 0 && weeks(&last, "2025-W48").0 > 0);
    }
    assert!(in_both > 3, "{in_both}");
}

#[test]
fn snapshots_contain_bots_full_empty_and_duplicate_names() {
    let mut world = world(400, 2);
    let (mut bots, mut full, mut empty, mut nameless, mut twice) = (0, 0, 0, 0, 0);
    for hour in 0..24 {
        for server in 0..400 {
            world.advance(server, START_MS + hour * HOUR_MS + 77);
            let snapshot = world.snapshot(server);
            assert_eq!(snapshot.t_ms, START_MS + hour * HOUR_MS + 77);
            assert!(snapshot.players.len() as u32 <= snapshot.slots);
            full += u32::from(snapshot.players.len() as u32 == snapshot.slots);
            empty += u32::from(snapshot.players.is_empty());
            bots += snapshot.players.iter().filter(|p| p.ping == Some(0)).count() as u32;
            nameless += snapshot.players.iter().filter(|p| p.name.is_empty()).count();
            let mut names: Vec<_> = snapshot.players.iter().map(|p| &p.name).collect();
            let mut connected: Vec<_> = snapshot.players.iter().filter_map(|p| p.connected_ms).collect();
            names.sort();
            connected.sort();
            twice += u32::from(names.windows(2).any(|pair| pair[0] == pair[1]));
            assert!(connected.windows(2).filter(|pair| pair[0] == pair[1]).count() < 2);
        }
    }
    assert!(
        bots > 100 && full > 20 && empty > 2_000 && nameless > 5 && twice > 10,
        "{bots} {full} {empty} {nameless} {twice}"
    );
}

#[test]
fn each_behaviour_shows_in_the_lists() {
    let behaviours = BehaviourShares::new([0.2; Behaviour::VARIANTS.len()]);
    let mut world = World::new(WorldSettings { behaviours, ..world(200, 2).settings().clone() });
    let mut first: HashMap<u32, (String, Vec<Player>)> = HashMap::new();
    let (mut markers, mut playing, mut twice, mut bots_alone, mut bots_with_players) = (0, 0, 0, 0, 0);
    for minute in (0..720).step_by(10) {
        for server in 0..200 {
            world.advance(server, START_MS + minute * 60_000);
            let profile = world.profile(server).clone();
            let snapshot = world.snapshot(server);
            let list = &snapshot.players;
            let humans = world.players(server);
            match profile.behaviour {
                None => assert!(list.len() <= usize::from(profile.slots)),
                Some(Behaviour::Spectators) => {
                    let marker = profile.game.spectator_points.unwrap();
                    assert!(matches!((&*snapshot.game, marker), ("Xonotic", -666) | ("Warsow", -9_999)));
                    let spectating = list.iter().filter(|p| p.points == Some(marker)).count();
                    (markers, playing) = (markers + spectating, playing + list.len() - spectating);
                }
                Some(Behaviour::GenericNames) => {
                    twice += u32::from(list.iter().filter(|p| p.name == GENERIC_NAME).count() > 1);
                }
                Some(Behaviour::UnmarkedBots) => {
                    let bots = world.bots(server);
                    assert_eq!((snapshot.count, snapshot.bots), (Some(list.len() as u32), Some(bots)));
                    assert!(list.iter().all(|p| p.bot == (humans == 0) && p.ping.is_none()));
                    assert!(humans > 0 || bots >= 3, "bots stay");
                    bots_alone += u32::from(humans == 0);
                    bots_with_players += u32::from(humans > 0 && bots > 0);
                }
                Some(Behaviour::Oversized) => {
                    assert!(list.len() > usize::from(profile.slots + 8.max(profile.slots / 4)));
                    assert!(list.len() <= 255, "what A2S can announce");
                }
                Some(Behaviour::Frozen) => {
                    let shown = list.iter().map(|p| Player { connected_ms: None, ..p.clone() });
                    let shown: Vec<_> = shown.collect();
                    assert!(shown.len() > 4 && shown.iter().all(|p| p.points > Some(0)));
                    let shown = (snapshot.map, shown);
                    assert_eq!(*first.entry(server).or_insert_with(|| shown.clone()), shown);
                }
            }
        }
    }
    assert!(markers > 50 && playing > 200 && twice > 20, "{markers} {playing} {twice}");
    assert!(bots_alone > 50 && bots_with_players > 50, "{bots_alone} {bots_with_players}");
    let mut spectated_ms = 0;
    for server in 0..200 {
        for totals in world.server_truth(server).players.values() {
            assert!((0..=totals.present_ms).contains(&totals.spectated_ms), "{totals:?}");
            spectated_ms += totals.spectated_ms;
        }
    }
    assert!(spectated_ms > HOUR_MS);
    let lines: Vec<TruthLine> = world.truth(|server| server.to_string()).collect();
    for behaviour in Behaviour::VARIANTS {
        let is = |line: &&TruthLine| matches!(line, TruthLine::Server { behaviour: Some(name), .. } if *name == behaviour.name());
        assert!(lines.iter().filter(is).count() > 5, "{behaviour:?}");
    }
}

#[test]
fn constant_players_stay_score_and_play_rounds() {
    let settings = WorldSettings {
        constant_players: Some(40),
        protocols: ProtocolShares::ALL,
        round_results_max: usize::MAX,
        ..world(60, 4).settings().clone()
    };
    let mut world = World::new(settings.clone());
    // The state at a time does not depend on the way to it, with and without truth.
    let mut late = World::new(WorldSettings { truth: false, ..settings });
    let mut first: HashMap<u32, Vec<Person>> = HashMap::new();
    let mut points = std::collections::BTreeSet::new();
    for hour in 0..30 {
        for server in 0..60 {
            let t_ms = START_MS + hour * HOUR_MS + 7_777;
            world.advance(server, t_ms);
            let slots = u32::from(world.profile(server).slots);
            assert_eq!((world.players(server), world.bots(server)), (slots.min(40), 0));
            let is_small =
                matches!(world.protocol(server), Protocol::Doom3 | Protocol::Etqw | Protocol::MinecraftStatus);
            assert!(slots >= 40 || is_small, "{slots}");
            let state = &world.servers[server as usize];
            let mut persons: Vec<Person> = state.players.iter().map(|p| p.person).collect();
            points.extend(state.players.iter().map(|p| p.points));
            persons.sort_unstable();
            assert_eq!(*first.entry(server).or_insert_with(|| persons.clone()), persons);
            if hour % 11 == 3 {
                late.advance(server, t_ms);
                assert_eq!(late.snapshot(server), world.snapshot(server));
            }
        }
    }
    assert!(points.len() > 20, "{points:?}");
    let rounds: u64 = (0..60).map(|server| world.server_truth(server).rounds_rated).sum();
    assert!(rounds > 60 * 30, "{rounds}");
}

#[test]
fn ground_truth_is_written_as_json_lines() {
    let mut world = world(20, 2);
    world.advance_all(START_MS + 5 * HOUR_MS);
    let mut out = Vec::new();
    crate::fleet::truth::write(world.truth(|server| format!("x://{server}")), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let mut kinds: HashMap<String, u32> = HashMap::new();
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["server"].as_str().unwrap().starts_with("x://"));
        let kind = value["kind"].as_str().unwrap();
        *kinds.entry(kind.to_owned()).or_default() += 1;
        let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        let want = match kind {
            "server" => &["game", "kind", "players", "rounds", "rounds_rated", "server", "t_ms"][..],
            "round" => &["final_list", "kind", "map", "server", "t_ms"],
            _ => &[
                "bot",
                "kind",
                "name",
                "normalised",
                "person_id",
                "points_gained",
                "points_lost",
                "present_ms",
                "rounds",
                "server",
                "spectated_ms",
                "starts",
                "week",
                "wins",
            ],
        };
        assert_eq!(names, want, "{line}");
    }
    assert_eq!(kinds["server"], 20);
    assert!(kinds["player"] > 50 && kinds["round"] > 20, "{kinds:?}");
}

/// Recorded weeks and the benches depend on this number: if it changes, the world of every seed
/// changes.
#[test]
fn default_world_of_a_seed_never_changes() {
    let behaviours = BehaviourShares::MIXED;
    let mut world = World::new(WorldSettings { behaviours, ..world(300, 1).settings().clone() });
    let mut text = String::new();
    for hour in [0, 5, 30] {
        for server in 0..300 {
            world.advance(server, START_MS + hour * HOUR_MS);
            let Snapshot { t_ms, game, map, hostname, slots, players, count, bots, .. } = world.snapshot(server);
            text += &format!("{t_ms} {game} {map} {hostname} {slots} {count:?} {bots:?}\n");
            for Player { name, points, ping, connected_ms, bot, .. } in players {
                text += &format!("{name} {points:?} {ping:?} {connected_ms:?} {bot}\n");
            }
        }
    }
    assert!(text.lines().count() > 2_000);
    assert_eq!(crc32fast::hash(text.as_bytes()), 4_122_542_310);
}
