//! The archive in MySQL (or MariaDB): what websites read (RULES section 12).
//!
//! The one room that names MySQL. In: [`ArchiveJob`]s, absolute values of
//! things that changed. Out: rows of `schema.sql`. What is not here: when
//! something changed and what its values are; that is the engine's, and it is
//! asked through [`JobSource`].
//!
//! - [`worker`]: the loop. Asks for what is pending, writes it, says that it is
//!   done; waits while the database is away.
//! - [`write`]: jobs to rows, in transactions; [`gone`]: players who are no more.
//! - [`connect`]: a connection as clqd wants it, alone in its archive.
//! - [`schema`]: applying `schema.sql`; [`split`] cuts it into statements.
//! - [`sql`]: text of SQL statements.
//! - [`settings`], [`error`], [`report`]: what the admin sets, and sees.
//!
//! Everything may be repeated. A commit whose acknowledgement was lost is
//! written again; what is written is values, never differences.
//!
//! [`ArchiveJob`]: crate::model::ArchiveJob

mod connect;
mod error;
mod remove_player;
mod schema;
mod settings;
mod sql;
mod sql_script;
mod status;
mod week_chunks;
mod worker;
mod write;

pub use connect::Archive;
pub use error::ArchiveError;
pub use schema::{MigrationReport, MigrationStep, Routines, SCHEMA_SQL, Schema};
pub use settings::{ArchiveSettings, SettingsError};
pub use worker::{JobSource, OutboxQuery, SourceClosed, run};

pub use crate::archive::sql_script::statements;
pub use crate::archive::status::{FaultKind, WorkerFault, WorkerStatus};
pub use crate::archive::week_chunks::WriteOutcome;
