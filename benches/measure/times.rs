//! Shared by the benches of a running engine: durations and delays, and the addresses of
//! the servers.

use std::time::Duration;

use clqd::model::ServerUrl;
use clqd::model::url::UrlError;

/// An outcome applied later than this after it was due counts as late.
pub const LATE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct Durations(pub Vec<Duration>);

impl Durations {
    /// Number, median, 99 % and maximum in ms, and how many were late.
    pub fn print(mut self, what: &str) {
        self.0.sort_unstable();
        let Some(last) = self.0.len().checked_sub(1) else { return };
        let ms = |share: f64| self.0[(last as f64 * share) as usize].as_secs_f64() * 1e3;
        let late = self.0.iter().filter(|time| **time > LATE).count();
        println!("{what:<28} {:>8} {:>8.1} {:>8.1} {:>8.1} {late:>8}", self.0.len(), ms(0.5), ms(0.99), ms(1.0));
    }
}

pub fn url(server: u32) -> Result<ServerUrl, UrlError> {
    let (a, b, c) = (server >> 16, server >> 8 & 255, server & 255);
    ServerUrl::parse(&format!("quake3://10.{a}.{b}.{c}:27960"))
}
