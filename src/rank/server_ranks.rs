//! The ranks of servers in a week (docs/rules.md section 10).

use crate::model::ServerKey;

/// Servers in order of player-milliseconds of a week, descending, then smaller key, each
/// with its rank from 1. A server without any has no rank (docs/rules.md section 10).
pub fn server_ranks(mut player_ms: Vec<(ServerKey, u64)>) -> Vec<(ServerKey, u32)> {
    player_ms.retain(|&(_, ms)| ms > 0);
    player_ms.sort_unstable_by_key(|&(server, ms)| (std::cmp::Reverse(ms), server));
    player_ms.iter().zip(1..).map(|(&(server, _), rank)| (server, rank)).collect()
}
