//! Checks whether a state directory can be opened with a configuration. Changes nothing.

use super::StateError;
use super::recovery::open_store_read_only;
use crate::config::Config;
use crate::engine::ZoneChanged;
use crate::model::calendar::Calendar;
use crate::store::StoreError;

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub enum StateCheck {
    /// There is no state yet, or it fits.
    Fits,
    /// The daemon cannot start with this value of a key.
    Problem { key: &'static str, message: String },
    /// The state cannot be read here and now.
    Unknown(String),
}

/// Compares a configuration with the state that a daemon has open, by its time zone.
pub fn check_open_state(config: &Config, time_zone: &str) -> StateCheck {
    let zone = Calendar::new(&config.time_zone).map(|calendar| ZoneChanged::check(time_zone, &calendar));
    match zone {
        Ok(Err(changed)) => StateCheck::Problem { key: "time_zone", message: changed.to_string() },
        _ => StateCheck::Fits,
    }
}

/// Compares a configuration with its state directory. Reads a private copy, and does not wait for
/// another process that has the directory open.
pub fn check_state_dir(config: &Config) -> StateCheck {
    let read = || -> Result<String, StateError> {
        let store = open_store_read_only(config, &config.state_dir, &|| true)?;
        Ok(store.meta()?.time_zone)
    };
    match read() {
        Ok(time_zone) => check_open_state(config, &time_zone),
        Err(StateError::Store(StoreError::MissingStateDir { .. } | StoreError::NotAStateDir { .. })) => {
            StateCheck::Fits
        }
        Err(StateError::Store(
            error @ (StoreError::NewerVersion { .. }
            | StoreError::UnsupportedVersion { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Damaged { .. }),
        )) => StateCheck::Problem { key: "state_dir", message: error.to_string() },
        Err(error) => {
            let why = format!("{:#}", anyhow::Error::new(error));
            StateCheck::Unknown(format!("the configuration is not compared with the state: {why}"))
        }
    }
}
