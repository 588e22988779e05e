//! `clqd log`: checks the log in a state directory, and prints it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::api::json::escape;
use crate::cli::context::CliContext;
use crate::cli::offline::warn;
use crate::cli::output::format::{bytes, group_digits, time_utc};
use crate::cli::output::table::{Align, Table};
use crate::cli::recorded_logs::{CheckedLogs, RecordedLogs};
use crate::cli::stdio::Output;
use crate::log::{self, Cut, SegmentSummary};
use crate::scan_log;
use crate::state::log_dir;
use crate::state::log_import::{self, ImportSummary};
use crate::state::recovery::{self, Repair};

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Read the whole log, and report its segments and any damage
    ///
    /// A daemon may run meanwhile.
    Check(LogArgs),
    /// Print the log as a scan log: JSON lines
    ///
    /// `clqd replay` and `clqd recompute` read them. A daemon may run meanwhile.
    Export(LogArgs),
    /// Put the events of scan logs into a log
    ///
    /// For a state whose daemon has not begun its log yet, such as that of an earlier version, which wrote a
    /// scan log. Windows can then be rebuilt from it. The daemon must be stopped.
    Import(ImportArgs),
    /// Give up what a damaged log no longer has
    ///
    /// For a daemon that does not start because of the log. Prints the damage and what is lost. With
    /// --accept-loss the state gets all events before the damage, and the log is renamed, so that the
    /// daemon begins a new one.
    Repair(RepairArgs),
}

#[derive(Debug, Args)]
pub struct RepairArgs {
    #[command(flatten)]
    log: LogArgs,
    /// Change the state; without this, nothing is changed
    #[arg(long)]
    accept_loss: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    log: LogArgs,
    /// Scan logs, plain or .zst; all files of one scan log, in any order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Skip damaged lines and report them, instead of refusing the files
    #[arg(long)]
    salvage: bool,
}

#[derive(Debug, Args)]
pub struct LogArgs {
    /// State directory [default: as configured]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl LogArgs {
    fn dir(&self, app: &CliContext) -> anyhow::Result<PathBuf> {
        Ok(match &self.state {
            Some(state) => log_dir(state),
            None => log_dir(&app.config()?.state_dir),
        })
    }
}

pub fn run(command: &LogCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        LogCommand::Check(args) => check(args, app),
        LogCommand::Export(args) => export(args, app),
        LogCommand::Import(args) => import(args, app),
        LogCommand::Repair(args) => repair(args, app),
    }
}

fn repair(args: &RepairArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let dir = args.log.state.as_deref().unwrap_or(&config.state_dir);
    ensure!(
        !args.accept_loss || !config.cluster.is_on() || dir != config.state_dir,
        "this engine is one of a cluster, whose other engines have the log: get the state of one with clqd cluster join"
    );
    let repair = match args.accept_loss {
        true => recovery::repair(&config, dir, &warn),
        false => recovery::plan_repair(&config, dir, &warn),
    };
    let mut out = Output::lasting();
    let Some(Repair { damage, events, now_ms, is_done, moved_to }) = repair? else {
        match app.json() {
            true => writeln!(out, "{}", json!({"kind": "log_repair", "damage": null}))?,
            false => writeln!(out, "The log has no damage. Nothing was changed.")?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    let damage = format!("{:#}", anyhow::Error::new(damage));
    if app.json() {
        let row = json!({
            "kind": "log_repair",
            "damage": damage,
            "kept_events": events,
            "state_ms": now_ms,
            "moved_to": moved_to,
        });
        writeln!(out, "{row}")?;
    } else {
        let verb = if is_done { "has" } else { "would have" };
        writeln!(out, "The log is damaged: {damage}.")?;
        writeln!(
            out,
            "The state {verb} {} events of the log after its last checkpoint, until {}.\n\
             Later events are lost. Windows are rebuilt only from later scans.",
            group_digits(events),
            time_utc(now_ms)
        )?;
        match &moved_to {
            None if is_done => writeln!(out, "The daemon begins a new log.")?,
            Some(moved_to) => writeln!(
                out,
                "The damaged log is now {}. Delete it when you no longer need it:\n\
                 names of players who are forgotten later stay in it.",
                moved_to.display()
            )?,
            None => writeln!(out, "Nothing was changed. To accept that, add --accept-loss.")?,
        }
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(args: &LogArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let dir = args.dir(app)?;
    let (segments, cut) = log::check(&dir).map_err(|error| match error.is_damage() {
        true => anyhow::Error::new(error).context("the log has damage: see docs/troubleshooting.md"),
        false => anyhow::Error::new(error),
    })?;
    let mut out = Output::ending();
    match app.json() {
        true => print_json(&mut out, &segments, cut.as_ref())?,
        false => print_table(&mut out, &segments, cut.as_ref())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_json(out: &mut Output, segments: &[SegmentSummary], cut: Option<&Cut>) -> anyhow::Result<()> {
    for segment in segments {
        let row = json!({
            "kind": "log_segment",
            "path": segment.path,
            "bytes": segment.bytes,
            "created_ms": segment.created_ms,
            "last_ms": segment.last_ms,
            "first_batch": segment.first_seq,
            "batches": segment.batches,
            "events": segment.events,
        });
        writeln!(out, "{row}")?;
    }
    let total = |of: fn(&SegmentSummary) -> u64| segments.iter().map(of).sum::<u64>();
    let (bytes, events) = (total(|it| it.bytes), total(|it| it.events));
    let incomplete_bytes = cut.map_or(0, |cut| cut.bytes);
    let row = json!({
        "kind": "log",
        "segments": segments.len(),
        "bytes": bytes,
        "events": events,
        "incomplete_bytes": incomplete_bytes,
    });
    writeln!(out, "{row}")?;
    Ok(())
}

fn print_table(out: &mut Output, segments: &[SegmentSummary], cut: Option<&Cut>) -> anyhow::Result<()> {
    let mut table = Table::new(&[
        ("segment", Align::Left),
        ("begun (UTC)", Align::Left),
        ("last event (UTC)", Align::Left),
        ("events", Align::Right),
        ("size", Align::Right),
    ]);
    for segment in segments {
        let cells = vec![
            segment.first_seq.to_string(),
            time_utc(segment.created_ms),
            segment.last_ms.map_or_else(|| "-".to_owned(), time_utc),
            group_digits(segment.events),
            bytes(segment.bytes),
        ];
        table.row(out, cells)?;
    }
    table.flush(out)?;
    let total = |of: fn(&SegmentSummary) -> u64| segments.iter().map(of).sum::<u64>();
    let (events, size) = (group_digits(total(|it| it.events)), bytes(total(|it| it.bytes)));
    writeln!(out, "The log has no damage: {events} events, {size}.")?;
    if let Some(cut) = cut {
        writeln!(
            out,
            "It ends with an incomplete batch ({} bytes): a daemon is writing it, or was stopped while\nwriting it. Unless the disk is damaged, nothing in it was acknowledged.",
            cut.bytes
        )?;
    }
    Ok(())
}

fn export(args: &LogArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut out = Output::ending();
    let mut line = Vec::new();
    RecordedLogs::of_log(args.dir(app)?).each_event(&mut |event| {
        line.clear();
        scan_log::write_event(&mut line, &event);
        // Names come from strangers.
        Ok(out.write_all(escape(&String::from_utf8_lossy(&line)).as_bytes())?)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn import(args: &ImportArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let dir = args.log.state.as_deref().unwrap_or(&config.state_dir);
    let logs = RecordedLogs::Files(CheckedLogs::check(&args.files, args.salvage)?);
    let ImportSummary { events, applied } = log_import::import(&config, dir, &|each| logs.each_event(each))?;
    let mut out = Output::lasting();
    match app.json() {
        true => writeln!(out, "{}", json!({"kind": "log_import", "events": events, "applied": applied}))?,
        false => writeln!(
            out,
            "{} events are in the log now; {} of them were new to the state and have been applied.",
            group_digits(events),
            group_digits(applied)
        )?,
    }
    Ok(ExitCode::SUCCESS)
}
