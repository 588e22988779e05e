//! The process of `clqd scan --join`: scans for a daemon on another machine. It has no state: what it holds are scans in
//! progress, and outcomes that are not in the daemon's log yet.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "ages of outcomes; the daemon has the clock"))]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::sync::oneshot;
use tokio::time::sleep;
use ureq::http::StatusCode;

use super::wire;
use crate::api::json;
use crate::api::requests::{SCANS_MAX, ScannersExchange, Scans};
use crate::daemon::agent;
use crate::limits::REQUEST_BODY_BYTES_MAX;
use crate::scan::{Outcomes, RequestSender, ScanOutcome, ScanSettings, Scanner};
use crate::shutdown;

/// The request of the daemon.
const PATH: &str = "/api/v1/scanners/exchange";

const TIMEOUT: Duration = Duration::from_secs(5);

/// Pauses after a request that failed: doubled each time.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];

/// After a refusal: a token that is not valid is not tried often.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// Outcomes that are kept until they are in the daemon's log, at most: some minutes of 2,000 servers. Beyond it, the oldest
/// are dropped.
const OUTCOMES_MAX: usize = 20_000;

/// An answer is at most so long, bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// How long outcomes are gathered before they are handed in.
const GATHER: Duration = Duration::from_millis(100);

/// How a scanner reaches its daemon, and who it is.
#[derive(Clone, Debug)]
pub struct ScannerOptions {
    /// The start of the daemon's address: `https://stats.example.org`; several of a cluster.
    pub join: Vec<String>,
    pub token: String,
    pub name: String,
    pub region: String,
    /// A certificate of the authority that the daemon's certificate is from; `None`: those of the system's list.
    pub ca: Option<PathBuf>,
    pub scan: ScanSettings,
}

/// Scans until SIGTERM or SIGINT.
pub fn run(options: ScannerOptions) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(async {
        let stop = shutdown::on_signal()?;
        let process = Process::start(options)?;
        tokio::select! {
            ended = process.work() => ended,
            () = stop.cancelled() => Ok(()),
        }
    });
    // Look-ups in progress must not delay the exit: their name servers may be silent.
    runtime.shutdown_background();
    result
}

struct Process {
    options: ScannerOptions,
    links: Links,
    scanner: Scanner,
    requests: RequestSender,
    outcomes: Outcomes,
    /// Chosen at random, so that the daemon sees a start.
    session: u64,
    /// Times of outcomes count from here: nobody can set this clock.
    start: Instant,
    /// What is not in the daemon's log yet.
    waiting: VecDeque<ScanOutcome>,
    /// The number of the first of them, from the start of the process, and how many have arrived at the daemon.
    oldest: u64,
    arrived: usize,
    /// How many are handed in at once.
    handed_in: HandedIn,
    dropped: u64,
    in_progress: usize,
    settings_known: Option<u64>,
    /// The number of the last answer with scans.
    batch_known: u64,
}

/// The largest number of outcomes in a request: as many as a slow network takes to the daemon in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HandedIn(usize);

impl HandedIn {
    fn note(&mut self, has_arrived: bool) {
        self.0 = if has_arrived { (2 * self.0).min(SCANS_MAX) } else { self.0.div_ceil(2) };
    }
}

/// The ways to the daemon: several to the engines of a cluster.
struct Links {
    /// As the options name them; after them the leader, if it is none of these.
    all: Vec<Arc<Link>>,
    named: usize,
    /// The one that is used.
    current: usize,
}

/// The connection to the daemon.
struct Link {
    agent: ureq::Agent,
    url: String,
    token: String,
}

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    #[error("cannot reach the daemon: {0}")]
    Away(String),
    #[error("the daemon has refused: {0}")]
    Refused(String),
    /// It will not be different later.
    #[error("{0}")]
    Invalid(String),
    #[error("this engine of the cluster does not lead")]
    Follows { leader: String },
}

impl Process {
    fn start(options: ScannerOptions) -> anyhow::Result<Process> {
        let links = Links::new(&options)?;
        let session = getrandom::u64().map_err(|error| anyhow::anyhow!("the system has no random numbers: {error}"))?;
        let start = Instant::now();
        let now = Arc::new(move || start.elapsed().as_millis() as i64);
        let (scanner, requests, outcomes) =
            Scanner::start(options.scan.clone(), now).context("cannot start the scanner: section [scan]")?;
        Ok(Process {
            options,
            links,
            scanner,
            requests,
            outcomes,
            session,
            start,
            waiting: VecDeque::new(),
            oldest: 0,
            arrived: 0,
            handed_in: HandedIn(SCANS_MAX),
            dropped: 0,
            in_progress: 0,
            settings_known: None,
            batch_known: 0,
        })
    }

    async fn work(mut self) -> anyhow::Result<()> {
        let mut pause = PAUSES[0];
        let mut is_reported = None;
        tracing::info!(
            daemon = self.options.join.join(", "),
            name = self.options.name,
            region = self.options.region,
            "scanning"
        );
        loop {
            self.gather().await?;
            match self.exchange().await {
                Ok(scans) => {
                    if is_reported != Some(true) {
                        tracing::info!("the daemon answers");
                    }
                    is_reported = Some(true);
                    pause = PAUSES[0];
                    self.take(scans).await?;
                }
                // Later it may be a fault of something between.
                Err(error @ ExchangeError::Invalid(_)) if is_reported.is_none() => return Err(error.into()),
                Err(ExchangeError::Follows { leader }) if self.links.follow(&leader, &self.options) => {
                    tracing::info!(leader, "another engine of the cluster leads");
                }
                Err(error) => {
                    let wait = if matches!(error, ExchangeError::Refused(_)) { REFUSED_PAUSE } else { pause };
                    if is_reported != Some(false) {
                        tracing::warn!("{error}; trying again");
                    }
                    is_reported = Some(false);
                    // Another engine may lead by now.
                    if self.links.next() {
                        sleep(wait).await;
                        pause = (2 * pause).min(PAUSES[1]);
                    }
                }
            }
        }
    }

    /// Waits a moment for outcomes.
    async fn gather(&mut self) -> anyhow::Result<()> {
        let until = tokio::time::Instant::now() + GATHER;
        while self.waiting.len() - self.arrived < SCANS_MAX {
            match tokio::time::timeout_at(until, self.outcomes.recv()).await {
                Ok(Some(batch)) => self.keep(batch),
                Ok(None) => bail!("the scanner has ended"),
                Err(_) => break,
            }
        }
        while let Ok(batch) = self.outcomes.try_recv() {
            self.keep(batch);
        }
        if let Some(surplus @ 1..) = self.waiting.len().checked_sub(OUTCOMES_MAX) {
            let lost = surplus.saturating_sub(self.arrived) as u64;
            self.drop_oldest(surplus);
            if lost > 0 {
                self.dropped += lost;
                tracing::warn!(
                    dropped = self.dropped,
                    "outcomes were dropped, because the daemon has been away for long"
                );
            }
        }
        Ok(())
    }

    fn drop_oldest(&mut self, count: usize) {
        self.waiting.drain(..count);
        self.oldest += count as u64;
        self.arrived = self.arrived.saturating_sub(count);
    }

    fn keep(&mut self, batch: Vec<ScanOutcome>) {
        self.in_progress = self.in_progress.saturating_sub(batch.len());
        self.waiting.extend(batch);
    }

    /// Hands in the first outcomes that have not arrived.
    async fn exchange(&mut self) -> Result<Scans, ExchangeError> {
        let body = self.body();
        let link = self.links.all[self.links.current].clone();
        let (done, result) = oneshot::channel();
        tokio::task::spawn_blocking(move || _ = done.send(link.post(&body)));
        let answer = result.await.unwrap_or_else(|_| Err(ExchangeError::Away("the request was given up".to_owned())));
        match &answer {
            Ok(_) => self.handed_in.note(true),
            Err(ExchangeError::Away(_)) => self.handed_in.note(false),
            Err(_) => {}
        }
        match answer? {
            Scans { leader: Some(leader), .. } => Err(ExchangeError::Follows { leader }),
            scans => Ok(scans),
        }
    }

    /// The next request, with as many outcomes as the daemon takes at once.
    fn body(&mut self) -> Vec<u8> {
        let now_ms = self.start.elapsed().as_millis() as i64;
        let left = self.waiting.len() - self.arrived;
        let mut count = left.min(self.handed_in.0);
        loop {
            let outcomes = self
                .waiting
                .iter()
                .skip(self.arrived)
                .take(count)
                .map(|outcome| wire::scanned(outcome.clone(), now_ms));
            // If more outcomes wait, they are handed in first.
            let is_behind = left > count;
            let space =
                (self.options.scan.scans_in_flight_max as usize).saturating_sub(self.in_progress).min(SCANS_MAX);
            let request = ScannersExchange {
                name: self.options.name.clone(),
                region: self.options.region.clone(),
                session: self.session,
                oldest: self.oldest,
                first: self.oldest + self.arrived as u64,
                space: if is_behind { 0 } else { space as u32 },
                outcomes: outcomes.collect(),
                settings_known: self.settings_known,
                batch_known: self.batch_known,
            };
            let body = json::to_vec(&request);
            if body.len() <= REQUEST_BODY_BYTES_MAX {
                return body;
            }
            if count == 1 {
                // No server that means well has such an answer.
                let outcome = &mut self.waiting[self.arrived];
                tracing::warn!(scan = outcome.id, "an outcome is too large for the daemon");
                *outcome = wire::failed(outcome.id, outcome.server);
            }
            count = count.div_ceil(2);
        }
    }

    async fn take(&mut self, answer: Scans) -> anyhow::Result<()> {
        let Scans { batch, scans, received, logged, settings, .. } = answer;
        let count =
            |number: u64, waiting: usize, oldest: u64| number.saturating_sub(oldest).min(waiting as u64) as usize;
        self.arrived = count(received, self.waiting.len(), self.oldest);
        self.drop_oldest(count(logged, self.arrived, self.oldest));
        if let Some(settings) = settings {
            let scan = wire::with_settings(&self.options.scan, &settings).map_err(anyhow::Error::msg)?;
            self.scanner.reloader().reload(scan).await.context("the daemon's settings cannot be used")?;
            self.settings_known = Some(settings.hash);
        }
        self.batch_known = batch;
        for task in scans {
            ensure!(self.requests.send(wire::request(task)).await, "the scanner has ended");
            self.in_progress += 1;
        }
        Ok(())
    }
}

impl Links {
    fn new(options: &ScannerOptions) -> anyhow::Result<Links> {
        let all = options.join.iter().map(|join| Link::new(join, options).map(Arc::new));
        let all = all.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Links { named: all.len(), all, current: 0 })
    }

    /// Uses the leader. Returns false if that is no other one, or cannot be used.
    fn follow(&mut self, leader: &str, options: &ScannerOptions) -> bool {
        // The token must not go from an encrypted connection to one that is not.
        let is_secure = |url: &str| url.starts_with("https://");
        if leader.is_empty() || is_secure(&self.all[self.current].url) && !is_secure(leader) {
            return false;
        }
        let Ok(link) = Link::new(leader, options) else { return false };
        let current = self.all.iter().position(|known| known.url == link.url).unwrap_or_else(|| {
            self.all.truncate(self.named);
            self.all.push(Arc::new(link));
            self.named
        });
        std::mem::replace(&mut self.current, current) != current
    }

    /// Uses the next one. Returns whether all were tried.
    fn next(&mut self) -> bool {
        self.current = (self.current + 1) % self.all.len();
        self.current == 0
    }
}

impl Link {
    fn new(join: &str, options: &ScannerOptions) -> anyhow::Result<Link> {
        let join = join.trim_end_matches('/');
        ensure!(
            join.starts_with("https://") || join.starts_with("http://"),
            "--join {join:?}: expected the start of a URL, such as https://stats.example.org"
        );
        let agent = agent::new(options.ca.as_deref(), Some(TIMEOUT))?;
        Ok(Link { agent, url: format!("{join}{PATH}"), token: options.token.clone() })
    }

    fn post(&self, body: &[u8]) -> Result<Scans, ExchangeError> {
        let away = |error: ureq::Error| ExchangeError::Away(error.to_string());
        let request = self.agent.post(&self.url).header("Content-Type", "application/json");
        let request = request.header("Authorization", format!("Bearer {}", self.token));
        let mut response = request.send(body).map_err(away)?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().map_err(away)?;
        if status != StatusCode::OK {
            let problem: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let detail = problem["detail"].as_str().unwrap_or("no reason was given");
            return Err(match status {
                StatusCode::BAD_REQUEST => ExchangeError::Invalid(detail.to_owned()),
                status if status.is_server_error() => ExchangeError::Away(format!("{status}: {detail}")),
                _ => ExchangeError::Refused(format!("{status}: {detail}")),
            });
        }
        let line = text.lines().next().unwrap_or_default();
        serde_json::from_str(line)
            .map_err(|error| ExchangeError::Refused(format!("an answer that is not valid: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_network_gets_smaller_requests_until_they_arrive() {
        let (mut handed_in, mut left, mut failures) = (HandedIn(SCANS_MAX), 2_000_usize, 0);
        while left > 0 {
            let has_arrived = handed_in.0 <= 30;
            (left, failures) =
                if has_arrived { (left.saturating_sub(handed_in.0), failures) } else { (left, failures + 1) };
            handed_in.note(has_arrived);
        }
        assert!((1..200).contains(&failures), "{failures}");
        (0..20).for_each(|_| handed_in.note(false));
        assert_eq!(handed_in, HandedIn(1));
        (0..20).for_each(|_| handed_in.note(true));
        assert_eq!(handed_in, HandedIn(SCANS_MAX));
    }
}
