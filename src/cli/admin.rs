//! Commands that control the daemon or show its data: converts arguments to requests.
//! [`crate::cli::output`] prints the answers.

use std::io;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};

use super::arguments::{parse_new_url, parse_tag, parse_url, parse_url_to_tag};
use super::detect::{NotFound, detect};
use super::{import, list, not_found};
use crate::api::requests::{self, ChangeOutcome, RescanSelector, ServerChange};
use crate::api::{Answer, Notes, ROWS_PER_RESPONSE_MAX, Read, Request, Tagged, URLS_PER_REQUEST_MAX, json};
use crate::cli::context::{CliContext, Source};
use crate::cli::exit::{DaemonNotRunning, UsageError};
use crate::cli::output::format::sanitize;
use crate::cli::output::{Print, Printer};
use crate::cli::rescan_progress::ScanProgress;
use crate::cli::stdio::{Output, confirm, note, say};
use crate::client::AnswerItem;
use crate::limits::BOOST_S_MAX;
use crate::model::ScanBudget;
use crate::model::server::ScreenReason;
use crate::model::url::ServerUrl;
use crate::scan::MissReason;

#[derive(Debug, Subcommand)]
pub enum ServersCommand {
    /// Add servers and scan each immediately
    Add {
        /// Such as quake3://host:27960; host:port tries all protocols
        #[arg(required = true, value_name = "URL", value_parser = parse_new_url)]
        urls: Vec<ServerUrl>,
        /// Add this tag to the servers' tags; may be repeated
        #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag)]
        tags: Vec<String>,
    },
    /// Remove servers from scanning and lists; keep their history
    Remove {
        /// Such as quake3://host:27960; `clqd servers list` prints it
        #[arg(required = true, value_name = "URL", value_parser = parse_url)]
        urls: Vec<ServerUrl>,
    },
    Tag(TagArgs),
    /// List all tags with their servers and players
    Tags,
    #[command(alias = "ls")]
    List(list::ListArgs),
    Import(import::ImportArgs),
    Trust(TrustArgs),
    Budget(BudgetArgs),
    /// Show the best positions of a server's final weeks
    Best {
        /// Such as quake3://host:27960; `clqd servers list` prints it
        #[arg(value_parser = parse_url)]
        url: ServerUrl,
    },
    /// List who was on a server, and when, the newest first
    Sessions {
        /// Such as quake3://host:27960; `clqd servers list` prints it
        #[arg(value_parser = parse_url)]
        url: ServerUrl,
        /// Most sessions
        #[arg(short = 'n', long, alias = "limit", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_PER_RESPONSE_MAX)))]
        count: u32,
    },
    /// Show all data of one server
    Show {
        /// Such as quake3://host:27960; `clqd servers list` prints it
        #[arg(value_parser = parse_url)]
        url: ServerUrl,
    },
}

/// Change tags of servers, or delete a tag
///
/// Boards of the tags are updated at once, ELO ratings are not.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").args(["add", "remove", "drop"]).required(true).multiple(true))]
pub struct TagArgs {
    /// Such as quake3://host:27960; `clqd servers list` prints it
    #[arg(required_unless_present = "drop", value_name = "URL", value_parser = parse_url_to_tag)]
    urls: Vec<ServerUrl>,
    /// Add this tag; may be repeated
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    add: Vec<String>,
    /// Remove this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
    /// Delete this tag from all servers; takes no URL
    #[arg(long, value_name = "TAG", conflicts_with_all = ["urls", "add", "remove"])]
    drop: Option<String>,
    /// Confirm the deletion
    #[arg(long, requires = "drop", conflicts_with_all = ["urls", "add", "remove"])]
    yes: bool,
}

/// Exempt a server from a screening check, or apply the check again
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").args(["except", "revoke"]).required(true).multiple(true))]
pub struct TrustArgs {
    /// Such as quake3://host:27960; `clqd servers list` prints it
    #[arg(value_parser = parse_url)]
    url: ServerUrl,
    /// Skip this check, such as frozen_list; repeatable
    #[arg(long, value_name = "REASON", value_parser = parse_screen_reason)]
    except: Vec<ScreenReason>,
    /// Apply this check again; repeatable
    #[arg(long, value_name = "REASON", value_parser = parse_screen_reason)]
    revoke: Vec<ScreenReason>,
}

/// Set how often servers are scanned while they have players
///
/// Instead of scan.budget. More scans bring their rankings closer to what happened: see `clqd truth`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["urls", "tag"]).required(true))]
#[command(group = ArgGroup::new("change").args(["scans", "default"]).required(true))]
pub struct BudgetArgs {
    /// Such as quake3://host:27960; `clqd servers list` prints it
    #[arg(value_name = "URL", value_parser = parse_url)]
    urls: Vec<ServerUrl>,
    /// All servers that have this tag now
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Option<String>,
    /// Scans in an interval of class 1, 0.75 to 6; 0: a fixed grid
    #[arg(long, value_name = "N", value_parser = ScanBudget::parse)]
    scans: Option<ScanBudget>,
    /// As the setting scan.budget says
    #[arg(long)]
    default: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RescanArgs {
    /// Such as quake3://host:27960; `clqd servers list` prints it
    #[arg(value_parser = parse_url)]
    url: Option<ServerUrl>,
    /// All servers that did not answer (classes 6 and 7)
    #[arg(long)]
    all_unknown: bool,
}

const GREYLIST_EXAMPLES: &str = "Examples:
  clqd greylist quake3://host:27960 --reason 'fake players'
  clqd servers list --greylisted
  clqd greylist quake3://host:27960 --lift";

/// Exclude a server from the rankings; it is still scanned
///
/// Its scores of the running week and of other open windows are excluded until --lift. Closed weeks are unchanged. A
/// week that closes while the server is greylisted is closed without it, permanently. ELO ratings that other players
/// won or lost there are not changed.
#[derive(Debug, Args)]
#[command(after_help = GREYLIST_EXAMPLES)]
pub struct GreylistArgs {
    /// Such as quake3://host:27960; `clqd servers list` prints it
    #[arg(value_parser = parse_url)]
    url: ServerUrl,
    #[command(flatten)]
    action: GreylistAction,
}

#[derive(Debug, Args)]
pub struct BoostArgs {
    /// Such as quake3://host:27960; `clqd servers list` prints it
    #[arg(value_parser = parse_url)]
    url: ServerUrl,
    /// How long, such as 90s, 30m or 2h; at most 24h; 0s ends it
    #[arg(long = "for", value_name = "TIME", value_parser = parse_boost_time)]
    for_s: u32,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct GreylistAction {
    /// Reason, shown in lists and in the archive
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Remove the server from the greylist
    #[arg(long)]
    lift: bool,
}

/// Show the status of the daemon
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Also print all counters; --json always has them
    #[arg(long)]
    counters: bool,
}

pub fn status(args: &StatusArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut printing = Printing::new(app, Output::ending());
    let notes = app.read(&requests::Status {}, |mut status| {
        if !args.counters && !app.json() {
            status.counters.clear();
        }
        printing.line(status)
    });
    printing.end(notes).map(|(code, _)| code)
}

/// Show players and servers online over time
///
/// The daemon computes these sums once in ten minutes.
#[derive(Debug, Args)]
pub struct SeriesArgs {
    /// Only servers of this game
    #[arg(long, conflicts_with = "tag")]
    game: Option<String>,
    /// Only servers with this tag
    #[arg(long)]
    tag: Option<String>,
}

pub fn series(args: SeriesArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let SeriesArgs { game, tag } = args;
    show_list(app, &requests::Series { game, tag }, "there is no data yet")
}

pub fn overview(app: &CliContext) -> anyhow::Result<ExitCode> {
    show(app, &requests::Overview {})
}

pub fn map(map: String, app: &CliContext) -> anyhow::Result<ExitCode> {
    show(app, &requests::Map { map })
}

/// List the maps that were played most in all kept weeks
#[derive(Debug, Args)]
pub struct MapsArgs {
    /// Part of a name; one or two characters match only the beginning
    text: Option<String>,
    /// Most maps
    #[arg(short = 'n', long, alias = "limit", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_PER_RESPONSE_MAX)))]
    count: u32,
}

pub fn maps(args: MapsArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let MapsArgs { text, count } = args;
    show_list(app, &requests::Maps { text, count }, "no map found")
}

pub fn servers(command: ServersCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        ServersCommand::Add { urls, tags } => add(app, urls, tags),
        ServersCommand::Tag(TagArgs { drop: Some(_), yes: false, .. }) => {
            let why = "this deletes the tag's boards and ratings permanently; confirm with --yes";
            Err(UsageError(why.to_owned()).into())
        }
        ServersCommand::Tag(TagArgs { drop: Some(tag), yes: true, .. }) => send(app, &requests::TagDrop { tag }),
        ServersCommand::Tag(TagArgs { urls, add, remove, drop: None, .. }) => {
            send_in_batches(app, urls, |urls| requests::ServersTag { urls, add: add.clone(), remove: remove.clone() })
        }
        ServersCommand::Remove { urls } => {
            send_in_batches(app, urls, |urls| requests::ServersRemove { urls: to_strings(urls) })
        }
        ServersCommand::Tags => show_list(app, &requests::ServersTags {}, "no server has a tag"),
        ServersCommand::Best { url } => of_server(app, &url, &requests::ServersBest { url: url.clone() }, ""),
        ServersCommand::Sessions { url, count } => {
            let request = requests::ServersSessions { url: url.clone(), last_s: None, count };
            of_server(app, &url, &request, "no session is kept")
        }
        ServersCommand::Trust(TrustArgs { url, except, revoke }) => {
            send(app, &requests::ServersTrust { url, except, revoke })
        }
        ServersCommand::Budget(args) => budget(args, app),
        ServersCommand::List(args) => list::run(args, app),
        ServersCommand::Import(args) => import::run(&args, app),
        ServersCommand::Show { url } => of_server(app, &url, &requests::ServersShow { url: url.clone() }, ""),
    }
}

/// Prints the answer to a request that names a server.
fn of_server<R: Read<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    url: &ServerUrl,
    request: &R,
    if_empty: &str,
) -> anyhow::Result<ExitCode> {
    let printer = Printer::new(app.json(), Output::ending());
    let explain = |error, source: &mut Source| not_found::explain_server(error, url, source);
    let (code, lines) = show_with(app, printer, request, explain)?;
    if lines == 0 && !if_empty.is_empty() {
        note(format_args!("clqd: {if_empty}"));
    }
    Ok(code)
}

fn budget(args: BudgetArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let BudgetArgs { urls, tag, scans: budget, default: _ } = args;
    let urls = match tag {
        Some(tag) => list::urls_of_tag(tag, app)?,
        None => urls,
    };
    send_in_batches(app, urls, |urls| requests::ServersBudget { urls, budget })
}

pub fn rescan(args: RescanArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    // Without a URL clap requires --all-unknown.
    let servers = args.url.map_or(RescanSelector::AllUnknown, RescanSelector::Url);
    let (mut scans, mut printing) = (ScanProgress::default(), Printing::new(app, Output::ending()));
    // The daemon finishes the scans also if nobody reads the answer.
    let notes = app.send(&requests::Rescan { servers }, |item| match item {
        AnswerItem::Progress(progress) => {
            scans.progress(progress);
            Ok(())
        }
        AnswerItem::Line(scan) => scans.scanned(|| printing.line(scan)),
    });
    scans.finish();
    printing.end(notes).map(|(code, _)| code)
}

pub fn greylist(args: GreylistArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    send(app, &requests::Greylist { url: args.url, reason: args.action.reason })
}

pub fn boost(args: BoostArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    send(app, &requests::Boost { url: args.url, for_s: args.for_s })
}

pub fn reload(app: &CliContext) -> anyhow::Result<ExitCode> {
    let problems = app.expect_problems();
    send(app, &requests::Reload {}).inspect_err(|error| {
        if let (Some(problems), true) = (problems, error.is::<DaemonNotRunning>()) {
            note(format_args!("clqd: warning: {:#}", anyhow::Error::new(problems)));
        }
    })
}

/// Prints the lines of an answer.
pub(super) struct Printing<'a> {
    app: &'a CliContext,
    printer: Printer<Output>,
    code: ExitCode,
    lines: u64,
}

impl<'a> Printing<'a> {
    fn new(app: &'a CliContext, output: Output) -> Printing<'a> {
        Printing { app, printer: Printer::new(app.json(), output), code: ExitCode::SUCCESS, lines: 0 }
    }

    fn line<L: Print>(&mut self, line: L) -> io::Result<()> {
        self.lines += 1;
        if line.is_failure() {
            self.code = ExitCode::FAILURE;
        }
        self.printer.line(line)
    }

    /// Prints the end of an answer with these notes.
    fn end(mut self, notes: anyhow::Result<Vec<String>>) -> anyhow::Result<(ExitCode, u64)> {
        // Lines received before an error are printed too.
        self.printer.finish()?;
        let notes = notes?;
        if self.app.json() && self.lines == 0 && !notes.is_empty() {
            say(json::to_string(&Tagged::from(&Notes { notes })));
        } else {
            notes.iter().for_each(|line| note(sanitize(line)));
        }
        Ok((self.code, self.lines))
    }
}

/// Sends a request that only reads, and prints its answer.
pub(super) fn show<R: Read<Answer: Answer<Line: Print>>>(app: &CliContext, request: &R) -> anyhow::Result<ExitCode> {
    show_counting(app, request).map(|(code, _)| code)
}

/// As [`show`]; says so if there are no lines. An empty list is a result, not an error.
pub(super) fn show_list<R: Read<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    request: &R,
    if_empty: &str,
) -> anyhow::Result<ExitCode> {
    let (code, lines) = show_counting(app, request)?;
    if lines == 0 {
        note(format_args!("clqd: {if_empty}"));
    }
    Ok(code)
}

fn show_counting<R: Read<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    request: &R,
) -> anyhow::Result<(ExitCode, u64)> {
    show_with(app, Printer::new(app.json(), Output::ending()), request, |error, _| error)
}

/// Prints the answer to a request with this printer, or fails with an error that `explain` completes.
pub(super) fn show_with<R: Read<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    printer: Printer<Output>,
    request: &R,
    explain: impl FnOnce(anyhow::Error, &mut Source) -> anyhow::Error,
) -> anyhow::Result<(ExitCode, u64)> {
    let mut printing = Printing { app, printer, code: ExitCode::SUCCESS, lines: 0 };
    let notes = app.daemon_or_state().and_then(|mut source| {
        printing.printer.of_stopped = source.is_stopped();
        let notes = source.read(request, |line| printing.line(line));
        notes.map_err(|error| explain(error, &mut source))
    });
    printing.end(notes)
}

/// Sends a request to the daemon and prints its answer. Fails if a URL was refused.
pub(super) fn send<R: Request<Answer: Answer<Line: Print>>>(app: &CliContext, request: &R) -> anyhow::Result<ExitCode> {
    send_counting(app, request).map(|(code, _)| code)
}

/// As [`send`], also returns the number of lines. A command may send several requests that change something, and sends
/// all of them even if nobody reads the answers.
pub(super) fn send_counting<R: Request<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    request: &R,
) -> anyhow::Result<(ExitCode, u64)> {
    send_to(app, request, Output::lasting())
}

/// As [`send`], of a request that reports for minutes. It ends when nobody reads the answer.
pub(super) fn send_long<R: Request<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    request: &R,
) -> anyhow::Result<ExitCode> {
    send_to(app, request, Output::ending()).map(|(code, _)| code)
}

fn send_to<R: Request<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    request: &R,
    output: Output,
) -> anyhow::Result<(ExitCode, u64)> {
    let mut printing = Printing::new(app, output);
    let notes = app.send(request, |item| item.line().map_or(Ok(()), |line| printing.line(line)));
    printing.end(notes)
}

fn to_strings(urls: Vec<ServerUrl>) -> Vec<String> {
    urls.into_iter().map(String::from).collect()
}

fn send_in_batches<U: Clone, R: Request<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    urls: Vec<U>,
    request: impl Fn(Vec<U>) -> R,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for chunk in urls.chunks(URLS_PER_REQUEST_MAX) {
        if send(app, &request(chunk.to_vec()))? != ExitCode::SUCCESS {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Adds servers. If a server has no scheme, its protocol is detected first.
fn add(app: &CliContext, urls: Vec<ServerUrl>, tags: Vec<String>) -> anyhow::Result<ExitCode> {
    let mut known = Vec::new();
    let mut printer = Printer::new(app.json(), Output::lasting());
    let mut all_found = true;
    let found = detect(urls.clone(), || Ok(app.config()?.scan_settings()))?;
    for (asked, result) in urls.into_iter().zip(found) {
        let reason = match result {
            Ok(url) if url.port() == asked.port() || confirm_port(&asked, &url)? => {
                known.push(url);
                continue;
            }
            Ok(url) => format!("it answers on another port; if that is the server, add {url}"),
            Err(NotFound(reason)) => describe_miss(reason, app),
        };
        all_found = false;
        let change = ServerChange { url: asked.to_string(), outcome: ChangeOutcome::Refused, reason: Some(reason) };
        printer.line(change)?;
    }
    printer.finish()?;
    drop(printer);
    if known.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    let code = send_in_batches(app, known, |urls| requests::ServersAdd {
        urls: to_strings(urls),
        tags: tags.clone(),
        import: false,
    })?;
    Ok(if all_found { code } else { ExitCode::FAILURE })
}

/// Why no protocol got an answer, and what to do.
fn describe_miss(reason: MissReason, app: &CliContext) -> String {
    let with_scheme = |why: &str| format!("{why}; add it with a scheme to have it scanned");
    match reason {
        MissReason::NotPublic => match app.config_file() {
            Some(file) => format!("not a public address; scan.allow_private is off in {}", file.display()),
            None => "not a public address; scan.allow_private is off in the built-in defaults; --config FILE selects \
                     another file"
                .to_owned(),
        },
        MissReason::OptedOut => "on the opt-out list (scan.opt_out)".to_owned(),
        MissReason::Unresolved => "the name has no address".to_owned(),
        MissReason::LookupFailed => "no name server answers; retry".to_owned(),
        MissReason::Refused => with_scheme("the port is closed"),
        MissReason::Malformed => with_scheme("the answer is of no known protocol"),
        MissReason::SendFailed => "nothing can be sent: no route to it, or a local firewall".to_owned(),
        MissReason::ReceiveOverflow => "the answer was lost on this machine; retry".to_owned(),
        MissReason::Timeout | MissReason::UnsupportedScheme => with_scheme("no answer"),
    }
}

/// Asks whether the server that answers on another port is the one that was meant. Without a terminal: no.
fn confirm_port(asked: &ServerUrl, found: &ServerUrl) -> io::Result<bool> {
    let question = format_args!("{}:{} answers as {found}. Add that?", asked.host(), asked.port());
    Ok(confirm(question)?.unwrap_or(false))
}

fn parse_boost_time(text: &str) -> Result<u32, String> {
    let seconds = || {
        let unit_s = match text.bytes().last()? {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            _ => return None,
        };
        let count: u32 = text[..text.len() - 1].parse().ok()?;
        count.checked_mul(unit_s).filter(|&seconds| seconds <= BOOST_S_MAX)
    };
    seconds().ok_or_else(|| "expected a number and s, m or h, such as 30m; at most 24h".to_owned())
}

fn parse_screen_reason(text: &str) -> Result<ScreenReason, String> {
    let names = || ScreenReason::ALL.iter().map(|reason| reason.name());
    ScreenReason::from_name(text).ok_or_else(|| match crate::nearest::nearest(text, names()) {
        Some(near) => format!("unknown check; did you mean {near}?"),
        None => format!("unknown check; expected one of {}", names().collect::<Vec<_>>().join(", ")),
    })
}
