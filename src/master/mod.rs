//! Lists of servers from elsewhere: queries of master servers, and JSON lists of other programs,
//! in files and on websites. For `clqd servers import` and the imports of the configuration.
//!
//! The wire formats are in [`crate::proto::master`]. Nothing here adds servers: the result is
//! a list of URLs, and the number of addresses that cannot be servers.
//!
//! - [`source`]: the URL of a list, and its servers. - [`exchange`]: the query of a master over UDP.
//! - [`http`]: lists on websites. - [`json_list`]: their format. - [`selection`]: from addresses to URLs.

// Bytes come from outside.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod exchange;
mod http;
mod json_list;
mod selection;
mod source;

pub use self::http::user_agent;
pub use self::json_list::{JsonList, JsonListError};
pub use self::selection::{AddressRules, DroppedCounts, Selection, check_scheme};
pub use self::source::{ListError, ListUrl, ListUrlError, ServerList, fetch};
