//! `clqd board` converts its arguments to a request and sends it to the daemon.
//! [`crate::cli::output`] prints the rows of the response.

use std::process::ExitCode;

use clap::{Args, Subcommand, value_parser};

use super::admin::{send_counting, show, show_with};
use super::arguments::{PlayerArg, parse_ranking, parse_tag, parse_url, parse_url_of_top, selector_of};
use super::not_found::{explain_players, explain_server, why_not_ranked};
use crate::api::requests::{self, BoardLine};
use crate::api::{Answer, ApiError, ErrorCode, ROWS_PER_RESPONSE_MAX, Read};
use crate::cli::context::{CliContext, Source};
use crate::cli::output::format::group_digits;
use crate::cli::output::{Print, Printer};
use crate::cli::stdio::{Output, say};
use crate::clock::system_ms;
use crate::model::row::Ranking;
use crate::model::scope::Scope;
use crate::model::url::ServerUrl;
use crate::view::board::{
    BoardQuery, BoardSelector, BoardsSelector, FusedQuery, PlayerSelector, RankingWeight, ScoreBounds,
};

/// Queries that the help does not list.
const RARE_QUERIES: &str = "Less common: at, bottom, count, delete-before, fused, position-for, positions,
range. All have --help. `clqd top` shows the best entries.";

#[derive(Debug, Subcommand)]
#[command(after_help = RARE_QUERIES)]
pub enum BoardCommand {
    /// Show the last entries, last one first
    #[command(hide = true)]
    Bottom {
        #[command(flatten)]
        board: BoardArgs,
        #[command(flatten)]
        rows: CountArg,
    },
    /// Show one page, and cursors to the next and previous page
    Page {
        #[command(flatten)]
        board: BoardArgs,
        #[command(flatten)]
        from: PageStart,
        #[command(flatten)]
        rows: CountArg,
    },
    /// Show the entry at a position
    #[command(hide = true)]
    At {
        #[command(flatten)]
        board: BoardArgs,
        /// Position, from 1
        #[arg(value_parser = value_parser!(u32).range(1..))]
        position: u32,
    },
    /// Show the entries around a player, including the player
    Around {
        #[command(flatten)]
        board: BoardArgs,
        #[command(flatten)]
        player: PlayerArg,
        #[command(flatten)]
        rows: CountArg,
    },
    /// Show the entries with scores in a range
    #[command(hide = true)]
    Range {
        #[command(flatten)]
        board: BoardArgs,
        #[command(flatten)]
        scores: ScoreRangeArgs,
        /// First entry of the range to show, from 1
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
        start: u32,
        #[command(flatten)]
        rows: CountArg,
    },
    /// Count the players with scores in a range, or all players without bounds
    #[command(hide = true)]
    Count {
        #[command(flatten)]
        board: BoardArgs,
        #[command(flatten)]
        scores: ScoreRangeArgs,
    },
    /// Show the position that a new score would have
    #[command(hide = true)]
    PositionFor {
        #[command(flatten)]
        board: BoardArgs,
        /// Score as in --json: points per second for clq1, seconds for time
        #[arg(value_parser = parse_score, allow_negative_numbers = true)]
        score: f64,
    },
    /// Show a player's position in all rankings, or in one
    Standing {
        #[command(flatten)]
        boards: ScopeWindowArgs,
        /// clq1 (points a minute), clq2 (places in rounds), elo, points or time
        #[arg(long, alias = "by", value_parser = parse_ranking)]
        ranking: Option<Ranking>,
        #[command(flatten)]
        player: PlayerArg,
    },
    /// Show the entries of several players
    #[command(hide = true)]
    Positions {
        #[command(flatten)]
        board: BoardArgs,
        #[command(flatten)]
        players: PlayerListArgs,
    },
    /// Combine several rankings into one list by reciprocal rank fusion
    #[command(hide = true)]
    Fused {
        #[command(flatten)]
        boards: ScopeWindowArgs,
        /// RANKING or RANKING=WEIGHT; may be repeated [default: all five with equal
        /// weights]
        #[arg(long = "ranking", alias = "by", value_name = "RANKING", value_parser = parse_ranking_weight)]
        rankings: Vec<RankingWeight>,
        /// Constant k of reciprocal rank fusion; a larger k weights top positions less
        /// [default: 60]
        #[arg(short, value_name = "K", value_parser = parse_score)]
        k: Option<f64>,
        /// Show these players instead of the best
        #[command(flatten)]
        players: FusedPlayersArgs,
        #[command(flatten)]
        rows: CountArg,
    },
    /// List the windows of each type
    Windows {
        /// Also measure their sizes on disk: 1 s per million rows
        #[arg(long)]
        bytes: bool,
    },
    /// Delete windows that ended before a time, with their boards
    ///
    /// Weeks are deleted only if they are closed and archived.
    #[command(hide = true)]
    DeleteBefore {
        /// Such as 2026-11-21T14:00:00Z, or Unix ms
        #[arg(value_name = "TIME", value_parser = parse_time)]
        before: i64,
        /// Confirm the permanent deletion
        #[arg(long, required = true)]
        yes: bool,
    },
}

const TOP_EXAMPLES: &str = "Examples:
  clqd top quake3://host:27960
  clqd top --game baseq3 --ranking elo -n 20
  clqd top --tag ctf --window 2026-W47";

/// Show the top players of a server, game or tag
///
/// `clqd board` has the other queries.
#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct TopArgs {
    #[command(flatten)]
    scope: TopScope,
    #[command(flatten)]
    window: WindowArgs,
    /// clq1 (points a minute), clq2 (places in rounds), elo, points or time
    #[arg(long, alias = "by", default_value = "clq1", value_parser = parse_ranking)]
    ranking: Ranking,
    #[command(flatten)]
    rows: CountArg,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TopScope {
    /// The top players of one server
    #[arg(value_name = "URL", value_parser = parse_url_of_top)]
    server: Option<ServerUrl>,
    /// The top players of a game, such as baseq3
    #[arg(long, value_name = "NAME")]
    game: Option<String>,
    /// The top players of all servers with a tag
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Option<String>,
}

/// Scope and window.
#[derive(Debug, Args)]
pub struct ScopeWindowArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    window: WindowArgs,
}

#[derive(Debug, Args)]
struct WindowArgs {
    /// A week such as 2026-W47, or a type of `clqd board windows` [default: this week]
    #[arg(long, alias = "week", value_name = "WINDOW")]
    window: Option<String>,
    /// With a type: the window that contained this time
    ///
    /// If several did, the oldest. Such as 2026-11-21T14:00:00Z, or Unix ms.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    time: Option<i64>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ScopeArgs {
    /// The board of one server
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    server: Option<ServerUrl>,
    /// The board of a game, such as baseq3
    #[arg(long, value_name = "NAME")]
    game: Option<String>,
    /// The board of all servers with a tag
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Option<String>,
}

/// One board.
#[derive(Debug, Args)]
pub struct BoardArgs {
    #[command(flatten)]
    boards: ScopeWindowArgs,
    /// clq1 (points a minute), clq2 (places in rounds), elo, points or time
    #[arg(long, alias = "by", default_value = "clq1", value_parser = parse_ranking)]
    ranking: Ranking,
}

#[derive(Debug, Args)]
pub struct CountArg {
    /// Number of entries
    #[arg(short = 'n', long, alias = "limit", value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=i64::from(ROWS_PER_RESPONSE_MAX)))]
    count: u32,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct PageStart {
    /// The first position [default: 1]
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    position: Option<u32>,
    /// Show the page after this cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Show the page before this cursor
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

/// Bounds of scores.
#[derive(Debug, Args)]
pub struct ScoreRangeArgs {
    /// Lowest score, as in --json: points a second for clq1 (0.02 is 1.20 points/min), seconds for time
    #[arg(long, value_name = "SCORE", value_parser = parse_score, allow_negative_numbers = true)]
    at_least: Option<f64>,
    /// Scores above this one, as in --json
    #[arg(long, value_name = "SCORE", value_parser = parse_score, allow_negative_numbers = true, conflicts_with = "at_least")]
    above: Option<f64>,
    /// Highest score, as in --json
    #[arg(long, value_name = "SCORE", value_parser = parse_score, allow_negative_numbers = true)]
    at_most: Option<f64>,
    /// Scores below this one, as in --json
    #[arg(long, value_name = "SCORE", value_parser = parse_score, allow_negative_numbers = true, conflicts_with = "at_most")]
    below: Option<f64>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct PlayerListArgs {
    /// Names without colour codes; case matters
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// A player's key; may be repeated; keys are listed after names
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<u32>,
}

#[derive(Debug, Args)]
pub struct FusedPlayersArgs {
    /// Show this player instead of the best; may be repeated
    #[arg(long = "player", value_name = "NAME", conflicts_with = "count")]
    names: Vec<String>,
    /// Show the player with this key instead of the best; may be repeated
    #[arg(long = "key", value_name = "KEY", conflicts_with = "count")]
    keys: Vec<u32>,
}

pub fn run(command: BoardCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    let (board, query) = match command {
        BoardCommand::Windows { bytes } => return show(app, &requests::Windows { bytes }),
        BoardCommand::DeleteBefore { before, .. } => {
            let (code, windows) = send_counting(app, &requests::WindowsDelete { before_ms: before })?;
            if !app.json() {
                say(format_args!("{windows} {} deleted", if windows == 1 { "window" } else { "windows" }));
            }
            return Ok(code);
        }
        BoardCommand::Standing { boards, ranking: None, player } => {
            let (boards, player) = (boards.into_selector(), player.selector());
            let (scope, of) = (boards.scope.clone(), player.clone());
            let request = requests::Standings { boards, player, rankings: Vec::new() };
            return of_scope(app, &scope, Some(&of), &request);
        }
        BoardCommand::Fused { boards, rankings, k, players, rows } => {
            let players = player_refs(players.names, players.keys);
            let query = match players.is_empty() {
                true => FusedQuery::Top { count: rows.count },
                false => FusedQuery::Players { players },
            };
            let boards = boards.into_selector();
            let scope = boards.scope.clone();
            let request = requests::Fused { boards, rankings, k, query };
            return of_scope(app, &scope, None, &request);
        }
        BoardCommand::At { board, position } => {
            return at(position, &board.query(BoardQuery::At { position }), app);
        }
        BoardCommand::Standing { boards, ranking: Some(ranking), player } => {
            (BoardArgs { boards, ranking }, BoardQuery::Standing { player: player.selector() })
        }
        BoardCommand::Bottom { board, rows } => (board, BoardQuery::Bottom { count: rows.count }),
        BoardCommand::Page { board, from, rows } => (board, from.into_query(rows.count)),
        BoardCommand::Around { board, player, rows } => {
            (board, BoardQuery::Around { player: player.selector(), count: rows.count })
        }
        BoardCommand::Range { board, scores, start, rows } => {
            (board, BoardQuery::Range { scores: scores.bounds(), start, count: rows.count })
        }
        BoardCommand::Count { board, scores } => (board, BoardQuery::Count { scores: scores.bounds() }),
        BoardCommand::PositionFor { board, score } => (board, BoardQuery::PositionFor { score }),
        BoardCommand::Positions { board, players } => {
            (board, BoardQuery::Positions { players: player_refs(players.names, players.keys) })
        }
    };
    let request = board.query(query);
    let mut printer = Printer::new(app.json(), Output::ending());
    if let BoardQuery::Range { scores, .. } | BoardQuery::Count { scores } = &request.query {
        printer = printer.in_range(*scores);
    }
    let player = match &request.query {
        BoardQuery::Around { player, .. } | BoardQuery::Standing { player } => Some(player),
        _ => None,
    };
    let explain = |error, source: &mut Source| explain(error, &request.board.scope, player, source);
    show_with(app, printer, &request, explain).map(|(code, _)| code)
}

/// Prints the answer to a request about boards of this scope.
fn of_scope<R: Read<Answer: Answer<Line: Print>>>(
    app: &CliContext,
    scope: &Scope,
    player: Option<&PlayerSelector>,
    request: &R,
) -> anyhow::Result<ExitCode> {
    let printer = Printer::new(app.json(), Output::ending());
    let explain = |error, source: &mut Source| explain(error, scope, player, source);
    show_with(app, printer, request, explain).map(|(code, _)| code)
}

/// Completes the error of a request about a board that names this player.
fn explain(
    mut error: anyhow::Error,
    scope: &Scope,
    player: Option<&PlayerSelector>,
    source: &mut Source,
) -> anyhow::Error {
    if let Scope::Server(url) = scope {
        error = explain_server(error, url, source);
    }
    explain_players(error, player, source)
}

pub fn top(args: TopArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let TopArgs { scope: TopScope { server, game, tag }, window: WindowArgs { window, time }, ranking, rows } = args;
    let scope = scope(server, game, tag);
    let board = BoardSelector { scope: scope.clone(), ranking, window, at_ms: time };
    let request = requests::Board { board, query: BoardQuery::Top { count: rows.count } };
    let mut source = app.daemon_or_state()?;
    let lines = source.lines(&request).map_err(|error| explain(error, &scope, None, &mut source))?;
    let mut printer = Printer::new(app.json(), Output::ending()).brief();
    if let (Some(BoardLine::BoardHead(head)), Scope::Server(url), false) = (lines.first(), &scope, app.json())
        && head.is_empty_and_open()
        && let Some(why) = why_not_ranked(url, system_ms(), &mut source)
    {
        printer = printer.explain_empty(why);
    }
    lines.into_iter().try_for_each(|line| printer.line(line))?;
    printer.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the entry at a position. If the board has no such position, this is an error,
/// because a heading without an entry would look like a result.
fn at(position: u32, request: &requests::Board, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut source = app.daemon_or_state()?;
    let lines = source.lines(request).map_err(|error| explain(error, &request.board.scope, None, &mut source))?;
    if let [BoardLine::BoardHead(head)] = &lines[..] {
        let size = group_digits(head.size);
        let message = format!("no player at position {position}: the board has {size} entries");
        return Err(ApiError::new(ErrorCode::NotFound, message).into());
    }
    let mut printer = Printer::new(app.json(), Output::ending());
    lines.into_iter().try_for_each(|line| printer.line(line))?;
    printer.finish()?;
    Ok(ExitCode::SUCCESS)
}

impl BoardArgs {
    fn query(self, query: BoardQuery) -> requests::Board {
        let BoardArgs { boards, ranking } = self;
        let BoardsSelector { scope, window, at_ms } = boards.into_selector();
        requests::Board { board: BoardSelector { scope, ranking, window, at_ms }, query }
    }
}

impl ScopeWindowArgs {
    fn into_selector(self) -> BoardsSelector {
        let ScopeArgs { server, game, tag } = self.scope;
        BoardsSelector { scope: scope(server, game, tag), window: self.window.window, at_ms: self.window.time }
    }
}

fn scope(server: Option<ServerUrl>, game: Option<String>, tag: Option<String>) -> Scope {
    match (server, game) {
        (Some(url), _) => Scope::Server(url),
        (None, Some(game)) => Scope::Game(game),
        (None, None) => Scope::Tag(tag.expect("clap requires one of the three")),
    }
}

impl PageStart {
    fn into_query(self, count: u32) -> BoardQuery {
        match self {
            PageStart { after: Some(cursor), .. } => BoardQuery::After { cursor, count },
            PageStart { before: Some(cursor), .. } => BoardQuery::Before { cursor, count },
            PageStart { position, .. } => BoardQuery::Page { position: position.unwrap_or(1), count },
        }
    }
}

impl ScoreRangeArgs {
    fn bounds(self) -> ScoreBounds {
        let ScoreRangeArgs { at_least, above, at_most, below } = self;
        ScoreBounds { at_least, above, at_most, below }
    }
}

fn player_refs(names: Vec<String>, keys: Vec<u32>) -> Vec<PlayerSelector> {
    names.iter().map(|name| selector_of(name)).chain(keys.into_iter().map(PlayerSelector::Key)).collect()
}

/// Parses a finite number.
fn parse_score(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|score: &f64| score.is_finite()).ok_or_else(|| "expected a number".to_owned())
}

/// Parses an RFC 3339 time or Unix ms. Returns Unix ms.
fn parse_time(text: &str) -> Result<i64, String> {
    if let Ok(t_ms) = text.parse() {
        return Ok(t_ms);
    }
    let time = chrono::DateTime::parse_from_rfc3339(text).map(|time| time.timestamp_millis());
    time.map_err(|_| "expected a time such as 2026-11-21T14:00:00Z, or Unix milliseconds".to_owned())
}

/// Parses `RANKING` or `RANKING=WEIGHT`. The default weight is 1.
fn parse_ranking_weight(text: &str) -> Result<RankingWeight, String> {
    let (name, weight) = text.split_once('=').unwrap_or((text, "1"));
    let weight = parse_score(weight).map_err(|error| format!("weight {weight:?}: {error}"))?;
    Ok(RankingWeight { ranking: parse_ranking(name)?, weight })
}
