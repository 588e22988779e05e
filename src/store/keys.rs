//! Keys of the store: a tag, then numbers in big-endian.

use crate::model::calendar::DAY_MS;
use crate::model::commit::{MapRowKey, RowKey};
use crate::model::{
    GameKey, MapKey, NameHash, OutboxKey, PlayerKey, ServerKey, SessionDay, SessionKey, WeekKey, WindowKey, WindowType,
};

pub const META: u8 = b'A';
/// When everything pending was last in the archive. Older versions ignore it.
pub const ARCHIVE_COMPLETE: u8 = b'E';
/// The last batch of the log whose events the state contains.
pub const LOG_POSITION: u8 = b'J';
/// The number of the last checkpoint file. Not in these files.
pub const CHECKPOINT: u8 = b'C';
/// The number of the last checkpoint file whose changes the database has. Not in these files.
pub const APPLIED: u8 = b'K';
pub const GAME: u8 = b'G';
pub const MAP: u8 = b'M';
/// Name, a zero byte (which no name contains), game.
pub const NAME: u8 = b'N';
pub const OUTBOX: u8 = b'O';
pub const PLAYER: u8 = b'P';
pub const SERVER: u8 = b'S';
pub const SERIES: u8 = b'T';
pub const BEST: u8 = b'B';
/// When a player was seen.
pub const SEEN: u8 = b'H';
/// Player, server on which they have best positions.
pub const BEST_SERVERS: u8 = b'D';
pub const TAG: u8 = b'Y';
/// Player, one of their names other than the one in their record.
pub const ALIAS: u8 = b'L';
/// Hash of a name that is never stored again.
pub const FORGOTTEN: u8 = b'F';
/// Progress of a migration, while one is in progress.
pub const MIGRATING: u8 = b'Z';
/// A deleted player.
pub const DELETED_PLAYER: u8 = b'X';
/// Window (its type in two bytes, its number in four), then one of the tags below.
pub const WINDOW: u8 = b'W';

const CLOSED: u8 = b'c';
const RANK: u8 = b'k';
const MAP_ROW: u8 = b'm';
const PLAYER_WINDOW: u8 = b'p';
const ROW: u8 = b'r';
/// Of a day of sessions: server, end, player, origin. Ends are stored so that the latest is first.
const SESSION: u8 = b's';
/// Of a day of sessions: player, end, server, origin.
const PLAYER_SESSION: u8 = b'q';

/// The length of the group prefix of a key whose record is stored in a leaf. `None`: the
/// record is a separate sled record, because it is large and written with every scan.
pub fn group_prefix_len(key: &[u8]) -> Option<usize> {
    match key.first()? {
        &NAME | &PLAYER | &BEST | &BEST_SERVERS | &SEEN => Some(1),
        &WINDOW if key.len() > 7 => Some(8),
        _ => None,
    }
}

/// Whether a key begins with one of the prefixes.
pub fn has_prefix(key: &[u8], prefixes: &[Vec<u8>]) -> bool {
    prefixes.iter().any(|prefix| key.starts_with(prefix))
}

pub fn meta() -> [u8; 1] {
    [META]
}

pub fn archive_complete() -> [u8; 1] {
    [ARCHIVE_COMPLETE]
}

pub fn log_position() -> [u8; 1] {
    [LOG_POSITION]
}

pub fn checkpoint() -> [u8; 1] {
    [CHECKPOINT]
}

pub fn applied() -> [u8; 1] {
    [APPLIED]
}

pub fn migrating() -> [u8; 1] {
    [MIGRATING]
}

pub fn number_key(tag: u8, key: u32) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&key.to_be_bytes());
    bytes
}

pub fn server(server: ServerKey) -> Vec<u8> {
    number_key(SERVER, server.0)
}

pub fn name_prefix(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 6);
    bytes.push(NAME);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(0);
    bytes
}

pub fn name(name: &str, game: GameKey) -> Vec<u8> {
    let mut bytes = name_prefix(name);
    bytes.extend_from_slice(&game.0.to_be_bytes());
    bytes
}

pub fn best(server: ServerKey, player: PlayerKey) -> Vec<u8> {
    let mut bytes = number_key(BEST, server.0);
    bytes.extend_from_slice(&player.0.to_be_bytes());
    bytes
}

pub fn best_server(player: PlayerKey, server: ServerKey) -> Vec<u8> {
    let mut bytes = number_key(BEST_SERVERS, player.0);
    bytes.extend_from_slice(&server.0.to_be_bytes());
    bytes
}

pub fn alias(player: PlayerKey, name: &str) -> Vec<u8> {
    let mut bytes = number_key(ALIAS, player.0);
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

pub fn forgotten(hash: NameHash) -> Vec<u8> {
    let mut bytes = vec![FORGOTTEN];
    bytes.extend_from_slice(hash.bytes());
    bytes
}

pub fn read_forgotten(bytes: &[u8]) -> Option<NameHash> {
    let hash = bytes.strip_prefix(&[FORGOTTEN])?;
    Some(NameHash::from_bytes(hash.try_into().ok()?))
}

pub fn window_prefix(window: WindowKey) -> Vec<u8> {
    let mut bytes = number_key(WINDOW, 0);
    bytes.truncate(1);
    bytes.extend_from_slice(&window.kind.0.to_be_bytes());
    bytes.extend_from_slice(&window.index.to_be_bytes());
    bytes
}

/// The window of a key.
pub fn read_window(bytes: &[u8]) -> Option<WindowKey> {
    let kind = bytes.strip_prefix(&[WINDOW])?.first_chunk::<2>()?;
    Some(WindowKey { kind: WindowType(u16::from_be_bytes(*kind)), index: read_u32(bytes, 3) })
}

fn in_week(week: WeekKey, tag: u8, numbers: &[u32]) -> Vec<u8> {
    in_window(week.into(), tag, numbers)
}

fn in_window(window: WindowKey, tag: u8, numbers: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + 4 * numbers.len());
    bytes.push(WINDOW);
    bytes.extend_from_slice(&window.kind.0.to_be_bytes());
    bytes.extend_from_slice(&window.index.to_be_bytes());
    bytes.push(tag);
    for number in numbers {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes
}

pub fn row(key: RowKey) -> Vec<u8> {
    in_window(key.window, ROW, &[key.server.0, key.player.0])
}

pub fn rows_prefix(window: WindowKey, server: Option<ServerKey>) -> Vec<u8> {
    match server {
        Some(server) => in_window(window, ROW, &[server.0]),
        None => in_window(window, ROW, &[]),
    }
}

pub fn player_window(window: WindowKey, player: PlayerKey) -> Vec<u8> {
    in_window(window, PLAYER_WINDOW, &[player.0])
}

pub fn map_row(key: MapRowKey) -> Vec<u8> {
    in_week(key.week, MAP_ROW, &[key.server.0, key.map.0])
}

pub fn map_rows_prefix(week: WeekKey, server: Option<ServerKey>) -> Vec<u8> {
    match server {
        Some(server) => in_week(week, MAP_ROW, &[server.0]),
        None => in_week(week, MAP_ROW, &[]),
    }
}

/// The end of a session within its day, the latest first.
fn end_code(key: &SessionKey) -> u32 {
    !u32::try_from(key.end_ms.rem_euclid(DAY_MS)).expect("a day has fewer than 2^32 ms")
}

pub fn session(key: &SessionKey) -> Vec<u8> {
    in_window(key.day().into(), SESSION, &[key.server.0, end_code(key), key.player.0, key.origin.0])
}

pub fn player_session(key: &SessionKey) -> Vec<u8> {
    in_window(key.day().into(), PLAYER_SESSION, &[key.player.0, end_code(key), key.server.0, key.origin.0])
}

pub fn sessions_prefix(day: SessionDay, server: ServerKey) -> Vec<u8> {
    in_window(day.into(), SESSION, &[server.0])
}

pub fn player_sessions_prefix(day: SessionDay, player: PlayerKey) -> Vec<u8> {
    in_window(day.into(), PLAYER_SESSION, &[player.0])
}

/// The session of a key that begins with [`sessions_prefix`].
pub fn read_session(day: SessionDay, key: &[u8]) -> SessionKey {
    let [server, end, player, origin] = [8, 12, 16, 20].map(|at| read_u32(key, at));
    let (server, player, origin) = (ServerKey(server), PlayerKey(player), PlayerKey(origin));
    SessionKey { end_ms: day.start_ms() + i64::from(!end), server, player, origin, generation: day.generation }
}

/// The session of a key that begins with [`player_sessions_prefix`].
pub fn read_player_session(day: SessionDay, key: &[u8]) -> SessionKey {
    let read = read_session(day, key);
    SessionKey { server: ServerKey(read.player.0), player: PlayerKey(read.server.0), ..read }
}

pub fn closed(week: WeekKey, server: ServerKey) -> Vec<u8> {
    in_week(week, CLOSED, &[server.0])
}

pub fn closed_prefix(week: WeekKey) -> Vec<u8> {
    in_week(week, CLOSED, &[])
}

pub fn rank(week: WeekKey, server: ServerKey) -> Vec<u8> {
    in_week(week, RANK, &[server.0])
}

pub fn outbox(entry: OutboxKey) -> Vec<u8> {
    let (kind, numbers): (u8, [u32; 2]) = match entry {
        OutboxKey::Session(SessionKey { end_ms, server, player, origin, generation }) => {
            let mut bytes = vec![OUTBOX, 7];
            bytes.extend_from_slice(&end_ms.to_be_bytes());
            bytes.extend([server.0, player.0, origin.0].iter().flat_map(|n| n.to_be_bytes()));
            bytes.push(generation);
            return bytes;
        }
        OutboxKey::Game(key) => (1, [key.0, 0]),
        OutboxKey::Map(key) => (2, [key.0, 0]),
        OutboxKey::Player(key) => (3, [key.0, 0]),
        OutboxKey::Server(key) => (4, [key.0, 0]),
        OutboxKey::Week { week, server } => (5, [week.0, server.0]),
        // No player has key 0.
        OutboxKey::BestPositions { server, after } => (6, [server.0, after.map_or(0, |player| player.0)]),
        OutboxKey::WeekTotals(week) => (8, [week.0, 0]),
        OutboxKey::TopBoards(window) => (9, [window.kind.0.into(), window.index]),
        OutboxKey::LaterRows => (10, [0, 0]),
    };
    let mut bytes = vec![OUTBOX, kind];
    bytes.extend(numbers.iter().flat_map(|n| n.to_be_bytes()));
    bytes
}

pub fn read_outbox(bytes: &[u8]) -> Option<OutboxKey> {
    let (&kind, numbers) = bytes.strip_prefix(&[OUTBOX])?.split_first()?;
    if kind == 7 {
        let (end_ms, numbers) = numbers.split_first_chunk::<8>().filter(|(_, numbers)| numbers.len() == 13)?;
        let [server, player, origin] = [0, 4, 8].map(|at| read_u32(numbers, at));
        let (server, player, origin) = (ServerKey(server), PlayerKey(player), PlayerKey(origin));
        let (end_ms, generation) = (i64::from_be_bytes(*end_ms), numbers[12]);
        return Some(OutboxKey::Session(SessionKey { end_ms, server, player, origin, generation }));
    }
    if numbers.len() != 8 {
        return None;
    }
    let (a, b) = (read_u32(numbers, 0), read_u32(numbers, 4));
    Some(match kind {
        1 => OutboxKey::Game(GameKey(a)),
        2 => OutboxKey::Map(MapKey(a)),
        3 => OutboxKey::Player(PlayerKey(a)),
        4 => OutboxKey::Server(ServerKey(a)),
        5 => OutboxKey::Week { week: WeekKey(a), server: ServerKey(b) },
        6 => OutboxKey::BestPositions { server: ServerKey(a), after: Some(PlayerKey(b)).filter(|_| b > 0) },
        8 => OutboxKey::WeekTotals(WeekKey(a)),
        9 => OutboxKey::TopBoards(WindowKey { kind: WindowType(u16::try_from(a).ok()?), index: b }),
        10 => OutboxKey::LaterRows,
        _ => return None,
    })
}

/// The number at `at`; 0 where the key is too short, which no key written by clqd is.
pub fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| u32::from_be_bytes(four.try_into().expect("four bytes")))
}

/// For messages: the tag as a letter, the rest in hex.
pub fn display(key: &[u8]) -> String {
    let (tag, rest) = key.split_first().map_or((b'?', &[][..]), |(t, r)| (*t, r));
    let hex: String = rest.iter().map(|b| format!("{b:02x}")).collect();
    format!("{}:{hex}", char::from(tag))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn row(server: u32, player: u32) -> Vec<u8> {
        super::row(RowKey { window: WeekKey(3).into(), server: ServerKey(server), player: PlayerKey(player) })
    }

    fn session_key(server: u32, end_ms: i64, player: u32, origin: u32) -> SessionKey {
        SessionKey {
            end_ms: 20_000 * DAY_MS + end_ms,
            server: ServerKey(server),
            player: PlayerKey(player),
            origin: PlayerKey(origin),
            generation: 3,
        }
    }

    #[test]
    fn sessions_round_trip_and_the_latest_is_first() {
        let key = session_key;
        let keys = [key(1, DAY_MS - 1, 9, 9), key(1, 5, 2, 2), key(1, 5, 2, 3), key(1, 0, 1, 1), key(2, 7, 1, 1)];
        assert!(keys.iter().map(session).is_sorted());
        let mut of_players = keys.map(|key| player_session(&key));
        of_players.sort();
        let of_players = of_players.map(|bytes| read_player_session(keys[0].day(), &bytes));
        assert_eq!(of_players, [keys[4], keys[3], keys[1], keys[2], keys[0]]);
        for key in keys {
            assert_eq!(read_session(key.day(), &session(&key)), key);
            assert!(session(&key).starts_with(&sessions_prefix(key.day(), key.server)));
            assert!(player_session(&key).starts_with(&player_sessions_prefix(key.day(), key.player)));
        }
    }

    #[test]
    fn outbox_keys_round_trip_and_sort_like_their_entries() {
        let entries = [
            OutboxKey::Game(GameKey(9)),
            OutboxKey::Map(MapKey(1)),
            OutboxKey::Player(PlayerKey(1)),
            OutboxKey::Player(PlayerKey(256)),
            OutboxKey::Server(ServerKey(3)),
            OutboxKey::Week { week: WeekKey(2), server: ServerKey(9) },
            OutboxKey::Week { week: WeekKey(3), server: ServerKey(1) },
            OutboxKey::BestPositions { server: ServerKey(9), after: None },
            OutboxKey::BestPositions { server: ServerKey(9), after: Some(PlayerKey(1)) },
            OutboxKey::Session(session_key(1, 5, 2, 2)),
            OutboxKey::Session(session_key(1, 5, 3, 2)),
            OutboxKey::Session(session_key(1, 300, 1, 1)),
            OutboxKey::WeekTotals(WeekKey(2)),
            OutboxKey::TopBoards(WeekKey(2).into()),
            OutboxKey::LaterRows,
        ];
        let bytes: Vec<_> = entries.iter().map(|&e| outbox(e)).collect();
        assert!(entries.is_sorted() && bytes.is_sorted());
        for (entry, bytes) in entries.iter().zip(&bytes) {
            assert_eq!(read_outbox(bytes), Some(*entry));
        }
        assert_eq!(read_outbox(b"O\x09"), None);
    }
}
