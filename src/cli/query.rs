//! `clqd query`: asks game servers directly and prints what they say, without a
//! daemon and without remembering anything. Servers are printed in the order in
//! which they answer; with `--json` each is a line of a scan log.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use tokio::sync::mpsc;

use super::app::App;
use super::units::clean;
use crate::clock::Clock;
use crate::engine::Outcome;
use crate::model::{Completeness, Player, ServerKey, ServerUrl, Snapshot};
use crate::scan::{ScanMode, ScanOutcome, ScanRequest, ScanSettings, Scanner, Tried};
use crate::scanlog;

/// Requests and outcomes on their way: enough that neither side waits.
const ON_THE_WAY: usize = 1_024;

/// Widest that the column of URLs becomes; longer ones push their line out.
const URL_WIDTH_MAX: usize = 44;

#[derive(Clone, Debug, Args)]
pub struct QueryArgs {
    /// Servers, such as quake3://host:27960 or source://192.0.2.1:27015
    #[arg(value_name = "URL", value_parser = ServerUrl::parse, required_unless_present = "file")]
    pub urls: Vec<ServerUrl>,
    /// List of servers, one URL a line, # begins a comment; - is standard input
    #[arg(long, value_name = "LIST")]
    pub file: Vec<PathBuf>,
    /// Wait this long for an answer, ms
    #[arg(long, value_name = "MS", default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(100..=60_000))]
    pub timeout_ms: u32,
    /// Ask so many times more when no answer comes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=10))]
    pub retries: u32,
    /// Packets a second, all servers together
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub per_second_max: u32,
    /// Try every protocol on the port and on its usual ports, with three times the patience
    #[arg(long)]
    pub any_protocol: bool,
}

/// Asks all servers and prints each as it answers. Exit code 0: all answered;
/// 1: some did not, or a line of a list could not be read.
pub fn run(args: &QueryArgs, app: &App) -> anyhow::Result<ExitCode> {
    let mut urls = List::default();
    args.urls.iter().cloned().for_each(|url| urls.add(url));
    for file in &args.file {
        let name = if is_stdin(file) { "standard input".to_owned() } else { file.display().to_string() };
        let bad = if is_stdin(file) {
            urls.read(io::stdin().lock())
        } else {
            File::open(file).and_then(|opened| urls.read(BufReader::new(opened)))
        };
        for (line, reason) in bad.with_context(|| format!("cannot read {name}"))? {
            eprintln!("{name}:{line}: {reason}");
            urls.refused += 1;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let out = io::BufWriter::new(io::stdout().lock());
    let missed = runtime.block_on(query(args, app.json(), &urls.urls, out));
    // A name server that does not answer must not hold up the end.
    runtime.shutdown_background();
    Ok(if missed? + urls.refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Asks and prints. The number of servers that did not answer.
async fn query(args: &QueryArgs, json: bool, urls: &[ServerUrl], mut out: impl Write) -> anyhow::Result<u64> {
    let (ask, requests) = mpsc::channel(ON_THE_WAY);
    let (to, mut outcomes) = mpsc::channel(ON_THE_WAY);
    let clock = Arc::new(Clock::new(0));
    let _scanner = Scanner::start(settings(args), requests, to, Arc::new(move || clock.now_ms()))
        .context("cannot open sockets to ask with")?;
    let mode = if args.any_protocol { ScanMode::Exception } else { ScanMode::Normal };
    let asked = async {
        for (id, url) in urls.iter().enumerate() {
            let request = ScanRequest { id: id as u64, server: ServerKey(id as u32), url: url.clone(), mode };
            if ask.send(request).await.is_err() {
                break;
            }
        }
        drop(ask);
    };
    let answered = async {
        let mut missed = 0;
        let width = urls.iter().map(|url| url.as_str().len()).max().unwrap_or(0).min(URL_WIDTH_MAX);
        while let Some(outcome) = outcomes.recv().await {
            missed += u64::from(outcome.result.is_err());
            let url = &urls[outcome.id as usize];
            if json {
                write_json(&mut out, url, outcome)?
            } else {
                write_text(&mut out, url, width, &outcome)?
            }
            if outcomes.is_empty() {
                out.flush()?;
            }
        }
        Ok::<_, io::Error>(missed)
    };
    // If printing fails, the rest is not asked for.
    tokio::pin!(asked);
    tokio::pin!(answered);
    let missed = tokio::select! {
        missed = &mut answered => missed,
        () = &mut asked => answered.await,
    };
    Ok(missed?)
}

fn settings(args: &QueryArgs) -> ScanSettings {
    ScanSettings {
        timeout_ms: args.timeout_ms,
        retries: args.retries,
        per_second_max: args.per_second_max.into(),
        allow_private: true,
        ..ScanSettings::default()
    }
}

/// A line of a scan log, with the round-trip time behind it.
fn write_json(out: &mut impl Write, url: &ServerUrl, outcome: ScanOutcome) -> io::Result<()> {
    let rtt_ms = outcome.rtt_ms;
    let known = match outcome.result {
        Ok(snapshot) => Outcome::Snapshot(snapshot),
        Err(miss) => Outcome::Miss { t_ms: miss.t_ms, reason: miss.reason.name().to_owned() },
    };
    let mut line = Vec::new();
    scanlog::write(&mut line, url, &known);
    if let Some(rtt_ms) = rtt_ms {
        assert!(line.ends_with(b"}\n"), "a line of a scan log is an object");
        line.truncate(line.len() - 2);
        line.extend_from_slice(format!(",\"rtt_ms\":{rtt_ms}}}\n").as_bytes());
    }
    out.write_all(&line)
}

fn write_text(out: &mut impl Write, url: &ServerUrl, width: usize, outcome: &ScanOutcome) -> io::Result<()> {
    let snapshot = match &outcome.result {
        Ok(snapshot) => snapshot,
        Err(miss) => return writeln!(out, "{:<width$}  no answer ({})", url.as_str(), miss.reason),
    };
    // What answered may not be what was asked for, in protocol and in port.
    let answered = outcome.tried.last().filter(|tried| (tried.scheme, tried.port) != (url.scheme(), url.port()));
    let codes = answered.map_or(url.to_string(), |tried| format!("{}://", tried.scheme));
    let is_bot = |p: &Player| p.bot || (p.ping == Some(0) && !codes.starts_with("source"));
    let rtt = outcome.rtt_ms.map_or("-".to_owned(), |ms| format!("{ms} ms"));
    writeln!(
        out,
        "{:<width$}  {rtt:>7}  {:>7}  {:<16}  {}{}",
        url.as_str(),
        format!("{}/{}", count(snapshot, is_bot), snapshot.slots),
        clean(&snapshot.map, &codes),
        clean(&snapshot.hostname, &codes),
        remarks(snapshot, answered),
    )?;
    let mut players: Vec<&Player> = snapshot.players.iter().collect();
    players.sort_by_key(|p| std::cmp::Reverse(p.points));
    for player in players {
        let ping = match player.ping {
            _ if is_bot(player) => "bot".to_owned(),
            Some(ping) => format!("{ping} ms"),
            None => String::new(),
        };
        let points = player.points.map_or_else(String::new, |points| points.to_string());
        writeln!(out, "    {points:>7}  {ping:>7}  {}", clean(&player.name, &codes))?;
    }
    Ok(())
}

/// Players without bots, as the server shows or announces them.
fn count(snapshot: &Snapshot, is_bot: impl Fn(&Player) -> bool) -> String {
    match snapshot.completeness {
        Completeness::Full => snapshot.players.iter().filter(|p| !is_bot(p)).count().to_string(),
        Completeness::Partial => snapshot.announced_players().map_or("?".to_owned(), |count| count.to_string()),
    }
}

fn remarks(snapshot: &Snapshot, answered: Option<&Tried>) -> String {
    let mut remarks = String::new();
    if snapshot.completeness != Completeness::Full {
        remarks.push_str("  (list not whole)");
    }
    if let Some(tried) = answered {
        remarks.push_str(&format!("  (answered as {} on port {})", tried.scheme, tried.port));
    }
    remarks
}

/// The servers to ask, each once, in the order in which they were named.
#[derive(Debug, Default)]
struct List {
    urls: Vec<ServerUrl>,
    known: BTreeSet<ServerUrl>,
    refused: u64,
}

impl List {
    fn add(&mut self, url: ServerUrl) {
        if self.known.insert(url.clone()) {
            self.urls.push(url);
        }
    }

    /// Reads a list. What is wrong with it, by line; all other lines are taken.
    /// Tags, as in a list for `servers import`, say nothing here.
    fn read(&mut self, from: impl BufRead) -> io::Result<Vec<(usize, String)>> {
        let mut bad = Vec::new();
        super::list::read(from, |number, url, _| match ServerUrl::parse(url) {
            Ok(url) => self.add(url),
            Err(error) => bad.push((number, error.to_string())),
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
    fn lists() {
        let mut list = List::default();
        let text =
            "\u{feff}quake3://a\n\n # nothing\nsource://b:1 tag # why\r\nnonsense\nQUAKE3://A:27960\nquake3://c:0\n";
        let bad = list.read(text.as_bytes()).unwrap();
        assert_eq!(list.urls, [url("quake3://a"), url("source://b:1")]);
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
            tried: vec![Tried { scheme: "quake3", port: 27960, result: Ok(()) }],
        }
    }

    #[test]
    fn text() {
        let mut out = Vec::new();
        write_text(&mut out, &url("quake3://h"), 20, &outcome()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "quake3://h:27960         7 ms     1/16  q3dm17            The [2JHost\n\
             \x20        12      bot  bot\n\
             \x20         3    40 ms  a\n"
        );
        let mut out = Vec::new();
        let mut partial = outcome();
        let snapshot = partial.result.as_mut().unwrap();
        (snapshot.completeness, snapshot.count) = (Completeness::Partial, Some(9));
        write_text(&mut out, &url("source://h:1"), 0, &partial).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("9/16") && text.contains("(list not whole)  (answered as quake3 on port 27960)"),
            "{text}"
        );
    }

    #[test]
    fn json_is_a_line_of_a_scan_log() {
        let mut out = Vec::new();
        write_json(&mut out, &url("quake3://h"), outcome()).unwrap();
        let line = std::str::from_utf8(&out).unwrap();
        assert!(line.ends_with(",\"rtt_ms\":7}\n"), "{line}");
        let (read, known) = scanlog::parse(line.trim()).unwrap();
        assert_eq!(read, url("quake3://h"));
        assert!(matches!(known, Outcome::Snapshot(snapshot) if snapshot == outcome().result.unwrap()));
    }
}
