//! Boards for readers: which board is meant, what is asked of it, and names to
//! the keys of the answer.
//!
//! Where the boards of a scope and window come from is told in one place,
//! [`Engine::sets`]. The board of a server, of a few hundred players, is built
//! from its rows for each question; nothing is kept.

mod asking;

use std::borrow::Cow;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use super::{Engine, Source, ViewError};
use crate::board::question::{self, AskError, Found};
use crate::board::set::{Direction, Set};
use crate::board::shown::CLQ1_PER_POINT_PER_SECOND;
use crate::board::window::{self, Windows};
use crate::board::{self, Place, fusion};
use crate::model::board_view::{
    BoardHead, BoardName, BoardQuestion, BoardRow, BoardsName, FusedHead, FusedQuestion, FusedRanking, FusedView,
    PageView, PlayerName, RangeView, RankingWeight, StandingsView, WindowView,
};
use crate::model::scope::ScopeName;
use crate::model::{PlayerKey, Ranking, WindowKey};
use crate::rank::clq1;
use asking::{Asking, standing_view};

const _: () = assert!(CLQ1_PER_POINT_PER_SECOND == clq1::SCORE_PER_POINT_PER_SECOND);

/// The boards of one scope in one window, one for each ranking asked.
type Sets<'e> = (WindowView, Vec<Cow<'e, Set>>);

/// The type of windows that is asked of where none is named.
const WEEK: &str = "week";

/// The answer to a question to one board.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardAnswer {
    pub head: BoardHead,
    pub rows: Vec<BoardRow>,
}

impl Engine {
    /// A board, and what stands above every answer of it.
    pub fn board<S: Source>(
        &self,
        source: &S,
        name: &BoardName,
    ) -> Result<(BoardHead, Cow<'_, Set>), ViewError<S::Error>> {
        let (window, mut sets) = self.sets(source, &name.boards(), &[name.ranking])?;
        let set = sets.pop().expect("a board for each ranking");
        let head = BoardHead {
            scope: name.scope.clone(),
            window,
            ranking: name.ranking,
            low_is_better: set.direction() == Direction::LowIsBetter,
            size: set.len().into(),
            range: None,
            page: None,
        };
        Ok((head, set))
    }

    /// Asks a board.
    pub fn ask_board<S: Source>(
        &self,
        source: &S,
        name: &BoardName,
        asked: &BoardQuestion,
    ) -> Result<BoardAnswer, ViewError<S::Error>> {
        let (mut head, set) = self.board(source, name)?;
        let asking = Asking { engine: self, source, scope: &name.scope, ranking: name.ranking, sets: &[set] };
        // Who is asked for in a list may be unknown; nobody else may.
        let players = match asked {
            BoardQuestion::Positions { players } => asking.players(players)?,
            BoardQuestion::Around { player, .. } | BoardQuestion::Standing { player } => {
                vec![Some(asking.known_player(player)?)]
            }
            _ => Vec::new(),
        };
        let question = asking.question(asked, &players)?;
        let answer = question::ask(&asking.sets[0], &question).map_err(|error| match error {
            AskError::Absent(_) => asking.not_on_board(asked, &head),
            AskError::Stale(stale) => ViewError::Stale(stale),
        })?;
        let mut rows = Vec::new();
        match answer.found {
            Found::Size => (),
            Found::Places(places) => asking.places(&places, &mut rows)?,
            Found::Range { first, count, places } => {
                head.range = Some(RangeView { first: first.into(), count: count.into() });
                asking.places(&places, &mut rows)?;
            }
            Found::Page { places, moved, start, end } => {
                head.page = Some(PageView { moved, before: start.to_string(), after: end.to_string() });
                asking.places(&places, &mut rows)?;
            }
            Found::Count { first, count } => {
                head.range = Some(RangeView { first: first.into(), count: count.into() });
            }
            Found::Position(positions) => rows.push(asking.position_for(asked, positions)),
            Found::Standing(standing) => {
                rows.push(BoardRow::Standing(standing_view(name.ranking, &asking.sets[0], standing)));
            }
            Found::Positions(found) => asking.positions(asked, &players, found, &mut rows)?,
        }
        Ok(BoardAnswer { head, rows })
    }

    /// Where one player stands on the boards of several rankings.
    pub fn standings<S: Source>(
        &self,
        source: &S,
        name: &BoardsName,
        rankings: &[Ranking],
        player: &PlayerName,
    ) -> Result<StandingsView, ViewError<S::Error>> {
        let (window, sets) = self.sets(source, name, rankings)?;
        let asking = Asking { engine: self, source, scope: &name.scope, ranking: Ranking::Clq1, sets: &sets };
        let player = asking.known_player(player)?;
        let (shown_name, display) = self.player_names(source, player)?;
        let boards = rankings.iter().zip(&sets);
        Ok(StandingsView {
            scope: name.scope.clone(),
            window,
            player: player.0,
            name: shown_name,
            display,
            standings: boards.map(|(&ranking, set)| standing_view(ranking, set, set.standing(player))).collect(),
        })
    }

    /// One list of several rankings (see [`fusion`]); `k` as [`fusion::K_DEFAULT`]
    /// where none is given. Weights are above 0, `k` is not below it.
    pub fn fused<S: Source>(
        &self,
        source: &S,
        name: &BoardsName,
        rankings: &[RankingWeight],
        k: Option<f64>,
        asked: &FusedQuestion,
    ) -> Result<(FusedHead, Vec<FusedView>), ViewError<S::Error>> {
        let k = k.unwrap_or(fusion::K_DEFAULT);
        let names: Vec<Ranking> = rankings.iter().map(|weighed| weighed.ranking).collect();
        let (window, sets) = self.sets(source, name, &names)?;
        let boards: Vec<fusion::Weighed> =
            rankings.iter().zip(&sets).map(|(r, set)| fusion::Weighed { set, weight: r.weight }).collect();
        let (list, first) = match asked {
            FusedQuestion::Top { count } => (fusion::top(&boards, k, *count as usize), Some(1)),
            FusedQuestion::Players { players } => {
                let asking = Asking { engine: self, source, scope: &name.scope, ranking: Ranking::Clq1, sets: &sets };
                let players: Result<Vec<PlayerKey>, _> = players.iter().map(|p| asking.known_player(p)).collect();
                (fusion::of(&boards, k, &players?), None)
            }
        };
        let mut views = Vec::with_capacity(list.len());
        for (fused, n) in list.into_iter().zip(0..) {
            let (shown_name, display) = self.player_names(source, fused.player)?;
            let on = names.iter().zip(&fused.positions);
            views.push(FusedView {
                position: first.map(|first: u64| first + n),
                player: fused.player.0,
                name: shown_name,
                display,
                score: fused.score,
                positions: on.filter_map(|(&ranking, &position)| Some((ranking, position?))).collect(),
            });
        }
        let of = rankings.iter().zip(&sets);
        let rankings =
            of.map(|(r, set)| FusedRanking { ranking: r.ranking, weight: r.weight, size: set.len().into() }).collect();
        Ok((FusedHead { scope: name.scope.clone(), window, k, rankings }, views))
    }

    /// The boards of a scope and window, in the order of the rankings: the one
    /// place that knows where they come from.
    fn sets<S: Source>(
        &self,
        source: &S,
        name: &BoardsName,
        rankings: &[Ranking],
    ) -> Result<Sets<'_>, ViewError<S::Error>> {
        let ScopeName::Server(url) = &name.scope else {
            return Err(ViewError::NoBoards(name.scope.to_string()));
        };
        let (server, _) = self.find(url)?;
        let key = self.window_asked(name)?;
        let no_boards = || self.no_window(name, window::label(key));
        let span = self.windows().span(key).ok_or_else(no_boards)?;
        let week = key.week().ok_or_else(no_boards)?;
        // The running week may hold nothing yet; any other must be at hand.
        if !span.contains(&self.now_ms()) {
            self.week_at_hand(&window::label(key))?;
        }
        let window = WindowView {
            window: window::label(key),
            from_ms: Some(span.start).filter(|&start| start != i64::MIN),
            to_ms: Some(span.end).filter(|&end| end != i64::MAX),
            closed: self.is_closed(week),
        };
        let rows = self.rows(source, week, server)?;
        let direction = Direction::HighIsBetter;
        let board = |&ranking: &Ranking| {
            let places = board::board(&rows, ranking);
            let version = version(&places);
            let generation = generation(&name.scope, &window.window, ranking, direction);
            Cow::Owned(Set::build(direction, generation, places).at_version(version))
        };
        let sets = rankings.iter().map(board).collect();
        Ok((window, sets))
    }

    /// The windows that there are boards of: weeks.
    fn windows(&self) -> Windows {
        Windows::new(self.books.calendar, []).expect("weeks alone are in order")
    }

    fn window_asked<E: std::error::Error + 'static>(&self, name: &BoardsName) -> Result<WindowKey, ViewError<E>> {
        let text = name.window.as_deref().unwrap_or(WEEK);
        let t_ms = name.time_ms.unwrap_or(self.now_ms());
        match (window::parse_type(text), window::parse(text)) {
            (Ok(kind), _) => self.windows().oldest(kind, t_ms).ok_or_else(|| self.no_window(name, text.to_owned())),
            (Err(_), Ok(_)) if name.time_ms.is_some() => Err(ViewError::TimeOfWindow(text.to_owned())),
            (Err(_), Ok(window)) => Ok(window),
            // Types have names, windows have numbers.
            (Err(_), Err(bad)) if text.contains(|c: char| c.is_ascii_digit()) => {
                Err(ViewError::BadWindow(bad.to_string()))
            }
            (Err(bad), Err(_)) => Err(ViewError::BadWindow(bad.to_string())),
        }
    }

    fn no_window<E: std::error::Error + 'static>(&self, name: &BoardsName, window: String) -> ViewError<E> {
        let types = self.windows().specs().iter().map(|spec| window::type_name(spec.kind)).collect::<Vec<_>>();
        ViewError::NoWindow { scope: name.scope.to_string(), window, types: types.join(", ") }
    }
}

/// Tells a board from every other by its names, and the same one before a
/// restart and after: a cursor stays good as long as the board is there.
fn generation(scope: &ScopeName, window: &str, ranking: Ranking, direction: Direction) -> u64 {
    let mut hash = SipHasher24::new();
    let direction = match direction {
        Direction::HighIsBetter => "high",
        Direction::LowIsBetter => "low",
    };
    for text in [&*scope.to_string(), window, ranking.name(), direction] {
        hash.write(text.as_bytes());
        hash.write(&[0xff]); // In no text.
    }
    hash.finish()
}

/// Of a board that nobody counts the changes of: a digest of its places.
fn version(places: &[Place]) -> u64 {
    let mut hash = SipHasher24::new();
    for place in places {
        hash.write_i64(place.score().0);
        hash.write_i64(place.at_ms);
        hash.write_u32(place.player.0);
    }
    hash.finish()
}
