//! Windows that a second engine rebuilds from the log, and that this engine imports (docs/rules.md
//! section 8): those of types that are new, or whose boundaries changed, and running windows that an admin
//! has recomputed with changed rules.
//!
//! Until the import begins, nothing is credited to windows of such a type that do not exist already; until
//! its end, queries of their boards return an error. The driver of the engine decides whether there is a
//! log to rebuild them from; without one they start empty. Recomputed windows are credited and can be
//! queried all the time.

use std::sync::Arc;

use crate::board::window::{Shape, WindowTypes, label, type_name};
use crate::engine::known_before::KnownBefore;
use crate::engine::windows::current::CurrentWindows;
use crate::engine::{Engine, EngineSettings, GlobalState, ReadModel, ServerState, StateReader};
use crate::model::calendar::DAY_MS;
use crate::model::commit::{WindowState, WindowTypeState};
use crate::model::{KnownServer, ServerKey, WindowKey, WindowType};

/// A replay begins this long before the oldest window. Segments start at the time of the first
/// sighting, so presences must be known from their beginning; hardly any is longer than a day.
const REPLAY_LEAD_MS: i64 = DAY_MS;

impl GlobalState {
    fn known_server(&self, server_state: &ServerState) -> KnownServer {
        let record = &server_state.record;
        KnownServer {
            url: record.url.clone(),
            tags: self.tag_names(&record.tags),
            exempt: record.screening.iter().flat_map(|screening| screening.exempt_reasons()).collect(),
            greylist_reason: record.greylist_reason.clone(),
            budget: record.scan_budget,
            imported: record.imported,
        }
    }

    /// Compares the window types of the settings with those in the state. The driver decides
    /// what happens to changed types, so these are not recorded yet. In a state without any
    /// event no type has a past.
    pub(super) fn compare_types(&mut self) {
        self.changed_types.clear();
        let mut types = Vec::new();
        for state in self.types_of_settings() {
            let known = self.meta.types.iter().find(|known| known.kind == state.kind).copied();
            let has_past =
                self.meta.now_ms > 0 && !self.settings.windows.retained(state.kind, self.meta.now_ms).is_empty();
            match known {
                Some(known) if known.bounds == state.bounds => types.push(known),
                _ if !has_past => types.push(state),
                known => {
                    self.changed_types.push(state.kind);
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
        specs.map(|spec| WindowTypeState { kind: spec.kind, bounds: repeats(spec.shape), rebuilding: false }).collect()
    }

    /// Whether a window of a new or changed type is being rebuilt from the log: it has none or only some of its
    /// rows.
    pub(in crate::engine) fn is_rebuilding(&self, window: WindowKey) -> bool {
        self.has_rebuilding_type(window) && (!self.is_kept(window) || self.is_importing(window))
    }

    /// Whether nothing is credited to a window yet: the import of its type has not begun. That of other windows may
    /// have, if a reload has added the type meanwhile.
    pub(in crate::engine) fn awaits_import(&self, window: WindowKey) -> bool {
        self.has_rebuilding_type(window)
            && !self.is_kept(window)
            && self.meta.importing.iter().all(|importing| importing.kind != window.kind)
    }

    pub(super) fn give_up_import(&mut self, windows: &[WindowKey]) {
        self.drop_imported_boards();
        self.meta.importing.retain(|window| !windows.contains(window));
        // As at the end of an import: some of their rows may have been replaced.
        self.enqueue_boards_of_ended(|window| windows.contains(&window));
        self.pending.meta = true;
    }

    /// Also a changed type whose rebuild has not begun: a log may be applied before.
    fn has_rebuilding_type(&self, window: WindowKey) -> bool {
        self.changed_types.contains(&window.kind)
            || self.meta.types.iter().any(|state| state.rebuilding && state.kind == window.kind)
    }

    /// Whether a window is being rebuilt and has begun.
    pub(in crate::engine) fn is_rebuild_target(&self, window: WindowKey) -> bool {
        self.has_rebuilding_type(window)
            && !self.is_kept(window)
            && self.settings.windows.retained(window.kind, self.meta.now_ms).contains(&window.index)
    }
}

impl ReadModel {
    /// Types whose past is to be rebuilt: those that are new or have other boundaries, and
    /// those whose rebuild was interrupted by a restart.
    pub fn types_to_rebuild(&self) -> Vec<WindowType> {
        let global = &self.global;
        let rebuilding =
            |kind: WindowType| global.meta.types.iter().any(|state| state.rebuilding && state.kind == kind);
        let kinds = global.settings.windows.specs().iter().map(|spec| spec.kind);
        kinds.filter(|kind| global.changed_types.contains(kind) || rebuilding(*kind)).collect()
    }

    /// The types that are being rebuilt, and the windows of other types that are being recomputed.
    pub(in crate::engine) fn rebuilding(&self) -> Vec<String> {
        let types = self.types_to_rebuild();
        let recomputed = self.global.meta.importing.iter().filter(|window| !types.contains(&window.kind));
        types.iter().map(|kind| type_name(*kind)).chain(recomputed.map(|window| label(*window))).collect()
    }

    /// The windows whose recomputation has begun, but those of types that are being rebuilt.
    pub fn recomputed_windows(&self) -> Vec<WindowState> {
        let types = self.types_to_rebuild();
        let recomputed = self.global.meta.importing.iter().filter(|window| !types.contains(&window.kind));
        recomputed.filter_map(|window| self.global.window_state(*window)).collect()
    }

    /// Whether the config has new or changed types.
    pub fn has_changed_types(&self) -> bool {
        !self.global.changed_types.is_empty()
    }

    /// Whether a deleted window may be opened again, with other rows.
    pub fn may_reopen(&self, window: WindowKey) -> bool {
        let (windows, now_ms) = (&self.global.settings.windows, self.now_ms());
        let ends_later = windows.span(window).is_some_and(|span| span.end > now_ms);
        let is_retained = windows.retained(window.kind, now_ms).contains(&window.index);
        window.week().is_none() && !self.global.is_kept(window) && (ends_later || is_retained)
    }

    /// Whether windows are to be rebuilt from the log.
    pub fn has_rebuild(&self) -> bool {
        !self.types_to_rebuild().is_empty() || !self.global.meta.importing.is_empty()
    }

    /// Whether new ratings begin with those of earlier weeks.
    pub fn carries_ratings(&self) -> bool {
        self.global.settings.rules.elo.carry_over
    }

    /// When the first server was added, Unix ms; `i64::MAX` without servers.
    pub fn first_added_ms(&self) -> i64 {
        self.servers.records().map(|record| record.added_ms).min().unwrap_or(i64::MAX)
    }

    /// The running windows that begin within the log. After [`RebuildStep::Begin`] with them they are to be
    /// rebuilt, also after a restart. They keep their rows until the import.
    ///
    /// [`RebuildStep::Begin`]: crate::model::rebuild::RebuildStep::Begin
    pub fn recomputable_windows(&self, log_from_ms: i64) -> Vec<WindowState> {
        let known = self.running_windows().into_iter().filter_map(|window| self.global.window_state(window));
        known.filter(|state| state.start_ms >= log_from_ms).collect()
    }

    /// The time from which a log is to be replayed, Unix ms.
    pub fn replay_from_ms(&self) -> i64 {
        let windows = &self.global.settings.windows;
        let oldest_start_ms = |kind: WindowType| {
            let mut kept = windows.retained(kind, self.now_ms());
            // Zones that crossed the date line have skipped a day.
            kept.find_map(|index| windows.span(WindowKey { kind, index })).map_or(i64::MAX, |span| span.start)
        };
        let of_types = self.types_to_rebuild().into_iter().map(oldest_start_ms);
        let recomputed = self.global.meta.importing.iter().filter_map(|window| self.global.window_state(*window));
        let first = of_types.chain(recomputed.map(|state| state.start_ms)).min();
        first.unwrap_or(i64::MAX).saturating_sub(REPLAY_LEAD_MS)
    }

    /// What the second engine takes for known before its first event. `players`: a reader of this state.
    pub fn known_before(&self, players: impl StateReader + Send + Sync + 'static, until_ms: i64) -> KnownBefore {
        let GlobalState { games, maps, .. } = &self.global;
        KnownBefore { games: games.clone(), maps: maps.clone(), players: Box::new(players), until_ms }
    }

    /// Settings of the second engine: the same rules, but only the types to rebuild. It has weeks in any case.
    pub fn rebuild_settings(&self) -> EngineSettings {
        let settings = &self.global.settings;
        let mut kinds = self.types_to_rebuild();
        kinds.extend(self.global.meta.importing.iter().map(|window| window.kind));
        let specs = settings.windows.specs().iter().filter(|spec| kinds.contains(&spec.kind)).copied();
        let windows = WindowTypes::new(*settings.windows.calendar(), specs).expect("valid together with other types");
        EngineSettings { windows, archive_enabled: false, outbox_full: false, ..(**settings).clone() }
    }

    /// The servers that the second engine knows at its start: all, because commands of the log name them. It computes
    /// ratings for the tags of that moment, and applies later changes of tags itself.
    pub fn rebuilt_servers(&self) -> Vec<KnownServer> {
        self.servers.iter().map(|(_, it)| self.global.known_server(it)).collect()
    }

    /// What is known of the servers that are not removed, of at most `most` keys.
    pub fn servers_for_log(&self, from: ServerKey, most: usize) -> impl Iterator<Item = KnownServer> {
        let keys = (from.0..self.servers.end().0).map(ServerKey).take(most);
        let servers = keys.filter_map(|key| self.servers.get(key));
        servers.filter(|it| !it.record.removed).map(|it| self.global.known_server(it))
    }

    /// The key that the next new server gets.
    pub fn next_server(&self) -> ServerKey {
        self.servers.end()
    }
}

impl Engine {
    /// Names that were known before this state began spend no quota.
    pub fn set_known_before(&mut self, known: Arc<KnownBefore>) {
        self.model.global.known_before = Some(known);
    }

    /// Starts the changed types with empty windows, because their past cannot be rebuilt.
    pub fn start_types_empty(&mut self) {
        let of_types = |window: &WindowKey| self.model.global.is_rebuilding(*window);
        let deleted: Vec<WindowKey> = self.model.global.meta.importing.iter().copied().filter(of_types).collect();
        self.delete_windows(&deleted);
        self.model.global.changed_types.clear();
        self.finish_rebuild();
    }

    /// Deletes the windows of the changed types that begin within the log, until they are imported.
    /// Idempotent.
    pub fn start_rebuild(&mut self, log_from_ms: i64) {
        let kinds = self.model.types_to_rebuild();
        self.model.global.changed_types.clear();
        self.model.global.meta.types = self.model.global.types_of_settings();
        self.model.global.meta.types.iter_mut().for_each(|state| state.rebuilding = kinds.contains(&state.kind));
        self.model.global.pending.meta = true;
        let in_log = |state: &&WindowState| kinds.contains(&state.window.kind) && state.start_ms >= log_from_ms;
        let deleted: Vec<WindowKey> =
            self.model.global.meta.windows.iter().filter(in_log).map(|state| state.window).collect();
        self.delete_windows(&deleted);
        self.model.global.current_windows = CurrentWindows::default();
    }

    /// All types but those that are still to be planned have their windows.
    pub(super) fn finish_rebuild(&mut self) {
        let global = &mut self.model.global;
        global.meta.types = global.types_of_settings();
        global.meta.types.retain(|state| !global.changed_types.contains(&state.kind));
        global.pending.meta = true;
        global.current_windows = CurrentWindows::default();
    }
}
