//! The archive in MySQL (or MariaDB): what websites read (docs/rules.md section 12).
//!
//! The only module that depends on MySQL. Input: [`ArchiveJob`]s, absolute values of
//! changed objects. Output: rows of `schema.sql`. What changed and its values come from
//! the engine, through [`JobSource`].
//!
//! - [`job_source`]: where the jobs come from; [`worker`]: the loop. Fetches pending jobs,
//!   writes and acknowledges them; backs off while the database is unavailable.
//! - [`mod@write`]: jobs to rows, in transactions; [`write_method`]: how.
//! - [`connect`]: a connection with clqd's session settings and lock, to one of several hosts;
//!   [`writer_epoch`]: only the last writer can commit.
//! - [`verify`]: compares rows with the values that the state expects.
//! - [`restore`]: reads whole tables, in pages, to build a state from them.
//! - [`schema`]: applying `schema.sql`; [`migrations`]: the steps from older versions;
//!   [`sql_script`] splits scripts into statements.
//! - [`shared_log`]: the log of a cluster of engines, in the same database.
//! - [`sql`]: text of SQL statements.
//! - [`settings`], [`hosts`], [`error`], [`worker_status`]: configuration, errors and the reported status.
//!
//! All writes are idempotent. A commit whose acknowledgement was lost is written again:
//! jobs contain values, never differences.
//!
//! [`ArchiveJob`]: crate::model::ArchiveJob

#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod computed_totals;
mod connect;
mod error;
mod hosts;
mod job_source;
mod load_data;
mod migrations;
mod restore;
mod schema;
mod settings;
mod shared_log;
mod sql;
mod sql_script;
mod upsert;
mod verify;
mod worker;
mod worker_status;
mod write;
mod write_method;
mod writer_epoch;

pub use connect::Archive;
pub use error::{ArchiveError, FaultKind, SettingsError};
pub use job_source::{JobSource, OutboxQuery, SourceClosed};
pub use migrations::MigrationStep;
pub use restore::{Page, PageKey};
pub use schema::{MigrationReport, Routines, SCHEMA_SQL, Schema};
pub use settings::{ArchiveSettings, OnOlderDatabase, Tls};
pub use shared_log::{Fenced, KeptLog, Leader, Member, SeenEngine, SharedBatch, SharedLog};
pub use verify::{RowDifference, Verification};
pub use worker::run;
pub use write_method::WriteMethod;

pub use crate::archive::sql_script::statements;
pub use crate::archive::worker_status::{WorkerFault, WorkerStatus};
