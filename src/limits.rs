//! Every maximum in clqd, each with the reason for its size.
//!
//! Limits that an admin can change are in the configuration instead. These constants bound
//! how much memory and storage external input can make clqd use.

use crate::model::calendar::WEEK_MS;

/// Longest server URL, bytes. A DNS name has at most 253; scheme and port add 24.
pub const SERVER_URL_BYTES_MAX: usize = 280;

/// Most players in one snapshot. The Quake 3 family's reply of 16,384 bytes holds at
/// most 2,340 shortest lines (`0 0 ""\n`). Few games have more than 255 slots: Rust's
/// largest servers have about 1,000.
pub const PLAYERS_MAX: usize = 1_024;

/// Longest player name kept, bytes of UTF-8 after decoding. Steam allows 32
/// characters of up to 4 bytes; Quake 3 names have 35 bytes with colours.
pub const NAME_BYTES_MAX: usize = 256;

/// Longest map, game and host name kept, bytes. Quake's MAX_QPATH is 64,
/// Source's host names reach 256.
pub const TEXT_BYTES_MAX: usize = 256;

/// Largest absolute number of points accepted. Wire formats carry 32 bits; a
/// log line may carry more. 2^40 x 1,024 players x 1,000 stays below 2^61, so
/// no sum of points of a snapshot, in thousandths, overflows an `i64`.
pub const POINTS_ABS_MAX: i64 = 1 << 40;

/// Largest UDP datagram. Some servers send unsplit replies up to this size.
pub const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Largest reply, assembled from fragments or decompressed from bzip2, bytes: 1,024 players
/// at 300 bytes each, rounded up.
pub const REPLY_BYTES_MAX: usize = 512 * 1_024;

/// Malformed datagrams that are decoded for one scan, bytes. More of them end it: decoding costs up to 30 ns
/// a byte (`cargo bench --bench datagrams`), and a server may send as many as it likes.
pub const MALFORMED_BYTES_MAX: usize = 64 << 10;

/// Most bytes of incomplete replies that are decoded for one scan. With resends, each part may come several times.
pub const INCOMPLETE_BYTES_PER_SCAN_MAX: usize = 4 * REPLY_BYTES_MAX;

/// Most bytes of incomplete replies of all scans together. A scan holds at most
/// [`REPLY_BYTES_MAX`]; a reply is complete within a round trip, so at 8,333 scans/s with 3 KB and
/// 0.5 s each this is 12 MB.
pub const INCOMPLETE_REPLY_BYTES_MAX: usize = 64 << 20;

/// Largest numbers of slots and players of one server that are accepted. Games with the largest servers have
/// a few thousand; some servers send 4,294,967,295.
pub const SLOTS_MAX: u32 = 65_535;

/// Longest time for which a player is accepted to be connected, ms: a year. Some servers send
/// 10^38 seconds.
pub const CONNECTED_MS_MAX: u64 = 366 * 86_400_000;

/// Most servers that are scanned once a minute at a time.
pub const BOOSTS_MAX: usize = 1_000;

/// Longest time for which a server is scanned once a minute, s.
pub const BOOST_S_MAX: u32 = 86_400;

/// Most servers known to one daemon: four times the 1,000,000 that it is designed for. A key has
/// 32 bits.
pub const SERVERS_MAX: usize = 4_000_000;

/// Most addresses kept of the list of one master server, or of one file with such a list: as many
/// servers as clqd is designed for. Each takes 32 bytes.
pub const MASTER_ADDRESSES_MAX: usize = 1_000_000;

/// Largest list of servers that is fetched from a website, bytes. DDNet's has about
/// 2 MB, and this is room for 160,000 servers of Steam's Web API.
pub const HTTP_LIST_BYTES_MAX: usize = 64 << 20;

/// Most tags of one server. A rated round changes a rating in each of them, and a server's
/// players have entries on the boards of each.
pub const TAGS_MAX: usize = 16;

/// Servers of an imported list, unless the admin allows more. The largest master has some 30,000; a forged list
/// had a million.
pub const IMPORTED_SERVERS_MAX: usize = 50_000;

/// Servers of an imported list on one address, unless the admin allows more.
pub const IMPORTED_SERVERS_PER_ADDRESS_MAX: usize = 64;

/// Longest line of a scan log, bytes: `PLAYERS_MAX` players with names of `NAME_BYTES_MAX`,
/// six bytes an escaped character.
pub const SCAN_LOG_LINE_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// Longest body of a request on the control socket, bytes. `servers import` sends chunks.
pub const REQUEST_BODY_BYTES_MAX: usize = 1_024 * 1_024;

/// The ten best segments and games of docs/rules.md sections 5 and 6.
pub const BEST_MAX: usize = 10;

/// Names of bots remembered for a server (docs/rules.md section 14.2). No server has more
/// than 64 bots.
pub const BOT_NAMES_MAX: usize = 64;

/// The last closed weeks that can be reopened: as many as `store.keep_weeks` keeps by
/// default. A player's best positions have up to one more entry for each of them.
pub const REOPENABLE_WEEKS_MAX: u32 = 4;

/// Most windows of one type that may run at once. Every row is written to each
/// of them: a month's windows that begin daily are 31.
pub const CONCURRENT_WINDOWS_MAX: i64 = 32;

/// Most changed rows and players that stay in memory while the disk is nearly full (some
/// 160 bytes each: 80 MB). Above it, results of scans are discarded. 500,000 is a day's rows of 10,000
/// players.
pub const PENDING_RECORDS_MAX: usize = 500_000;

/// Free space at which writing resumes after the disk was nearly full, bytes: a sixteenth more than
/// store.disk_free_bytes_min, or it would pause and resume again and again.
pub fn disk_resume_bytes(min_bytes: u64) -> u64 {
    min_bytes + min_bytes / 16
}

/// Most bytes of captures that the daemon writes in a day. With the default `capture.share`,
/// 2,000 scans/s are 172,800 captures a day; a reply of 1 KiB is a line of 1.5 KiB.
pub const CAPTURE_BYTES_PER_DAY_MAX: u64 = 256 << 20;

/// Least time between two scans of one server, ms. The scanner guarantees it.
const SCAN_INTERVAL_MS_MIN: i128 = 1_100;

// The sum of a player's gains on a server in a week cannot overflow: a gain is at most the
// distance of two point values, and each scan yields at most one. Sums over servers and
// over longer windows saturate; the engine counts saturated sums.
const _: () = assert!(2 * POINTS_ABS_MAX as i128 * (WEEK_MS as i128 / SCAN_INTERVAL_MS_MIN + 1) < i64::MAX as i128);
const _: () = assert!(POINTS_ABS_MAX as i128 * PLAYERS_MAX as i128 * 1_000 < i64::MAX as i128);
const _: () = assert!(DATAGRAM_BYTES_MAX < REPLY_BYTES_MAX);
const _: () = assert!(PLAYERS_MAX * NAME_BYTES_MAX * 6 < SCAN_LOG_LINE_BYTES_MAX);
const _: () = assert!(SERVERS_MAX < u32::MAX as usize);
