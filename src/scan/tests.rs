//! Tests the complete engine with scripted servers on loopback sockets.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::sys::socket::{setsockopt, sockopt};

use super::socket::ReceiveBatch;
use super::*;
use crate::model::{Completeness, ServerKey, ServerUrl};
use crate::proto::{Authentication, DetailLevel};

/// Received packets with their arrival times.
type Log = Arc<Mutex<Vec<(Instant, Vec<u8>)>>>;

/// A UDP socket that replies to each packet with a function of (packets so far, packet).
pub(super) struct Server {
    pub(super) address: SocketAddr,
    received: Log,
    stopping: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

impl Server {
    fn start(script: impl FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Server {
        Server::start_at("127.0.0.1:0", script)
    }

    pub(super) fn start_at(at: &str, mut script: impl FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Server {
        let socket = UdpSocket::bind(at).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // The time of arrival, however busy the machine is.
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
        let (address, is_v6) = (socket.local_addr().unwrap(), at.starts_with('['));
        let (received, stopping) = (Log::default(), Arc::<AtomicBool>::default());
        let (log, stop) = (received.clone(), stopping.clone());
        std::thread::spawn(move || {
            let mut batch = ReceiveBatch::default();
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                if socket.peek(&mut [0]).is_err() {
                    continue; // a timeout
                }
                batch.receive(&socket, is_v6);
                for (datagram, bytes) in batch.datagrams() {
                    log.lock().unwrap().push((batch.at() - datagram.age, bytes.to_vec()));
                    for reply in script(count, bytes) {
                        socket.send_to(&reply, datagram.from.unwrap()).unwrap();
                    }
                    count += 1;
                }
            }
        });
        Server { address, received, stopping }
    }

    fn url(&self, scheme: &str) -> ServerUrl {
        ServerUrl::parse(&format!("{scheme}://{}", self.address)).unwrap()
    }

    fn received(&self) -> Vec<(Instant, Vec<u8>)> {
        self.received.lock().unwrap().clone()
    }
}

pub(super) fn status(packet: &[u8], lines: &str) -> Vec<u8> {
    let nonce = std::str::from_utf8(&packet[14..]).unwrap().trim();
    let info = format!("\\challenge\\{nonce}\\mapname\\m\\sv_maxclients\\8\n{lines}");
    [b"\xff\xff\xff\xffstatusResponse\n", info.as_bytes()].concat()
}

pub(super) const INFO: &[u8] = b"\xff\xff\xff\xffI\x11Host\0map\0cstrike\0CS\0\xf0\x00\x01\x20\x00dl\x00\x011.0\0\x00";
const PLAYERS: &[u8] = b"\xff\xff\xff\xffD\x01\x00me\0\x05\0\0\0\0\0\x80\x3f";

fn source(packet: &[u8]) -> Vec<Vec<u8>> {
    let challenge = b"\x01\x02\x03\x04";
    let reply = match (packet[4], packet.ends_with(challenge)) {
        (b'T', true) => INFO.to_vec(),
        (b'U', true) => PLAYERS.to_vec(),
        _ => [b"\xff\xff\xff\xffA", &challenge[..]].concat(),
    };
    vec![reply]
}

/// A timeout that no replying server exceeds, however busy the machine is.
pub(super) fn patient() -> ScanSettings {
    ScanSettings {
        timeout_ms: 30_000,
        retries: 1,
        allow_private: true,
        limit_loopback: false,
        ..ScanSettings::default()
    }
}

/// For tests that wait for a timeout.
pub(super) fn quick() -> ScanSettings {
    ScanSettings { timeout_ms: 1_000, ..patient() }
}

pub(super) fn clock() -> Now {
    let start = Instant::now();
    Arc::new(move || 1_000_000 + start.elapsed().as_millis() as i64)
}

/// The outcome of the only scan that has ended.
async fn next(outcomes: &mut Outcomes) -> ScanOutcome {
    let mut batch = outcomes.recv().await.expect("the scanner runs");
    assert_eq!(batch.len(), 1);
    batch.remove(0)
}

/// Scans the URLs concurrently and returns the outcomes in the order of the URLs.
async fn scan_all(settings: ScanSettings, urls: &[ServerUrl], mode: ScanMode) -> (Vec<ScanOutcome>, ScanCounterValues) {
    let (scanner, requests, mut outcomes) = Scanner::start(settings, clock()).unwrap();
    let send_requests = async {
        for (id, url) in urls.iter().enumerate() {
            let request = ScanRequest {
                id: id as u64,
                server: ServerKey(1 + id as u32),
                url: url.clone(),
                mode,
                wants_settings: false,
            };
            assert!(requests.send(request).await);
        }
        drop(requests);
    };
    let receive_outcomes = async {
        let mut all = Vec::new();
        while let Some(batch) = outcomes.recv().await {
            all.extend(batch);
        }
        all
    };
    let ((), mut all) = tokio::join!(send_requests, receive_outcomes);
    all.sort_by_key(|outcome| outcome.id);
    assert_eq!(all.len(), urls.len());
    (all, scanner.counters().values())
}

async fn scan(settings: ScanSettings, url: ServerUrl) -> (ScanOutcome, ScanCounterValues) {
    let (mut all, counts) = scan_all(settings, &[url], ScanMode::Normal).await;
    (all.remove(0), counts)
}

pub(super) fn reason(outcome: &ScanOutcome) -> MissReason {
    outcome.result.as_ref().unwrap_err().reason
}

#[tokio::test]
async fn quake3_server_gives_full_snapshot() {
    let server = Server::start(|_, packet| vec![status(packet, "5 40 \"me\"\n")]);
    let (outcome, counts) = scan(patient(), server.url("quake3")).await;
    let snapshot = outcome.result.unwrap();
    assert_eq!((snapshot.players[0].points, snapshot.completeness), (Some(5), Completeness::Full));
    assert!(snapshot.t_ms >= outcome.sent_ms.unwrap() && outcome.sent_ms.unwrap() >= 1_000_000);
    assert!(outcome.rtt_ms.is_some());
    assert_eq!(outcome.attempts, [Attempt { scheme: "quake3", port: server.address.port(), result: Ok(()) }]);
    assert_eq!((counts.packets_sent, counts.packets_received, counts.snapshots), (1, 1, 1));
}

#[tokio::test]
async fn outcome_has_the_details_that_the_settings_ask_for() {
    let server = Server::start(|_, packet| vec![status(packet, "5 40 2 \"me\"\n")]);
    for (details, want) in
        [(None, None), (Some(DetailLevel::Summary), Some((1, 0))), (Some(DetailLevel::Rules), Some((1, 3)))]
    {
        let (outcome, _) = scan(ScanSettings { details, ..patient() }, server.url("quake3")).await;
        let counts = outcome.details.map(|details| (details.player_teams.len(), details.rules.len()));
        assert_eq!(counts, want, "{details:?}");
    }
}

#[tokio::test]
async fn source_server_with_challenges_gives_snapshot() {
    let server = Server::start(|_, packet| source(packet));
    let (outcome, counts) = scan(patient(), server.url("source")).await;
    let snapshot = outcome.result.unwrap();
    assert_eq!((snapshot.game.as_str(), snapshot.players[0].connected_ms), ("cstrike", Some(1_000)));
    assert_eq!(counts.packets_sent, 3);
}

#[tokio::test]
async fn ipv6_and_host_name_urls_are_scanned() {
    let Ok(probe) = UdpSocket::bind("[::1]:0") else { return };
    drop(probe);
    let server = Server::start_at("[::1]:0", |_, packet| vec![status(packet, "")]);
    let (outcome, _) = scan(patient(), server.url("quake3")).await;
    assert!(outcome.result.is_ok(), "{outcome:?}");
    let server = Server::start(|_, packet| vec![status(packet, "")]);
    let url = ServerUrl::parse(&format!("quake3://localhost:{}", server.address.port())).unwrap();
    let (outcome, _) = scan(patient(), url).await;
    assert!(outcome.result.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn lost_packet_is_resent_after_the_cooldown() {
    let server = Server::start(|count, packet| if count == 0 { vec![] } else { vec![status(packet, "")] });
    let (outcome, counts) = scan(quick(), server.url("quake3")).await;
    assert!(outcome.result.is_ok());
    assert!(outcome.rtt_ms.is_some_and(|rtt_ms| rtt_ms < 1_100), "it counts from the resend: {:?}", outcome.rtt_ms);
    assert_eq!(counts.resends, 1);
    let received = server.received();
    assert_eq!(received[0].1, received[1].1, "the same nonce");
    assert!((received[1].0 - received[0].0).as_millis() >= 1_099);
}

#[tokio::test]
async fn silent_server_is_a_miss_and_info_alone_is_partial() {
    let silent = Server::start(|_, _| vec![]);
    let no_list = Server::start(|_, packet| if packet[4] == b'T' { vec![INFO.to_vec()] } else { vec![] });
    let urls = [silent.url("quake3"), silent.url("source"), no_list.url("source")];
    let (all, counts) = scan_all(ScanSettings { retries: 0, ..quick() }, &urls, ScanMode::Normal).await;
    assert_eq!(reason(&all[0]), MissReason::Timeout);
    assert_eq!(reason(&all[1]), MissReason::Timeout);
    let snapshot = all[2].result.as_ref().unwrap();
    assert_eq!((snapshot.completeness, snapshot.announced_players()), (Completeness::Partial, Some(1)));
    assert_eq!((counts.misses["timeout"], counts.partials), (2, 1));
}

#[tokio::test]
async fn closed_port_is_refused_without_a_timeout() {
    let url = ServerUrl::parse("quake3://127.9.99.1:1").unwrap();
    // A second server listens; it is queried from the same sockets.
    let open = Server::start(|_, packet| vec![status(packet, "")]);
    let (all, counts) = scan_all(patient(), &[url, open.url("quake3")], ScanMode::Normal).await;
    assert_eq!(reason(&all[0]), MissReason::Refused);
    assert!(all[1].result.is_ok());
    assert_eq!(counts.icmp_port_unreachable, 1);
}

#[tokio::test]
async fn replies_with_wrong_nonce_are_ignored_and_counted() {
    let server = Server::start(|_, packet| {
        let wrong = b"\xff\xff\xff\xffstatusResponse\n\\challenge\\0000000000000000\n".to_vec();
        vec![b"junk".to_vec(), wrong, status(packet, "1 2 \"true\"\n")]
    });
    let (outcome, counts) = scan(patient(), server.url("quake3")).await;
    assert_eq!(outcome.result.unwrap().players[0].name, "true");
    assert_eq!((counts.ignored["not_a_reply"], counts.ignored["wrong_nonce"]), (1, 1));

    let junk = Server::start(|_, _| vec![b"junk".to_vec()]);
    let (outcome, _) = scan(ScanSettings { retries: 0, ..quick() }, junk.url("quake3")).await;
    assert_eq!(reason(&outcome), MissReason::Malformed);
}

#[tokio::test]
async fn reply_from_another_address_is_unsolicited() {
    // The queried server passes the request to a second socket, which replies.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = ServerUrl::parse(&format!("quake3://{}", socket.local_addr().unwrap())).unwrap();
    let queried = socket.try_clone().unwrap();
    std::thread::spawn(move || {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut buffer = [0; 100];
        let (len, from) = queried.recv_from(&mut buffer).unwrap();
        other.send_to(&status(&buffer[..len], ""), from).unwrap();
    });
    let (outcome, counts) = scan(ScanSettings { retries: 0, ..quick() }, url).await;
    assert_eq!(reason(&outcome), MissReason::Timeout);
    assert_eq!(counts.unsolicited, 1);
    drop(socket);
}

#[tokio::test]
async fn scans_of_one_address_run_one_at_a_time() {
    // The server replies when all three requests have been accepted.
    let accepted = Arc::<AtomicBool>::default();
    let all_accepted = accepted.clone();
    let server = Server::start(move |_, packet| {
        while !all_accepted.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if packet[4] == b'g' { vec![status(packet, "")] } else { source(packet) }
    });
    let urls = [server.url("quake3"), server.url("source"), server.url("darkplaces")];
    let (scanner, requests, mut outcomes) = Scanner::start(patient(), clock()).unwrap();
    for (id, url) in (0..).zip(urls) {
        assert!(
            requests
                .send(ScanRequest {
                    id,
                    server: ServerKey(id as u32),
                    url,
                    mode: ScanMode::Normal,
                    wants_settings: false
                })
                .await
        );
    }
    while scanner.counters().values().address_conflicts < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    accepted.store(true, Ordering::Relaxed);
    for game in ["baseq3", "cstrike", "baseq3"] {
        assert_eq!(next(&mut outcomes).await.result.unwrap().game, game);
    }
    assert_eq!(scanner.counters().values().address_conflicts, 2);
    let received = server.received();
    assert!((received[1].0 - received[0].0).as_millis() >= 1_099, "the cooldown separates two scans");
    assert!((received[4].0 - received[3].0).as_millis() >= 1_099);
}

#[tokio::test]
async fn scan_waits_for_the_cooldown_of_a_scan_that_has_ended() {
    let server = Server::start(|_, packet| vec![status(packet, "")]);
    let (_scanner, requests, mut outcomes) = Scanner::start(patient(), clock()).unwrap();
    for id in 0..3 {
        let request = ScanRequest {
            id,
            server: ServerKey(1),
            url: server.url("quake3"),
            mode: ScanMode::Normal,
            wants_settings: false,
        };
        assert!(requests.send(request).await);
        assert!(next(&mut outcomes).await.result.is_ok());
    }
    let received: Vec<Instant> = server.received().into_iter().map(|(at, _)| at).collect();
    assert!(received.windows(2).all(|pair| (pair[1] - pair[0]).as_millis() >= 1_099), "{received:?}");
}

#[tokio::test]
async fn list_with_less_proof_than_the_setting_is_partial() {
    let quakeworld = b"\xff\xff\xff\xffn\\map\\dm6\n1 5 2 40 \"n\" \"\" 0 0\n";
    let server = Server::start(move |_, packet| match packet[4] {
        b's' => vec![quakeworld.to_vec()],
        b'g' => vec![status(packet, "1 2 \"n\"\n")],
        _ => source(packet),
    });
    let urls = ["quakeworld", "source", "quake3"].map(|scheme| server.url(scheme));
    for (authentication_min, partial) in
        [(Authentication::Address, 0), (Authentication::Challenge, 1), (Authentication::Nonce, 2)]
    {
        let settings = ScanSettings { authentication_min, ..patient() };
        let (all, counts) = scan_all(settings, &urls, ScanMode::Normal).await;
        let grades: Vec<_> = all.iter().map(|outcome| outcome.authentication.unwrap()).collect();
        assert_eq!(grades, [Authentication::Address, Authentication::Challenge, Authentication::Nonce]);
        let snapshots: Vec<_> = all.iter().map(|outcome| outcome.result.as_ref().unwrap()).collect();
        for (index, snapshot) in snapshots.iter().enumerate() {
            let is_partial = index < partial;
            assert_eq!(snapshot.completeness == Completeness::Partial, is_partial, "{authentication_min} {index}");
            assert!(!is_partial || snapshot.announced_players() == Some(1));
        }
        assert_eq!((counts.unauthenticated, counts.partials), (partial as u64, partial as u64));
    }
}

#[tokio::test]
async fn private_opted_out_and_unresolved_urls_get_no_packet() {
    let server = Server::start(|_, packet| vec![status(packet, "")]);
    let urls = [server.url("quake3"), ServerUrl::parse("gopher://127.0.0.1:70").unwrap()];
    let (all, counts) = scan_all(ScanSettings { allow_private: false, ..quick() }, &urls, ScanMode::Normal).await;
    assert_eq!((reason(&all[0]), reason(&all[1])), (MissReason::NotPublic, MissReason::UnsupportedScheme));
    assert_eq!((all[0].sent_ms, counts.packets_sent), (None, 0));
    let opted_out = ScanSettings { opt_out: vec!["127.0.0.0/8".parse().unwrap()], ..quick() };
    assert_eq!(reason(&scan(opted_out, server.url("quake3")).await.0), MissReason::OptedOut);
    let nowhere = ServerUrl::parse("quake3://name.invalid:1").unwrap();
    // The latter on a machine without a name server.
    let reasons = [MissReason::Unresolved, MissReason::LookupFailed];
    assert!(reasons.contains(&reason(&scan(quick(), nowhere).await.0)));
    assert_eq!(server.received().len(), 0);
}

#[tokio::test]
async fn exception_mode_finds_the_protocol() {
    let server = Server::start(|_, packet| if packet[4] == b'g' { vec![] } else { source(packet) });
    let settings = ScanSettings { retries: 0, ..quick() };
    let (all, _) = scan_all(settings, &[server.url("quake3")], ScanMode::Exception).await;
    let port = server.address.port();
    assert_eq!(
        all[0].attempts,
        [
            Attempt { scheme: "quake3", port, result: Err(MissReason::Timeout) },
            Attempt { scheme: "source", port, result: Ok(()) }
        ]
    );
    assert_eq!(all[0].result.as_ref().unwrap().game, "cstrike");
    let received = server.received();
    assert!((received[1].0 - received[0].0).as_millis() >= 1_099);
}

#[tokio::test]
async fn global_rate_limit_delays_and_drops_nothing() {
    let mut servers = Vec::new();
    for _ in 0..30 {
        servers.push(Server::start(|_, packet| vec![status(packet, "")]));
    }
    let urls: Vec<_> = servers.iter().map(|s| s.url("quake3")).collect();
    let started = Instant::now();
    let (all, counts) =
        scan_all(ScanSettings { packets_per_second_max: 60.0, ..patient() }, &urls, ScanMode::Normal).await;
    assert!(all.iter().all(|o| o.result.is_ok()));
    assert_eq!((counts.packets_sent, counts.resends), (30, 0));
    assert!(counts.throttled_global > 0);
    // A burst of three, then 27 at 60 a second.
    assert!(started.elapsed().as_millis() >= 440, "{:?}", started.elapsed());
}

/// A server that challenges until the limit, and then floods: the scan goes on with the next protocol while it
/// waits for permits.
#[tokio::test]
async fn target_that_fails_while_throttled_is_followed_by_the_next() {
    let malformed = [b"\xff\xff\xff\xffI", &[0xff; 9_995][..]].concat();
    let server = Server::start(move |count, packet| match packet.get(4) {
        Some(b'T') if count < 2 => vec![[b"\xff\xff\xff\xffA123", &[count as u8][..]].concat()],
        Some(b'T') => std::iter::once(b"\xff\xff\xff\xffA1239".to_vec()).chain(vec![malformed.clone(); 8]).collect(),
        Some(b'g') => vec![status(packet, "")],
        _ => vec![],
    });
    let limited = ScanSettings {
        address_packets_per_second_max: 2.0,
        address_burst_packets: 3,
        limit_loopback: true,
        retries: 0,
        ..quick()
    };
    let (all, _) = scan_all(limited, &[server.url("source")], ScanMode::Exception).await;
    let tried: Vec<_> = all[0].attempts.iter().map(|attempt| (attempt.scheme, attempt.result)).collect();
    assert_eq!(tried, [("source", Err(MissReason::Malformed)), ("quake3", Ok(()))]);
}

#[tokio::test]
async fn flood_of_malformed_replies_ends_the_scan() {
    let malformed = [b"\x80\0\0\0\0", &[0xff; 9_995][..]].concat();
    let server = Server::start(move |_, _| vec![malformed.clone(); 30]);
    let (outcome, counts) = scan(patient(), server.url("unreal2")).await;
    assert_eq!(reason(&outcome), MissReason::Malformed);
    // The timeout is half a minute: the scan ended earlier.
    assert_eq!((counts.packets_sent, counts.ignored["malformed"]), (1, 7));
}

/// INFO of an empty server, whose lists were never longer than announced, ends the scan.
#[tokio::test]
async fn list_of_an_empty_server_is_not_requested_if_its_count_was_always_enough() {
    // In the order of the scans of one server: players announced, players listed, packets.
    for scans in [&[(0, 0, 3), (0, 0, 2), (1, 1, 3), (0, 0, 2)][..], &[(1, 1, 3), (0, 1, 2)], &[(0, 1, 3), (0, 0, 3)]] {
        let now = Arc::new(Mutex::new((0, 0)));
        let script = now.clone();
        let server = Server::start(move |_, packet| {
            let (announced, listed) = *script.lock().unwrap();
            let mut reply = source(packet).remove(0);
            match reply[4] {
                b'I' => reply[INFO.len() - 12] = announced,
                b'D' if listed == 0 => reply = b"\xff\xff\xff\xffD\x00".to_vec(),
                _ => {}
            }
            vec![reply]
        });
        let (scanner, requests, mut outcomes) = Scanner::start(patient(), clock()).unwrap();
        let mut sent = 0;
        for &(announced, listed, packets) in scans {
            *now.lock().unwrap() = (announced, listed);
            let url = server.url("source");
            assert!(
                requests
                    .send(ScanRequest {
                        id: 1,
                        server: ServerKey(1),
                        url,
                        mode: ScanMode::Normal,
                        wants_settings: false
                    })
                    .await
            );
            let snapshot = next(&mut outcomes).await.result.unwrap();
            assert_eq!(snapshot.completeness, Completeness::Full);
            let before = std::mem::replace(&mut sent, scanner.counters().values().packets_sent);
            assert_eq!(sent - before, packets, "{announced} announced, {listed} listed, of {scans:?}");
        }
    }
}

/// Each challenge makes clqd send another packet. All packets but those of a typical scan wait for the
/// limits, counted here at the server.
#[tokio::test]
async fn answers_to_challenges_obey_the_limits() {
    let challenge = |count: usize, _: &[u8]| vec![[b"\xff\xff\xff\xffA", &(count as u32).to_le_bytes()[..]].concat()];
    let servers: Vec<Server> = (0..3).map(|_| Server::start(challenge)).collect();
    let urls: Vec<_> = servers.iter().map(|server| server.url("source")).collect();
    let (per_second, burst) = (10, 3);
    let limited = ScanSettings {
        address_packets_per_second_max: f64::from(per_second),
        address_burst_packets: burst,
        limit_loopback: true,
        retries: 0,
        ..quick()
    };
    let started = Instant::now();
    let (all, counts) = scan_all(limited, &urls, ScanMode::Normal).await;
    assert!(
        all.iter().all(|outcome| reason(outcome) == MissReason::Malformed || reason(outcome) == MissReason::Timeout)
    );
    let mut arrivals: Vec<Instant> = servers.iter().flat_map(Server::received).map(|(at, _)| at).collect();
    arrivals.sort();
    assert_eq!(arrivals.len() as u64, counts.packets_sent);
    assert!(counts.throttled_address > 0 && arrivals.len() > 2 * burst as usize, "{} packets", arrivals.len());
    for (sent, at) in (1..).zip(arrivals) {
        let allowed = f64::from(burst) + (at - started).as_secs_f64() * f64::from(per_second) + 1.0;
        assert!(f64::from(sent) <= allowed, "{sent} packets in {:?}", at - started);
    }
}

#[tokio::test]
async fn requests_beyond_scans_in_flight_max_wait() {
    // The servers reply when the scanner has had time to send a third packet.
    let released = Arc::<AtomicBool>::default();
    let servers: Vec<Server> = (0..20)
        .map(|_| {
            let released = released.clone();
            Server::start(move |_, packet| {
                while !released.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                vec![status(packet, "")]
            })
        })
        .collect();
    let urls: Vec<_> = servers.iter().map(|server| server.url("quake3")).collect();
    let packets = || servers.iter().map(|server| server.received().len()).sum::<usize>();
    let observe = async {
        let began = Instant::now();
        while packets() < 2 {
            assert!(began.elapsed() < Duration::from_secs(300), "two scans have not begun");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let in_flight = packets();
        released.store(true, Ordering::Relaxed);
        in_flight
    };
    let settings = ScanSettings { scans_in_flight_max: 2, ..patient() };
    let ((all, _), in_flight) = tokio::join!(scan_all(settings, &urls, ScanMode::Normal), observe);
    assert_eq!(in_flight, 2);
    assert!(all.iter().all(|outcome| outcome.result.is_ok()));
}

#[tokio::test]
async fn shutdown_ends_within_grace_and_reload_applies_to_scans_in_flight() {
    let silent = Server::start(|_, _| vec![]);
    let replying = Server::start(|_, packet| vec![status(packet, "")]);
    let settings = patient();
    let (scanner, requests, mut outcomes) = Scanner::start(settings.clone(), clock()).unwrap();
    let request = |id, server: &Server| ScanRequest {
        id,
        server: ServerKey(1),
        url: server.url("quake3"),
        mode: ScanMode::Normal,
        wants_settings: false,
    };
    assert!(requests.send(request(1, &silent)).await);
    assert!(requests.send(request(2, &replying)).await);
    assert_eq!(next(&mut outcomes).await.id, 2);
    assert!(scanner.reloader().reload(ScanSettings { retries: 99, ..settings.clone() }).await.is_err());
    let opted_out = ScanSettings { opt_out: vec!["127.0.0.1".parse().unwrap()], ..settings.clone() };
    scanner.reloader().reload(opted_out).await.unwrap();
    let outcome = next(&mut outcomes).await;
    assert_eq!((outcome.id, reason(&outcome)), (1, MissReason::OptedOut));
    scanner.reloader().reload(settings).await.unwrap();
    assert!(requests.send(request(3, &silent)).await);
    while silent.received().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let counts = scanner.counters();
    let started = Instant::now();
    scanner.shutdown(Duration::from_millis(100)).await;
    assert!((99..25_000).contains(&started.elapsed().as_millis()), "before the timeout: {:?}", started.elapsed());
    assert_eq!(outcomes.recv().await, None);
    assert_eq!(counts.values().cancelled, 1);
}

#[tokio::test]
async fn kernel_drops_are_counted_and_the_scan_succeeds() {
    let server = Server::start(|count, packet| match count {
        0 => vec![vec![0; 8_000]; 400],
        _ => vec![status(packet, "")],
    });
    let settings = ScanSettings { receive_buffer_bytes: 4_096, ..quick() };
    let (outcome, counts) = scan(settings, server.url("quake3")).await;
    assert!(outcome.result.is_ok(), "{outcome:?}");
    assert!(counts.kernel_drops > 0, "{counts:?}");
    assert_eq!(counts.packets_received + counts.kernel_drops, 401, "{counts:?}");
}

#[tokio::test]
async fn servers_of_a_silent_host_get_one_packet_each() {
    let mut servers = Vec::new();
    for _ in 0..3 {
        // Each server answers only its first packet.
        let script = |count, packet: &[u8]| if count == 0 { vec![status(packet, "")] } else { vec![] };
        servers.push(Server::start(script));
    }
    let (scanner, requests, mut outcomes) = Scanner::start(quick(), clock()).unwrap();
    for (round, replies) in [3, 0, 0].into_iter().enumerate() {
        for (n, server) in servers.iter().enumerate() {
            let (id, url) = (n as u64, server.url("quake3"));
            assert!(
                requests
                    .send(ScanRequest {
                        id,
                        server: ServerKey(n as u32),
                        url,
                        mode: ScanMode::Normal,
                        wants_settings: false
                    })
                    .await
            );
        }
        let mut all = Vec::new();
        while all.len() < servers.len() {
            all.extend(outcomes.recv().await.expect("the scanner runs"));
        }
        assert_eq!(all.iter().filter(|outcome| outcome.result.is_ok()).count(), replies, "round {round}");
    }
    assert_eq!(scanner.counters().values().silent_hosts, 1);
    // A packet each in the first round, two in the second, one in the third.
    let packets: Vec<usize> = servers.iter().map(|server| server.received().len()).collect();
    assert_eq!(packets, [4, 4, 4]);
}
