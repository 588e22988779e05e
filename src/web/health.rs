//! Liveness and readiness, for supervisors and load balancers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::context::WebContext;
use super::problem::ProblemKind;
use crate::api::{Status, json};
use crate::model::calendar::utc;

/// The answer of `/readyz`.
#[derive(Debug, Serialize)]
struct Readiness {
    ready: bool,
    /// Why it is not ready.
    reasons: Vec<Finding>,
    /// Faults that do not make it unready.
    warnings: Vec<Finding>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// Stable, for programs.
    code: &'static str,
    detail: String,
}

/// The process serves requests. The engine is not queried.
pub(super) async fn healthz() -> Response {
    ([(CACHE_CONTROL, "no-store")], "ok\n").into_response()
}

/// Whether the daemon answers requests and can store what it scans.
pub(super) async fn readyz(State(context): State<Arc<WebContext>>) -> Response {
    let (reasons, warnings) = match context.status().await {
        Ok(status) => (store_fault(&status).into_iter().collect(), warnings(&status)),
        Err(problem) => {
            let code = match problem.kind {
                ProblemKind::Starting => "starting",
                ProblemKind::Stopping => "stopping",
                _ => "engine_not_responding",
            };
            (vec![Finding { code, detail: problem.detail }], Vec::new())
        }
    };
    let ready = reasons.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json::to_vec(&Readiness { ready, reasons, warnings });
    let headers = [(CACHE_CONTROL, "no-store"), (axum::http::header::CONTENT_TYPE, "application/json")];
    (status, headers, body).into_response()
}

/// A follower of a cluster is at most a second behind.
const BEHIND_MS_MAX: u64 = 30_000;

/// A write of the log takes milliseconds, or seconds while the disk has much else to do.
const WRITE_AGE_MAX_MS: i64 = 120_000;

fn store_fault(status: &Status) -> Option<Finding> {
    let store = &status.store.as_ref()?.public;
    let since = |at_ms| format!("nothing is written since {}", utc(at_ms));
    let is_stalled = |since_ms: &i64| status.engine.now_ms - since_ms > WRITE_AGE_MAX_MS;
    match (store.paused_since_ms, store.log_writing_since_ms.filter(is_stalled)) {
        (Some(at_ms), _) => {
            Some(Finding { code: "store_paused", detail: format!("the disk is nearly full: {}", since(at_ms)) })
        }
        (None, Some(at_ms)) => Some(Finding { code: "commit_stalled", detail: since(at_ms) }),
        (None, None) => None,
    }
}

/// Messages of faults stay in the log and in `clqd status`: they name hosts and files.
fn warnings(status: &Status) -> Vec<Finding> {
    let archive = status.archive.as_ref().and_then(|archive| archive.public.fault.as_ref());
    let log = status.log.as_ref().and_then(|log| log.public.fault.as_ref());
    let finding = |code, kind: &str, since_ms| Finding { code, detail: format!("{kind}, since {}", utc(since_ms)) };
    let archive = archive.map(|fault| finding("archive_fault", &fault.kind, fault.since_ms));
    let log = log.map(|fault| finding("log_fault", &fault.kind, fault.since_ms));
    let behind_ms = status.cluster.as_ref().and_then(|cluster| cluster.behind_ms);
    let behind = behind_ms.filter(|behind_ms| *behind_ms > BEHIND_MS_MAX).map(|behind_ms| Finding {
        code: "behind",
        detail: format!("the state is that of {} s ago: the log of the cluster cannot be read", behind_ms / 1_000),
    });
    archive.into_iter().chain(log).chain(behind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ArchiveStatus, Fault, PublicArchiveStatus, PublicStoreStatus, StoreStatus};
    use crate::view::EngineStatus;

    #[test]
    fn archive_fault_is_a_warning_and_a_paused_store_a_reason() {
        let fault = Fault { kind: "unreachable".into(), since_ms: 5 };
        let public = PublicArchiveStatus { fault: Some(fault), ..PublicArchiveStatus::default() };
        let fault_message = Some("db.internal: refused".to_owned());
        let archive = Some(ArchiveStatus { public, fault_message, ..ArchiveStatus::default() });
        let public = PublicStoreStatus { paused_since_ms: Some(7), ..PublicStoreStatus::default() };
        let store = Some(StoreStatus { public, ..StoreStatus::default() });
        let status = Status { archive, store, ..Status::default() };
        let detail = "unreachable, since 1970-01-01 00:00:00 UTC".to_owned();
        assert_eq!(warnings(&status), [Finding { code: "archive_fault", detail }]);
        assert_eq!(store_fault(&status).map(|fault| fault.code), Some("store_paused"));
        assert!(store_fault(&Status::default()).is_none() && warnings(&Status::default()).is_empty());
    }

    #[test]
    fn write_that_does_not_end_is_a_reason() {
        let check = |log_writing_since_ms, want| {
            let public = PublicStoreStatus { log_writing_since_ms, ..PublicStoreStatus::default() };
            let store = Some(StoreStatus { public, ..StoreStatus::default() });
            let engine = EngineStatus { now_ms: 1_000_000, ..EngineStatus::default() };
            let status = Status { store, engine, ..Status::default() };
            assert_eq!(store_fault(&status).map(|fault| fault.code), want, "{log_writing_since_ms:?}");
        };
        check(Some(999_999 - WRITE_AGE_MAX_MS), Some("commit_stalled"));
        check(Some(1_000_000 - WRITE_AGE_MAX_MS), None);
        check(None, None);
    }
}
