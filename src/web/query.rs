//! Parameters in the query of a URL. Unknown ones are errors: a misspelt filter must not return
//! everything.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::limits::{ROWS_PER_PAGE_DEFAULT, ROWS_PER_PAGE_MAX};
use super::problem::Problem;
use crate::limits::NAME_BYTES_MAX;
use crate::model::row::Ranking;
use crate::model::server_page::{ServerCursor, ServerOrder};
use crate::model::url::ServerUrl;
use crate::nearest::nearest;

/// Parses the query of a URI.
pub(super) fn parse<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let parsed = Query::<T>::try_from_uri(uri);
    parsed.map(|Query(query)| query).map_err(|error| Problem::bad_request(error.body_text()))
}

/// Refuses any parameter.
pub(super) fn no_parameters(uri: &Uri) -> Result<(), Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct None {}
    parse::<None>(uri).map(|None {}| ())
}

/// The number of rows of a page, from the parameter `name`.
pub(super) fn rows(name: &str, count: Option<u32>) -> Result<u32, Problem> {
    let count = count.unwrap_or(ROWS_PER_PAGE_DEFAULT);
    if (1..=ROWS_PER_PAGE_MAX).contains(&count) {
        return Ok(count);
    }
    Err(Problem::bad_request(format!("{name} is {count}; expected 1 to {ROWS_PER_PAGE_MAX}")))
}

/// The description of such a parameter.
pub(super) struct RowCount;

impl PartialSchema for RowCount {
    fn schema() -> RefOr<Schema> {
        let range = ObjectBuilder::new().minimum(Some(1)).maximum(Some(ROWS_PER_PAGE_MAX));
        let format = SchemaFormat::KnownFormat(KnownFormat::UInt32);
        range.schema_type(Type::Integer).format(Some(format)).default(Some(ROWS_PER_PAGE_DEFAULT.into())).into()
    }
}

impl ToSchema for RowCount {}

/// The description of a parameter that is one of some names.
pub(super) fn names_schema<const N: usize>(names: [&'static str; N], default: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).default(Some(default.into())).into()
}

/// Refuses a text, the value of a parameter, that is longer than any name.
pub(super) fn name_length(parameter: &str, text: &str) -> Result<(), Problem> {
    match text.len() <= NAME_BYTES_MAX {
        true => Ok(()),
        false => {
            let detail = format!("{parameter} has {} bytes; names have at most {NAME_BYTES_MAX}", text.len());
            Err(Problem::bad_request(detail))
        }
    }
}

/// A server URL.
pub(super) fn server_url(text: &str) -> Result<ServerUrl, Problem> {
    ServerUrl::parse(text).map_err(|error| Problem::bad_request(error.to_string()))
}

/// The key of a player.
pub(super) fn player_key(text: &str) -> Result<u32, Problem> {
    text.parse().map_err(|_| Problem::bad_request("the key of a player is a number"))
}

/// The end of the page before.
pub(super) fn server_cursor(text: &str) -> Result<ServerCursor, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("after: {error}")))
}

/// An order of servers.
pub(super) fn server_order(text: &str) -> Result<ServerOrder, Problem> {
    one_of("order", text, ServerOrder::ALL.map(|order| (order.name(), order)))
}

/// A ranking.
pub(super) fn ranking(text: &str) -> Result<Ranking, Problem> {
    one_of("ranking", text, Ranking::ALL.map(|ranking| (ranking.name(), ranking)))
}

/// The value with the name `text`.
pub(super) fn one_of<T>(
    parameter: &str,
    text: &str,
    values: impl IntoIterator<Item = (&'static str, T)>,
) -> Result<T, Problem> {
    let mut names = Vec::new();
    for (name, value) in values {
        if name == text {
            return Ok(value);
        }
        names.push(name);
    }
    let expected = match nearest(text, names.iter().copied()) {
        Some(right) => format!("did you mean {right}?"),
        None => format!("expected one of {}", names.join(", ")),
    };
    Err(Problem::bad_request(format!("{parameter}: {expected}")))
}
