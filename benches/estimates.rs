//! Measures the errors of the estimates of docs/rules.md section 15: `cargo bench --bench
//! estimates`.
//!
//! Plays a day of `CLQD_SERVERS` (default 150) servers for each scenario, feeds
//! the scans to the engine in virtual time, and prints the errors of the rows of
//! players who were there for at least an hour. The last line is the simulated
//! fleet of `clqd fleet`, scanned every 120 s. `CLQD_ONLY` runs the scenarios
//! whose names contain it. Takes about a minute; times are not measured.

#[path = "../tests/engine/estimates/fleet.rs"]
mod fleet;
#[path = "../tests/engine/estimates/play.rs"]
mod play;

use play::{Error, Errors, Scenario, run};

fn main() {
    let servers = std::env::var("CLQD_SERVERS").ok().and_then(|v| v.parse().ok()).unwrap_or(150);
    let only = std::env::var("CLQD_ONLY").unwrap_or_default();
    println!("{:<42} {:^15} {:^15} {:^13} {:^13}", "", "points", "points_est", "time", "time_est");
    println!(
        "{:<34} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6}",
        "%", "rows", "bias", "median", "bias", "median", "bias", "median", "bias", "median"
    );
    for scenario in scenarios().into_iter().filter(|scenario| scenario.name.contains(&only)) {
        print(scenario.name, &run(&scenario, servers, 24, 1));
    }
    if "fleet".contains(&only) {
        print("fleet", &fleet::run(2 * servers, 24, 1));
    }
}

fn print(name: &str, errors: &Errors) {
    let Errors { rows, points, points_est, time, time_est } = errors;
    let two = |Error { bias, median }: &Error| format!("{bias:>7.2} {median:>7.2}");
    println!("{name:<34} {rows:>7} {} {} {} {}", two(points), two(points_est), two(time), two(time_est));
}

fn scenarios() -> Vec<Scenario> {
    const BASE: Scenario = Scenario::BASE;
    vec![
        BASE,
        Scenario { name: "no intermission", intermission: (0.0, 0.0), ..BASE },
        Scenario { name: "rounds of 5 min", round: (300.0, 300.0), ..BASE },
        Scenario { name: "rounds of 5 min, no intermission", round: (300.0, 300.0), intermission: (0.0, 0.0), ..BASE },
        Scenario {
            name: "rounds of 5 min, 30 s intermission",
            round: (300.0, 300.0),
            intermission: (30.0, 30.0),
            ..BASE
        },
        Scenario {
            name: "rounds of 10 min in step with scans",
            round: (600.0, 600.0),
            intermission: (0.0, 0.0),
            ..BASE
        },
        Scenario { name: "rounds of 20 min", round: (1_200.0, 1_200.0), ..BASE },
        Scenario { name: "limit of 20", score_limit: Some(20), ..BASE },
        Scenario { name: "limit of 40, 3 a minute", score_limit: Some(40), scores_per_minute: 3.0, ..BASE },
        Scenario { name: "0.4 a minute", scores_per_minute: 0.4, ..BASE },
        Scenario { name: "0.4 a minute, same map", scores_per_minute: 0.4, map_changes: 0.0, ..BASE },
        Scenario { name: "steps of 5", scores_per_minute: 0.8, step: 5, ..BASE },
        Scenario { name: "steps of 100", scores_per_minute: 0.5, step: 100, ..BASE },
        Scenario { name: "3 players", players: 3.0, ..BASE },
        Scenario { name: "24 players", players: 24.0, ..BASE },
        Scenario { name: "stays of 12 min", stay: 700.0, ..BASE },
        Scenario { name: "stays of 2 h", stay: 7_200.0, ..BASE },
        Scenario { name: "15 % of scans missed", missed: 0.15, ..BASE },
        Scenario { name: "6 % suicides", suicides: 0.06, ..BASE },
        Scenario { name: "same map", map_changes: 0.0, ..BASE },
        Scenario { name: "15 % leave at the end", leaving_at_end: 0.15, ..BASE },
        Scenario { name: "15 s of warm-up", warm_up: 15.0, ..BASE },
        Scenario { name: "scans every 60 s", scan_every: 60, ..BASE },
        Scenario { name: "scans every 600 s", scan_every: 600, ..BASE },
        Scenario {
            name: "scans every 600 s, longer rounds",
            scan_every: 600,
            round: (900.0, 1_500.0),
            players: 2.0,
            ..BASE
        },
    ]
}
