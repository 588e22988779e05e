//! States that may not write the archive: one with other keys must not keep the rightful one out, and of two copies
//! of one state only one writes, though they write through two nodes.

use std::time::Instant;

use crate::database::cluster::Cluster;
use crate::scans;
use crate::state_source::{StateSource, open};
use clqd::archive::{ArchiveSettings, FaultKind};
use clqd::model::outbox::ArchiveStep;
use clqd::state::State;

const FROM_MS: i64 = 1_764_064_800_000; // Tuesday 2025-11-25 10:00 UTC

fn play(state: &mut State, from: i64) {
    for round in from..from + 10 {
        let players = (0..8).map(|n| (format!("player {n}"), round % 5 * n));
        scans::apply_snapshot(state, "quake3://10.0.0.1:27960", scans::snapshot(FROM_MS + round * 120_000, players));
    }
}

fn settings(cluster: &Cluster, node: usize) -> ArchiveSettings {
    cluster.database(node).settings()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts a cluster; tests/run --cluster"]
async fn foreign_and_copied_states_do_not_disturb_the_rightful_one() {
    let mut cluster = Cluster::start().await;
    cluster.database(0).migrate().await;
    cluster.wait_until_equal().await;
    let dir = tempfile::tempdir().unwrap();
    let (own_dir, copy_dir) = (dir.path().join("own"), dir.path().join("copy"));
    let mut own = open(&own_dir);
    play(&mut own, 0);
    let source = StateSource::new(own, 1, usize::MAX);
    assert_eq!(source.archive(&settings(&cluster, 0)).await.fault, None);

    // The foreign one is refused, and takes no lease.
    let foreign = StateSource::new(open(&dir.path().join("foreign")), 2, usize::MAX);
    for round in 1..6 {
        let fault = foreign.archive(&settings(&cluster, 1)).await.fault.expect("it has other keys");
        assert_eq!(fault.kind, FaultKind::KeyMismatch, "{}", fault.message);
        play(&mut source.state.lock().unwrap(), round * 10);
        let began = Instant::now();
        assert_eq!(source.archive(&settings(&cluster, 0)).await.fault, None, "after {:?}", began.elapsed());
    }

    // Two copies take turns: all rounds of the second one are refused.
    let mut own = source.into_state();
    own.commit().unwrap();
    own.write_checkpoint(0).unwrap();
    drop(own);
    let copied = std::process::Command::new("cp").arg("-r").args([&own_dir, &copy_dir]).status().unwrap();
    assert!(copied.success());
    let (own, copy) = (open(&own_dir), open(&copy_dir));
    let [own, copy] = [(own, 3), (copy, 4)].map(|(state, seed)| StateSource::new(state, seed, usize::MAX));
    for round in 6..12 {
        for (source, is_rightful) in [(&own, true), (&copy, false)] {
            play(&mut source.state.lock().unwrap(), round * 10);
            let fault = source.archive(&settings(&cluster, usize::from(is_rightful))).await.fault;
            let kind = fault.as_ref().map(|fault| fault.kind);
            assert_eq!(kind, (!is_rightful).then_some(FaultKind::InUse), "{fault:?}");
        }
    }
    copy.state.lock().unwrap().engine.apply_archive_step(ArchiveStep::Resync { adopts: true });
    assert_eq!(copy.archive(&settings(&cluster, 2)).await.fault, None);
    play(&mut own.state.lock().unwrap(), 200);
    let fault = own.archive(&settings(&cluster, 0)).await.fault.expect("the copy has the archive");
    assert_eq!(fault.kind, FaultKind::InUse, "{}", fault.message);
    cluster.wait_until_equal().await;
}
