//! Text output of `clqd status`.

use std::io::{self, Write};

use super::RESCAN_FAILED;
use super::clock::describe_clock;
use crate::api::Status;
use crate::cli::output::format::{duration, group_digits, relative_time, sanitize};
use crate::model::commit::WeekPhase;
use crate::model::view::EngineStatus;

/// When servers of classes 6 and 7 are scanned again.
pub fn describe_retry(engine: &EngineStatus, now_ms: i64) -> String {
    let Some(interval_s) = engine.retry_failed_s else { return "scanned on request only".to_owned() };
    let next = engine.next_retry_ms.map(|t_ms| format!(", the next {}", relative_time(Some(t_ms), now_ms)));
    format!("retried once in {}{}", duration(interval_s * 1_000), next.unwrap_or_default())
}

/// Prints the status, one fact a line: a name of up to 9 characters, then the text. A line
/// without a name continues the previous one.
pub(super) fn print(out: &mut impl Write, status: &Status) -> io::Result<()> {
    let engine = &status.engine;
    let now_ms = engine.now_ms;
    let mut line = |name: &str, text: String| writeln!(out, "{name:<9} {text}");
    match &status.daemon {
        Some(daemon) => {
            let uptime = duration(now_ms.saturating_sub(daemon.started_ms).max(0).unsigned_abs());
            line("daemon", format!("clqd {}, up {uptime}, pid {}", sanitize(&daemon.version), daemon.pid))?;
            let config = daemon.config_file.as_deref().unwrap_or("built-in defaults");
            line("files", sanitize(&format!("state {}, config {config}", daemon.state_dir)))?;
            daemon.web.iter().try_for_each(|address| line("web", sanitize(address)))?;
            daemon.contact.iter().try_for_each(|contact| line("contact", sanitize(contact)))?;
        }
        None => line("daemon", "not running".to_owned())?,
    }
    let weeks: Vec<String> = engine
        .weeks
        .iter()
        .rev()
        .map(|week| {
            let phase = match week.phase {
                WeekPhase::Running => "running",
                WeekPhase::Closing => "being closed",
                WeekPhase::Ranking => "servers being ranked",
                WeekPhase::Closed => "final",
                WeekPhase::Reopening => "being reopened",
            };
            format!("{} {phase}", sanitize(&week.week))
        })
        .collect();
    line("weeks", if weeks.is_empty() { format!("{} running", sanitize(&engine.week)) } else { weeks.join(", ") })?;
    if let Some(clock) = &status.clock {
        line("clock", describe_clock(clock))?;
    }
    line(
        "servers",
        format!(
            "{} known, {} greylisted, {} being scanned",
            group_digits(engine.servers),
            group_digits(engine.greylisted),
            group_digits(engine.in_flight)
        ),
    )?;
    let by_class = |counts: &[u64; 7]| {
        let parts: Vec<String> =
            counts.iter().enumerate().map(|(i, &count)| format!("{}: {}", i + 1, group_digits(count))).collect();
        parts.join("  ")
    };
    line("by class", by_class(&engine.servers_by_class))?;
    if engine.servers_failed > 0 {
        let failed = group_digits(engine.servers_failed);
        let noun = if engine.servers_failed == 1 { "server does" } else { "servers do" };
        let retry = describe_retry(engine, now_ms);
        line("failed", format!("{failed} {noun} not answer, {retry}; scan all of them now: {RESCAN_FAILED}"))?;
    }
    line(
        "players",
        format!("{} known, {} online", group_digits(engine.players_known), group_digits(engine.players_online)),
    )?;
    let counts = &engine.counts;
    line(
        "scans",
        format!(
            "{} snapshots, {} partial, {} missed, {} late, {} out of order",
            group_digits(counts.snapshots),
            group_digits(counts.partial_snapshots),
            group_digits(counts.misses),
            group_digits(counts.late_scans),
            group_digits(counts.out_of_order)
        ),
    )?;
    line("by class", by_class(&counts.snapshots_by_class))?;
    if let (Some(p50), Some(p99)) = (engine.lag_ms_p50, engine.lag_ms_p99) {
        line("lag", format!("half of the scans began within {p50} ms of their due time, 99 % within {p99} ms"))?;
    }
    let extra = match counts.round_end_scans {
        0 => String::new(),
        n => format!(
            "; {} extra scans at their ends, {} of them the last list",
            group_digits(n),
            group_digits(counts.round_end_lists)
        ),
    };
    line("rounds", format!("{}{extra}", group_digits(counts.rounds)))?;
    if !engine.rebuilding.is_empty() {
        line("windows", format!("{} being rebuilt from the log", sanitize(&engine.rebuilding.join(", "))))?;
    }
    if let Some(store) = &status.store {
        if let Some(paused_since_ms) = store.paused_since_ms {
            let (free, min) = (group_digits(store.disk_free_bytes), group_digits(store.disk_free_bytes_min));
            let stopped = relative_time(Some(paused_since_ms), now_ms);
            line("disk", format!("NEARLY FULL: {free} bytes free, store.disk_free_bytes_min is {min}"))?;
            let waiting = group_digits(store.pending_records);
            line("", format!("writing stopped {stopped}; {waiting} changes wait in memory; free some space"))?;
        }
        if store.scans_discarded > 0 {
            let scans = group_digits(store.scans_discarded);
            line("", format!("{scans} scans were discarded while the disk was nearly full"))?;
        }
    }
    if let Some(log) = status.log.as_ref().filter(|log| log.names_pending > 0 || log.fault.is_some()) {
        let noun = if log.names_pending == 1 { "name" } else { "names" };
        let names = format!("{} forgotten {noun} being removed", group_digits(log.names_pending));
        match &log.fault {
            Some(fault) => {
                let age = duration(now_ms.saturating_sub(fault.since_ms).max(0).unsigned_abs());
                line("log", format!("{names}, FAULT for {age}"))?;
                line("", sanitize(&fault.message))?;
            }
            None => line("log", format!("{names}, {} files left", group_digits(log.files_pending)))?,
        }
    }
    let waiting = format!("{} waiting", group_digits(status.outbox_entries));
    match &status.archive {
        None => line("archive", format!("none; {waiting}"))?,
        Some(archive) => {
            let state = match &archive.fault {
                Some(fault) => {
                    let age = duration(now_ms.saturating_sub(fault.since_ms).max(0).unsigned_abs());
                    format!("FAULT for {age}")
                }
                None if archive.connected => match &archive.host {
                    Some(host) => format!("connected to {}", sanitize(host)),
                    None => "connected".to_owned(),
                },
                None if status.daemon.is_none() => "not connected".to_owned(),
                None => "connecting".to_owned(),
            };
            let last_complete = relative_time(archive.last_complete_ms, now_ms);
            line(
                "archive",
                format!("{}, {state}, last complete {last_complete}, {waiting}", sanitize(&archive.target)),
            )?;
            if let Some(fault) = &archive.fault {
                line("", format!("{}: {}", relative_time(archive.last_error_ms, now_ms), sanitize(&fault.message)))?;
            }
            if let Some(resync) = &archive.resync {
                line("", format!("everything is being written again, now at: {}", sanitize(&resync.to_string())))?;
            }
        }
    }
    let width = status.counters.keys().map(String::len).max().unwrap_or(0);
    for (i, (name, &n)) in status.counters.iter().enumerate() {
        let heading = if i == 0 { "counters" } else { "" };
        writeln!(out, "{heading:<9} {name:<width$}  {}", group_digits(n))?;
    }
    Ok(())
}
