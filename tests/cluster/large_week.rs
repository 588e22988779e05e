//! A week with many rows is one transaction on a cluster, too: readers on every node see all of
//! it or nothing, also when the node that is written fails in between.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::database::Database;
use crate::database::cluster::{Cluster, Fault, NODES};
use crate::failover::settings;
use clqd::archive::{ArchiveSettings, JobSource, OutboxQuery, SourceClosed, WorkerStatus};
use clqd::model::archive::{
    BoardOrder, BoardPlace, PlayerKeyRange, PlayerWeekArchive, WeekArchive, WeekChunk, WeekChunkRequest,
};
use clqd::model::outbox::WriterBeat;
use clqd::model::row::Uncertainty;
use clqd::model::{ArchiveJob, OutboxEntry, OutboxKey, PlayerKey, ServerKey, WeekKey};
use mysql_async::prelude::Queryable;
use tokio::sync::watch;

const ROWS: u32 = 60_000;
const CHUNK_ROWS: u32 = 5_000;
const WEEK: WeekKey = WeekKey(2_916);

/// One large week; a fault happens when the chunk after `fault_at` players is requested.
#[derive(Clone)]
struct Source {
    cluster: Arc<tokio::sync::Mutex<Cluster>>,
    status: watch::Receiver<WorkerStatus>,
    /// Written instead of the scores, so that versions differ.
    version: u32,
    is_pending: Arc<Mutex<bool>>,
    /// The fault, which happens once, and the node that it has hit.
    fault: Arc<Mutex<Option<Fault>>>,
    hit: Arc<Mutex<Option<usize>>>,
}

impl Source {
    fn key() -> OutboxKey {
        OutboxKey::Week { week: WEEK, server: ServerKey(1) }
    }

    fn chunk(&self, after: u32) -> WeekChunk {
        let last = (after + CHUNK_ROWS).min(ROWS);
        let row = |player| PlayerWeekArchive {
            player: PlayerKey(player),
            measured_ms: 1,
            starts: self.version,
            time_ms: 60_001,
            time_est_ms: 61_000,
            points: 3,
            points_est: 3.125,
            elo: 887.5,
            elo_rounds: 1,
            elo_rounds_sure: 1,
            uncertainty: Uncertainty::default(),
            clq1: 7_200_000,
            clq2: 8,
            ten_best: None,
            places: [(); 5]
                .map(|()| Some(BoardPlace { reached_ms: 1_763_337_600_000, order: BoardOrder::Position(player) })),
        };
        let week = WeekArchive {
            week: WEEK,
            server: ServerKey(1),
            label: "2025-W47".into(),
            week_start_ms: 1_763_337_600_000,
            week_end_ms: 1_763_942_400_000,
            closed: false,
            game: None,
            server_rank: None,
            player_ms: 0,
            board_sizes: [ROWS; 5],
            checksum: None,
            span: PlayerKeyRange {
                after: Some(PlayerKey(after)).filter(|_| after > 0),
                through: Some(PlayerKey(last)).filter(|_| last < ROWS),
            },
            is_complete: true,
            rows: (after + 1..=last).map(row).collect(),
            maps: Vec::new(),
            steps: Vec::new(),
            best: Vec::new(),
        };
        WeekChunk::Chunk { copy_id: 1, week: Box::new(week) }
    }
}

impl JobSource for Source {
    async fn archive_id(&self) -> Result<Option<u64>, SourceClosed> {
        // As of the default plan of a writer: a connection after a failure continues at once.
        Ok(Some(0))
    }

    async fn pending_jobs(&self, query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        let is_pending = *self.is_pending.lock().unwrap() && query.contains(Source::key());
        let job =
            (OutboxEntry { key: Source::key(), seq: 1 }, ArchiveJob::LargeWeek { week: WEEK, server: ServerKey(1) });
        Ok(Vec::from_iter(is_pending.then_some(job)))
    }

    async fn next_week_chunk(&self, request: WeekChunkRequest) -> Result<WeekChunk, SourceClosed> {
        let after = match request {
            WeekChunkRequest::First { .. } => 0,
            WeekChunkRequest::Next { after, .. } => after.map_or(0, |player| player.0),
            WeekChunkRequest::Release { .. } => return Ok(WeekChunk::NotAvailable),
        };
        let fault = if after > ROWS / 2 { self.fault.lock().unwrap().take() } else { None };
        if let Some(fault) = fault {
            let mut cluster = self.cluster.lock().await;
            let node = cluster.index_of(self.status.borrow().host.as_ref().unwrap());
            cluster.inflict(node, fault);
            *self.hit.lock().unwrap() = Some(node);
        }
        Ok(self.chunk(after))
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, _: WriterBeat) -> Result<(), SourceClosed> {
        if !entries.is_empty() {
            *self.is_pending.lock().unwrap() = false;
        }
        Ok(())
    }
}

/// Reads repeatedly on one node until it fails: all of a version or nothing.
async fn watch_rows(database: Database) {
    let mut conn = database.conn().await;
    loop {
        let query = "SELECT COUNT(*), COUNT(DISTINCT starts) FROM player_week";
        let Ok(seen) = conn.query_first::<(u32, u32), _>(query).await else { return };
        let seen = seen.unwrap();
        assert!(matches!(seen, (0, 0) | (ROWS, 1)), "a part of a week: {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "starts a cluster; tests/run --cluster"]
async fn large_week_is_atomic_on_every_node() {
    let mut cluster = Cluster::start().await;
    cluster.database(0).migrate().await;
    cluster.wait_until_equal().await;
    let cluster = Arc::new(tokio::sync::Mutex::new(cluster));
    let faults = [None, Some(Fault::Kill), Some(Fault::Pause), Some(Fault::ShutDown), None];
    for (version, fault) in (1..).zip(faults) {
        let (status, seen) = watch::channel(WorkerStatus::default());
        let source = Source {
            cluster: cluster.clone(),
            status: seen.clone(),
            version,
            is_pending: Arc::new(Mutex::new(true)),
            fault: Arc::new(Mutex::new(fault)),
            hit: Arc::default(),
        };
        let (url, databases) = {
            let cluster = cluster.lock().await;
            (cluster.url_from(version as usize), (0..NODES).map(|node| cluster.database(node)).collect::<Vec<_>>())
        };
        let readers: Vec<_> = databases.into_iter().map(|database| tokio::spawn(watch_rows(database))).collect();
        let settings = ArchiveSettings { batch_rows_max: 2_000, ..settings(url) };
        let began = Instant::now();
        clqd::archive::run(settings, source.clone(), || 42, async {}, status).await;
        let (took, status) = (began.elapsed(), seen.borrow().clone());
        println!("{fault:?}: {took:?}, {} failovers, {} failures", status.failovers, status.failures);
        assert!(!*source.is_pending.lock().unwrap(), "{fault:?}: {status:?}");
        for reader in readers {
            reader.abort();
            // A reader that ended by itself must not have seen a part.
            match reader.await {
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                _ => {}
            }
        }
        let hit = *source.hit.lock().unwrap();
        assert_eq!(hit.is_some(), fault.is_some());
        let mut cluster = cluster.lock().await;
        if let (Some(node), Some(fault)) = (hit, fault) {
            cluster.restore(node, fault).await;
        }
        cluster.wait_until_equal().await;
        for node in 0..NODES {
            let rows = cluster.database(node).rows("SELECT COUNT(*), MIN(starts), MAX(starts) FROM player_week").await;
            assert_eq!(rows, [[ROWS.to_string(), version.to_string(), version.to_string()]], "node {node}");
        }
    }
}
