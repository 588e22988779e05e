//! The commands with which an admin changes the state, one for each server or player concerned. A
//! log records the commands that changed something, with their times, so that a replay applies them
//! again.

use serde::{Deserialize, Serialize};

use super::server::ScreenReason;
use super::{NameHash, PlayerKey, ScanBudget, ServerUrl};

/// A command as a scan log records it (docs/rules.md section 13). Players are given by their
/// normalised names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum AdminCommand {
    /// Adds a server, restores a removed one, or adds tags to a known one.
    Add {
        server: ServerUrl,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tags: Vec<String>,
        /// By an import, not by hand.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        import: bool,
    },
    Remove {
        server: ServerUrl,
    },
    Tag {
        server: ServerUrl,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<String>,
    },
    DropTag {
        tag: String,
    },
    Greylist {
        server: ServerUrl,
        reason: String,
    },
    Lift {
        server: ServerUrl,
    },
    /// Exempts a server from checks, and ends exemptions.
    Trust {
        server: ServerUrl,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        except: Vec<ScreenReason>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        revoke: Vec<ScreenReason>,
    },
    /// How often a server is scanned while it has players; without it as the setting says.
    Budget {
        server: ServerUrl,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<ScanBudget>,
    },
    Merge {
        game: String,
        from: String,
        into: String,
    },
    /// In a log the player is the placeholder that replaces the name:
    /// [`ForgottenPlaceholder`](super::ForgottenPlaceholder).
    Forget {
        game: String,
        player: String,
        /// The player in the state that recorded the command, until the name is removed from the log. A state that
        /// follows the log finds the player by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<PlayerKey>,
        /// Of the name that the placeholder replaces; as long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<NameHash>,
    },
    Allow {
        hash: NameHash,
    },
    /// The label of a week, such as 2026-W47.
    Reopen {
        week: String,
    },
    /// Deletes the windows that ended until a time, Unix ms.
    DeleteWindows {
        before: i64,
    },
    /// Sets recorded time back to the time of the command.
    Clock {},
}
