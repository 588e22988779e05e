//! The scanner in virtual time: what `clqd::scan` does with requests, without its sockets,
//! rate limits and host names. The exchanges, the nonces and the targets of exception mode
//! are the real ones.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddrV4;

use clqd::engine::{Outcome, Probe};
use clqd::model::ServerKey;
use clqd::proto::{Exchange, NonceKey, Step};
use clqd::scan::ScanMode;
use clqd::scan::target::{Target, targets};

use super::network::{Delivery, VirtualNetwork};

const TIMEOUT_MS: i64 = 2_000;
const RETRIES: u32 = 2;
/// Exception mode multiplies the time-out and the number of retries by this.
const EXCEPTION_FACTOR: u32 = 3;

pub struct VirtualScanner {
    life: u32,
    key: NonceKey,
    scans: HashMap<u64, Scan>,
    /// The scan with a pending request to an address.
    by_address: HashMap<SocketAddrV4, u64>,
    timers: BinaryHeap<Reverse<(i64, u64, u32)>>,
    pub resends: u64,
    /// Datagrams that belong to no request, or are no valid reply.
    pub refused: u64,
}

struct Scan {
    server: ServerKey,
    ip: std::net::Ipv4Addr,
    targets: Vec<Target>,
    at: usize,
    dialogue: Box<dyn Exchange>,
    /// Packets sent for the current request.
    sent: u32,
    /// The deadline of the valid timer; others are stale.
    timer: u32,
    factor: u32,
    first_sent_ms: i64,
}

/// A scan has ended.
pub struct FinishedScan {
    pub id: u64,
    pub server: ServerKey,
    /// The last request.
    pub address: SocketAddrV4,
    pub sent_ms: i64,
    pub outcome: Outcome,
}

impl Scan {
    fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.ip, self.targets[self.at].port)
    }
}

impl VirtualScanner {
    /// The scanner of one process of the daemon: each has its own port and secret.
    pub fn new(life: u32) -> VirtualScanner {
        let mut key = [7; 16];
        key[..4].copy_from_slice(&life.to_le_bytes());
        VirtualScanner {
            life,
            key: NonceKey::new(key),
            scans: HashMap::new(),
            by_address: HashMap::new(),
            timers: BinaryHeap::new(),
            resends: 0,
            refused: 0,
        }
    }

    /// When the next request is to be resent or timed out.
    pub fn next_ms(&self) -> Option<i64> {
        self.timers.peek().map(|Reverse((at_ms, ..))| *at_ms)
    }

    pub fn begin(&mut self, network: &mut VirtualNetwork, now_ms: i64, t_ms: i64, probe: &Probe) {
        let mode = if probe.exception_mode { ScanMode::Exception } else { ScanMode::Normal };
        let Some(std::net::IpAddr::V4(ip)) = probe.url.ip() else { panic!("{} has no address", probe.url) };
        let targets = targets(&probe.url, mode);
        let first = SocketAddrV4::new(ip, targets[0].port);
        let dialogue = targets[0].protocol.start(self.key.nonce(first.into(), probe.id));
        let factor = if probe.exception_mode { EXCEPTION_FACTOR } else { 1 };
        let scan =
            Scan { server: probe.server, ip, targets, at: 0, dialogue, sent: 0, timer: 0, factor, first_sent_ms: t_ms };
        network.expire_sent_lists(first, now_ms);
        assert!(self.by_address.insert(first, probe.id).is_none(), "{first} is asked by two scans");
        self.scans.insert(probe.id, scan);
        self.send(network, now_ms, probe.id);
    }

    /// `t_ms`: what the daemon's clock shows.
    pub fn on_datagram(
        &mut self,
        network: &mut VirtualNetwork,
        now_ms: i64,
        t_ms: i64,
        arrival: &Delivery,
    ) -> Option<FinishedScan> {
        let id = self.by_address.get(&arrival.from).copied().filter(|_| arrival.life == self.life);
        let Some(id) = id else {
            self.refused += 1;
            return None;
        };
        let scan = self.scans.get_mut(&id).expect("it holds its address");
        match scan.dialogue.handle_datagram(t_ms, &arrival.bytes) {
            Step::Ignore(_) => self.refused += 1,
            Step::Wait => {}
            Step::Send => {
                scan.sent = 0;
                self.send(network, now_ms, id);
            }
            Step::Done(snapshot) => return Some(self.end(id, Outcome::Snapshot(*snapshot))),
        }
        None
    }

    /// Handles one time-out: resends the request, or ends the scan.
    pub fn on_time(&mut self, network: &mut VirtualNetwork, now_ms: i64, t_ms: i64) -> Option<FinishedScan> {
        while self.timers.peek().is_some_and(|Reverse((at_ms, ..))| *at_ms <= now_ms) {
            let Reverse((_, id, timer)) = self.timers.pop()?;
            let Some(scan) = self.scans.get_mut(&id).filter(|scan| scan.timer == timer) else { continue };
            if scan.sent <= RETRIES * scan.factor {
                self.resends += 1;
                self.send(network, now_ms, id);
            } else if let Some(snapshot) = scan.dialogue.partial_snapshot() {
                return Some(self.end(id, Outcome::Snapshot(snapshot)));
            } else if scan.at + 1 < scan.targets.len() {
                self.by_address.remove(&scan.address());
                scan.at += 1;
                scan.sent = 0;
                let address = scan.address();
                scan.dialogue = scan.targets[scan.at].protocol.start(self.key.nonce(address.into(), id));
                network.expire_sent_lists(address, now_ms);
                assert!(self.by_address.insert(address, id).is_none(), "{address} is asked by two scans");
                self.send(network, now_ms, id);
            } else {
                return Some(self.end(id, Outcome::Miss { t_ms, reason: "timeout".to_owned() }));
            }
        }
        None
    }

    fn send(&mut self, network: &mut VirtualNetwork, now_ms: i64, id: u64) {
        let scan = self.scans.get_mut(&id).expect("a scan in flight");
        scan.sent += 1;
        scan.timer += 1;
        self.timers.push(Reverse((now_ms + TIMEOUT_MS * i64::from(scan.factor), id, scan.timer)));
        network.send(now_ms, self.life, scan.address(), scan.dialogue.request());
    }

    fn end(&mut self, id: u64, outcome: Outcome) -> FinishedScan {
        let scan = self.scans.remove(&id).expect("a scan in flight");
        let address = scan.address();
        self.by_address.remove(&address);
        FinishedScan { id, server: scan.server, address, sent_ms: scan.first_sent_ms, outcome }
    }
}
