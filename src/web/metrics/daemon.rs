//! The metrics of a status row. Names follow the fields of `clqd status --json`; durations are
//! in seconds.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Labels;
use crate::api::{
    ClusterStatus, DaemonStatus, EngineRole, EngineRow, PublicArchiveStatus, ScannerRow, Status, StoreStatus,
};
use crate::view::{ClockTrust, EngineStatus};

/// Whether the engine answered in time.
pub(super) fn register_responding(registry: &mut Registry, is_responding: bool) {
    gauge(registry, "engine_responding", "1 if the engine answered in time, else 0", is_responding.into());
}

pub(super) fn register(registry: &mut Registry, status: &Status) {
    if let Some(daemon) = &status.daemon {
        register_daemon(registry, daemon);
    }
    register_engine(registry, &status.engine);
    gauge(registry, "outbox_entries", "Outbox entries that wait for the archive", status.outbox_entries as f64);
    if let Some(archive) = &status.archive {
        register_archive(registry, &archive.public, status.engine.now_ms);
    }
    if let Some(store) = &status.store {
        register_store(registry, store, status.engine.now_ms);
    }
    if let Some(log) = &status.log {
        let help = "1 while forgotten names cannot be removed from the log";
        fault(registry, "log_fault", help, log.public.fault.as_ref().map(|fault| fault.kind.as_str()));
    }
    if let Some(cluster) = &status.cluster {
        register_cluster(registry, cluster);
    }
    register_scanners(registry, &status.scanners);
    if let Some(clock) = &status.clock {
        let is_trusted = clock.trust != ClockTrust::Untrusted;
        gauge(registry, "clock_trusted", "1 if the system clock is trusted to close weeks", is_trusted.into());
        let help = "Recorded time minus system time, s; 0 if it is not ahead";
        gauge(registry, "clock_ahead_seconds", help, seconds(clock.ahead_ms));
    }
    register_counters(registry, &status.counters);
}

fn register_daemon(registry: &mut Registry, daemon: &DaemonStatus) {
    let labels = vec![("version", daemon.public.version.clone())];
    gauges(registry, "build_info", "The version of the daemon", [(labels, 1.0)]);
    let help = "Start of the daemon, Unix time in s";
    gauge(registry, "start_time_seconds", help, seconds(daemon.public.started_ms));
    let help = "1 while no server answers, though several did: the network seems to be down";
    gauge(registry, "network_silent", help, daemon.public.silent_since_ms.is_some().into());
    let help = "Commands that wait for the engine thread";
    gauge(registry, "commands_queued", help, daemon.commands_queued as f64);
}

fn register_engine(registry: &mut Registry, engine: &EngineStatus) {
    let counts = &engine.counts;
    let by_class = [
        ("snapshot", counts.snapshots_by_class),
        ("partial", counts.partial_snapshots_by_class),
        ("miss", counts.misses_by_class),
    ];
    let scans = by_class.into_iter().flat_map(|(result, counts)| {
        let labels = move |class: usize| vec![("class", (class + 1).to_string()), ("result", result.to_owned())];
        counts.into_iter().enumerate().map(move |(class, count)| (labels(class), count))
    });
    let help = "Scans by the class of the server before the scan and by result";
    counters(registry, "scans", help, scans);
    for (name, help, count) in [
        ("implausible_snapshots", "Full snapshots that screening treated as partial", counts.implausible_snapshots),
        ("rounds", "Rounds that ended", counts.rounds),
        ("rounds_sure", "Rounds whose last list shows their end", counts.rounds_sure),
        (
            "rounds_unseen_seconds",
            "Sum over all rounds of the time from the last list to the end at most",
            counts.rounds_unseen_ms_max / 1_000,
        ),
        ("scans_out_of_order", "Outcomes older than the last one of the server", counts.out_of_order),
        ("scans_late", "Scheduled scans that began more than 2 s late", counts.late_scans),
        ("scans_elastic", "Scans whose time was chosen within the budget", counts.elastic_scans),
    ] {
        counter(registry, name, help, count);
    }
    let lag = [("0.5", engine.lag_ms_p50), ("0.99", engine.lag_ms_p99)];
    let lag = lag
        .into_iter()
        .filter_map(|(quantile, ms)| Some((vec![("quantile", quantile.to_owned())], ms? as f64 / 1_000.0)));
    let help = "First packet of a scheduled scan minus its due time, since the start, at most 10 s";
    gauges(registry, "scan_lag_seconds", help, lag);
    let classes = engine.servers_by_class.iter().enumerate();
    let classes = classes.map(|(class, &servers)| (vec![("class", (class + 1).to_string())], servers as f64));
    gauges(registry, "servers", "Known servers by class", classes);
    for (name, help, value) in [
        ("servers_greylisted", "Greylisted servers", engine.greylisted),
        ("scans_in_flight", "Scans in flight", engine.in_flight),
        ("outcomes_queued", "Batches of scan results that wait for the engine", engine.outcomes_queued),
        ("players_online", "Players on servers now", engine.players_online),
        ("players_known", "Known players", engine.players_known),
        (
            "boards_memory_bytes",
            "Memory of the boards of games and tags, and of the rows kept for them",
            engine.boards_memory_bytes,
        ),
    ] {
        gauge(registry, name, help, value as f64);
    }
}

fn register_archive(registry: &mut Registry, archive: &PublicArchiveStatus, now_ms: i64) {
    gauge(registry, "archive_connected", "1 if the archive is connected", archive.connected.into());
    let kind = archive.fault.as_ref().map(|fault| fault.kind.as_str());
    fault(registry, "archive_fault", "1 while the archive has a fault", kind);
    if let Some(last_ms) = archive.last_complete_ms {
        let help = "Time since the last pass that wrote everything pending, s";
        gauge(registry, "archive_last_complete_age_seconds", help, seconds((now_ms - last_ms).max(0)));
    }
    let help = "1 while everything is written to the archive again";
    gauge(registry, "archive_resyncing", help, archive.resync.is_some().into());
}

fn register_store(registry: &mut Registry, store: &StoreStatus, now_ms: i64) {
    let StoreStatus { public: store, disk_free_bytes, disk_free_bytes_min } = store;
    counter(registry, "commits", "Commits to the state directory", store.commits);
    if let Some(last_ms) = store.last_commit_ms {
        let help = "Time since the last commit, s";
        gauge(registry, "last_commit_age_seconds", help, seconds((now_ms - last_ms).max(0)));
    }
    let help = "Scans whose results were discarded because too much was pending";
    counter(registry, "scans_discarded", help, store.scans_discarded);
    for (name, help, value) in [
        ("database_bytes", "Size of the database file", store.database_bytes as f64),
        ("disk_free_bytes", "Free space of the state directory", *disk_free_bytes as f64),
        ("disk_free_bytes_min", "Nothing is written while less is free; 0: no limit", { *disk_free_bytes_min as f64 }),
        ("pending_records", "Changed rows and players that are not committed yet", store.pending_records as f64),
        ("store_paused", "1 while nothing is written because the disk is nearly full", {
            f64::from(store.paused_since_ms.is_some())
        }),
    ] {
        gauge(registry, name, help, value);
    }
}

fn register_cluster(registry: &mut Registry, cluster: &ClusterStatus) {
    let is_gone = |engine: &EngineRow| engine.role == EngineRole::Gone;
    let gone = cluster.engines.iter().filter(|engine| is_gone(engine)).count();
    let help = "Known engines of the cluster by state: heard within 5 s, or gone";
    let engines = [("heard", cluster.engines.len() - gone), ("gone", gone)];
    let engines = engines.map(|(state, count)| (vec![("state", state.to_owned())], count as f64));
    gauges(registry, "cluster_engines", help, engines);
    if let Some(behind_ms) = cluster.behind_ms {
        let help = "The state of this engine is that of so long ago, s; absent: it leads";
        gauge(registry, "cluster_behind_seconds", help, behind_ms as f64 / 1_000.0);
    }
    for (name, help, value) in [
        ("cluster_leads", "1 if this engine leads the cluster", f64::from(cluster.leads)),
        ("cluster_epoch", "How often an engine of the cluster has begun to lead", cluster.epoch as f64),
        ("cluster_fault", "1 while the database of the log does not answer", {
            f64::from(cluster.fault_message.is_some())
        }),
        ("cluster_settings_differ", "1 if the configuration file has other values than the log of the cluster", {
            f64::from(cluster.other_settings.is_some())
        }),
    ] {
        gauge(registry, name, help, value);
    }
}

fn register_scanners(registry: &mut Registry, scanners: &[ScannerRow]) {
    let mut by_region = BTreeMap::<&str, u32>::new();
    for scanner in scanners {
        *by_region.entry(&scanner.region).or_default() += 1;
    }
    let by_region = by_region.into_iter().map(|(region, count)| (vec![("region", region.to_owned())], count.into()));
    gauges(registry, "scanners", "Scanners on other machines by region", by_region);
    let labels = |scanner: &ScannerRow| vec![("scanner", scanner.name.clone()), ("region", scanner.region.clone())];
    let heard = scanners.iter().map(|scanner| (labels(scanner), scanner.heard_ago_ms as f64 / 1_000.0));
    gauges(registry, "scanner_heard_age_seconds", "Time since a scanner was heard, s", heard);
    let scans = scanners.iter().flat_map(|scanner| {
        let of = move |result: &str| [labels(scanner), vec![("result", result.to_owned())]].concat();
        [(of("answer"), scanner.answered), (of("miss"), scanner.missed)]
    });
    counters(registry, "scanner_scans", "Scans of scanners on other machines since they joined, by result", scans);
}

/// Counters by module and name, such as `scan.packets_sent`; those by reason get a label.
fn register_counters(registry: &mut Registry, values: &BTreeMap<String, u64>) {
    for (prefix, name, help) in [
        ("scan.misses.", "scan_misses", "Scans without a usable answer, by reason"),
        ("scan.ignored.", "scan_datagrams_ignored", "Unusable datagrams of queried addresses, by reason"),
    ] {
        let of_reason = values.iter().filter_map(|(key, &count)| Some((key.strip_prefix(prefix)?, count)));
        let samples = of_reason.map(|(reason, count)| (vec![("reason", reason.to_owned())], count));
        counters(registry, name, help, samples);
    }
    for (key, &count) in values.iter().filter(|(key, _)| key.matches('.').count() == 1) {
        let help = format!("counters.\"{key}\" of `clqd status --json`");
        counter(registry, &key.replace('.', "_"), &help, count);
    }
}

/// The kind of a fault is a label; without a fault it is `none`.
fn fault(registry: &mut Registry, name: &str, help: &str, kind: Option<&str>) {
    let labels = vec![("kind", kind.unwrap_or("none").to_owned())];
    gauges(registry, name, help, [(labels, f64::from(kind.is_some()))]);
}

fn counter(registry: &mut Registry, name: &str, help: &str, count: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(count);
    registry.register(name, help, counter);
}

fn counters(registry: &mut Registry, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels, u64)>) {
    let family = Family::<Labels, Counter>::default();
    for (labels, count) in samples {
        family.get_or_create(&labels).inc_by(count);
    }
    registry.register(name, help, family);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn gauges(registry: &mut Registry, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels, f64)>) {
    let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    for (labels, value) in samples {
        family.get_or_create(&labels).set(value);
    }
    registry.register(name, help, family);
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}
