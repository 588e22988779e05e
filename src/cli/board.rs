//! `clqd board`: what can be asked of a board, from arguments to requests. How
//! answers look is told in [`crate::cli::output`].

use std::io;
use std::process::ExitCode;

use clap::{Args, Subcommand, value_parser};

use super::admin::{ask_counted, ranking, tag, url};
use crate::api::protocol::TOP_ROWS_MAX;
use crate::cli::context::App;
use crate::cli::output::Printer;
use crate::cli::output::format::count;
use crate::control::{ErrorCode, Failure, Request, Row};
use crate::model::row::Ranking;
use crate::model::scope::ScopeName;
use crate::model::url::ServerUrl;
use crate::model::view::board::{
    BoardName, BoardQuestion, BoardsName, FusedQuestion, PlayerName, RankingWeight, ScoreBounds,
};

#[derive(Debug, Subcommand)]
pub enum Board {
    /// The best
    Top {
        #[command(flatten)]
        board: Which,
        #[command(flatten)]
        rows: Rows,
    },
    /// The last, last first
    Bottom {
        #[command(flatten)]
        board: Which,
        #[command(flatten)]
        rows: Rows,
    },
    /// Places from a position or a cursor on; tells the cursors to go on with
    Page {
        #[command(flatten)]
        board: Which,
        #[command(flatten)]
        from: Beginning,
        #[command(flatten)]
        rows: Rows,
    },
    /// The place at a position
    At {
        #[command(flatten)]
        board: Which,
        #[arg(value_parser = value_parser!(u32).range(1..))]
        position: u32,
    },
    /// Places around and with a player
    Around {
        #[command(flatten)]
        board: Which,
        #[command(flatten)]
        player: OnePlayer,
        #[command(flatten)]
        rows: Rows,
    },
    /// Places with scores in a range
    Range {
        #[command(flatten)]
        board: Which,
        #[command(flatten)]
        scores: Scores,
        /// Begin with the so-manieth place of the range
        #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
        position: u32,
        #[command(flatten)]
        rows: Rows,
    },
    /// How many players have scores in a range; without bounds, all
    Count {
        #[command(flatten)]
        board: Which,
        #[command(flatten)]
        scores: Scores,
    },
    /// The position that somebody would have who reached a score now
    PositionFor {
        #[command(flatten)]
        board: Which,
        /// As scores are shown: points per second for clq1, seconds for time
        #[arg(value_parser = score, allow_negative_numbers = true)]
        score: f64,
    },
    /// Where a player stands, in all five rankings unless one is named
    Standing {
        #[command(flatten)]
        boards: Boards,
        /// clq1, clq2, elo, points or time
        #[arg(long, value_parser = ranking)]
        ranking: Option<Ranking>,
        #[command(flatten)]
        player: OnePlayer,
    },
    /// Places of a list of players
    Positions {
        #[command(flatten)]
        board: Which,
        #[command(flatten)]
        players: Players,
    },
    /// One list of several rankings, by reciprocal rank fusion
    Fused {
        #[command(flatten)]
        boards: Boards,
        /// RANKING or RANKING=WEIGHT; may be repeated [default: all five alike]
        #[arg(long = "ranking", value_name = "RANKING", value_parser = weight)]
        rankings: Vec<RankingWeight>,
        /// Softens how much more the first places count [default: 60]
        #[arg(short, value_name = "K", value_parser = score)]
        k: Option<f64>,
        /// These players instead of the best
        #[command(flatten)]
        players: SomePlayers,
        #[command(flatten)]
        rows: Rows,
    },
    /// List the windows there are: those over, running, and next of each type
    Windows {
        /// Read all of each, to tell what it takes in the state directory; a second per million rows
        #[arg(long)]
        bytes: bool,
    },
    /// Delete, with all their boards, the windows that had ended by a time; closed and archived weeks among them
    DeleteBefore {
        /// Such as 2026-11-21T14:00:00Z, or Unix ms
        #[arg(value_name = "TIME", value_parser = time)]
        before: i64,
        /// They are gone for good: without this nothing is deleted
        #[arg(long, required = true)]
        yes: bool,
    },
}

/// Scope and window.
#[derive(Debug, Args)]
pub struct Boards {
    #[command(flatten)]
    scope: Scope,
    /// A window, such as 2026-W47, or a type of windows [default: the running week]
    #[arg(long, value_name = "WINDOW")]
    window: Option<String>,
    /// The oldest window that contains this time, such as 2026-11-21T14:00:00Z, or Unix ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<i64>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Scope {
    /// The board of one server
    #[arg(long, value_name = "URL", value_parser = url)]
    server: Option<ServerUrl>,
    /// The board of all servers of a game, such as baseq3
    #[arg(long, value_name = "NAME")]
    game: Option<String>,
    /// The board of all servers with a tag
    #[arg(long, value_name = "TAG", value_parser = tag)]
    tag: Option<String>,
}

/// One board.
#[derive(Debug, Args)]
pub struct Which {
    #[command(flatten)]
    boards: Boards,
    /// clq1, clq2, elo, points or time
    #[arg(long, default_value = "clq1", value_parser = ranking)]
    ranking: Ranking,
}

#[derive(Debug, Args)]
pub struct Rows {
    /// How many places
    #[arg(short, default_value_t = 10, value_parser = value_parser!(u32).range(1..=i64::from(TOP_ROWS_MAX)))]
    n: u32,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct Beginning {
    /// The first position [default: 1]
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    position: Option<u32>,
    /// The page behind this cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// The page in front of this cursor
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

/// Bounds by number, as scores are shown.
#[derive(Debug, Args)]
pub struct Scores {
    #[arg(long, value_name = "SCORE", value_parser = score, allow_negative_numbers = true)]
    at_least: Option<f64>,
    #[arg(long, value_name = "SCORE", value_parser = score, allow_negative_numbers = true, conflicts_with = "at_least")]
    above: Option<f64>,
    #[arg(long, value_name = "SCORE", value_parser = score, allow_negative_numbers = true)]
    at_most: Option<f64>,
    #[arg(long, value_name = "SCORE", value_parser = score, allow_negative_numbers = true, conflicts_with = "at_most")]
    below: Option<f64>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct OnePlayer {
    /// The name without colour codes; case matters
    name: Option<String>,
    /// The player's key, as boards show it
    #[arg(long, value_name = "KEY")]
    key: Option<u32>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Players {
    /// Names without colour codes; case matters
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// A player's key; may be repeated; keys come after names
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<u32>,
}

#[derive(Debug, Args)]
pub struct SomePlayers {
    /// This player instead of the best; may be repeated
    #[arg(long = "player", value_name = "NAME", conflicts_with = "n")]
    names: Vec<String>,
    /// The same by key
    #[arg(long = "key", value_name = "KEY", conflicts_with = "n")]
    keys: Vec<u32>,
}

pub fn run(command: Board, app: &App) -> anyhow::Result<ExitCode> {
    if let Board::At { position, .. } = command {
        return at(position, &request(command), app);
    }
    let deletes = matches!(command, Board::DeleteBefore { .. });
    let (code, rows) = ask_counted(app, &request(command))?;
    if deletes && !app.json() {
        println!("{rows} {} deleted", if rows == 1 { "window" } else { "windows" });
    }
    Ok(code)
}

/// Prints the place at a position. Nobody there is an error: a heading alone would
/// look like an answer.
fn at(position: u32, request: &Request, app: &App) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    app.ask(request, &mut |row| {
        rows.push(row);
        Ok(())
    })?;
    if !rows.iter().any(|row| matches!(row, Row::Place(_))) {
        let size = rows.iter().find_map(|row| if let Row::BoardHead(head) = row { Some(head.size) } else { None });
        let size = count(size.unwrap_or(0));
        let message = format!("nobody is at position {position}; positions on this board end with {size}");
        return Err(Failure::new(ErrorCode::NotFound, message).into());
    }
    let mut printer = Printer::new(app.json(), io::stdout().lock());
    rows.into_iter().try_for_each(|row| printer.row(row))?;
    printer.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn request(command: Board) -> Request {
    let (board, question) = match command {
        Board::Windows { bytes } => return Request::Windows { bytes },
        Board::DeleteBefore { before, .. } => return Request::WindowsDelete { before_ms: before },
        Board::Standing { boards, ranking: None, player } => {
            return Request::Standings { boards: boards.name(), player: player.name(), rankings: Vec::new() };
        }
        Board::Fused { boards, rankings, k, players, rows } => {
            let players = list(players.names, players.keys);
            let ask = match players.is_empty() {
                true => FusedQuestion::Top { count: rows.n },
                false => FusedQuestion::Players { players },
            };
            return Request::Fused { boards: boards.name(), rankings, k, ask };
        }
        Board::Standing { boards, ranking: Some(ranking), player } => {
            (Which { boards, ranking }, BoardQuestion::Standing { player: player.name() })
        }
        Board::Top { board, rows } => (board, BoardQuestion::Top { count: rows.n }),
        Board::Bottom { board, rows } => (board, BoardQuestion::Bottom { count: rows.n }),
        Board::Page { board, from, rows } => (board, from.question(rows.n)),
        Board::At { board, position } => (board, BoardQuestion::At { position }),
        Board::Around { board, player, rows } => {
            (board, BoardQuestion::Around { player: player.name(), count: rows.n })
        }
        Board::Range { board, scores, position, rows } => {
            (board, BoardQuestion::Range { scores: scores.bounds(), position, count: rows.n })
        }
        Board::Count { board, scores } => (board, BoardQuestion::Count { scores: scores.bounds() }),
        Board::PositionFor { board, score } => (board, BoardQuestion::PositionFor { score }),
        Board::Positions { board, players } => {
            (board, BoardQuestion::Positions { players: list(players.names, players.keys) })
        }
    };
    let Which { boards, ranking } = board;
    let BoardsName { scope, window, time_ms } = boards.name();
    Request::Board { board: BoardName { scope, ranking, window, time_ms }, ask: question }
}

impl Boards {
    fn name(self) -> BoardsName {
        let scope = match self.scope {
            Scope { server: Some(url), .. } => ScopeName::Server(url),
            Scope { game: Some(game), .. } => ScopeName::Game(game),
            Scope { tag, .. } => ScopeName::Tag(tag.expect("one of the three is typed")),
        };
        BoardsName { scope, window: self.window, time_ms: self.time }
    }
}

impl Beginning {
    fn question(self, count: u32) -> BoardQuestion {
        match self {
            Beginning { after: Some(cursor), .. } => BoardQuestion::After { cursor, count },
            Beginning { before: Some(cursor), .. } => BoardQuestion::Before { cursor, count },
            Beginning { position, .. } => BoardQuestion::Page { position: position.unwrap_or(1), count },
        }
    }
}

impl Scores {
    fn bounds(self) -> ScoreBounds {
        let Scores { at_least, above, at_most, below } = self;
        ScoreBounds { at_least, above, at_most, below }
    }
}

impl OnePlayer {
    fn name(self) -> PlayerName {
        match self.key {
            Some(key) => PlayerName::Key(key),
            None => PlayerName::Name(self.name.expect("a name or a key is typed")),
        }
    }
}

fn list(names: Vec<String>, keys: Vec<u32>) -> Vec<PlayerName> {
    names.into_iter().map(PlayerName::Name).chain(keys.into_iter().map(PlayerName::Key)).collect()
}

fn score(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|score: &f64| score.is_finite()).ok_or_else(|| "expected a number".to_owned())
}

fn time(text: &str) -> Result<i64, String> {
    if let Ok(t_ms) = text.parse() {
        return Ok(t_ms);
    }
    let time = chrono::DateTime::parse_from_rfc3339(text).map(|time| time.timestamp_millis());
    time.map_err(|_| "expected a time such as 2026-11-21T14:00:00Z, or Unix milliseconds".to_owned())
}

fn weight(text: &str) -> Result<RankingWeight, String> {
    let (name, weight) = text.split_once('=').unwrap_or((text, "1"));
    let weight = score(weight).map_err(|error| format!("weight {weight:?}: {error}"))?;
    Ok(RankingWeight { ranking: ranking(name)?, weight })
}
