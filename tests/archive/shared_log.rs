//! The log of a cluster against a real database: repeated, stale and missing batches.

use clqd::archive::{Fenced, KeptLog, Member, SharedLog};
use clqd::log::{BatchBuilder, LogEvent, LogWriter, SealedBatch, WriterSettings};

use crate::database::Database;

fn next_batch(builder: &mut BatchBuilder, writer: &LogWriter, t_ms: i64) -> SealedBatch {
    builder.append(&LogEvent::Tick { t_ms, close_until_ms: t_ms });
    writer.seal(builder.take(t_ms).expect("an event"))
}

fn member(engine: &str, instance: u64) -> Member {
    Member { engine: engine.to_owned(), address: String::new(), instance }
}

#[tokio::test]
async fn batches_are_accepted_once_and_in_order() {
    let database = Database::new().await;
    let dir = tempfile::tempdir().unwrap();
    let (writer, mut builder, _) = LogWriter::open(&WriterSettings::new(dir.path().to_owned()), 1, 1).unwrap();
    let [first, second, third] = [1, 2, 3].map(|t_ms| next_batch(&mut builder, &writer, t_ms));
    let mut log = SharedLog::new(&database.settings()).unwrap();
    log.create_tables().await.unwrap();
    assert_eq!(log.take_over(None, &member("a", 7)).await.unwrap(), Some(1));

    // Repeated after an answer that was lost, the first batch of all as well.
    for batch in [&first, &first, &second, &second] {
        assert_eq!(log.append(1, 1, batch).await.unwrap(), Fenced::No);
    }
    let read: Vec<u64> = log.read_after(0).await.unwrap().iter().map(|read| read.batch.seq()).collect();
    assert_eq!(read, [1, 2]);

    database.run("DELETE FROM clq_log WHERE seq = 2").await;
    let hole = log.append(1, 1, &third).await.unwrap_err().to_string();
    assert!(hole.contains("batch 2 of clq_log is missing"), "{hole}");
    assert_eq!(log.append(1, 1, &second).await.unwrap(), Fenced::No);

    let seen = log.leader().await.unwrap().expect("a leader");
    assert_eq!(log.take_over(Some(&seen), &member("b", 8)).await.unwrap(), Some(2));
    assert_eq!(log.take_over(Some(&seen), &member("c", 9)).await.unwrap(), None, "b was faster");
    assert_eq!(log.append(1, 1, &third).await.unwrap(), Fenced::Yes);
    assert_eq!(log.append(2, 1, &third).await.unwrap(), Fenced::No);
    assert_eq!(log.last_seq().await.unwrap(), 3);
}

/// The leader could not end the segment at the request.
#[tokio::test]
async fn a_segment_with_a_request_to_forget_a_player_is_deleted() {
    let database = Database::new().await;
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, mut builder, _) = LogWriter::open(&WriterSettings::new(dir.path().to_owned()), 1, 1).unwrap();
    let mut log = SharedLog::new(&database.settings()).unwrap();
    log.create_tables().await.unwrap();
    log.take_over(None, &member("a", 7)).await.unwrap();
    for t_ms in [30, 50] {
        builder.append(&LogEvent::Tick { t_ms, close_until_ms: t_ms });
        let batch = writer.seal(builder.take_and_end_segment(t_ms).expect("an event"));
        assert_eq!(log.append(1, 1, &batch).await.unwrap(), Fenced::No);
        writer.write_sealed(&batch, t_ms).unwrap();
    }
    let keep = |forgotten_ms| KeptLog { now_ms: 100, since_ms: 0, forgotten_ms };
    assert_eq!(log.remove_oldest(1, &keep(0), 2).await.unwrap(), Some(false));
    assert_eq!(log.remove_oldest(1, &keep(20), 1).await.unwrap(), Some(true));
    assert_eq!(log.remove_oldest(1, &keep(20), 2).await.unwrap(), Some(false));
    assert_eq!(log.last_seq().await.unwrap(), 2);
}
