//! The rate limits of simulated servers: those of the real programs (docs/protocols.md).

use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota};

use crate::fleet::protocol::Protocol;

/// Queries between two removals of idle entries. Bounds the memory: each adds at most one.
const QUERIES_PER_CLEANUP: u32 = 200_000;

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    pub burst: NonZeroU32,
    /// Replies a second after the burst, above 0.
    pub per_second: f64,
}

/// The limits of one server. A reply needs a token of each.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// For each address of a client.
    pub client: Option<TokenBucket>,
    /// For all clients together.
    pub server: Option<TokenBucket>,
    pub excess: Excess,
}

/// What a server does with a query above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It does not reply.
    Ignored,
    /// It replies without the list of players.
    WithoutList,
}

/// The limit of the servers of a protocol; `None`: they have none.
pub type RateLimitOf = fn(Protocol) -> Option<RateLimit>;

impl RateLimit {
    /// The default limit of the most common server program of a protocol.
    ///
    /// None is known for GameSpy 1 to 3, Unreal 2, All-Seeing Eye, SA-MP, Doom 3, Quake Wars, Teeworlds
    /// 0.7 and Minecraft. Servers of DarkPlaces games get the limit of ioquake3. In Teeworlds 0.6
    /// the limit is that of DDNet; the original server has none.
    pub fn of(protocol: Protocol) -> Option<RateLimit> {
        let bucket = |burst, per_second| {
            Some(TokenBucket { burst: NonZeroU32::new(burst).expect("a burst above zero"), per_second })
        };
        let excess = Excess::Ignored;
        match protocol {
            // ioquake3: ten, then one a second for an address and ten a second in total.
            Protocol::Quake3 => Some(RateLimit { client: bucket(10, 1.0), server: bucket(10, 10.0), excess }),
            // QuakeForge: one in 0.9 s.
            Protocol::QuakeWorld => Some(RateLimit { client: bucket(1, 1.0 / 0.9), server: None, excess }),
            // Q2PRO: `sv_status_limit`.
            Protocol::Quake2 => Some(RateLimit { client: None, server: bucket(15, 15.0), excess }),
            // `sv_max_queries_sec` 3 and its global form 60, means of 30 s.
            Protocol::Source => Some(RateLimit { client: bucket(90, 3.0), server: bucket(1_800, 60.0), excess }),
            // `sv_queryignoretime`: an address is ignored for ten seconds after a reply.
            Protocol::Zandronum => Some(RateLimit { client: bucket(1, 0.1), server: None, excess }),
            // `PING_FLOOD_TIME`, for an address and in total.
            Protocol::Armagetron => Some(RateLimit { client: bucket(10, 1.0), server: bucket(100, 10.0), excess }),
            // `sv_server_info_per_second`.
            Protocol::Teeworlds => {
                Some(RateLimit { client: None, server: bucket(50, 50.0), excess: Excess::WithoutList })
            }
            _ => None,
        }
    }

    /// Servers without a limit.
    pub fn none(_: Protocol) -> Option<RateLimit> {
        None
    }
}

/// Applies a limit to the servers of one protocol.
pub(super) struct RateLimiter {
    clients: Option<DefaultKeyedRateLimiter<(u32, Ipv4Addr)>>,
    servers: Option<DefaultKeyedRateLimiter<u32>>,
    excess: Excess,
    queries: u32,
}

impl RateLimiter {
    pub(super) fn new(limit: RateLimit) -> RateLimiter {
        RateLimiter {
            clients: limit.client.map(|bucket| DefaultKeyedRateLimiter::keyed(quota(bucket))),
            servers: limit.server.map(|bucket| DefaultKeyedRateLimiter::keyed(quota(bucket))),
            excess: limit.excess,
            queries: 0,
        }
    }

    pub(super) fn excess(&self) -> Excess {
        self.excess
    }

    /// Whether a server may reply to a client now.
    pub(super) fn allows(&mut self, server: u32, client: Ipv4Addr) -> bool {
        self.queries += 1;
        if self.queries == QUERIES_PER_CLEANUP {
            self.queries = 0;
            self.clients.iter().for_each(DefaultKeyedRateLimiter::retain_recent);
            self.servers.iter().for_each(DefaultKeyedRateLimiter::retain_recent);
        }
        let allows_client = self.clients.as_ref().is_none_or(|buckets| buckets.check_key(&(server, client)).is_ok());
        // As in ioquake3, a query above the limit of its client takes no token of the server.
        allows_client && self.servers.as_ref().is_none_or(|buckets| buckets.check_key(&server).is_ok())
    }
}

fn quota(bucket: TokenBucket) -> Quota {
    let period = Duration::from_secs_f64(1.0 / bucket.per_second);
    Quota::with_period(period).expect("a period above zero").allow_burst(bucket.burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the queries from these clients one server answers at once.
    fn answered(limit: RateLimit, clients: &[u32]) -> Vec<bool> {
        let mut limiter = RateLimiter::new(limit);
        clients.iter().map(|&client| limiter.allows(1, Ipv4Addr::from_bits(client))).collect()
    }

    #[test]
    fn limits_for_a_client_and_for_the_server_both_apply() {
        // The rate is so slow that no token is refilled during the test.
        let bucket = |burst| NonZeroU32::new(burst).map(|burst| TokenBucket { burst, per_second: 1e-6 });
        let limit = |client, server| RateLimit { client, server, excess: Excess::Ignored };
        assert_eq!(answered(limit(bucket(2), None), &[1, 1, 1, 2]), [true, true, false, true]);
        assert_eq!(answered(limit(None, bucket(2)), &[1, 2, 3, 1]), [true, true, false, false]);
        // The third query of client 1 takes no token of the server.
        assert_eq!(answered(limit(bucket(2), bucket(3)), &[1, 1, 1, 2, 2]), [true, true, false, true, false]);
    }
}
