//! Looks host names up without blocking the scan thread. The system resolves the names
//! (`getaddrinfo`), so `/etc/hosts` and `nsswitch.conf` apply; `hickory-resolver` would
//! ignore the latter. `getaddrinfo` does not read SRV records; [`service`] asks the name servers for them.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::core::{LookupResult, MINECRAFT_SERVICE};
use super::service::{self, Service};
use super::waker::{WakeOnDrop, Waker};

/// Timeout of a look-up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of the question for an SRV record, which is asked beside the look-up.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs look-ups, each as a task.
#[derive(Debug)]
pub struct Resolver {
    runtime: Handle,
    waker: Waker,
    results: mpsc::Receiver<LookupResult>,
    results_tx: mpsc::Sender<LookupResult>,
}

impl Resolver {
    /// `waker` is called when a look-up has ended.
    pub fn new(runtime: Handle, waker: Waker) -> Resolver {
        let (results_tx, results) = mpsc::channel();
        Resolver { runtime, waker, results, results_tx }
    }

    /// Starts a look-up.
    pub fn start(&self, host: String) {
        let (results, wake) = (self.results_tx.clone(), WakeOnDrop(self.waker.clone()));
        self.runtime.spawn(async move {
            // A panic must not leave scans waiting.
            let looked_up = tokio::spawn(look_up(host.clone())).await;
            let result = looked_up.unwrap_or_else(|_| LookupResult::failure(host));
            // The scanner may have ended.
            let _ = results.send(result);
            drop(wake);
        });
    }

    /// The result of a look-up that has ended.
    pub(super) fn next_result(&mut self) -> Option<LookupResult> {
        self.results.try_recv().ok()
    }
}

async fn look_up(name: String) -> LookupResult {
    let Some(host) = name.strip_prefix(MINECRAFT_SERVICE) else { return look_up_host(name).await };
    let servers = service::name_servers();
    let record = timeout(SERVICE_TIMEOUT, service::look_up(&name, &servers));
    let (record, of_host) = tokio::join!(record, look_up_host(host.to_owned()));
    match record.unwrap_or(Err(())) {
        Ok(Some(Service { host, port })) => look_up_host(host).await.of_service(name, Ok(Some(port))),
        Ok(None) => of_host.of_service(name, Ok(None)),
        Err(()) => of_host.of_service(name, Err(())),
    }
}

async fn look_up_host(host: String) -> LookupResult {
    // `lookup_host` requires a port; it is not used.
    let found = match timeout(LOOKUP_TIMEOUT, lookup_host((host.as_str(), 1))).await {
        Ok(Ok(addresses)) => Ok(addresses.map(|address| address.ip().to_canonical()).collect::<Vec<_>>()),
        Ok(Err(error)) if is_failure(&error) => Err(()),
        Ok(Err(_)) => Ok(Vec::new()),
        Err(_) => Err(()),
    };
    match found {
        Ok(addresses) => LookupResult::new(host, addresses),
        Err(()) => LookupResult::failure(host),
    }
}

/// Whether no name server has answered. The error of `getaddrinfo` has no number, only the text of glibc or musl for
/// `EAI_AGAIN`.
fn is_failure(error: &io::Error) -> bool {
    let text = error.to_string();
    error.raw_os_error().is_some() || ["Temporary failure", "Try again"].iter().any(|again| text.contains(again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn system_resolves_names() {
        let mut resolver = Resolver::new(Handle::current(), Waker::new().unwrap());
        for (host, is_known) in [("localhost", true), ("name.invalid", false)] {
            resolver.start(host.to_owned());
            let result = loop {
                match resolver.next_result() {
                    Some(result) => break result,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            };
            assert_eq!(!result.addresses.ips.is_empty(), is_known, "{result:?}");
            assert!(result.addresses.ips.iter().all(|ip| ip.is_loopback()), "{result:?}");
        }
    }
}
