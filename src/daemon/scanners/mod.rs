//! Scanners on other machines: they take scans over HTTP and hand in the outcomes (`clqd scan --join`). The engine
//! thread asks the [`pool`] for each scan which scanner gets it, and for each outcome whether it is to be applied.

#![cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "when scanners were last heard, and time-outs; never the time of an outcome"
    )
)]

pub(super) mod pool;
pub mod process;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use self::pool::{Greeting, Pool};
use super::engine_thread::{EngineHandle, HandedIn};
use crate::api::ScannerRow;
use crate::api::requests::{ScannedServer, ScannersExchange, Scans};
use crate::api::{ApiError, ErrorCode};
use crate::scan::{ScanOutcome, ScanRequest, ScanSettings};

/// How long a scanner waits for scans at most.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// How often it is checked whether scanners are there.
const TICK: Duration = Duration::from_millis(500);

/// See the file header.
#[derive(Debug)]
pub(super) struct Scanners {
    pool: Mutex<Pool>,
    /// No scanner has joined: the pool need not be asked.
    is_alone: AtomicBool,
    start: Instant,
    /// There may be scans for a scanner that waits.
    given: Notify,
}

impl Scanners {
    pub fn new(own_region: &str, confirm_miss_by: u32) -> Scanners {
        Scanners {
            pool: Mutex::new(Pool::new(own_region, confirm_miss_by as usize)),
            is_alone: AtomicBool::new(true),
            start: Instant::now(),
            given: Notify::new(),
        }
    }

    pub fn set_confirm_miss_by(&self, regions: u32) {
        self.pool().set_confirm_miss_by(regions as usize);
    }

    /// Scans are numbered from here on, above those of earlier processes.
    pub fn number_scans_from(&self, id: u64) {
        self.pool().number_scans_from(self.now_ms(), id);
    }

    /// Gives a scan to a scanner. Returns it if that is the own one.
    pub fn assign(&self, request: ScanRequest) -> Option<ScanRequest> {
        if self.is_alone() {
            return Some(request);
        }
        let own = self.pool().assign(self.now_ms(), request);
        if own.is_none() {
            self.given.notify_waiters();
        }
        own
    }

    /// While the queue of the own scanner is full: gives the next scans to the others, as many as they can take.
    pub fn assign_to_others(&self, next: impl FnMut() -> Option<ScanRequest>) {
        if !self.is_alone() {
            self.pool().assign_to_others(self.now_ms(), next);
            self.given.notify_waiters();
        }
    }

    /// The next scan for the own scanner that another one has given back.
    pub fn take_own(&self) -> Option<ScanRequest> {
        if self.is_alone() { None } else { self.pool().take_own() }
    }

    pub fn has_own(&self) -> bool {
        !self.is_alone() && self.pool().has_own()
    }

    /// Whether the outcome of the own scanner is to be applied; otherwise another region is asked first.
    pub fn judge_own(&self, outcome: ScanOutcome) -> Option<ScanOutcome> {
        if self.is_alone() { Some(outcome) } else { self.judge(None, outcome) }
    }

    fn judge(&self, by: Option<&str>, outcome: ScanOutcome) -> Option<ScanOutcome> {
        let applied = self.pool().judge(self.now_ms(), by, outcome);
        if applied.is_none() {
            self.given.notify_waiters();
        }
        applied
    }

    /// A scanner hands in outcomes and takes scans, for which it waits a moment. `unix_now_ms`: the time at which the request
    /// arrived.
    pub async fn exchange(
        &self,
        engine: &EngineHandle,
        settings: &ScanSettings,
        unix_now_ms: i64,
        request: ScannersExchange,
    ) -> Result<Scans, ApiError> {
        let ScannersExchange { name, region, session, space, batch_known, oldest, first, outcomes, settings_known } =
            request;
        let exchange = {
            let mut pool = self.pool();
            let greeting = Greeting { name: &name, region: &region, session, space: space as usize, batch_known };
            let begun = pool.begin(self.now_ms(), &greeting).map_err(|why| ApiError::new(ErrorCode::Refused, why))?;
            if self.is_alone.swap(false, Ordering::AcqRel) {
                tracing::info!(name, region, "a scanner has joined");
            }
            begun
        };
        // Without space it gets no scans.
        let wait = if space > 0 { WAIT_MAX } else { Duration::ZERO };
        let taken = async {
            if !outcomes.is_empty() || self.has_own() {
                let numbers = first..first + outcomes.len() as u64;
                let received = self.pool().receive(&name, session, oldest, numbers);
                // Some before them are missing: all are handed in again.
                let outcomes = if received.is_some() { outcomes } else { Vec::new() };
                let judged = self.judge_all(unix_now_ms, &name, outcomes);
                let (scanner, handed_in) = (name.clone(), HandedIn { session, received: received.unwrap_or_default() });
                engine.call(move |thread| thread.apply_remote_outcomes(judged, scanner, handed_in)).await?;
            }
            Ok::<_, ApiError>(self.wait_for_scans(&name, session, exchange, wait).await)
        };
        let taken = taken.await;
        let (received, logged) = {
            let mut pool = self.pool();
            pool.end(self.now_ms(), &name, session);
            pool.progress(&name, session)
        };
        let (batch, scans) = taken?;
        let settings = wire::settings(settings);
        let settings = (settings_known != Some(settings.hash)).then_some(settings);
        let scans = scans.into_iter().map(wire::task).collect();
        Ok(Scans { batch, scans, received, logged, settings, leader: None })
    }

    /// The outcomes that a scanner has handed in are in the log.
    pub fn note_logged(&self, scanner: &str, handed_in: HandedIn) {
        self.pool().note_logged(scanner, handed_in.session, handed_in.received);
    }

    /// What is to be applied of the outcomes of a scanner, with their times.
    fn judge_all(&self, unix_now_ms: i64, name: &str, outcomes: Vec<ScannedServer>) -> Vec<ScanOutcome> {
        let judged = outcomes.into_iter().map(wire::outcome).filter_map(|(age_ms, outcome)| {
            let mut outcome = self.judge(Some(name), outcome)?;
            let t_ms = unix_now_ms - age_ms;
            match &mut outcome.result {
                Ok(snapshot) => snapshot.t_ms = t_ms,
                Err(miss) => miss.t_ms = t_ms,
            }
            outcome.sent_ms = outcome.sent_ms.map(|sent_age_ms| unix_now_ms - sent_age_ms);
            Some(outcome)
        });
        judged.collect()
    }

    async fn wait_for_scans(&self, name: &str, session: u64, exchange: u64, wait: Duration) -> (u64, Vec<ScanRequest>) {
        let deadline_ms = self.now_ms() + wait.as_millis() as i64;
        loop {
            let given = self.given.notified();
            let (batch, scans) = self.pool().take(name, session, exchange);
            let wait_ms = deadline_ms - self.now_ms();
            if !scans.is_empty() || wait_ms <= 0 {
                return (batch, scans);
            }
            _ = timeout(Duration::from_millis(wait_ms as u64), given).await;
        }
    }

    /// Gives the scans of lost scanners to others, until the daemon stops.
    pub async fn watch(self: Arc<Self>, engine: EngineHandle) {
        loop {
            sleep(TICK).await;
            if self.is_alone() {
                continue;
            }
            let lost = {
                let mut pool = self.pool();
                let lost = pool.tick(self.now_ms());
                // While the pool is locked, nobody joins.
                self.is_alone.store(pool.is_alone(), Ordering::Release);
                lost
            };
            for name in lost {
                tracing::warn!(name, "a scanner is lost: others get its scans");
            }
            self.given.notify_waiters();
            // The engine thread sends what is for the own scanner.
            if self.has_own() && engine.call(|_| Ok(())).await.is_err() {
                return;
            }
        }
    }

    /// The scanners that have joined.
    pub fn rows(&self) -> Vec<ScannerRow> {
        self.pool().rows(self.now_ms())
    }

    /// Counters since the start, by name.
    pub fn counters(&self) -> [(&'static str, u64); 4] {
        self.pool().counters()
    }

    fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Acquire)
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        self.start.elapsed().as_millis() as i64
    }
}
