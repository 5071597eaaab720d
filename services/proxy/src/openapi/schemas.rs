//! JSON schemas of IDL types, for values in the form of `docs/json.md`.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use spandrel::dynamic::Documentation;
use spandrel::types::{Label, TcKind, TypeCode};

/// The greatest integer that every reader of JSON represents exactly.
const MAX_EXACT: i64 = (1 << 53) - 1;

/// The schemas of types with repository ids, each once.
pub(super) struct Schemas {
    /// The name of each type by its id.
    names: HashMap<String, String>,
    schemas: Map<String, Value>,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let mut schemas = Map::new();
        let problem = json!({
            "type": "object",
            "description": "Problem details (RFC 9457). `exception` is an exception of the operation, `system_exception` one of the object request broker.",
            "properties": {
                "type": { "type": "string" },
                "title": { "type": "string" },
                "status": { "type": "integer" },
                "detail": { "type": "string" },
                "exception": {
                    "type": "object",
                    "properties": { "id": { "type": "string" }, "members": {} },
                },
                "system_exception": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "string" },
                        "minor": { "type": "integer" },
                        "completed": { "type": "string" },
                    },
                },
            },
            "required": ["title", "status"],
        });
        schemas.insert("Problem".to_owned(), problem);
        Self { names: HashMap::new(), schemas }
    }

    /// All schemas by name.
    pub(super) fn finish(self) -> Value {
        Value::Object(self.schemas)
    }

    /// The schema of a type: a reference to that of a type with an id.
    pub(super) fn of(&mut self, of: &TypeCode, documentation: &Documentation) -> Value {
        let Some(id) = of.id().ok().filter(|id| !id.is_empty() && is_named(of.kind())) else {
            return self.schema(of, documentation);
        };
        let name = match self.names.get(id) {
            Some(name) => name.clone(),
            None => {
                let name = self.new_name(id);
                self.names.insert(id.to_owned(), name.clone());
                // A recursive type finds its own name.
                self.schemas.insert(name.clone(), Value::Null);
                let mut schema = self.schema(of, documentation);
                if let Some(text) = documentation.of(id) {
                    schema["description"] = json!(trimmed(text));
                }
                self.schemas.insert(name.clone(), schema);
                name
            }
        };
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }

    /// A name for the schema of a type, from its id `IDL:Bank/Account:1.0`.
    fn new_name(&self, id: &str) -> String {
        let path = id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')).map_or(id, |(path, _)| path);
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
        let dotted = path.replace('/', ".");
        let base: String = dotted.chars().map(|it| if is_allowed(it) { it } else { '_' }).collect();
        let mut name = base.clone();
        let mut number = 2;
        while self.schemas.contains_key(&name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }

    fn schema(&mut self, of: &TypeCode, documentation: &Documentation) -> Value {
        let integer = |least: i64, greatest: i64| json!({ "type": "integer", "minimum": least, "maximum": greatest });
        let bounded = |mut schema: Value, key: &str| {
            if let Ok(bound @ 1..) = of.length() {
                schema[key] = json!(bound);
            }
            schema
        };
        match of.kind() {
            TcKind::Boolean => json!({ "type": "boolean" }),
            TcKind::Octet => integer(0, 255),
            TcKind::Short => integer(i16::MIN.into(), i16::MAX.into()),
            TcKind::UShort => integer(0, u16::MAX.into()),
            TcKind::Long => integer(i32::MIN.into(), i32::MAX.into()),
            TcKind::ULong => integer(0, u32::MAX.into()),
            TcKind::LongLong => json!({ "anyOf": [integer(-MAX_EXACT, MAX_EXACT), digits("^-?[0-9]{1,19}$")] }),
            TcKind::ULongLong => json!({ "anyOf": [integer(0, MAX_EXACT), digits("^[0-9]{1,20}$")] }),
            TcKind::Float | TcKind::Double => {
                json!({ "anyOf": [{ "type": "number" }, digits("^(-?Infinity|NaN(:0x[0-9a-f]+)?)$")] })
            }
            TcKind::LongDouble => {
                json!({ "anyOf": [{ "type": "number" }, digits("^(-?Infinity|NaN|0x[0-9a-f]{32})$")] })
            }
            TcKind::Fixed => digits("^-?[0-9]+(\\.[0-9]+)?$"),
            TcKind::Char | TcKind::WChar => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            TcKind::String | TcKind::WString => bounded(json!({ "type": "string" }), "maxLength"),
            TcKind::Enum => enumeration(of, documentation),
            TcKind::Struct | TcKind::Except => object(self.members(of, documentation)),
            TcKind::Union => self.union(of, documentation),
            TcKind::Sequence | TcKind::Array => self.elements(of, documentation),
            TcKind::Alias => match of.content_type() {
                Ok(content) => {
                    let content = self.of(&content, documentation);
                    // A reference with a description beside it (OpenAPI 3.1, 4.8.23).
                    if content.get("$ref").is_some() { json!({ "allOf": [content] }) } else { content }
                }
                Err(_) => json!({}),
            },
            TcKind::Any => json!({
                "description": "A value with its type.",
                "anyOf": [
                    { "type": "null" },
                    {
                        "type": "object",
                        "properties": { "_type": { "type": ["string", "object"] }, "_value": {} },
                        "required": ["_type"],
                    },
                ],
            }),
            TcKind::TypeCode => json!({ "description": "A type.", "type": ["string", "object"] }),
            TcKind::ObjRef => json!({
                "description": "An object reference, `IOR:…` or `corbaloc:…`; null for nil.",
                "type": ["string", "null"],
            }),
            TcKind::AbstractInterface => json!({
                "description": "An object reference, or a value with its `_type`, or null.",
                "type": ["string", "object", "null"],
            }),
            TcKind::ValueBox => match of.content_type() {
                Ok(content) => json!({ "anyOf": [{ "type": "null" }, self.of(&content, documentation)] }),
                Err(_) => json!({}),
            },
            TcKind::Value | TcKind::Event => self.value(of, documentation),
            _ => json!({}),
        }
    }

    /// The members of a type of its own, without those of bases, with their comments.
    fn members<'t>(&mut self, of: &'t TypeCode, documentation: &Documentation) -> Vec<(&'t str, Value)> {
        let count = of.member_count().unwrap_or_default();
        let members = (0..count).filter_map(|index| Some((of.member_name(index).ok()?, of.member_type(index).ok()?)));
        let members: Vec<_> = members.collect();
        let id = of.id().unwrap_or_default();
        let schema = |(name, member): (&'t str, TypeCode)| {
            let schema = self.of(&member, documentation);
            (name, with_comment(schema, documentation.of_part(id, name)))
        };
        members.into_iter().map(schema).collect()
    }

    /// A value: its state, its type if it is a derived one, its number if it occurs several times; or such a number.
    fn value(&mut self, of: &TypeCode, documentation: &Documentation) -> Value {
        let mut line = vec![of.clone()];
        while let Some(Ok(Some(base))) = line.last().map(TypeCode::concrete_base_type) {
            if line.len() > 64 {
                break;
            }
            line.push(base.without_aliases());
        }
        let mut properties = Map::new();
        properties.insert("_type".to_owned(), json!({ "type": ["string", "object"] }));
        properties.insert("_id".to_owned(), json!({ "type": "integer" }));
        let mut required = Vec::new();
        for of in line.iter().rev() {
            for (name, schema) in self.members(of, documentation) {
                required.push(name.to_owned());
                properties.insert(name.to_owned(), schema);
            }
        }
        json!({ "anyOf": [
            { "type": "null" },
            { "type": "object", "properties": properties, "required": required },
            { "type": "object", "properties": { "_ref": { "type": "integer" } }, "required": ["_ref"] },
        ] })
    }

    /// An alternative for each branch: the member, and perhaps the discriminator.
    fn union(&mut self, of: &TypeCode, documentation: &Documentation) -> Value {
        let discriminator = of.discriminator_type().unwrap_or_default();
        let of_discriminator = self.of(&discriminator, documentation);
        let mut branches: Vec<(&str, Value, Vec<Value>, bool)> = Vec::new();
        let members = self.members(of, documentation);
        for (index, (name, schema)) in members.into_iter().enumerate() {
            let label = of.member_label(index);
            let is_default = matches!(label, Ok(Label::Default));
            let label = label.ok().filter(|_| !is_default).map(|label| label_value(&discriminator, &label));
            match branches.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, labels, has_default)) => {
                    labels.extend(label);
                    *has_default |= is_default;
                }
                None => branches.push((name, schema, label.into_iter().collect(), is_default)),
            }
        }
        let has_default = branches.iter().any(|(_, _, _, is_default)| *is_default);
        let alternatives = branches.into_iter().map(|(name, schema, labels, is_default)| {
            let of_labels = match &labels[..] {
                _ if is_default => of_discriminator.clone(),
                [only] => json!({ "const": only }),
                _ => json!({ "enum": labels }),
            };
            json!({
                "type": "object",
                "properties": { "_d": of_labels, name: schema },
                "required": [name],
                "additionalProperties": false,
            })
        });
        let mut alternatives: Vec<Value> = alternatives.collect();
        if !has_default {
            alternatives.push(json!({
                "description": "No member.",
                "type": "object",
                "properties": { "_d": of_discriminator },
                "required": ["_d"],
                "additionalProperties": false,
            }));
        }
        json!({ "oneOf": alternatives })
    }

    fn elements(&mut self, of: &TypeCode, documentation: &Documentation) -> Value {
        let Ok(content) = of.content_type() else { return json!({}) };
        if content.without_aliases().kind() == TcKind::Octet {
            return json!({ "type": "string", "contentEncoding": "base64" });
        }
        let mut schema = json!({ "type": "array", "items": self.of(&content, documentation) });
        let length = of.length().unwrap_or_default();
        if of.kind() == TcKind::Array {
            schema["minItems"] = json!(length);
        }
        if length > 0 {
            schema["maxItems"] = json!(length);
        }
        schema
    }
}

/// Whether a type of this kind has a schema of its own.
fn is_named(kind: TcKind) -> bool {
    matches!(kind, TcKind::Struct | TcKind::Union | TcKind::Enum | TcKind::Except | TcKind::Alias)
        || matches!(kind, TcKind::Value | TcKind::Event | TcKind::ValueBox)
}

/// An object with all of these members and no other.
pub(super) fn object(members: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn digits(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn enumeration(of: &TypeCode, documentation: &Documentation) -> Value {
    let count = of.member_count().unwrap_or_default();
    let names: Vec<&str> = (0..count).filter_map(|index| of.member_name(index).ok()).collect();
    let id = of.id().unwrap_or_default();
    let texts =
        names.iter().filter_map(|name| Some(format!("- `{name}`: {}", trimmed(documentation.of_part(id, name)?))));
    let text = texts.collect::<Vec<_>>().join("\n");
    let schema = json!({ "type": "string", "enum": names });
    with_comment(schema, Some(text.as_str()).filter(|text| !text.is_empty()))
}

/// A label as the discriminator's value.
fn label_value(discriminator: &TypeCode, label: &Label) -> Value {
    let Label::Value(value) = label else { return Value::Null };
    let of = discriminator.without_aliases();
    match of.kind() {
        TcKind::Boolean => json!(*value != 0),
        TcKind::Char | TcKind::WChar => {
            let character = u32::try_from(*value).ok().and_then(char::from_u32).unwrap_or_default();
            json!(character.to_string())
        }
        TcKind::Enum => {
            let place = usize::try_from(*value).unwrap_or_default();
            json!(of.member_name(place).unwrap_or_default())
        }
        _ => match i64::try_from(*value) {
            Ok(value) if value.abs() <= MAX_EXACT => json!(value),
            _ => json!(value.to_string()),
        },
    }
}

fn with_comment(mut schema: Value, text: Option<&str>) -> Value {
    if let Some(text) = text {
        schema["description"] = json!(trimmed(text));
    }
    schema
}

/// The text of a comment without the blanks behind its marks.
pub(super) fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    lines.join("\n").trim().to_owned()
}
