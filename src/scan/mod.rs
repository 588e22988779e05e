//! The scan engine: sockets, pacing, retries.
