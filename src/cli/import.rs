//! `clqd servers import FILE`: adds the servers of a list.
//!
//! A line is a URL, then its tags, separated by spaces; text after `#` is ignored. An
//! invalid line is reported with file, line and reason; all others are added.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::api::json;
use crate::api::{ChangeOutcome, ServerChange, URLS_PER_REQUEST_MAX, check_tag};
use crate::cli::context::CliContext;
use crate::cli::output::format::sanitize;
use crate::control::{Request, Row};
use crate::limits::TAGS_MAX;
use crate::model::url::ServerUrl;
use crate::proto::parse_server_url;

pub fn run(file: &Path, tags: &[String], app: &CliContext) -> anyhow::Result<ExitCode> {
    let name = if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let list = if file == Path::new("-") {
        ImportList::read(io::stdin().lock(), tags)
    } else {
        File::open(file).and_then(|opened| ImportList::read(BufReader::new(opened), tags))
    };
    let list = list.with_context(|| format!("cannot read {name}"))?;

    let mut out = io::stdout().lock();
    let mut counts = BTreeMap::<ChangeOutcome, u64>::new();
    let mut report = |change: ServerChange, line: usize| -> io::Result<()> {
        *counts.entry(change.outcome).or_default() += 1;
        if change.outcome == ChangeOutcome::Refused {
            eprintln!("{name}:{line}: {}", sanitize(change.reason.as_deref().unwrap_or("refused")));
        }
        if app.json() {
            writeln!(out, "{}", json::to_string(&Row::Change(change)))?;
        }
        Ok(())
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
                Row::Change(change) => report(change, lines.next().unwrap_or(0)),
                _ => Ok(()),
            })?;
        }
    }
    let count = |outcome| counts.get(&outcome).copied().unwrap_or(0);
    let new = count(ChangeOutcome::Added) + count(ChangeOutcome::Restored);
    if !app.json() {
        writeln!(
            out,
            "{new} added, {} already known, {} refused",
            count(ChangeOutcome::Unchanged),
            count(ChangeOutcome::Refused)
        )?;
    }
    Ok(if count(ChangeOutcome::Refused) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A parsed list: servers to add, and invalid lines.
#[derive(Debug, Default, PartialEq)]
struct ImportList {
    /// Line and URL, in order, for each set of tags.
    by_tags: BTreeMap<Vec<String>, Vec<(usize, ServerUrl)>>,
    bad: Vec<(usize, ServerChange)>,
}

impl ImportList {
    fn read(from: impl BufRead, tags: &[String]) -> io::Result<ImportList> {
        let mut list = ImportList::default();
        crate::cli::server_list::read(from, |number, url, words| match read_line(url, words, tags) {
            Ok((url, tags)) => list.by_tags.entry(tags).or_default().push((number, url)),
            Err(reason) => {
                let change =
                    ServerChange { url: url.to_owned(), outcome: ChangeOutcome::Refused, reason: Some(reason) };
                list.bad.push((number, change));
            }
        })?;
        Ok(list)
    }
}

fn read_line<'l>(
    url: &str,
    words: impl Iterator<Item = &'l str>,
    tags: &[String],
) -> Result<(ServerUrl, Vec<String>), String> {
    let url = parse_server_url(url).map_err(|error| error.to_string())?;
    let mut all: Vec<String> = tags.iter().cloned().chain(words.map(str::to_owned)).collect();
    if let Some(problem) = all.iter().find_map(|tag| check_tag(tag)) {
        return Err(problem);
    }
    all.sort();
    all.dedup();
    if all.len() > TAGS_MAX {
        return Err(format!("{} tags; at most {TAGS_MAX}", all.len()));
    }
    Ok((url, all))
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
            (vec![], vec![(1, url("quake3://a")), (10, url("quake3://last"))]),
            (vec!["ctf".to_owned(), "duel".to_owned()], vec![(4, url("source://b:1")), (8, url("quake3://e"))]),
        ]);
        assert_eq!(list.by_tags, want);
        let bad: Vec<_> = list.bad.iter().map(|(line, change)| (*line, change.url.as_str())).collect();
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
}
