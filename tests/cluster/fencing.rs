//! Two writers on two nodes: only the one that connected last can commit.

use crate::database::cluster::{Cluster, Fault};
use crate::failover::settings;
use clqd::archive::{Archive, ArchiveError, FaultKind};
use clqd::model::{ArchiveJob, GameKey, PlayerKey};
use mysql_async::prelude::Queryable;

async fn writer(cluster: &Cluster, node: usize) -> Archive {
    Archive::connect(&settings(cluster.database(node).url())).await.unwrap()
}

fn player(key: u32, display: &str) -> [ArchiveJob; 1] {
    [ArchiveJob::Player { key: PlayerKey(key), game: GameKey(1), name: format!("p{key}"), display: display.into() }]
}

fn assert_in_use(error: &ArchiveError) {
    assert_eq!(error.kind(), FaultKind::InUse, "{error}");
    assert!(matches!(error, ArchiveError::OtherWriter { .. }), "{error}");
}

/// The displayed names on every node.
async fn displays(cluster: &mut Cluster) -> Vec<Vec<String>> {
    cluster.wait_until_equal().await;
    cluster.database(2).rows("SELECT player, display FROM player ORDER BY player").await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts a cluster; tests/run --cluster"]
async fn only_the_last_writer_can_commit() {
    let mut cluster = Cluster::start().await;
    cluster.database(0).migrate().await;

    // Another state waits; the same state takes over at once.
    let mut first = writer(&cluster, 0).await;
    first.become_writer(Some(1)).await.unwrap();
    first.write(&player(1, "first")).await.unwrap();
    let mut second = writer(&cluster, 1).await;
    assert_in_use(&second.become_writer(Some(2)).await.unwrap_err());
    assert_in_use(&second.write(&player(1, "no state")).await.unwrap_err());
    second.become_writer(Some(1)).await.unwrap();
    for _ in 0..2 {
        assert_in_use(&first.write(&player(1, "replaced")).await.unwrap_err());
        assert_in_use(&first.set_state_id(7).await.unwrap_err());
        second.write(&player(2, "second")).await.unwrap();
    }
    assert_eq!(displays(&mut cluster).await, [["1", "first"], ["2", "second"]]);

    // A replaced writer does not release the archive; the writer itself does.
    first.close().await;
    let mut third = writer(&cluster, 2).await;
    assert_in_use(&third.become_writer(Some(3)).await.unwrap_err());
    second.close().await;
    cluster.wait_until_equal().await;
    third.become_writer(Some(3)).await.unwrap();
    third.write(&player(3, "third")).await.unwrap();
    third.close().await;
    cluster.wait_until_equal().await;

    // A transaction that is open on another node cannot commit.
    let mut writer_0 = writer(&cluster, 0).await;
    writer_0.become_writer(Some(4)).await.unwrap();
    writer_0.write(&player(4, "before")).await.unwrap();
    let mut open = open_transaction(&mut cluster, 0, "late").await;
    let mut writer_1 = writer(&cluster, 1).await;
    writer_1.become_writer(Some(4)).await.unwrap();
    let error = open.query_drop("COMMIT").await.expect_err("the epoch has ended");
    assert!(error.to_string().contains("1213"), "{error}");
    assert_eq!(displays(&mut cluster).await.last().unwrap(), &["4", "before"]);
    drop(open);

    // Nor can one on a node that was paused when the COMMIT was sent, and returns later.
    let mut open = open_transaction(&mut cluster, 0, "delayed").await;
    cluster.inflict(0, Fault::Pause);
    let commit = tokio::spawn(async move { open.query_drop("COMMIT").await });
    let mut writer_2 = writer(&cluster, 2).await;
    writer_2.become_writer(Some(4)).await.unwrap();
    writer_2.write(&player(4, "after")).await.unwrap();
    cluster.restore(0, Fault::Pause).await;
    commit.await.unwrap().expect_err("the epoch has ended");
    assert_eq!(displays(&mut cluster).await.last().unwrap(), &["4", "after"]);
}

/// Begins a transaction of the current epoch, as a worker does, and writes a row.
async fn open_transaction(cluster: &mut Cluster, node: usize, display: &str) -> mysql_async::Conn {
    cluster.wait_until_equal().await;
    let mut conn = cluster.database(node).conn().await;
    let epoch: u64 = conn.query_first("SELECT epoch FROM clq_writer").await.unwrap().unwrap();
    conn.query_drop("START TRANSACTION").await.unwrap();
    conn.query_drop(format!("UPDATE clq_writer SET beat = beat + 1 WHERE singleton = 1 AND epoch = {epoch}"))
        .await
        .unwrap();
    assert_eq!(conn.affected_rows(), 1);
    conn.query_drop(format!("UPDATE player SET display = '{display}' WHERE player = 4")).await.unwrap();
    conn
}
