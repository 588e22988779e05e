//! The common types of clqd: keys, names, times, snapshots, records, commits.
//!
//! The lowest layer. Plain data and its pure functions; no IO, no clock, no randomness. Every
//! other module uses these types.

pub mod admin_command;
pub mod archive;
pub mod board_order;
mod byte_list;
pub mod calendar;
pub mod commit;
pub mod forgotten_placeholder;
pub mod keys;
pub mod known_server;
pub mod name;
pub mod name_hash;
pub mod network;
pub mod outbox;
pub mod packed_row;
pub mod packed_series;
pub mod rebuild;
pub mod restored;
pub mod row;
pub mod scan_budget;
pub mod scope;
pub mod search_text;
pub mod server;
pub mod server_page;
pub mod session;
pub mod shown_text;
pub mod snapshot;
pub mod top_board;
pub mod url;
pub mod varint;
pub mod window;

pub use admin_command::AdminCommand;
pub use archive::ArchiveJob;
pub use commit::Commit;
pub use outbox::{OutboxEntry, OutboxKey};
pub use row::{MapRow, PlayerRow, PlayerWindow, Ranking};
pub use scan_budget::ScanBudget;
pub use scope::Scope;
pub use server::ServerRecord;
pub use session::{Seen, Session, SessionDay, SessionKey};
pub use snapshot::{Completeness, NO_MAP, Player, Snapshot};
pub use url::ServerUrl;
pub use window::{WindowKey, WindowType};

pub use crate::model::forgotten_placeholder::ForgottenPlaceholder;
pub use crate::model::keys::{GameKey, MapKey, PlayerKey, ServerKey, TagKey, WeekKey};
pub use crate::model::known_server::KnownServer;
pub use crate::model::name_hash::NameHash;
