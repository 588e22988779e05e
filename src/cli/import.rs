//! `clqd servers import`: adds the servers of a list, which is a file or comes from master
//! servers or websites.
//!
//! A line of a text file is a URL, then its tags, separated by spaces; text after `#` is
//! ignored. An invalid line is reported with file, line and reason; all others are added. A
//! file that is one JSON object is a list of Steam's Web API or of DDNet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::api::json;
use crate::api::{ChangeOutcome, ServerChange, URLS_PER_REQUEST_MAX, check_tag};
use crate::cli::admin::parse_tag;
use crate::cli::context::CliContext;
use crate::cli::exit::UsageError;
use crate::cli::import_progress::ImportProgress;
use crate::cli::output::format::{group_digits, sanitize};
use crate::control::{Request, Row};
use crate::limits::TAGS_MAX;
use crate::master::{
    AddressRules, DroppedCounts, JsonList, ListUrl, Selection, ServerList, check_scheme, fetch, user_agent,
};
use crate::model::url::ServerUrl;
use crate::proto::parse_server_url;

/// Largest JSON list read, bytes. DDNet's has about 2 MB, Steam's some 400 bytes a server.
const JSON_BYTES_MAX: u64 = 512 * 1_024 * 1_024;

/// Add the servers of a list: a file, or what master servers or websites return
///
/// A file has a URL and its tags on each line; text after # is ignored. It may also be JSON: the answer of Steam's Web
/// API (IGameServersService/GetServerList), or DDNet's servers.json.
///
/// Master URLs:
///
///   dpmaster://HOST[:27950]/PROTOCOL          Quake 3 family, such as dpmaster://master.ioquake3.org/68
///
///   dpmaster://HOST[:27950]/GAME/PROTOCOL     such as dpmaster://dpmaster.deathmask.net/Xonotic/3
///
///   quakeworldmaster://HOST[:27000]
///
///   quake2master://HOST[:27900]
///
///   steammaster://HOST[:27011]/FILTER         FILTER such as '\appid\440'; may be empty
///
///   teeworldsmaster://HOST[:8300]             Teeworlds 0.6
///
///   teeworlds7master://HOST[:8283]            Teeworlds 0.7
///
///   https://HOST/PATH                         a JSON list, such as https://master1.ddnet.org/ddnet/15/servers.json; also
///                                             http://. Its query, which may hold an API key, is not printed
///
/// Addresses that cannot be public (unless scan.allow_private is set), that are in scan.opt_out, or that have no port,
/// are dropped and counted.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file; - is standard input
    #[arg(required_unless_present = "masters", conflicts_with = "masters")]
    file: Option<PathBuf>,
    /// Query this master server, or fetch this JSON list, instead; may be repeated
    // Parsed later: clap prints a value that it refuses, and this one may contain an API key.
    #[arg(long = "master", value_name = "URL")]
    masters: Vec<String>,
    /// Scheme of the servers of a master or a JSON list, such as darkplaces [default: by the kind of the list: quake3,
    /// quakeworld, quake2, source, teeworlds or teeworlds7]
    #[arg(long, value_parser = parse_scheme)]
    scheme: Option<String>,
    /// Add this tag to all servers of the list; may be repeated
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

/// Sends the servers to the daemon and prints the result. `name` is that of a text file, for
/// errors in its lines.
fn add(name: &str, list: ImportList, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut counts = BTreeMap::<ChangeOutcome, u64>::new();
    let progress = ImportProgress::adding(list.bad.len() + list.by_tags.values().map(Vec::len).sum::<usize>());
    let mut report = |change: ServerChange, line: Option<usize>| -> io::Result<()> {
        *counts.entry(change.outcome).or_default() += 1;
        let is_refused = change.outcome == ChangeOutcome::Refused;
        let print = (is_refused || app.json()).then_some(|| {
            if is_refused {
                let reason = sanitize(change.reason.as_deref().unwrap_or("refused"));
                match line {
                    Some(line) => eprintln!("{name}:{line}: {reason}"),
                    None => eprintln!("{}: {reason}", sanitize(&change.url)),
                }
            }
            if app.json() { writeln!(out, "{}", json::to_string(&Row::Change(change))) } else { Ok(()) }
        });
        progress.added(print).unwrap_or(Ok(()))
    };
    for (line, change) in list.bad {
        report(change, line)?;
    }
    let mut client = app.connect()?;
    for (tags, servers) in list.by_tags {
        for chunk in servers.chunks(URLS_PER_REQUEST_MAX) {
            let urls = chunk.iter().map(|(_, url)| url.to_string()).collect();
            let mut lines = chunk.iter().map(|&(line, _)| line);
            client.send(&Request::ServersAdd { urls, tags: tags.clone() }, &mut |row| match row {
                Row::Change(change) => report(change, lines.next().flatten()),
                _ => Ok(()),
            })?;
        }
    }
    drop(progress);
    let count = |outcome| counts.get(&outcome).copied().unwrap_or(0);
    let new = count(ChangeOutcome::Added) + count(ChangeOutcome::Restored);
    let refused = count(ChangeOutcome::Refused);
    if !app.json() {
        writeln!(out, "{new} added, {} already known, {refused} refused", count(ChangeOutcome::Unchanged))?;
    }
    if !list.dropped.is_empty() {
        match app.json() {
            true => eprintln!("dropped: {}", list.dropped),
            false => writeln!(out, "dropped: {}", list.dropped)?,
        }
    }
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Queries the masters one after another. Returns their servers, and how many of the masters
/// returned no list. Error: none returned one.
fn query_masters(args: &ImportArgs, app: &CliContext) -> anyhow::Result<(ImportList, usize)> {
    let masters = args.masters.iter().map(|text| text.parse().map_err(|error| UsageError(format!("{error}"))));
    let masters = masters.collect::<Result<Vec<ListUrl>, UsageError>>()?;
    for master in &masters {
        if let Some(scheme) = args.scheme.as_deref().or(master.server_scheme()) {
            check_scheme(scheme).map_err(|error| UsageError(format!("{master}: {error}")))?;
        }
    }
    let config = app.config()?;
    let (rules, user_agent) = (config.address_rules(), user_agent(&config.scan.contact));
    // Without a daemon the query would be in vain.
    drop(app.connect()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The same server may be on several masters.
    let mut addresses = BTreeMap::<String, BTreeSet<SocketAddr>>::new();
    let mut failures = Vec::new();
    let mut list = ImportList::default();
    for master in &masters {
        let progress = ImportProgress::querying(&master.to_string());
        let fetched = runtime.block_on(fetch(master, &user_agent, |addresses| progress.received(addresses)));
        drop(progress);
        match fetched {
            Ok(fetched) => {
                eprintln!("clqd: {master}: {}", list_summary(&fetched));
                let scheme = args.scheme.as_deref().unwrap_or(fetched.scheme);
                addresses.entry(scheme.to_owned()).or_default().extend(fetched.addresses);
                list.add_invalid(fetched.invalid);
            }
            Err(error) => failures.push(anyhow::Error::new(error).context(master.to_string())),
        }
    }
    let last = if failures.len() == masters.len() { failures.pop() } else { None };
    failures.iter().for_each(|failure| eprintln!("clqd: {failure:#}"));
    if let Some(last) = last {
        return Err(last);
    }
    for (scheme, addresses) in addresses {
        list.add_addresses(addresses, &scheme, &rules, &args.tags)?;
    }
    Ok((list, failures.len()))
}

/// `1,234 addresses`
fn list_summary(list: &ServerList) -> String {
    let noun = if list.addresses.len() == 1 { "address" } else { "addresses" };
    let note = if list.is_complete { "" } else { "; the end of the list is missing, so it may be incomplete" };
    format!("{} {noun}{note}", group_digits(list.addresses.len() as u64))
}

fn read_file(file: &Path, args: &ImportArgs, app: &CliContext) -> anyhow::Result<ImportList> {
    let mut from: Box<dyn BufRead> = match file == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(file)?)),
    };
    if !JsonList::is_json(from.fill_buf()?) {
        if args.scheme.is_some() {
            let why = "--scheme is for master servers and JSON lists; the URLs of this list have their schemes";
            return Err(UsageError(why.to_owned()).into());
        }
        return Ok(ImportList::read(from, &args.tags)?);
    }
    let mut bytes = Vec::new();
    from.take(JSON_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(bytes.len() as u64 <= JSON_BYTES_MAX, "more than {JSON_BYTES_MAX} bytes");
    let json = JsonList::parse(&bytes)?;
    drop(bytes);
    let scheme = args.scheme.as_deref().unwrap_or(json.scheme);
    check_scheme(scheme).map_err(|error| UsageError(error.to_string()))?;
    let mut list = ImportList::default();
    list.add_addresses(json.addresses, scheme, &app.config()?.address_rules(), &args.tags)?;
    list.add_invalid(json.invalid);
    Ok(list)
}

fn parse_scheme(text: &str) -> Result<String, String> {
    check_scheme(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

/// A parsed list: servers to add, and invalid lines.
#[derive(Debug, Default, PartialEq)]
struct ImportList {
    /// Line, of a text file, and URL, in order, for each set of tags.
    by_tags: BTreeMap<Vec<String>, Vec<(Option<usize>, ServerUrl)>>,
    bad: Vec<(Option<usize>, ServerChange)>,
    dropped: DroppedCounts,
}

impl ImportList {
    fn read(from: impl BufRead, tags: &[String]) -> io::Result<ImportList> {
        let mut list = ImportList::default();
        crate::cli::server_list::read(from, |number, url, words| match read_line(url, words, tags) {
            Ok((url, tags)) => list.by_tags.entry(tags).or_default().push((Some(number), url)),
            Err(reason) => {
                let change =
                    ServerChange { url: url.to_owned(), outcome: ChangeOutcome::Refused, reason: Some(reason) };
                list.bad.push((Some(number), change));
            }
        })?;
        Ok(list)
    }

    /// Adds texts of a list that are not addresses, as refused.
    fn add_invalid(&mut self, texts: Vec<String>) {
        self.bad.extend(texts.into_iter().map(|url| {
            let reason = Some("not an address with a port".to_owned());
            (None, ServerChange { url, outcome: ChangeOutcome::Refused, reason })
        }));
    }

    fn add_addresses(
        &mut self,
        addresses: BTreeSet<SocketAddr>,
        scheme: &str,
        rules: &AddressRules,
        tags: &[String],
    ) -> anyhow::Result<()> {
        let selection = Selection::new(addresses, scheme, rules)?;
        self.dropped.add(selection.dropped);
        let tags = merge_tags(tags.iter().cloned()).map_err(UsageError)?;
        self.by_tags.entry(tags).or_default().extend(selection.urls.into_iter().map(|url| (None, url)));
        Ok(())
    }
}

fn read_line<'l>(
    url: &str,
    words: impl Iterator<Item = &'l str>,
    tags: &[String],
) -> Result<(ServerUrl, Vec<String>), String> {
    let url = parse_server_url(url).map_err(|error| error.to_string())?;
    let tags = merge_tags(tags.iter().cloned().chain(words.map(str::to_owned)))?;
    Ok((url, tags))
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
        let want = BTreeMap::from([
            (vec![], vec![(Some(1), url("quake3://a")), (Some(10), url("quake3://last"))]),
            (
                vec!["ctf".to_owned(), "duel".to_owned()],
                vec![(Some(4), url("source://b:1")), (Some(8), url("quake3://e"))],
            ),
        ]);
        assert_eq!(list.by_tags, want);
        let bad: Vec<_> = list.bad.iter().map(|(line, change)| (line.expect("a line"), change.url.as_str())).collect();
        assert_eq!(bad, [(5, "nonsense"), (6, "quake3://c:0"), (7, "quake3://d"), (9, "\u{1}")]);
        assert!(list.bad[2].1.reason.as_deref().is_some_and(|r| r.contains("\"a/b\"")));
        let tagged = ImportList::read(&b"quake3://a x\n"[..], &["y".to_owned()]).expect("read");
        assert!(tagged.by_tags.contains_key(&vec!["x".to_owned(), "y".to_owned()]));
    }

    #[test]
    fn overlong_line_is_refused() {
        let error = ImportList::read(&vec![b'x'; 100_000][..], &[]).expect_err("too long");
        assert!(error.to_string().starts_with("line 1 has more than"), "{error}");
    }

    #[test]
    fn addresses_of_a_list_get_scheme_and_tags() {
        let mut list = ImportList::default();
        let addresses = ["8.8.8.8:1", "[2a01::1]:2", "127.0.0.1:3", "9.9.9.9:0"];
        let addresses = addresses.into_iter().map(|text| text.parse().expect("an address")).collect();
        let tags = ["b", "a", "b"].map(str::to_owned);
        list.add_addresses(addresses, "darkplaces", &AddressRules::default(), &tags).expect("a known scheme");
        let url = |text: &str| (None, ServerUrl::parse(text).expect("a URL"));
        let want = vec![url("darkplaces://8.8.8.8:1"), url("darkplaces://[2a01::1]:2")];
        assert_eq!(list.by_tags, BTreeMap::from([(vec!["a".to_owned(), "b".to_owned()], want)]));
        assert_eq!(list.dropped, DroppedCounts { not_public: 1, opted_out: 0, no_port: 1 });
        let many: Vec<String> = (0..=TAGS_MAX).map(|n| format!("t{n}")).collect();
        let error =
            list.add_addresses(BTreeSet::new(), "quake3", &AddressRules::default(), &many).expect_err("too many");
        assert!(error.is::<UsageError>(), "{error}");
    }
}
