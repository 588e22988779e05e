//! Scans servers once, without a daemon and without storing anything.

use std::io;
use std::sync::Arc;

use anyhow::Context;

use crate::clock::{Clock, ClockSettings};
use crate::scan::{ScanOutcome, ScanRequest, ScanSettings, Scanner};

/// What [`scan_once`] reports.
#[derive(Debug)]
pub enum ScanEvent {
    /// Scans that have ended.
    Outcomes(Vec<ScanOutcome>),
    /// No further scan has ended yet.
    Idle,
}

/// Sends all requests and calls `on_event` until every scan has ended. If `on_event` fails, the
/// remaining servers are not queried.
pub fn scan_once(
    settings: ScanSettings,
    requests: impl IntoIterator<Item = ScanRequest>,
    on_event: impl FnMut(ScanEvent) -> io::Result<()>,
) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let result = runtime.block_on(scan(settings, requests, on_event));
    // A DNS server that does not respond must not delay the exit.
    runtime.shutdown_background();
    result
}

async fn scan(
    settings: ScanSettings,
    requests: impl IntoIterator<Item = ScanRequest>,
    mut on_event: impl FnMut(ScanEvent) -> io::Result<()>,
) -> anyhow::Result<()> {
    let clock = Arc::new(Clock::new(0, ClockSettings::default()));
    let (_scanner, sender, mut outcomes) =
        Scanner::start(settings, Arc::new(move || clock.now_ms())).context("cannot open query sockets")?;
    let sending = async move { sender.send_all(requests).await };
    let receiving = async {
        while let Some(batch) = outcomes.recv().await {
            on_event(ScanEvent::Outcomes(batch))?;
            if outcomes.is_empty() {
                on_event(ScanEvent::Idle)?;
            }
        }
        Ok::<_, io::Error>(())
    };
    tokio::pin!(sending);
    tokio::pin!(receiving);
    let result = tokio::select! {
        result = &mut receiving => result,
        () = &mut sending => receiving.await,
    };
    Ok(result?)
}
