//! The words of clqd: keys, names, times, snapshots, records, commits.
//!
//! Floor 0. Plain data and the pure functions that belong to it; no IO, no
//! clock, no randomness. Every other room speaks in these types.

pub mod archive;
pub mod board_view;
pub mod commit;
pub mod forgotten;
pub mod key;
pub mod name;
pub mod order;
pub mod packed;
pub mod row;
pub mod scope;
pub mod server;
pub mod snapshot;
pub mod url;
pub mod view;
pub mod week;
pub mod window;

pub use archive::{ArchiveJob, OutboxEntry, OutboxKey};
pub use commit::Commit;
pub use forgotten::NameHash;
pub use key::{GameKey, MapKey, PlayerKey, ServerKey, TagKey, WeekKey};
pub use row::{MapRow, PlayerWindow, Ranking, Rating, WeekRow};
pub use scope::ScopeName;
pub use server::ServerRecord;
pub use snapshot::{Completeness, Player, Snapshot};
pub use url::ServerUrl;
pub use window::{WindowKey, WindowType};
