//! Translates one query of a board: from names, displayed scores and strings to raw values, and the
//! answer back.

use std::borrow::Cow;
use std::ops::Bound;

use crate::board::cursor::Cursor;
use crate::board::query::{Query, RankedEntry, Ranks};
use crate::board::score_unit::{self, DisplayRange};
use crate::board::tree::lookup::Standing;
use crate::board::{Board, BoardEntry};
use crate::engine::{Engine, StateReader, ViewError};
use crate::model::name::{ColourCodes, normalise};
use crate::model::scope::Scope;
use crate::model::view::board::{
    BoardEntryView, BoardHead, BoardQuery, BoardRow, EntryScore, MissingPlayer, PlayerSelector, PositionForView,
    ScoreBounds, StandingView,
};
use crate::model::{GameKey, PlayerKey, Ranking};

/// The scope, ranking and boards of a query.
pub(super) struct QueryContext<'a, S> {
    pub engine: &'a Engine,
    pub source: &'a S,
    pub scope: &'a Scope,
    pub ranking: Ranking,
    /// The queried boards. A name is more likely to mean a player on one of them.
    pub boards: &'a [Cow<'a, Board>],
}

impl<S: StateReader> QueryContext<'_, S> {
    pub fn require_player(&self, player: &PlayerSelector) -> Result<PlayerKey, ViewError<S::Error>> {
        self.find_player(player)?.ok_or_else(|| match player {
            PlayerSelector::Key(key) => ViewError::UnknownPlayerKey(*key),
            PlayerSelector::Name(name) => ViewError::UnknownPlayer(normalise(name, ColourCodes::None)),
        })
    }

    pub fn players(&self, players: &[PlayerSelector]) -> Result<Vec<Option<PlayerKey>>, ViewError<S::Error>> {
        players.iter().map(|player| self.find_player(player)).collect()
    }

    /// `None`: no player of this name or key is known in the scope.
    fn find_player(&self, player: &PlayerSelector) -> Result<Option<PlayerKey>, ViewError<S::Error>> {
        let name = match player {
            PlayerSelector::Key(key) => return Ok(self.engine.current_player(self.source, PlayerKey(*key))?),
            PlayerSelector::Name(name) => name,
        };
        let engine = self.engine;
        let mut found = engine.players_named(self.source, name)?;
        match self.scope {
            Scope::Game(game) => found.retain(|(key, _)| engine.global.games.name(key.0) == game),
            Scope::Server(url) => {
                // Prefer a player of the server's current game, if there is one.
                let game = engine.find_server::<S::Error>(url)?.1.record.game;
                if found.iter().any(|(key, _)| Some(*key) == game) {
                    found.retain(|(key, _)| Some(*key) == game);
                }
            }
            Scope::Tag(_) => (),
        }
        if found.len() > 1 {
            let on_board = |player| self.boards.iter().any(|board| board.get(player).is_some());
            let mut on_boards = found.iter().filter(|(_, player)| on_board(*player));
            if let (Some(&only), None) = (on_boards.next(), on_boards.next()) {
                found = vec![only];
            }
        }
        match found[..] {
            [] => Ok(None),
            [(_, player)] => Ok(Some(player)),
            _ => {
                let one = |(game, player): &(GameKey, PlayerKey)| {
                    format!("{} (player {player})", engine.global.games.name(game.0))
                };
                let games = found.iter().map(one).collect::<Vec<_>>().join(", ");
                Err(ViewError::AmbiguousName { name: normalise(name, ColourCodes::None), games })
            }
        }
    }

    /// The query in raw values; `players` are the players that it names.
    pub fn to_raw_query(
        &self,
        query: &BoardQuery,
        players: &[Option<PlayerKey>],
    ) -> Result<Query, ViewError<S::Error>> {
        let known = || players.iter().flatten().copied();
        let player = || known().next().expect("a query of one player has a known player");
        let raw = |scores: &ScoreBounds| shown_range(scores).raw(self.ranking);
        let cursor = |text: &str| text.parse::<Cursor>().map_err(ViewError::BadCursor);
        Ok(match query {
            BoardQuery::Size {} => Query::Size,
            &BoardQuery::Top { count } => Query::Top { count },
            &BoardQuery::Bottom { count } => Query::Bottom { count },
            &BoardQuery::Page { position, count } => Query::Page { position, count },
            &BoardQuery::At { position } => Query::At { position },
            &BoardQuery::Around { count, .. } => Query::Around { player: player(), count },
            BoardQuery::Range { scores, start, count } => {
                Query::Range { scores: raw(scores), start: *start, count: *count }
            }
            BoardQuery::Count { scores } => Query::Count { scores: raw(scores) },
            &BoardQuery::PositionFor { score } => {
                Query::PositionFor { scores: score_unit::raw_range(self.ranking, score) }
            }
            BoardQuery::Standing { .. } => Query::Standing { player: player() },
            BoardQuery::Positions { .. } => Query::Positions { players: known().collect() },
            BoardQuery::After { cursor: text, count } => Query::After { cursor: cursor(text)?, count: *count },
            BoardQuery::Before { cursor: text, count } => Query::Before { cursor: cursor(text)?, count: *count },
        })
    }

    pub fn push_entries(&self, entries: &[RankedEntry], rows: &mut Vec<BoardRow>) -> Result<(), ViewError<S::Error>> {
        for ranked in entries {
            rows.push(self.entry_row(ranked)?);
        }
        Ok(())
    }

    fn entry_row(&self, ranked: &RankedEntry) -> Result<BoardRow, ViewError<S::Error>> {
        let (name, display) = self.engine.player_names(self.source, ranked.entry.player)?;
        let at = entry_score(self.ranking, &ranked.entry, ranked.ranks);
        Ok(BoardRow::Entry(BoardEntryView { player_key: ranked.entry.player.0, name, display, at }))
    }

    /// A row for each queried player; `found` has the known ones.
    pub fn positions(
        &self,
        query: &BoardQuery,
        players: &[Option<PlayerKey>],
        found: Vec<Option<RankedEntry>>,
        rows: &mut Vec<BoardRow>,
    ) -> Result<(), ViewError<S::Error>> {
        let BoardQuery::Positions { players: names } = query else { unreachable!("an answer of positions") };
        let mut found = found.into_iter();
        for (name, player) in names.iter().zip(players) {
            rows.push(match (player, player.and_then(|_| found.next().flatten())) {
                (_, Some(ranked)) => self.entry_row(&ranked)?,
                (Some(player), None) => {
                    let (name, _) = self.engine.player_names(self.source, *player)?;
                    BoardRow::Absent(MissingPlayer { player_key: Some(player.0), name })
                }
                (None, None) => BoardRow::Absent(match name {
                    PlayerSelector::Key(key) => MissingPlayer { player_key: Some(*key), name: String::new() },
                    PlayerSelector::Name(name) => {
                        MissingPlayer { player_key: None, name: normalise(name, ColourCodes::None) }
                    }
                }),
            });
        }
        Ok(())
    }

    pub fn position_for(&self, query: &BoardQuery, ranks: Ranks) -> BoardRow {
        let &BoardQuery::PositionFor { score } = query else { unreachable!("an answer of a position") };
        let Ranks { ordinal, competition, dense } = ranks;
        BoardRow::PositionFor(PositionForView {
            score,
            position: ordinal.into(),
            competition: competition.into(),
            dense: dense.into(),
        })
    }

    pub fn not_on_board(&self, query: &BoardQuery, head: &BoardHead) -> ViewError<S::Error> {
        let name = match query {
            BoardQuery::Around { player: PlayerSelector::Name(name), .. } => normalise(name, ColourCodes::None),
            BoardQuery::Around { player: PlayerSelector::Key(key), .. } => format!("player {key}"),
            _ => unreachable!("only `around` requires a player on the board"),
        };
        let board = format!("{} of {} in {}", head.ranking.name(), head.scope, head.window.window);
        ViewError::NotOnBoard { name, board }
    }
}

fn shown_range(scores: &ScoreBounds) -> DisplayRange {
    let bound = |closed: Option<f64>, open: Option<f64>| closed.map(Bound::Included).or(open.map(Bound::Excluded));
    DisplayRange { low: bound(scores.at_least, scores.above), high: bound(scores.at_most, scores.below) }
}

pub(super) fn standing_view(ranking: Ranking, board: &Board, standing: Option<Standing>) -> StandingView {
    StandingView {
        ranking,
        size: board.len().into(),
        entry: standing.map(|Standing { entry, position, competition, dense, .. }| {
            entry_score(ranking, &entry, Ranks { ordinal: position, competition, dense })
        }),
        percentile: standing.map(|standing| standing.percentile),
    }
}

fn entry_score(ranking: Ranking, entry: &BoardEntry, ranks: Ranks) -> EntryScore {
    EntryScore {
        position: ranks.ordinal.into(),
        competition: ranks.competition.into(),
        dense: ranks.dense.into(),
        score: score_unit::display_score(ranking, entry.score()),
        raw_score: entry.score().0,
        reached_ms: entry.at_ms,
    }
}
