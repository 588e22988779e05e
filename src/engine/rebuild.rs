//! Types of windows that are new, or whose boundaries have changed: a second
//! engine makes their past from the scan log, and this one takes it over (RULES
//! section 8).
//!
//! Until then nothing is credited to windows of such a type that are not there
//! already, and their boards say that they are being rebuilt. Who drives the
//! engine decides whether there is a log to make them from; without one they
//! begin now.

use rustc_hash::FxHashMap;

use super::windows::Now;
use super::{Books, Engine, EngineSettings, Source, WindowSource};
use crate::board::window::{Shape, Windows};
use crate::model::commit::{RowKey, TypeState, WindowState};
use crate::model::row::{PlayerWindow, WeekRow};
use crate::model::{GameKey, PlayerKey, ServerKey, ServerUrl, TagKey, WindowKey, WindowType};

/// How long before the oldest window a replay begins. Segments are cut from the
/// moment of first sighting, so presences must be known from their beginning;
/// hardly any is longer than a day.
const LEAD_MS: i64 = 86_400_000;

impl Books {
    /// Looks which types of windows are not as the state has them. What becomes of
    /// them is up to who drives the engine, so those are not noted yet. In a state
    /// that nothing was ever seen in, none has a past.
    pub(super) fn fit_types(&mut self) {
        self.renewed.clear();
        let mut types = Vec::new();
        for state in self.types_of_settings() {
            let known = self.meta.types.iter().find(|known| known.kind == state.kind).copied();
            let has_past = self.meta.now_ms > 0 && !self.settings.windows.kept(state.kind, self.meta.now_ms).is_empty();
            match known {
                Some(known) if known.repeats == state.repeats => types.push(known),
                _ if !has_past => types.push(state),
                known => {
                    self.renewed.push(state.kind);
                    types.extend(known);
                }
            }
        }
        if types != self.meta.types {
            self.meta.types = types;
            self.pending.meta |= self.meta.now_ms > 0;
        }
    }

    fn types_of_settings(&self) -> Vec<TypeState> {
        let specs = self.settings.windows.specs().iter().filter(|spec| spec.kind != WindowType::WEEK);
        let repeats = |shape| match shape {
            Shape::Custom { base_ms, duration_ms, every_ms, repeat } => Some((base_ms, duration_ms, every_ms, repeat)),
            _ => None,
        };
        specs.map(|spec| TypeState { kind: spec.kind, repeats: repeats(spec.shape), rebuilding: false }).collect()
    }

    /// A row that was made: of two names of one person, both.
    fn add_row(&mut self, key: RowKey, mut row: WeekRow) {
        if let Some(known) = self.pending.row(key) {
            row.merge_person(&known);
        }
        self.put_row(key, &row);
    }

    /// Whether a window is one that is being made from the scan log.
    pub(super) fn is_rebuilding(&self, window: WindowKey) -> bool {
        self.meta.types.iter().any(|state| state.rebuilding && state.kind == window.kind) && !self.is_kept(window)
    }

    /// The same, where a window of that name has begun.
    pub(super) fn is_rebuilt(&self, window: WindowKey) -> bool {
        self.is_rebuilding(window) && self.settings.windows.kept(window.kind, self.meta.now_ms).contains(&window.index)
    }
}

impl Engine {
    /// Types whose past is to be made: those that are new or have other
    /// boundaries, and those that were being made when the last life ended.
    pub fn types_to_rebuild(&self) -> Vec<WindowType> {
        let books = &self.books;
        let rebuilding = |kind: WindowType| books.meta.types.iter().any(|state| state.rebuilding && state.kind == kind);
        let kinds = books.settings.windows.specs().iter().map(|spec| spec.kind);
        kinds.filter(|kind| books.renewed.contains(kind) || rebuilding(*kind)).collect()
    }

    /// Whether any is of a config that was not there before.
    pub fn has_renewed_types(&self) -> bool {
        !self.books.renewed.is_empty()
    }

    /// Their past cannot be made: their windows go on from here.
    pub fn begin_types_now(&mut self) {
        self.end_rebuild();
    }

    /// Lets go of their windows, as far as a log that begins at a moment has them,
    /// until [`Engine::take_over`]. Repeating it changes nothing.
    pub fn begin_rebuild(&mut self, log_from_ms: i64) {
        let kinds = self.types_to_rebuild();
        self.books.renewed.clear();
        self.books.meta.types = self.books.types_of_settings();
        self.books.meta.types.iter_mut().for_each(|state| state.rebuilding = kinds.contains(&state.kind));
        self.books.pending.meta = true;
        let in_log = |state: &&WindowState| kinds.contains(&state.window.kind) && state.start_ms >= log_from_ms;
        let gone: Vec<WindowKey> = self.books.meta.windows.iter().filter(in_log).map(|state| state.window).collect();
        self.let_windows_go(&gone);
        self.books.windows = Now::default();
    }

    /// From when on a log is to be replayed for them, Unix ms.
    pub fn rebuild_from_ms(&self) -> i64 {
        let windows = &self.books.settings.windows;
        let begin = |kind: WindowType| {
            let mut kept = windows.kept(kind, self.now_ms());
            // Zones that crossed the date line have left out a day.
            kept.find_map(|index| windows.span(WindowKey { kind, index })).map_or(i64::MAX, |span| span.start)
        };
        let first = self.types_to_rebuild().into_iter().map(begin).min();
        first.unwrap_or(i64::MAX).saturating_sub(LEAD_MS)
    }

    /// For the second engine: the same rules, but only the types to be made.
    pub fn rebuild_settings(&self) -> EngineSettings {
        let settings = &self.books.settings;
        let kinds = self.types_to_rebuild();
        let specs = settings.windows.specs().iter().filter(|spec| kinds.contains(&spec.kind)).copied();
        let windows = Windows::new(*settings.windows.calendar(), specs).expect("they fitted with others");
        EngineSettings { windows, archive: false, outbox_full: false, ..settings.clone() }
    }

    /// For the second engine: ratings of tags are of those that servers have now. A
    /// tag that is dropped and comes again meanwhile is another one.
    pub fn tags_of_servers(&mut self) -> Vec<(ServerUrl, Vec<String>)> {
        self.rebuild_tags_end = TagKey(self.books.meta.next_tag);
        let records = self.servers.iter().flatten().map(|slot| &slot.record);
        let named = records.map(|record| (record.url.clone(), self.books.tag_names(&record.tags)));
        named.filter(|(_, tags)| !tags.is_empty()).collect()
    }

    /// Whether everything of the windows that `made` has is swept out.
    pub fn can_take_over<S: Source>(&self, source: &S, made: &Engine) -> bool {
        self.windows_to_take(made).iter().all(|state| source.is_swept(state.window))
    }

    fn windows_to_take(&self, made: &Engine) -> Vec<WindowState> {
        let fits = |state: &&WindowState| {
            let span = self.books.settings.windows.span(state.window);
            self.books.is_rebuilt(state.window) && span == Some(state.start_ms..state.end_ms)
        };
        made.books.meta.windows.iter().filter(fits).copied().collect()
    }

    /// Takes over the windows that another engine has made of the same scans, and
    /// credits them from now on. What either has not committed would be missed.
    /// Who or what is not known here is left out. Returns how many windows it was.
    pub fn take_over<S: Source, R: WindowSource<Error = S::Error>>(
        &mut self,
        source: &S,
        made: &Engine,
        made_source: &S,
        made_reader: &R,
    ) -> Result<usize, S::Error> {
        let taken = self.windows_to_take(made);
        let mut keys = Keys { players: FxHashMap::default(), made, made_source, source };
        for state in &taken {
            let window = state.window;
            if let Err(at) = self.books.meta.windows.binary_search_by_key(&window, |state| state.window) {
                self.books.meta.windows.insert(at, *state);
            }
            self.books.shelf.forget(window);
            for made_server in (0..made.servers.len() as u32).map(ServerKey) {
                let Some(server) = keys.server(self, made_server) else { continue };
                for (player, row) in made.rows(made_source, window, made_server)? {
                    if let Some(player) = keys.player(self, player)? {
                        self.books.add_row(RowKey { window, server, player }, row);
                    }
                }
            }
            let mut of_players = Vec::new();
            made_reader.each_player(window, 0..made.books.meta.next_player, &mut |player, of_player| {
                of_players.push((player, of_player))
            })?;
            for (player, of_player) in of_players {
                let Some(player) = keys.player(self, player)? else { continue };
                let Some(mut of_player) = keys.player_window(self, of_player) else { continue };
                if let Some(known) = self.books.player_windows.get(window, player) {
                    of_player.merge_person(known);
                }
                self.books.player_windows.put(window, player, of_player);
            }
        }
        self.end_rebuild();
        Ok(taken.len())
    }

    fn end_rebuild(&mut self) {
        self.books.renewed.clear();
        self.books.meta.types = self.books.types_of_settings();
        self.books.pending.meta = true;
        self.books.windows = Now::default();
    }
}

/// From the keys of one engine to those of another, by names.
struct Keys<'m, S> {
    players: FxHashMap<PlayerKey, Option<PlayerKey>>,
    made: &'m Engine,
    made_source: &'m S,
    source: &'m S,
}

impl<S: Source> Keys<'_, S> {
    fn server(&self, engine: &Engine, made: ServerKey) -> Option<ServerKey> {
        engine.by_url.get(self.made.url_of(made)?).copied()
    }

    fn game(&self, engine: &Engine, made: GameKey) -> Option<GameKey> {
        engine.books.games.find(self.made.books.games.name(made.0)).map(GameKey)
    }

    fn tag(&self, engine: &Engine, made: TagKey) -> Option<TagKey> {
        let named = engine.books.tags.find(self.made.books.tags.name(made.0)).map(TagKey);
        named.filter(|tag| *tag < engine.rebuild_tags_end)
    }

    fn player(&mut self, engine: &Engine, made: PlayerKey) -> Result<Option<PlayerKey>, S::Error> {
        if let Some(known) = self.players.get(&made) {
            return Ok(*known);
        }
        let record = self.made_source.player_record(made)?;
        let named = record.and_then(|record| Some((self.game(engine, record.game)?, record.name)));
        let player = match named {
            Some((game, name)) => self.source.player(game, &name)?.map(|(player, _)| player),
            None => None,
        };
        self.players.insert(made, player);
        Ok(player)
    }

    fn player_window(&self, engine: &Engine, made: PlayerWindow) -> Option<PlayerWindow> {
        let mut of_player = PlayerWindow::new(self.game(engine, made.game)?);
        of_player.servers = made.servers.iter().filter_map(|server| self.server(engine, *server)).collect();
        of_player.in_game = made.in_game;
        for (tag, rating) in made.by_tag {
            if let Some(tag) = self.tag(engine, tag) {
                of_player.set_rating(Some(tag), rating);
            }
        }
        Some(of_player)
    }
}
