//! Scan settings: section `[scan]` of the config.

use std::ops::RangeInclusive;
use std::time::Duration;

use cidr::IpCidr;

use crate::proto::{Authentication, DetailLevel};
use crate::scan::request::ScanMode;
use crate::scan::target;

/// Servers answer one query a second and address (DarkPlaces), or one in 0.9 s
/// (QuakeForge). A server gets no further packet within this time.
pub(super) const COOLDOWN: Duration = Duration::from_millis(1_100);

/// The pause between the packets of different protocols that look for the one of a server. A server answers one of
/// them at most, so they do not count for its limit. The default limits of an address make later pauses twice as
/// long; with them, a silent address takes at most ten seconds, connections included.
pub(super) const QUICK_PROBE_PAUSE: Duration = Duration::from_millis(100);

/// Range of a reply timeout, ms.
pub const TIMEOUT_MS: RangeInclusive<u32> = 100..=30_000;

/// Range of the number of TCP connections: each has a file descriptor.
pub const TCP_CONNECTIONS_MAX: RangeInclusive<u32> = 1..=4_096;

/// Range of the lifetime of a resolved host name, s.
pub const DNS_CACHE_TTL_S: RangeInclusive<u32> = 60..=604_800;

/// The settings of the scanner. [`ScanSettings::check`] shows their ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanSettings {
    /// Reply timeout, ms, in [`TIMEOUT_MS`]. Exception mode: three times.
    pub timeout_ms: u32,
    /// Resends after the first packet, 0 to 10. Exception mode: three times.
    pub retries: u32,
    /// Packets a second to all servers together, above 0.
    pub packets_per_second_max: f64,
    /// Packets a second to one IP address, however many servers it has, above 0.
    pub address_packets_per_second_max: f64,
    /// Burst of packets to one IP address after a pause. At least 1.
    pub address_burst_packets: u32,
    /// Packets a second to one /24 (IPv6: /48), above 0.
    pub subnet_packets_per_second_max: f64,
    /// Burst of packets to one /24 or /48 after a pause. At least 1.
    pub subnet_burst_packets: u32,
    /// Sockets for each of IPv4 and IPv6, 1 to 64.
    pub sockets_per_ip_version: u32,
    /// Scans in flight at the same time, throttled ones included, at least 1.
    pub scans_in_flight_max: u32,
    /// TCP connections open at the same time, in [`TCP_CONNECTIONS_MAX`].
    pub tcp_connections_max: u32,
    /// Resolve a host name again after this many seconds, in [`DNS_CACHE_TTL_S`].
    pub dns_cache_ttl_s: u32,
    /// Kernel receive buffer of each socket, bytes; the kernel may grant less.
    pub receive_buffer_bytes: u32,
    /// Scan private, loopback and documentation addresses too.
    pub allow_private: bool,
    /// The limits of an address and of a subnet apply to loopback addresses, too.
    pub limit_loopback: bool,
    /// Weakest authentication of a reply with which its players are ranked.
    pub authentication_min: Authentication,
    /// The details of replies that outcomes have; `None`: none.
    pub details: Option<DetailLevel>,
    /// Share of the scans whose outcomes have the datagrams received, 0 to 1.
    pub capture_share: f64,
    /// Addresses and networks that are never queried.
    pub opt_out: Vec<IpCidr>,
}

impl Default for ScanSettings {
    /// The values of the shipped config.
    fn default() -> Self {
        ScanSettings {
            timeout_ms: 2_000,
            retries: 2,
            packets_per_second_max: 5_000.0,
            address_packets_per_second_max: 5.0,
            address_burst_packets: 10,
            subnet_packets_per_second_max: 50.0,
            subnet_burst_packets: 100,
            sockets_per_ip_version: 2,
            scans_in_flight_max: 20_000,
            tcp_connections_max: 256,
            dns_cache_ttl_s: 3_600,
            receive_buffer_bytes: 8 * 1_024 * 1_024,
            allow_private: false,
            limit_loopback: true,
            authentication_min: Authentication::Address,
            details: None,
            capture_share: 0.0,
            opt_out: Vec::new(),
        }
    }
}

/// A setting is outside its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("scan.{key} = {value} is out of range: it must be {range}")]
pub struct SettingsError {
    pub key: &'static str,
    pub value: f64,
    pub range: String,
}

impl ScanSettings {
    /// Upper limit for scanning this many servers if none replies and no other server
    /// is scanned, ms. The limits for an address, for a subnet and of TCP connections may make it longer.
    pub fn duration_ms_max(&self, mode: ScanMode, servers: u64) -> u64 {
        let probes = target::probes_max(mode) as u64;
        let factor = mode.factor();
        let attempts = u64::from(self.retries * factor) + 1;
        let timeout_ms = u64::from(self.timeout_ms * factor);
        let cooldown_ms = COOLDOWN.as_millis() as u64;
        // A protocol and its fallback.
        let server_ms = 2 * attempts * timeout_ms.max(cooldown_ms) + probes * cooldown_ms;
        let packets = servers * (attempts + probes);
        server_ms.max((packets as f64 * 1_000.0 / self.packets_per_second_max) as u64)
    }

    /// Whether every value is within its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let within = |key, value: f64, min: f64, max: f64| {
            let error = || SettingsError { key, value, range: format!("from {min} to {max}") };
            (min..=max).contains(&value).then_some(()).ok_or_else(error)
        };
        let at_least_1 = |key, value: u32| {
            let error = || SettingsError { key, value: value.into(), range: "at least 1".to_owned() };
            (value > 0).then_some(()).ok_or_else(error)
        };
        let rate = |key, value| within(key, value, 0.001, 10_000_000.0);
        let in_range = |key, value: u32, range: RangeInclusive<u32>| {
            within(key, value.into(), (*range.start()).into(), (*range.end()).into())
        };
        in_range("timeout_ms", self.timeout_ms, TIMEOUT_MS)?;
        in_range("retries", self.retries, 0..=10)?;
        rate("packets_per_second_max", self.packets_per_second_max)?;
        rate("address_packets_per_second_max", self.address_packets_per_second_max)?;
        at_least_1("address_burst_packets", self.address_burst_packets)?;
        rate("subnet_packets_per_second_max", self.subnet_packets_per_second_max)?;
        at_least_1("subnet_burst_packets", self.subnet_burst_packets)?;
        in_range("sockets_per_ip_version", self.sockets_per_ip_version, 1..=64)?;
        at_least_1("scans_in_flight_max", self.scans_in_flight_max)?;
        in_range("tcp_connections_max", self.tcp_connections_max, TCP_CONNECTIONS_MAX)?;
        in_range("dns_cache_ttl_s", self.dns_cache_ttl_s, DNS_CACHE_TTL_S)?;
        within("capture_share", self.capture_share, 0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_outside_its_range_is_refused() {
        assert_eq!(ScanSettings::default().check(), Ok(()));
        let error = ScanSettings { timeout_ms: 5, ..ScanSettings::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "scan.timeout_ms = 5 is out of range: it must be from 100 to 30000");
        let error = ScanSettings { dns_cache_ttl_s: 59, ..ScanSettings::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "scan.dns_cache_ttl_s = 59 is out of range: it must be from 60 to 604800");
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ScanSettings { packets_per_second_max: rate, ..ScanSettings::default() }.check().is_err());
        }
    }
}
