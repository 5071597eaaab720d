//! Shapes of schemas that several types have.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::patterns;

/// An object with all of these members and no other; an array of them, if they have no names.
pub(super) fn record(members: Vec<(&str, Value)>) -> Value {
    if !has_names(&members) {
        return list(members);
    }
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// An array of all of these members in order.
pub(super) fn list(members: Vec<(&str, Value)>) -> Value {
    let (count, schemas) = (members.len(), members.into_iter().map(|(_, schema)| schema));
    json!({ "type": "array", "prefixItems": schemas.collect::<Vec<_>>(), "minItems": count, "maxItems": count })
}

/// Whether members can be told by their names: a type code may omit these.
pub(super) fn has_names(members: &[(&str, Value)]) -> bool {
    let mut names = HashSet::new();
    members.iter().all(|(name, _)| !name.is_empty() && names.insert(*name))
}

/// A text of this pattern.
pub(super) fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// The schema with this name among the components of the document.
pub(super) fn reference_to(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// An integer of 64 bits: larger ones than every reader of JSON represents exactly are written as digits.
pub(super) fn long_integer(least: i128, greatest: i128) -> Value {
    let limit = |value: i128| i64::try_from(value).map_or_else(|_| json!(u64::MAX), Value::from);
    let integer = json!({ "type": "integer", "minimum": limit(least), "maximum": limit(greatest) });
    json!({ "anyOf": [integer, text(&patterns::integer(least, greatest))] })
}
