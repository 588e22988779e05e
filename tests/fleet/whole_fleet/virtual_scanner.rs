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
use clqd::scan::target::{Effort, Target, targets};

use super::network::{Delivery, VirtualNetwork};

const TIMEOUT_MS: i64 = 2_000;
const RETRIES: u32 = 2;
/// Timeout of a target that is only probed.
const PROBE_TIMEOUT_MS: i64 = 1_100;

pub struct VirtualScanner {
    instance: u32,
    key: NonceKey,
    scans: HashMap<u64, Scan>,
    /// The scan with a pending request to an address.
    by_address: HashMap<SocketAddrV4, u64>,
    timers: BinaryHeap<Reverse<(i64, u64, u32)>>,
    pub resends: u64,
    /// Datagrams that belong to no request, or are not a valid reply.
    pub ignored: u64,
}

struct Scan {
    server: ServerKey,
    ip: std::net::Ipv4Addr,
    targets: Vec<Target>,
    target_index: usize,
    exchange: Box<dyn Exchange>,
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
    /// The address of the last request.
    pub address: SocketAddrV4,
    pub sent_ms: i64,
    pub outcome: Outcome,
}

impl Scan {
    fn target(&self) -> Target {
        self.targets[self.target_index]
    }

    fn timeout_ms(&self) -> i64 {
        match self.target().effort {
            Effort::Full => TIMEOUT_MS * i64::from(self.factor),
            Effort::Probe | Effort::QuickProbe => PROBE_TIMEOUT_MS,
        }
    }

    fn retries(&self) -> u32 {
        if self.target().effort == Effort::Full { RETRIES * self.factor } else { 0 }
    }

    fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.ip, self.targets[self.target_index].port)
    }
}

impl VirtualScanner {
    /// The scanner of one process of the daemon: each has its own port and secret.
    pub fn new(instance: u32) -> VirtualScanner {
        let mut key = [7; 16];
        key[..4].copy_from_slice(&instance.to_le_bytes());
        VirtualScanner {
            instance,
            key: NonceKey::new(key),
            scans: HashMap::new(),
            by_address: HashMap::new(),
            timers: BinaryHeap::new(),
            resends: 0,
            ignored: 0,
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
        let exchange = targets[0].protocol.start(self.key.nonce(first.into(), probe.id), first.into());
        let factor = mode.factor();
        let scan = Scan {
            server: probe.server,
            ip,
            targets,
            target_index: 0,
            exchange,
            sent: 0,
            timer: 0,
            factor,
            first_sent_ms: t_ms,
        };
        network.expire_sent_lists(first, now_ms);
        assert!(self.by_address.insert(first, probe.id).is_none(), "{first} is used by two scans");
        self.scans.insert(probe.id, scan);
        self.send(network, now_ms, probe.id);
    }

    /// Handles a datagram. `t_ms`: the time of the daemon's clock.
    pub fn on_datagram(
        &mut self,
        network: &mut VirtualNetwork,
        now_ms: i64,
        t_ms: i64,
        delivery: &Delivery,
    ) -> Option<FinishedScan> {
        let id = self.by_address.get(&delivery.from).copied().filter(|_| delivery.instance == self.instance);
        let Some(id) = id else {
            self.ignored += 1;
            return None;
        };
        let scan = self.scans.get_mut(&id).expect("a scan in flight");
        match scan.exchange.handle_datagram(t_ms, &delivery.bytes) {
            Step::Ignore(_) | Step::Fail(_) => self.ignored += 1,
            Step::Wait => {}
            Step::Send => {
                scan.sent = 0;
                self.send(network, now_ms, id);
            }
            // Perhaps another server of the host has answered.
            Step::Done(_) if scan.target_index > 0 => {
                return Some(self.end(id, Outcome::Miss { t_ms, reason: "timeout".to_owned() }));
            }
            Step::Done(snapshot) => return Some(self.end(id, Outcome::Snapshot(*snapshot))),
        }
        None
    }

    /// Handles one timeout: resends the request, or ends the scan.
    pub fn on_time(&mut self, network: &mut VirtualNetwork, now_ms: i64, t_ms: i64) -> Option<FinishedScan> {
        while self.timers.peek().is_some_and(|Reverse((at_ms, ..))| *at_ms <= now_ms) {
            let Reverse((_, id, timer)) = self.timers.pop()?;
            let Some(scan) = self.scans.get_mut(&id).filter(|scan| scan.timer == timer) else { continue };
            if scan.sent <= scan.retries() {
                self.resends += 1;
                self.send(network, now_ms, id);
            } else if let Some(snapshot) = scan.exchange.partial_snapshot().filter(|_| scan.target_index == 0) {
                return Some(self.end(id, Outcome::Snapshot(snapshot)));
            } else if scan.target_index + 1 < scan.targets.len() {
                self.by_address.remove(&scan.address());
                scan.target_index += 1;
                scan.sent = 0;
                let address = scan.address();
                scan.exchange = scan.target().protocol.start(self.key.nonce(address.into(), id), address.into());
                network.expire_sent_lists(address, now_ms);
                assert!(self.by_address.insert(address, id).is_none(), "{address} is used by two scans");
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
        self.timers.push(Reverse((now_ms + scan.timeout_ms(), id, scan.timer)));
        network.send(now_ms, self.instance, scan.address(), scan.exchange.request());
    }

    fn end(&mut self, id: u64, outcome: Outcome) -> FinishedScan {
        let scan = self.scans.remove(&id).expect("a scan in flight");
        let address = scan.address();
        self.by_address.remove(&address);
        FinishedScan { id, server: scan.server, address, sent_ms: scan.first_sent_ms, outcome }
    }
}
