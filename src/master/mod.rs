//! Lists of servers from elsewhere: queries of master servers, and files that other programs
//! write. For `clqd servers import` and the imports of the configuration.
//!
//! The wire formats are in [`crate::proto::master`]. Nothing here adds servers: the result is
//! a list of URLs, and the number of addresses that cannot be servers.
//!
//! - [`exchange`]: the query of a master over UDP. - [`json_list`]: files.
//! - [`selection`]: from addresses to URLs.

mod exchange;
mod json_list;
mod selection;

pub use self::exchange::{MasterError, Timing, fetch};
pub use self::json_list::{JsonList, JsonListError};
pub use self::selection::{AddressRules, DroppedCounts, Selection, check_scheme};
