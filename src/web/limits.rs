//! Every maximum of the web interface, each with the reason for its size. Rates of requests are
//! settings.

use std::time::Duration;

/// Most connections of one client, so that a single client cannot use all connections. It does not
/// apply to proxies.
pub const CONNECTIONS_PER_CLIENT_MAX: usize = 64;

/// Connections of the control socket that only root and the user of the daemon may have, besides those of everybody.
pub const CONNECTIONS_OF_OWNERS: usize = 8;

/// Most clients whose request rate is remembered; a few MB. Further ones share one limit.
pub const CLIENTS_MAX: usize = 50_000;

/// Longest head of a request, bytes: the longest path and query, and 16 KiB of header fields. Browsers with
/// many cookies send less.
pub const REQUEST_HEAD_BYTES_MAX: usize = URI_BYTES_MAX + 16 * 1024;

/// Most header fields of a request.
pub const REQUEST_HEADERS_MAX: usize = 64;

/// Longest path and query, bytes. The longest valid ones have all filters of `/api/v1/servers`: four names
/// and a cursor. Percent-encoded, a name of 256 characters has up to 3,072 bytes.
pub const URI_BYTES_MAX: usize = 16 * 1024;

/// Buffer of a connection, bytes.
pub const CONNECTION_BUFFER_BYTES: usize = 64 * 1024;

/// Buffer of the kernel for what a client has not received yet, bytes; Linux doubles it for its own
/// overhead. Without a limit it grows to 4 MiB, so clients that do not read could pin 2 GiB.
pub const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// Largest body of an answer, bytes: 500 servers of the largest size are below a third of it.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long an answer is used for further requests. It is the longest delay until a visitor sees a
/// change. It limits scrapes and readiness checks to one request to the engine a second.
pub const ANSWERS_AGE_MAX: Duration = Duration::from_secs(1);

/// Memory of the answers that are kept: some hundred pages.
pub const ANSWERS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Most different answers that are computed at once. Each waits for one of the [`ENGINE_REQUESTS_MAX`]
/// places at the engine.
pub const COMPUTED_AT_ONCE_MAX: usize = 64;

/// Of these, the most of one client, so that a single client cannot use all: its further requests wait. It does not
/// apply to this machine.
pub const COMPUTED_PER_CLIENT_MAX: usize = 16;

/// Most requests of one client that are computed or wait: a page with as many banners. It does not apply to this machine.
pub const REQUESTS_PER_CLIENT_MAX: usize = 48;

/// Most requests for different answers that wait to be computed; further ones get 503. A quarter of the
/// connections, so enough are left for answers that are in the cache.
pub const COMPUTE_WAITING_MAX: usize = 128;

/// As [`COMPUTED_AT_ONCE_MAX`], of PNG banners: one is rendered, while the content of others is read.
pub const PNG_COMPUTED_AT_ONCE_MAX: usize = 4;

/// As [`COMPUTE_WAITING_MAX`], of PNG banners.
pub const PNG_COMPUTE_WAITING_MAX: usize = 60;

/// Banners that are rendered as PNG at once. One takes 4 to 6 ms (`banners/png.rs`), so one thread
/// renders more than 150 a second, and the other processors are left to the scans.
pub const BANNERS_RENDERED_AT_ONCE_MAX: usize = 1;

/// Most streams of changes at once: `/api/v1/live`. Each holds a connection.
pub const LIVE_STREAMS_MAX: usize = 128;

/// Most streams of changes of one client: some tabs of a browser.
pub const LIVE_STREAMS_PER_CLIENT_MAX: usize = 4;

/// Most rows of one page.
pub const ROWS_PER_PAGE_MAX: u32 = 500;

/// Rows of a page without `limit` or `count`.
pub const ROWS_PER_PAGE_DEFAULT: u32 = 50;

/// Requests of visitors that are answered at once: a quarter of the threads for answers, so that visitors leave the others to
/// admins.
pub const ENGINE_REQUESTS_MAX: usize = 4;

/// Requests of visitors for boards of games and tags that are answered, or wait until the boards are in memory. They have
/// places of their own, so that other requests need not wait for boards. The engine thread answers those that have waited;
/// its queue has room for 256 commands.
pub const BOARD_REQUESTS_MAX: usize = 32;

/// Limits of connections. Tests use smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// Most connections at once. Each takes some 20 KB, and one of the 65,536 file descriptors of
    /// the service.
    pub connections_max: usize,
    /// Longest time for the head of a request, and between two requests of a connection.
    pub head_timeout: Duration,
    /// A connection is closed at this age, after the answer in progress.
    pub connection_age_max: Duration,
    /// How long a client may then still read that answer.
    pub last_answer_timeout: Duration,
    /// A connection is closed if its client receives nothing of what was sent for this long.
    pub unread_timeout: Duration,
    /// Longest wait until an answer is computed.
    pub compute_wait: Duration,
    /// Longest wait for the engine.
    pub engine_timeout: Duration,
    /// How long answers in progress may still take when the daemon stops.
    pub shutdown_timeout: Duration,
}

impl Default for WebLimits {
    fn default() -> WebLimits {
        WebLimits {
            connections_max: 512,
            head_timeout: Duration::from_secs(10),
            connection_age_max: Duration::from_secs(120),
            last_answer_timeout: Duration::from_secs(30),
            unread_timeout: Duration::from_secs(30),
            compute_wait: Duration::from_secs(2),
            engine_timeout: Duration::from_secs(5),
            shutdown_timeout: Duration::from_secs(2),
        }
    }
}

impl WebLimits {
    /// Limits of the control socket. Admins are trusted more than visitors: their requests may take long.
    pub fn of_admins() -> WebLimits {
        WebLimits {
            connections_max: 64,
            head_timeout: Duration::from_secs(300),
            connection_age_max: Duration::from_secs(365 * 86_400),
            last_answer_timeout: Duration::from_secs(2),
            ..WebLimits::default()
        }
    }
}
