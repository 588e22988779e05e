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
        Ok(status) => (store_fault(&status), warnings(&status)),
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

fn store_fault(status: &Status) -> Vec<Finding> {
    let paused_since_ms = status.store.as_ref().and_then(|store| store.paused_since_ms);
    let finding = |since_ms| Finding {
        code: "store_paused",
        detail: format!("the disk is nearly full: nothing is written since {since_ms} (Unix ms)"),
    };
    paused_since_ms.map(finding).into_iter().collect()
}

/// Messages of faults stay in the log and in `clqd status`: they name hosts and files.
fn warnings(status: &Status) -> Vec<Finding> {
    let archive = status.archive.as_ref().and_then(|archive| archive.fault.as_ref());
    let scan_log = status.scan_log.as_ref().and_then(|scan_log| scan_log.fault.as_ref());
    let finding = |code, kind: &str, since_ms| Finding { code, detail: format!("{kind}, since {since_ms} (Unix ms)") };
    let archive = archive.map(|fault| finding("archive_fault", &fault.kind, fault.since_ms));
    let scan_log = scan_log.map(|fault| finding("scan_log_fault", &fault.kind, fault.since_ms));
    archive.into_iter().chain(scan_log).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ArchiveFault, ArchiveStatus, StoreStatus};

    #[test]
    fn archive_fault_is_a_warning_and_a_paused_store_a_reason() {
        let fault = ArchiveFault { kind: "unreachable".into(), since_ms: 5, message: "db.internal: refused".into() };
        let archive = Some(ArchiveStatus { fault: Some(fault), ..ArchiveStatus::default() });
        let store = Some(StoreStatus { paused_since_ms: Some(7), ..StoreStatus::default() });
        let status = Status { archive, store, ..Status::default() };
        let detail = "unreachable, since 5 (Unix ms)".to_owned();
        assert_eq!(warnings(&status), [Finding { code: "archive_fault", detail }]);
        assert_eq!(store_fault(&status)[0].code, "store_paused");
        assert!(store_fault(&Status::default()).is_empty() && warnings(&Status::default()).is_empty());
    }
}
