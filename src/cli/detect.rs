//! Finds the protocols of servers of which only address and port are known, by trying all.

use std::sync::Arc;

use anyhow::Context;

use crate::clock::{Clock, ClockSettings};
use crate::model::{ServerKey, ServerUrl};
use crate::proto::AUTO_SCHEME;
use crate::scan::{ScanMode, ScanRequest, ScanSettings, Scanner};

/// A server whose protocol was not found.
#[derive(Debug)]
pub struct NotFound {
    /// As given, `auto://host:port`.
    pub url: ServerUrl,
    pub reason: &'static str,
}

/// Replaces each URL of the scheme `auto` by the one under which the server answers. The order
/// stays the same.
pub fn detect(urls: Vec<ServerUrl>, settings: ScanSettings) -> anyhow::Result<Vec<Result<ServerUrl, NotFound>>> {
    if urls.iter().all(|url| url.scheme() != AUTO_SCHEME) {
        return Ok(urls.into_iter().map(Ok).collect());
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let found = runtime.block_on(probe(urls, settings));
    // A DNS server that does not respond must not delay the exit.
    runtime.shutdown_background();
    found
}

async fn probe(urls: Vec<ServerUrl>, settings: ScanSettings) -> anyhow::Result<Vec<Result<ServerUrl, NotFound>>> {
    let clock = Arc::new(Clock::new(0, ClockSettings::default()));
    let (_scanner, requests, mut outcomes) =
        Scanner::start(settings, Arc::new(move || clock.now_ms())).context("cannot open query sockets")?;
    let unknown: Vec<ScanRequest> = (0..)
        .zip(&urls)
        .filter(|(_, url)| url.scheme() == AUTO_SCHEME)
        .map(|(id, url)| {
            let (server, url) = (ServerKey(id), url.clone());
            ScanRequest { id: id.into(), server, url, mode: ScanMode::Normal }
        })
        .collect();
    tokio::spawn(async move {
        for request in unknown {
            requests.send(request).await;
        }
    });
    let mut found: Vec<_> = urls.into_iter().map(Ok).collect();
    while let Some(batch) = outcomes.recv().await {
        for outcome in batch {
            let result = &mut found[outcome.id as usize];
            let Ok(url) = result else { continue };
            *result = match (outcome.answers_at(url), &outcome.result) {
                (Some(answered), _) => Ok(answered),
                (None, Err(miss)) => {
                    // Of several attempts, one on the given port.
                    let reason = outcome.first_miss().unwrap_or(miss.reason);
                    Err(NotFound { url: url.clone(), reason: reason.name() })
                }
                (None, Ok(_)) => continue,
            };
        }
    }
    Ok(found)
}
