//! Requests and responses, shared by the control socket, the commands and later the
//! website.

pub mod json;
pub mod protocol;
pub mod validate;
