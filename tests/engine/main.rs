//! Tests the engine with its store, in virtual time: no process, no network, no database.

mod commands;
mod correction_cost;
mod corrections;
mod corrections_in_week_close;
mod earlier_scans;
mod estimates;
mod failed_servers;
mod forgotten_replay;
mod online_players;
mod outbox;
mod player_pages;
mod screening;
mod server_pages;
mod sessions;
mod site_series;
mod sure_rounds;
mod week_close;
mod window_import;

#[path = "../support/scans.rs"]
mod scans;

use clqd::model::outbox::{ArchiveStep, WriterBeat};
use clqd::state::State;

/// A state with an archive that has everything so far. Without one a state does not note what is to be archived.
fn with_archive(mut state: State) -> State {
    if state.engine.archive_id().is_none() {
        state.engine.apply_archive_step(ArchiveStep::Claim { id: 1 });
        state.engine.apply_archive_step(ArchiveStep::Archived { batch: 0, at: WriterBeat { epoch: 0, beat: 0 } });
    }
    state
}
