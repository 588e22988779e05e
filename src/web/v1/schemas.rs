//! Changes to the schemas of the API's description.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Schema};

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
