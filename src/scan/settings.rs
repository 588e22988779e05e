//! Scan settings: section `[scan]` of the config.

use serde::Deserialize;

use super::ScanMode;
use super::target::{self, Cidr};
use crate::scan::event_loop::{COOLDOWN, EXCEPTION_FACTOR};

/// Section `[scan]`. Every key is required: the shipped config is the default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanSettings {
    /// Reply time-out, ms, 100 to 60,000. Exception mode: three times.
    pub timeout_ms: u32,
    /// Resends after the first packet, 0 to 10. Exception mode: three times.
    pub retries: u32,
    /// Packets a second to all servers together, above 0.
    pub per_second_max: f64,
    /// Packets a second to one IP address, however many servers it has, above 0.
    pub per_address_per_second_max: f64,
    /// Burst of packets to one IP address after a pause. At least 1.
    pub per_address_burst: u32,
    /// Packets a second to one /24 (IPv6: /48), above 0.
    pub per_subnet_per_second_max: f64,
    /// Burst of packets to one /24 or /48 after a pause. At least 1.
    pub per_subnet_burst: u32,
    /// Sockets for each of IPv4 and IPv6, 1 to 64.
    pub sockets: u32,
    /// Scans in flight at the same time, throttled ones included, at least 1.
    pub in_flight_max: u32,
    /// Resolve a host name again after this many seconds, at least 1.
    pub resolve_ttl_s: u32,
    /// Kernel receive buffer of each socket, bytes; the kernel may grant less.
    pub receive_buffer_bytes: u32,
    /// Scan private, loopback and documentation addresses too.
    pub allow_private: bool,
    /// Addresses and networks that are never queried.
    pub opt_out: Vec<Cidr>,
}

impl Default for ScanSettings {
    /// The values of the shipped config.
    fn default() -> Self {
        ScanSettings {
            timeout_ms: 2_000,
            retries: 2,
            per_second_max: 5_000.0,
            per_address_per_second_max: 5.0,
            per_address_burst: 10,
            per_subnet_per_second_max: 50.0,
            per_subnet_burst: 100,
            sockets: 2,
            in_flight_max: 20_000,
            resolve_ttl_s: 3_600,
            receive_buffer_bytes: 8 * 1_024 * 1_024,
            allow_private: false,
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
    pub range: &'static str,
}

impl ScanSettings {
    /// Upper limit for scanning this many servers if none replies and no other server
    /// is scanned, ms. The limits for an address and for a subnet may make it longer.
    pub fn duration_ms_max(&self, mode: ScanMode, servers: u64) -> u64 {
        let targets = target::targets_max(mode) as u64;
        let factor = match mode {
            ScanMode::Normal => 1,
            ScanMode::Exception => EXCEPTION_FACTOR,
        };
        let attempts = u64::from(self.retries * factor) + 1;
        let timeout_ms = u64::from(self.timeout_ms * factor);
        let cooldown_ms = COOLDOWN.as_millis() as u64;
        let target_ms = attempts * timeout_ms.max(cooldown_ms);
        let packets = servers * targets * attempts;
        (targets * target_ms).max((packets as f64 * 1_000.0 / self.per_second_max) as u64)
    }

    /// Whether every value is within its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let rate_ok = |rate: f64| rate.is_finite() && (0.001..=10_000_000.0).contains(&rate);
        let rate = "from 0.001 to 10000000";
        let checks = [
            ("timeout_ms", f64::from(self.timeout_ms), (100..=60_000).contains(&self.timeout_ms), "from 100 to 60000"),
            ("retries", f64::from(self.retries), self.retries <= 10, "from 0 to 10"),
            ("per_second_max", self.per_second_max, rate_ok(self.per_second_max), rate),
            (
                "per_address_per_second_max",
                self.per_address_per_second_max,
                rate_ok(self.per_address_per_second_max),
                rate,
            ),
            ("per_address_burst", f64::from(self.per_address_burst), self.per_address_burst > 0, "at least 1"),
            (
                "per_subnet_per_second_max",
                self.per_subnet_per_second_max,
                rate_ok(self.per_subnet_per_second_max),
                rate,
            ),
            ("per_subnet_burst", f64::from(self.per_subnet_burst), self.per_subnet_burst > 0, "at least 1"),
            ("sockets", f64::from(self.sockets), (1..=64).contains(&self.sockets), "from 1 to 64"),
            ("in_flight_max", f64::from(self.in_flight_max), self.in_flight_max > 0, "at least 1"),
            ("resolve_ttl_s", f64::from(self.resolve_ttl_s), self.resolve_ttl_s > 0, "at least 1"),
        ];
        match checks.into_iter().find(|check| !check.2) {
            Some((key, value, _, range)) => Err(SettingsError { key, value, range }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_outside_its_range_is_refused() {
        assert_eq!(ScanSettings::default().check(), Ok(()));
        let error = ScanSettings { timeout_ms: 5, ..ScanSettings::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "scan.timeout_ms = 5 is out of range: it must be from 100 to 60000");
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ScanSettings { per_second_max: rate, ..ScanSettings::default() }.check().is_err());
        }
    }
}
