//! Lists of servers from elsewhere: queries of master servers, and lists of other programs, in JSON
//! files and on websites. For `clqd servers import` and the imports of the configuration.
//!
//! The wire formats are in [`crate::proto::master`]. Nothing here adds servers: the result is
//! a list of URLs, and the number of addresses that cannot be servers.
//!
//! - [`source`]: the URL of a list, and its servers. - [`exchange`]: the query of a master over UDP.
//! - [`text_exchange`]: the query of a master over TCP. - [`http`]: lists on websites.
//! - [`server_list`]: their servers. - [`web_format`]: which format they have. - [`json_list`], [`bzflag_list`], [`fivem_stream`]: the formats.
//! - [`selection`]: from addresses to URLs.

// Bytes come from outside.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod bzflag_list;
mod exchange;
mod fivem_stream;
mod http;
mod json_list;
mod selection;
mod server_list;
mod source;
mod text_exchange;
mod web_format;

pub use self::http::user_agent;
pub use self::selection::{AddressRules, DroppedCounts, Selection, check_scheme};
pub use self::server_list::ServerList;
pub use self::source::{ListError, ListUrl, ListUrlError, fetch};
pub use self::web_format::{WebListError, is_json_list, parse_web_list};
