//! Scans and outcomes as they are sent between a daemon and its scanners, and back.

use siphasher::sip::SipHasher13;
use strum::VariantArray;

use crate::api::json;
use crate::api::requests::{ScanAttempt, ScanTask, ScannedServer, ScannerSettings};
use crate::limits::{NAME_BYTES_MAX, PLAYERS_MAX, POINTS_ABS_MAX, TEXT_BYTES_MAX};
use crate::model::{ServerKey, Snapshot};
use crate::proto::{Authentication, Details, protocol_of};
use crate::scan::{Attempt, Miss, MissReason, ScanMode, ScanOutcome, ScanRequest, ScanSettings, parse_network};

/// Attempts of a scan, at most: exception mode makes some 75 for each of up to 4 addresses. The last one says where the
/// server was found.
const ATTEMPTS_MAX: usize = 512;

/// Nothing is older: a day.
const AGE_MS_MAX: u64 = 86_400_000;

pub(super) fn task(request: ScanRequest) -> ScanTask {
    ScanTask {
        id: request.id,
        server: request.server.0,
        url: request.url,
        exception_mode: request.mode == ScanMode::Exception,
        wants_settings: request.wants_settings,
    }
}

pub(super) fn request(task: ScanTask) -> ScanRequest {
    ScanRequest {
        id: task.id,
        server: ServerKey(task.server),
        url: task.url,
        mode: if task.exception_mode { ScanMode::Exception } else { ScanMode::Normal },
        wants_settings: task.wants_settings,
    }
}

/// `now_ms` by the clock of the times in the outcome.
pub(super) fn scanned(outcome: ScanOutcome, now_ms: i64) -> ScannedServer {
    let age_ms = |t_ms: i64| (now_ms - t_ms).max(0) as u64;
    let (snapshot, missed, t_ms) = match outcome.result {
        Ok(snapshot) => {
            let t_ms = snapshot.t_ms;
            (Some(snapshot), None, t_ms)
        }
        Err(miss) => (None, Some(miss.reason.name().to_owned()), miss.t_ms),
    };
    let attempt = |attempt: Attempt| ScanAttempt {
        scheme: attempt.scheme.to_owned(),
        port: attempt.port,
        missed: attempt.result.err().map(|reason| reason.name().to_owned()),
    };
    let settings = outcome.details.iter().flat_map(|details| details.published());
    ScannedServer {
        id: outcome.id,
        server: outcome.server.0,
        age_ms: age_ms(t_ms),
        sent_age_ms: outcome.sent_ms.map(age_ms),
        rtt_ms: outcome.rtt_ms,
        authentication: outcome.authentication,
        attempts: outcome.attempts.into_iter().map(attempt).collect(),
        snapshot,
        missed,
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

/// The outcome, and how long ago it was, ms; its times are ages until the daemon sets them. One that is not valid is a fault
/// of the scanner's machine, so another one scans the server.
pub(super) fn outcome(scanned: ScannedServer) -> (i64, ScanOutcome) {
    let (id, server) = (scanned.id, ServerKey(scanned.server));
    let valid = valid_outcome(scanned);
    valid.unwrap_or_else(|why| {
        tracing::warn!("an outcome of a scanner is not valid: scan {id}: {why}");
        (0, failed(id, server))
    })
}

/// A scan that failed by a fault of the scanner's machine.
pub(super) fn failed(id: u64, server: ServerKey) -> ScanOutcome {
    ScanOutcome {
        id,
        server,
        sent_ms: None,
        result: Err(Miss { t_ms: 0, reason: MissReason::SendFailed }),
        rtt_ms: None,
        authentication: None,
        details: None,
        capture: None,
        attempts: Vec::new(),
    }
}

fn valid_outcome(scanned: ScannedServer) -> Result<(i64, ScanOutcome), String> {
    let reason = |name: &str| {
        let known = MissReason::VARIANTS.iter().find(|reason| reason.name() == name);
        known.copied().ok_or_else(|| format!("{name:?} is no reason of a miss"))
    };
    if scanned.attempts.len() > ATTEMPTS_MAX {
        return Err(format!("{} attempts are too many", scanned.attempts.len()));
    }
    let attempts = scanned.attempts.iter().map(|attempt| {
        let protocol = protocol_of(&attempt.scheme);
        let scheme = protocol.ok_or_else(|| format!("no protocol {:?}", attempt.scheme))?.scheme;
        let result = attempt.missed.as_deref().map_or(Ok(Ok(())), |name| reason(name).map(Err))?;
        Ok::<_, String>(Attempt { scheme, port: attempt.port, result })
    });
    let attempts = attempts.collect::<Result<Vec<_>, _>>()?;
    let result = match (scanned.snapshot, scanned.missed.as_deref()) {
        (Some(mut snapshot), None) => {
            check(&snapshot)?;
            snapshot.drop_impossible_values();
            Ok(snapshot)
        }
        (None, Some(name)) => Err(Miss { t_ms: 0, reason: reason(name)? }),
        _ => return Err("expected a snapshot or the reason of a miss".to_owned()),
    };
    let rules = scanned.settings.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
    let details = (!scanned.settings.is_empty()).then(|| Box::new(Details { rules, ..Details::default() }));
    let age_ms = |age_ms: u64| age_ms.min(AGE_MS_MAX) as i64;
    let outcome = ScanOutcome {
        id: scanned.id,
        server: ServerKey(scanned.server),
        sent_ms: scanned.sent_age_ms.map(age_ms),
        result,
        rtt_ms: scanned.rtt_ms,
        authentication: scanned.authentication,
        details,
        capture: None,
        attempts,
    };
    Ok((age_ms(scanned.age_ms), outcome))
}

/// The limits that the decoders of replies keep.
fn check(snapshot: &Snapshot) -> Result<(), String> {
    let texts = [&snapshot.game, &snapshot.map, &snapshot.hostname];
    if let Some(text) = texts.into_iter().find(|text| text.len() > TEXT_BYTES_MAX) {
        return Err(format!("a text has {} bytes; at most {TEXT_BYTES_MAX}", text.len()));
    }
    if snapshot.players.len() > PLAYERS_MAX {
        return Err(format!("it has {} players; at most {PLAYERS_MAX}", snapshot.players.len()));
    }
    for player in &snapshot.players {
        if player.name.len() > NAME_BYTES_MAX {
            return Err(format!("a name has {} bytes; at most {NAME_BYTES_MAX}", player.name.len()));
        }
        if player.points.is_some_and(|points| points.unsigned_abs() > POINTS_ABS_MAX.unsigned_abs()) {
            return Err(format!("a player has {:?} points; at most {POINTS_ABS_MAX}", player.points));
        }
    }
    Ok(())
}

/// What holds for all scanners.
pub(super) fn settings(scan: &ScanSettings) -> ScannerSettings {
    let mut settings = ScannerSettings {
        timeout_ms: scan.timeout_ms,
        retries: scan.retries,
        allow_private: scan.allow_private,
        authentication_min: scan.authentication_min.to_string(),
        opt_out: scan.opt_out.iter().map(ToString::to_string).collect(),
        hash: 0,
    };
    settings.hash = SipHasher13::new().hash(&json::to_vec(&settings));
    settings
}

/// The settings of a scanner with those of its daemon.
pub(super) fn with_settings(own: &ScanSettings, settings: &ScannerSettings) -> Result<ScanSettings, String> {
    let known = Authentication::VARIANTS.iter().find(|grade| grade.to_string() == settings.authentication_min);
    let mut opt_out = own.opt_out.clone();
    for network in &settings.opt_out {
        opt_out.push(parse_network(network).map_err(|error| format!("{network:?}: {error}"))?);
    }
    Ok(ScanSettings {
        timeout_ms: settings.timeout_ms,
        retries: settings.retries,
        allow_private: settings.allow_private,
        authentication_min: *known.ok_or("the daemon has an authentication_min that this version does not know")?,
        opt_out,
        ..own.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Completeness, Player};

    #[test]
    fn outcomes_come_back_as_they_were() {
        let player = Player {
            name: "^1x".into(),
            points: Some(-3),
            ping: None,
            connected_ms: Some(5),
            bot: true,
            spectator: false,
        };
        let snapshot = Snapshot {
            t_ms: 900,
            game: "g".into(),
            map: "m".into(),
            hostname: "\u{1F600}".into(),
            slots: 8,
            players: vec![player],
            completeness: Completeness::Partial,
            count: Some(1),
            bots: None,
        };
        let failed = Attempt { scheme: "quake3", port: 27_960, result: Err(MissReason::Timeout) };
        let sent = ScanOutcome {
            id: 7,
            server: ServerKey(9),
            sent_ms: Some(850),
            result: Ok(snapshot),
            rtt_ms: Some(50),
            authentication: Some(Authentication::Nonce),
            details: None,
            capture: None,
            attempts: vec![failed, Attempt { result: Ok(()), ..failed }],
        };
        let wire = json::to_vec(&scanned(sent.clone(), 1_000));
        let (age_ms, mut got) = outcome(serde_json::from_slice(&wire).expect("JSON"));
        assert_eq!((age_ms, got.sent_ms), (100, Some(150)));
        got.sent_ms = sent.sent_ms;
        assert_eq!(got, sent);
        let miss = ScanOutcome { result: Err(Miss { t_ms: 990, reason: MissReason::Refused }), ..sent };
        let (age_ms, got) = outcome(scanned(miss, 1_000));
        assert_eq!((age_ms, got.result), (10, Err(Miss { t_ms: 0, reason: MissReason::Refused })));
        let task = task(request(ScanTask {
            id: 1,
            server: 2,
            url: crate::model::ServerUrl::parse("quake3://a:1").expect("a URL"),
            exception_mode: true,
            wants_settings: true,
        }));
        assert!(task.exception_mode && task.wants_settings && task.id == 1);
    }

    #[test]
    fn what_is_invalid_is_refused_by_name() {
        let valid = || ScannedServer {
            id: 7,
            server: 1,
            age_ms: 1,
            sent_age_ms: None,
            rtt_ms: None,
            authentication: None,
            attempts: Vec::new(),
            snapshot: None,
            missed: Some("timeout".to_owned()),
            settings: Vec::new(),
        };
        assert!(valid_outcome(valid()).is_ok());
        let refused = |scanned: ScannedServer, want: &str| {
            let why = valid_outcome(scanned.clone()).expect_err("not valid");
            assert!(why.contains(want), "{why}");
            assert_eq!(outcome(scanned).1, failed(7, ServerKey(1)), "another scanner scans it");
        };
        refused(ScannedServer { missed: Some("moon".to_owned()), ..valid() }, "\"moon\" is no reason");
        let attempt = ScanAttempt { scheme: "x".to_owned(), port: 1, missed: None };
        refused(ScannedServer { attempts: vec![attempt], ..valid() }, "no protocol \"x\"");
        refused(ScannedServer { missed: None, ..valid() }, "expected a snapshot");
        let player = |name: &str, points| Player {
            name: name.into(),
            points: Some(points),
            ping: None,
            connected_ms: None,
            bot: false,
            spectator: false,
        };
        let listed = |players: Vec<Player>, map: &str| ScannedServer {
            missed: None,
            snapshot: Some(Snapshot {
                t_ms: 0,
                game: "g".into(),
                map: map.into(),
                hostname: String::new(),
                slots: 1,
                players,
                completeness: Completeness::Full,
                count: None,
                bots: None,
            }),
            ..valid()
        };
        assert!(valid_outcome(listed(vec![player("a", POINTS_ABS_MAX)], "m")).is_ok());
        refused(listed(vec![player("a", i64::MIN)], "m"), "points");
        refused(listed(vec![player(&"a".repeat(NAME_BYTES_MAX + 1), 1)], "m"), "a name has");
        refused(listed(vec![player("a", 1); PLAYERS_MAX + 1], "m"), "players");
        refused(listed(Vec::new(), &"m".repeat(TEXT_BYTES_MAX + 1)), "a text has");
        assert_eq!(outcome(ScannedServer { age_ms: u64::MAX, ..valid() }).0, AGE_MS_MAX as i64);
    }

    #[test]
    fn settings_of_the_daemon_hold_beside_those_of_the_scanner() {
        let network = |text: &str| parse_network(text).expect("a network");
        let daemon =
            ScanSettings { timeout_ms: 900, opt_out: vec![network("192.0.2.0/24")], ..ScanSettings::default() };
        let own = ScanSettings {
            packets_per_second_max: 7.0,
            opt_out: vec![network("198.51.100.1")],
            ..ScanSettings::default()
        };
        let both = with_settings(&own, &settings(&daemon)).expect("valid");
        assert_eq!((both.timeout_ms, both.packets_per_second_max, both.opt_out.len()), (900, 7.0, 2));
        assert_ne!(settings(&daemon).hash, settings(&own).hash);
    }
}
