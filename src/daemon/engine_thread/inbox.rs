//! What the engine thread receives from the scanner and from other tasks.
//!
//! The scanner may close the channel of outcomes only after `StopScanning` was sent. If it closes
//! the channel earlier, it has failed, and a daemon that does not scan must end.

use tokio::sync::mpsc;

use super::handle::Command;
use crate::scan::{Outcomes, ScanOutcome};

/// The scanner ended although nobody had stopped it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scanner has ended unexpectedly")]
pub(super) struct ScannerEnded;

/// The channels of outcomes and commands.
pub(super) struct Inbox {
    commands: mpsc::Receiver<Command>,
    outcomes: Outcomes,
    is_scanner_ended: bool,
    /// `StopScanning` or `Shutdown` was received.
    is_stopping: bool,
}

/// A batch of outcomes, a command, or both.
pub(super) struct Received {
    pub(super) batch: Option<Vec<ScanOutcome>>,
    pub(super) command: Option<Command>,
}

impl Inbox {
    pub(super) fn new(commands: mpsc::Receiver<Command>, outcomes: Outcomes) -> Inbox {
        Inbox { commands, outcomes, is_scanner_ended: false, is_stopping: false }
    }

    /// Waits for the next outcomes or the next command. If it is cancelled, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Received, ScannerEnded> {
        loop {
            // At a stop, `StopScanning` is in the queue before the scanner ends. Other commands may
            // be before it.
            if self.is_scanner_ended && !self.is_stopping && self.commands.is_empty() {
                return Err(ScannerEnded);
            }
            let received = tokio::select! {
                biased;
                batch = self.outcomes.recv(), if !self.is_scanner_ended => {
                    if batch.is_none() {
                        self.is_scanner_ended = true;
                        continue;
                    }
                    Received { batch, command: self.commands.try_recv().ok() }
                }
                command = self.commands.recv() => {
                    Received { batch: None, command: Some(command.unwrap_or(Command::Shutdown)) }
                }
            };
            self.is_stopping |= matches!(received.command, Some(Command::StopScanning | Command::Shutdown));
            return Ok(received);
        }
    }

    /// The next batch that is already in the queue.
    pub(super) fn next_queued_batch(&mut self) -> Option<Vec<ScanOutcome>> {
        self.outcomes.try_recv().ok()
    }

    /// Batches of outcomes that are waiting.
    pub(super) fn batches_queued(&self) -> usize {
        self.outcomes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    fn inbox() -> (Inbox, mpsc::Sender<Command>, mpsc::Sender<Vec<ScanOutcome>>) {
        let (commands_tx, commands) = mpsc::channel(4);
        let (outcomes_tx, outcomes) = mpsc::channel(4);
        (Inbox::new(commands, outcomes), commands_tx, outcomes_tx)
    }

    fn other_command() -> Command {
        Command::Work(Box::new(|_| Ok(())))
    }

    /// Begins to wait and cancels it, as when another event comes first.
    async fn cancelled_next(inbox: &mut Inbox) {
        let mut next = pin!(inbox.next());
        let is_pending = poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending())).await;
        assert!(is_pending, "nothing has arrived");
    }

    #[tokio::test]
    async fn scanner_that_ends_at_a_stop_is_no_failure() {
        for others in 0..3 {
            let (mut inbox, commands, outcomes) = inbox();
            cancelled_next(&mut inbox).await;
            for _ in 0..others {
                commands.send(other_command()).await.unwrap();
            }
            commands.send(Command::StopScanning).await.unwrap();
            outcomes.send(Vec::new()).await.unwrap();
            drop(outcomes);
            let mut batches = 0;
            for n in 0..=others {
                let received = inbox.next().await.expect("StopScanning is in the queue");
                batches += usize::from(received.batch.is_some());
                let is_last = matches!(received.command, Some(Command::StopScanning));
                assert_eq!(is_last, n == others, "{n} of {others}");
            }
            assert_eq!(batches, 1);
            cancelled_next(&mut inbox).await;
            cancelled_next(&mut inbox).await;
            commands.send(Command::Shutdown).await.unwrap();
            assert!(matches!(inbox.next().await.expect("it is stopping").command, Some(Command::Shutdown)));
        }
    }

    #[tokio::test]
    async fn scanner_that_ends_before_a_stop_is_a_failure() {
        let (mut inbox, commands, outcomes) = inbox();
        outcomes.send(Vec::new()).await.unwrap();
        commands.send(other_command()).await.unwrap();
        commands.send(other_command()).await.unwrap();
        drop(outcomes);
        let received = inbox.next().await.expect("the last outcomes");
        assert!(received.batch.is_some() && received.command.is_some());
        assert!(inbox.next().await.expect("the second command").batch.is_none());
        assert_eq!(inbox.next().await.err(), Some(ScannerEnded));
    }

    #[tokio::test]
    async fn closed_channel_of_commands_is_a_shutdown() {
        let (mut inbox, commands, _outcomes) = inbox();
        drop(commands);
        assert!(matches!(inbox.next().await.expect("no failure").command, Some(Command::Shutdown)));
    }
}
