//! Boards for readers: which board is meant, what is asked of it, and names to
//! the keys of the answer.
//!
//! Where the boards of a scope and window come from is told in one place,
//! [`Engine::sets`]. The board of a server, of a few hundred players, is built
//! from its rows for each question; those of games and tags are on the `shelf`.

use std::borrow::Cow;
use std::hash::Hasher;
use std::ops::Bound;

use siphasher::sip::SipHasher24;

use super::{Engine, Group, Source, ViewError};
use crate::board::query::{Cursor, Standing};
use crate::board::question::{self, AskError, Found, Positions, Question, Ranked};
use crate::board::set::{Direction, Set};
use crate::board::shown::{self, CLQ1_PER_POINT_PER_SECOND, ShownRange};
use crate::board::{self, Place, fusion, window};
use crate::model::board_view::{
    AbsentView, BoardHead, BoardName, BoardQuestion, BoardRow, BoardsName, FusedHead, FusedQuestion, FusedRanking,
    FusedView, PageView, PlaceScore, PlaceView, PlayerName, PositionForView, RangeView, RankingWeight, ScoreBounds,
    StandingView, StandingsView, WindowListed, WindowPhase, WindowView,
};
use crate::model::name::{ColourCodes, normalise};
use crate::model::scope::ScopeName;
use crate::model::{GameKey, PlayerKey, Ranking, TagKey, WindowKey};
use crate::nearest::nearest;
use crate::rank::clq1;

const _: () = assert!(CLQ1_PER_POINT_PER_SECOND == clq1::SCORE_PER_POINT_PER_SECOND);

/// What a window's type is called where it is a week.
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

    /// The boards of a scope and window, one for each ranking asked, in order:
    /// the one place that knows where they come from.
    fn sets<S: Source>(
        &self,
        source: &S,
        name: &BoardsName,
        rankings: &[Ranking],
    ) -> Result<(WindowView, Vec<Cow<'_, Set>>), ViewError<S::Error>> {
        let key = self.window_asked(name)?;
        let window = self.window_view(key);
        let group = match &name.scope {
            ScopeName::Server(url) => {
                let (server, _) = self.find(url)?;
                let rows = self.rows_counted(source, key, server)?;
                let board = |&ranking: &Ranking| {
                    let low = self.books.settings.low_is_better.iter().any(|low| low.holds(ranking, &name.scope));
                    let direction = if low { Direction::LowIsBetter } else { Direction::HighIsBetter };
                    let places = board::board(&rows, ranking);
                    let generation = generation(&name.scope, &window.window, ranking, direction);
                    let version = version(&places);
                    Cow::Owned(Set::build(direction, generation, places).at_version(version))
                };
                let sets = rankings.iter().map(board).collect();
                return Ok((window, sets));
            }
            ScopeName::Game(game) => {
                Group::Game(GameKey(self.books.games.find(game).ok_or_else(|| ViewError::UnknownGame {
                    game: game.clone(),
                    nearest: nearest(game, self.books.games.names()).map(str::to_owned),
                })?))
            }
            ScopeName::Tag(tag) => {
                Group::Tag(TagKey(self.books.tags.find(tag).ok_or_else(|| ViewError::UnknownTag {
                    tag: tag.clone(),
                    nearest: nearest(tag, self.books.tags.names()).map(str::to_owned),
                })?))
            }
        };
        let boards = self.books.shelf.boards(key).ok_or_else(|| ViewError::BoardsAway(window.window.clone()))?;
        let board = |&ranking: &Ranking| match boards.board(group, ranking) {
            Some(set) => Cow::Borrowed(set),
            None => Cow::Owned(boards.empty(group, ranking)),
        };
        Ok((window, rankings.iter().map(board).collect()))
    }

    /// The window whose boards of groups an answer needs: see
    /// [`Engine::plan_boards`]. `None`: it needs none.
    pub fn boards_needed<E: std::error::Error + 'static>(
        &self,
        name: &BoardsName,
    ) -> Result<Option<WindowKey>, ViewError<E>> {
        match name.scope {
            ScopeName::Server(_) => Ok(None),
            ScopeName::Game(_) | ScopeName::Tag(_) => self.window_asked(name).map(Some),
        }
    }

    /// The window of a label; or, of a type, the oldest that contains the time.
    /// The running ones may hold nothing yet; any other must be at hand.
    fn window_asked<E: std::error::Error + 'static>(&self, name: &BoardsName) -> Result<WindowKey, ViewError<E>> {
        let windows = &self.books.settings.windows;
        let text = name.window.as_deref().unwrap_or(WEEK);
        let t_ms = name.time_ms.unwrap_or(self.now_ms());
        let exists = |window: &WindowKey| self.books.is_kept(*window) || windows.at(self.now_ms()).contains(window);
        let found = match window::parse_type(text) {
            Ok(kind) => windows.at(t_ms).into_iter().filter(|window| window.kind == kind).find(exists),
            Err(_) if name.time_ms.is_some() => return Err(ViewError::TimeOfWindow(text.to_owned())),
            Err(_) => {
                let window = window::parse(text).map_err(ViewError::BadWindow)?;
                Some(window).filter(exists)
            }
        };
        found.ok_or_else(|| ViewError::UnknownWindow {
            window: text.to_owned(),
            time: name.time_ms.map_or_else(String::new, |t_ms| format!(" that contains {}", shown_time(t_ms))),
            types: windows.specs().iter().map(|spec| window::type_name(spec.kind)).collect::<Vec<_>>().join(", "),
        })
    }

    fn window_view(&self, window: WindowKey) -> WindowView {
        let span = self.books.settings.windows.span(window);
        let known = self.books.meta.windows.iter().find(|state| state.window == window);
        let span = known.map(|state| state.start_ms..state.end_ms).or(span);
        WindowView {
            window: window::label(window),
            from_ms: span.as_ref().map(|span| span.start).filter(|&ms| ms > i64::MIN),
            to_ms: span.map(|span| span.end).filter(|&ms| ms < i64::MAX),
            closed: self.books.window_is_over(window),
        }
    }

    /// Every window there is: those that hold rows, those that run, and the next
    /// of each type. Newest first, by type.
    pub fn windows(&self) -> Vec<WindowListed> {
        let windows = &self.books.settings.windows;
        let now_ms = self.now_ms();
        let weeks = self.books.meta.weeks.iter().map(|state| WindowKey::from(state.week));
        let mut keys: Vec<WindowKey> = weeks.chain(self.books.meta.windows.iter().map(|state| state.window)).collect();
        keys.extend(windows.at(now_ms));
        keys.extend(windows.specs().iter().filter_map(|spec| windows.next(spec.kind, now_ms)));
        keys.sort_unstable_by_key(|key| (key.kind, std::cmp::Reverse(key.index)));
        keys.dedup();
        keys.into_iter()
            .map(|key| {
                let boards = self.books.shelf.boards(key);
                let view = self.window_view(key);
                let phase = match (view.closed, view.from_ms.is_some_and(|from_ms| from_ms > now_ms)) {
                    (true, _) => WindowPhase::Closed,
                    (false, true) => WindowPhase::Next,
                    (false, false) => WindowPhase::Running,
                };
                WindowListed {
                    kind: window::type_name(key.kind),
                    window: view,
                    phase,
                    players: boards.map(|boards| boards.players() as u64),
                    memory_bytes: boards.map(|boards| boards.heap_bytes() as u64),
                }
            })
            .collect()
    }
}

/// A moment in the words of RFC 3339.
fn shown_time(t_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(t_ms).map_or_else(|| t_ms.to_string(), |t| t.to_rfc3339())
}

/// One question on its way: whom and what it speaks of.
struct Asking<'a, S> {
    engine: &'a Engine,
    source: &'a S,
    scope: &'a ScopeName,
    ranking: Ranking,
    /// Those asked; who is on one of them is likelier meant by a name.
    sets: &'a [Cow<'a, Set>],
}

impl<S: Source> Asking<'_, S> {
    fn known_player(&self, player: &PlayerName) -> Result<PlayerKey, ViewError<S::Error>> {
        self.player(player)?.ok_or_else(|| match player {
            PlayerName::Key(key) => ViewError::UnknownKey(*key),
            PlayerName::Name(name) => ViewError::UnknownPlayer(normalise(name, ColourCodes::None)),
        })
    }

    fn players(&self, players: &[PlayerName]) -> Result<Vec<Option<PlayerKey>>, ViewError<S::Error>> {
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
                let one = |(game, player): &(crate::model::GameKey, PlayerKey)| {
                    format!("{} (player {player})", engine.books.games.name(game.0))
                };
                let games = found.iter().map(one).collect::<Vec<_>>().join(", ");
                Err(ViewError::AmbiguousName { name: normalise(name, ColourCodes::None), games })
            }
        }
    }

    /// The question as the board takes it; `players` are those that it names.
    fn question(&self, asked: &BoardQuestion, players: &[Option<PlayerKey>]) -> Result<Question, ViewError<S::Error>> {
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
            &BoardQuestion::PositionFor { score } => Question::PositionFor { alike: shown::alike(self.ranking, score) },
            BoardQuestion::Standing { .. } => Question::Standing { player: player() },
            BoardQuestion::Positions { .. } => Question::Positions { players: known().collect() },
            BoardQuestion::After { cursor: text, count } => Question::After { cursor: cursor(text)?, count: *count },
            BoardQuestion::Before { cursor: text, count } => Question::Before { cursor: cursor(text)?, count: *count },
        })
    }

    fn places(&self, places: &[Ranked], rows: &mut Vec<BoardRow>) -> Result<(), ViewError<S::Error>> {
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
    fn positions(
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

    fn position_for(&self, asked: &BoardQuestion, positions: Positions) -> BoardRow {
        let &BoardQuestion::PositionFor { score } = asked else { unreachable!("an answer of a position") };
        let Positions { ordinal, competition, dense } = positions;
        BoardRow::PositionFor(PositionForView {
            score,
            position: ordinal.into(),
            competition: competition.into(),
            dense: dense.into(),
        })
    }

    fn not_on_board(&self, asked: &BoardQuestion, head: &BoardHead) -> ViewError<S::Error> {
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

fn standing_view(ranking: Ranking, set: &Set, standing: Option<Standing>) -> StandingView {
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
        score: shown::shown(ranking, place.score()),
        raw: place.score().0,
        reached_ms: place.at_ms,
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
