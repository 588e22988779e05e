//! `/api/v1/openapi-admin.json`: the description of the requests of admins (OpenAPI 3.1), from the types of all requests.

use std::sync::LazyLock;

use axum::http::Uri;
use axum::response::Response as HttpResponse;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr, Required,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::api::{Access, AnswerLine, Line, LineTypes, REQUESTS, RequestInfo, RequestTypes, json};
use crate::web::answer::{STATIC_MAX_AGE_S, answer};
use crate::web::problem::{PROBLEM_JSON, Problem, ProblemBody};
use crate::web::{query, schemas};

/// The name of the authentication with a token.
const TOKEN: &str = "token";

/// Fields of answers that are left out if there is no value, instead of being `null`: type and field.
const FIELDS_LEFT_OUT: [(&str, &str); 29] = [
    ("AdminServer", "recent"),
    ("AdminServerDetail", "recent"),
    ("AdminServerDetail", "elastic"),
    ("ArchiveDifference", "column"),
    ("ArchiveDifference", "expected"),
    ("ArchiveDifference", "found"),
    ("ArchiveDifference", "server"),
    ("ArchiveDifference", "week"),
    ("ArchiveVerified", "resend_weeks"),
    ("BoardHead", "first_score_ms"),
    ("BoardHead", "page"),
    ("BoardHead", "range"),
    ("BoardHead", "tie_breaker"),
    ("BoardWindow", "stored"),
    ("Correction", "captures"),
    ("ExportedSession", "points"),
    ("Progress", "expected_ms"),
    ("Progress", "servers"),
    ("ElasticScans", "off"),
    ("ServerChange", "reason"),
    ("ServerScan", "answers_at"),
    ("ServerScan", "game"),
    ("ServerScan", "hostname"),
    ("ServerScan", "map"),
    ("ServerScan", "players"),
    ("ServerScan", "reason"),
    ("ServerScan", "slots"),
    ("Session", "points"),
    ("TopPlayers", "tie_breaker"),
];

/// The description.
static DESCRIPTION: LazyLock<OpenApi> = LazyLock::new(|| {
    let (mut paths, mut components) = (PathsBuilder::new(), ComponentsBuilder::new());
    let mut types_of_bodies = Vec::new();
    for request in REQUESTS {
        let RequestTypes { body, body_types, mut answer } = (request.describe)();
        AnswerLine::describe(&mut answer);
        types_of_bodies.extend(body_types);
        let operation = operation(request, body, &answer);
        paths = paths.path(request.path(), PathItem::new(HttpMethod::Post, operation));
        for (name, schema) in answer.schemas {
            components = components.schema(name, schema);
        }
    }
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components = components.schema(ProblemBody::name(), ProblemBody::schema()).security_scheme(TOKEN, token);
    let info = InfoBuilder::new().title("clqd, requests of admins").version(env!("CARGO_PKG_VERSION")).description(Some(
        "All requests are POST with the fields as a JSON object; without a body all fields have their defaults. They are \
         sent over the control socket, or with a token over the port. An answer is JSON lines, each an object with its \
         `kind`; a line may also be of the kind `progress`, `notes` (the last line) or `error` (the last line of an answer \
         that failed after its first line). A field that ends in `_ms` is a time in Unix milliseconds or a duration in \
         milliseconds. New fields and kinds may be added at any time.",
    ));
    let mut description =
        OpenApiBuilder::new().info(info.build()).paths(paths.build()).components(Some(components.build())).build();
    schemas::complete(&mut description, &FIELDS_LEFT_OUT);
    schemas::complete_bodies(&mut description, types_of_bodies);
    schemas::remove_unused(&mut description);
    description
});

fn operation(request: &RequestInfo, body: RefOr<Schema>, answer: &LineTypes) -> Operation {
    let about = match &body {
        RefOr::T(Schema::Object(object)) => object.description.clone().unwrap_or_default(),
        _ => String::new(),
    };
    let (summary, more) = about.split_once(". ").unwrap_or((about.trim_end_matches('.'), ""));
    let needed = match request.access {
        Access::Read => "A token needs `read`.".to_owned(),
        Access::Change(permission) => format!("A token needs `{}`.", permission.name()),
        Access::Machine => "Only over the control socket.".to_owned(),
    };
    let security = (request.access != Access::Machine).then(|| SecurityRequirement::new(TOKEN, [""; 0]));
    let line = answer.lines.iter().fold(OneOfBuilder::new(), |one, name| one.item(Ref::from_schema_name(&**name)));
    let problem = Content::new(Some(Ref::from_schema_name(ProblemBody::name())));
    OperationBuilder::new()
        .tag(request.name.split_once('.').map_or(request.name, |(noun, _)| noun))
        .operation_id(Some(request.name.replace('.', "_")))
        .summary(Some(summary.replace('\n', " ")))
        .description(Some(if more.is_empty() { needed } else { format!("{more}\n\n{needed}") }))
        .request_body(Some(
            RequestBodyBuilder::new()
                .content("application/json", Content::new(Some(body)))
                .required(Some(Required::False))
                .build(),
        ))
        .response(
            "200",
            ResponseBuilder::new()
                .description("JSON lines; the schema is that of one line.")
                .content("application/jsonl", Content::new(Some(line)))
                .build(),
        )
        .response(
            "default",
            ResponseBuilder::new().description("Why the request failed.").content(PROBLEM_JSON, problem).build(),
        )
        .securities(security.map(|security| [security]))
        .build()
}

static JSON: LazyLock<Vec<u8>> = LazyLock::new(|| json::to_vec(&*DESCRIPTION));

/// Returns the description of the requests of admins
#[utoipa::path(get, path = "/api/v1/openapi-admin.json", operation_id = "get_openapi_admin", tag = "description",
    responses((status = 200, description = "The description of the requests of admins, OpenAPI 3.1.", body = Object), crate::web::v1::responses::Cached))]
pub(in crate::web) async fn openapi(uri: Uri) -> Result<HttpResponse, Problem> {
    query::no_parameters(&uri)?;
    answer("application/json", JSON.clone(), STATIC_MAX_AGE_S)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_request_is_described_completely() {
        let document: Value = serde_json::from_slice(&JSON).expect("JSON");
        assert_eq!(schemas::tests::faults(&document), [""; 0]);
        let described: BTreeSet<&String> = document["paths"].as_object().expect("paths").keys().collect();
        let paths: Vec<String> = REQUESTS.iter().map(RequestInfo::path).collect();
        assert_eq!(described, paths.iter().collect());
    }
}
