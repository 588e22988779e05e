//! Answers requests of the web interface like those of the control socket, but without waiting for
//! a commit.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Shared;
use crate::api::{ApiError, Request, Row};
use crate::web::Backend;

impl Backend for Shared {
    fn ask(&self, request: Request) -> BoxFuture<'_, Result<Vec<Row>, ApiError>> {
        Shared::ask(self, request).boxed()
    }

    fn changes(&self) -> u64 {
        Shared::changes(self)
    }
}
