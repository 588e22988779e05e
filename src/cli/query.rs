//! `clqd query` queries game servers directly and prints the results. It needs no daemon
//! and stores nothing.
//!
//! Servers are printed in the order of their responses. With `--json`, each result is a
//! line of a scan log with the additional fields `kind`, `asked` and `rtt_ms`, and each invalid line of
//! a list is an object of the kind `query_error`. Text and JSON mark the same players as bots, by the
//! rules of the ranking.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::RangedI64ValueParser;
use clap::{ArgGroup, Args};
use unicode_width::UnicodeWidthStr;

use crate::api::json;
use crate::capture;
use crate::cli::arguments::{UrlArgumentError, parse_new_url};
use crate::cli::context::CliContext;
use crate::cli::output::format::sanitize;
use crate::cli::output::table::{pad, truncate};
use crate::cli::scan_once::{ScanEvent, scan_once};
use crate::cli::stdio::{self, Output, note};
use crate::engine::Outcome;
use crate::model::name::{ColourCodes, strip_colours};
use crate::model::{Completeness, Player, ServerKey, ServerUrl, Snapshot};
use crate::proto::{self, AUTO_SCHEME, DetailLevel, Details, ServerUrlError, WireFormat, parse_server_url_or_auto};
use crate::rank::Rules;
use crate::scan::{Attempt, ScanMode, ScanOutcome, ScanRequest, ScanSettings, TIMEOUT_MS};
use crate::scan_log;

/// Largest width of the URL column, bytes. A longer URL shifts the rest of its line.
const URL_WIDTH_MAX: usize = 44;

/// Width of the map column.
const MAP_WIDTH: usize = 16;

/// Largest width of the column of teams.
const TEAM_WIDTH_MAX: usize = 12;

/// Largest widths of host names and of player names. `--json` prints complete names.
const HOSTNAME_WIDTH_MAX: usize = 60;
const NAME_WIDTH_MAX: usize = 40;

/// The output is written when there is so much, or nothing else to do: 13 lines of a server have some 600 bytes.
const OUTPUT_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("servers").args(["urls", "file", "replay"]).required(true).multiple(true))]
pub struct QueryArgs {
    /// Such as quake3://host:27960; host:port if the protocol is unknown
    #[arg(value_name = "URL", value_parser = parse_target_argument)]
    pub urls: Vec<Target>,
    /// One URL a line; - is standard input
    ///
    /// What follows # is ignored.
    #[arg(long, value_name = "LIST")]
    pub file: Vec<PathBuf>,
    /// Timeout of one query, ms
    #[arg(long, value_name = "MS", default_value_t = 1_500, value_parser = timeout_ms())]
    pub timeout_ms: u32,
    /// Retries after a timeout
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=10))]
    pub retries: u32,
    /// Most packets a second
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub packets_per_second_max: u32,
    /// Try every protocol on all usual ports
    ///
    /// With three times the timeout and retries.
    #[arg(long)]
    pub any_protocol: bool,
    /// Print all settings of a server
    #[arg(long)]
    pub rules: bool,
    /// Append the datagrams to this file
    ///
    /// One JSON object a line for each server. They contain names of players.
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Decode a capture instead of querying
    #[arg(long, value_name = "FILE", conflicts_with_all = ["urls", "file", "capture", "any_protocol"])]
    pub replay: Option<PathBuf>,
}

/// A server to query.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// As it was written.
    asked: String,
    url: ServerUrl,
}

fn parse_target_argument(asked: &str) -> Result<Target, UrlArgumentError> {
    parse_new_url(asked).map(|url| Target { asked: asked.to_owned(), url })
}

fn parse_target(asked: &str) -> Result<Target, ServerUrlError> {
    parse_server_url_or_auto(asked).map(|url| Target { asked: asked.to_owned(), url })
}

fn timeout_ms() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*TIMEOUT_MS.start())..=i64::from(*TIMEOUT_MS.end()))
}

/// Queries all servers and prints each result as it is received. The exit code is 0 if all
/// servers responded, and 1 if some did not or if a line of a list is invalid.
pub fn run(args: &QueryArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let rules = config.engine_settings()?.rules;
    if let Some(file) = &args.replay {
        return replay(file, args, app.json(), &rules);
    }
    let mut targets = QueryTargets::default();
    args.urls.iter().cloned().for_each(|target| targets.add(target));
    let mut out = io::BufWriter::with_capacity(OUTPUT_BYTES, Output::ending());
    for file in &args.file {
        let name = if is_stdin(file) { "standard input".to_owned() } else { file.display().to_string() };
        let invalid = if is_stdin(file) {
            targets.read(io::stdin().lock())
        } else {
            File::open(file).and_then(|opened| targets.read(BufReader::new(opened)))
        };
        for (line, error) in invalid.with_context(|| format!("cannot read {name}"))? {
            if app.json() {
                let (list, error) = (json::to_string(&name), json::to_string(&error));
                writeln!(out, "{{\"kind\":\"query_error\",\"list\":{list},\"line\":{line},\"error\":{error}}}")?;
            } else {
                note(format_args!("{name}:{line}: {error}"));
            }
            targets.refused += 1;
        }
    }
    if let Some(known) = &targets.known_schemes {
        note(format_args!("clqd: known schemes are {known}"));
    }
    let settings = settings(args, config.scan.limit_loopback);
    let missed = query(args, settings, app.json(), &rules, &targets.targets, out)?;
    Ok(if missed + targets.refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints what the datagrams of a capture contain.
fn replay(file: &Path, args: &QueryArgs, json: bool, rules: &Rules) -> anyhow::Result<ExitCode> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut out = io::BufWriter::new(Output::ending());
    let mut failed = 0;
    capture::replay(BufReader::new(opened), detail_level(args), |number, result| match result {
        Ok((url, mut outcome)) => {
            failed += u64::from(outcome.result.is_err());
            mark_bots(&mut outcome, &url, rules);
            print(&mut out, json, None, &url, URL_WIDTH_MAX, outcome)
        }
        Err(error) => {
            failed += 1;
            note(format_args!("{}:{number}: {error}", file.display()));
            Ok(())
        }
    })
    .with_context(|| format!("cannot read {}", file.display()))?;
    out.flush()?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Queries the servers and prints the results. Returns the number of servers without a
/// usable response.
fn query(
    args: &QueryArgs,
    settings: ScanSettings,
    json: bool,
    rules: &Rules,
    targets: &[Target],
    mut out: impl Write,
) -> anyhow::Result<u64> {
    let mut captures = match &args.capture {
        Some(path) => {
            let options = File::options().append(true).create(true).mode(0o600).open(path);
            Some(io::BufWriter::new(options.with_context(|| format!("cannot write {}", path.display()))?))
        }
        None => None,
    };
    let mode = if args.any_protocol { ScanMode::Exception } else { ScanMode::Normal };
    let requests = (0..).zip(targets).map(|(id, target)| {
        let (server, url) = (ServerKey(id), target.url.clone());
        ScanRequest { id: id.into(), server, url, mode, wants_settings: false }
    });
    let mut missed = 0;
    let width = targets.iter().map(|target| target.url.as_str().len()).max().unwrap_or(0).min(URL_WIDTH_MAX);
    scan_once(settings, requests, |event| {
        let ScanEvent::Outcomes(outcomes) = event else { return out.flush() };
        for mut outcome in outcomes {
            missed += u64::from(outcome.result.is_err());
            let Target { asked, url: requested } = &targets[outcome.id as usize];
            let is_auto = requested.scheme() == AUTO_SCHEME;
            let found = if is_auto { outcome.answers_at(requested) } else { None };
            let url = found.as_ref().unwrap_or(requested);
            mark_bots(&mut outcome, url, rules);
            if let (Some(file), Some(capture)) = (&mut captures, &outcome.capture) {
                capture::write(file, requested, capture)?;
            }
            print(&mut out, json, Some(asked), url, width, outcome)?;
        }
        Ok(())
    })?;
    captures.iter_mut().try_for_each(Write::flush)?;
    Ok(missed)
}

fn settings(args: &QueryArgs, limit_loopback: bool) -> ScanSettings {
    ScanSettings {
        timeout_ms: args.timeout_ms,
        retries: args.retries,
        packets_per_second_max: args.packets_per_second_max.into(),
        allow_private: true,
        limit_loopback,
        details: Some(detail_level(args)),
        capture_share: if args.capture.is_some() { 1.0 } else { 0.0 },
        ..ScanSettings::default()
    }
}

/// The details that are printed.
fn detail_level(args: &QueryArgs) -> DetailLevel {
    if args.rules { DetailLevel::Rules } else { DetailLevel::Summary }
}

/// `asked`: the server as it was written; `None`: a capture does not show it.
fn print(
    out: &mut impl Write,
    json: bool,
    asked: Option<&str>,
    url: &ServerUrl,
    width: usize,
    outcome: ScanOutcome,
) -> io::Result<()> {
    if json {
        return write_json(out, asked, url, outcome);
    }
    write_text(out, url, width, &outcome)?;
    outcome.details.iter().try_for_each(|details| write_details(out, details))
}

/// Marks the players that the ranking classifies as bots. The rules depend on the protocol
/// that the server used for its response.
fn mark_bots(outcome: &mut ScanOutcome, url: &ServerUrl, rules: &Rules) {
    let scheme = outcome.attempts.last().map_or(url.scheme(), |attempt| attempt.scheme);
    let is_quake3 = proto::protocol_of(scheme).is_some_and(|protocol| protocol.wire_format == WireFormat::Quake3);
    let Ok(snapshot) = &mut outcome.result else { return };
    let family = rules.names.family(&rules.screen, scheme, is_quake3, &snapshot.game);
    for player in &mut snapshot.players {
        player.bot = rules.names.is_bot(player, family);
    }
}

/// Writes a scan log line as an object with more fields: first `kind`, last `details`,
/// `authentication`, `asked`, and `rtt_ms` if the round-trip time is known.
fn write_json(out: &mut impl Write, asked: Option<&str>, url: &ServerUrl, outcome: ScanOutcome) -> io::Result<()> {
    let asked = asked.map_or_else(String::new, |asked| format!(",\"asked\":{}", json::to_string(&asked)));
    let details = outcome.details.map(|details| format!(",\"details\":{}", json::to_string(&*details)));
    let (rtt_ms, authentication) = (outcome.rtt_ms, outcome.authentication);
    let result = match outcome.result {
        Ok(snapshot) => Outcome::Snapshot(snapshot),
        Err(miss) => Outcome::Miss { t_ms: miss.t_ms, reason: miss.reason.name().to_owned() },
    };
    let mut line = Vec::new();
    scan_log::write(&mut line, url, &result);
    let line = String::from_utf8(line).expect("JSON is text");
    let fields = line.trim_end().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let fields = json::escape(fields.expect("a line of a scan log is an object"));
    let rtt = rtt_ms.map_or_else(String::new, |ms| format!(",\"rtt_ms\":{ms}"));
    let authentication = authentication.map_or_else(String::new, |grade| format!(",\"authentication\":\"{grade}\""));
    writeln!(out, "{{\"kind\":\"query\",{fields}{}{authentication}{asked}{rtt}}}", details.unwrap_or_default())
}

fn write_text(out: &mut impl Write, url: &ServerUrl, width: usize, outcome: &ScanOutcome) -> io::Result<()> {
    let snapshot = match &outcome.result {
        Ok(snapshot) => snapshot,
        Err(miss) => return writeln!(out, "{:<width$}  no response ({})", url.as_str(), miss.reason),
    };
    // With `--any-protocol`, the server may respond on another protocol or port than the
    // URL's.
    let elsewhere =
        outcome.attempts.last().filter(|attempt| (attempt.scheme, attempt.port) != (url.scheme(), url.port()));
    // The scheme determines which colour codes are removed from names.
    let codes = ColourCodes::of_scheme(elsewhere.map_or(url.scheme(), |attempt| attempt.scheme));
    let shown = |text: &str| sanitize(&strip_colours(text, codes));
    let rtt = outcome.rtt_ms.map_or("-".to_owned(), |ms| format!("{ms} ms"));
    // Two columns of 7, the map, and four gaps.
    let before = width + 2 * 7 + MAP_WIDTH + 4 * 2;
    let hostname_width = stdio::width().map_or(HOSTNAME_WIDTH_MAX, |columns| columns.saturating_sub(before).max(12));
    writeln!(
        out,
        "{:<width$}  {rtt:>7}  {:>7}  {}  {}{}",
        url.as_str(),
        format!("{}/{}", player_count(snapshot), snapshot.slots),
        pad(&shown(&snapshot.map), MAP_WIDTH),
        truncate(&shown(&snapshot.hostname), hostname_width.min(HOSTNAME_WIDTH_MAX)),
        notes(snapshot, elsewhere),
    )?;
    let teams = outcome.details.as_deref().map_or(&[][..], |details| &details.player_teams);
    let team_of = |index: usize| teams.get(index).map(|team| shown(team)).unwrap_or_default();
    let team_width = (0..teams.len()).map(|index| team_of(index).width()).max().unwrap_or(0).min(TEAM_WIDTH_MAX);
    let mut players: Vec<(usize, &Player)> = snapshot.players.iter().enumerate().collect();
    players.sort_by_key(|(_, player)| std::cmp::Reverse(player.points));
    for (index, player) in players {
        match player.points {
            Some(points) => write!(out, "    {points:>7}")?,
            None => write!(out, "    {:>7}", "")?,
        }
        match player.ping {
            _ if player.bot => write!(out, "  {:>7}", "bot")?,
            Some(ping) => write!(out, "  {ping:>4} ms")?,
            None => write!(out, "  {:>7}", "")?,
        }
        if team_width > 0 {
            write!(out, "  {}", pad(&team_of(index), team_width))?;
        }
        writeln!(out, "  {}", truncate(&shown(&player.name), NAME_WIDTH_MAX))?;
    }
    Ok(())
}

/// Writes what the reply contains beyond the snapshot: one line, and a line for each of the rules.
fn write_details(out: &mut impl Write, details: &Details) -> io::Result<()> {
    let named = |name: &str, value: &Option<String>| {
        let value = value.as_deref().filter(|value| !value.trim().is_empty())?;
        Some(format!("{name} {}", truncate(&sanitize(value), NAME_WIDTH_MAX)))
    };
    let flag = |name: &str, value: Option<bool>| value.filter(|value| *value).map(|_| name.to_owned());
    let tags = details.tags.join(",");
    let parts = [
        named("type", &details.game_type),
        named("version", &details.version),
        flag("password", details.password),
        flag("secure", details.secure),
        named("tags", &Some(tags)),
    ];
    let line = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if !line.is_empty() {
        writeln!(out, "    {line}")?;
    }
    details.rules.iter().try_for_each(|(key, value)| writeln!(out, "    {} = {}", sanitize(key), sanitize(value)))
}

/// Returns the number of players without bots, and of bots if there are any: `0+6`. A full list is counted.
/// For a partial list it is the count that the server reports, or `?` if it reports none.
fn player_count(snapshot: &Snapshot) -> String {
    let announced_bots = snapshot.bots.unwrap_or(0) as usize;
    let (players, bots) = match snapshot.completeness {
        Completeness::Full => {
            let bots = snapshot.players.iter().filter(|player| player.bot).count().max(announced_bots);
            (snapshot.players.len().saturating_sub(bots).to_string(), bots)
        }
        Completeness::Partial => {
            (snapshot.announced_players().map_or("?".to_owned(), |count| count.to_string()), announced_bots)
        }
    };
    if bots == 0 { players } else { format!("{players}+{bots}") }
}

/// Returns remarks for the end of a line. `elsewhere` is the successful attempt if it used
/// another protocol or port than the URL's.
fn notes(snapshot: &Snapshot, elsewhere: Option<&Attempt>) -> String {
    let mut remarks = String::new();
    if snapshot.completeness != Completeness::Full {
        remarks.push_str("  (partial list)");
    }
    if let Some(attempt) = elsewhere {
        remarks.push_str(&format!("  (responded as {} on port {})", attempt.scheme, attempt.port));
    }
    remarks
}

/// The servers to query, each once, in the order in which they were given.
#[derive(Debug, Default)]
struct QueryTargets {
    targets: Vec<Target>,
    known: BTreeSet<ServerUrl>,
    refused: u64,
    /// If a line has none of these schemes.
    known_schemes: Option<String>,
}

impl QueryTargets {
    fn add(&mut self, target: Target) {
        if self.known.insert(target.url.clone()) {
            self.targets.push(target);
        }
    }

    /// Reads a server list and adds the URLs of its valid lines. Returns the number and the
    /// error of each invalid line. Tags are ignored.
    fn read(&mut self, from: impl BufRead) -> io::Result<Vec<(usize, String)>> {
        let mut bad = Vec::new();
        crate::cli::server_list::read(from, |number, asked, _| match parse_target(asked) {
            Ok(target) => self.add(target),
            Err(error) => {
                self.known_schemes = self.known_schemes.take().or_else(|| error.known_schemes().map(str::to_owned));
                bad.push((number, error.brief()));
            }
        })?;
        Ok(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ServerUrl {
        ServerUrl::parse(text).unwrap()
    }

    #[test]
    fn target_list_skips_duplicates_and_reports_bad_lines() {
        let mut list = QueryTargets::default();
        let text =
            "\u{feff}quake3://a\n\n # nothing\nsource://b:1 tag # why\r\nnonsense\nQUAKE3://A:27960\nquake3://c:0\n";
        let bad = list.read(text.as_bytes()).unwrap();
        let target = |asked: &str, of: &str| Target { asked: asked.to_owned(), url: url(of) };
        assert_eq!(list.targets, [target("quake3://a", "quake3://a"), target("source://b:1", "source://b:1")]);
        assert_eq!(bad.iter().map(|b| b.0).collect::<Vec<_>>(), [5, 7]);
        assert!(bad[0].1.contains("scheme://host:port"), "{bad:?}");
        assert!(list.read(&vec![b'x'; 100_000][..]).is_err());
    }

    fn outcome() -> ScanOutcome {
        let player = |name: &str, points, ping| Player {
            name: name.into(),
            points: Some(points),
            ping: Some(ping),
            connected_ms: None,
            bot: false,
            spectator: false,
        };
        let snapshot = Snapshot {
            t_ms: 1,
            game: "baseq3".to_owned(),
            map: "q3dm17".to_owned(),
            hostname: "^1The \u{1b}[2JHost".to_owned(),
            slots: 16,
            players: vec![player("^2a", 3, 40), player("bot", 12, 0)],
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        ScanOutcome {
            id: 0,
            server: ServerKey(0),
            sent_ms: Some(1),
            result: Ok(snapshot),
            rtt_ms: Some(7),
            authentication: Some(crate::proto::Authentication::Nonce),
            details: None,
            capture: None,
            attempts: vec![Attempt { scheme: "quake3", port: 27960, result: Ok(()) }],
        }
    }

    /// The outcome after bots are marked, as [`query`] prints it.
    fn marked(target: &str) -> ScanOutcome {
        let mut outcome = outcome();
        mark_bots(&mut outcome, &url(target), &Rules::default());
        outcome
    }

    #[test]
    fn text_and_json_mark_same_bots() {
        let mut by_mark_alone = Rules::default();
        by_mark_alone.names.ping_zero_is_bot = false;
        for (rules, bots) in [(Rules::default(), 1), (by_mark_alone, 0)] {
            let mut outcome = outcome();
            mark_bots(&mut outcome, &url("source://h:1"), &rules);
            let (mut text, mut line) = (Vec::new(), Vec::new());
            write_text(&mut text, &url("quake3://h"), 20, &outcome).unwrap();
            write_json(&mut line, None, &url("quake3://h"), outcome).unwrap();
            assert_eq!(String::from_utf8(text).unwrap().matches("  bot  ").count(), bots);
            assert_eq!(String::from_utf8(line).unwrap().matches("\"bot\":true").count(), bots);
        }
    }

    #[test]
    fn long_names_are_truncated_in_text_and_escaped_in_json() {
        let mut outcome = marked("quake3://h");
        let snapshot = outcome.result.as_mut().unwrap();
        snapshot.hostname = "日".repeat(80);
        snapshot.players[0].name = "x\u{202e}\u{9b}".repeat(40).into();
        let (mut text, mut line) = (Vec::new(), Vec::new());
        write_text(&mut text, &url("quake3://h"), 20, &outcome).unwrap();
        write_json(&mut line, None, &url("quake3://h"), outcome.clone()).unwrap();
        let (text, line) = (String::from_utf8(text).unwrap(), String::from_utf8(line).unwrap());
        assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 120), "{text}");
        assert!(line.contains("x\\u202e\\u009b") && !line.contains('\u{202e}'), "{line}");
        let (_, read) = scan_log::parse_scan(line.trim()).unwrap();
        assert!(matches!(read, Outcome::Snapshot(read) if read == outcome.result.unwrap()));
    }

    #[test]
    fn full_and_partial_snapshots_print_as_text() {
        let mut out = Vec::new();
        write_text(&mut out, &url("quake3://h"), 20, &marked("quake3://h")).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "quake3://h:27960         7 ms   1+1/16  q3dm17            The [2JHost\n\
             \x20        12      bot  bot\n\
             \x20         3    40 ms  a\n"
        );
        let mut out = Vec::new();
        let mut partial = marked("source://h:1");
        let snapshot = partial.result.as_mut().unwrap();
        (snapshot.completeness, snapshot.count) = (Completeness::Partial, Some(9));
        write_text(&mut out, &url("source://h:1"), 0, &partial).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("9/16") && text.contains("(partial list)  (responded as quake3 on port 27960)"),
            "{text}"
        );
    }

    #[test]
    fn teams_are_a_column_before_the_names() {
        let player_teams = vec!["^4blue\u{1b}".to_owned(), String::new()];
        let details = Some(Box::new(Details { player_teams, ..Details::default() }));
        let (mut text, mut line) = (Vec::new(), Vec::new());
        let outcome = ScanOutcome { details, ..marked("quake3://h") };
        write_text(&mut text, &url("quake3://h"), 20, &outcome).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["         12      bot        bot", "          3    40 ms  blue  a"]);
        write_json(&mut line, None, &url("quake3://h"), outcome).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert!(line.contains("\"details\":{\"player_teams\":[\"^4blue\\u001b\",\"\"]}"), "{line}");
    }

    #[test]
    fn json_output_is_a_scan_log_line() {
        let mut out = Vec::new();
        write_json(&mut out, Some("openarena://\u{9b}"), &url("quake3://h"), outcome()).unwrap();
        let line = std::str::from_utf8(&out).unwrap();
        let end = ",\"asked\":\"openarena://\\u009b\",\"rtt_ms\":7}\n";
        assert!(line.starts_with("{\"kind\":\"query\",\"t\":1,") && line.ends_with(end), "{line}");
        let (read, result) = scan_log::parse_scan(line.trim()).unwrap();
        assert_eq!(read, url("quake3://h"));
        assert!(matches!(result, Outcome::Snapshot(snapshot) if snapshot == outcome().result.unwrap()));
    }
}
