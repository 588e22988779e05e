//! One question to a board on its way: from names, shown scores and texts to
//! what the board takes, and back.

use std::borrow::Cow;
use std::ops::Bound;

use crate::board::Place;
use crate::board::query::{Positions, Question, Ranked};
use crate::board::score_unit::{
    ShownRange, {self},
};
use crate::board::tree::Set;
use crate::board::tree::lookup::{Cursor, Standing};
use crate::engine::{Engine, Source, ViewError};
use crate::model::name::{ColourCodes, normalise};
use crate::model::scope::ScopeName;
use crate::model::view::board::{
    AbsentView, BoardHead, BoardQuestion, BoardRow, PlaceScore, PlaceView, PlayerName, PositionForView, ScoreBounds,
    StandingView,
};
use crate::model::{GameKey, PlayerKey, Ranking};

/// Whom and what a question speaks of.
pub(super) struct Asking<'a, S> {
    pub engine: &'a Engine,
    pub source: &'a S,
    pub scope: &'a ScopeName,
    pub ranking: Ranking,
    /// Those asked; who is on one of them is likelier meant by a name.
    pub sets: &'a [Cow<'a, Set>],
}

impl<S: Source> Asking<'_, S> {
    pub fn known_player(&self, player: &PlayerName) -> Result<PlayerKey, ViewError<S::Error>> {
        self.player(player)?.ok_or_else(|| match player {
            PlayerName::Key(key) => ViewError::UnknownKey(*key),
            PlayerName::Name(name) => ViewError::UnknownPlayer(normalise(name, ColourCodes::None)),
        })
    }

    pub fn players(&self, players: &[PlayerName]) -> Result<Vec<Option<PlayerKey>>, ViewError<S::Error>> {
        players.iter().map(|player| self.player(player)).collect()
    }

    /// `None`: nobody of this name or key is known in the scope.
    fn player(&self, player: &PlayerName) -> Result<Option<PlayerKey>, ViewError<S::Error>> {
        let name = match player {
            PlayerName::Key(key) => {
                let known = self.engine.player_is_known(self.source, PlayerKey(*key))?;
                return Ok(known.then_some(PlayerKey(*key)));
            }
            PlayerName::Name(name) => name,
        };
        let engine = self.engine;
        let mut found = engine.players_named(self.source, name)?;
        match self.scope {
            ScopeName::Game(game) => found.retain(|(key, _)| engine.books.games.name(key.0) == game),
            ScopeName::Server(url) => {
                // Of the game played there now, unless the name is of an earlier one.
                let game = engine.find::<S::Error>(url)?.1.record.game;
                if found.iter().any(|(key, _)| Some(*key) == game) {
                    found.retain(|(key, _)| Some(*key) == game);
                }
            }
            ScopeName::Tag(_) => (),
        }
        if found.len() > 1 {
            let on_board = |player| self.sets.iter().any(|set| set.get(player).is_some());
            let mut here = found.iter().filter(|(_, player)| on_board(*player));
            if let (Some(&only), None) = (here.next(), here.next()) {
                found = vec![only];
            }
        }
        match found[..] {
            [] => Ok(None),
            [(_, player)] => Ok(Some(player)),
            _ => {
                let one = |(game, player): &(GameKey, PlayerKey)| {
                    format!("{} (player {player})", engine.books.games.name(game.0))
                };
                let games = found.iter().map(one).collect::<Vec<_>>().join(", ");
                Err(ViewError::AmbiguousName { name: normalise(name, ColourCodes::None), games })
            }
        }
    }

    /// The question as the board takes it; `players` are those that it names.
    pub fn question(
        &self,
        asked: &BoardQuestion,
        players: &[Option<PlayerKey>],
    ) -> Result<Question, ViewError<S::Error>> {
        let known = || players.iter().flatten().copied();
        let player = || known().next().expect("a question of one player has one who is known");
        let raw = |scores: &ScoreBounds| shown_range(scores).raw(self.ranking);
        let cursor = |text: &str| text.parse::<Cursor>().map_err(ViewError::BadCursor);
        Ok(match asked {
            BoardQuestion::Size {} => Question::Size,
            &BoardQuestion::Top { count } => Question::Top { count },
            &BoardQuestion::Bottom { count } => Question::Bottom { count },
            &BoardQuestion::Page { position, count } => Question::Page { position, count },
            &BoardQuestion::At { position } => Question::At { position },
            &BoardQuestion::Around { count, .. } => Question::Around { player: player(), count },
            BoardQuestion::Range { scores, position, count } => {
                Question::Range { scores: raw(scores), position: *position, count: *count }
            }
            BoardQuestion::Count { scores } => Question::Count { scores: raw(scores) },
            &BoardQuestion::PositionFor { score } => {
                Question::PositionFor { alike: score_unit::alike(self.ranking, score) }
            }
            BoardQuestion::Standing { .. } => Question::Standing { player: player() },
            BoardQuestion::Positions { .. } => Question::Positions { players: known().collect() },
            BoardQuestion::After { cursor: text, count } => Question::After { cursor: cursor(text)?, count: *count },
            BoardQuestion::Before { cursor: text, count } => Question::Before { cursor: cursor(text)?, count: *count },
        })
    }

    pub fn places(&self, places: &[Ranked], rows: &mut Vec<BoardRow>) -> Result<(), ViewError<S::Error>> {
        for ranked in places {
            rows.push(self.place(ranked)?);
        }
        Ok(())
    }

    fn place(&self, ranked: &Ranked) -> Result<BoardRow, ViewError<S::Error>> {
        let (name, display) = self.engine.player_names(self.source, ranked.place.player)?;
        let at = place_score(self.ranking, &ranked.place, ranked.positions);
        Ok(BoardRow::Place(PlaceView { player: ranked.place.player.0, name, display, at }))
    }

    /// A row for each player asked; `found` has those who are known.
    pub fn positions(
        &self,
        asked: &BoardQuestion,
        players: &[Option<PlayerKey>],
        found: Vec<Option<Ranked>>,
        rows: &mut Vec<BoardRow>,
    ) -> Result<(), ViewError<S::Error>> {
        let BoardQuestion::Positions { players: names } = asked else { unreachable!("an answer of positions") };
        let mut found = found.into_iter();
        for (name, player) in names.iter().zip(players) {
            rows.push(match (player, player.and_then(|_| found.next().flatten())) {
                (_, Some(ranked)) => self.place(&ranked)?,
                (Some(player), None) => {
                    let (name, _) = self.engine.player_names(self.source, *player)?;
                    BoardRow::Absent(AbsentView { player: Some(player.0), name })
                }
                (None, None) => BoardRow::Absent(match name {
                    PlayerName::Key(key) => AbsentView { player: Some(*key), name: String::new() },
                    PlayerName::Name(name) => AbsentView { player: None, name: normalise(name, ColourCodes::None) },
                }),
            });
        }
        Ok(())
    }

    pub fn position_for(&self, asked: &BoardQuestion, positions: Positions) -> BoardRow {
        let &BoardQuestion::PositionFor { score } = asked else { unreachable!("an answer of a position") };
        let Positions { ordinal, competition, dense } = positions;
        BoardRow::PositionFor(PositionForView {
            score,
            position: ordinal.into(),
            competition: competition.into(),
            dense: dense.into(),
        })
    }

    pub fn not_on_board(&self, asked: &BoardQuestion, head: &BoardHead) -> ViewError<S::Error> {
        let name = match asked {
            BoardQuestion::Around { player: PlayerName::Name(name), .. } => normalise(name, ColourCodes::None),
            BoardQuestion::Around { player: PlayerName::Key(key), .. } => format!("player {key}"),
            _ => unreachable!("only who is looked around must be on the board"),
        };
        let board = format!("{} of {} in {}", head.ranking.name(), head.scope, head.window.window);
        ViewError::NotOnBoard { name, board }
    }
}

fn shown_range(scores: &ScoreBounds) -> ShownRange {
    let bound = |closed: Option<f64>, open: Option<f64>| closed.map(Bound::Included).or(open.map(Bound::Excluded));
    ShownRange { low: bound(scores.at_least, scores.above), high: bound(scores.at_most, scores.below) }
}

pub(super) fn standing_view(ranking: Ranking, set: &Set, standing: Option<Standing>) -> StandingView {
    StandingView {
        ranking,
        size: set.len().into(),
        place: standing.map(|Standing { place, position, competition, dense, .. }| {
            place_score(ranking, &place, Positions { ordinal: position, competition, dense })
        }),
        percentile: standing.map(|standing| standing.percentile),
    }
}

fn place_score(ranking: Ranking, place: &Place, positions: Positions) -> PlaceScore {
    PlaceScore {
        position: positions.ordinal.into(),
        competition: positions.competition.into(),
        dense: positions.dense.into(),
        score: score_unit::shown(ranking, place.score()),
        raw: place.score().0,
        reached_ms: place.at_ms,
    }
}
