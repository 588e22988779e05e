//! Requests and answers that the control socket, the commands and later the website share.

pub mod json;
pub mod protocol;
pub mod validate;
