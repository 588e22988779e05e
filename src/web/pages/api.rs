//! The description of the API for people.

use std::sync::LazyLock;

use maud::{Markup, html};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Schema, SchemaType};
use utoipa::openapi::{Array, Components, Object, OpenApi, RefOr, Required, Response};

use super::layout::{About, Page, PageResult};
use crate::web::answer::STATIC_MAX_AGE_S;
use crate::web::schemas::name_of;
use crate::web::v1::openapi::DESCRIPTION;

static BODY: LazyLock<Markup> = LazyLock::new(|| body(&DESCRIPTION));

pub(super) async fn page() -> PageResult {
    Ok(Page { max_age_s: STATIC_MAX_AGE_S, ..Page::new("API", BODY.clone()) }.with(About {
        without_script: true,
        is_english: true,
        ..About::default()
    }))
}

fn body(api: &OpenApi) -> Markup {
    let shared = shared_responses(api);
    html! {
        h1 { "API, version " (api.info.version) }
        (paragraphs(api.info.description.as_deref()))
        p { a href="/api/v1/openapi.json" { "This description for programs" } " (OpenAPI 3.1): generators of clients read it." }
        ul {
            @for (path, operation) in operations(api) {
                li { a href={ "#" (id(operation)) } { code { (path) } } ": " (summary(operation)) }
            }
            li { a href="#answers" { "Answers that every request may get" } }
            li { a href="#types" { "Types" } }
        }
        @for tag in api.tags.iter().flatten() {
            h2 { (tag.description.as_deref().unwrap_or(&tag.name).trim_end_matches('.')) }
            @for (path, operation) in operations(api).filter(|(_, operation)| operation.tags.iter().flatten().any(|name| *name == tag.name)) {
                (operation_section(path, operation, &shared))
            }
        }
        h2 #answers { "Answers that every request may get" }
        (responses_table(shared.iter().copied()))
        h2 #types { "Types" }
        @if let Some(Components { schemas, .. }) = &api.components {
            @for (name, schema) in schemas { (type_section(name, schema)) }
        }
    }
}

fn operations(api: &OpenApi) -> impl Iterator<Item = (&String, &Operation)> {
    api.paths.paths.iter().filter_map(|(path, item)| Some((path, item.get.as_ref()?)))
}

/// A status and its answer.
type StatusResponse<'a> = (&'a String, &'a RefOr<Response>);

/// The answers that are described in the same words for all operations.
fn shared_responses(api: &OpenApi) -> Vec<StatusResponse<'_>> {
    let Some((_, first)) = operations(api).next() else { return Vec::new() };
    let is_shared = |(status, response): &StatusResponse| {
        operations(api).all(|(_, operation)| operation.responses.responses.get(*status) == Some(*response))
    };
    first.responses.responses.iter().filter(is_shared).collect()
}

fn id(operation: &Operation) -> &str {
    operation.operation_id.as_deref().unwrap_or_default()
}

fn summary(operation: &Operation) -> &str {
    operation.summary.as_deref().unwrap_or_default()
}

fn operation_section(path: &str, operation: &Operation, shared: &[StatusResponse]) -> Markup {
    html! {
        h3 id=(id(operation)) { code { "GET " (path) } }
        p { (summary(operation)) "." }
        (paragraphs(operation.description.as_deref()))
        @if let Some(parameters) = operation.parameters.as_deref().filter(|parameters| !parameters.is_empty()) {
            table .fields {
                caption { "Parameters" }
                thead { tr { th scope="col" { "Name" } th scope="col" { "Type" } th scope="col" { "Meaning" } } }
                tbody { @for parameter in parameters { (parameter_rows(parameter)) } }
            }
        }
        (responses_table(operation.responses.responses.iter().filter(|response| !shared.contains(response))))
    }
}

fn responses_table<'a>(responses: impl Iterator<Item = StatusResponse<'a>>) -> Markup {
    html! {
        table .fields {
            caption { "Answers" }
            thead { tr { th scope="col" { "Status" } th scope="col" { "Content" } th scope="col" { "Meaning" } } }
            tbody {
                @for (status, response) in responses {
                    @if let RefOr::T(response) = response { (response_row(status, response)) }
                }
            }
        }
    }
}

fn parameter_rows(parameter: &Parameter) -> Markup {
    // Each field of the object is a parameter.
    if let Some(RefOr::T(Schema::Object(object))) = &parameter.schema
        && !object.properties.is_empty()
    {
        return html! {
            @for (name, schema) in &object.properties {
                tr {
                    th scope="row" { (name) }
                    td { (type_of(schema)) }
                    td { (text(description(schema))) }
                }
            }
        };
    }
    let is_in_path = matches!(parameter.parameter_in, ParameterIn::Path);
    let is_required = matches!(parameter.required, Required::True);
    html! {
        tr {
            th scope="row" { (parameter.name) }
            td {
                @if let Some(schema) = &parameter.schema { (type_of(schema)) }
                @if is_in_path { ", in the path" } @else if is_required { ", required" }
            }
            td { (text(parameter.description.as_deref().unwrap_or_default())) }
        }
    }
}

fn response_row(status: &str, response: &Response) -> Markup {
    html! {
        tr {
            th scope="row" { (status) }
            td {
                @for (media_type, content) in &response.content {
                    @if let Some(schema) = &content.schema { (type_of(schema)) " as " }
                    code { (media_type) }
                }
            }
            td { (text(&response.description)) }
        }
    }
}

fn type_section(name: &str, schema: &RefOr<Schema>) -> Markup {
    html! {
        h3 id={ "type-" (name) } { (name) }
        (paragraphs(Some(description(schema))))
        @match schema {
            RefOr::T(Schema::Object(object)) if !object.properties.is_empty() => {
                table .fields {
                    caption { "Fields" }
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Type" } th scope="col" { "Meaning" } } }
                    tbody { @for (field, schema) in &object.properties { (field_row(object, field, schema)) } }
                }
            }
            _ => p { (type_of(schema)) },
        }
    }
}

fn field_row(object: &Object, field: &String, schema: &RefOr<Schema>) -> Markup {
    html! {
        tr {
            th scope="row" { (field) }
            td { (type_of(schema)) @if !object.required.contains(field) { ", may be left out" } }
            td { (text(description(schema))) }
        }
    }
}

fn description(schema: &RefOr<Schema>) -> &str {
    let description = match schema {
        RefOr::Ref(of) => return &of.description,
        RefOr::T(Schema::Object(object)) => &object.description,
        RefOr::T(Schema::Array(array)) => &array.description,
        RefOr::T(Schema::OneOf(one)) => &one.description,
        RefOr::T(_) => &None,
    };
    description.as_deref().unwrap_or_default()
}

/// A type, with links to the types in it.
fn type_of(schema: &RefOr<Schema>) -> Markup {
    match schema {
        RefOr::Ref(of) => {
            let name = name_of(&of.ref_location);
            html! { a href={ "#type-" (name) } { (name) } }
        }
        RefOr::T(Schema::Array(array)) => array_type(array),
        RefOr::T(Schema::Object(object)) => object_type(object),
        RefOr::T(Schema::OneOf(one)) => html! {
            @for (n, item) in one.items.iter().enumerate() { @if n > 0 { " or " } (type_of(item)) }
        },
        RefOr::T(_) => html! { "any value" },
    }
}

fn array_type(array: &Array) -> Markup {
    html! {
        @if let (Some(min), Some(max)) = (array.min_items, array.max_items) && min == max { (types(&array.schema_type)) " of " (min) ": " }
        @else { (types(&array.schema_type)) " of " }
        @if let ArrayItems::RefOrSchema(item) = &array.items { (type_of(item)) }
    }
}

fn object_type(object: &Object) -> Markup {
    let limit = |number: &Option<utoipa::Number>| number.as_ref().map(number_text);
    html! {
        @if let Some(values) = &object.enum_values {
            @for (n, value) in values.iter().enumerate() { @if n > 0 { ", " } code { (value.as_str().unwrap_or_default()) } }
        } @else if let Some(AdditionalProperties::RefOr(values)) = object.additional_properties.as_deref() {
            "object: " (type_of(values)) " by name"
        } @else if !object.properties.is_empty() {
            "object with "
            @for (n, (field, schema)) in object.properties.iter().enumerate() {
                @if n > 0 { ", " }
                code { (field) } " (" (type_of(schema)) ")"
            }
        } @else {
            (types(&object.schema_type))
            @match (limit(&object.minimum), limit(&object.maximum)) {
                (Some(min), Some(max)) => { ", " (min) " to " (max) }
                (Some(min), None) if min != "0" => { ", from " (min) }
                _ => {}
            }
        }
        @if let Some(default) = &object.default {
            ", default " code { @match default.as_str() { Some(text) => (text), None => (default) } }
        }
    }
}

fn number_text(number: &utoipa::Number) -> String {
    match number {
        utoipa::Number::Int(number) => number.to_string(),
        utoipa::Number::UInt(number) => number.to_string(),
        utoipa::Number::Float(number) => number.to_string(),
    }
}

fn types(types: &SchemaType) -> String {
    let name = |kind| serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(str::to_owned));
    match types {
        SchemaType::Type(only) => name(only).unwrap_or_default(),
        SchemaType::Array(all) => all.iter().filter_map(name).collect::<Vec<_>>().join(" or "),
        SchemaType::AnyValue => "any value".to_owned(),
    }
}

fn paragraphs(description: Option<&str>) -> Markup {
    html! {
        @for paragraph in description.unwrap_or_default().split("\n\n").filter(|text| !text.is_empty()) { p { (text(paragraph)) } }
    }
}

/// Text with code between backticks.
fn text(marked: &str) -> Markup {
    html! {
        @for (n, part) in marked.split('`').enumerate() { @if n % 2 == 1 { code { (part) } } @else { (part) } }
    }
}
