//! Translates one query of a board: from names, displayed scores and strings to raw values, and the
//! answer back.

use std::borrow::Cow;
use std::ops::Bound;

use crate::board::cursor::Cursor;
use crate::board::query::{Query, QueryData, RankedEntry, Ranks};
use crate::board::score_unit::{self, DisplayRange};
use crate::board::tree::lookup::Standing;
use crate::board::{Board, BoardEntry};
use crate::engine::{ReadModel, StateReader, ViewError};
use crate::model::name::{ColourCodes, normalise};
use crate::model::scope::Scope;
use crate::model::{GameKey, PlayerKey, Ranking};
use crate::view::board::{
    BoardAnswer, BoardEntryView, BoardHead, BoardQuery, BoardRow, EntryScore, MissingPlayer, PageView, PlayerSelector,
    PositionForView, RangeView, ScoreBounds, StandingView,
};

/// The scope and ranking of a query.
pub(super) struct QueryContext<'a> {
    pub model: &'a ReadModel,
    pub source: &'a dyn StateReader,
    pub scope: &'a Scope,
    pub ranking: Ranking,
}

/// Players that a selector may mean. They are read before the boards are locked.
pub(super) struct Candidates<'q> {
    selector: &'q PlayerSelector,
    /// Each with its game.
    found: Vec<(GameKey, PlayerKey)>,
}

impl QueryContext<'_> {
    pub fn candidates<'q>(
        &self,
        players: impl IntoIterator<Item = &'q PlayerSelector>,
    ) -> Result<Vec<Candidates<'q>>, ViewError> {
        let candidates = |selector| Ok(Candidates { selector, found: self.find_players(selector)? });
        players.into_iter().map(candidates).collect()
    }

    /// Empty: no player of this name or key is known in the scope.
    fn find_players(&self, player: &PlayerSelector) -> Result<Vec<(GameKey, PlayerKey)>, ViewError> {
        let model = self.model;
        let name = match player {
            PlayerSelector::Key(key) => {
                let player = model.current_player(self.source, PlayerKey(*key))?;
                return Ok(player.map(|player| (GameKey(0), player)).into_iter().collect());
            }
            PlayerSelector::Name(name) => name,
        };
        let mut found = model.players_named(self.source, name)?;
        match self.scope {
            Scope::Game(game) => found.retain(|(key, _)| model.global.games.name(key.0) == game),
            Scope::Server(url) => {
                // Prefer a player of the server's current game, if there is one.
                let game = model.find_server(url)?.1.record.game;
                if found.iter().any(|(key, _)| Some(*key) == game) {
                    found.retain(|(key, _)| Some(*key) == game);
                }
            }
            Scope::Tag(_) => (),
        }
        Ok(found)
    }

    /// The player that a selector means; `None`: there is no candidate. If there are several, exactly one of them must be on
    /// one of the boards.
    pub fn choose(
        &self,
        candidates: &Candidates<'_>,
        boards: &[Cow<'_, Board>],
    ) -> Result<Option<PlayerKey>, ViewError> {
        let found = &candidates.found[..];
        let (PlayerSelector::Name(name), [_, _, ..]) = (candidates.selector, found) else {
            return Ok(found.first().map(|(_, player)| *player));
        };
        let on_board = |player| boards.iter().any(|board| board.get(player).is_some());
        let mut on_boards = found.iter().filter(|(_, player)| on_board(*player));
        if let (Some(&(_, only)), None) = (on_boards.next(), on_boards.next()) {
            return Ok(Some(only));
        }
        let game = |game: GameKey| self.model.global.games.name(game.0);
        let one = |(of, player): &(GameKey, PlayerKey)| format!("{} (player {player})", game(*of));
        let games = found.iter().map(one).collect::<Vec<_>>().join(", ");
        Err(ViewError::AmbiguousName { name: normalise(name, ColourCodes::None), games })
    }

    /// As [`QueryContext::choose`], but there must be one.
    pub fn require(&self, candidates: &Candidates<'_>, boards: &[Cow<'_, Board>]) -> Result<PlayerKey, ViewError> {
        self.choose(candidates, boards)?.ok_or_else(|| match candidates.selector {
            PlayerSelector::Key(key) => ViewError::UnknownPlayerKey(*key),
            PlayerSelector::Name(name) => ViewError::UnknownPlayer(normalise(name, ColourCodes::None)),
        })
    }

    /// The query in raw values; `players` are the players that it names.
    pub fn to_raw_query(&self, query: &BoardQuery, players: &[Option<PlayerKey>]) -> Result<Query, ViewError> {
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

    /// The rows of an answer, with names. `players` are those that the query names.
    pub fn answer(
        &self,
        query: &BoardQuery,
        mut head: BoardHead,
        players: &[Option<PlayerKey>],
        data: QueryData,
    ) -> Result<BoardAnswer, ViewError> {
        let mut rows = Vec::new();
        match data {
            QueryData::Size => (),
            QueryData::Entries(entries) => self.push_entries(&entries, &mut rows)?,
            QueryData::Range { first, count, entries } => {
                head.range = Some(RangeView { first: first.into(), count: count.into() });
                self.push_entries(&entries, &mut rows)?;
            }
            QueryData::Page { entries, board_changed, start, end } => {
                head.page = Some(PageView { board_changed, before: start.to_string(), after: end.to_string() });
                self.push_entries(&entries, &mut rows)?;
            }
            QueryData::Count { first, count } => {
                head.range = Some(RangeView { first: first.into(), count: count.into() });
            }
            QueryData::Position(ranks) => rows.push(self.position_for(query, ranks)),
            QueryData::Standing(standing) => {
                rows.push(BoardRow::Standing(standing_of(self.ranking, head.size, standing)));
            }
            QueryData::Positions(found) => self.positions(query, players, found, &mut rows)?,
        }
        Ok(BoardAnswer { head, rows })
    }

    fn push_entries(&self, entries: &[RankedEntry], rows: &mut Vec<BoardRow>) -> Result<(), ViewError> {
        for ranked in entries {
            rows.push(self.entry_row(ranked)?);
        }
        Ok(())
    }

    fn entry_row(&self, ranked: &RankedEntry) -> Result<BoardRow, ViewError> {
        let (name, display) = self.model.player_names(self.source, ranked.entry.player)?;
        let at = entry_score(self.ranking, &ranked.entry, ranked.ranks);
        Ok(BoardRow::Entry(BoardEntryView { player_key: ranked.entry.player.0, name, display, at }))
    }

    /// A row for each queried player; `found` has the known ones.
    fn positions(
        &self,
        query: &BoardQuery,
        players: &[Option<PlayerKey>],
        found: Vec<Option<RankedEntry>>,
        rows: &mut Vec<BoardRow>,
    ) -> Result<(), ViewError> {
        let BoardQuery::Positions { players: names } = query else { unreachable!("an answer of positions") };
        let mut found = found.into_iter();
        for (name, player) in names.iter().zip(players) {
            rows.push(match (player, player.and_then(|_| found.next().flatten())) {
                (_, Some(ranked)) => self.entry_row(&ranked)?,
                (Some(player), None) => {
                    let (name, _) = self.model.player_names(self.source, *player)?;
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

    fn position_for(&self, query: &BoardQuery, ranks: Ranks) -> BoardRow {
        let &BoardQuery::PositionFor { score } = query else { unreachable!("an answer of a position") };
        let Ranks { ordinal, competition, dense } = ranks;
        BoardRow::PositionFor(PositionForView {
            score,
            position: ordinal.into(),
            competition: competition.into(),
            dense: dense.into(),
        })
    }

    pub fn not_on_board(&self, query: &BoardQuery, head: &BoardHead) -> ViewError {
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
    standing_of(ranking, board.len().into(), standing)
}

/// `size`: of the board.
fn standing_of(ranking: Ranking, size: u64, standing: Option<Standing>) -> StandingView {
    StandingView {
        ranking,
        size,
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
