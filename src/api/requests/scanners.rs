//! Scanners on other machines.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::machines::ScannerRow;
use crate::api::request::request;
use crate::model::{ServerUrl, Snapshot};
use crate::proto::Authentication;

kinds! {
    Scans: "scans", "Scans";
    ScannerRow: "scanner", "Scanner";
}

/// Characters of the name of a scanner or a region, at most.
const NAME_CHARS_MAX: usize = 40;

/// Outcomes of one request, at most, and scans of one answer.
pub const SCANS_MAX: usize = 200;

/// Hands in what a scanner has scanned, and takes what it scans next. It waits up to half a second for scans. A scanner
/// sends it again and again; after 3 s without one, its scans are given to others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScannersExchange {
    /// The name of the scanner: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Where it is, such as `eu`, by the same rules.
    pub region: String,
    /// A number that the scanner has chosen at its start: a scanner that was started again has lost its scans.
    pub session: u64,
    /// How many scans it can take now.
    pub space: u32,
    /// The `batch` of the last answer with scans that it got; 0: none. The scans of an answer that was lost are sent again.
    #[serde(default)]
    pub batch_known: u64,
    /// Outcomes are numbered from the start of the scanner. It has dropped those with smaller numbers: they are in the
    /// log, or there were too many.
    #[serde(default)]
    pub oldest: u64,
    /// The number of the first one in `outcomes`.
    #[serde(default)]
    pub first: u64,
    /// What it has scanned, at most 200.
    pub outcomes: Vec<ScannedServer>,
    /// The `hash` of the settings that it has; without it, it gets them.
    pub settings_known: Option<u64>,
}

request!(ScannersExchange: "scanners.exchange", Access::SCAN => Scans, |request| check(request));

fn check(request: &ScannersExchange) -> Result<(), String> {
    let ScannersExchange { name, region, space, outcomes, .. } = request;
    for (what, text) in [("name", name), ("region", region)] {
        check_scanner_name(text).map_err(|expected| format!("{what} {text:?}: {expected}"))?;
    }
    if request.oldest > request.first || request.first.checked_add(SCANS_MAX as u64).is_none() {
        return Err("the numbers of outcomes are not valid".to_owned());
    }
    if outcomes.len() > SCANS_MAX || *space > 1_000_000 {
        return Err(format!("a scanner may hand in {SCANS_MAX} outcomes at once, and have space for 1,000,000 scans"));
    }
    Ok(())
}

/// Checks the name of a scanner or a region. Error: what is expected.
pub fn check_scanner_name(text: &str) -> Result<(), String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_valid) {
        true => Ok(()),
        false => Err(format!("expected 1 to {NAME_CHARS_MAX} letters, digits and the characters - _ .")),
    }
}

/// The scanners that have joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScannersList {}

request!(ScannersList: "scanners.list", Access::Read => Vec<ScannerRow>);

/// How a scan ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScannedServer {
    /// The number of the scan.
    pub id: u64,
    /// The number of the server.
    pub server: u32,
    /// How long ago it ended, ms by a clock that nobody sets: the daemon computes the time from it.
    pub age_ms: u64,
    /// How long ago the first packet was sent, ms; `null` if none was.
    pub sent_age_ms: Option<u64>,
    /// Round-trip time, ms.
    pub rtt_ms: Option<u32>,
    /// How the reply was authenticated.
    #[schema(value_type = Option<String>)]
    pub authentication: Option<Authentication>,
    /// The protocols and ports that were tried, in order.
    pub attempts: Vec<ScanAttempt>,
    /// The result of the last one; `null`: the server was missed.
    #[schema(value_type = Option<Object>)]
    pub snapshot: Option<Snapshot>,
    /// Why it was missed.
    pub missed: Option<String>,
    /// What the server publishes about its settings: names and values.
    pub settings: Vec<(String, String)>,
}

/// One protocol, tried on one port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScanAttempt {
    /// The scheme of the protocol.
    pub scheme: String,
    /// The port.
    pub port: u16,
    /// Why it failed; `null`: it did not.
    pub missed: Option<String>,
}

/// What a scanner scans next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Scans {
    /// The number of the last answer with scans.
    pub batch: u64,
    /// The scans, in the order in which they are due.
    pub scans: Vec<ScanTask>,
    /// Outcomes with smaller numbers have arrived. If these are fewer than the scanner has handed in, this is another
    /// daemon, or it was started again: it gets them again.
    #[serde(default)]
    pub received: u64,
    /// Outcomes with smaller numbers are in the log, so the scanner need not keep them.
    #[serde(default)]
    pub logged: u64,
    /// What holds for all scanners; `null`: the scanner has it.
    pub settings: Option<ScannerSettings>,
    /// The URL of the leader of the cluster, empty if it is unknown: this engine follows it and has taken nothing; `null`: it has.
    pub leader: Option<String>,
}

/// A scan of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScanTask {
    /// The number of the scan.
    pub id: u64,
    /// The number of the server.
    pub server: u32,
    /// Its URL.
    #[schema(value_type = String)]
    pub url: ServerUrl,
    /// With longer times, and all protocols.
    pub exception_mode: bool,
    /// The settings that the server publishes are wanted.
    pub wants_settings: bool,
}

/// Settings of scans that hold for all scanners. Rates of packets are the scanner's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScannerSettings {
    /// `scan.timeout_ms`.
    pub timeout_ms: u32,
    /// `scan.retries`.
    pub retries: u32,
    /// `scan.allow_private`.
    pub allow_private: bool,
    /// `scan.authentication_min`.
    pub authentication_min: String,
    /// `scan.opt_out`.
    pub opt_out: Vec<String>,
    /// Of the values before.
    pub hash: u64,
}
