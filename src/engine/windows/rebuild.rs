//! Types of windows that are new, or whose boundaries have changed: a second
//! engine makes their past from the scan log, and this one takes it over (RULES
//! section 8).
//!
//! Until then nothing is credited to windows of such a type that are not there
//! already, and their boards say that they are being rebuilt. Who drives the
//! engine decides whether there is a log to make them from; without one they
//! begin now.

use crate::board::window::{Shape, WindowTypes};
use crate::engine::windows::CurrentWindows;
use crate::engine::{Engine, EngineSettings, GlobalState};
use crate::model::commit::{WindowState, WindowTypeState};
use crate::model::{ServerUrl, TagKey, WindowKey, WindowType};

/// How long before the oldest window a replay begins. Segments are cut from the
/// moment of first sighting, so presences must be known from their beginning;
/// hardly any is longer than a day.
const REPLAY_LEAD_MS: i64 = 86_400_000;

impl GlobalState {
    /// Looks which types of windows are not as the state has them. What becomes of
    /// them is up to who drives the engine, so those are not noted yet. In a state
    /// that nothing was ever seen in, none has a past.
    pub(in crate::engine) fn fit_types(&mut self) {
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

    fn types_of_settings(&self) -> Vec<WindowTypeState> {
        let specs = self.settings.windows.specs().iter().filter(|spec| spec.kind != WindowType::WEEK);
        let repeats = |shape| match shape {
            Shape::Custom { base_ms, duration_ms, every_ms, repeat } => Some((base_ms, duration_ms, every_ms, repeat)),
            _ => None,
        };
        specs.map(|spec| WindowTypeState { kind: spec.kind, repeats: repeats(spec.shape), rebuilding: false }).collect()
    }

    /// Whether a window is one that is being made from the scan log.
    pub(in crate::engine) fn is_rebuilding(&self, window: WindowKey) -> bool {
        self.meta.types.iter().any(|state| state.rebuilding && state.kind == window.kind) && !self.is_kept(window)
    }

    /// The same, where a window of that name has begun.
    pub(in crate::engine) fn is_rebuilt(&self, window: WindowKey) -> bool {
        self.is_rebuilding(window) && self.settings.windows.kept(window.kind, self.meta.now_ms).contains(&window.index)
    }
}

impl Engine {
    /// Types whose past is to be made: those that are new or have other
    /// boundaries, and those that were being made when the last life ended.
    pub fn types_to_rebuild(&self) -> Vec<WindowType> {
        let books = &self.global;
        let rebuilding = |kind: WindowType| books.meta.types.iter().any(|state| state.rebuilding && state.kind == kind);
        let kinds = books.settings.windows.specs().iter().map(|spec| spec.kind);
        kinds.filter(|kind| books.renewed.contains(kind) || rebuilding(*kind)).collect()
    }

    /// Whether any is of a config that was not there before.
    pub fn has_changed_types(&self) -> bool {
        !self.global.renewed.is_empty()
    }

    /// Their past cannot be made: their windows go on from here.
    pub fn start_types_empty(&mut self) {
        self.abort_import();
        self.finish_rebuild();
    }

    /// Lets go of their windows, as far as a log that begins at a moment has them,
    /// until [`Engine::finish_import`]. Repeating it changes nothing.
    pub fn start_rebuild(&mut self, log_from_ms: i64) {
        let kinds = self.types_to_rebuild();
        self.abort_import();
        self.global.renewed.clear();
        self.global.meta.types = self.global.types_of_settings();
        self.global.meta.types.iter_mut().for_each(|state| state.rebuilding = kinds.contains(&state.kind));
        self.global.pending.meta = true;
        let in_log = |state: &&WindowState| kinds.contains(&state.window.kind) && state.start_ms >= log_from_ms;
        let gone: Vec<WindowKey> = self.global.meta.windows.iter().filter(in_log).map(|state| state.window).collect();
        self.delete_windows(&gone);
        self.global.windows = CurrentWindows::default();
    }

    /// From when on a log is to be replayed for them, Unix ms.
    pub fn replay_from_ms(&self) -> i64 {
        let windows = &self.global.settings.windows;
        let begin = |kind: WindowType| {
            let mut kept = windows.kept(kind, self.now_ms());
            // Zones that crossed the date line have left out a day.
            kept.find_map(|index| windows.span(WindowKey { kind, index })).map_or(i64::MAX, |span| span.start)
        };
        let first = self.types_to_rebuild().into_iter().map(begin).min();
        first.unwrap_or(i64::MAX).saturating_sub(REPLAY_LEAD_MS)
    }

    /// For the second engine: the same rules, but only the types to be made.
    pub fn rebuild_settings(&self) -> EngineSettings {
        let settings = &self.global.settings;
        let kinds = self.types_to_rebuild();
        let specs = settings.windows.specs().iter().filter(|spec| kinds.contains(&spec.kind)).copied();
        let windows = WindowTypes::new(*settings.windows.calendar(), specs).expect("they fitted with others");
        EngineSettings { windows, archive_enabled: false, outbox_full: false, ..settings.clone() }
    }

    /// For the second engine: ratings of tags are of those that servers have now. A
    /// tag that is dropped and comes again meanwhile is another one.
    pub fn tags_of_servers(&mut self) -> Vec<(ServerUrl, Vec<String>)> {
        self.rebuild_tag_limit = TagKey(self.global.meta.next_tag);
        let records = self.servers.iter().flatten().map(|slot| &slot.record);
        let named = records.map(|record| (record.url.clone(), self.global.tag_names(&record.tags)));
        named.filter(|(_, tags)| !tags.is_empty()).collect()
    }

    pub(in crate::engine) fn finish_rebuild(&mut self) {
        self.global.renewed.clear();
        self.global.meta.types = self.global.types_of_settings();
        self.global.pending.meta = true;
        self.global.windows = CurrentWindows::default();
    }
}
