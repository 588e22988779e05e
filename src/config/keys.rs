//! Every key of the configuration file: its type, its range, its default, what it means and how a change is applied.
//! `config/clqd.toml`, the manual page and the tables of `docs/configuration.md` are written from this table: after a
//! change run `CLQD_WRITE_CONFIG=1 cargo test --lib config::shipped`.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use Applies::{Reload, Restart};
use strum::VariantNames;

use super::WebhookEvent;
use crate::api::requests::check_scanner_name;
use crate::api::{Permission, check_tag};
use crate::archive::ArchiveSettings;
use crate::board::order::{LowIsBetter, TieBreaker};
use crate::board::window::{BadSpec, WindowSpec};
use crate::limits::TEXT_BYTES_MAX;
use crate::master::{ListUrl, check_scheme};
use crate::model::calendar::Calendar;
use crate::model::{ScanBudget, WindowType};
use crate::rank::screen::SpectatorPoints;
use crate::rank::{RULES_NUMBER, RULES_NUMBER_MIN};
use crate::scan;
use crate::web::{PublicUrl, SiteLink, TokenHash, identity};

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Name of the section, empty for top-level keys.
    pub section: &'static str,
    pub name: &'static str,
    pub kind: ValueType,
    pub change: Applies,
    /// In TOML.
    pub default: &'static str,
    /// What it does, in Markdown, with links as in `docs/`.
    pub meaning: &'static str,
}

impl KeySpec {
    /// `scan.timeout_ms`, or `state_dir` where there is no section.
    pub fn path(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }
}

/// How a change of a key is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// SIGHUP, or `clqd reload`.
    Reload,
    /// A restart of the daemon.
    Restart,
}

/// The type and range of a value. Ranges are inclusive.
#[derive(Clone, Copy, Debug)]
pub enum ValueType {
    Bool,
    Whole {
        min: i64,
        max: i64,
        /// Empty for a plain number.
        unit: &'static str,
    },
    Decimal {
        min: f64,
        max: f64,
    },
    /// See [`ScanBudget`].
    Budget,
    OneOf(&'static [&'static str]),
    /// A string; the function returns the error of an invalid one.
    Text(fn(&str) -> Result<(), String>),
    /// List of strings; the function returns the error of an invalid one.
    Texts(fn(&str) -> Result<(), String>),
}

impl ValueType {
    /// The range as written in `config/clqd.toml` and `docs/configuration.md`.
    pub fn range(&self) -> String {
        match self {
            ValueType::Bool => "true or false".to_owned(),
            ValueType::Whole { min, max, unit } => format!("{min} to {max} {unit}").trim_end().to_owned(),
            ValueType::Decimal { min, max } => format!("{min:?} to {max:?}"),
            ValueType::Budget => format!("0.0, or {:?} to {:?}", ScanBudget::MIN, ScanBudget::MAX),
            ValueType::OneOf(names) => names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(" or "),
            ValueType::Text(_) => "string".to_owned(),
            ValueType::Texts(_) => "list of strings".to_owned(),
        }
    }

    /// The end of a sentence that begins with "expected".
    pub(super) fn expected(&self) -> String {
        match self {
            ValueType::Whole { .. } => format!("a whole number, {}", self.range()),
            ValueType::Decimal { .. } | ValueType::Budget => format!("a number, {}", self.range()),
            ValueType::Text(_) => "a string in quotes".to_owned(),
            ValueType::Texts(_) => "a list of strings, such as [\"a\", \"b\"]".to_owned(),
            ValueType::Bool | ValueType::OneOf(_) => self.range(),
        }
    }
}

const fn key(section: &'static str, name: &'static str, kind: ValueType, change: Applies) -> KeySpec {
    KeySpec { section, name, kind, change, default: "", meaning: "" }
}

impl KeySpec {
    const fn described(self, default: &'static str, meaning: &'static str) -> KeySpec {
        KeySpec { default, meaning, ..self }
    }
}

const fn whole(min: i64, max: i64, unit: &'static str) -> ValueType {
    ValueType::Whole { min, max, unit }
}

const fn whole_in(range: RangeInclusive<u32>, unit: &'static str) -> ValueType {
    whole(*range.start() as i64, *range.end() as i64, unit)
}

/// What the sections are about.
pub const SECTIONS: &[(&str, &str)] = &[
    ("scan", "How servers are queried."),
    ("rules", "The rules that rankings are computed by."),
    (
        "names",
        "Which entries of a list count as players. A change of this section or of the next three applies from the next snapshot on. Existing rankings do not change.",
    ),
    (
        "rounds",
        "When a new round has begun on the same map. Both conditions must hold for the sum of the points of the players who stayed: it fell by at least round_drop_min, and it fell to less than round_drop_ratio of its value.",
    ),
    ("clq2", "CLQ2: reaching the top of a round."),
    ("elo", "ELO ratings."),
    ("screen", "Which lists are credible, and which entries are players (docs/rules.md section 14)."),
    ("boards", "Windows, which are periods with boards of their own, and the order of boards."),
    (
        "clock",
        "The system clock. Weeks are closed only while the clock is trusted. It is trusted if it is synchronised, if it has run without a jump for a while, or if an admin accepted it.",
    ),
    ("store", "The state directory."),
    ("archive", "The archive: a MySQL or MariaDB database, for websites other than the daemon's own."),
    (
        "log",
        "The log in state_dir. It contains every event that changes the state: scans, commands of admins, and settings that change results. A start after a crash and the rebuilding of windows read it.",
    ),
    ("sessions", "Sessions: when a player was on which server. They never enter a ranking."),
    (
        "capture",
        "Captures: the datagrams of some scans. They show later what an odd server has sent. `clqd query --replay FILE` decodes them. They contain names of players.",
    ),
    ("web", "The HTTP server: a website, an API and metrics. docs/web.md describes it."),
    ("site", "Whose website it is."),
    ("geo", "Where servers are."),
    (
        "cluster",
        "Several engines that keep one state, so that the loss of a machine costs seconds. Their log is in the database of `archive.url`. See [operations.md](operations.md#several-engines).",
    ),
];

/// All keys, in the order of `config/clqd.toml`.
pub const KEYS: &[KeySpec] = &[
    key("", "time_zone", ValueType::Text(time_zone), Restart)
        .described(r#""UTC""#, r#"Time zone in which weeks and days begin, a name of the IANA database such as "Europe/Amsterdam". It cannot change once a state directory holds weeks: `clqd check-config` and `clqd reload` refuse another one."#),
    key("", "state_dir", ValueType::Text(absolute_path), Restart)
        .described(r#""/var/lib/clqd""#, "State directory: everything that clqd knows. The daemon needs no other storage."),
    key("", "control_socket", ValueType::Text(socket_path), Restart)
        .described(r#""/run/clqd/control.sock""#, "Unix socket of the admin commands; mode 0660."),
    key("", "log_filter", ValueType::Text(log_filter), Reload)
        .described(r#""info""#, "Log filter: a level (`error`, `warn`, `info`, `debug`, `trace`) for the modules of clqd, or levels by module, such as `info,clqd::scan=debug`."),
    key("scan", "timeout_ms", whole_in(scan::TIMEOUT_MS, "ms"), Reload)
        .described("2000", "Timeout of one query. The query is sent again after it. In exception mode (class 7) the timeout is three times as long."),
    key("scan", "retries", whole(0, 10, ""), Reload)
        .described("2", "How often a query is sent again before the scan counts as missed. In exception mode it is three times as often."),
    key("scan", "packets_per_second_max", whole(1, 1_000_000, "packets/s"), Reload)
        .described("5000", "Largest packet rate, all servers together."),
    key("scan", "address_packets_per_second_max", whole(1, 100_000, "packets/s"), Reload)
        .described("5", "Largest packet rate to one address. Several servers may share an address. Raise the rate if the servers of a host with hundreds of servers are scanned late."),
    key("scan", "address_burst_packets", whole(1, 100_000, "packets"), Reload)
        .described("10", "Packets that may be sent to one address at once after a pause."),
    key("scan", "subnet_packets_per_second_max", whole(1, 1_000_000, "packets/s"), Reload)
        .described("50", "Largest packet rate to one /24 (IPv4) or /48 (IPv6)."),
    key("scan", "subnet_burst_packets", whole(1, 1_000_000, "packets"), Reload)
        .described("100", "Packets that may be sent to one such subnet at once after a pause."),
    key("scan", "sockets_per_ip_version", whole(1, 64, ""), Restart)
        .described("2", "UDP sockets for IPv4, and the same number for IPv6. All servers share them."),
    key("scan", "scans_in_flight_max", whole(1, 1_000_000, ""), Reload)
        .described("20000", "Largest number of concurrent scans. Further scans are queued."),
    key("scan", "tcp_connections_max", whole_in(scan::TCP_CONNECTIONS_MAX, ""), Reload)
        .described("256", "Largest number of TCP connections open at a time. Further scans over TCP wait."),
    key("scan", "dns_cache_ttl_s", whole_in(scan::DNS_CACHE_TTL_S, "s"), Reload)
        .described("3600", "How long the address of a host name is cached. The name is resolved again afterwards. While no name server answers, the address is used for a day."),
    key("scan", "receive_buffer_bytes", whole(65_536, 1 << 30, "bytes"), Restart)
        .described("8388608", "Receive buffer of each socket. The system may grant less (`net.core.rmem_max`)."),
    key("scan", "allow_private", ValueType::Bool, Reload)
        .described("false", "Also scan private, loopback and link-local addresses. Leave it off if other people may add servers."),
    key("scan", "limit_loopback", ValueType::Bool, Reload)
        .described("true", "Whether the limits for an address and for a network also apply to loopback addresses. Turn it off to scan many servers on this machine."),
    key("scan", "authentication_min", ValueType::OneOf(&["address", "challenge", "nonce"]), Reload)
        .described(r#""address""#, r#"Weakest authentication of a reply with which its players are ranked. `"address"`: the players of all protocols are ranked. `"challenge"`: not those of QuakeWorld, Quake 2, GameSpy 1, Unreal 2 and All-Seeing Eye. `"nonce"`: not those of Source either. A list with weaker authentication is partial: the server is alive and has a count. See [protocols.md](protocols.md)."#),
    key("scan", "opt_out", ValueType::Texts(check_network), Reload)
        .described("[]", r#"Addresses and networks that nothing is sent to, such as "192.0.2.7" or "192.0.2.0/24", because their owners do not want to be scanned."#),
    key("scan", "contact", ValueType::Text(contact), Reload)
        .described(r#""""#, r#"How operators of game servers reach you, such as "scans@example.org" or the address of a page. `clqd status` shows it. It is sent to the websites of `[[import]]`. It is not sent to game servers, because the protocols have no field for it. See [protocols.md](protocols.md#for-operators-of-game-servers). At most 256 bytes."#),
    key("scan", "class1_players_min", whole(1, 255, "players"), Reload)
        .described("3", "A server with at least this many players is in class 1. The players now count, or the median of the last three counts. With 1, servers with one or two players are scanned as often as full ones: more packets are sent, and fewer rounds are missed."),
    key("scan", "forget_silent_days", whole(0, 3_650, "days"), Reload)
        .described("14", "Imported servers that have not answered for so long since they were added are removed, and are not imported again for 30 days. Servers that were added by hand stay. 0: never."),
    key("scan", "region", ValueType::Text(check_scanner_name), Restart)
        .described(r#""local""#, "Where this machine's scanner is. Scanners on other machines (`clqd scan --join`) are in a region, too: a server is scanned from the one that answers fastest ([operations.md](operations.md#scanners-in-other-places))."),
    key("scan", "confirm_miss_by", whole(1, 3, "regions"), Reload)
        .described("2", "So many regions must miss a server before it is a miss: a fault of one network is not the server's. Without scanners in other regions it has no effect."),
    key("scan", "budget", ValueType::Budget, Reload)
        .described("1.15", "Mean number of scans of a server with players in an interval of class 1, which is two minutes; 0.75 to 6. Each scan is made when it tells most, such as shortly before the expected end of a round ([architecture.md](architecture.md#elastic-scans)). With more scans the rankings are closer to what happened; `clqd truth` shows how close. 0: a fixed grid."),
    key("scan", "elastic_players_min", whole(1, 255, "players"), Reload)
        .described("1", "A server of class 2 with at least this many players has the budget of class 1. With the default of `scan.class1_players_min`, 3: only servers of class 1 have it."),
    key("scan", "interval_class1_s", whole(1, 604_800, "s"), Reload)
        .described("120", "Scan interval of class 1: servers with players. No class may have a shorter interval than the class before it."),
    key("scan", "interval_class2_s", whole(1, 604_800, "s"), Reload)
        .described("600", "Scan interval of class 2: servers with fewer players, and servers that missed some scans."),
    key("scan", "interval_class3_s", whole(1, 604_800, "s"), Reload)
        .described("3600", "Scan interval of class 3: servers that have not answered for longer."),
    key("scan", "interval_class4_s", whole(1, 604_800, "s"), Reload)
        .described("86400", "Scan interval of class 4: servers that have not answered for still longer."),
    key("scan", "interval_class5_s", whole(1, 2_419_200, "s"), Reload)
        .described("604800", "Scan interval of class 5: servers that have not answered for the longest time."),
    key("scan", "retry_failed_s", whole(0, 2_419_200, "s"), Reload)
        .described("86400", "Scan interval of classes 6 and 7, the servers that do not answer. Each is scanned once in this time, in exception mode; the scans are spread over the interval. 0: they are scanned on request only. See [rules.md](rules.md#9-scan-classes)."),
    key("rules", "number", whole(RULES_NUMBER_MIN as i64, RULES_NUMBER as i64, ""), Reload)
        .described("2", "The rules that rankings are computed by. A release that changes them raises the number, and also computes by the number before it. A change applies from the next snapshot on, and is recorded in the log."),
    key("names", "ignore", ValueType::Texts(accept_any), Reload)
        .described(r#"["UnnamedPlayer", "unnamed", "Player", "player", "unconnected", "nameless tee"]"#, "Default names of games, for players who have not chosen a name. Such players are counted and not ranked. Names are compared without colour codes; case matters."),
    key("names", "count_bots", ValueType::Bool, Reload)
        .described("false", "Count, list and rank bots like players."),
    key("names", "ping_zero_is_bot", ValueType::Bool, Reload)
        .described("true", "Treat an entry with ping 0 on a server of the Quake 3 family as a bot."),
    key("names", "darkplaces_games", ValueType::Texts(accept_any), Reload)
        .described(r#"["Nexuiz", "Xonotic"]"#, "Games with DarkPlaces colour codes (`^x` and three hex digits)."),
    key("rounds", "round_drop_min", whole(1, 1_000_000, "points"), Reload)
        .described("5", "Smallest fall of the sum of the points of the players who stayed, for a new round."),
    key("rounds", "round_drop_ratio", ValueType::Decimal { min: 0.0, max: 1.0 }, Reload)
        .described("0.5", "The sum must also have fallen to less than this fraction of its previous value."),
    key("clq2", "quarter", ValueType::OneOf(&["whole", "exact"]), Reload)
        .described(r#""whole""#, r#"Which entries have a quarter of the pivot's points. `"whole"` divides and rounds down. `"exact"` requires at least 25 %. See [rules.md](rules.md#6-clq2-reaching-the-top)."#),
    key("elo", "k", ValueType::Decimal { min: 0.1, max: 1_000.0 }, Reload)
        .described("25.0", "Rating change for each opponent that a player beat more, or less, than expected."),
    key("elo", "k_times_opponents_max", ValueType::Decimal { min: 0.0, max: 1_000_000.0 }, Reload)
        .described("225.0", "K is reduced so that K times the number of opponents does not exceed this. 0: no limit."),
    key("elo", "carry_over", ValueType::Bool, Reload)
        .described("false", "Start a week with the rating of the previous week instead of 1000."),
    key("screen", "enabled", ValueType::Bool, Reload)
        .described("true", "Screen lists before they are compared and ranked. Off: every list is used as received."),
    key("screen", "frozen_after_s", whole(600, 31_536_000, "s"), Reload)
        .described("21600", "A list that has not changed for this long is not used until it changes. Only lists of at least four players with points are checked."),
    key("screen", "new_games_per_day_max", whole(0, 1_000_000, "games"), Reload)
        .described("4", "New games that one server may report in a day. Its lists with further new games are not used."),
    key("screen", "new_maps_per_day_max", whole(0, 1_000_000, "maps"), Reload)
        .described("200", r#"New maps that one server may report in a day. Further new maps are counted as the map "(other)"."#),
    key("screen", "new_names_per_day_max", whole(0, 1_000_000_000, "names"), Reload)
        .described("2000", "New player names that one server may report in a day. Further new names are not ranked."),
    key("screen", "games_max", whole(1, 1_000_000, "games"), Reload)
        .described("10000", "Largest number of games. A further game is treated like one above the daily limit."),
    key("screen", "maps_max", whole(1, 1_000_000_000, "maps"), Reload)
        .described("1000000", "Largest number of maps. A further map is treated like one above the daily limit."),
    key("screen", "spectator_points", ValueType::Texts(parsed::<SpectatorPoints>), Reload)
        .described(r#"["darkplaces_games=-666", "Warsow=-9999", "Warfork=-9999", "quakeworld://=-9999"]"#, r#"Points that mark a spectator: `"GAME=POINTS"`, `"SCHEME://=POINTS"`, or `"darkplaces_games=POINTS"` for the games of `names.darkplaces_games`."#),
    key("screen", "gain_max", whole(1, crate::limits::POINTS_ABS_MAX, "points"), Reload)
        .described("1000000", "A larger gain of points between two scans counts as 0."),
    key("boards", "windows", ValueType::Texts(window), Reload)
        .described("[]", r#"Types of windows in addition to the week. `"hour keep=48"`, `"day keep=31"`, `"month keep=13"`: hours of UTC, days and months of `time_zone`; `keep` is the number of closed windows to keep (default 4; 0 keeps all). `"all-time"`: one window that never ends. `"12 base=2026-01-05T00:00:00Z duration=3d every=1d repeat=100 keep=5"`: a custom type with a number from 10 on. Window 0 begins at `base`. `every` is the time between the beginnings of two windows (default: `duration`), `repeat` their number (default 0: without end). Windows may overlap; at most 32 may run at the same time. Durations are written 90s, 15m, 6h, 3d or 2w, and are at least one minute. See [boards-and-windows.md](boards-and-windows.md#windows)."#),
    key("boards", "low_is_better", ValueType::Texts(parsed::<LowIsBetter>), Reload)
        .described("[]", r#"Boards on which the lowest score is best: `"points"` for all boards, or for one scope `"points game:NAME"`, `"points tag:NAME"` or `"points server:URL"`. All queries of boards use this order, and so do the positions in MySQL, in all weeks that are kept. Best positions of weeks that were closed before do not change. The same applies to `boards.tie_breakers`. See [boards-and-windows.md](boards-and-windows.md#order)."#),
    key("boards", "tie_breakers", ValueType::Texts(parsed::<TieBreaker>), Reload)
        .described("[]", r#"Boards on which another ranking orders equal scores: `"points time"` for all boards, or for one scope `"clq2 points game:NAME"`, which takes precedence. Among equal scores the better in the other ranking comes first, then the score that was reached earlier. `boards.low_is_better` also applies to the other ranking."#),
    key("boards", "closed_cache_bytes_max", whole(0, 1 << 40, "bytes"), Reload)
        .described("1073741824", "Memory for the boards of games and tags in closed windows. The least recently used board is evicted first, and those of weeks that ended within the last two weeks last. It is built again on request."),
    key("clock", "synchronised", ValueType::OneOf(&["auto", "always", "never"]), Reload)
        .described(r#""auto""#, r#"Whether the system clock is synchronised. `"auto"` checks the kernel and systemd-timesyncd; `"always"` and `"never"` assume it. Weeks are closed only by a trusted clock."#),
    key("clock", "trust_after_s", whole(0, 86_400, "s"), Reload)
        .described("600", "A clock that is not synchronised is trusted after it has run for this long without a jump, or after `clqd clock accept`."),
    key("store", "cache_bytes", whole(16 << 20, 64 << 30, "bytes"), Restart)
        .described("268435456", "Cache of the database in the state directory. The daemon uses about twice as much memory."),
    key("store", "commit_interval_ms", whole(10, 10_000, "ms"), Reload)
        .described("200", "Time between two commits: scans are written to the log, and readers see them. A crash loses at most the scans since the last one. Those servers are scanned again. What an admin changed is on disk before the answer. The leader of a cluster writes the log at least once a second."),
    key("store", "checkpoint_interval_s", whole(1, 86_400, "s"), Reload)
        .described("300", "Time between two checkpoints: the changes in memory are written to a file, and the log before them is removed. A checkpoint begins earlier if the changes take a quarter of `store.changes_bytes_max`. After a crash the next start applies the log since the last one."),
    key("store", "changes_bytes_max", whole(64 << 20, 64 << 30, "bytes"), Reload)
        .described("536870912", "Memory for changes. A quarter is for those since the last checkpoint, a quarter for those that a checkpoint is writing, and half for those that are in files, but not in the database yet. Few installations use all of it. With less, more is written."),
    key("store", "compact_bytes_min", whole(0, 1 << 50, "bytes"), Reload)
        .described("8388608", "The database file is compacted when it has at least this size and has grown by half since the last compaction. During a compaction the new file needs as much space as the records. 0: the file is compacted only after a player was forgotten, and grows to several times its size."),
    key("store", "disk_free_bytes_min", whole(0, 1 << 50, "bytes"), Reload)
        .described("536870912", "While less than this is free on the disk of the state directory, nothing is written, until a sixteenth more is free. See [troubleshooting.md](troubleshooting.md#the-disk-is-full). 0: write until the disk is full."),
    key("store", "keep_weeks", whole(1, 520, "weeks"), Reload)
        .described("4", "Closed weeks that are kept in the state directory, in addition to the running one. If there is an archive, weeks that are not in it yet are kept regardless of their age."),
    key("store", "keep_players_weeks", whole(0, 5_200, "weeks"), Reload)
        .described("0", "Weeks after their last row in which the best positions of players, and their rows in windows such as all-time, are kept. After that only their names and keys are kept, so that they get the same key when they return; then their best positions begin again, and those in MySQL continue. 0: everything is kept. Otherwise more than `store.keep_weeks`."),
    key("archive", "url", ValueType::Text(mysql_url), Reload)
        .described(r#""""#, "`mysql://user@host:3306/database`. The nodes of a [cluster](database.md#cluster) are separated by commas: `mysql://user@host1,host2:3307,[2001:db8::3]/database`; a host without a port has 3306. Empty: no archive; everything else works."),
    key("archive", "password_file", ValueType::Text(optional_path), Reload)
        .described(r#""""#, "File that contains only the password. Empty: the daemon uses the systemd credential `mysql_password` if it exists, otherwise the password in the URL. Commands use the password in the URL, otherwise the file of the credential, `/etc/clqd/mysql_password`."),
    key("archive", "tls", ValueType::OneOf(&["off", "preferred", "required", "verify"]), Reload)
        .described(r#""off""#, r#"Whether connections use TLS. `"preferred"`: if the server offers it. `"required"`: always, but with any certificate. `"verify"`: the certificate must be valid for the host in the URL. A Unix socket never uses it."#),
    key("archive", "tls_ca", ValueType::Text(optional_path), Reload)
        .described(r#""""#, r#"PEM file with the certificates of authorities for `"verify"`. Empty: the authorities of the web."#),
    key("archive", "tls_cert", ValueType::Text(optional_path), Reload)
        .described(r#""""#, "PEM file with the certificate of clqd, if the account demands one (`REQUIRE X509`)."),
    key("archive", "tls_key", ValueType::Text(optional_path), Reload)
        .described(r#""""#, "PEM file with the key of `archive.tls_cert`."),
    key("archive", "interval_s", whole(2, 86_400, "s"), Reload)
        .described("600", "Interval at which the servers of the running week are archived."),
    key("archive", "drain_timeout_s", whole(0, 3_600, "s"), Reload)
        .described("20", "How long a daemon that stops continues to write pending entries."),
    key("archive", "outbox_entries_max", whole(1_000, 1_000_000_000, ""), Reload)
        .described("5000000", "Largest number of outbox entries. Further entries are dropped, and clqd writes everything again when MySQL is available."),
    key("archive", "connect_timeout_ms", whole(100, 60_000, "ms"), Reload)
        .described("5000", "Timeout of a connection attempt."),
    key("archive", "query_timeout_ms", whole(1_000, 600_000, "ms"), Reload)
        .described("30000", "Timeout of one statement. The connection is closed after it."),
    key("archive", "keep_weeks", whole(0, 5_200, "weeks"), Reload)
        .described("0", "How many weeks before the newest week of the state are kept in MySQL. Rows of players, maps and servers in older weeks are deleted, in small steps; the ranks of servers a week later. Weeks that the state keeps are never deleted, and best positions neither. 0: all weeks are kept."),
    key("archive", "keep_online_days", whole(0, 36_500, "days"), Reload)
        .described("0", "How long the table `online_total` (players and servers online in ten minutes) is kept; those of hours and days stay. 0: for ever."),
    key("archive", "keep_top_board_days", whole(0, 36_500, "days"), Reload)
        .described("0", "How long a published board is kept after its window has ended. 0: for ever."),
    key("archive", "keep_sessions_days", whole(0, 36_500, "days"), Reload)
        .described("0", "How long sessions are kept in MySQL after their end. 0: for ever. The state keeps them for `sessions.keep_days`; with 0 there, none is archived."),
    key("archive", "on_older_database", ValueType::OneOf(&["resync", "stop"]), Reload)
        .described(r#""resync""#, r#"What to do if MySQL [lacks what it had acknowledged](database.md#an-older-database). `"resync"`: write everything again. `"stop"`: write nothing until `clqd archive take-over`."#),
    key("archive", "backoff_s_max", whole(1, 3_600, "s"), Reload)
        .described("60", "Longest back-off between two attempts while MySQL is unavailable."),
    key("log", "keep_days", whole(1, 3_650, "days"), Reload)
        .described("8", "Days for which the log in the state directory is kept: every event that changed the state. A start after a crash reads its end. Windows are rebuilt from it, for as long as it reaches back."),
    key("log", "bytes_max", whole(1 << 26, 1 << 50, "bytes"), Reload)
        .described("17179869184", "The oldest files of the log are removed when all of them are larger, or when less than twice `store.disk_free_bytes_min` is free. What a start needs is kept."),
    key("sessions", "keep_days", whole(0, 366, "days"), Reload)
        .described("7", "Days for which sessions are kept in the state after their end: when a player was on which server. When players were first and last seen is kept without them. 0: no sessions are kept."),
    key("capture", "dir", ValueType::Text(optional_path), Restart)
        .described(r#""""#, "Directory of the capture files. There is one file a day; it contains names of players. The directory must be outside `state_dir`. It is created if it does not exist. Empty: no captures. See [log.md](log.md#captures)."),
    key("capture", "share", ValueType::Decimal { min: 0.0, max: 1.0 }, Reload)
        .described("0.001", "Share of the scans that are captured. At most 256 MiB are written in a day."),
    key("capture", "keep_days", whole(1, 366, "days"), Reload)
        .described("7", "Days for which a file is kept, including its own day."),
    key("web", "listen", ValueType::Text(listen_address), Restart)
        .described(r#""127.0.0.1:8480""#, r#"Address and port of the web interface ([web.md](web.md)), such as "127.0.0.1:8480" or "[::]:8480"; port 0 is any free port. Everyone who can connect may read. With `web.tls_cert`, or behind a reverse proxy, it has TLS. If the port is in use, the daemon does not start. Empty: no web interface."#),
    key("web", "client_requests_per_second_max", whole(1, 100_000, "requests/s"), Restart)
        .described("50", "Requests of one client that are answered per second. A client is an IPv4 address or an IPv6 /64. Further requests get the status 429."),
    key("web", "client_burst_requests", whole(1, 100_000, "requests"), Restart)
        .described("200", "Requests that one client may send at once after a pause."),
    key("web", "search_memory_bytes", whole(0, 1 << 36, "bytes"), Restart)
        .described("67108864", "Memory for the names of players and servers, which searches need. 64 MiB hold some 1.3 million players and 200,000 servers; 10 million players need 510 MB. If there are more, the newest are kept. 0: no searches for parts of names."),
    key("web", "proxies", ValueType::Texts(proxy), Restart)
        .described(r#"["127.0.0.0/8", "::1"]"#, r#"Addresses and networks of reverse proxies, such as "10.0.0.5" or "2001:db8:7::/64". `X-Forwarded-For` is used only if the connection comes from one of these networks. Such connections count towards the total limit, not towards a client's. The client is the right-most address of the header that is not listed here ([web.md](web.md#reverse-proxy)), so list no network from which visitors connect directly."#),
    key("web", "public_url", ValueType::Text(public_url), Restart)
        .described(r#""""#, r#"The address under which visitors reach the site, such as "https://stats.example.org": http or https, without a path. Embed codes of banners begin with it. Empty: "http://", or "https://" with `web.tls_cert`, and the address of `web.listen`; search engines and chats are then told no addresses."#),
    key("web", "front_page_days_min", whole(0, 366, "days"), Restart)
        .described("2", "The first page shows only servers that were seen on at least so many days and, once a week has been closed, have a rank: anyone can invent a server. Before that, if there is none, it shows all that are not greylisted."),
    key("web", "tls_cert", ValueType::Text(optional_path), Restart)
        .described(r#""""#, "PEM file with the certificate of the port, followed by those of its issuers. With it the port speaks https only. A reload reads the file again. Empty: http."),
    key("web", "tls_key", ValueType::Text(optional_path), Restart)
        .described(r#""""#, "PEM file with the private key of the certificate."),
    key("site", "title", ValueType::Text(site_title), Restart)
        .described(r#""Game statistics""#, "The name of the website: above every page, in its title and in feeds. At most 60 characters. Pages translate the default."),
    key("site", "description", ValueType::Text(site_description), Restart)
        .described(r#""Players online, rankings and statistics of game servers.""#, "What the site is, in a sentence: search engines and links in chats show it. At most 300 characters. Pages translate the default."),
    key("site", "accent", ValueType::Text(colour), Restart)
        .described(r#""""#, r##"Colour of the edge above every page, such as "#b3121d". Text keeps its colours, so that it stays readable. Empty: blue."##),
    key("site", "logo", ValueType::Text(optional_path), Restart)
        .described(r#""""#, "SVG or PNG file of at most 64 KiB: the logo beside the title, 32 pixels high, and the icon of the site. It is read at the start. Empty: the title alone, and an icon of clqd."),
    key("site", "games", ValueType::Text(optional_path), Restart)
        .described(r#""""#, "TOML file with names of games that clqd does not know, or that you call otherwise ([web.md](web.md#names-of-games)). It is read at the start. Empty: the names of `clqd games`."),
    key("site", "links", ValueType::Texts(site_link), Restart)
        .described("[]", r#"Links at the end of every page, each a name and a URL, such as "Imprint https://example.org/imprint": imprint, privacy, forum, Discord."#),
    key("geo", "database", ValueType::Text(optional_path), Restart)
        .described(r#""""#, "File in MaxMind's format with countries of addresses, such as those of DB-IP Lite or GeoLite2; their licences ask for a credit, for example in `site.links`. The website then shows the country of servers whose URL has an address. It is read at the start. Empty: nothing of it is shown."),
    key("cluster", "engine", ValueType::Text(engine_name), Restart)
        .described(r#""""#, "Name of this engine in its cluster, such as \"a\"; each one needs its own. Empty: this is the only engine, and nothing of it is in the database but the archive."),
    key("cluster", "address", ValueType::Text(public_url), Restart)
        .described(r#""""#, r#"Where the other machines reach the HTTP server of this engine, such as "https://a.example.org": scanners find the leader by it. Empty: they find it by the URLs they are given."#),
    key("cluster", "keep_log_days", whole(1, 3_650, "days"), Restart)
        .described("8", "Days for which the log is kept in the database. An engine that was away for longer needs a copy of the state of another one."),
];

/// The keys of an `[[import]]` section. They have no place in the shipped file.
pub const IMPORT_KEYS: &[KeySpec] = &[
    key("import", "master", ValueType::Text(parsed::<ListUrl>), Reload),
    key("import", "scheme", ValueType::Text(server_scheme), Reload),
    key("import", "tags", ValueType::Texts(tag), Reload),
    key("import", "every_s", whole(3_600, 2_419_200, "s"), Reload),
    key("import", "servers_max", whole(1, 1_000_000, "servers"), Reload),
];

/// The keys of a `[[webhook]]` section.
pub const WEBHOOK_KEYS: &[KeySpec] = &[
    key("webhook", "name", ValueType::Text(webhook_name), Reload),
    key("webhook", "url", ValueType::Text(webhook_url), Reload),
    key("webhook", "kind", ValueType::OneOf(&["discord", "json"]), Reload),
    key("webhook", "events", ValueType::Texts(webhook_event), Reload),
    key("webhook", "tag", ValueType::Text(tag), Reload),
    key("webhook", "game", ValueType::Text(not_empty), Reload),
];

/// The keys of a `[[web.token]]` section.
pub const TOKEN_KEYS: &[KeySpec] = &[
    key("web.token", "name", ValueType::Text(tag), Reload),
    key("web.token", "hash", ValueType::Text(token_hash), Reload),
    key("web.token", "may", ValueType::Texts(permission), Reload),
];

/// Names of the sections, in order.
pub fn sections() -> Vec<&'static str> {
    let mut names: Vec<&str> = KEYS.iter().map(|k| k.section).filter(|s| !s.is_empty()).collect();
    names.dedup();
    names
}

fn accept_any(_: &str) -> Result<(), String> {
    Ok(())
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(|_| ()).map_err(|error| error.to_string())
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(()) }
}

fn engine_name(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { check_scanner_name(text) }
}

fn server_scheme(text: &str) -> Result<(), String> {
    check_scheme(text).map_err(|error| error.to_string())
}

fn tag(text: &str) -> Result<(), String> {
    check_tag(text).map_or(Ok(()), Err)
}

fn time_zone(text: &str) -> Result<(), String> {
    Calendar::new(text).map(|_| ()).map_err(|error| error.to_string())
}

/// A relative path depends on the current directory of the program: a command would not find the
/// daemon, or would open another state.
fn absolute_path(text: &str) -> Result<(), String> {
    not_empty(text)?;
    if !Path::new(text).is_absolute() {
        return Err(format!(
            "{text:?} is a relative path, which is another file for each directory that clqd is started in; write the \
             path from / on"
        ));
    }
    Ok(())
}

/// Empty, or an absolute path.
fn optional_path(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { absolute_path(text) }
}

/// `sockaddr_un` has space for 107 bytes and a zero.
fn socket_path(text: &str) -> Result<(), String> {
    absolute_path(text)?;
    if text.len() > 107 {
        return Err(format!("has {} bytes; the path of a Unix socket has at most 107", text.len()));
    }
    Ok(())
}

/// Empty, or an address and a port.
fn listen_address(text: &str) -> Result<(), String> {
    if text.is_empty() || text.parse::<std::net::SocketAddr>().is_ok() {
        return Ok(());
    }
    Err(format!("{text:?} is not an address and a port such as \"127.0.0.1:8480\" or \"[::1]:8480\""))
}

/// One line for people: an address, a page.
fn contact(text: &str) -> Result<(), String> {
    match text.len() {
        0..=TEXT_BYTES_MAX => Ok(()),
        bytes => Err(format!("has {bytes} bytes; expected at most {TEXT_BYTES_MAX}")),
    }
}

fn check_network(text: &str) -> Result<(), String> {
    scan::parse_network(text).map(|_| ()).map_err(|error| error.to_string())
}

/// The IPv4 address of a peer is not mapped to IPv6.
fn proxy(text: &str) -> Result<(), String> {
    let network = scan::parse_network(text).map_err(|error| error.to_string())?;
    if matches!(network.first_address(), IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        return Err(format!("{text:?} is an IPv4 address in IPv6; write the IPv4 address"));
    }
    Ok(())
}

/// SHA-256 in hexadecimal digits.
fn token_hash(text: &str) -> Result<(), String> {
    let expected = "expected the 64 hexadecimal digits that `clqd token new` prints";
    TokenHash::parse(text).map(|_| ()).ok_or_else(|| expected.to_owned())
}

fn permission(text: &str) -> Result<(), String> {
    Permission::parse(text).map(|_| ())
}

/// Empty, or scheme and host.
fn public_url(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { parsed::<PublicUrl>(text) }
}

fn site_title(text: &str) -> Result<(), String> {
    not_empty(text)?;
    site_text(text, identity::TITLE_CHARS_MAX)
}

fn site_description(text: &str) -> Result<(), String> {
    site_text(text, identity::DESCRIPTION_CHARS_MAX)
}

fn site_text(text: &str, chars_max: usize) -> Result<(), String> {
    let chars = text.chars().count();
    if chars > chars_max || text.contains(char::is_control) {
        return Err(format!("has {chars} characters; at most {chars_max}, without control characters"));
    }
    Ok(())
}

fn colour(text: &str) -> Result<(), String> {
    if text.is_empty() || identity::is_colour(text) {
        return Ok(());
    }
    Err(format!("{text:?} is not a colour such as \"#b3121d\""))
}

fn webhook_name(text: &str) -> Result<(), String> {
    not_empty(text)?;
    site_text(text, 60)
}

/// The error does not contain the URL, which is a secret.
fn webhook_url(text: &str) -> Result<(), String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['));
    let is_valid = has_host && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid { Ok(()) } else { Err("is not a URL such as \"https://example.org/hook\"".to_owned()) }
}

fn webhook_event(text: &str) -> Result<(), String> {
    if WebhookEvent::VARIANTS.contains(&text) {
        return Ok(());
    }
    Err(format!("{text:?} is no event; events are {}", WebhookEvent::VARIANTS.join(", ")))
}

fn site_link(text: &str) -> Result<(), String> {
    SiteLink::parse(text).map(|_| ())
}

/// Weeks always exist, and `store.keep_weeks` sets how many are kept.
fn window(text: &str) -> Result<(), String> {
    let spec: WindowSpec = text.parse().map_err(|error: BadSpec| error.to_string())?;
    if spec.kind == WindowType::WEEK {
        return Err(format!(
            "window {text:?}: the week window always exists and cannot be listed; set store.keep_weeks instead"
        ));
    }
    Ok(())
}

fn log_filter(text: &str) -> Result<(), String> {
    not_empty(text)?;
    // A bare word other than a level would be parsed as a module, and silence all others.
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let words = text.split(',').map(str::trim).filter(|part| !part.contains(['=', '[']));
    let unknown = words.filter(|word| !LEVELS.contains(&word.to_ascii_lowercase().as_str()));
    let problems: Vec<String> = unknown
        .map(|word| match crate::nearest::nearest(word, LEVELS) {
            Some(right) => format!("{word:?} is not a level; did you mean {right:?}?"),
            None => format!("{word:?} is not a level; expected one of {}", LEVELS.join(", ")),
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    tracing_subscriber::EnvFilter::try_new(text)
        .map(|_| ())
        .map_err(|error| format!("{error}; expected a level such as \"info\", or \"info,clqd::scan=debug\""))
}

fn mysql_url(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let expected = "expected \"mysql://user@host:3306/database\"";
    let rest = text.strip_prefix("mysql://").ok_or_else(|| format!("does not begin with mysql://; {expected}"))?;
    let (host, database) = rest.split_once('/').ok_or_else(|| format!("names no database; {expected}"))?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if host.is_empty() {
        return Err(format!("names no host; {expected}"));
    }
    if database.split('?').next().is_none_or(str::is_empty) {
        return Err(format!("names no database; {expected}"));
    }
    // Remaining errors are found when the archive connects.
    let settings = ArchiveSettings { url: text.to_owned(), ..ArchiveSettings::default() };
    settings.validate().map_err(|error| error.to_string().trim_start_matches("archive.url ").to_owned())
}
