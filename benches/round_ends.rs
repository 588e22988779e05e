//! Measures the effect of the extra scans at the ends of rounds: `cargo bench --bench
//! round_ends`.
//!
//! The simulated fleet (`CLQD_SERVERS`, default 200, with intermissions) plays for `CLQD_DAYS`
//! (7) from the seed `CLQD_SEED` (1). The real engine and schedule scan it in virtual time, once
//! for each variant: without extra scans, with `scan.round_end_share` of 0.15
//! (`CLQD_SHARE`), and with the same number of scans, spread evenly. Each round of the
//! ground truth is compared with the last list that was scanned before the next round began, and
//! the ratings with those computed from the true final lists. Takes about a minute;
//! times are not measured. The results are in docs/benchmarks.md.

use std::collections::{BTreeMap, HashMap};

use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::fleet::address;
use clqd::fleet::truth::TruthLine;
use clqd::fleet::world::{World, WorldSettings};
use clqd::model::calendar::{Calendar, DAY_MS, week_label};
use clqd::model::name::{ColourCodes, normalise};
use clqd::model::{ServerKey, ServerUrl, Snapshot};
use clqd::rank::{Rules, clq2, elo};
use clqd::state::State;
use clqd::store::StoreSettings;

/// Monday 2025-11-24 00:00 UTC.
const START_MS: i64 = 1_763_942_400_000;

/// Virtual time between two ticks of the engine.
const TICK_MS: i64 = 10_000;

/// Events between two commits.
const COMMIT_EVENTS: usize = 5_000;

/// Least number of true rated rounds of a player whose ratings are compared.
const ROUNDS_MIN: u32 = 3;

/// Least number of such players on a server for a correlation.
const PLAYERS_MIN: usize = 5;

fn main() {
    let number = |name: &str, or: f64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let size = Size {
        servers: number("CLQD_SERVERS", 200.0) as u32,
        days: number("CLQD_DAYS", 7.0) as i64,
        seed: number("CLQD_SEED", 1.0) as u64,
    };
    let share = number("CLQD_SHARE", 0.15);
    println!("{} servers, {} days, seed {}", size.servers, size.days, size.seed);
    println!(
        "{:<10} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "", "scans", "of >= 2", "extra", "last", "rounds", "winner", "three", "lost", "elo", "clq2"
    );
    let settings = |share: f64| EngineSettings { round_end_share: share, ..EngineSettings::default() };
    let without = run(size, settings(0.0));
    print("without", &without);
    let with = run(size, settings(share));
    print("round ends", &with);
    // The extra scans are made on servers with players, which are of class 1 for the most part.
    let mut even = settings(0.0);
    let of_class_1 = without.scans_of_class_1 as f64;
    let factor = of_class_1 / (of_class_1 + (with.scans - without.scans) as f64);
    let class1_ms = &mut even.intervals.classes_ms[0];
    *class1_ms = (*class1_ms as f64 * factor) as i64;
    print("evenly", &run(size, even));
}

fn print(name: &str, figures: &Figures) {
    let Figures { scans, scans_with_players, extra, extra_last, rounds, winner, three, lost, elo, clq2, .. } = figures;
    println!(
        "{name:<10} {scans:>9} {scans_with_players:>9} {extra:>7} {extra_last:>7} {rounds:>7} {:>6.1}% {:>6.1}% {:>6.2}% {elo:>7.4} {clq2:>7.4}",
        100.0 * winner,
        100.0 * three,
        100.0 * lost
    );
}

#[derive(Clone, Copy)]
struct Size {
    servers: u32,
    days: i64,
    seed: u64,
}

#[derive(Default)]
struct Figures {
    /// Snapshots, and those with at least two players.
    scans: u64,
    scans_with_players: u64,
    scans_of_class_1: u64,
    extra: u64,
    extra_last: u64,
    /// Rated rounds of the ground truth, and the shares of them for which the last list had the
    /// right winner and the right first three.
    rounds: u64,
    winner: f64,
    three: f64,
    /// Share of the points of the final lists that the last lists did not show.
    lost: f64,
    /// Rank correlations of the scores of a server's players, weighted by their number.
    elo: f64,
    clq2: f64,
}

/// A list of normalised names and points.
type List = Vec<(String, i64)>;

fn run(size: Size, settings: EngineSettings) -> Figures {
    let end_ms = START_MS + size.days * DAY_MS;
    let mut world = World::new(WorldSettings {
        servers: size.servers,
        seed: size.seed,
        start_ms: START_MS,
        activity: 3.0,
        intermissions: true,
        round_results_max: usize::MAX,
        ..WorldSettings::default()
    });
    let dir = tempfile::tempdir().expect("a directory");
    let store = StoreSettings { cache_bytes: 64 << 20, create: true };
    let mut state = State::open(&dir.path().join("state"), store, settings).expect("a state");
    let urls: Vec<ServerUrl> = (0..size.servers)
        .map(|server| {
            let text = format!("{}://{}:27960", world.protocol(server).scheme(), address::address_of(server));
            ServerUrl::parse(&text).expect("a URL")
        })
        .collect();
    let mut by_key: HashMap<ServerKey, u32> = HashMap::new();
    for (server, url) in urls.iter().enumerate() {
        let (key, _) = state.engine.add_server(url.clone(), Vec::new(), START_MS).expect("a server");
        by_key.insert(key, server as u32);
    }
    let mut figures = Figures::default();
    // Every list of each server.
    let mut lists: Vec<Vec<(i64, List)>> = vec![Vec::new(); urls.len()];
    let (mut tick_ms, mut events) = (START_MS, 0);
    loop {
        let now_ms = state.engine.next_due_ms().expect("servers are due").max(state.engine.now_ms());
        if now_ms >= end_ms {
            break;
        }
        while tick_ms <= now_ms {
            state.handle(Event::Tick { now_ms: tick_ms }).expect("a store that works");
            tick_ms += TICK_MS;
        }
        let Some(probe) = state.engine.poll_probe(now_ms) else { continue };
        let server = by_key[&probe.server];
        world.advance(server, now_ms + 1);
        let snapshot = world.snapshot(server);
        let list = list_of(&snapshot, &world, server);
        figures.scans += 1;
        figures.scans_with_players += u64::from(list.len() >= 2);
        lists[server as usize].push((snapshot.t_ms, list));
        let outcome = Outcome::Snapshot(snapshot);
        let scanned = Event::Scanned { server: probe.server, id: probe.id, sent_ms: Some(now_ms), outcome };
        state.handle(scanned).expect("a store that works");
        events += 1;
        if events % COMMIT_EVENTS == 0 {
            while state.engine.poll_notice().is_some() {}
            state.commit().expect("a store that works");
        }
    }
    world.advance_all(end_ms);
    state.commit().expect("a store that works");
    let counts = state.engine.counts();
    figures.extra = counts.round_end_scans;
    figures.extra_last = counts.round_end_lists;
    figures.scans_of_class_1 = counts.snapshots_by_class[0];

    let mut truth: Vec<Vec<(i64, i64, List)>> = vec![Vec::new(); urls.len()];
    let by_url: HashMap<String, usize> = urls.iter().enumerate().map(|(n, url)| (url.to_string(), n)).collect();
    for line in world.truth(|server| urls[server as usize].to_string()) {
        let TruthLine::Round { server, t_ms, next_round_ms, final_list, .. } = line else { continue };
        let server = by_url[&server];
        let codes = codes(&world, server as u32);
        let list = final_list.into_iter().map(|(name, points)| (normalise(&name, codes), points.into())).collect();
        truth[server].push((t_ms, next_round_ms, list));
    }
    compare_lists(&mut figures, &truth, &lists);
    compare_ratings(&mut figures, &state, &urls, &truth);
    figures
}

fn codes(world: &World, server: u32) -> ColourCodes {
    match world.protocol(server).scheme() {
        "quake3" => ColourCodes::Quake3,
        _ => ColourCodes::None,
    }
}

/// The players of a list, without bots.
fn list_of(snapshot: &Snapshot, world: &World, server: u32) -> List {
    let codes = codes(world, server);
    let is_quake3 = world.protocol(server).scheme() == "quake3";
    let players = snapshot.players.iter().filter(|player| !(player.bot || is_quake3 && player.ping == Some(0)));
    players.filter_map(|player| Some((normalise(&player.name, codes), player.points?))).collect()
}

fn compare_lists(figures: &mut Figures, truth: &[Vec<(i64, i64, List)>], lists: &[Vec<(i64, List)>]) {
    let (mut winner, mut three) = (0_u64, 0_u64);
    let (mut points, mut lost) = (0_i64, 0_i64);
    for (rounds, lists) in truth.iter().zip(lists) {
        let mut began_ms = START_MS;
        for (_, next_round_ms, finals) in rounds {
            let at = lists.partition_point(|(t_ms, _)| t_ms < next_round_ms);
            let last = lists[..at].last().filter(|(t_ms, _)| *t_ms >= began_ms);
            began_ms = *next_round_ms;
            figures.rounds += 1;
            let by_name: HashMap<&str, i64> = finals.iter().map(|(name, points)| (&**name, *points)).collect();
            let mut seen: List = last.map(|(_, list)| list.clone()).unwrap_or_default();
            seen.sort_by(|a, b| (-a.1, &a.0).cmp(&(-b.1, &b.0)));
            let seen_by_name: HashMap<&str, i64> = seen.iter().map(|(name, points)| (&**name, *points)).collect();
            // The order of players with equal points does not matter.
            let is_right = |at: usize| match (seen.get(at), finals.get(at)) {
                (Some((name, _)), Some((_, points))) => by_name.get(&**name) == Some(points),
                (_, expected) => expected.is_none(),
            };
            winner += u64::from(is_right(0));
            three += u64::from((0..3).all(is_right));
            for (name, final_points) in finals {
                points += (*final_points).max(0);
                lost += (final_points - seen_by_name.get(&**name).copied().unwrap_or(0).max(0)).max(0);
            }
        }
    }
    figures.winner = winner as f64 / figures.rounds as f64;
    figures.three = three as f64 / figures.rounds as f64;
    figures.lost = lost as f64 / points as f64;
}

#[derive(Clone, Default)]
struct TrueRating {
    elo: f64,
    rounds: u32,
    clq2_games: Vec<u32>,
}

fn compare_ratings(figures: &mut Figures, state: &State, urls: &[ServerUrl], truth: &[Vec<(i64, i64, List)>]) {
    let week = week_label(Calendar::default().week(START_MS));
    let mut rows: BTreeMap<String, HashMap<String, (f64, f64)>> = BTreeMap::new();
    state
        .engine
        .export(&state.store, &week, |server, _, player, row, _| {
            let scores = (row.elo, row.clq2() as f64);
            rows.entry(server.to_owned()).or_default().insert(player.to_owned(), scores);
            Ok::<(), clqd::cli::export::ExportError>(())
        })
        .expect("an export");
    let rules = Rules::default();
    let (mut weight, mut elo_sum, mut clq2_sum) = (0.0, 0.0, 0.0);
    for (url, rounds) in urls.iter().zip(truth) {
        let mut ratings: HashMap<&str, TrueRating> = HashMap::new();
        for (_, _, finals) in rounds {
            let points: Vec<i64> = finals.iter().map(|(_, points)| *points).collect();
            let rating = |name: &str| ratings.get(name).map_or(elo::ELO_START, |rating| rating.elo);
            let before: Vec<f64> = finals.iter().map(|(name, _)| rating(name)).collect();
            let games = clq2::game_points(&points, rules.clq2_quarter);
            let after = elo::new_ratings(&points, &before, rules.elo);
            for (((name, _), elo), game) in finals.iter().zip(after).zip(games) {
                let rating = ratings.entry(name).or_default();
                rating.elo = elo;
                rating.rounds += 1;
                rating.clq2_games.push(game as u32);
            }
        }
        let Some(rows) = rows.get(url.as_str()) else { continue };
        let mut names: Vec<&str> = ratings.keys().copied().filter(|name| ratings[name].rounds >= ROUNDS_MIN).collect();
        names.sort_unstable();
        if names.len() < PLAYERS_MIN {
            continue;
        }
        // A player without a rating has the first one.
        let row = |name: &&str| rows.get(*name).copied().unwrap_or((elo::ELO_START, 0.0));
        let true_clq2 = |name: &&str| {
            let mut games = ratings[*name].clq2_games.clone();
            games.sort_unstable_by(|a, b| b.cmp(a));
            f64::from(games.iter().take(10).sum::<u32>())
        };
        let of = |score: &dyn Fn(&&str) -> f64| names.iter().map(score).collect::<Vec<f64>>();
        let n = names.len() as f64;
        weight += n;
        elo_sum += n * spearman(&of(&|name| row(name).0), &of(&|name| ratings[*name].elo));
        clq2_sum += n * spearman(&of(&|name| row(name).1), &of(&true_clq2));
    }
    (figures.elo, figures.clq2) = (elo_sum / weight, clq2_sum / weight);
}

/// Spearman's rank correlation; equal values share their mean rank.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    if spread == 0.0 { 1.0 } else { product(&a, &b) / spread }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let first = order.iter().position(|&at| at == equal[0]).expect("a value");
        equal.iter().for_each(|&at| ranks[at] = first as f64 + (equal.len() as f64 - 1.0) / 2.0);
    }
    ranks
}
