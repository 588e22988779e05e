//! `/metrics`.

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::registry::Registry;

use super::daemon;
use super::format::Format;
use crate::web::context::WebContext;

pub(in crate::web) async fn metrics(State(context): State<Arc<WebContext>>, headers: HeaderMap) -> Response {
    let mut registry = Registry::with_prefix("clqd");
    let status = context.status().await;
    // If the engine does not answer, its metrics are absent, so that no graph shows old values.
    daemon::register_responding(&mut registry, status.is_ok());
    if let Ok(status) = status {
        daemon::register(&mut registry, &status);
    }
    let mut text = String::with_capacity(16 * 1024);
    encode(&mut text, &[&registry, &context.metrics.registry]).expect("writing to memory does not fail");
    let format = Format::accepted_by(&headers);
    let text = format.text_of(&text);
    ([(CONTENT_TYPE, format.content_type()), (CACHE_CONTROL, "no-store"), (VARY, "accept")], text).into_response()
}

fn encode(text: &mut String, registries: &[&Registry]) -> fmt::Result {
    for registry in registries {
        encode_registry(text, registry)?;
    }
    encode_eof(text)
}
