//! Wire formats of master servers, which list the addresses of game servers.
//!
//! Most masters use UDP. A [`MasterQuery`] is the state machine of one query: it returns the next request, takes
//! each datagram of the master, and ends with the addresses. It uses no socket and no clock;
//! the module `master` sends, waits and repeats. Some masters send one text over TCP: a [`TextMaster`] decodes it.
//!
//! Bytes from the network never cause a panic, and at most
//! [`MASTER_ADDRESSES_MAX`](crate::limits::MASTER_ADDRESSES_MAX) addresses are kept.
//!
//! - [`url`]: which master is queried for what. - [`response`]: the datagrams of each protocol.
//! - [`query`]: the requests, and the parts and pages of a list. - [`text_list`]: the texts of masters over TCP.

mod query;
mod response;
mod text_list;
mod url;

pub use self::query::{MasterList, MasterQuery, MasterStep};
pub use self::response::MasterRefusal;
pub use self::text_list::{StreamEnd, TextList, TextMaster};
pub use self::url::{MasterKind, MasterUrl, MasterUrlError};
