//! The schemas of the descriptions of the API. They are derived from the types that are serialised. This module adds what
//! the derived form lacks:
//!
//! - A type that contains the fields of another one is one object, not a combination of two.
//! - All fields of an answer are required: an unknown value is `null`. Exceptions are fields that are left out if there is
//!   no value.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, Object, OpenApi, RefOr, SchemaFormat};

use crate::api::json;

/// The prefix of a reference to a component.
pub(super) const SCHEMAS: &str = "#/components/schemas/";

/// Completes the types of answers. `left_out`: type and field of values that are left out instead of being `null`.
pub(super) fn complete(description: &mut OpenApi, left_out: &[(&str, &str)]) {
    let components = description.components.as_mut().expect("answers have types");
    let combined = components.schemas.clone();
    for schema in components.schemas.values_mut() {
        merge(schema, &combined);
        visit(schema, &mut require_fields);
        visit(schema, &mut describe_whole);
        visit(schema, &mut name_format);
    }
    for &(name, field) in left_out {
        let schema = components.schemas.get_mut(name).unwrap_or_else(|| panic!("there is no {name}"));
        let mut is_found = false;
        visit(schema, &mut |part| {
            if let RefOr::T(Schema::Object(object)) = part
                && let Some(schema) = object.properties.get_mut(field)
            {
                object.required.retain(|required| required != field);
                remove_null(schema);
                is_found = true;
            }
        });
        assert!(is_found, "{name} has no {field}");
    }
}

/// Completes the bodies of requests, and adds the types that only they contain. Their fields may be left out if they have
/// a default.
pub(super) fn complete_bodies(description: &mut OpenApi, types: Vec<(String, RefOr<Schema>)>) {
    let complete = |schema: &mut RefOr<Schema>| {
        visit(schema, &mut |part| {
            describe_whole(part);
            name_format(part);
        });
    };
    for operation in description.paths.paths.values_mut().filter_map(|path| path.post.as_mut()) {
        let bodies = operation.request_body.iter_mut().flat_map(|body| body.content.values_mut());
        bodies.filter_map(|content| content.schema.as_mut()).for_each(complete);
    }
    let components = description.components.as_mut().expect("answers have types");
    for (name, mut schema) in types {
        complete(&mut schema);
        components.schemas.entry(name).or_insert(schema);
    }
}

/// Makes one object of a combination of objects, and a choice of objects of a combination with a choice.
fn merge(schema: &mut RefOr<Schema>, components: &BTreeMap<String, RefOr<Schema>>) {
    let RefOr::T(Schema::AllOf(all)) = &*schema else { return };
    let (mut merged, mut choice) = (Object::new(), None);
    for part in &all.items {
        let mut part = match part {
            RefOr::Ref(of) => components[name_of(&of.ref_location)].clone(),
            RefOr::T(_) => part.clone(),
        };
        merge(&mut part, components);
        match part {
            RefOr::T(Schema::Object(part)) => {
                merged.properties.extend(part.properties);
                merged.description = part.description.or(merged.description);
            }
            RefOr::T(Schema::OneOf(part)) => choice = Some(part),
            part => panic!("not an object: {}", json::to_string(&part)),
        }
    }
    merged.description = all.description.clone().or(merged.description);
    *schema = match choice {
        None => RefOr::T(Schema::Object(merged)),
        Some(mut choice) => {
            for item in &mut choice.items {
                let RefOr::T(Schema::Object(item)) = item else { panic!("a choice of objects") };
                item.properties.extend(merged.properties.clone());
            }
            choice.description = merged.description.or(choice.description);
            RefOr::T(Schema::OneOf(choice))
        }
    };
}

/// The component of a reference.
pub(super) fn name_of(location: &str) -> &str {
    location.strip_prefix(SCHEMAS).unwrap_or_else(|| panic!("{location} is not a component"))
}

/// Formats as in the registry of OpenAPI, such as `uint32`.
pub(super) fn name_format(schema: &mut RefOr<Schema>) {
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

pub(super) fn remove_null(schema: &mut RefOr<Schema>) {
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

/// Removes the types that no request or answer contains: those that were merged into others.
pub(super) fn remove_unused(description: &mut utoipa::openapi::OpenApi) {
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
    let paths = description.paths.paths.values_mut();
    for operation in paths.flat_map(|path| path.get.iter_mut().chain(path.post.iter_mut())) {
        let bodies = operation.request_body.iter_mut().flat_map(|body| body.content.values_mut());
        bodies.filter_map(|content| content.schema.as_mut()).for_each(|schema| collect(schema, &mut found));
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

/// Calls `f` for a schema and all of its parts, without following references.
pub(super) fn visit(schema: &mut RefOr<Schema>, f: &mut impl FnMut(&mut RefOr<Schema>)) {
    f(schema);
    match schema {
        RefOr::T(Schema::Object(object)) => {
            object.properties.values_mut().for_each(|part| visit(part, f));
            if let Some(AdditionalProperties::RefOr(part)) = object.additional_properties.as_deref_mut() {
                visit(part, f);
            }
            if let Some(names) = object.property_names.as_deref_mut() {
                let mut part = RefOr::T(names.clone());
                visit(&mut part, f);
            }
        }
        RefOr::T(Schema::Array(array)) => {
            if let ArrayItems::RefOrSchema(part) = &mut array.items {
                visit(part, f);
            }
        }
        RefOr::T(Schema::OneOf(one)) => one.items.iter_mut().for_each(|part| visit(part, f)),
        RefOr::T(Schema::AllOf(all)) => all.items.iter_mut().for_each(|part| visit(part, f)),
        RefOr::T(Schema::AnyOf(any)) => any.items.iter_mut().for_each(|part| visit(part, f)),
        _ => (),
    }
}

/// The schema of an object without some fields. Its parts must not be references.
pub(super) fn without(mut schema: RefOr<Schema>, fields: &[&str]) -> RefOr<Schema> {
    visit(&mut schema, &mut |part| {
        if let RefOr::T(Schema::Object(object)) = part {
            object.properties.retain(|name, _| !fields.contains(&name.as_str()));
        }
    });
    schema
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;

    use super::*;

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

    /// What a description does not describe, and references that lead nowhere.
    pub(in crate::web) fn faults(document: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |is_right: bool, fault: String| {
            if !is_right {
                faults.push(fault);
            }
        };
        let is_sentence = |text: Option<&Value>| text.and_then(Value::as_str).is_some_and(|text| text.ends_with('.'));
        let mut ids = BTreeSet::new();
        objects(document, "", &mut |place, object| {
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
        faults
    }
}
