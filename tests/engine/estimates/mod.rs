//! Compares the estimates of docs/rules.md section 15 with simulated ground truth, through the
//! complete engine in virtual time: they must be within their targets where the counted
//! numbers are not. `benches/estimates.rs` measures more and larger scenarios.

mod fleet;
mod play;

use self::play::{Errors, Scenario, run};

#[track_caller]
fn check(scenario: &str, errors: &Errors) {
    eprintln!("{scenario}: {errors:?}");
    assert!(errors.rows > 300, "{scenario}: {errors:?}");
    assert!(
        errors.points.bias < -5.0 && errors.points.median > 4.0,
        "{scenario}: the scenario has no unseen points: {errors:?}"
    );
    assert!(errors.points_est.bias.abs() < 5.0 && errors.points_est.median <= 4.0, "{scenario}: {errors:?}");
    assert!(errors.time.bias.abs() > errors.time_est.bias.abs(), "{scenario}: {errors:?}");
    assert!(errors.time_est.bias.abs() < 0.5 && errors.time_est.median <= 1.0, "{scenario}: {errors:?}");
}

#[test]
fn estimates_of_simulated_rounds_are_within_targets() {
    const BASE: Scenario = Scenario::BASE;
    for scenario in [
        BASE,
        Scenario { name: "limit of 20", score_limit: Some(20), ..BASE },
        Scenario { name: "no intermission", intermission: (0.0, 0.0), ..BASE },
    ] {
        check(scenario.name, &run(&scenario, 30, 24, 1));
    }
}

#[test]
fn estimates_of_fleet_are_within_targets() {
    check("fleet", &fleet::run(150, 24, 1));
}
