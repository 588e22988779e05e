//! `/api/v1/openapi.json`: the description of the API (OpenAPI 3.1). It is derived from the handlers
//! and the types that they serialise. This module adds what the derived form lacks:
//!
//! - A type that contains the fields of another one is one object, not a combination of two.
//! - All fields of an answer are required: an unknown value is `null`. Exceptions are
//!   [`FIELDS_LEFT_OUT`].
//! - A parameter may be left out, but is not `null`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use axum::http::Uri;
use axum::response::Response as HttpResponse;
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{AdditionalProperties, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, Object, RefOr, Required, SchemaFormat};

use super::responses::Cached;
use super::schemas::visit;
use super::{boards, live, maps, players, search, series, servers, status};
use crate::api::json;
use crate::web::answer::{STATIC_MAX_AGE_S, answer};
use crate::web::problem::{Problem, ProblemBody};
use crate::web::query;

/// The prefix of a reference to a component.
const SCHEMAS: &str = "#/components/schemas/";

/// Fields of answers that are left out if there is no value, instead of being `null`: type and field.
const FIELDS_LEFT_OUT: [(&str, &str); 9] = [
    ("BoardHead", "first_score_ms"),
    ("BoardHead", "page"),
    ("BoardHead", "tie_breaker"),
    ("LiveServer", "round_end"),
    ("ResyncProgress", "week"),
    ("RoundEnds", "off"),
    ("RoundEnds", "off_until_ms"),
    ("Server", "recent"),
    ("ServerDetail", "round_end"),
];

/// Parameters of which at most one may be given: path and group.
const EXCLUSIVE: [(&str, Exclusive); 3] = [
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
        status::status,
        series::overview,
        series::series,
        live::live,
        servers::list,
        servers::show,
        servers::best,
        boards::board,
        boards::windows,
        players::players,
        players::by_key,
        search::search,
        maps::list,
        maps::show,
        openapi,
    ),
    components(schemas(ProblemBody)),
)]
struct Derived;

/// The description.
pub(in crate::web) static DESCRIPTION: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(|| {
    let mut description = Derived::openapi();
    let components = description.components.as_mut().expect("answers have types");
    let combined = components.schemas.clone();
    for schema in components.schemas.values_mut() {
        merge(schema, &combined);
        visit(schema, &mut require_fields);
        visit(schema, &mut describe_whole);
        visit(schema, &mut name_format);
    }
    for (name, field) in FIELDS_LEFT_OUT {
        let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(name) else {
            panic!("{name} is not an object")
        };
        object.required.retain(|required| required != field);
        let schema = object.properties.get_mut(field).unwrap_or_else(|| panic!("{name} has no {field}"));
        remove_null(schema);
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
    remove_unused(&mut description);
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

/// Makes one object of a combination of objects.
fn merge(schema: &mut RefOr<Schema>, components: &BTreeMap<String, RefOr<Schema>>) {
    let RefOr::T(Schema::AllOf(all)) = &*schema else { return };
    let mut merged = Object::new();
    for part in &all.items {
        let mut part = match part {
            RefOr::Ref(of) => components[name_of(&of.ref_location)].clone(),
            RefOr::T(_) => part.clone(),
        };
        merge(&mut part, components);
        let RefOr::T(Schema::Object(part)) = part else { panic!("not an object: {}", json::to_string(&part)) };
        merged.properties.extend(part.properties);
        merged.description = part.description.or(merged.description);
    }
    merged.description = all.description.clone().or(merged.description);
    *schema = RefOr::T(Schema::Object(merged));
}

/// The component of a reference.
pub(in crate::web) fn name_of(location: &str) -> &str {
    location.strip_prefix(SCHEMAS).unwrap_or_else(|| panic!("{location} is not a component"))
}

/// Formats as in the registry of OpenAPI, such as `uint32`.
fn name_format(schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    let name = match object.format {
        Some(SchemaFormat::KnownFormat(KnownFormat::UInt8)) => "uint8",
        Some(SchemaFormat::KnownFormat(KnownFormat::UInt16)) => "uint16",
        Some(SchemaFormat::KnownFormat(KnownFormat::UInt32)) => "uint32",
        Some(SchemaFormat::KnownFormat(KnownFormat::UInt64)) => "uint64",
        _ => return,
    };
    object.format = Some(SchemaFormat::Custom(name.to_owned()));
}

fn require_fields(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema {
        object.required = object.properties.keys().cloned().collect();
    }
}

/// Adds missing descriptions of fields. That of a field that may be `null` is moved from its type to the
/// field.
fn describe_whole(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema {
        // The tag of an enum.
        for field in object.properties.values_mut() {
            if let RefOr::T(Schema::Object(Object {
                description: description @ None, enum_values: Some(values), ..
            })) = field
                && values.len() == 1
            {
                *description = Some("The kind of the object.".to_owned());
            }
        }
    }
    let RefOr::T(Schema::OneOf(one)) = schema else { return };
    for item in &mut one.items {
        if let RefOr::Ref(of) = item
            && !of.description.is_empty()
        {
            one.description = Some(std::mem::take(&mut of.description));
        }
    }
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

fn remove_null(schema: &mut RefOr<Schema>) {
    let is_null = |schema: &RefOr<Schema>| matches!(schema, RefOr::T(Schema::Object(object)) if matches!(object.schema_type, SchemaType::Type(Type::Null)));
    let only = |types: &mut SchemaType| {
        if let SchemaType::Array(all) = types {
            all.retain(|kind| !matches!(kind, Type::Null));
            if let [only] = &all[..] {
                *types = SchemaType::Type(only.clone());
            }
        }
    };
    match schema {
        RefOr::T(Schema::Object(object)) => only(&mut object.schema_type),
        RefOr::T(Schema::Array(array)) => only(&mut array.schema_type),
        RefOr::T(Schema::OneOf(one)) => {
            one.items.retain(|item| !is_null(item));
            if let [only] = &mut one.items[..] {
                if let (RefOr::Ref(of), Some(description)) = (&mut *only, one.description.take()) {
                    of.description = description;
                }
                *schema = only.clone();
            }
        }
        _ => (),
    }
}

/// Removes the types that no answer contains: those that were merged into others.
fn remove_unused(description: &mut utoipa::openapi::OpenApi) {
    let components = description.components.as_mut().expect("answers have types");
    let mut used = BTreeSet::new();
    let mut found: Vec<String> = Vec::new();
    let collect = |schema: &mut RefOr<Schema>, found: &mut Vec<String>| {
        visit(schema, &mut |part| {
            if let RefOr::Ref(of) = part {
                found.push(name_of(&of.ref_location).to_owned());
            }
        });
    };
    for operation in description.paths.paths.values_mut().filter_map(|path| path.get.as_mut()) {
        let responses = operation.responses.responses.values_mut();
        let contents = responses.flat_map(|response| match response {
            RefOr::T(response) => response.content.values_mut(),
            RefOr::Ref(_) => panic!("responses are no components"),
        });
        contents.filter_map(|content| content.schema.as_mut()).for_each(|schema| collect(schema, &mut found));
        let parameters = operation.parameters.iter_mut().flatten();
        parameters.filter_map(|parameter| parameter.schema.as_mut()).for_each(|schema| collect(schema, &mut found));
    }
    while let Some(name) = found.pop() {
        if used.insert(name.clone()) {
            let schema = components.schemas.get_mut(&name).unwrap_or_else(|| panic!("there is no {name}"));
            collect(schema, &mut found);
        }
    }
    components.schemas.retain(|name, _| used.contains(name));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::web::limits::URI_BYTES_MAX;

    /// All objects of a document, each with its place in it.
    fn objects<'a>(value: &'a Value, place: &str, f: &mut impl FnMut(&str, &'a serde_json::Map<String, Value>)) {
        match value {
            Value::Object(object) => {
                f(place, object);
                object.iter().for_each(|(name, part)| objects(part, &format!("{place}/{name}"), f));
            }
            Value::Array(parts) => {
                parts.iter().enumerate().for_each(|(n, part)| objects(part, &format!("{place}/{n}"), f))
            }
            _ => (),
        }
    }

    #[test]
    fn everything_is_described_and_every_reference_leads_to_a_type() {
        let document: Value = serde_json::from_slice(&JSON).expect("JSON");
        let mut faults = Vec::new();
        let mut check = |is_right: bool, fault: String| {
            if !is_right {
                faults.push(fault);
            }
        };
        let is_sentence = |text: Option<&Value>| text.and_then(Value::as_str).is_some_and(|text| text.ends_with('.'));
        let mut ids = BTreeSet::new();
        objects(&document, "", &mut |place, object| {
            if let Some(location) = object.get("$ref") {
                let target = location.as_str().and_then(|location| document.pointer(location.strip_prefix('#')?));
                check(target.is_some_and(Value::is_object), format!("{place}: {location} leads nowhere"));
            }
            if let Some(Value::Object(fields)) = object.get("properties") {
                for (name, field) in fields {
                    check(is_sentence(field.get("description")), format!("{place}: {name} has no description"));
                }
            }
            if object.get("type").is_some_and(|kind| kind == "string") && place.contains("/parameters/") {
                let is_limited = object.contains_key("maxLength") || object.contains_key("enum");
                check(is_limited, format!("{place} has no longest string"));
            }
            if let (Some(name), Some(_)) = (object.get("name"), object.get("in")) {
                check(is_sentence(object.get("description")), format!("{place}: {name} has no description"));
                check(!object["schema"].to_string().contains("null"), format!("{place}: {name} may be null"));
            }
            if let Some(id) = object.get("operationId") {
                check(ids.insert(id.to_string()), format!("{id} occurs twice"));
            }
            check(!object.contains_key("allOf"), format!("{place} is not merged"));
        });
        for (name, schema) in document["components"]["schemas"].as_object().expect("types") {
            check(is_sentence(schema.get("description")), format!("{name} has no description"));
        }
        assert!(faults.is_empty(), "{faults:#?}");
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
