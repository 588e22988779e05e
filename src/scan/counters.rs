//! Counters of the scan engine, readable from any thread at any time. They only
//! grow, from the start of the process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use strum::VariantArray;

use crate::proto::IgnoreReason;
use crate::scan::outcome::MissReason;

macro_rules! define_counters {
    ($($(#[$doc:meta])* $field:ident),+ $(,)?) => {
        /// The counters.
        #[derive(Debug)]
        pub struct ScanCounters {
            $($(#[$doc])* pub $field: Counter,)+
            ignored: Vec<Counter>,
            misses: Vec<Counter>,
        }

        /// The counters' values at one time.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct ScanCounterValues {
            $($(#[$doc])* pub $field: u64,)+
            /// Unusable datagrams from queried addresses, by `proto::IgnoreReason`.
            pub ignored: BTreeMap<&'static str, u64>,
            /// Misses, by `MissReason`.
            pub misses: BTreeMap<&'static str, u64>,
        }

        impl Default for ScanCounters {
            fn default() -> Self {
                ScanCounters {
                    $($field: Counter::default(),)+
                    ignored: IgnoreReason::VARIANTS.iter().map(|_| Counter::default()).collect(),
                    misses: MissReason::VARIANTS.iter().map(|_| Counter::default()).collect(),
                }
            }
        }

        impl ScanCounters {
            /// All counters; those by reason only if they are not zero.
            pub fn values(&self) -> ScanCounterValues {
                ScanCounterValues {
                    $($field: self.$field.get(),)+
                    ignored: by_reason(IgnoreReason::VARIANTS, &self.ignored),
                    misses: by_reason(MissReason::VARIANTS, &self.misses),
                }
            }
        }
    };
}

define_counters!(
    /// Requests accepted.
    requests,
    /// Scans that ended with a full or a partial snapshot.
    snapshots,
    partials,
    /// Full lists made partial, because the authentication of the reply is too weak.
    unauthenticated,
    /// Scans that a shutdown interrupted.
    cancelled,
    packets_sent,
    bytes_sent,
    /// Packets that the system did not send.
    send_errors,
    /// Requests sent again.
    resends,
    packets_received,
    bytes_received,
    /// Datagrams from addresses without a pending request, or received on another
    /// socket than the one that sent it.
    unsolicited,
    /// ICMP errors received: port unreachable, and others.
    icmp_port_unreachable,
    icmp_other,
    /// Requests throttled by the limit of an address, of a subnet, or in total.
    throttled_address,
    throttled_subnet,
    throttled_global,
    /// Scans that waited for another scan of the same address and port.
    address_conflicts,
    /// Hosts of which several servers fell silent together: probably a filter drops our packets.
    silent_hosts,
    /// Scans ended early, because incomplete replies took too much memory in total.
    incomplete_replies_dropped,
    /// TCP connections opened.
    connections,
    /// Requests that waited for a connection: `scan.tcp_connections_max` were open.
    connection_waits,
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    kernel_drops,
    resolved,
    resolve_failures,
);

/// The counters that are not zero, by name.
fn by_reason<R: Copy + Into<&'static str>>(reasons: &[R], counters: &[Counter]) -> BTreeMap<&'static str, u64> {
    let values = reasons.iter().map(|&reason| reason.into()).zip(counters.iter().map(Counter::get));
    values.filter(|&(_, value)| value > 0).collect()
}

impl ScanCounters {
    pub fn ignored(&self, reason: IgnoreReason) -> &Counter {
        &self.ignored[reason as usize]
    }

    pub fn miss(&self, reason: MissReason) -> &Counter {
        &self.misses[reason as usize]
    }
}

/// A monotonic counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Monitoring reads these names.
    #[test]
    fn counter_names_are_those_of_the_status() {
        let json = serde_json::to_value(ScanCounterValues::default()).unwrap();
        let names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "address_conflicts",
                "bytes_received",
                "bytes_sent",
                "cancelled",
                "connection_waits",
                "connections",
                "icmp_other",
                "icmp_port_unreachable",
                "ignored",
                "incomplete_replies_dropped",
                "kernel_drops",
                "misses",
                "packets_received",
                "packets_sent",
                "partials",
                "requests",
                "resends",
                "resolve_failures",
                "resolved",
                "send_errors",
                "silent_hosts",
                "snapshots",
                "throttled_address",
                "throttled_global",
                "throttled_subnet",
                "unauthenticated",
                "unsolicited",
            ]
        );
        let reasons: Vec<_> = MissReason::VARIANTS.iter().map(|reason| reason.name()).collect();
        assert_eq!(
            reasons,
            [
                "timeout",
                "malformed",
                "refused",
                "unresolved",
                "lookup_failed",
                "not_public",
                "opted_out",
                "unsupported_scheme",
                "send_failed",
                "receive_overflow",
            ]
        );
        assert_eq!(<&str>::from(IgnoreReason::UnexpectedMessage), "unexpected_message");
    }

    #[test]
    fn each_reason_has_a_counter_with_its_name() {
        let counts = ScanCounters::default();
        for &reason in IgnoreReason::VARIANTS {
            counts.ignored(reason).add(reason as u64 + 1);
        }
        for &reason in MissReason::VARIANTS {
            counts.miss(reason).increment();
        }
        let view = counts.values();
        assert_eq!(view.ignored["not_a_reply"], 1);
        assert_eq!(view.ignored.len(), IgnoreReason::VARIANTS.len());
        assert_eq!(view.misses.len(), MissReason::VARIANTS.len());
        assert_eq!(ScanCounters::default().values(), ScanCounterValues::default());
    }
}
