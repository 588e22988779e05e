//! `/api/v1/openapi.json`: the description of the visitors' API (OpenAPI 3.1). It is derived from the handlers
//! and the types that they serialise; [`schemas`] and this module add what the derived form lacks. A parameter may be left
//! out, but is not `null`.

use std::sync::LazyLock;

use axum::http::Uri;
use axum::response::Response as HttpResponse;
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{AdditionalProperties, Schema, Type};
use utoipa::openapi::{Object, RefOr, Required};

use super::responses::Cached;
use super::{boards, live, maps, players, search, servers, sessions, site};
use crate::api::json;
use crate::web::answer::{STATIC_MAX_AGE_S, answer};
use crate::web::problem::{Problem, ProblemBody};
use crate::web::schemas::{self, name_format, remove_null, visit};
use crate::web::{admin, query};

/// Fields of answers that are left out if there is no value, instead of being `null`: type and field.
const FIELDS_LEFT_OUT: [(&str, &str); 9] = [
    ("BoardHead", "first_score_ms"),
    ("BoardHead", "page"),
    ("BoardHead", "tie_breaker"),
    ("LiveServer", "elastic"),
    ("ResyncProgress", "week"),
    ("ElasticScans", "off"),
    ("Server", "recent"),
    ("ServerDetail", "elastic"),
    ("Session", "points"),
];

/// Fields that only other answers have: type and field.
const FIELDS_NEVER_SENT: [(&str, &str); 4] =
    [("BoardHead", "range"), ("BoardWindow", "stored"), ("LiveServer", "recent"), ("ServerDetail", "recent")];

/// Parameters of which at most one may be given: path and group.
const EXCLUSIVE: [(&str, Exclusive); 4] = [
    (
        "/api/v1/boards",
        Exclusive {
            name: "scope",
            description: "Whose board: exactly one of these parameters.",
            parameters: &["server", "game", "tag"],
            is_required: true,
        },
    ),
    (
        "/api/v1/boards",
        Exclusive {
            name: "part",
            description: "Which part of the board: at most one of these parameters.",
            parameters: &["start", "player", "player_key", "after", "before"],
            is_required: false,
        },
    ),
    (
        "/api/v1/sessions",
        Exclusive {
            name: "of",
            description: "Whose sessions: exactly one of these parameters.",
            parameters: &["server", "player_key"],
            is_required: true,
        },
    ),
    (
        "/api/v1/series",
        Exclusive {
            name: "scope",
            description: "Whose series: at most one of these parameters; without one, of all servers.",
            parameters: &["game", "tag"],
            is_required: false,
        },
    ),
];

/// Parameters that are described as one object, the only form in which OpenAPI can say that they exclude
/// each other. In a query each of its fields is a parameter (style `form`, exploded).
struct Exclusive {
    name: &'static str,
    description: &'static str,
    parameters: &'static [&'static str],
    is_required: bool,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "clqd",
        description = "Game servers and the rankings of their players. The API is read-only and needs no \
                       authentication.\n\nA field that ends in `_ms` is a time in Unix milliseconds or a duration in \
                       milliseconds; `_s` is seconds. `null` is \"unknown\" or \"none\". Numbers of servers, players \
                       and maps never change. Names of servers, players and maps are text that strangers have \
                       chosen. New fields and values may be added at any time; fields are not removed or renamed \
                       within `v1`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
        version = env!("CARGO_PKG_VERSION"),
    ),
    servers((url = "/", description = "This site.")),
    tags(
        (name = "site", description = "The whole site, and the daemon."),
        (name = "servers", description = "Game servers."),
        (name = "boards", description = "Rankings of players in windows of time."),
        (name = "players", description = "Players. A player is a name in a game."),
        (name = "maps", description = "Maps over time."),
        (name = "description", description = "This description."),
    ),
    paths(
        site::status,
        site::overview,
        site::series,
        live::live,
        servers::list,
        servers::show,
        servers::best,
        boards::board,
        boards::windows,
        players::players,
        players::by_key,
        sessions::list,
        search::search,
        maps::list,
        maps::show,
        openapi,
        admin::openapi::openapi,
    ),
    components(schemas(ProblemBody)),
)]
struct Derived;

/// The description.
pub(in crate::web) static DESCRIPTION: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(|| {
    let mut description = Derived::openapi();
    schemas::complete(&mut description, &FIELDS_LEFT_OUT);
    for (name, field) in FIELDS_NEVER_SENT {
        let schemas = &mut description.components.as_mut().expect("answers have types").schemas;
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(name) else { panic!("{name} is not an object") };
        object.properties.shift_remove(field).unwrap_or_else(|| panic!("{name} has no {field}"));
        object.required.retain(|required| required != field);
    }
    for (path, group) in EXCLUSIVE {
        let operation = description.paths.paths.get_mut(path).and_then(|path| path.get.as_mut());
        make_exclusive(operation.unwrap_or_else(|| panic!("there is no {path}")), &group);
    }
    for operation in description.paths.paths.values_mut().filter_map(|path| path.get.as_mut()) {
        for parameter in operation.parameters.iter_mut().flatten() {
            if let Some(schema) = &mut parameter.schema {
                remove_null(schema);
                visit(schema, &mut name_format);
            }
        }
    }
    schemas::remove_unused(&mut description);
    description
});

static JSON: LazyLock<Vec<u8>> = LazyLock::new(|| json::to_vec(&*DESCRIPTION));

/// Returns this description
#[utoipa::path(get, path = "/api/v1/openapi.json", operation_id = "get_openapi", tag = "description",
    responses((status = 200, description = "The description of the API, OpenAPI 3.1.", body = Object), Cached))]
pub(super) async fn openapi(uri: Uri) -> Result<HttpResponse, Problem> {
    query::no_parameters(&uri)?;
    answer("application/json", JSON.clone(), STATIC_MAX_AGE_S)
}

fn make_exclusive(operation: &mut Operation, group: &Exclusive) {
    let parameters = operation.parameters.as_mut().expect("parameters");
    let mut object = Object::new();
    for name in group.parameters {
        let at = parameters.iter().position(|parameter| parameter.name == *name);
        let parameter = parameters.remove(at.unwrap_or_else(|| panic!("there is no {name}")));
        let mut schema = parameter.schema.expect("a schema");
        remove_null(&mut schema);
        if let RefOr::T(Schema::Object(field)) = &mut schema {
            field.description = parameter.description;
        }
        object.properties.insert((*name).to_owned(), schema);
    }
    object.schema_type = Type::Object.into();
    object.min_properties = group.is_required.then_some(1);
    object.max_properties = Some(1);
    object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
    let required = if group.is_required { Required::True } else { Required::False };
    let described = ParameterBuilder::new()
        .name(group.name)
        .parameter_in(ParameterIn::Query)
        .required(required)
        .description(Some(group.description))
        .style(Some(ParameterStyle::Form))
        .explode(Some(true))
        .schema(Some(RefOr::T(Schema::Object(object))));
    parameters.insert(0, described.build());
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::web::limits::URI_BYTES_MAX;

    #[test]
    fn everything_is_described_and_every_reference_leads_to_a_type() {
        assert_eq!(schemas::tests::faults(&serde_json::from_slice(&JSON).expect("JSON")), [""; 0]);
    }

    /// The longest value that a schema allows, percent-encoded: a character has up to four bytes, and those
    /// of a pattern are ASCII.
    fn value_bytes_max(schema: &Value) -> usize {
        let names = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::len);
        match schema["type"].as_str().expect("one type") {
            "string" => names.max().unwrap_or_else(|| {
                let chars = schema["maxLength"].as_u64().expect("a longest string") as usize;
                3 * chars * if schema["pattern"].is_string() { 1 } else { 4 }
            }),
            "integer" => 20,
            "boolean" => "false".len(),
            kind => panic!("a parameter is of the type {kind}"),
        }
    }

    #[test]
    fn path_and_query_of_every_valid_request_are_accepted() {
        let document: Value = serde_json::from_slice(&JSON).expect("JSON");
        let mut longest = 0;
        for (path, methods) in document["paths"].as_object().expect("paths") {
            let parameters = methods["get"]["parameters"].as_array().into_iter().flatten();
            let bytes = parameters.map(|parameter| {
                let name = parameter["name"].as_str().expect("a name");
                let schema = &parameter["schema"];
                match schema["properties"].as_object() {
                    // Only one field of the object becomes a parameter of the query.
                    Some(fields) => {
                        let bytes = fields.iter().map(|(name, field)| name.len() + value_bytes_max(field));
                        2 + bytes.max().expect("fields")
                    }
                    None => 2 + name.len() + value_bytes_max(schema),
                }
            });
            let bytes = path.len() + bytes.sum::<usize>();
            assert!(bytes <= URI_BYTES_MAX, "{path}: {bytes} bytes");
            longest = longest.max(bytes);
        }
        assert!(longest > URI_BYTES_MAX / 2, "the limit is more than twice as large as needed: {longest} bytes");
    }
}
