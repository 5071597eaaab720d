//! JSON schemas of IDL types, for values in the form of `docs/json.md`.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use spandrel::dynamic::{Documentation, ValueTypes};
use spandrel::types::{Label, TcKind, TypeCode, ValueModifier};

use super::{
    names::unique,
    patterns,
    shapes::{has_names, long_integer, record, reference_to, text},
    type_schema::{TYPE, type_schemas},
};

/// The greatest integer that every reader of JSON represents exactly.
const MAX_EXACT: i64 = (1 << 53) - 1;
/// The largest number of a `float` in its shortest digits.
const MAX_FLOAT: f64 = 3.402_823_5e38;

/// The schemas of types with repository ids, each once.
pub(super) struct Schemas {
    /// The name of each type by its id.
    names: HashMap<String, String>,
    /// The name of the state of each value type by its id.
    states: HashMap<String, String>,
    schemas: Map<String, Value>,
    /// The value types that a position may have where it declares a base of theirs, by their ids.
    values: Vec<TypeCode>,
}

impl Schemas {
    /// Schemas of interfaces that know these value types.
    pub(super) fn new(values: &ValueTypes) -> Self {
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
        schemas.insert("long_long".to_owned(), long_integer(i64::MIN.into(), i64::MAX.into()));
        schemas.insert("unsigned_long_long".to_owned(), long_integer(0, u64::MAX.into()));
        schemas.extend(type_schemas());
        let mut values: Vec<_> = values.iter().filter(|type_code| !is_unspecific(type_code)).cloned().collect();
        values.sort_by(|left, right| left.id().unwrap_or_default().cmp(right.id().unwrap_or_default()));
        Self { names: HashMap::new(), states: HashMap::new(), schemas, values }
    }

    /// All schemas by name.
    pub(super) fn finish(self) -> Value {
        Value::Object(self.schemas)
    }

    /// The schema of a type: a reference to that of a type with an id.
    pub(super) fn schema_of(&mut self, type_code: &TypeCode, documentation: &Documentation) -> Value {
        let Some(id) = type_code.id().ok().filter(|id| !id.is_empty() && is_named(type_code.kind())) else {
            return self.schema(type_code, documentation);
        };
        let name = match self.names.get(id) {
            Some(name) => name.clone(),
            None => {
                let name = self.new_name(id, "");
                self.names.insert(id.to_owned(), name.clone());
                // A recursive type finds its own name.
                self.schemas.insert(name.clone(), Value::Null);
                let mut schema = self.schema(type_code, documentation);
                if let Some(text) = documentation.of(id) {
                    schema["description"] = json!(trimmed(text));
                }
                self.schemas.insert(name.clone(), schema);
                name
            }
        };
        reference_to(&name)
    }

    /// A name for the schema of a type, from its id `IDL:Bank/Account:1.0`, with this end.
    fn new_name(&self, id: &str, end: &str) -> String {
        let path = id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')).map_or(id, |(path, _)| path);
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
        let dotted = path.replace('/', ".");
        let base: String = dotted.chars().map(|it| if is_allowed(it) { it } else { '_' }).collect();
        unique(base + end, &|name| self.schemas.contains_key(name))
    }

    fn schema(&mut self, type_code: &TypeCode, documentation: &Documentation) -> Value {
        let integer = |least: i64, greatest: i64| json!({ "type": "integer", "minimum": least, "maximum": greatest });
        match type_code.kind() {
            TcKind::Boolean => json!({ "type": "boolean" }),
            TcKind::Octet => integer(0, 255),
            TcKind::Short => integer(i16::MIN.into(), i16::MAX.into()),
            TcKind::UShort => integer(0, u16::MAX.into()),
            TcKind::Long => integer(i32::MIN.into(), i32::MAX.into()),
            TcKind::ULong => integer(0, u32::MAX.into()),
            TcKind::LongLong => reference_to("long_long"),
            TcKind::ULongLong => reference_to("unsigned_long_long"),
            TcKind::Float => number(MAX_FLOAT, patterns::FLOAT, &patterns::NO_FLOAT),
            TcKind::Double => number(f64::MAX, patterns::DOUBLE, &patterns::NO_DOUBLE),
            TcKind::LongDouble => number(f64::MAX, patterns::LONG_DOUBLE, &patterns::NO_DOUBLE),
            TcKind::Fixed => text(&patterns::fixed(
                type_code.fixed_digits().unwrap_or_default().into(),
                type_code.fixed_scale().ok().and_then(|scale| scale.try_into().ok()).unwrap_or_default(),
            )),
            TcKind::Char => text(patterns::CHAR),
            TcKind::WChar => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            TcKind::String | TcKind::WString => {
                let mut schema = text(patterns::WITHOUT_NUL);
                if let Ok(bound @ 1..) = type_code.length() {
                    schema["maxLength"] = json!(bound);
                }
                schema
            }
            TcKind::Enum => enumeration(type_code, documentation),
            TcKind::Struct | TcKind::Except => record(self.members(type_code, documentation)),
            TcKind::Union => self.union(type_code, documentation),
            TcKind::Sequence | TcKind::Array => self.elements(type_code, documentation),
            TcKind::Alias => match type_code.content_type() {
                Ok(content) => {
                    let content = self.schema_of(&content, documentation);
                    // A reference with a description beside it (OpenAPI 3.1, 4.8.23).
                    if content.get("$ref").is_some() { json!({ "allOf": [content] }) } else { content }
                }
                Err(_) => json!({}),
            },
            TcKind::Any => any(),
            TcKind::TypeCode => reference_to(TYPE),
            TcKind::ObjRef | TcKind::Component | TcKind::Home => json!({ "anyOf": [{ "type": "null" }, reference()] }),
            TcKind::AbstractInterface | TcKind::Value | TcKind::Event | TcKind::ValueBox => {
                self.value(type_code, documentation)
            }
            // They have no values.
            _ => json!({ "not": {} }),
        }
    }

    /// The members of a type of its own, without those of bases, with their comments.
    fn members<'t>(&mut self, type_code: &'t TypeCode, documentation: &Documentation) -> Vec<(&'t str, Value)> {
        let count = type_code.member_count().unwrap_or_default();
        let members = (0..count)
            .filter_map(|index| Some((type_code.member_name(index).ok()?, type_code.member_type(index).ok()?)));
        let members: Vec<_> = members.collect();
        let id = type_code.id().unwrap_or_default();
        let schema = |(name, member): (&'t str, TypeCode)| {
            let schema = self.schema_of(&member, documentation);
            (name, with_comment(schema, documentation.of_part(id, name)))
        };
        members.into_iter().map(schema).collect()
    }

    /// A position of a value type or an abstract interface: null, its own state or that of a derived type with its `_type`,
    /// the content of a box, a reference, or a value that occurs elsewhere in the same arguments.
    fn value(&mut self, type_code: &TypeCode, documentation: &Documentation) -> Value {
        let mut alternatives = vec![json!({ "type": "null" })];
        if type_code.kind() == TcKind::AbstractInterface {
            alternatives.push(reference());
        }
        if let Some(content) =
            type_code.content_type().ok().filter(|content| type_code.kind() == TcKind::ValueBox && !has_head(content))
        {
            alternatives.push(self.schema_of(&content, documentation));
        }
        if !is_unspecific(type_code) {
            alternatives.push(self.state(type_code, documentation));
        }
        let derived = self.values.iter().filter(|it| it.id() != type_code.id() && it.derives_from(type_code));
        for derived in derived.cloned().collect::<Vec<_>>() {
            let state = self.state(&derived, documentation);
            alternatives.push(json!({ "allOf": [state], "required": ["_type"] }));
        }
        alternatives.push(json!({
            "description": "The value with this `_id`, which these arguments or results contain.",
            "type": "object",
            "properties": { "_ref": number_of_value() },
            "required": ["_ref"],
            "additionalProperties": false,
        }));
        json!({ "anyOf": alternatives })
    }

    /// The state of a value, or the content of a box, perhaps with its type, and its number if it occurs several times.
    fn state(&mut self, type_code: &TypeCode, documentation: &Documentation) -> Value {
        let type_code = type_code.without_aliases();
        let id = type_code.id().unwrap_or_default();
        if let Some(name) = self.states.get(id) {
            return reference_to(name);
        }
        let name = self.new_name(id, ".state");
        self.states.insert(id.to_owned(), name.clone());
        // A recursive type finds its own name.
        self.schemas.insert(name.clone(), Value::Null);
        let mut line = vec![type_code.clone()];
        while let Some(Ok(Some(base))) = line.last().map(TypeCode::concrete_base_type) {
            if line.len() > 64 {
                break;
            }
            line.push(base.without_aliases());
        }
        let members: Vec<(String, Value)> = match type_code.content_type() {
            Ok(content) if type_code.kind() == TcKind::ValueBox => {
                vec![("_value".to_owned(), self.schema_of(&content, documentation))]
            }
            _ => {
                let of_line = line.iter().rev().flat_map(|type_code| {
                    let members = self.members(type_code, documentation);
                    members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect::<Vec<_>>()
                });
                of_line.collect()
            }
        };
        let members: Vec<(&str, Value)> = members.iter().map(|(name, schema)| (&**name, schema.clone())).collect();
        let mut schema = if has_names(&members) { record(members) } else { record(vec![("_value", record(members))]) };
        schema["properties"]["_type"] = json!({ "const": id });
        schema["properties"]["_id"] = number_of_value();
        self.schemas.insert(name.clone(), schema);
        reference_to(&name)
    }

    /// An alternative for each branch: the member, and perhaps the discriminator.
    fn union(&mut self, type_code: &TypeCode, documentation: &Documentation) -> Value {
        let discriminator = type_code.discriminator_type().unwrap_or_default();
        let of_discriminator = self.schema_of(&discriminator, documentation);
        let mut branches: Vec<(&str, Value, Vec<Value>, bool)> = Vec::new();
        let members = self.members(type_code, documentation);
        let is_nameless = members.iter().any(|(name, _)| name.is_empty());
        let (mut labels_of_all, mut count) = (Vec::new(), 0);
        for (index, (name, schema)) in members.into_iter().enumerate() {
            let label = type_code.member_label(index);
            let is_default = matches!(label, Ok(Label::Default));
            let labels = label.ok().filter(|_| !is_default).map(|label| label_values(&discriminator, &label));
            count += usize::from(labels.is_some());
            let labels = labels.unwrap_or_default();
            labels_of_all.extend(labels.iter().cloned());
            match branches.iter_mut().find(|(known, ..)| *known == name && !is_nameless) {
                Some((_, _, labels_of_branch, has_default)) => {
                    labels_of_branch.extend(labels);
                    *has_default |= is_default;
                }
                None => branches.push((name, schema, labels, is_default)),
            }
        }
        let others = if labels_of_all.is_empty() {
            of_discriminator
        } else {
            json!({ "allOf": [of_discriminator], "not": { "enum": labels_of_all } })
        };
        let has_others = number_of_values(&discriminator).is_none_or(|all| count < all);
        let has_default = branches.iter().any(|(_, _, _, is_default)| *is_default);
        let alternatives = branches.into_iter().map(|(name, schema, labels, is_default)| {
            let of_labels = match &labels[..] {
                [] => others.clone(),
                _ if is_default => json!({ "anyOf": [{ "enum": labels }, others] }),
                [only] => json!({ "const": only }),
                _ => json!({ "enum": labels }),
            };
            let (name, required) = if name.is_empty() { ("_value", vec!["_d", "_value"]) } else { (name, vec![name]) };
            json!({
                "type": "object",
                "properties": { "_d": of_labels, name: schema },
                "required": required,
                "additionalProperties": false,
            })
        });
        let mut alternatives: Vec<Value> = alternatives.collect();
        if !has_default && has_others {
            alternatives.push(json!({
                "description": "No member.",
                "type": "object",
                "properties": { "_d": others },
                "required": ["_d"],
                "additionalProperties": false,
            }));
        }
        json!({ "oneOf": alternatives })
    }

    fn elements(&mut self, type_code: &TypeCode, documentation: &Documentation) -> Value {
        let Ok(content) = type_code.content_type() else { return json!({}) };
        let length = type_code.length().unwrap_or_default();
        if content.without_aliases().kind() == TcKind::Octet {
            return octets(type_code.kind() == TcKind::Array, length);
        }
        let mut schema = json!({ "type": "array", "items": self.schema_of(&content, documentation) });
        if type_code.kind() == TcKind::Array {
            schema["minItems"] = json!(length);
        }
        if length > 0 {
            schema["maxItems"] = json!(length);
        }
        schema
    }
}

/// The schema of an object reference.
fn reference() -> Value {
    json!({
        "description": "An object reference, `IOR:…` or `corbaloc:…`.",
        "type": "string",
        "pattern": patterns::REFERENCE,
        "not": { "pattern": patterns::LOOKED_UP },
    })
}

fn number_of_value() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
}

/// A floating-point number: a finite one, or the name of another.
fn number(greatest: f64, pattern: &str, not: &[&str]) -> Value {
    let name = json!({ "type": "string", "pattern": pattern, "not": { "enum": not } });
    json!({ "anyOf": [{ "type": "number", "minimum": -greatest, "maximum": greatest }, name] })
}

/// An `any`: null, or a type and a value of it.
fn any() -> Value {
    let with = |name: &str, schema: Value| {
        let mut type_code = record(vec![("_type", reference_to(TYPE)), (name, schema)]);
        type_code["description"] = json!("A value with its type.");
        type_code
    };
    let mut undecoded = with("_error", json!({ "type": "string" }));
    undecoded["description"] = json!("The reason for which a value cannot be shown.");
    undecoded["readOnly"] = json!(true);
    json!({ "anyOf": [{ "type": "null" }, with("_value", json!({})), undecoded] })
}

/// The schema of octets as Base64.
fn octets(is_array: bool, length: u32) -> Value {
    let mut schema = text(patterns::BASE64);
    schema["contentEncoding"] = json!("base64");
    if length == 0 {
        return schema;
    }
    let (groups, rest) = (u64::from(length / 3), length % 3);
    let letters = 4 * (groups + u64::from(rest > 0));
    schema["maxLength"] = json!(letters);
    // The end of the longest text tells the octets of its last group.
    let end = match rest {
        0 => "[^=]$",
        1 => "==$",
        _ if is_array => "[^=]=$",
        _ => "=$",
    };
    if is_array {
        schema["minLength"] = json!(letters);
        schema["allOf"] = json!([{ "pattern": end }]);
    } else if rest > 0 {
        schema["anyOf"] = json!([{ "maxLength": 4 * groups }, { "pattern": end }]);
    }
    schema
}

/// Whether a type of this kind has a schema of its own.
fn is_named(kind: TcKind) -> bool {
    matches!(kind, TcKind::Struct | TcKind::Union | TcKind::Enum | TcKind::Except | TcKind::Alias)
        || matches!(kind, TcKind::Value | TcKind::Event | TcKind::ValueBox)
}

/// Whether no value has exactly this type.
fn is_unspecific(type_code: &TypeCode) -> bool {
    type_code.kind() == TcKind::AbstractInterface
        || type_code.type_modifier() == Ok(ValueModifier::Abstract)
        || type_code.id() == TypeCode::value_base().id()
}

/// Whether the content of a box could be taken for its head: it has `_value` around it.
fn has_head(content: &TypeCode) -> bool {
    use TcKind::{AbstractInterface, Any, Event, Value, ValueBox};
    matches!(content.without_aliases().kind(), Any | Value | Event | ValueBox | AbstractInterface)
}

fn enumeration(type_code: &TypeCode, documentation: &Documentation) -> Value {
    let count = type_code.member_count().unwrap_or_default();
    let names: Vec<&str> = (0..count).filter_map(|index| type_code.member_name(index).ok()).collect();
    if names.iter().any(|name| name.is_empty()) {
        return json!({ "type": "integer", "minimum": 0, "maximum": names.len().saturating_sub(1) });
    }
    let id = type_code.id().unwrap_or_default();
    let texts =
        names.iter().filter_map(|name| Some(format!("- `{name}`: {}", trimmed(documentation.of_part(id, name)?))));
    let text = texts.collect::<Vec<_>>().join("\n");
    let schema = json!({ "type": "string", "enum": names });
    with_comment(schema, Some(text.as_str()).filter(|text| !text.is_empty()))
}

/// A label as the discriminator's value, in each of its forms.
fn label_values(discriminator: &TypeCode, label: &Label) -> Vec<Value> {
    let Label::Value(value) = label else { return Vec::new() };
    let type_code = discriminator.without_aliases();
    match type_code.kind() {
        TcKind::Boolean => vec![json!(*value != 0)],
        TcKind::Char | TcKind::WChar => {
            let character = u32::try_from(*value).ok().and_then(char::from_u32).unwrap_or_default();
            vec![json!(character.to_string())]
        }
        TcKind::Enum => {
            let index = usize::try_from(*value).unwrap_or_default();
            match type_code.member_name(index).unwrap_or_default() {
                "" => vec![json!(index)],
                name => vec![json!(name)],
            }
        }
        TcKind::LongLong | TcKind::ULongLong => {
            let number =
                i64::try_from(*value).map_or_else(|_| json!(u64::try_from(*value).unwrap_or_default()), |it| json!(it));
            // The usual form first.
            let mut forms = vec![number, json!(value.to_string())];
            if value.unsigned_abs() > MAX_EXACT.unsigned_abs().into() {
                forms.reverse();
            }
            forms
        }
        _ => vec![json!(i64::try_from(*value).unwrap_or_default())],
    }
}

/// The number of values of a discriminator's type; `None` for more than a union has labels.
fn number_of_values(discriminator: &TypeCode) -> Option<usize> {
    let type_code = discriminator.without_aliases();
    match type_code.kind() {
        TcKind::Boolean => Some(2),
        TcKind::Char | TcKind::Octet => Some(256),
        TcKind::Enum => type_code.member_count().ok(),
        _ => None,
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
