//! `clqd generate`: man pages and shell completions, from the clap definitions, and the man
//! page of the configuration file.
//!
//! `systemd/package` puts them into the Debian package.

mod config_page;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Subcommand};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::cli::stdio::Output;
use crate::config;

#[derive(Clone, Debug, Subcommand)]
pub enum GenerateCommand {
    /// Write a man page of each command, and clqd.toml(5), to a directory
    Man {
        /// Directory of the pages; created if missing
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Print the completions of a shell
    Completions {
        // The shells whose completions are tested.
        #[arg(
            value_name = "SHELL",
            value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>())
        )]
        shell: Shell,
    },
}

pub fn run(command: &GenerateCommand) -> anyhow::Result<ExitCode> {
    match command {
        GenerateCommand::Man { dir } => {
            write_man_pages(dir).with_context(|| format!("cannot write the man pages to {}", dir.display()))?;
        }
        GenerateCommand::Completions { shell } => Output::ending().write_all(&completions(*shell))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes `clqd.1`, a page such as `clqd-servers-add.1` for each command, and `clqd.toml.5`.
fn write_man_pages(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("clqd.toml.5"), config_page::config_page(config::DEFAULTS))?;
    clap_mangen::generate_to(with_rare(Cli::command()), dir)
}

/// The command, including the subcommands that the help does not list.
fn with_rare(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |below| with_rare(below.hide(false))))
}

fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_rare(Cli::command()), "clqd", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::ErrorKind;
    use std::process::Command;

    use super::*;

    /// Names of the pages of a command and of all its subcommands.
    fn page_names(command: &clap::Command, name: &str, names: &mut BTreeSet<String>) {
        names.insert(format!("{name}.1"));
        for below in command.get_subcommands() {
            page_names(below, &format!("{name}-{}", below.get_name()), names);
        }
    }

    #[test]
    fn every_command_has_man_page() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path().join("new/man1");
        write_man_pages(&dir).expect("written");
        let mut expected = BTreeSet::new();
        page_names(&Cli::command(), "clqd", &mut expected);
        for name in ["clqd.1", "clqd-status.1", "clqd-servers-add.1", "clqd-player-forget.1"] {
            assert!(expected.contains(name), "{name}");
        }
        let written: BTreeSet<String> = fs::read_dir(&dir)
            .expect("the directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        expected.insert("clqd.toml.5".to_owned());
        assert_eq!(written, expected);
        for name in written.iter().filter(|name| name.ends_with(".1")) {
            let page = fs::read_to_string(dir.join(name)).expect("a page");
            // What `man -k` shows: the name, a hyphen and what the command does.
            let title = name.trim_end_matches(".1").replace('-', "\\-");
            let start = page.split_once(".SH NAME\n").expect(name).1;
            let about = start.strip_prefix(&format!("{title} \\- ")).unwrap_or_else(|| panic!("{name}: {start}"));
            assert!(about.starts_with(|c: char| c.is_ascii_uppercase()), "{name}: {about}");
            assert!(page.contains("\n.SH SYNOPSIS\n") && page.contains("\n.SH OPTIONS\n"), "{name}");
        }
    }

    #[test]
    fn man_pages_in_missing_place_are_refused_with_its_name() {
        let command = GenerateCommand::Man { dir: "/dev/null/man".into() };
        let error = format!("{:#}", run(&command).expect_err("not a directory"));
        assert!(error.starts_with("cannot write the man pages to /dev/null/man: "), "{error}");
    }

    /// A shell that is not installed is skipped, except bash.
    #[test]
    fn shells_accept_their_completions() {
        let dir = tempfile::tempdir().expect("a directory");
        for (shell, program, option) in
            [(Shell::Bash, "bash", "-n"), (Shell::Zsh, "zsh", "-n"), (Shell::Fish, "fish", "--no-execute")]
        {
            let file = dir.path().join(program);
            fs::write(&file, completions(shell)).expect("written");
            match Command::new(program).arg(option).arg(&file).output() {
                Ok(done) => {
                    let printed = String::from_utf8_lossy(&done.stderr);
                    assert!(done.status.success() && printed.is_empty(), "{program}: {}\n{printed}", done.status);
                }
                Err(error) if error.kind() == ErrorKind::NotFound && shell != Shell::Bash => {}
                Err(error) => panic!("{program}: {error}"),
            }
        }
    }

    #[test]
    fn completions_contain_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completions(shell)).expect("text");
            for command in Cli::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell:?}: {}", command.get_name());
            }
            assert!(script.contains("all-unknown") && script.contains("from-mysql"), "{shell:?}");
        }
    }

    #[test]
    fn bash_completes_commands_and_options() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("clqd");
        fs::write(&file, completions(Shell::Bash)).expect("written");
        for (words, expected) in [
            ("clqd sta", "status"),
            ("clqd servers imp", "import"),
            ("clqd rescan --all-u", "--all-unknown"),
            ("clqd generate completions f", "fish"),
        ] {
            let script = format!(
                "source \"$1\"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
                 _clqd clqd \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; \
                 printf '%s\\n' \"${{COMPREPLY[@]}}\""
            );
            let done = Command::new("bash").args(["-c", &script, "bash"]).arg(&file).output().expect("bash");
            assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), expected, "{words}: {done:?}");
        }
    }
}
