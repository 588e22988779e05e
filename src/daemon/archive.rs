//! The archive's way to the engine: jobs out, acknowledgements in.

use tokio::sync::{mpsc, oneshot};

use super::work::Order;
use crate::archive::{Ask, JobSource, SourceGone};
use crate::model::archive::{ArchiveJob, OutboxEntry};

pub(super) struct Source {
    orders: mpsc::Sender<Order>,
}

impl Source {
    pub(super) fn new(orders: mpsc::Sender<Order>) -> Source {
        Source { orders }
    }

    async fn order<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, SourceGone> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).await.map_err(|_| SourceGone)?;
        answer.await.map_err(|_| SourceGone)
    }
}

impl JobSource for Source {
    async fn next(&self, ask: Ask) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceGone> {
        self.order(|reply| Order::Jobs { ask, reply }).await
    }

    async fn done(&self, entries: Vec<OutboxEntry>) -> Result<(), SourceGone> {
        self.order(|reply| Order::Archived { entries, reply }).await
    }
}
