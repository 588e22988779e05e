//! Round-trip times of servers, and the timeouts that follow from them.

use std::time::Duration;

use crate::model::ServerKey;
use crate::scan::settings::COOLDOWN;

/// A reply later than this many usual round trips is not expected any more.
const ROUND_TRIPS_MAX: u32 = 4;

/// The smoothed round-trip time of each server, as far as it has replied since the start. Takes 2
/// bytes for each server.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// By server key, ms; 0: unknown.
    ms: Vec<u16>,
}

impl RoundTrips {
    /// A server has replied after this time.
    pub fn record(&mut self, server: ServerKey, rtt_ms: u32) {
        let index = server.0 as usize;
        if index >= self.ms.len() {
            self.ms.resize(index + 1, 0);
        }
        let seen = rtt_ms.clamp(1, u32::from(u16::MAX)) as u16;
        let smoothed = &mut self.ms[index];
        // A slower reply counts at once, so that the next one is waited for; a faster one by 1/8.
        *smoothed = if seen >= *smoothed { seen } else { *smoothed - (*smoothed - seen).div_ceil(8) };
    }

    /// Whether a server has replied since the start.
    pub fn is_known(&self, server: ServerKey) -> bool {
        self.ms.get(server.0 as usize).is_some_and(|&ms| ms > 0)
    }

    /// How long to wait for a reply of a server: the time of four round trips, between the time
    /// before a packet may be repeated and twice the timeout of the settings. `timeout` for a
    /// server that has not replied yet.
    pub fn timeout(&self, server: ServerKey, timeout: Duration) -> Duration {
        match self.ms.get(server.0 as usize) {
            None | Some(0) => timeout,
            Some(&ms) => (ROUND_TRIPS_MAX * Duration::from_millis(ms.into())).clamp(COOLDOWN.min(timeout), 2 * timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_follows_the_round_trip_time_within_its_limits() {
        let ms = |ms| Duration::from_millis(ms);
        let mut round_trips = RoundTrips::default();
        let (near, far, unknown) = (ServerKey(1), ServerKey(7), ServerKey(3));
        round_trips.record(near, 40);
        round_trips.record(far, 600);
        let timeout = |round_trips: &RoundTrips, server| round_trips.timeout(server, ms(2_000));
        assert_eq!([near, far, unknown].map(|server| timeout(&round_trips, server)), [ms(1_100), ms(2_400), ms(2_000)]);
        assert_eq!(timeout(&round_trips, ServerKey(99)), ms(2_000));
        round_trips.record(near, 900);
        assert_eq!(timeout(&round_trips, near), ms(3_600), "a slow reply counts at once");
        round_trips.record(near, 5_000_000);
        assert_eq!(timeout(&round_trips, near), ms(4_000));
        (0..100).for_each(|_| round_trips.record(near, 0));
        assert_eq!(timeout(&round_trips, near), ms(1_100));
        assert_eq!(round_trips.timeout(near, ms(300)), ms(300), "never less than a shorter setting");
    }
}
