//! `clqd servers import`: adds the servers of a list, which is a file or comes from master
//! servers or websites.
//!
//! A line of a text file is a URL, then its tags, separated by spaces; text after `#` is
//! ignored. An invalid line is reported with file, line and reason; all others are added. A
//! file that is one JSON object is a list of Steam's Web API or of DDNet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgGroup, Args};
use indicatif::{ProgressBar, ProgressStyle};

use crate::api::requests::{self, ChangeOutcome, ServerChange, ServersAdd};
use crate::api::{Tagged, URLS_PER_REQUEST_MAX, check_tag, json};
use crate::cli::arguments::parse_tag;
use crate::cli::context::CliContext;
use crate::cli::exit::UsageError;
use crate::cli::output::RESCAN_FAILED;
use crate::cli::output::format::{group_digits, sanitize};
use crate::cli::output::status::describe_retry;
use crate::cli::stdio::{Output, note};
use crate::client::{Client, ClientError};
use crate::limits::TAGS_MAX;
use crate::master::{
    AddressRules, DroppedCounts, ListUrl, Selection, ServerList, check_scheme, fetch, is_json_list, parse_web_list,
    user_agent,
};
use crate::model::url::ServerUrl;
use crate::proto::parse_server_url;

/// Largest JSON list read, bytes. DDNet's has about 2 MB, Steam's some 400 bytes a server.
const JSON_BYTES_MAX: u64 = 512 * 1_024 * 1_024;

/// Time between two images of the spinner.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Add the servers of a file, of master servers or of a website
///
/// A file has a URL and its tags on each line; text after # is ignored. It may
/// also be JSON: the answer of Steam's Web API
/// (IGameServersService/GetServerList), or DDNet's servers.json.
///
/// Master URLs:
///
///   dpmaster://HOST[:27950]/PROTOCOL        Quake 3 family, such as
///     dpmaster://master.ioquake3.org/68
///   dpmaster://HOST[:27950]/GAME/PROTOCOL   DarkPlaces, such as
///     dpmaster://dpmaster.deathmask.net/Xonotic/3
///   quakeworldmaster://HOST[:27000]
///   quake2master://HOST[:27900]
///   steammaster://HOST[:27011]/FILTER       such as '\appid\440'; may be empty
///   teeworldsmaster://HOST[:8300]           Teeworlds 0.6
///   teeworlds7master://HOST[:8283]          Teeworlds 0.7
///   odamexmaster://HOST[:15000]
///   zandronummaster://HOST[:15300]
///   cube2master://HOST[:28787]              Sauerbraten
///   eclipsemaster://HOST[:28800]            Red Eclipse
///   https://HOST/PATH                       also http://; a list of Steam,
///     DDNet, BZFlag or FiveM, such as
///     https://master1.ddnet.org/ddnet/15/servers.json
///     The query of a URL, which may hold an API key, is not printed.
///
/// Addresses that cannot be public (unless scan.allow_private is set), that are
/// in scan.opt_out, or that have a port below 1024, are dropped and counted. So
/// are more than 50,000 servers of a list of masters, or 64 on one address
/// (or IPv6 /64), unless --force is given.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, group = ArgGroup::new("list").args(["file", "masters"]).required(true))]
pub struct ImportArgs {
    /// The file; - is standard input
    file: Option<PathBuf>,
    /// Get the list from this URL; may be repeated
    // The value is parsed later, because clap prints a value that it refuses, and a URL may contain
    // an API key.
    #[arg(long = "master", value_name = "URL", conflicts_with = "file")]
    masters: Vec<String>,
    /// Scheme of servers that are listed without one
    ///
    /// Such as darkplaces. The default depends on the kind of the list: quake3, quakeworld, quake2, source,
    /// teeworlds, teeworlds7, odamex, zandronum, cube2, eclipse, bzflag or fivem.
    #[arg(long, value_parser = parse_scheme)]
    scheme: Option<String>,
    /// Add all servers of the masters, however many
    #[arg(long, conflicts_with = "file")]
    force: bool,
    /// Add this tag to all servers; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag)]
    tags: Vec<String>,
}

pub fn run(args: &ImportArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.file {
        if file.to_str().is_some_and(ListUrl::is_http) {
            return Err(UsageError("the list is a URL, not a file; use --master URL".to_owned()).into());
        }
        let name = if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
        let list = read_file(file, args, app).with_context(|| format!("cannot read {name}"))?;
        return add(&name, list, app);
    }
    let (list, failed) = query_masters(args, app)?;
    let code = add("", list, app)?;
    Ok(if failed == 0 { code } else { ExitCode::FAILURE })
}

/// The result for one line of a list, or for one address without a line.
type LineChange = (Option<usize>, ServerChange);

/// Sends the servers to the daemon, and then prints the result. `name` is that of a text file,
/// for errors in its lines.
fn add(name: &str, list: ImportList, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut client = app.connect()?;
    let ImportList { servers, bad: mut changes, known_schemes, dropped } = list;
    let sent = send(&mut client, servers, &mut changes);
    changes.sort_by_key(|(line, _)| *line);
    report(name, &changes, known_schemes.as_deref(), &dropped, app)?;
    sent?;
    if !app.json() {
        report_retries(&changes, &mut client)?;
    }
    let is_refused = |(_, change): &LineChange| change.outcome == ChangeOutcome::Refused;
    Ok(if changes.iter().any(is_refused) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Adds the servers, and a change for each.
fn send(client: &mut Client, servers: Vec<ListedServer>, changes: &mut Vec<LineChange>) -> Result<(), ClientError> {
    // Shown only on a terminal, and until it is dropped.
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} servers, {elapsed}").expect("a valid template");
    let bar = ProgressBar::new(servers.len() as u64).with_style(style);
    let mut by_tags = BTreeMap::<Vec<String>, Vec<(Option<usize>, String)>>::new();
    for ListedServer { line, url, tags } in servers {
        by_tags.entry(tags).or_default().push((line, url.into()));
    }
    for (tags, servers) in by_tags {
        for chunk in servers.chunks(URLS_PER_REQUEST_MAX) {
            let urls = chunk.iter().map(|(_, url)| url.clone()).collect();
            let mut lines = chunk.iter().map(|&(line, _)| line);
            client.send(&ServersAdd { urls, tags: tags.clone(), import: true }, |change| {
                changes.push((lines.next().flatten(), change));
                bar.inc(1);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Prints what was refused, and the counts.
fn report(
    name: &str,
    changes: &[LineChange],
    known_schemes: Option<&str>,
    dropped: &DroppedCounts,
    app: &CliContext,
) -> io::Result<()> {
    let mut out = Output::lasting();
    for (line, change) in changes {
        if change.outcome == ChangeOutcome::Refused {
            let reason = sanitize(change.reason.as_deref().unwrap_or("refused"));
            match line {
                Some(line) => note(format_args!("{name}:{line}: {reason}")),
                None => note(format_args!("{}: {reason}", sanitize(&change.url))),
            }
        }
        if app.json() {
            writeln!(out, "{}", json::to_string(&Tagged::from(change)))?;
        }
    }
    if let Some(known) = known_schemes {
        note(format_args!("clqd: known schemes are {known}"));
    }
    if !app.json() {
        use ChangeOutcome::{Added, ListedTwice, NotAnswering, Refused, Restored, ScanRequested, Tagged, Unchanged};
        let new = count(changes, &[Added, Restored]);
        let known = count(changes, &[Unchanged, Tagged, ScanRequested, NotAnswering]);
        let refused = count(changes, &[Refused]);
        let twice = match count(changes, &[ListedTwice]) {
            0 => String::new(),
            twice => format!(", {twice} listed twice"),
        };
        writeln!(out, "{new} added, {known} already known{twice}, {refused} refused")?;
    }
    if !dropped.is_empty() {
        match app.json() {
            true => note(format_args!("dropped: {dropped}")),
            false => writeln!(out, "dropped: {dropped}")?,
        }
    }
    Ok(())
}

/// Prints when servers that do not answer are scanned again. Prints nothing if the list cannot
/// contain such a server.
fn report_retries(changes: &[LineChange], client: &mut Client) -> anyhow::Result<()> {
    use ChangeOutcome::{Added, NotAnswering, Restored, ScanRequested};
    if count(changes, &[Added, Restored, ScanRequested, NotAnswering]) == 0 {
        return Ok(());
    }
    let status = client.lines(&requests::Status {})?.pop();
    let mut out = Output::lasting();
    if let requested @ 1.. = count(changes, &[ScanRequested]) {
        writeln!(out, "{requested} of the known did not answer and are scanned now")?;
    }
    if let silent @ 1.. = count(changes, &[NotAnswering]) {
        let why = "because an import requested it less than a day ago";
        writeln!(out, "{silent} of the known did not answer and are not scanned now, {why}")?;
    }
    if let Some(status) = status {
        let retry = describe_retry(&status.engine, status.engine.now_ms);
        writeln!(out, "servers that do not answer are {retry}; scan all of them now: {RESCAN_FAILED}")?;
    }
    Ok(())
}

fn count(changes: &[LineChange], outcomes: &[ChangeOutcome]) -> usize {
    changes.iter().filter(|(_, change)| outcomes.contains(&change.outcome)).count()
}

/// Queries the masters one after another. Returns their servers, and the number of masters that
/// returned no list. Error: no master returned a list.
fn query_masters(args: &ImportArgs, app: &CliContext) -> anyhow::Result<(ImportList, usize)> {
    let masters = args.masters.iter().map(|text| text.parse().map_err(|error| UsageError(format!("{error}"))));
    let masters = masters.collect::<Result<Vec<ListUrl>, UsageError>>()?;
    for master in &masters {
        if let Some(scheme) = args.scheme.as_deref().or(master.server_scheme()) {
            check_scheme(scheme).map_err(|error| UsageError(format!("{master}: {error}")))?;
        }
    }
    let config = app.config()?;
    let (mut rules, user_agent) = (config.address_rules(), user_agent(&config.scan.contact));
    if args.force {
        (rules.servers_max, rules.servers_per_address_max) = (usize::MAX, usize::MAX);
    }
    // Without a daemon the query would be in vain.
    drop(app.connect()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The same server may be on several masters.
    let mut servers = BTreeSet::new();
    let mut failures = Vec::new();
    let mut list = ImportList::default();
    for master in &masters {
        let spinner = query_spinner(master);
        let received = |addresses: usize| spinner.set_message(format!("{} addresses", group_digits(addresses as u64)));
        let fetched = runtime.block_on(fetch(master, &user_agent, received));
        drop(spinner);
        match fetched {
            Ok(fetched) => {
                note(format_args!("clqd: {master}: {}", list_summary(&fetched)));
                let listed = fetched.with_scheme(args.scheme.as_deref());
                servers.extend(listed.map(|(address, scheme)| (scheme.to_owned(), address)));
                list.add_invalid(fetched.invalid);
            }
            Err(error) => failures.push(anyhow::Error::new(error).context(master.to_string())),
        }
    }
    let last = if failures.len() == masters.len() { failures.pop() } else { None };
    failures.iter().for_each(|failure| note(format_args!("clqd: {failure:#}")));
    if let Some(last) = last {
        return Err(last);
    }
    list.add_addresses(servers.iter().map(|(scheme, address)| (*address, scheme.as_str())), &rules, &args.tags)?;
    Ok((list, failures.len()))
}

/// Shown while a master is queried, which may take a minute to reply: only on a terminal, and until it is dropped.
fn query_spinner(master: &ListUrl) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix}: {msg}, {elapsed}").expect("a valid template");
    let spinner = ProgressBar::new_spinner().with_style(style).with_prefix(master.to_string());
    spinner.set_message("waiting for a reply");
    spinner.enable_steady_tick(SPINNER_INTERVAL);
    spinner
}

/// `1,234 addresses`
fn list_summary(list: &ServerList) -> String {
    let noun = if list.servers.len() == 1 { "address" } else { "addresses" };
    let note = if list.is_complete { "" } else { "; the end of the list is missing, so it may be incomplete" };
    format!("{} {noun}{note}", group_digits(list.servers.len() as u64))
}

fn read_file(file: &Path, args: &ImportArgs, app: &CliContext) -> anyhow::Result<ImportList> {
    let mut from: Box<dyn BufRead> = match file == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(file)?)),
    };
    if !is_json_list(from.fill_buf()?) {
        if args.scheme.is_some() {
            let why = "--scheme is for master servers and JSON lists; the URLs of this list have their schemes";
            return Err(UsageError(why.to_owned()).into());
        }
        return Ok(ImportList::read(from, &args.tags)?);
    }
    let mut bytes = Vec::new();
    from.take(JSON_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(bytes.len() as u64 <= JSON_BYTES_MAX, "more than {JSON_BYTES_MAX} bytes");
    let json = parse_web_list(&bytes)?;
    drop(bytes);
    let mut list = ImportList::default();
    list.add_addresses(json.with_scheme(args.scheme.as_deref()), &app.config()?.address_rules(), &args.tags)?;
    list.add_invalid(json.invalid);
    Ok(list)
}

fn parse_scheme(text: &str) -> Result<String, String> {
    check_scheme(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

/// A server of a list. The line is that of a text file.
#[derive(Debug, PartialEq)]
struct ListedServer {
    line: Option<usize>,
    url: ServerUrl,
    tags: Vec<String>,
}

/// A parsed list: servers to add, and invalid lines.
#[derive(Debug, Default, PartialEq)]
struct ImportList {
    /// In order of the list, each once.
    servers: Vec<ListedServer>,
    /// Lines that are invalid, or that list a server again.
    bad: Vec<LineChange>,
    /// If a line has none of these schemes.
    known_schemes: Option<String>,
    dropped: DroppedCounts,
}

impl ImportList {
    fn read(from: impl BufRead, tags: &[String]) -> io::Result<ImportList> {
        let mut list = ImportList::default();
        let mut places = HashMap::<ServerUrl, usize>::new();
        crate::cli::server_list::read(from, |number, url, words| {
            if let Err((outcome, reason)) = list.add_line(number, url, words, tags, &mut places) {
                let change = ServerChange { url: url.to_owned(), outcome, reason: Some(reason) };
                list.bad.push((Some(number), change));
            }
        })?;
        Ok(list)
    }

    /// Adds a line. `places` has the index of each server. Error: the line adds no server, and why.
    fn add_line<'l>(
        &mut self,
        number: usize,
        url: &str,
        words: impl Iterator<Item = &'l str>,
        tags: &[String],
        places: &mut HashMap<ServerUrl, usize>,
    ) -> Result<(), (ChangeOutcome, String)> {
        let refused = |reason| (ChangeOutcome::Refused, reason);
        let url = parse_server_url(url).map_err(|error| {
            if let Some(known) = error.known_schemes() {
                self.known_schemes.get_or_insert_with(|| known.to_owned());
            }
            refused(error.brief())
        })?;
        let tags = tags.iter().cloned().chain(words.map(str::to_owned));
        if let Some(&place) = places.get(&url) {
            let first = &mut self.servers[place];
            first.tags = merge_tags(first.tags.iter().cloned().chain(tags)).map_err(refused)?;
            let first = first.line.map_or(String::new(), |line| format!("first in line {line}"));
            return Err((ChangeOutcome::ListedTwice, first));
        }
        let tags = merge_tags(tags).map_err(refused)?;
        places.insert(url.clone(), self.servers.len());
        self.servers.push(ListedServer { line: Some(number), url, tags });
        Ok(())
    }

    /// Adds the strings of a list that are not addresses to the refused entries.
    fn add_invalid(&mut self, strings: Vec<String>) {
        self.bad.extend(strings.into_iter().map(|url| {
            let reason = Some("not an address with a port".to_owned());
            (None, ServerChange { url, outcome: ChangeOutcome::Refused, reason })
        }));
    }

    fn add_addresses<'s>(
        &mut self,
        servers: impl IntoIterator<Item = (SocketAddr, &'s str)>,
        rules: &AddressRules,
        tags: &[String],
    ) -> anyhow::Result<()> {
        let selection = Selection::new(servers, rules)?;
        self.dropped.add(selection.dropped);
        let tags = merge_tags(tags.iter().cloned()).map_err(UsageError)?;
        let servers = selection.urls.into_iter();
        self.servers.extend(servers.map(|url| ListedServer { line: None, url, tags: tags.clone() }));
        Ok(())
    }
}

/// Sorts the tags, each once. Error: a tag is invalid, or there are too many.
fn merge_tags(tags: impl Iterator<Item = String>) -> Result<Vec<String>, String> {
    let mut all: Vec<String> = tags.collect();
    if let Some(problem) = all.iter().find_map(|tag| check_tag(tag)) {
        return Err(problem);
    }
    all.sort();
    all.dedup();
    if all.len() > TAGS_MAX {
        return Err(format!("{} tags; at most {TAGS_MAX}", all.len()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_list_parses_tags_and_reports_bad_lines() {
        let text = "\u{feff}quake3://a\n\n  # a comment\r\nsource://b:1 ctf duel # why\nnonsense\nquake3://c:0\n\
                    quake3://d a/b\nQUAKE3://E duel ctf ctf\n\u{1}\nquake3://last";
        let list = ImportList::read(text.as_bytes(), &[]).expect("read");
        let url = |text: &str| ServerUrl::parse(text).expect("a URL");
        let listed = |line, text, tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            ListedServer { line: Some(line), url: url(text), tags }
        };
        let want = [
            listed(1, "quake3://a", &[]),
            listed(4, "source://b:1", &["ctf", "duel"]),
            listed(8, "quake3://e", &["ctf", "duel"]),
            listed(10, "quake3://last", &[]),
        ];
        assert_eq!(list.servers, want);
        let bad: Vec<_> = list.bad.iter().map(|(line, change)| (line.expect("a line"), change.url.as_str())).collect();
        assert_eq!(bad, [(5, "nonsense"), (6, "quake3://c:0"), (7, "quake3://d"), (9, "\u{1}")]);
        assert!(list.bad[2].1.reason.as_deref().is_some_and(|r| r.contains("\"a/b\"")));
        let tagged = ImportList::read(&b"quake3://a x\n"[..], &["y".to_owned()]).expect("read");
        assert_eq!(tagged.servers[0].tags, ["x", "y"]);
    }

    #[test]
    fn server_that_is_listed_again_adds_its_tags_to_the_first_line() {
        let text = "quake3://a x\nquake3://b\nQUAKE3://A:27960 y x\nquake3://a";
        let list = ImportList::read(text.as_bytes(), &[]).expect("read");
        let servers: Vec<_> = list.servers.iter().map(|server| (server.url.as_str(), server.tags.join(" "))).collect();
        assert_eq!(servers, [("quake3://a:27960", "x y".to_owned()), ("quake3://b:27960", String::new())]);
        let again: Vec<_> = list.bad.iter().map(|(line, change)| (*line, change.outcome, &change.reason)).collect();
        let reason = Some("first in line 1".to_owned());
        assert_eq!(again, [3, 4].map(|line| (Some(line), ChangeOutcome::ListedTwice, &reason)));
    }

    #[test]
    fn reasons_of_bad_lines_do_not_repeat_the_schemes() {
        let list = ImportList::read(&b"nonsense\nxonotik://h\nquake3://h:0\n"[..], &[]).expect("read");
        let reasons: Vec<&str> = list.bad.iter().filter_map(|(_, change)| change.reason.as_deref()).collect();
        assert_eq!(
            reasons,
            [
                "server URL \"nonsense\" is not of the form scheme://host:port",
                "server URL \"xonotik://h\": scheme \"xonotik\" is not known; did you mean xonotic://?",
                "server URL \"quake3://h:0\": port \"0\" is not a number from 1 to 65535",
            ]
        );
        assert!(list.known_schemes.is_some_and(|known| known.starts_with("quake3, ")));
    }

    #[test]
    fn overlong_line_is_refused() {
        let error = ImportList::read(&vec![b'x'; 100_000][..], &[]).expect_err("too long");
        assert!(error.to_string().starts_with("line 1 has more than"), "{error}");
    }

    #[test]
    fn addresses_of_a_list_get_scheme_and_tags() {
        let mut list = ImportList::default();
        let addresses = ["8.8.8.8:1111", "[2a01::1]:2222", "127.0.0.1:3333", "9.9.9.9:0"];
        let servers = addresses.map(|text| (text.parse().expect("an address"), "darkplaces"));
        let tags = ["b", "a", "b"].map(str::to_owned);
        list.add_addresses(servers, &AddressRules::default(), &tags).expect("a known scheme");
        let want = ["darkplaces://8.8.8.8:1111", "darkplaces://[2a01::1]:2222"].map(|url| {
            let url = ServerUrl::parse(url).expect("a URL");
            ListedServer { line: None, url, tags: vec!["a".to_owned(), "b".to_owned()] }
        });
        assert_eq!(list.servers, want);
        assert_eq!(list.dropped, DroppedCounts { not_public: 1, low_port: 1, ..DroppedCounts::default() });
        let many: Vec<String> = (0..=TAGS_MAX).map(|n| format!("t{n}")).collect();
        let error = list.add_addresses([], &AddressRules::default(), &many).expect_err("too many");
        assert!(error.is::<UsageError>(), "{error}");
    }
}
