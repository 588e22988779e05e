//! `clqd log`: checks the log in a state directory, and prints it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::context::CliContext;
use crate::cli::output::format::{bytes, group_digits, time_utc};
use crate::cli::output::table::{Align, Table};
use crate::cli::stdio::{Output, note};
use crate::log::{self, Cut, LogEvent, LogReader, SegmentSummary};
use crate::scan_log;
use crate::state::recovery;

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Read the whole log, and report its segments and any damage
    ///
    /// A daemon may run meanwhile.
    Check(LogArgs),
    /// Print the log as JSON lines, in the format of a scan log
    ///
    /// `clqd replay` and `clqd recompute` read them. A daemon may run meanwhile.
    Export(LogArgs),
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
            Some(state) => recovery::log_dir(state),
            None => recovery::log_dir(&app.config()?.state_dir),
        })
    }
}

pub fn run(command: &LogCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        LogCommand::Check(args) => check(args, app),
        LogCommand::Export(args) => export(args, app),
    }
}

fn check(args: &LogArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let dir = args.dir(app)?;
    let (segments, cut) = log::check(&dir).context("the log has damage: see docs/troubleshooting.md")?;
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
            "It ends with an incomplete batch ({} bytes): a daemon is writing it, or was stopped while\nwriting it. Nothing in it was acknowledged.",
            cut.bytes
        )?;
    }
    Ok(())
}

fn export(args: &LogArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut reader = LogReader::open(&args.dir(app)?)?;
    let mut out = Output::ending();
    let mut lines = Vec::new();
    let put = |event: LogEvent, lines: &mut Vec<u8>| {
        // A reader of the lines closes weeks by the times of the scans.
        if !matches!(event, LogEvent::Tick { .. }) {
            scan_log::write_event(lines, &event);
        }
    };
    while reader.read_batch(|event| put(event, &mut lines))?.is_some() {
        out.write_all(&lines)?;
        lines.clear();
    }
    if let Some(cut) = reader.cut() {
        note(format_args!("the log ends with an incomplete batch ({} bytes)", cut.bytes));
    }
    Ok(ExitCode::SUCCESS)
}
