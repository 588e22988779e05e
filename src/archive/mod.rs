//! The archive in MySQL.
