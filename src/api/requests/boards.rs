//! Boards of rankings, and their windows.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::{Answer, kinds, lines};
use crate::api::checks;
use crate::api::error::ApiError;
use crate::api::host::Host;
use crate::api::request::{Read, request};
use crate::board::window;
use crate::model::WindowKey;
use crate::model::row::Ranking;
use crate::model::url::ServerUrl;
use crate::view::board::{
    BoardAnswer, BoardEntryView, BoardHead, BoardQuery, BoardRow, BoardSelector, BoardsSelector, FusedAnswer,
    FusedHead, FusedQuery, FusedView, MissingPlayer, PlayerSelector, PositionForView, RankingWeight, StandingView,
    StandingsView, WindowSummary, WindowView,
};
use crate::view::{self, Correction};

kinds! {
    view::Top: "top", "TopPlayers";
    StandingsView: "standings", "Standings";
    WindowSummary: "window", "BoardWindow";
    WindowView: "window_deleted", "DeletedWindow";
    BoardHead: "board_head", "BoardHead";
    BoardEntryView: "entry", "BoardEntry";
    MissingPlayer: "absent", "AbsentPlayer";
    StandingView: "standing", "Standing";
    PositionForView: "position_for", "PositionForScore";
    FusedHead: "fused_head", "FusedHead";
    FusedView: "fused", "FusedEntry";
}

/// The best players of a server in a week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Top {
    /// The URL of the server.
    #[schema(value_type = String, example = "quake3://192.0.2.7:27960")]
    pub server: ServerUrl,
    /// What the board is ordered by.
    pub ranking: Ranking,
    /// Such as `2026-W47`; without it, the running week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub week: Option<String>,
    /// Most players.
    pub count: u32,
}

request!(Top: "top", Access::Read => view::Top, |request| checks::rows(request.count));

impl Read for Top {
    fn answer(&self, host: &dyn Host) -> Result<view::Top, ApiError> {
        let Top { server, ranking, week, count } = self;
        Ok(host.read(|view| view.model.top(view.reader, server, *ranking, week.as_deref(), *count as usize))??)
    }
}

/// A query of one board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Which board.
    pub board: BoardSelector,
    /// What of it.
    pub query: BoardQuery,
}

request!(Board: "board", Access::Read => BoardAnswer, |request| {
    checks::time("at_ms", request.board.at_ms)?;
    checks::board_query(&request.query)
});

impl Read for Board {
    fn boards(&self) -> Option<BoardsSelector> {
        Some(self.board.boards())
    }

    fn answer(&self, host: &dyn Host) -> Result<BoardAnswer, ApiError> {
        Ok(host.read(|view| view.model.query_board(view.reader, &self.board, &self.query))??)
    }
}

/// The same query of the boards of all rankings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Boards {
    /// Which boards.
    pub boards: BoardsSelector,
    /// What of each.
    pub query: BoardQuery,
}

request!(Boards: "boards", Access::Read => Vec<BoardAnswer>, |request| {
    checks::time("at_ms", request.boards.at_ms)?;
    checks::board_query(&request.query)
});

impl Read for Boards {
    fn boards(&self) -> Option<BoardsSelector> {
        Some(self.boards.clone())
    }

    fn answer(&self, host: &dyn Host) -> Result<Vec<BoardAnswer>, ApiError> {
        Ok(host.read(|view| view.model.query_boards(view.reader, &self.boards, &self.query))??)
    }
}

/// A player on the boards of several rankings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Standings {
    /// Which boards.
    pub boards: BoardsSelector,
    /// Whose standings.
    pub player: PlayerSelector,
    /// Which rankings; without them, all five.
    #[serde(default)]
    pub rankings: Vec<Ranking>,
}

request!(Standings: "standings", Access::Read => StandingsView, |request| {
    checks::time("at_ms", request.boards.at_ms)?;
    checks::rankings(&request.rankings)
});

impl Read for Standings {
    fn boards(&self) -> Option<BoardsSelector> {
        Some(self.boards.clone())
    }

    fn answer(&self, host: &dyn Host) -> Result<StandingsView, ApiError> {
        let rankings = if self.rankings.is_empty() { &Ranking::ALL[..] } else { &self.rankings };
        Ok(host.read(|view| view.model.standings(view.reader, &self.boards, rankings, &self.player))??)
    }
}

/// Several rankings as one list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fused {
    /// Which boards.
    pub boards: BoardsSelector,
    /// Which rankings; without them, all five have equal weights.
    #[serde(default)]
    pub rankings: Vec<RankingWeight>,
    /// How much the first positions count, from 0 to 10,000: a player gets `weight / (k + position)` for each ranking.
    /// Without it, 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<f64>,
    /// Which players.
    pub query: FusedQuery,
}

request!(Fused: "fused", Access::Read => FusedAnswer, |request| {
    checks::time("at_ms", request.boards.at_ms)?;
    checks::weights(&request.rankings)?;
    checks::k(request.k)?;
    match &request.query {
        FusedQuery::Top { count } => checks::rows(*count),
        FusedQuery::Players { players } => checks::players(players),
    }
});

impl Read for Fused {
    fn boards(&self) -> Option<BoardsSelector> {
        Some(self.boards.clone())
    }

    fn answer(&self, host: &dyn Host) -> Result<FusedAnswer, ApiError> {
        let all = Ranking::ALL.map(|ranking| RankingWeight { ranking, weight: 1.0 });
        let rankings = if self.rankings.is_empty() { &all[..] } else { &self.rankings };
        Ok(host.read(|view| view.model.fused(view.reader, &self.boards, rankings, self.k, &self.query))??)
    }
}

lines! {
    /// A line of a board.
    BoardLine {
        BoardHead(Box<BoardHead>),
        Entry(BoardEntryView),
        Absent(MissingPlayer),
        Standing(StandingView),
        PositionFor(PositionForView),
    }

    /// A line of a fused list.
    FusedLine {
        FusedHead(Box<FusedHead>),
        Fused(FusedView),
    }
}

impl Answer for BoardAnswer {
    type Line = BoardLine;

    fn lines(self) -> impl Iterator<Item = BoardLine> + Send {
        let head = BoardLine::BoardHead(Box::new(self.head));
        std::iter::once(head).chain(self.rows.into_iter().map(BoardLine::from))
    }
}

impl Answer for Vec<BoardAnswer> {
    type Line = BoardLine;

    fn lines(self) -> impl Iterator<Item = BoardLine> + Send {
        self.into_iter().flat_map(Answer::lines)
    }
}

impl Answer for FusedAnswer {
    type Line = FusedLine;

    fn lines(self) -> impl Iterator<Item = FusedLine> + Send {
        let head = FusedLine::FusedHead(Box::new(self.head));
        std::iter::once(head).chain(self.players.into_iter().map(FusedLine::Fused))
    }
}

impl From<BoardRow> for BoardLine {
    fn from(row: BoardRow) -> BoardLine {
        match row {
            BoardRow::Entry(entry) => BoardLine::Entry(entry),
            BoardRow::Absent(absent) => BoardLine::Absent(absent),
            BoardRow::Standing(standing) => BoardLine::Standing(standing),
            BoardRow::PositionFor(position) => BoardLine::PositionFor(position),
        }
    }
}

/// All windows, newest first, by type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// Also their sizes in the state directory, which requires reading all of it.
    #[serde(default)]
    pub bytes: bool,
}

request!(Windows: "windows", Access::Read => Vec<WindowSummary>);

impl Read for Windows {
    fn answer(&self, host: &dyn Host) -> Result<Vec<WindowSummary>, ApiError> {
        let mut windows = host.read(|view| view.model.windows())?;
        if self.bytes {
            let keys = windows.iter().map(|listed| window::parse_label(&listed.window.window));
            let keys: Vec<WindowKey> = keys.collect::<Result<_, _>>().map_err(ApiError::internal)?;
            for (listed, stored) in windows.iter_mut().zip(host.stored_sizes(&keys)?) {
                listed.stored = Some(stored);
            }
        }
        Ok(windows)
    }
}

/// Deletes windows that ended before a time; weeks only if they are closed and archived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowsDelete {
    /// Unix ms.
    pub before_ms: i64,
}

request!(WindowsDelete: "windows.delete", Access::CORRECTIONS => Vec<WindowView>, |request| {
    checks::time("before_ms", Some(request.before_ms))
});

/// Replaces the rows of the running windows by those that follow from the log with the present settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowsRecompute {
    /// Those that change a result, as the client expects them; by key, such as `elo.k`.
    #[schema(value_type = Object)]
    pub settings: Map<String, Value>,
    /// Refuse what cannot be done, and do nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_check: bool,
}

request!(WindowsRecompute: "windows.recompute", Access::CORRECTIONS => Option<Correction>);
