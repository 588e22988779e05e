//! The clap definitions, and commands against a fake daemon.

use std::sync::Arc;

use clap::CommandFactory;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::api::requests::{ChangeOutcome, ServerChange, ServersAdd};
use crate::api::{ApiError, Request, decode};
use crate::config::Config;
use crate::view::board::BoardsSelector;
use crate::web::{AdminSocket, AdminWork, Backend, ConnectionCounters, ReadWork, Site, WebLimits};

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn clap_definitions_are_valid() {
    Cli::command().debug_assert();
}

#[test]
fn command_lines_are_accepted_or_refused_with_reason() {
    for line in [
        "clqd run --config x.toml",
        "clqd check-config config/clqd.toml",
        "clqd status --json --socket /tmp/s",
        "clqd servers add quake3://a source://b:1 --tag ctf",
        "clqd servers list --class 6 --game baseq3 --tag ctf text",
        "clqd servers list --greylisted --order players -n 3",
        "clqd servers list --removed --order seen",
        "clqd status --counters",
        "clqd export --week 2026-W47",
        "clqd servers import - --tag x",
        "clqd servers import --master dpmaster://h/68 --master dpmaster://h:1/Xonotic/3 --scheme darkplaces --tag x",
        "clqd servers import servers.json --scheme source",
        "clqd rescan quake3://a",
        crate::cli::output::RESCAN_FAILED,
        "clqd rescan --all-unknown --json",
        "clqd top quake3://a --ranking elo --window 2026-W47 -n 3",
        "clqd top --game baseq3 --count 3",
        "clqd top --tag ctf --window month --time 1763683200000",
        "clqd board bottom --count 3 --game baseq3 --ranking time --window 2026-W47",
        "clqd board page --tag pro --position 11 -n 5 --time 2026-11-21T14:00:00+01:00",
        "clqd board page --tag pro --after AQ --time 1763683200000",
        "clqd board at 3 --server quake3://a",
        "clqd board around Visor --server quake3://a -n 5",
        "clqd board around --key 12 --server quake3://a",
        "clqd board range --server quake3://a --at-least -2.5 --below 1e3 --start 3",
        "clqd board count --server quake3://a --ranking elo",
        "clqd board position-for -3 --server quake3://a --ranking points",
        "clqd board standing Visor --server quake3://a --ranking elo",
        "clqd board positions Visor Anarki --key 3 --server quake3://a",
        "clqd board fused --server quake3://a --ranking elo=2 --ranking time -k 10 -n 3",
        "clqd board fused --server quake3://a --player Visor --key 4 --json",
        "clqd board windows --bytes --json",
        "clqd board delete-before 2026-11-21T14:00:00Z --yes",
        "clqd player Visor",
        "clqd player Turbo the Duck --game baseq3",
        "clqd player --key 12",
        "clqd player sessions --key 12",
        "clqd player sessions #12",
        "clqd player -- merge",
        "clqd player merge Visor #12 --game baseq3",
        "clqd player forget Visor --game baseq3 --yes",
        "clqd player forgotten",
        "clqd player allow 0000000000000000000000000000000000000000000000000000000000000000",
        "clqd servers tag quake3://a source://b:1 --add ctf --remove duel",
        "clqd servers tag --drop ctf --yes --json",
        "clqd greylist quake3://a --reason fake",
        "clqd archive verify --weeks 2026-W45..2026-W47 --json",
        "clqd archive resend",
        "clqd archive resend --weeks 2026-W47",
        "clqd archive resend --weeks 2026-W45..2026-W47 --json",
        "clqd greylist quake3://a --lift",
        "clqd reload",
        "clqd backup /var/lib/clqd-backup/a --json",
        "clqd restore backup",
        "clqd restore --from-mysql --json",
        "clqd query quake3://a source://b:1 --json --timeout-ms 500",
        "clqd query --file - --retries 0 --any-protocol --packets-per-second-max 9",
        "clqd generate man target/package/man",
        "clqd generate completions zsh",
        "clqd server ls --sort players --limit 3",
        "clqd players find Visor",
        "clqd boards windows",
        "clqd game quake",
        "clqd top --game g --by ELO --week 2026-W47 --limit 3",
        "clqd fleet --master 27950 --server-list l --status-interval 0 --behaviours unmarked_bots=0.5",
    ] {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).expect_err("an error"));
    }
    for (line, expected) in [
        ("clqd", "Usage"),
        ("clqd statsu", "status"),
        ("clqd servers add", "required"),
        ("clqd servers show nonsense", "is no server URL"),
        ("clqd servers list --class 8", "expected 1 to 7"),
        ("clqd servers add quake3://a --tag a,b", "tag \"a,b\" is not"),
        ("clqd servers tag quake3://a", "<--add <TAG>|--remove <TAG>|--drop <TAG>>"),
        ("clqd servers tag", "<URL>..."),
        ("clqd servers trust quake3://a", "<--except <REASON>|--revoke <REASON>>"),
        ("clqd servers tag quake3://a --drop ctf", "cannot be used with"),
        ("clqd servers tag --add ctf --drop ctf", "cannot be used with"),
        ("clqd servers tag quake3://a --add ctf --yes", "cannot be used with"),
        ("clqd servers tag nonsense --add ctf", "is no server URL"),
        ("clqd servers import", "<FILE|--master <URL>>"),
        ("clqd servers import list --master dpmaster://h/68", "cannot be used with"),
        ("clqd servers import - --scheme xonotik", "did you mean xonotic://?"),
        ("clqd player", "required"),
        ("clqd player Visor --key 12", "cannot be used with"),
        ("clqd player merge Visor --game baseq3", "INTO"),
        ("clqd player merge a b", "--game"),
        ("clqd player allow abc", "64 hexadecimal digits"),
        ("clqd restore", "<DIR|--from-mysql>"),
        ("clqd restore backup --from-mysql", "cannot be used with"),
        ("clqd restore --from-mysql --ignore-archive", "cannot be used with"),
        ("clqd rescan", "<URL|--all-unknown>"),
        ("clqd rescan quake3://a --all-unknown", "cannot be used with"),
        ("clqd top quake3://a --ranking clq3", "did you mean clq"),
        ("clqd top quake3://a -n 0", "1..=10000"),
        ("clqd board", "Usage"),
        ("clqd top", "<URL|--game <NAME>|--tag <TAG>>"),
        ("clqd top quake3://a --game baseq3", "cannot be used with"),
        ("clqd top quake3://a --ranking tiem", "did you mean time?"),
        ("clqd top quake3://a -n 10001", "1..=10000"),
        ("clqd board page --game g --after A --before B", "cannot be used with"),
        ("clqd board at 0 --game g", "not in 1.."),
        ("clqd board around --game g", "required"),
        ("clqd board around Visor --key 3 --game g", "cannot be used with"),
        ("clqd board range --game g --start 0", "not in 1.."),
        ("clqd board range --game g --position 3", "unexpected argument"),
        ("clqd board count --game g --at-least 1 --above 2", "cannot be used with"),
        ("clqd board count --game g --at-least nan", "expected a number"),
        ("clqd top --game g --time yesterday", "2026-11-21T14:00:00Z"),
        ("clqd board fused --game g --ranking elo=x", "weight \"x\": expected a number"),
        ("clqd board fused --game g --player a -n 3", "cannot be used with"),
        ("clqd board positions --game g", "required"),
        ("clqd board delete-before 1763683200000", "--yes"),
        ("clqd board delete-before yesterday --yes", "2026-11-21T14:00:00Z"),
        ("clqd query", "<URL|--file <LIST>|--replay <FILE>>"),
        ("clqd query nonsense", "is no server URL"),
        ("clqd boost quake3://a:1", "--for"),
        ("clqd boost quake3://a:1 --for 25h", "at most 24h"),
        ("clqd boost quake3://a:1 --for 5x", "such as 30m"),
        ("clqd query xonotik://a:26000", "\"xonotik\" is not known; did you mean xonotic://?"),
        ("clqd servers add xonotik://a", "\"xonotik\" is not known; did you mean xonotic://?"),
        ("clqd query quake3://a --timeout-ms 5", "100..=30000"),
        ("clqd query quake3://a --timeout-ms 30001", "100..=30000"),
        ("clqd query quake3://a --per-second-max 5", "unexpected argument"),
        ("clqd fleet --list l", "unexpected argument"),
        ("clqd fleet --status-every 5", "unexpected argument"),
        ("clqd fleet --behaviours unnamed_bots=1", "unmarked_bots"),
        ("clqd generate completions", "required"),
        ("clqd generate completions csh", "bash, zsh, fish"),
        ("clqd greylist quake3://a", "required"),
        ("clqd greylist quake3://a --reason x --lift", "cannot be used with"),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(expected), "{line}: {error}");
    }
}

/// Knows `quake3://known:1`, refuses URLs of other schemes than quake3.
struct Fake;

impl Backend for Fake {
    fn read(self: Arc<Self>, _: Option<BoardsSelector>, _: ReadWork) -> BoxFuture<'static, Result<(), ApiError>> {
        unreachable!("no visitor asks")
    }

    fn prepare(self: Arc<Self>, name: &'static str, body: &[u8]) -> Result<AdminWork, ApiError> {
        let urls = if name == ServersAdd::NAME { decode::<ServersAdd>(body)?.urls } else { Vec::new() };
        Ok(Box::new(move |sender| {
            let work = async move {
                let lines = sender.of();
                for url in urls {
                    let (outcome, reason) = match url.as_str() {
                        "quake3://known:1" => (ChangeOutcome::Unchanged, None),
                        url if url.starts_with("quake3://") => (ChangeOutcome::Added, None),
                        _ => (ChangeOutcome::Refused, Some("no such protocol".to_owned())),
                    };
                    lines.send(ServerChange { url, outcome, reason }).await?;
                }
                Ok(Vec::new())
            };
            work.boxed()
        }))
    }

    fn changes(&self) -> u64 {
        0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_change_exits_1() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let site = Site::new(&Config::default().web_settings(), WebLimits::default());
    site.set_backend(Arc::new(Fake));
    let _serving = site.serve_admins(AdminSocket::bind(&socket).expect("bound"), ConnectionCounters::default());
    let list = dir.path().join("list");
    let lines: String = (0..2_500).map(|i| format!("quake3://host{i}:1\n")).collect();
    std::fs::write(&list, lines + "quake3://known:1 tag\n").expect("written");
    let run = move |line: String| {
        let socket = socket.display().to_string();
        let words: Vec<String> = line.split(' ').map(str::to_owned).chain(["--socket".to_owned(), socket]).collect();
        Cli::try_parse_from(words).expect("a valid command line").run()
    };
    let codes = tokio::task::spawn_blocking(move || {
        [
            run(format!("clqd servers import {}", list.display())),
            run("clqd servers add quake3://a:1".to_owned()),
            run("clqd servers add source://a:1 quake3://a:1".to_owned()),
            run("clqd status".to_owned()),
        ]
        .map(|code| code.expect("a response"))
    })
    .await
    .expect("no panic");
    assert_eq!(codes, [ExitCode::SUCCESS, ExitCode::SUCCESS, ExitCode::FAILURE, ExitCode::SUCCESS]);
}

#[test]
fn player_forget_requires_yes() {
    let run = |line: &str| format!("{:#}", parse(line).expect("a valid command line").run().expect_err("not done"));
    assert!(run("clqd player forget Visor --game baseq3 --socket /no/s").contains("--yes"));
    assert!(run("clqd player forget Visor --game baseq3 --yes --socket /no/s").contains("not running"));
}

#[test]
fn missing_daemon_error_names_socket() {
    let run = |line: &str| format!("{:#}", parse(line).expect("a valid command line").run().expect_err("no daemon"));
    assert_eq!(
        run("clqd servers add quake3://a:1 --socket /no/s"),
        "The daemon is not running (no process listens on /no/s). Start it with `systemctl start clqd` or `clqd run`."
    );
    let never_started = run("clqd status --socket /no/s");
    assert!(never_started.contains("has not run yet: /var/lib/clqd does not exist\n"), "{never_started}");
}

#[test]
fn help_names_every_command() {
    let mut command = Cli::command();
    let help = command.render_help().to_string();
    let is_named = |name: &str| help.split([' ', ',', '.', '\n']).any(|word| word == name);
    let missing: Vec<_> = command.get_subcommands().map(|it| it.get_name()).filter(|name| !is_named(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn help_fits_80_columns() {
    fn check(mut command: clap::Command, name: &str) {
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines() {
                let is_usage = line.starts_with("Usage: ") || line.starts_with("       clqd ");
                assert!(is_usage || line.chars().count() <= 80, "{name}: {line}");
            }
        }
        for below in command.get_subcommands().cloned().collect::<Vec<_>>() {
            let name = format!("{name} {}", below.get_name());
            check(below, &name);
        }
    }
    let mut command = Cli::command();
    command.build();
    check(command, "clqd");
}

#[test]
fn broken_connection_to_the_daemon_is_no_closed_pipe() {
    let broken = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let lost = ClientError::ConnectionLost { path: "/run/clqd.sock".into(), source: broken() };
    assert!(!is_closed_pipe(&lost.into()));
    assert!(is_closed_pipe(&ClientError::Output(broken()).into()));
    assert!(is_closed_pipe(&broken().into()));
}
