//! Detects the protocols of servers by trying all. Only the address and port of the servers are
//! known.

use crate::cli::scan_once::{ScanEvent, scan_once};
use crate::model::{ServerKey, ServerUrl};
use crate::proto::AUTO_SCHEME;
use crate::scan::{MissReason, ScanMode, ScanRequest, ScanSettings};

/// Why the protocol of a server was not found.
#[derive(Debug)]
pub struct NotFound(pub MissReason);

/// Replaces each URL of the scheme `auto` by the one under which the server answers. The order
/// stays the same. `settings` is called only if there is such a URL.
pub fn detect(
    urls: Vec<ServerUrl>,
    settings: impl FnOnce() -> anyhow::Result<ScanSettings>,
) -> anyhow::Result<Vec<Result<ServerUrl, NotFound>>> {
    if urls.iter().all(|url| url.scheme() != AUTO_SCHEME) {
        return Ok(urls.into_iter().map(Ok).collect());
    }
    let unknown: Vec<ScanRequest> = (0..)
        .zip(&urls)
        .filter(|(_, url)| url.scheme() == AUTO_SCHEME)
        .map(|(id, url)| {
            let (server, url) = (ServerKey(id), url.clone());
            ScanRequest { id: id.into(), server, url, mode: ScanMode::Normal, wants_settings: false }
        })
        .collect();
    let mut found: Vec<_> = urls.into_iter().map(Ok).collect();
    scan_once(settings()?, unknown, |event| {
        let ScanEvent::Outcomes(outcomes) = event else { return Ok(()) };
        for outcome in outcomes {
            let result = &mut found[outcome.id as usize];
            let Ok(url) = result else { continue };
            *result = match (outcome.answers_at(url), &outcome.result) {
                (Some(answered), _) => Ok(answered),
                (None, Err(miss)) => {
                    // If there were several attempts, the reported reason is that of one on the
                    // given port.
                    let reason = outcome.first_miss().unwrap_or(miss.reason);
                    Err(NotFound(reason))
                }
                (None, Ok(_)) => continue,
            };
        }
        Ok(())
    })?;
    Ok(found)
}
