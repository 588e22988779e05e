//! What the scanner is given: requests to scan a server, and a clock.

use std::sync::Arc;

use crate::model::{ServerKey, ServerUrl};

/// Returns the current time, Unix ms. Implemented by `clock`.
pub type Now = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A request to scan one server now.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// Copied to the outcome; not used here.
    pub id: u64,
    pub server: ServerKey,
    pub url: ServerUrl,
    pub mode: ScanMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanMode {
    Normal,
    /// Three times the time-out and the retries; every protocol on the port and on
    /// its default ports (docs/rules.md section 9).
    Exception,
}

impl ScanMode {
    /// Factor of the time-out and of the number of retries.
    pub fn factor(self) -> u32 {
        match self {
            ScanMode::Normal => 1,
            ScanMode::Exception => 3,
        }
    }
}
