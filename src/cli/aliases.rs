//! Names of commands that are not ours, but that people type. Most are aliases in the definitions of the commands and
//! options, which no help lists. Here are those that an alias cannot express, and suggestions for unknown commands.

use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::Cli;
use crate::nearest::nearest;

/// Global options with a value.
const OPTIONS_WITH_VALUE: [&str; 3] = ["--config", "--socket", "--timeout"];

/// Most commands to suggest for one that does not exist.
const SUGGESTIONS_MAX: usize = 3;

/// Replaces words of a command line: `help` before a command, `show` before the name of a player, and `--server` before the
/// URL of `clqd top`. Error: what was meant.
pub(super) fn replace(mut args: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let is_value = |at: usize| OPTIONS_WITH_VALUE.iter().any(|option| args[at - 1] == *option);
    let is_word = |at: &usize| !args[*at].as_encoded_bytes().starts_with(b"-") && !is_value(*at);
    let Some(command) = (1..args.len()).find(is_word) else { return Ok(args) };
    let word = |at: usize| args.get(at).and_then(|arg| arg.to_str()).unwrap_or_default();
    let has_name = args.iter().skip(command + 2).any(|arg| !arg.as_encoded_bytes().starts_with(b"-"));
    match (word(command), word(command + 1)) {
        ("help", _) => {
            args.remove(command);
            args.push("--help".into());
        }
        ("player" | "players", "show" | "info" | "get") if has_name => _ = args.remove(command + 1),
        ("player" | "players", other @ ("delete" | "remove")) if has_name => {
            return Err(format!("there is no command {other:?}; did you mean: clqd player forget"));
        }
        ("top", _) => {
            args.retain(|arg| arg != "--server");
            for arg in &mut args {
                if let Some(url) = arg.to_str().and_then(|arg| arg.strip_prefix("--server=")) {
                    *arg = url.into();
                }
            }
        }
        _ => {}
    }
    Ok(args)
}

/// The commands that somebody may have meant by one that does not exist below `group`, such as `clqd cluster`.
pub(super) fn suggestions(unknown: &str, group: &str) -> Vec<String> {
    if let ("start" | "stop" | "restart", "clqd") = (unknown, group) {
        return vec![format!("systemctl {unknown} clqd")];
    }
    let mut commands = Vec::new();
    collect(&Cli::command(), "clqd", &mut commands);
    let is_below = |path: &str| path.strip_prefix(group).is_some_and(|rest| rest.starts_with(' '));
    let below: Vec<&str> = commands.iter().filter(|(_, path)| is_below(path)).map(|(name, _)| name.as_str()).collect();
    if let Some(name) = nearest(unknown, below).map(str::to_owned) {
        commands.retain(|(other, path)| *other == name && is_below(path));
    }
    let is_named = |name: &str| commands.iter().any(|(other, _)| other == name);
    let name =
        if is_named(unknown) { Some(unknown) } else { nearest(unknown, commands.iter().map(|(name, _)| &**name)) };
    let mut paths: Vec<String> =
        commands.iter().filter(|(other, _)| name == Some(other.as_str())).map(|(_, path)| path.clone()).collect();
    // `status` rather than `cluster status`.
    let depth = |path: &str| path.matches(' ').count();
    let least = paths.iter().map(|path| depth(path)).min();
    paths.retain(|path| Some(depth(path)) == least);
    paths.truncate(SUGGESTIONS_MAX);
    paths
}

/// Adds the names of all commands below this one, with their aliases, and the command line of each.
fn collect(command: &Command, path: &str, into: &mut Vec<(String, String)>) {
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        let names = std::iter::once(below.get_name()).chain(below.get_all_aliases());
        into.extend(names.map(|name| (name.to_owned(), path.clone())));
        collect(below, &path, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_programs_are_replaced() {
        for (line, want) in [
            ("clqd", "clqd"),
            ("clqd --version", "clqd --version"),
            ("clqd help", "clqd --help"),
            ("clqd help servers add", "clqd servers add --help"),
            ("clqd --config help help status", "clqd --config help status --help"),
            ("clqd player show Visor", "clqd player Visor"),
            ("clqd players info Visor --game q3", "clqd players Visor --game q3"),
            ("clqd player show", "clqd player show"),
            ("clqd player show --json", "clqd player show --json"),
            ("clqd player -- show Visor", "clqd player -- show Visor"),
            ("clqd top --server quake3://a -n 3", "clqd top quake3://a -n 3"),
            ("clqd --json top -n 3 --server=quake3://a", "clqd --json top -n 3 quake3://a"),
            ("clqd board page --server quake3://a", "clqd board page --server quake3://a"),
        ] {
            let got = replace(line.split(' ').map(OsString::from).collect()).expect("a command line");
            assert_eq!(got, want.split(' ').map(OsString::from).collect::<Vec<_>>(), "{line}");
        }
        let deleted = replace(["clqd", "player", "delete", "Visor"].map(OsString::from).into()).expect_err("refused");
        assert!(deleted.ends_with("did you mean: clqd player forget"), "{deleted}");
    }

    #[test]
    fn unknown_commands_are_looked_for_below_all_commands() {
        for (unknown, group, want) in [
            ("list", "clqd", &["clqd servers list"][..]),
            ("statsu", "clqd", &["clqd status"]),
            ("statsu", "clqd cluster", &["clqd cluster status"]),
            ("top", "clqd cluster", &["clqd top"]),
            ("serch", "clqd", &["clqd player search"]),
            ("sessions", "clqd", &["clqd servers sessions", "clqd player sessions"]),
            ("restart", "clqd", &["systemctl restart clqd"]),
            ("xyz", "clqd", &[]),
        ] {
            assert_eq!(suggestions(unknown, group), want, "{unknown}");
        }
    }
}
