//! A worker writes through a node that fails, and continues on the next one.

use std::time::Duration;

use crate::database::cluster::{Cluster, Fault, NODES, url_of};
use crate::database::proxy::{Plan, Proxy};
use crate::database::world::{Outbox, assert_same, read};
use clqd::archive::{ArchiveSettings, WorkerStatus};
use tokio::sync::watch;

pub fn settings(url: String) -> ArchiveSettings {
    ArchiveSettings {
        url,
        connect_timeout_ms: 1_000,
        query_timeout_ms: 15_000,
        backoff_ms_min: 10,
        backoff_ms_max: 500,
        drain_timeout_s: 300,
        // Many transactions, so that faults hit some of them.
        batch_rows_max: 5,
        ..ArchiveSettings::default()
    }
}

/// Runs a worker until everything is written.
async fn drain(settings: ArchiveSettings, outbox: Outbox, status: watch::Sender<WorkerStatus>) {
    clqd::archive::run(settings, outbox, || 42, async {}, status).await;
}

pub async fn assert_nodes_equal(cluster: &mut Cluster, outbox: &Outbox, when: &str) {
    cluster.wait_until_equal().await;
    let wanted = outbox.with(|world| world.tables());
    for index in 0..NODES {
        assert_same(&read(&cluster.database(index)).await, &wanted, &format!("{when}, node {index}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts a cluster; tests/run --cluster"]
async fn failing_node_loses_nothing() {
    let mut cluster = Cluster::start().await;
    cluster.database(0).migrate().await;
    let outbox = Outbox::new(31);
    let mut failovers = 0;
    for (round, fault) in [Fault::Kill, Fault::Pause, Fault::ShutDown, Fault::Kill].into_iter().enumerate() {
        outbox.with(|world| (0..600).for_each(|_| world.step()));
        outbox.with(|world| world.touch_all());
        let (status, seen) = watch::channel(WorkerStatus::default());
        let settings = settings(cluster.url_from(round % NODES));
        let worker = tokio::spawn(drain(settings, outbox.clone(), status));
        // In the middle of the pass.
        while seen.borrow().entries_written == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let host = seen.borrow().host.clone().expect("the connected host");
        let index = cluster.index_of(&host);
        cluster.inflict(index, fault);
        worker.await.unwrap();
        let status = seen.borrow().clone();
        assert!(outbox.with(|world| world.pending.is_empty()), "{fault:?}: {status:?}");
        assert_ne!(status.host, Some(host), "{fault:?}: {status:?}");
        println!("{fault:?} of node {index}: {} failovers, {} failures", status.failovers, status.failures);
        failovers += status.failovers;
        cluster.restore(index, fault).await;
        assert_nodes_equal(&mut cluster, &outbox, &format!("{fault:?} in round {round}")).await;
    }
    assert!(failovers > 0, "a failing node was replaced in the same pass");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts a cluster; tests/run --cluster"]
async fn commit_with_lost_reply_is_repeated_on_the_next_node() {
    let mut cluster = Cluster::start().await;
    cluster.database(0).migrate().await;
    let mut proxies = Vec::new();
    for index in 0..NODES {
        proxies.push(Proxy::to(cluster.database(index).address()).await);
    }
    let hosts: Vec<String> = proxies.iter().map(|proxy| proxy.address.to_string()).collect();
    let outbox = Outbox::new(32);
    let mut failovers = 0;
    for round in 0..12 {
        outbox.with(|world| {
            (0..3).for_each(|_| world.step());
            world.changes_concurrently = true;
        });
        // On the first node only: the others take over.
        proxies[0].plan([Plan::LoseCommitReply(1 + round % 6)]);
        for _ in 0..2 {
            let (status, seen) = watch::channel(WorkerStatus::default());
            drain(settings(url_of(&hosts)), outbox.clone(), status).await;
            let status = seen.borrow().clone();
            assert_eq!(status.failures, 0, "the pass continues: {status:?}");
            failovers += status.failovers;
            outbox.with(|world| world.changes_concurrently = false);
        }
        assert_nodes_equal(&mut cluster, &outbox, &format!("round {round}")).await;
    }
    assert!(failovers > 0, "replies were lost");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts a cluster; tests/run --cluster"]
async fn unready_node_is_passed_over_and_named() {
    let mut cluster = Cluster::start().await;
    cluster.database(0).migrate().await;
    // The last node alone is no majority, and answers with error 1047.
    cluster.inflict(0, Fault::Kill);
    cluster.inflict(1, Fault::Pause);
    let error = loop {
        match clqd::archive::Archive::connect(&settings(cluster.url_from(0))).await {
            // Until the cluster has noticed.
            Ok(archive) => archive.close().await,
            Err(error) if error.to_string().contains("non-Primary") => break error,
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let message = error.to_string();
    for index in 0..NODES {
        assert!(message.contains(&cluster.address(index)), "{message}");
    }
    assert!(message.contains("refused") && message.contains("connect_timeout_ms"), "{message}");
    cluster.restore(1, Fault::Pause).await;
    cluster.restore(0, Fault::Kill).await;
    cluster.wait_until_equal().await;
    clqd::archive::Archive::connect(&settings(cluster.url_from(0))).await.unwrap().close().await;
}
