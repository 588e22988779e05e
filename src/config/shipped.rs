//! Writes `config/clqd.toml` and the tables of `docs/configuration.md` from the table of keys.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::keys::{Applies, KEYS, KeySpec, SECTIONS};

/// Longest line of a comment.
const WIDTH: usize = 90;

/// A space that is no place for a new line.
const NO_BREAK: &str = "\u{a0}";

const HEAD: &str = "\
# The settings of clqd. This file contains the defaults and is built into the program; it is
# written from src/config/keys.rs.
# Your own file is /etc/clqd/clqd.toml, or the one that `clqd --config FILE` names. It may
# omit every key that it does not change.
#
# The last line of each comment is the range and what a change requires:
# - reload: `clqd reload`, `systemctl reload clqd`, or SIGHUP;
# - restart: the daemon keeps the old value, and reports so, until it is restarted.
#
# `clqd check-config FILE` checks a file and changes nothing.

";

/// Sections of lists, of which the shipped file has none.
const LISTS: &str = "
# Programs on other machines that may send requests of admins over the port, with TLS or on
# loopback: any number of sections; reload. `clqd token new` makes them.
#
# [[web.token]]
# name = \"deploy\"
# hash = \"...\"
# may = [\"rescan\", \"servers\"]

# Messages about servers and boards to Discord or to a program: any number of sections;
# reload. docs/configuration.md has the keys.
#
# [[webhook]]
# name = \"clan\"
# url = \"https://discord.com/api/webhooks/...\"
# kind = \"discord\"
# events = [\"server_down\", \"server_up\", \"week_closed\", \"new_leader\"]
# tag = \"ours\"

# Imports of servers from masters and websites: any number of sections; reload.
# docs/protocols.md has the URLs, docs/configuration.md the keys.
#
# [[import]]
# master = \"dpmaster://dpmaster.deathmask.net/Xonotic/3\"
# scheme = \"darkplaces\"
# tags = [\"xonotic\"]
# every_s = 86400
";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What a change of the key needs, with its range.
fn range(key: &KeySpec) -> String {
    let change = match key.change {
        Applies::Reload => "reload",
        Applies::Restart => "restart",
    };
    format!("{}; {change}", key.kind.range())
}

/// The row of the key in the docs.
fn row(key: &KeySpec) -> String {
    format!("| `{}` | `{}` | {} | {} |", key.path(), key.default, range(key), key.meaning)
}

/// Markdown as text: without links and marks of code, except for commands.
fn text(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(name, target)| Some((name, target.split_once(')')?.1)));
        let Some((name, after)) = link.filter(|(name, _)| !name.contains('[')) else {
            text += before;
            text.push('[');
            rest = after;
            continue;
        };
        text += before;
        text += if name.ends_with(".md") { "docs/" } else { "" };
        text += name;
        rest = after;
    }
    text += rest;
    let parts: Vec<&str> = text.split('`').collect();
    // Code stays on one line.
    let part = |(n, part): (usize, &&str)| match (n % 2 == 1, part.replace(' ', NO_BREAK)) {
        (true, code) if part.starts_with("clqd ") => format!("`{code}`"),
        (true, code) => code,
        (false, _) => (*part).to_owned(),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = "#".to_owned();
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &(std::mem::replace(&mut line, "#".to_owned()) + "\n");
        }
        line += " ";
        line += word;
    }
    (lines + &line + "\n").replace(NO_BREAK, " ")
}

/// The shipped file.
fn file() -> String {
    let mut file = HEAD.to_owned();
    let mut section = "";
    for key in KEYS {
        if key.section != section {
            section = key.section;
            let (_, about) = SECTIONS.iter().find(|(name, _)| *name == section).expect("every section is described");
            writeln!(file, "{}[{section}]", comment(&text(about))).unwrap();
        }
        let KeySpec { name, default, .. } = key;
        writeln!(file, "{}# {}\n{name} = {default}\n", comment(&text(key.meaning)), range(key)).unwrap();
    }
    file.trim_end().to_owned() + "\n" + LISTS
}

/// The docs, with the rows of all keys: a new one follows the key before it.
fn docs(old: &str) -> String {
    let begin = |key: &KeySpec| format!("| `{}` | ", key.path());
    let mut docs = String::new();
    for line in old.lines() {
        let Some(at) = KEYS.iter().position(|key| line.starts_with(&begin(key))) else {
            docs += line;
            docs += "\n";
            continue;
        };
        let new = KEYS[at + 1..].iter().take_while(|key| !old.contains(&begin(key)));
        KEYS[at..=at].iter().chain(new).for_each(|key| docs += &(row(key) + "\n"));
    }
    docs
}

#[test]
fn shipped_file_and_docs_are_those_of_the_keys() {
    let (file_path, docs_path) = (path("config/clqd.toml"), path("docs/configuration.md"));
    let old_docs = std::fs::read_to_string(&docs_path).unwrap();
    let (file, docs) = (file(), docs(&old_docs));
    for key in KEYS {
        assert_eq!(docs.matches(&row(key)).count(), 1, "docs/configuration.md has no section of {}", key.path());
        assert!(key.meaning.ends_with('.'), "{} is not described", key.path());
        let before = docs.split(&row(key)).next().unwrap_or_default();
        let heading = before.lines().rev().find(|line| line.starts_with("## ")).unwrap_or_default();
        let section = if key.section.is_empty() { "## General".to_owned() } else { format!("## `[{}]`", key.section) };
        assert!(heading.starts_with(&section), "{} is below {heading}", key.path());
    }
    if std::env::var("CLQD_WRITE_CONFIG").is_ok() {
        std::fs::write(&file_path, &file).unwrap();
        std::fs::write(&docs_path, &docs).unwrap();
    }
    let rows = docs.lines().filter(|line| line.contains("reload | ") || line.contains("restart | ")).count();
    assert_eq!(rows, KEYS.len(), "docs/configuration.md has rows of keys that do not exist");
    let write = "run CLQD_WRITE_CONFIG=1 cargo test --lib config::shipped";
    assert!(std::fs::read_to_string(&file_path).unwrap() == file, "config/clqd.toml is another one: {write}");
    assert!(old_docs == docs || std::env::var("CLQD_WRITE_CONFIG").is_ok(), "docs/configuration.md: {write}");
}

#[test]
fn markdown_becomes_text() {
    let markdown = "See `a.b` and [web.md](web.md#y) with `clqd run`; [names](z.md) of `[[import]]`, [1]. \"`q`\"";
    let plain = "See a.b and docs/web.md with `clqd\u{a0}run`; names of [[import]], [1]. \"q\"";
    assert_eq!(text(markdown), plain);
    assert_eq!(comment("word ".repeat(20).trim_end()).lines().map(str::len).collect::<Vec<_>>(), [86, 16]);
}
