//! Runs scans over TCP in virtual time: connections that open late, bring their bytes in pieces, end early, or are
//! never answered.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::model::{Completeness, ServerUrl};
use crate::scan::ScanMode;

const MS: fn(u64) -> Duration = Duration::from_millis;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Replies to each request.
    Good,
    /// Ends the connection after each response.
    Ending,
    /// Ends the connection before it replies.
    Broken,
    /// Replies to the first request only.
    Half,
    /// Accepts the connection, and replies nothing.
    Mute,
    /// Replies one byte a second.
    Dripping,
    Junk,
    Refusing,
    /// A filter drops all packets to it.
    Filtered,
}

const KINDS: [Kind; 9] = [
    Kind::Good,
    Kind::Ending,
    Kind::Broken,
    Kind::Half,
    Kind::Mute,
    Kind::Dripping,
    Kind::Junk,
    Kind::Refusing,
    Kind::Filtered,
];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Connected(u64),
    Received(u64, Vec<u8>),
    Ended(u64, bool),
}

struct Connection {
    /// Tells connections of one scan apart.
    number: u64,
    server: usize,
    is_open: bool,
    unsent: Vec<u8>,
}

struct World {
    core: ScanCore,
    random: SplitMix64,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, u64, Event)>>,
    count: u64,
    connections: BTreeMap<u64, Connection>,
    /// Most connections that were open together.
    most_open: usize,
    /// Datagrams sent, which nobody answers.
    datagrams: usize,
}

fn kind_of(server: usize) -> Kind {
    KINDS[server % KINDS.len()]
}

impl World {
    fn new(tcp_connections_max: u32) -> World {
        let settings = ScanSettings { tcp_connections_max, packets_per_second_max: 2_000.0, ..ScanSettings::default() };
        World {
            core: ScanCore::new(settings, SocketCounts { v4: 1, v6: 0 }, NonceKey::new([7; 16]), Arc::default()),
            random: SplitMix64::seed_from_u64(1),
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            count: 0,
            connections: BTreeMap::new(),
            most_open: 0,
            datagrams: 0,
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        let now = Moment { elapsed: self.now, unix_ms: self.now.as_millis() as i64 };
        self.core.handle(input, now);
        self.follow_commands();
    }

    fn below(&mut self, count: u64) -> u64 {
        self.random.next_u64() % count
    }

    fn schedule(&mut self, after: Duration, number: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + after, self.count, number, event)));
    }

    fn follow_commands(&mut self) {
        while self.core.has_connection_commands() {
            for command in self.core.take_connection_commands() {
                match command {
                    ConnectionCommand::Close(token) => assert!(self.connections.remove(&token).is_some(), "{token}"),
                    ConnectionCommand::Write { token, to, request } => self.write(token, to, request),
                }
            }
            self.most_open = self.most_open.max(self.connections.len());
        }
    }

    fn write(&mut self, token: u64, to: SocketAddr, request: Vec<u8>) {
        let IpAddr::V4(ip) = to.ip() else { panic!("{to}") };
        let [_, high, low, _] = ip.octets().map(usize::from);
        let server = high * 256 + low;
        if let Some(connection) = self.connections.get(&token).filter(|connection| connection.is_open) {
            let number = connection.number;
            return self.reply(token, number, server, &request);
        }
        self.count += 1;
        let number = self.count;
        let delay = MS(10 + self.below(200));
        self.connections.insert(token, Connection { number, server, is_open: false, unsent: request });
        match kind_of(server) {
            Kind::Filtered => {}
            Kind::Refusing => self.schedule(delay, number, Event::Ended(token, true)),
            _ => self.schedule(delay, number, Event::Connected(token)),
        }
    }

    /// A request has reached a server.
    fn reply(&mut self, token: u64, number: u64, server: usize, request: &[u8]) {
        let is_list = request.starts_with(b"GET /players.json ");
        let is_status = !request.starts_with(b"GET ");
        let body = match is_list {
            true => format!("[{{\"name\":\"player {server}\",\"ping\":5}}]"),
            false => "{\"clients\":1,\"sv_maxclients\":\"8\",\"hostname\":\"h\",\"mapname\":\"m\"}".to_owned(),
        };
        let kind = kind_of(server);
        let reply = match kind {
            _ if is_status => {
                let text =
                    format!("{{\"players\":{{\"max\":8,\"online\":1,\"sample\":[{{\"name\":\"p{server}\"}}]}}}}");
                [&[text.len() as u8 + 2, 0, text.len() as u8], text.as_bytes()].concat()
            }
            Kind::Ending => format!("HTTP/1.0 200 OK\r\n\r\n{body}").into_bytes(),
            Kind::Junk => b"220 welcome\r\n".to_vec(),
            Kind::Broken => Vec::new(),
            Kind::Half if is_list => return,
            Kind::Mute => return,
            _ => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes(),
        };
        let mut after = MS(0);
        let mut rest = &reply[..];
        while !rest.is_empty() {
            let (length, delay) = match kind {
                Kind::Dripping => (1, MS(1_000)),
                _ => (1 + self.below(60) as usize, MS(self.below(30))),
            };
            let (piece, next) = rest.split_at(length.min(rest.len()));
            after += delay;
            self.schedule(after, number, Event::Received(token, piece.to_vec()));
            rest = next;
        }
        if matches!(kind, Kind::Ending | Kind::Broken) {
            self.schedule(after + MS(1), number, Event::Ended(token, false));
        }
    }

    fn advance(&mut self) {
        self.datagrams += self.core.take_packets(0, Packets::default()).len();
        let next = self.events.peek().map(|Reverse((at, ..))| *at);
        let due = self.core.next_due();
        self.now = self.now.max(next.map_or(due, |next| next.min(due)));
        while let Some(Reverse((at, ..))) = self.events.peek()
            && *at <= self.now
        {
            let Some(Reverse((_, _, number, event))) = self.events.pop() else { unreachable!() };
            let (Event::Connected(token) | Event::Received(token, _) | Event::Ended(token, _)) = event;
            // What arrives after the connection was closed is not for anybody.
            let Some(connection) = self.connections.get_mut(&token).filter(|open| open.number == number) else {
                continue;
            };
            match event {
                Event::Connected(_) => {
                    connection.is_open = true;
                    let (server, request) = (connection.server, std::mem::take(&mut connection.unsent));
                    self.handle(Input::Connected(token));
                    self.reply(token, number, server, &request);
                }
                Event::Received(_, bytes) => self.handle(Input::Received { token, bytes: &bytes }),
                Event::Ended(_, is_refused) => {
                    self.connections.remove(&token);
                    self.handle(Input::ConnectionEnded { token, is_refused });
                }
            }
        }
        self.handle(Input::Time);
    }

    fn request(&mut self, id: u64, scheme: &str, server: usize) {
        let url = format!("{scheme}://20.{}.{}.1:30120", server / 256, server % 256);
        self.request_url(id, ServerKey(server as u32 + 1), &url);
    }

    fn request_url(&mut self, id: u64, server: ServerKey, url: &str) {
        let url = ServerUrl::parse(url).unwrap();
        self.handle(Input::Request(ScanRequest { id, server, url, mode: ScanMode::Normal, wants_settings: false }));
    }

    fn outcomes(&mut self, count: usize) -> Vec<ScanOutcome> {
        let mut outcomes = Vec::new();
        while outcomes.len() < count {
            self.advance();
            outcomes.extend(self.core.take_outcomes(usize::MAX));
        }
        outcomes
    }
}

#[test]
fn every_scan_has_its_outcome_with_few_connections() {
    let mut world = World::new(120);
    (0..900).for_each(|server| world.request(server as u64, "fivem", server));
    for outcome in world.outcomes(900) {
        let server = outcome.id as usize;
        let result = outcome.result.as_ref().map(|snapshot| (snapshot.completeness, snapshot.players.len()));
        let result = result.map_err(|miss| miss.reason);
        let want = match kind_of(server) {
            Kind::Good | Kind::Ending => Ok((Completeness::Full, 1)),
            Kind::Half => Ok((Completeness::Partial, 0)),
            Kind::Broken | Kind::Junk => Err(MissReason::Malformed),
            Kind::Mute | Kind::Filtered | Kind::Dripping => Err(MissReason::Timeout),
            Kind::Refusing => Err(MissReason::Refused),
        };
        assert_eq!(result, want, "{:?} {outcome:?}", kind_of(server));
        if result.is_ok() {
            assert!(outcome.rtt_ms.is_some_and(|ms| (10..=210).contains(&ms)), "{outcome:?}");
        }
    }
    assert_eq!((world.most_open, world.connections.len(), world.datagrams), (120, 0, 0));
    assert_eq!((world.core.in_flight(), world.core.held_bytes), (0, 0));
    let counts = world.core.counters.values();
    assert!(counts.connection_waits > 500 && counts.unsolicited == 0, "{counts:?}");
    // Refused and filtered servers have none; after each response of an ending one there is another.
    assert_eq!(counts.connections, 900 - 200 + 100, "{counts:?}");
}

#[test]
fn server_without_a_query_answers_its_status_and_is_not_queried_each_time() {
    let mut world = World::new(4);
    let mut queried = 0;
    for id in 0..64 {
        let before = world.datagrams;
        world.request(id, "minecraft", 0);
        let outcome = world.outcomes(1).remove(0);
        let snapshot = outcome.result.expect("the status");
        assert_eq!((snapshot.players[0].name.as_str(), snapshot.completeness), ("p0", Completeness::Full));
        assert_eq!(snapshot.map, crate::model::NO_MAP);
        queried += usize::from(world.datagrams > before);
    }
    // At first, and then once in 16 answers.
    assert_eq!(queried, 1 + 64 / usize::from(PROTOCOL_RETRY_SCANS));
    // A server that answers neither.
    world.request(64, "minecraft", 8);
    let outcome = world.outcomes(1).remove(0);
    assert_eq!(outcome.result.unwrap_err().reason, MissReason::Timeout);
    assert_eq!(outcome.attempts.len(), 2);
}

#[test]
fn scans_beyond_those_that_may_wait_end_as_our_fault() {
    let mut world = World::new(2);
    // All are silent: two have a connection, and sixteen wait.
    (0..19).for_each(|n| world.request(n, "fivem", 4 + 9 * n as usize));
    // Its query is not tried instead, whose silence would count against it.
    world.core.fallback_answers.insert(ServerKey(901), FALLBACK_ANSWERS_MIN + 1);
    world.request(19, "minecraft", 900);
    let (ours, theirs): (Vec<_>, Vec<_>) = world
        .outcomes(20)
        .into_iter()
        .partition(|outcome| outcome.result.as_ref().is_err_and(|miss| miss.reason == MissReason::SendFailed));
    assert_eq!((ours.len(), theirs.len(), world.most_open), (2, 18, 2));
    assert_eq!((world.core.in_flight(), world.connections.len()), (0, 0));
}

#[test]
fn more_connections_are_given_to_those_that_wait() {
    let mut world = World::new(1);
    (0..9).for_each(|n| world.request(n, "fivem", 4 + 9 * n as usize));
    let settings = ScanSettings { tcp_connections_max: 9, ..ScanSettings::default() };
    world.advance();
    assert_eq!(world.most_open, 1);
    world.handle(Input::Settings(Box::new(settings)));
    assert_eq!((world.most_open, world.outcomes(9).len()), (9, 9));
}

#[test]
fn status_of_a_server_whose_query_was_lost_is_partial() {
    let mut world = World::new(4);
    world.core.fallback_answers.insert(ServerKey(1), 0);
    let mut results = Vec::new();
    for id in 1..=5 {
        world.request(id, "minecraft", 0);
        let snapshot = world.outcomes(1).remove(0).result.expect("the status");
        results.push((snapshot.completeness, snapshot.count, snapshot.map.is_empty(), world.datagrams));
    }
    // Three times the query is sent three times, and not answered.
    let partial = |datagrams| (Completeness::Partial, Some(1), true, datagrams);
    assert_eq!(results[..2], [partial(3), partial(6)]);
    assert!(results[2..].iter().all(|result| *result == (Completeness::Full, None, false, 9)), "{results:?}");
}

#[test]
fn filtered_port_is_tried_with_one_connection() {
    let mut world = World::new(4);
    world.request_url(1, ServerKey(1), "auto://20.0.8.1:30120");
    let outcome = world.outcomes(1).remove(0);
    let over_tcp = |scheme: &str| crate::proto::protocol_of(scheme).unwrap().transport == crate::proto::Transport::Tcp;
    let tried = outcome.attempts.iter().filter(|attempt| attempt.port == 30_120 && over_tcp(attempt.scheme));
    assert_eq!(tried.count(), 1, "{:?}", outcome.attempts);
}

#[test]
fn silent_host_is_given_up_within_ten_seconds() {
    let usual = crate::proto::PROTOCOLS.iter().flat_map(|protocol| protocol.default_ports).copied();
    let longest = usual.chain([1, 2302, 16_567]).map(|port| {
        let mut world = World::new(4);
        world.request_url(1, ServerKey(1), &format!("auto://20.0.8.1:{port}"));
        assert!(world.outcomes(1)[0].result.is_err());
        (world.now, world.datagrams, port)
    });
    let longest = longest.max().unwrap();
    assert!(longest.0 <= MS(10_000), "{longest:?}");
}

#[test]
fn limits_of_an_address_count_connections() {
    let mut world = World::new(100);
    // Each scan needs four permits: two for the connection, two requests. Ten are there at once, and five a second
    // follow.
    for id in 0..20 {
        world.request_url(id, ServerKey(1), &format!("fivem://20.0.0.1:{}", 30_120 + id));
    }
    world.outcomes(20);
    assert!(world.now >= MS((20 * 4 - 10) * 200), "{:?}", world.now);
    assert!(world.core.counters.values().throttled_address > 0);
}
