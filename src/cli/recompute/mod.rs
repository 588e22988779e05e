//! `clqd recompute`: applies recorded events with the recorded settings and with those of the config, and
//! prints how the rankings differ. Both replays are in temporary directories. With `--apply`, the daemon then
//! replaces the rows of its running windows.

mod history;
mod output;
mod report;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use self::history::RecordedHistory;
use self::output::Report;
use self::report::{BoardReport, LogReport, SettingsReport, StateTotals, TotalsReport};
use super::admin::send;
use super::arguments::{parse_tag, parse_url};
use super::replay::{Replay, default_memory_bytes, parse_size};
use crate::api::requests::WindowsRecompute;
use crate::board::comparison::{Comparison, NamedPlayer, Placing, compare};
use crate::cli::context::CliContext;
use crate::cli::recorded_logs::RecordedLogs;
use crate::cli::stdio::{Output, note};
use crate::config::Config;
use crate::engine::ViewError;
use crate::log::{EachEvent, LogEvent};
use crate::model::calendar::{Calendar, week_label};
use crate::model::row::Ranking;
use crate::model::scope::Scope;
use crate::model::{ServerUrl, WeekKey};
use crate::state::State;
use crate::store::{StoreError, temp_root};
use crate::view::board::BoardSelector;

/// Show how other settings of the rules would change the rankings
///
/// Applies the scans and commands of the log twice, with the settings that it records and with those
/// of the configuration file (`--config`), and compares the boards of each week. The state is not read,
/// and not changed without --apply.
#[derive(Clone, Debug, clap::Args)]
pub struct RecomputeArgs {
    /// A state directory with a log, or a file of a scan log, plain or .zst, which may be repeated
    /// [default: as configured]
    #[arg(long = "log", value_name = "PATH")]
    pub logs: Vec<PathBuf>,
    /// Compare the last N weeks of the log, also those of which it has only a part [default: all
    /// weeks that the log covers completely]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub weeks: Option<u32>,
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Memory for uncommitted changes, besides the store caches, such as 800M or 12G
    /// [default: a third of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Skip damaged lines and report them, instead of refusing the logs
    #[arg(long)]
    pub salvage: bool,
    /// Then have the daemon replace the rows of its running windows by those that follow from its log with its
    /// present settings, which must be those of the configuration file
    #[arg(long, conflicts_with = "logs")]
    pub apply: bool,
}

/// Without one of them, the boards of all games are compared.
#[derive(Clone, Debug, clap::Args)]
#[group(multiple = false)]
pub struct ScopeArgs {
    /// Compare the boards of one server, instead of all games
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    server: Option<ServerUrl>,
    /// Compare the boards of one game, such as baseq3
    #[arg(long, value_name = "NAME")]
    game: Option<String>,
    /// Compare the boards of all servers with a tag
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Option<String>,
}

impl ScopeArgs {
    fn scope(&self) -> Option<Scope> {
        let ScopeArgs { server, game, tag } = self.clone();
        server.map(Scope::Server).or(game.map(Scope::Game)).or(tag.map(Scope::Tag))
    }
}

pub fn run(args: &RecomputeArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let request = |only_check| WindowsRecompute { settings: config.result_settings().0, only_check };
    // What the daemon would refuse after the report, it refuses before.
    if args.apply {
        let code = send(app, &request(true))?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    print_report(args, app, &config)?;
    match args.apply {
        true => send(app, &request(false)),
        false => Ok(ExitCode::SUCCESS),
    }
}

fn print_report(args: &RecomputeArgs, app: &CliContext, config: &Config) -> anyhow::Result<()> {
    let logs = match &args.logs[..] {
        [] => RecordedLogs::of_state(&config.state_dir)?,
        logs => RecordedLogs::open(logs, args.salvage)?,
    };
    let each_event: EachEvent = &|each| logs.each_event(each);
    let Some(history) = RecordedHistory::read(each_event)? else { bail!("the log has no events") };
    let changed = history.changed_settings(config);
    match &history.missing_settings()[..] {
        [] => {}
        all if all.len() == config.result_settings().0.len() => {
            note("clqd: the log records no settings; their defaults are assumed");
        }
        missing => {
            let missing = missing.join(", ");
            note(format_args!("clqd: the log does not record these settings; their defaults are assumed: {missing}"));
        }
    }
    // With --apply, the request is sent even if nobody reads the report.
    let out = if args.apply { Output::lasting() } else { Output::ending() };
    let mut report = Report::new(out, app.json());
    let is_changed = !changed.is_empty();
    report.settings(&SettingsReport { settings: changed })?;
    if !is_changed {
        return Ok(());
    }

    let config = rules_only(config);
    let before = history.first_config(&config)?;
    let calendars = [calendar_of(&before)?, calendar_of(&config)?];
    let (weeks, partial) = select_weeks(&history, &calendars, args.weeks)?;
    let labels = |weeks: &[WeekKey]| weeks.iter().map(|&week| week_label(week)).collect();
    report.log(&LogReport {
        first_ms: history.first_ms,
        last_ms: history.last_ms,
        scans: history.scans,
        weeks: labels(&weeks),
        partial_weeks: labels(&partial),
    })?;

    let mut recomputed =
        Recomputation::run(each_event, &before, &config, args.memory.unwrap_or_else(default_memory_bytes))?;
    report.totals(&TotalsReport { before: recomputed.before.totals(), after: recomputed.after.totals() })?;
    let scope = args.scope.scope();
    for &week in &weeks {
        recomputed.ensure_boards(week)?;
        let scopes = match &scope {
            Some(scope) => {
                recomputed.require(scope, week)?;
                vec![scope.clone()]
            }
            None => recomputed.games(week).into_iter().map(Scope::Game).collect(),
        };
        if scopes.is_empty() {
            note(format_args!("clqd: nobody played in {}", week_label(week)));
        }
        for scope in scopes {
            let is_partial = partial.contains(&week);
            let board = |ranking| {
                let compared = recomputed.compare(week, &scope, ranking)?;
                Ok(BoardReport::new(week_label(week), is_partial, &scope, ranking, compared))
            };
            let boards = Ranking::ALL.into_iter().map(board).collect::<anyhow::Result<Vec<BoardReport>>>()?;
            report.boards(&boards)?;
        }
    }
    Ok(report.finish()?)
}

/// The config without what a comparison does not need: the archive, and windows other than weeks. All
/// weeks are kept.
fn rules_only(config: &Config) -> Config {
    /// The largest value that the config check accepts.
    const KEEP_WEEKS_MAX: u32 = 520;
    let mut config = config.clone();
    config.archive.url.clear();
    config.boards.windows.clear();
    config.store.keep_weeks = KEEP_WEEKS_MAX;
    config
}

fn calendar_of(config: &Config) -> anyhow::Result<Calendar> {
    Ok(*config.engine_settings()?.windows.calendar())
}

/// The weeks to compare, and the weeks of which the log has only a part. The calendars differ if the
/// time zone does. Error: no week is to be compared.
fn select_weeks(
    history: &RecordedHistory,
    calendars: &[Calendar; 2],
    count: Option<u32>,
) -> anyhow::Result<(Vec<WeekKey>, Vec<WeekKey>)> {
    let all: BTreeSet<WeekKey> = calendars.iter().flat_map(|calendar| history.weeks(calendar)).collect();
    let is_covered = |week: &WeekKey| calendars.iter().all(|calendar| history.covers(calendar, *week));
    let partial: Vec<WeekKey> = all.iter().copied().filter(|week| !is_covered(week)).collect();
    let weeks: Vec<WeekKey> = match count {
        Some(count) => all.iter().copied().skip(all.len().saturating_sub(count as usize)).collect(),
        None => all.iter().copied().filter(is_covered).collect(),
    };
    ensure!(
        !weeks.is_empty(),
        "the log covers no week completely: it has a part of {}; compare this part with --weeks {}",
        partial.iter().map(|&week| week_label(week)).collect::<Vec<_>>().join(" and "),
        partial.len()
    );
    Ok((weeks, partial))
}

/// The events of a log, applied with two settings of the rules.
struct Recomputation {
    /// With the recorded settings.
    before: Recomputed,
    /// With the settings of the config.
    after: Recomputed,
}

/// A state in a temporary directory.
struct Recomputed {
    state: State,
    /// Deleted after the state is closed.
    _dir: TempDir,
}

impl Recomputation {
    /// `before`: the settings that apply until the log has others. `memory`: bytes for uncommitted changes
    /// of both states.
    fn run(each_event: EachEvent, before: &Config, after: &Config, memory: u64) -> anyhow::Result<Recomputation> {
        let mut recomputed = Recomputation { before: Recomputed::open(before)?, after: Recomputed::open(after)? };
        let mut recorded = Replay::new(&mut recomputed.before.state, memory / 2).with_config(before.clone());
        let mut changed = Replay::new(&mut recomputed.after.state, memory / 2);
        each_event(&mut |event| {
            recorded.apply(event.clone())?;
            // The rows of a rebuild follow from the events with the settings of then.
            match event {
                LogEvent::Rebuild { .. } | LogEvent::Archive { .. } => Ok(()),
                event => changed.apply(event),
            }
        })?;
        recorded.finish()?;
        changed.finish()?;
        Ok(recomputed)
    }

    /// Builds the boards of a week in both states.
    fn ensure_boards(&mut self, week: WeekKey) -> Result<(), StoreError> {
        self.before.state.ensure_boards(week.into())?;
        self.after.state.ensure_boards(week.into())
    }

    /// The games that were played in a week.
    fn games(&self, week: WeekKey) -> BTreeSet<String> {
        let games = |it: &Recomputed| it.state.engine.model().games_with_boards(week.into());
        [&self.before, &self.after].into_iter().flat_map(games).collect()
    }

    fn compare(&self, week: WeekKey, scope: &Scope, ranking: Ranking) -> anyhow::Result<Comparison<NamedPlayer>> {
        let placings = |it: &Recomputed| anyhow::Ok(it.placings(week, scope, ranking)?.unwrap_or_default());
        Ok(compare(&placings(&self.before)?, &placings(&self.after)?))
    }

    /// Error: neither state has the server, game or tag.
    fn require(&self, scope: &Scope, week: WeekKey) -> anyhow::Result<()> {
        let is_known = self.before.placings(week, scope, Ranking::Time)?.is_some()
            || self.after.placings(week, scope, Ranking::Time)?.is_some();
        ensure!(is_known, "the log has no {} {}", scope.kind(), scope.name());
        Ok(())
    }
}

impl Recomputed {
    fn open(config: &Config) -> anyhow::Result<Recomputed> {
        let root = temp_root();
        let dir = tempfile::Builder::new().prefix("clqd-recompute-").tempdir_in(&root);
        let dir = dir.with_context(|| format!("cannot create a directory in {}", root.display()))?;
        let state = State::open_configured(config, dir.path(), true)
            .with_context(|| format!("cannot create a temporary state in {}", dir.path().display()))?;
        Ok(Recomputed { state, _dir: dir })
    }

    fn totals(&self) -> StateTotals {
        let counts = self.state.engine.model().counts();
        StateTotals {
            snapshots: counts.snapshots,
            screened_snapshots: counts.implausible_snapshots,
            rounds: counts.rounds,
        }
    }

    /// The players of a board, best first; `None`: the server, game or tag is unknown.
    fn placings(
        &self,
        week: WeekKey,
        scope: &Scope,
        ranking: Ranking,
    ) -> anyhow::Result<Option<Vec<Placing<NamedPlayer>>>> {
        let State { engine, store } = &self.state;
        let board = BoardSelector { scope: scope.clone(), ranking, window: Some(week_label(week)), at_ms: None };
        match engine.model().board_placings(store, &board) {
            Ok(placings) => Ok(Some(placings)),
            Err(ViewError::UnknownWindow { .. }) => Ok(Some(Vec::new())),
            Err(ViewError::UnknownServer(_) | ViewError::UnknownGame { .. } | ViewError::UnknownTag { .. }) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read the boards of {}", board.scope)),
        }
    }
}
