//! Keys: numbers that identify names (docs/rules.md section 1).
//!
//! The engine assigns a key; it becomes durable with the commit that first uses it. A week's
//! key is computed, see [`crate::model::calendar`].

use serde::{Deserialize, Serialize};

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

key!(
    /// A player: one normalised name within one game. First key is 1.
    PlayerKey
);
key!(
    /// A server: one canonical URL. First key is 1.
    ServerKey
);
key!(
    /// A map name. First key is 1.
    MapKey
);
key!(
    /// A game name, such as `baseq3`. First key is 1.
    GameKey
);
key!(
    /// A tag that an admin assigned to servers. First key is 1.
    TagKey
);
key!(
    /// A week: whole weeks since Monday 1969-12-29, local time of the configured zone.
    WeekKey
);
