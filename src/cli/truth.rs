//! `clqd truth`: how close rankings come to what happened, measured by a simulation.

use std::io::Write;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::api::json;
use crate::cli::context::CliContext;
use crate::cli::exit::UsageError;
use crate::cli::output::table::{Align, Table};
use crate::cli::stdio::{Output, note};
use crate::engine::EngineSettings;
use crate::model::ScanBudget;
use crate::truth::{self, Accuracy, Plan, Scenario};

/// Measure how close rankings come to what happened
///
/// Simulates a week of players on servers, of whom everything is known. The engine scans them in virtual time, with
/// the settings of the configuration file, and the rankings are compared with the true ones. No daemon is needed, and
/// no state is changed.
#[derive(Clone, Debug, Args)]
pub struct TruthArgs {
    /// Measure with each of these values of scan.budget, instead of the configured one
    #[arg(long, value_name = "SCANS,...", value_delimiter = ',', value_parser = ScanBudget::parse)]
    budget: Vec<ScanBudget>,
    /// What is played: standard, another one, or all [default: standard]
    #[arg(long, value_name = "NAME", default_value = "standard", hide_default_value = true)]
    scenario: String,
    /// Simulated servers
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    servers: u32,
    /// Days of the week, from Monday on
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=7))]
    days: u32,
    /// Number of the simulated world; repeatable
    #[arg(long, value_name = "N", default_value = "1")]
    seed: Vec<u64>,
}

/// A line of the table, as in JSON.
#[derive(Debug, Serialize)]
struct AccuracyRow {
    kind: &'static str,
    scenario: &'static str,
    budget: f64,
    seed: u64,
    servers: u32,
    days: u32,
    #[serde(flatten)]
    accuracy: Accuracy,
}

pub fn run(args: &TruthArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let settings = app.config()?.engine_settings()?;
    let scenarios = match args.scenario.as_str() {
        "all" => Scenario::ALL.to_vec(),
        name => vec![Scenario::named(name).ok_or_else(|| {
            let known: Vec<&str> = Scenario::ALL.iter().map(|scenario| scenario.name).collect();
            UsageError(format!("no scenario is called {name:?}: there are {} and all", known.join(", ")))
        })?],
    };
    let budgets = if args.budget.is_empty() {
        vec![settings.scan_budget]
    } else {
        args.budget.iter().map(|budget| budget.scans()).collect()
    };
    let mut runs = Vec::new();
    for scenario in scenarios {
        for &seed in &args.seed {
            for &budget in &budgets {
                let plan = Plan { scenario, servers: args.servers, days: args.days, seed };
                runs.push((plan, EngineSettings { scan_budget: budget, ..settings.clone() }));
            }
        }
    }
    let mut out = Output::ending();
    let mut table = Table::new(COLUMNS).with_optional(&["seed", "scenario"]);
    let mut rows = Vec::new();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    for runs in runs.chunks(threads) {
        for (plan, settings, accuracy) in run_beside_each_other(runs) {
            let row = AccuracyRow {
                kind: "accuracy",
                scenario: plan.scenario.name,
                budget: settings.scan_budget,
                seed: plan.seed,
                servers: plan.servers,
                days: plan.days,
                accuracy: accuracy?,
            };
            match app.json() {
                true => writeln!(out, "{}", json::to_string(&row))?,
                false => table.row(&mut out, cells(&row))?,
            }
            rows.push(row);
        }
    }
    table.flush(&mut out)?;
    if !app.json() {
        note(LEGEND);
        writeln!(out)?;
        let mut table = Table::new(ESTIMATE_COLUMNS).with_optional(&["seed", "scenario"]);
        rows.iter().try_for_each(|row| table.row(&mut out, estimate_cells(row)))?;
        table.flush(&mut out)?;
        note(ESTIMATE_LEGEND);
    }
    Ok(ExitCode::SUCCESS)
}

type Measured<'r> = (&'r Plan, &'r EngineSettings, Result<Accuracy, truth::RunError>);

fn run_beside_each_other(runs: &[(Plan, EngineSettings)]) -> Vec<Measured<'_>> {
    let style = ProgressStyle::with_template("{bar:30} {percent} %, {elapsed}, {msg}").expect("a valid template");
    let bars = MultiProgress::new();
    thread::scope(|scope| {
        let started: Vec<_> = runs
            .iter()
            .map(|(plan, settings)| {
                let bar = bars.add(ProgressBar::new(1_000).with_style(style.clone()));
                bar.set_message(format!("{}, seed {}", plan.scenario.name, plan.seed));
                scope.spawn(move || {
                    let accuracy =
                        truth::run(*plan, settings.clone(), |share| bar.set_position((share * 1_000.0) as u64));
                    bar.finish_and_clear();
                    (plan, settings, accuracy)
                })
            })
            .collect();
        started.into_iter().map(|run| run.join().expect("a simulation does not panic")).collect()
    })
}

const LEGEND: &str = "scans: for each server and two minutes. time %, points %: error of the sum. found, winner,
top 3: percent of the rounds that were found, with the right winner, the right first three.
clq1 to time: correlation of the ranks on a server with the true ones.";

const COLUMNS: &[(&str, Align)] = &[
    ("scenario", Align::Truncate(21)),
    ("budget", Align::Right),
    ("seed", Align::Right),
    ("scans", Align::Right),
    ("time %", Align::Right),
    ("points %", Align::Right),
    ("found", Align::Right),
    ("winner", Align::Right),
    ("top 3", Align::Right),
    ("clq1", Align::Right),
    ("clq2", Align::Right),
    ("elo", Align::Right),
    ("points", Align::Right),
    ("time", Align::Right),
];

const ESTIMATE_LEGEND: &str = "sure: percent of the found rounds; right: of these, with the right winner. time est,
time con, points est: the median error of a player in percent, and the percent of the
players whose true value is within the error that is given with the estimate (80 is meant).";

const ESTIMATE_COLUMNS: &[(&str, Align)] = &[
    ("scenario", Align::Truncate(21)),
    ("budget", Align::Right),
    ("seed", Align::Right),
    ("sure", Align::Right),
    ("right", Align::Right),
    ("time est", Align::Right),
    ("within", Align::Right),
    ("time con", Align::Right),
    ("within", Align::Right),
    ("points est", Align::Right),
    ("within", Align::Right),
];

fn estimate_cells(row: &AccuracyRow) -> Vec<String> {
    let it = &row.accuracy;
    let medians = [it.time_est_median, it.time_connected_median, it.points_est_median];
    let within = [it.time_est_within, it.time_connected_within, it.points_est_within];
    let mut cells = vec![row.scenario.to_owned(), row.budget.to_string(), row.seed.to_string()];
    cells.extend([it.sure, it.sure_winner].map(|percent| format!("{percent:.1}")));
    for (median, within) in medians.into_iter().zip(within) {
        cells.extend([format!("{median:.2}"), format!("{within:.0}")]);
    }
    cells
}

fn cells(row: &AccuracyRow) -> Vec<String> {
    let Accuracy { scans, time_error, points_error, found, winner, first_three, .. } = row.accuracy;
    let Accuracy { clq1, clq2, elo, points, time, .. } = row.accuracy;
    let correlation = |value: f64| format!("{value:.3}").trim_start_matches('0').to_owned();
    let mut cells = vec![
        row.scenario.to_owned(),
        row.budget.to_string(),
        row.seed.to_string(),
        format!("{scans:.2}"),
        format!("{time_error:+.1}"),
        format!("{points_error:+.1}"),
    ];
    cells.extend([found, winner, first_three].map(|percent| format!("{percent:.1}")));
    cells.extend([clq1, clq2, elo, points, time].map(correlation));
    cells
}
