//! Boards of a server, game or tag in a window: all rankings with their best players, or a page of
//! one of them.

use std::collections::BTreeMap;
use std::time::Duration;

use maud::{Markup, html};
use serde::Deserialize;
use tokio::time::timeout;

use super::chart::percent;
use super::format::{count, days, days_of_week, ranking as ranking_name, ranking_meaning, score, time};
use super::{names, overview, search};
use crate::api::requests;
use crate::model::Ranking;
use crate::model::calendar::DAY_MS;
use crate::model::scope::Scope;
use crate::model::shown_text::shown_name;
use crate::view::board::{
    BoardAnswer, BoardEntryView, BoardHead, BoardQuery, BoardRow, BoardSelector, BoardsSelector, PlayerSelector,
    WindowPhase, WindowSummary, WindowView,
};
use crate::web::context::WebContext;
use crate::web::problem::{Problem, ProblemKind};
use crate::web::query::{self, Name, Number, Position};
use crate::web::texts::{rich_text, text};

/// Entries of each board where all rankings are shown.
const TOP_ENTRIES: u32 = 10;

/// Players that a search on a board looks for.
const CANDIDATES: u32 = 20;

/// How many of the best players of a game are compared with the week before.
const MOVERS_AMONG: u32 = 30;

/// Entries of a page of one board.
const PAGE_ENTRIES: u32 = 50;

/// How long a page waits for the positions in the window before.
const PREVIOUS_WAIT_MAX: Duration = Duration::from_secs(2);

/// The parameters of a page with boards.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BoardParameters {
    pub window: Option<String>,
    pub ranking: Option<String>,
    pub start: Option<Position>,
    pub player: Option<Name>,
}

/// A part of a board.
pub(super) struct BoardPart {
    head: BoardHead,
    entries: Vec<BoardEntryView>,
    /// The player who was searched for.
    found: Option<u32>,
}

/// The section of a page with boards.
pub(super) struct Section {
    /// What the section shows if the visitor has chosen a window or a ranking, such as
    /// `ELO in 2025-W47`.
    choice: Option<String>,
    /// The query of the address of what was chosen.
    pub query: Option<String>,
    pub markup: Markup,
}

impl Section {
    /// The title of a page: the name of its server, game or tag, after the chosen boards.
    pub fn page_title(&self, name: &str) -> String {
        match &self.choice {
            Some(choice) => text!("title-and-name", title = choice.as_str(), name = name).into_owned(),
            None => name.to_owned(),
        }
    }
}

/// Positions of players in the window before; players without one are new.
pub(super) type PreviousPositions = Option<BTreeMap<u32, u64>>;

/// The best players.
pub(super) async fn top(
    context: &WebContext,
    scope: Scope,
    window: Option<&str>,
    ranking: Ranking,
    entries: u32,
) -> Result<BoardPart, Problem> {
    part(context, &scope, window, ranking, BoardQuery::Top { count: entries }).await
}

/// The best players of the running week, and those who have moved up.
pub(super) struct Leaders {
    pub board: BoardPart,
    /// Best first.
    pub movers: Vec<Mover>,
}

/// A player who has moved up since the week before, or who has reached one of the three best scores in the last 24 hours.
pub(super) struct Mover {
    entry: BoardEntryView,
    /// The position in the week before; `None`: the player was not on the board.
    before: Option<u64>,
    now_ms: i64,
}

/// The best players of a game by CLQ1, and those of the first [`MOVERS_AMONG`] who have moved up. `wait`: the longest wait
/// for each of the two boards, if it is not in memory. `None`: the board of the running week takes longer.
pub(super) async fn leaders(
    context: &WebContext,
    game: &str,
    all_windows: &[WindowSummary],
    now_ms: i64,
    entries: u32,
    wait: Duration,
) -> Option<Leaders> {
    let scope = Scope::Game(game.to_owned());
    let mut board = timeout(wait, top(context, scope.clone(), None, Ranking::Clq1, MOVERS_AMONG)).await.ok()?.ok()?;
    let place = Place { scope: &scope, path: "", all_windows, now_ms, window: None, week_coverage: None };
    let previous = timeout(wait, previous(context, &place, &board)).await.ok().and_then(Result::ok).flatten();
    let mover = |entry: &BoardEntryView| {
        let before = previous.as_ref()?.get(&entry.player_key).copied();
        let mover = Mover { entry: entry.clone(), before, now_ms };
        mover.is_news().then_some(mover)
    };
    let movers = board.entries.iter().filter_map(mover).collect();
    board.entries.truncate(entries as usize);
    Some(Leaders { board, movers })
}

impl Mover {
    /// Half as far from the top as in the week before, or one of the best three by a score of the last 24 hours.
    fn is_news(&self) -> bool {
        let position = self.entry.at.position;
        let is_lately_best = position <= 3 && self.now_ms - self.entry.at.reached_ms < DAY_MS;
        match self.before {
            Some(before) => before >= 2 * position.max(2) || (is_lately_best && before > position),
            None => is_lately_best,
        }
    }

    /// The key to sort by: the most important news first.
    pub fn order(&self) -> (u64, std::cmp::Reverse<u64>) {
        (self.entry.at.position, std::cmp::Reverse(self.before.unwrap_or(u64::MAX)))
    }

    pub fn text(&self, game: &Markup) -> Markup {
        let entry = &self.entry;
        let player =
            html! { a href={ "/players/" (entry.player_key) } { (names::player(&entry.display, &entry.name)) } };
        let position = html! { b { (text!("mover-position", position = entry.at.position)) } };
        let game = game.clone();
        let news = match self.before {
            Some(before) => {
                let up = html! { span .up { (text!("mover-up-from", before = before)) } };
                rich_text!("mover-up", player = player, position = position, game = game, up = up)
            }
            None => rich_text!("mover-new", player = player, position = position, game = game),
        };
        html! { (news) " " span .soft { (rich_text!("mover-score", time = time(entry.at.reached_ms))) } }
    }
}

async fn part(
    context: &WebContext,
    scope: &Scope,
    window: Option<&str>,
    ranking: Ranking,
    query: BoardQuery,
) -> Result<BoardPart, Problem> {
    let board = BoardSelector { scope: scope.clone(), ranking, window: window.map(str::to_owned), at_ms: None };
    context.ask(requests::Board { board, query }).await.map(BoardPart::from)
}

/// The best players of all rankings.
pub(super) async fn all_tops(
    context: &WebContext,
    scope: &Scope,
    window: Option<&str>,
    count: u32,
) -> Result<Vec<BoardPart>, Problem> {
    let boards = BoardsSelector { scope: scope.clone(), window: window.map(str::to_owned), at_ms: None };
    parts(context, boards, BoardQuery::Top { count }).await
}

/// The same part of the boards of all rankings.
async fn parts(context: &WebContext, boards: BoardsSelector, query: BoardQuery) -> Result<Vec<BoardPart>, Problem> {
    let boards = context.ask(requests::Boards { boards, query }).await?;
    Ok(boards.into_iter().map(BoardPart::from).collect())
}

impl From<BoardAnswer> for BoardPart {
    fn from(BoardAnswer { head, rows }: BoardAnswer) -> BoardPart {
        let entry = |row| match row {
            BoardRow::Entry(entry) => Some(entry),
            _ => None,
        };
        BoardPart { head, entries: rows.into_iter().filter_map(entry).collect(), found: None }
    }
}

/// The section with the boards of a scope. `path` is the page's own; `week_coverage` is the share
/// of the running week in which its servers were seen.
pub(super) async fn section(
    context: &WebContext,
    scope: &Scope,
    path: &str,
    parameters: &BoardParameters,
    week_coverage: Option<f64>,
) -> Result<Section, Problem> {
    let all_windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    let window = parameters.window.as_deref().filter(|window| !window.is_empty());
    let now_ms = overview(context).await?.now_ms;
    let place = Place { scope, path, all_windows: &all_windows, now_ms, window, week_coverage };
    match parameters.ranking.as_deref().filter(|name| !name.is_empty()) {
        None => all_rankings(context, &place).await,
        Some(name) => one_ranking(context, &place, query::ranking(name)?, parameters).await,
    }
}

/// A week with a position on a board: a link, as long as the state keeps it.
pub(super) fn week_link(kept: &[WindowSummary], path: &str, week: &str, ranking: Ranking) -> Markup {
    let days = days_of_week(week);
    html! {
        @if kept.iter().any(|window| window.window.window == week) {
            a href={ (path) "?window=" (week) "&ranking=" (ranking.name()) "#boards" } title=(week) { (days) }
        } @else { span title=(week) { (days) } }
    }
}

/// Whose boards are shown, and where.
struct Place<'p> {
    scope: &'p Scope,
    path: &'p str,
    all_windows: &'p [WindowSummary],
    now_ms: i64,
    /// The label that was asked for.
    window: Option<&'p str>,
    week_coverage: Option<f64>,
}

/// The first positions of every ranking.
async fn all_rankings(context: &WebContext, place: &Place<'_>) -> Result<Section, Problem> {
    let &Place { scope, path, all_windows, window, week_coverage, .. } = place;
    let selector =
        |window: Option<&str>| BoardsSelector { scope: scope.clone(), window: window.map(str::to_owned), at_ms: None };
    let parts = parts(context, selector(window), BoardQuery::Top { count: TOP_ENTRIES }).await?;
    let before = parts.first().and_then(|board| place.window_before(&board.head.window));
    let players: Vec<PlayerSelector> = parts.iter().flat_map(BoardPart::players).collect();
    let previous = match before.filter(|_| !players.is_empty()) {
        Some(before) => {
            in_time(self::parts(context, selector(Some(before)), BoardQuery::Positions { players })).await?
        }
        None => None,
    };
    let mut previous = previous.into_iter().flatten().map(|part| part.positions());
    let boards: Vec<(BoardPart, PreviousPositions)> = parts.into_iter().map(|part| (part, previous.next())).collect();
    let shown = boards.first().map(|(board, _)| board.head.window.window.clone()).unwrap_or_default();
    let markup = html! {
        (heading(&boards[0].0.head, all_windows, path, None, week_coverage))
        @if boards.iter().all(|(board, _)| board.entries.is_empty()) {
            p { (text!("boards-no-player")) " " (text!("seen-playing-listed")) }
        } @else {
            // Everybody who has played is listed by time.
            (find_form(path, &shown, Ranking::Time))
            div .grid {
                @for (board, previous) in &boards {
                    @let (title, unit) = ranking_name(board.head.ranking);
                    @let link = format!("{path}?window={}&ranking={}#boards", names::value(&shown), board.head.ranking.name());
                    section {
                        h3 { a href=(link) { (title) } span .soft { ", " (unit) } }
                        p .soft { (ranking_meaning(board.head.ranking).0) }
                        (board.table(previous))
                        @if board.head.size > u64::from(TOP_ENTRIES) { p { a href=(link) { (text!("boards-all-players", count = board.head.size)) } } }
                    }
                }
            }
        }
    };
    let query = window.map(|_| format!("window={}", names::value(&shown)));
    let choice = window.map(|_| text!("boards-rankings-of", window = shown.as_str()).into_owned());
    Ok(Section { choice, query, markup })
}

fn find_form(path: &str, window: &str, ranking: Ranking) -> Markup {
    html! {
        form .filters action={ (path) "#boards" } {
            input type="hidden" name="window" value=(window);
            input type="hidden" name="ranking" value=(ranking.name());
            div { label for="board-player" { (text!("boards-find-player")) } input #board-player name="player" maxlength="100" required; }
            button { (text!("find")) }
        }
    }
}

/// A page of the board of one ranking.
async fn one_ranking(
    context: &WebContext,
    place: &Place<'_>,
    ranking: Ranking,
    parameters: &BoardParameters,
) -> Result<Section, Problem> {
    let &Place { scope, path, all_windows, window, week_coverage, .. } = place;
    let start = parameters.start.map_or(1, Number::to);
    let player = parameters.player.as_ref().map(|Name(player)| player.trim()).filter(|player| !player.is_empty());
    let mut not_found = None;
    let mut board = match player {
        None => {
            part(context, scope, window, ranking, BoardQuery::Page { position: start, count: PAGE_ENTRIES }).await?
        }
        Some(name) => match find(context, place, ranking, name).await? {
            Some(board) => board,
            None => {
                not_found = Some(name);
                part(context, scope, window, ranking, BoardQuery::Page { position: 1, count: PAGE_ENTRIES }).await?
            }
        },
    };
    board.entries.truncate(PAGE_ENTRIES as usize);
    let previous = previous(context, place, &board).await?;
    let (title, unit) = ranking_name(ranking);
    let shown = &board.head.window.window;
    let query = format!("window={}&ranking={}", names::value(shown), ranking.name());
    let link = |start: u64| format!("{path}?{query}&start={start}#boards");
    let first = board.entries.first().map_or(1, |entry| entry.at.position);
    let last = board.entries.last().map_or(0, |entry| entry.at.position);
    let last_page = board.head.size.saturating_sub(1) / u64::from(PAGE_ENTRIES) * u64::from(PAGE_ENTRIES) + 1;
    let markup = html! {
        (heading(&board.head, all_windows, path, Some(ranking), week_coverage))
        ul .tabs {
            li { a href={ (path) "?window=" (names::value(shown)) "#boards" } { (text!("boards-all-rankings")) } }
            @for other in Ranking::ALL {
                li {
                    a href={ (path) "?window=" (names::value(shown)) "&ranking=" (other.name()) "#boards" } aria-current=[(other == ranking).then_some("page")] {
                        (ranking_name(other).0)
                    }
                }
            }
        }
        (find_form(path, shown, ranking))
        @if let Some(name) = &not_found { p role="status" { (rich_text!("boards-not-found", name = names::plain(name))) } }
        h3 { (title) span .soft { ", " (unit) } }
        p .soft { (ranking_meaning(ranking).0) " " (ranking_meaning(ranking).1) }
        (board.table_of(&previous, true))
        @if board.head.size > u64::from(PAGE_ENTRIES) {
            nav .pages aria-label=(text!("boards-pages")) {
                @if first > 1 {
                    a href=(link(1)) { (text!("boards-first")) }
                    a href=(link(first.saturating_sub(PAGE_ENTRIES.into()).max(1))) rel="prev" { (text!("boards-better")) }
                }
                span { (text!("boards-shown", first = first, last = last, count = board.head.size)) }
                @if last < board.head.size {
                    a href=(link(last + 1)) rel="next" { (text!("boards-further")) }
                    a href=(link(last_page)) { (text!("boards-last")) }
                }
            }
        }
    };
    let choice = text!("boards-ranking-in", ranking = &*title, window = shown.as_str()).into_owned();
    Ok(Section { choice: Some(choice), query: Some(query), markup })
}

/// The entries around the player with this name, or else around the first on the board of those whom a search finds.
async fn find(
    context: &WebContext,
    place: &Place<'_>,
    ranking: Ranking,
    name: &str,
) -> Result<Option<BoardPart>, Problem> {
    let query = |query| part(context, place.scope, place.window, ranking, query);
    let standing = |players| async { kept(query(BoardQuery::Positions { players }).await) };
    let mut found = match standing(vec![PlayerSelector::Name(name.to_owned())]).await {
        // Players of several games have the name.
        Err(problem) if problem.kind == ProblemKind::BadRequest => None,
        found => found?,
    };
    if found.as_ref().is_none_or(|board| board.entries.is_empty()) {
        let named = search::players(context, name, CANDIDATES).await?;
        let players: Vec<_> = named.iter().map(|player| PlayerSelector::Key(player.player_key)).collect();
        found = if players.is_empty() { None } else { standing(players).await? };
    }
    let Some(player_key) = found.and_then(|board| board.player_keys().next()) else { return Ok(None) };
    let player = PlayerSelector::Key(player_key);
    let board = query(BoardQuery::Around { player, count: PAGE_ENTRIES }).await?;
    Ok(Some(BoardPart { found: Some(player_key), ..board }))
}

/// Title of the section: the window, whether it is final, and a choice of others.
fn heading(
    head: &BoardHead,
    all: &[WindowSummary],
    path: &str,
    ranking: Option<Ranking>,
    week_coverage: Option<f64>,
) -> Markup {
    let window = &head.window;
    let is_week = all.iter().any(|other| other.window.window == window.window && other.kind == "week");
    let coverage = week_coverage.filter(|_| is_week && !window.closed);
    html! {
        h2 #boards { (text!("boards-rankings-of", window = window_text(window))) }
        p .soft {
            @if window.closed { (text!("boards-closed")) } @else { (text!("boards-running")) " " }
            @if let Some(share) = coverage { (self::coverage(share)) }
        }
        form .filters action={ (path) "#boards" } {
            div {
                label for="board-window" { (text!("boards-window")) }
                select #board-window name="window" {
                    @for other in all.iter().filter(|other| other.phase != WindowPhase::Upcoming) {
                        option value=(other.window.window) selected[other.window.window == window.window] { (window_text(&other.window)) }
                    }
                }
            }
            @if let Some(ranking) = ranking { input type="hidden" name="ranking" value=(ranking.name()); }
            button { (text!("show")) }
        }
    }
}

/// How complete the running week is, if something is missing.
pub(super) fn coverage(share: f64) -> Markup {
    html! { @if share < 0.995 { (text!("boards-coverage", share = percent(share))) " " } }
}

/// The positions of these players in the window before; `None`: it is not kept, or its boards are not in memory.
async fn previous(context: &WebContext, place: &Place<'_>, board: &BoardPart) -> Result<PreviousPositions, Problem> {
    let players: Vec<PlayerSelector> = board.players().collect();
    let Some(before) = place.window_before(&board.head.window).filter(|_| !players.is_empty()) else { return Ok(None) };
    let query = BoardQuery::Positions { players };
    let before = part(context, place.scope, Some(before), board.head.ranking, query);
    Ok(in_time(before).await?.map(|part| part.positions()))
}

impl<'p> Place<'p> {
    /// The kept window of the same type that ends where this one starts. `None` in the first day of a longer window, too:
    /// in its first hours few have played yet.
    fn window_before(&self, shown: &WindowView) -> Option<&'p str> {
        let is_shown = |window: &&WindowSummary| window.window.window == shown.window;
        let kind = &self.all_windows.iter().find(is_shown)?.kind;
        let (start_ms, end_ms) = (shown.start_ms?, shown.end_ms?);
        if !shown.closed && end_ms - start_ms > DAY_MS && self.now_ms - start_ms < DAY_MS {
            return None;
        }
        let mut older =
            self.all_windows.iter().filter(|window| window.kind == *kind).skip_while(|window| !is_shown(window));
        let before = &older.nth(1)?.window;
        (before.end_ms == shown.start_ms).then_some(&*before.window)
    }
}

/// The days of a window, and its label, which says little to most people; of hours the label.
pub(super) fn window_text(window: &WindowView) -> String {
    match (window.start_ms, window.end_ms) {
        (Some(start_ms), Some(end_ms)) if end_ms - start_ms >= DAY_MS => {
            format!("{} ({})", days(start_ms, end_ms), window.window)
        }
        _ => window.window.clone(),
    }
}

/// What a page can do without. `None`: the window is not kept, or its boards are being built: that takes long with millions of
/// players.
async fn in_time<T>(found: impl Future<Output = Result<T, Problem>>) -> Result<Option<T>, Problem> {
    match timeout(PREVIOUS_WAIT_MAX, found).await {
        Err(_) => Ok(None),
        Ok(Err(problem)) if problem.kind == ProblemKind::Busy => Ok(None),
        Ok(found) => kept(found),
    }
}

/// `None`: the window is not kept.
fn kept<T>(found: Result<T, Problem>) -> Result<Option<T>, Problem> {
    match found {
        Err(problem) if matches!(problem.kind, ProblemKind::NotFound | ProblemKind::Conflict) => Ok(None),
        found => found.map(Some),
    }
}

impl BoardPart {
    fn players(&self) -> impl Iterator<Item = PlayerSelector> {
        self.player_keys().map(PlayerSelector::Key)
    }

    pub fn ranking(&self) -> Ranking {
        self.head.ranking
    }

    pub fn window_text(&self) -> String {
        window_text(&self.head.window)
    }

    /// Names without colours, and scores.
    pub fn names_and_scores(&self) -> impl Iterator<Item = (String, f64)> {
        self.entries.iter().map(|entry| (names::plain_player(&entry.display, &entry.name), entry.at.score))
    }

    pub fn player_keys(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.player_key)
    }

    fn positions(&self) -> BTreeMap<u32, u64> {
        self.entries.iter().map(|entry| (entry.player_key, entry.at.position)).collect()
    }

    /// The players in order, with their scores.
    pub fn list(&self) -> Markup {
        html! {
            ol {
                @for entry in &self.entries {
                    li {
                        a href={ "/players/" (entry.player_key) } { (names::player(&entry.display, &entry.name)) } " "
                        span .soft { (score(self.head.ranking, entry.at.score)) }
                    }
                }
            }
        }
    }

    pub fn table(&self, previous: &PreviousPositions) -> Markup {
        self.table_of(previous, false)
    }

    /// `is_alone`: there is room for the times at which the scores were reached.
    fn table_of(&self, previous: &PreviousPositions, is_alone: bool) -> Markup {
        let ranking = self.head.ranking;
        let (title, unit) = ranking_name(ranking);
        // Names are unique on a page.
        let scope = match &self.head.scope {
            Scope::Server(url) => url.to_string(),
            Scope::Game(name) | Scope::Tag(name) => shown_name(name),
        };
        html! {
            @if !self.entries.is_empty() {
            div .scroll tabindex="0" role="region" aria-label=(text!("boards-table-of", ranking = &*title, scope = scope)) {
                table class=[is_alone.then_some("single")] {
                    caption { span .unseen { (title) ", " (self.head.window.window) } }
                    thead {
                        tr {
                            th scope="col" .n { abbr title=(text!("boards-position")) { "#" } } @if previous.is_some() { th scope="col" { (text!("boards-change")) } }
                            th scope="col" { (text!("player")) } th scope="col" .n { abbr title=(unit) { (text!("score")) } }
                            @if is_alone { th scope="col" .wide-only { (text!("boards-reached")) } }
                        }
                    }
                    tbody {
                        @for entry in &self.entries {
                            tr class=[(self.found == Some(entry.player_key)).then_some("found")] {
                                td .n { (count(entry.at.position)) }
                                @if let Some(previous) = previous { td { (movement(entry, previous)) } }
                                td .name { a href={ "/players/" (entry.player_key) } { (names::player(&entry.display, &entry.name)) } }
                                td .n { (score(ranking, entry.at.score)) }
                                @if is_alone { td .wide-only { (time(entry.at.reached_ms)) } }
                            }
                        }
                    }
                }
            }
            }
            @if self.entries.is_empty() { p { (text!("boards-no-player")) " " (ranking_meaning(ranking).1) } }
        }
    }
}

fn movement(entry: &BoardEntryView, previous: &BTreeMap<u32, u64>) -> Markup {
    match previous.get(&entry.player_key).map(|before| *before as i64 - entry.at.position as i64) {
        None => html! { span .soft { (text!("boards-new")) } },
        Some(0) => html! { span .soft { "=" } },
        Some(up @ 1..) => html! { span .up { (text!("boards-up", count = up)) } },
        Some(down) => html! { span .down { (text!("boards-down", count = down.unsigned_abs())) } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::board::EntryScore;

    #[test]
    fn news_are_players_who_have_come_closer_to_the_top() {
        const NOW_MS: i64 = 1_763_942_400_000;
        let is_news = |position: u64, before: Option<u64>, reached_ms: i64| {
            let (competition, dense) = (position, position);
            let at = EntryScore { position, competition, dense, score: 1.0, raw_score: 1, reached_ms };
            let entry = BoardEntryView { player_key: 1, name: "<b>".to_owned(), display: "<b>".to_owned(), at };
            let mover = Mover { entry, before, now_ms: NOW_MS };
            let text = mover.text(&html! { "Quake" }).into_string();
            assert!(text.contains("&lt;b&gt;") && text.matches("<b>").count() == 1, "{text}");
            mover.is_news()
        };
        let (lately, earlier) = (NOW_MS - 1_000, NOW_MS - 2 * DAY_MS);
        // Half as far from the top as before; the first two places are alike.
        assert!(is_news(1, Some(4), earlier) && is_news(2, Some(4), earlier) && is_news(20, Some(40), earlier));
        assert!(!is_news(1, Some(3), earlier) && !is_news(20, Some(39), earlier) && !is_news(5, Some(4), lately));
        // One of the best three by a score of the last 24 hours.
        assert!(is_news(1, Some(2), lately) && is_news(3, None, lately));
        assert!(!is_news(1, Some(1), lately) && !is_news(4, None, lately) && !is_news(3, None, earlier));
    }

    #[test]
    fn a_young_week_shows_no_change_of_positions() {
        let week = |number: i64, phase| WindowSummary {
            kind: "week".to_owned(),
            window: WindowView {
                window: format!("2026-W{number}"),
                start_ms: Some(number * 7 * DAY_MS),
                end_ms: Some((number + 1) * 7 * DAY_MS),
                closed: phase == WindowPhase::Closed,
            },
            phase,
            players: None,
            memory_bytes: None,
            stored: None,
        };
        let all = [week(48, WindowPhase::Running), week(47, WindowPhase::Closed), week(45, WindowPhase::Closed)];
        let before = |shown: usize, now_ms: i64| {
            let scope = Scope::Game("baseq3".to_owned());
            let place = Place { scope: &scope, path: "", all_windows: &all, now_ms, window: None, week_coverage: None };
            place.window_before(&all[shown].window).map(str::to_owned)
        };
        let start_ms = 48 * 7 * DAY_MS;
        assert_eq!(before(0, start_ms + DAY_MS - 1), None);
        assert_eq!(before(0, start_ms + DAY_MS).as_deref(), Some("2026-W47"));
        assert_eq!(before(1, start_ms), None, "week 46 is not kept");
    }
}
