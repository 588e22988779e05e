//! The state directory: its database and files, their lock and copies.

pub(in crate::store) mod database;
pub(in crate::store) mod files;
pub(in crate::store) mod lock;
pub(in crate::store) mod read_copy;
