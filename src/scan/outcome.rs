//! How a scan ended.

use strum::{Display, IntoStaticStr, VariantArray};

use crate::model::{ServerKey, ServerUrl, Snapshot};
use crate::proto::{Authentication, Details};
use crate::scan::capture::Capture;

/// How a scan ended. Every request gets one, unless the scanner is shut down.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanOutcome {
    pub id: u64,
    pub server: ServerKey,
    /// When the first packet was sent, Unix ms; `None` if none was.
    pub sent_ms: Option<i64>,
    /// A partial snapshot is a success: the server is alive.
    pub result: Result<Snapshot, Miss>,
    /// Round-trip time; `None` for a miss. After a resend it counts from the last packet, because a
    /// reply to an earlier packet would have taken longer than the timeout.
    pub rtt_ms: Option<u32>,
    /// Authentication of the reply; `None` for a miss.
    pub authentication: Option<Authentication>,
    /// What the reply contains beyond the snapshot; only if the settings request it.
    pub details: Option<Box<Details>>,
    /// The datagrams that were received; only for the share of scans that the settings request.
    pub capture: Option<Box<Capture>>,
    /// The attempts, in order: one, or several in exception mode. Only the last can
    /// have succeeded.
    pub attempts: Vec<Attempt>,
}

impl ScanOutcome {
    /// The URL under which the server answers, if it is not the requested one: another protocol
    /// or port, found by trying. Another server of the same host may have answered.
    pub fn answers_at(&self, requested: &ServerUrl) -> Option<ServerUrl> {
        let Attempt { scheme, port, .. } = self.attempts.last().filter(|attempt| attempt.result.is_ok())?;
        let is_elsewhere = (*scheme, *port) != (requested.scheme(), requested.port());
        is_elsewhere.then(|| requested.with_scheme_and_port(scheme, *port))
    }

    /// Why the first attempt failed, the one with the scheme and port of the URL; a local fault on one of its addresses says
    /// nothing.
    pub fn first_miss(&self) -> Option<MissReason> {
        let is_told = |attempt: &&Attempt| attempt.result.err().is_none_or(|reason| !reason.is_local_fault());
        self.attempts.iter().find(is_told).or(self.attempts.first()).and_then(|attempt| attempt.result.err())
    }
}

/// One protocol, tried on one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub scheme: &'static str,
    pub port: u16,
    pub result: Result<(), MissReason>,
}

/// A scan without a result about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// When the scan ended, Unix ms.
    pub t_ms: i64,
    pub reason: MissReason,
}

/// Why a scan is a miss. Its text is the name in the scan log, in JSON and of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum MissReason {
    /// No reply to any of the packets.
    Timeout,
    /// Datagrams arrived, but no usable reply.
    Malformed,
    /// The host reports that the port is closed (ICMP port unreachable).
    Refused,
    /// The host name has no address.
    Unresolved,
    /// No name server has answered, for less than a day, and no address is known.
    LookupFailed,
    /// The address is private, loopback or the like, and `allow_private` is off.
    NotPublic,
    /// The address is on the opt-out list.
    OptedOut,
    /// No protocol has the URL's scheme.
    UnsupportedScheme,
    /// The system refused to send: no route, no IPv6, a local firewall.
    SendFailed,
    /// No reply, but the receive buffer of our socket overflowed during the scan.
    ReceiveOverflow,
}

impl MissReason {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether nothing came back, not even that the host refuses.
    pub fn is_silence(self) -> bool {
        matches!(self, MissReason::Timeout | MissReason::Unresolved)
    }

    /// Whether something came back, so the network works.
    pub fn is_reply(self) -> bool {
        matches!(self, MissReason::Malformed | MissReason::Refused)
    }

    /// Whether the cause may be local, so that the miss does not count against the server.
    pub fn is_local_fault(self) -> bool {
        matches!(self, MissReason::LookupFailed | MissReason::SendFailed | MissReason::ReceiveOverflow)
    }
}
