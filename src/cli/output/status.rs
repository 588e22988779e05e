//! Text output of `clqd status`.

use std::fmt::Display;
use std::io::{self, Write};

use super::RESCAN_FAILED;
use super::clock::describe_clock;
use super::named_line::print_named;
use crate::api::{ArchiveStatus, ClusterStatus, DaemonStatus, Fault, LogStatus, Status, StoreStatus};
use crate::archive::FaultKind;
use crate::cli::output::format::{duration, group_digits, relative_time, sanitize};
use crate::limits::disk_resume_bytes;
use crate::model::commit::WeekPhase;
use crate::view::{ClockStatus, ClockTrust, EngineStatus, WeekStatus};

/// When servers of classes 6 and 7 are scanned again.
pub fn describe_retry(engine: &EngineStatus, now_ms: i64) -> String {
    let Some(interval_s) = engine.retry_failed_s else { return "scanned on request only".to_owned() };
    let next = engine.next_retry_ms.map(|t_ms| format!(", the next {}", relative_time(Some(t_ms), now_ms)));
    let interval = match interval_s {
        86_400 => "once a day".to_owned(),
        3_600 => "once an hour".to_owned(),
        interval_s => format!("every {}", duration(interval_s * 1_000)),
    };
    format!("retried {interval}{}", next.unwrap_or_default())
}

/// Prints lines as [`print_named`] does.
struct Lines<'o, W> {
    out: &'o mut W,
    now_ms: i64,
}

impl<W: Write> Lines<'_, W> {
    fn line(&mut self, name: &str, text: impl Display) -> io::Result<()> {
        print_named(self.out, 0, name, &text.to_string())
    }

    fn since(&self, t_ms: i64) -> String {
        duration(self.now_ms.saturating_sub(t_ms).max(0).unsigned_abs())
    }
}

/// Prints the status, one fact a line.
pub(super) fn print(out: &mut impl Write, status: &Status) -> io::Result<()> {
    let engine = &status.engine;
    let mut lines = Lines { out, now_ms: engine.now_ms };
    if status.daemon.is_some() {
        lines.line("health", describe_health(status))?;
    }
    print_daemon(&mut lines, status)?;
    print_engine(&mut lines, status)?;
    if !engine.rebuilding.is_empty() {
        lines
            .line("windows", format_args!("{} being rebuilt from the log", sanitize(&engine.rebuilding.join(", "))))?;
    }
    status.store.iter().try_for_each(|store| print_disk(&mut lines, store))?;
    status.log.iter().try_for_each(|log| print_log(&mut lines, log))?;
    print_archive(&mut lines, status)?;
    status.cluster.iter().try_for_each(|cluster| print_cluster(&mut lines, cluster))?;
    if !status.scanners.is_empty() {
        lines.line("scanners", format_args!("{} on other machines: clqd scanners", status.scanners.len()))?;
    }
    let width = status.counters.keys().map(String::len).max().unwrap_or(0);
    for (i, (name, &n)) in status.counters.iter().enumerate() {
        let heading = if i == 0 { "counters" } else { "" };
        lines.line(heading, format_args!("{name:<width$}  {}", group_digits(n)))?;
    }
    Ok(())
}

/// The limit of `engine.lag_ms_p99` in docs/operations.md (Monitoring).
const LATE_MS: u64 = 2_000;

/// The limit of `clock.ahead_ms` there.
const AHEAD_MS: i64 = 1_000;

/// What of the daemon does not work; its line has the details.
fn describe_health(status: &Status) -> String {
    let has_clock_fault = |clock: &ClockStatus| {
        clock.trust == ClockTrust::Untrusted || clock.ahead_ms > AHEAD_MS || clock.week_pending_close.is_some()
    };
    let has_silence = |daemon: &DaemonStatus| daemon.public.silent_since_ms.is_some();
    let has_cluster_fault = |cluster: &ClusterStatus| {
        let has_leader = cluster.leads || cluster.leader.is_some();
        !has_leader || cluster.fault_message.is_some() || cluster.other_settings.is_some()
    };
    let problems: Vec<&str> = [
        ("clock", status.clock.as_ref().is_some_and(has_clock_fault)),
        ("late scans", status.engine.lag_ms_p99.is_some_and(|lag_ms| lag_ms > LATE_MS)),
        ("network", status.daemon.as_ref().is_some_and(has_silence)),
        ("disk", status.store.as_ref().is_some_and(|store| store.public.paused_since_ms.is_some())),
        ("log", status.log.as_ref().is_some_and(|log| log.public.fault.is_some())),
        ("archive", status.archive.as_ref().is_some_and(|archive| lasting_fault(archive).is_some())),
        ("cluster", status.cluster.as_ref().is_some_and(has_cluster_fault)),
    ]
    .into_iter()
    .filter_map(|(name, is_broken)| is_broken.then_some(name))
    .collect();
    match &problems[..] {
        [] => "everything works".to_owned(),
        [problem] => format!("1 PROBLEM: {problem}"),
        problems => format!("{} PROBLEMS: {}", problems.len(), problems.join(", ")),
    }
}

/// `2026-W49 running; 3 final: 2026-W46 to 2026-W48`: all of them, unless one of these weeks is being reopened.
fn describe_weeks(engine: &EngineStatus) -> String {
    let (closed, open): (Vec<&WeekStatus>, Vec<_>) =
        engine.weeks.iter().partition(|week| week.phase == WeekPhase::Closed);
    let open = open.into_iter().rev().map(|week| {
        let phase = match week.phase {
            WeekPhase::Running => "running",
            WeekPhase::Closing => "being closed",
            WeekPhase::Ranking => "servers being ranked",
            WeekPhase::Closed => "final",
            WeekPhase::Reopening => "being reopened",
        };
        format!("{} {phase}", sanitize(&week.week))
    });
    let open = open.collect::<Vec<_>>().join(", ");
    let open = if open.is_empty() { format!("{} running", sanitize(&engine.week)) } else { open };
    let closed: Vec<String> = closed.iter().map(|week| sanitize(&week.week)).collect();
    match &closed[..] {
        [] => open,
        [only] => format!("{open}; final: {only}"),
        [first, .., last] => format!("{open}; {} final: {first} to {last}", closed.len()),
    }
}

fn print_daemon(lines: &mut Lines<'_, impl Write>, status: &Status) -> io::Result<()> {
    match &status.daemon {
        Some(daemon) => {
            let uptime = lines.since(daemon.public.started_ms);
            lines.line(
                "daemon",
                format_args!("clqd {}, up {uptime}, pid {}", sanitize(&daemon.public.version), daemon.pid),
            )?;
            let config = daemon.config_file.as_deref().unwrap_or("built-in defaults");
            lines.line("files", sanitize(&format!("state {}, config {config}", daemon.state_dir)))?;
            daemon.web.iter().try_for_each(|address| lines.line("web", sanitize(address)))?;
            if let Some(since_ms) = daemon.public.silent_since_ms {
                let silence = lines.since(since_ms);
                lines.line("network", format_args!("DOWN? no server answers for {silence}; misses do not count"))?;
            }
            daemon.public.contact.iter().try_for_each(|contact| lines.line("contact", sanitize(contact)))?;
        }
        None => lines.line("daemon", "not running")?,
    }
    lines.line("weeks", describe_weeks(&status.engine))?;
    status.clock.iter().try_for_each(|clock| lines.line("clock", describe_clock(clock)))
}

/// Players, servers and scans. A state without a daemon has no scans.
fn print_engine(lines: &mut Lines<'_, impl Write>, status: &Status) -> io::Result<()> {
    let engine = &status.engine;
    let n = group_digits;
    lines.line("players", format_args!("{} online, {} known", n(engine.players_online), n(engine.players_known)))?;
    let [busy, quiet, slow @ .., sixth, seventh] = engine.servers_by_class;
    lines.line(
        "servers",
        format_args!(
            "{}: {} with several players, {} quiet, {} silent for some time, {} that do not answer; {} greylisted",
            n(engine.servers),
            n(busy),
            n(quiet),
            n(slow.iter().sum()),
            n(sixth + seventh),
            n(engine.greylisted)
        ),
    )?;
    let has_details = !status.counters.is_empty();
    if has_details {
        lines.line("by class", by_class(&engine.servers_by_class))?;
    }
    if engine.servers_failed > 0 {
        let failed = n(engine.servers_failed);
        let noun = if engine.servers_failed == 1 { "server does" } else { "servers do" };
        if status.daemon.is_none() {
            lines.line("failed", format_args!("{failed} {noun} not answer"))?;
        } else {
            let retry = describe_retry(engine, lines.now_ms);
            let text = format_args!("{failed} {noun} not answer, {retry}; scan all of them now: {RESCAN_FAILED}");
            lines.line("failed", text)?;
        }
    }
    if status.daemon.is_none() {
        return Ok(());
    }
    let counts = &engine.counts;
    let on_time = engine.lag_ms_p99.map(|p99| format!("; 99 % began within {p99} ms of their due time"));
    lines.line(
        "scans",
        format_args!(
            "{} answered, {} in part, {} not answered, since the start{}",
            n(counts.snapshots),
            n(counts.partial_snapshots),
            n(counts.misses),
            on_time.unwrap_or_default()
        ),
    )?;
    if has_details {
        lines.line("by class", by_class(&counts.snapshots_by_class))?;
        let (late, disordered, now) = (n(counts.late_scans), n(counts.out_of_order), n(engine.in_flight));
        let half = engine.lag_ms_p50.map(|p50| format!("; half began within {p50} ms of their due time"));
        let half = half.unwrap_or_default();
        lines.line("", format_args!("{now} in progress, {late} late, {disordered} out of order{half}"))?;
    }
    let share = |part: u64| format!("{:.0} %", 100.0 * part as f64 / counts.rounds as f64);
    let sure = match counts.rounds {
        0 => String::new(),
        _ => format!("; {} with a sure winner", share(counts.rounds_sure)),
    };
    lines.line("rounds", format_args!("{} ended{sure}", n(counts.rounds)))?;
    if has_details && let Some(mean_ms) = counts.rounds_unseen_ms_max.checked_div(counts.rounds) {
        let mean = duration(mean_ms);
        lines.line("", format_args!("their last list was at most {mean} before their end on average"))?;
    }
    match counts.elastic_scans {
        scans if has_details && scans > 0 => {
            lines.line("elastic", format_args!("{} scans within the budget of their server", n(scans)))
        }
        _ => Ok(()),
    }
}

fn by_class(counts: &[u64; 7]) -> String {
    let part = |(i, &count): (usize, &u64)| format!("{}: {}", i + 1, group_digits(count));
    counts.iter().enumerate().map(part).collect::<Vec<String>>().join("  ")
}

fn print_disk(lines: &mut Lines<'_, impl Write>, store: &StoreStatus) -> io::Result<()> {
    if let Some(paused_since_ms) = store.public.paused_since_ms {
        let resume = group_digits(disk_resume_bytes(store.disk_free_bytes_min));
        let free = group_digits(store.disk_free_bytes);
        let stopped = relative_time(Some(paused_since_ms), lines.now_ms);
        lines.line("disk", format_args!("NEARLY FULL: {free} bytes free; writing resumes at {resume}"))?;
        lines.line("", "(store.disk_free_bytes_min and a sixteenth)")?;
        let waiting = group_digits(store.public.pending_records);
        let text = format_args!("writing stopped {stopped}; {waiting} changes wait in memory; free some space");
        lines.line("", text)?;
    }
    if store.public.scans_discarded > 0 {
        let scans = group_digits(store.public.scans_discarded);
        lines.line("", format_args!("{scans} scans were discarded while the disk was nearly full"))?;
    }
    Ok(())
}

fn print_log(lines: &mut Lines<'_, impl Write>, log: &LogStatus) -> io::Result<()> {
    if log.names_pending == 0 && log.public.fault.is_none() {
        return Ok(());
    }
    let noun = if log.names_pending == 1 { "name" } else { "names" };
    let names = format!("{} forgotten {noun} being removed", group_digits(log.names_pending));
    match &log.public.fault {
        Some(fault) => {
            let age = lines.since(fault.since_ms);
            lines.line("log", format_args!("{names}, FAULT for {age}"))?;
            lines.line("", sanitize(log.fault_message.as_deref().unwrap_or_default()))
        }
        None => lines.line("log", format_args!("{names}, {} files left", group_digits(log.files_pending))),
    }
}

fn print_cluster(lines: &mut Lines<'_, impl Write>, cluster: &ClusterStatus) -> io::Result<()> {
    let engine = sanitize(&cluster.engine);
    let others = format!("{} engines: clqd cluster status", cluster.engines.len());
    match (&cluster.leader, cluster.behind_ms) {
        _ if cluster.leads => lines.line("cluster", format_args!("engine {engine} leads; {others}"))?,
        (Some(leader), Some(behind_ms)) => {
            let (leader, behind) = (sanitize(leader), duration(behind_ms));
            lines.line("cluster", format_args!("engine {engine} follows {leader}, {behind} behind; {others}"))?;
        }
        _ => lines.line("cluster", format_args!("engine {engine} knows no leader; {others}"))?,
    }
    let faults = cluster.fault_message.iter().chain(&cluster.other_settings);
    faults.into_iter().try_for_each(|message| lines.line("", sanitize(message)))
}

/// A fault that lasts. It is one until everything pending is written, but the archive may be in use again long before.
fn lasting_fault(archive: &ArchiveStatus) -> Option<&Fault> {
    use FaultKind::{AccessDenied, Charset, Schema, Settings, Tls, Unreachable};
    let ends_with_connection = |fault: &Fault| {
        [AccessDenied, Charset, Schema, Settings, Tls, Unreachable].iter().any(|kind| kind.name() == fault.kind)
    };
    archive.public.fault.as_ref().filter(|fault| !(archive.public.connected && ends_with_connection(fault)))
}

fn print_archive(lines: &mut Lines<'_, impl Write>, status: &Status) -> io::Result<()> {
    let Some(archive) = &status.archive else {
        return match &status.cluster {
            Some(_) => lines.line("archive", "the leader of the cluster writes it"),
            None => lines.line("archive", "none (archive.url is not set)"),
        };
    };
    let waiting = format!("{} waiting", group_digits(status.outbox_entries));
    let state = match lasting_fault(archive) {
        Some(fault) => format!("FAULT for {}", lines.since(fault.since_ms)),
        None if archive.public.connected => match &archive.host {
            Some(host) => format!("connected to {}", sanitize(host)),
            None => "connected".to_owned(),
        },
        None if status.daemon.is_none() => "not connected".to_owned(),
        None => "connecting".to_owned(),
    };
    let last_complete = relative_time(archive.public.last_complete_ms, lines.now_ms);
    // The outbox may be empty before the first resync.
    let waiting = if archive.public.last_complete_ms.is_some() { &waiting } else { "everything waiting" };
    let target = sanitize(&archive.target);
    lines.line("archive", format_args!("{target}, {state}, last complete {last_complete}, {waiting}"))?;
    if let Some(message) = &archive.fault_message {
        let last = relative_time(archive.last_error_ms, lines.now_ms);
        lines.line("", format_args!("{last}: {}", sanitize(message)))?;
    }
    if let Some(resync) = &archive.public.resync {
        let at = sanitize(&resync.to_string());
        lines.line("", format_args!("everything is being written again, now at: {at}"))?;
    }
    Ok(())
}
