//! `/metrics`: the status of the daemon and the counters of the web interface for Prometheus.

mod daemon;
pub(super) mod endpoint;
mod format;

use std::time::Duration;

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::connections::ConnectionCounters;

/// Upper bounds of the durations of requests, s. The engine answers within some ms; the last
/// bound is twice its timeout.
const DURATION_BUCKETS_S: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

/// Names and values.
type Labels = Vec<(&'static str, String)>;

/// Counters of the web interface since the daemon started.
#[derive(Debug)]
pub(super) struct WebMetrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    pub connections: Gauge,
    pub connection_counters: ConnectionCounters,
}

impl Default for WebMetrics {
    fn default() -> WebMetrics {
        let mut registry = Registry::with_prefix("clqd");
        let requests = Family::default();
        let durations = Family::new_with_constructor((|| Histogram::new(DURATION_BUCKETS_S)) as fn() -> Histogram);
        let (connections, connection_counters) = (Gauge::default(), ConnectionCounters::default());
        let help = "Requests of the web interface, by route and status";
        registry.register("web_requests", help, requests.clone());
        let help = "Time from the head of a request to the head of its answer, by route, s";
        registry.register("web_request_duration_seconds", help, durations.clone());
        registry.register("web_connections", "Open connections of the web interface", connections.clone());
        let help = "Connections that were refused because too many were open";
        registry.register("web_connections_refused", help, connection_counters.refused.clone());
        let help = "Connections without a request that were closed to make place for others";
        registry.register("web_idle_connections_closed", help, connection_counters.idle_closed.clone());
        WebMetrics { registry, requests, durations, connections, connection_counters }
    }
}

impl WebMetrics {
    /// Counts an answered request. Routes are patterns, so their number is bounded.
    pub fn count(&self, route: String, status: StatusCode, duration: Duration) {
        self.durations.get_or_create(&vec![("route", route.clone())]).observe(duration.as_secs_f64());
        self.requests.get_or_create(&vec![("route", route), ("status", status.as_str().to_owned())]).inc();
    }
}
