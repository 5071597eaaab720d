//! The schema of types as values: `CORBA::TypeCode`, and the `_type` of an `any`.

use serde_json::{Value, json};

use super::patterns;
use super::shapes::{long_integer, record, reference_to, text};

/// The name of the schema of any type.
pub(super) const TYPE: &str = "Type";

/// Members with their schemas.
type Members = Vec<(&'static str, Value)>;

/// The schemas of types in the form of `docs/json.md`: [`TYPE`], and one for each kind.
pub(super) fn type_schemas() -> Vec<(String, Value)> {
    let of_type = || reference_to(TYPE);
    let (id, optional_id) = (text(patterns::ID), text(patterns::OPTIONAL_ID));
    let name = text(patterns::NAME);
    let number = |least: u32| json!({ "type": "integer", "minimum": least, "maximum": u32::MAX });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let member = |more: &[(&str, Value)]| {
        let mut description = json!({ "name": name });
        for (name, schema) in more {
            description[*name] = schema.clone();
        }
        description["type"] = of_type();
        list(
            json!({ "type": "object", "properties": description, "required": ["type"], "additionalProperties": false }),
        )
    };
    let (least, greatest) = (i64::MIN.into(), u64::MAX.into());
    let label = json!({ "anyOf": [{ "type": "null" }, long_integer(least, greatest)] });
    let visibility = json!({ "enum": ["public", "private"] });
    let modifier = json!({ "enum": ["none", "custom", "abstract", "truncatable"] });
    // The kinds, the members that are needed, and others.
    let forms: [(&[&str], Members, Members); 11] = [
        (&["sequence"], vec![("type", of_type())], vec![("bound", number(0))]),
        (&["array"], vec![("type", of_type()), ("length", number(1))], vec![]),
        (&["typedef"], vec![("type", of_type())], vec![("id", optional_id.clone()), ("name", name.clone())]),
        (&["valuebox"], vec![("id", id.clone()), ("type", of_type())], vec![("name", name.clone())]),
        (&["struct"], vec![], vec![("id", optional_id.clone()), ("name", name.clone()), ("members", member(&[]))]),
        (&["exception"], vec![("id", id.clone())], vec![("name", name.clone()), ("members", member(&[]))]),
        (&["enum"], vec![], vec![("id", optional_id.clone()), ("name", name.clone()), ("members", list(name.clone()))]),
        (
            &["union"],
            vec![("discriminator", of_type())],
            vec![("id", optional_id), ("name", name.clone()), ("members", member(&[("label", label)]))],
        ),
        (
            &["valuetype"],
            vec![("id", id.clone())],
            vec![
                ("name", name.clone()),
                ("modifier", modifier),
                ("base", of_type()),
                ("members", member(&[("visibility", visibility)])),
            ],
        ),
        (&["recursive"], vec![("id", id.clone())], vec![]),
        (
            &["interface", "abstract interface", "local interface", "component", "home", "native"],
            vec![("id", id)],
            vec![("name", name)],
        ),
    ];
    // Each has a name, which generators of clients need where a schema refers to itself.
    let mut schemas: Vec<(String, Value)> = Vec::new();
    for (kinds, needed, others) in forms {
        let kind = if let [kind] = kinds { json!({ "const": kind }) } else { json!({ "enum": kinds }) };
        let mut schema = record(std::iter::once(("kind", kind)).chain(needed).collect());
        for (name, of) in others {
            schema["properties"][name] = of;
        }
        schemas.push((format!("{TYPE}.{}", kinds[0]), schema));
    }
    let named = json!({
        "description": "A type in the notation of IDL, or the name or repository id of a declared one.",
        "type": "string",
        "minLength": 1,
    });
    let forms = schemas.iter().map(|(name, _)| reference_to(name));
    let alternatives: Vec<Value> = std::iter::once(named).chain(forms).collect();
    schemas.push((TYPE.to_owned(), json!({ "description": "A type that IDL can express.", "anyOf": alternatives })));
    schemas
}
