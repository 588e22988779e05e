//! Answers the requests of both doors of the HTTP server.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Shared;
use crate::api::{ApiError, Request, Row};
use crate::web::{Backend, Rows};

impl Backend for Shared {
    fn ask(&self, request: Request) -> BoxFuture<'_, Result<Vec<Row>, ApiError>> {
        Shared::ask(self, request).boxed()
    }

    fn run(self: Arc<Self>, request: Request, rows: Rows) -> BoxFuture<'static, Result<Vec<String>, ApiError>> {
        async move { Shared::run(&self, request, rows).await }.boxed()
    }

    fn changes(&self) -> u64 {
        Shared::changes(self)
    }
}
