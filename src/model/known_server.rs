//! What an admin has decided about a server.

use serde::{Deserialize, Serialize};

use super::server::ScreenReason;
use super::{AdminCommand, ScanBudget, ServerUrl};

/// A server with what the commands of admins have made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownServer {
    pub url: ServerUrl,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The checks that the server is exempt from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<ScreenReason>,
    /// `None`: it is not greylisted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greylist_reason: Option<String>,
    /// `None`: as the setting says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<ScanBudget>,
    /// Added by an import, and never by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

impl KnownServer {
    /// The commands that give a new server the same.
    pub fn commands(self) -> impl Iterator<Item = AdminCommand> {
        let KnownServer { url: server, tags, exempt, greylist_reason, budget, imported: import } = self;
        let trust = (!exempt.is_empty()).then(|| AdminCommand::Trust {
            server: server.clone(),
            except: exempt,
            revoke: Vec::new(),
        });
        let greylist = greylist_reason.map(|reason| AdminCommand::Greylist { server: server.clone(), reason });
        let budget = budget.map(|budget| AdminCommand::Budget { server: server.clone(), budget: Some(budget) });
        [Some(AdminCommand::Add { server, tags, import }), trust, greylist, budget].into_iter().flatten()
    }
}
