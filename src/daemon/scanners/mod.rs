//! Scanners on other machines: they take scans over HTTP and hand in the outcomes (`clqd scan --join`). The engine
//! thread asks the [`pool`] for each scan which scanner gets it, and for each outcome whether it is to be applied.

#![cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "who was heard when, and waits; never the time of an outcome")
)]

mod pool;
pub mod process;
mod wire;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use self::pool::Pool;
use super::engine_thread::EngineHandle;
use crate::api::requests::{ScannerRow, ScannersExchange, Scans};
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
    /// Scanners that were lost.
    lost: AtomicU64,
    /// There may be scans for a scanner that waits.
    given: Notify,
}

impl Scanners {
    pub fn new(own_region: &str, confirm_miss_by: u32) -> Scanners {
        Scanners {
            pool: Mutex::new(Pool::new(own_region, confirm_miss_by as usize)),
            is_alone: AtomicBool::new(true),
            start: Instant::now(),
            lost: AtomicU64::new(0),
            given: Notify::new(),
        }
    }

    pub fn set_confirm_miss_by(&self, regions: u32) {
        self.pool().set_confirm_miss_by(regions as usize);
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

    /// A scanner hands in outcomes and takes scans, for which it waits a moment.
    pub async fn exchange(
        &self,
        engine: &EngineHandle,
        settings: &ScanSettings,
        request: ScannersExchange,
    ) -> Result<Scans, ApiError> {
        let ScannersExchange { name, region, session, space, outcomes, settings_known } = request;
        let heard = self.pool().hear(self.now_ms(), &name, &region, session, space as usize);
        heard.map_err(|why| ApiError::new(ErrorCode::Refused, why))?;
        if self.is_alone.swap(false, Ordering::AcqRel) {
            tracing::info!(name, region, "a scanner has joined");
        }
        let outcomes = outcomes.into_iter().map(wire::outcome).collect::<Result<Vec<_>, _>>();
        let outcomes = outcomes.map_err(|why| ApiError::new(ErrorCode::BadRequest, why))?;
        let applied: Vec<_> = outcomes
            .into_iter()
            .filter_map(|(age_ms, outcome)| Some((age_ms, self.judge(Some(&name), outcome)?)))
            .collect();
        if !applied.is_empty() || self.has_own() {
            engine.call(move |thread| thread.apply_remote_outcomes(applied)).await?;
        }
        let settings = wire::settings(settings);
        let settings = (settings_known != Some(settings.hash)).then_some(settings);
        let deadline = self.now_ms() + WAIT_MAX.as_millis() as i64;
        loop {
            let given = self.given.notified();
            let scans = self.pool().take(&name);
            let wait_ms = deadline - self.now_ms();
            if !scans.is_empty() || wait_ms <= 0 || space == 0 {
                let scans = scans.into_iter().map(wire::task).collect();
                return Ok(Scans { scans, settings });
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
            let (lost, is_alone) = {
                let mut pool = self.pool();
                (pool.tick(self.now_ms()), pool.is_alone())
            };
            for name in lost {
                self.lost.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(name, "a scanner is lost: others get its scans");
            }
            self.is_alone.store(is_alone, Ordering::Release);
            self.given.notify_waiters();
            // The engine thread sends what is for the own scanner.
            if self.has_own() && engine.call(|_| Ok(())).await.is_err() {
                return;
            }
        }
    }

    /// The scanners that have joined.
    pub fn rows(&self) -> Vec<ScannerRow> {
        let now_ms = self.now_ms();
        let shown = self.pool().shown().into_iter().map(|scanner| ScannerRow {
            name: scanner.name,
            region: scanner.region,
            heard_ago_ms: (now_ms - scanner.heard_ms).max(0) as u64,
            in_hand: scanner.counts.in_hand,
            answered: scanner.counts.answered,
            missed: scanner.counts.missed,
        });
        shown.collect()
    }

    /// Counters since the start, by name.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (given_again, misses_refuted) = self.pool().counts();
        let lost = self.lost.load(Ordering::Relaxed);
        [("given_again", given_again), ("misses_refuted", misses_refuted), ("lost", lost)].into_iter()
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
