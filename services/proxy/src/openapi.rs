//! OpenAPI 3.1 documents of objects.

mod names;
mod patterns;
mod schemas;
mod shapes;
mod type_schema;

use std::collections::HashSet;
use std::slice;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use spandrel::dynamic::{DynamicObject, InterfaceDescription, OperationDescription, ValueTypes};
use spandrel::services::name;
use spandrel::types::TcKind;

use crate::problem::PROBLEM_JSON;
use names::unique;
use schemas::Schemas;
use shapes::{list, record};

/// The most objects of a document.
pub const MAX_OBJECTS: usize = 500;

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The OpenAPI document of objects, by their names, with the operations that are permitted.
pub fn document(
    objects: &[(String, Arc<DynamicObject>)],
    is_permitted: &dyn Fn(&str, &DynamicObject, &OperationDescription) -> bool,
) -> Value {
    let mut value_types = ValueTypes::new();
    for (_, object) in objects {
        value_types.add_all(object.interface().value_types());
    }
    let mut schemas = Schemas::new(&value_types);
    let (mut paths, mut tags) = (Map::new(), Vec::new());
    let mut ids = HashSet::new();
    for (name, object) in objects {
        let interface = object.interface();
        tags.push(tag(name, interface));
        for operation in interface.operations() {
            if is_permitted(name, object, operation) {
                let path = format!("{}/{}", path_of(name), utf8_percent_encode(idl_name(operation), RESERVED));
                let item = paths.entry(path).or_insert_with(|| json!({}));
                let mut described = described(name, interface, operation, &mut schemas);
                let id = unique(operation_id(name, operation), &|id| ids.contains(id));
                described["operationId"] = json!(id);
                ids.insert(id);
                item[method_of(operation)] = described;
            }
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "CORBA objects",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Operations of CORBA objects as HTTP requests. Values have the JSON form of their IDL types.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "certificate": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.finish(),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "certificate": { "type": "mutualTLS" },
            },
        },
    })
}

fn tag(name: &str, interface: &InterfaceDescription) -> Value {
    let text = interface.documentation().of(interface.id()).map(schemas::trimmed).unwrap_or_default();
    let description = format!("{text}\n\nInterface `{}`.", interface.id());
    json!({ "name": name, "description": description.trim() })
}

/// The path of an object: a segment for each component of its name, in its string form.
fn path_of(name: &str) -> String {
    let components = name::parse(name).unwrap_or_default();
    let segments = components.iter().map(|component| name::to_string(slice::from_ref(component)));
    segments.map(|segment| format!("/{}", utf8_percent_encode(&segment, RESERVED))).collect()
}

/// The IDL name of an operation: that of the attribute for an accessor.
pub(crate) fn idl_name(operation: &OperationDescription) -> &str {
    let attribute = operation.name.strip_prefix("_get_").or_else(|| operation.name.strip_prefix("_set_"));
    attribute.unwrap_or(&operation.name)
}

fn method_of(operation: &OperationDescription) -> &'static str {
    match operation.name.split_once('_') {
        Some(("", rest)) if rest.starts_with("get_") => "get",
        Some(("", rest)) if rest.starts_with("set_") => "put",
        _ => "post",
    }
}

/// The id of an operation for generators of clients: letters, digits and underscores. Other names may have the same.
fn operation_id(name: &str, operation: &OperationDescription) -> String {
    format!("{name}_{}", operation.name.trim_start_matches('_'))
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '_' })
        .collect()
}

fn described(
    name: &str,
    interface: &InterfaceDescription,
    operation: &OperationDescription,
    schemas: &mut Schemas,
) -> Value {
    let documentation = interface.documentation();
    let mut described = json!({
        "tags": [name],
        "responses": responses(interface, operation, schemas),
    });
    if let Some(text) = interface.documentation_of(&operation.name) {
        described["description"] = json!(schemas::trimmed(text));
    }
    let sent = operation.parameters.iter().filter(|parameter| parameter.mode.is_sent());
    let members =
        sent.map(|parameter| (parameter.name.as_str(), schemas.schema_of(&parameter.type_code, documentation)));
    let members: Vec<_> = members.collect();
    if !members.is_empty() {
        // By their names, or in order.
        let schema = json!({ "anyOf": [record(members.clone()), list(members)] });
        described["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    described
}

fn responses(interface: &InterfaceDescription, operation: &OperationDescription, schemas: &mut Schemas) -> Value {
    let documentation = interface.documentation();
    let mut members = Vec::new();
    if operation.result.kind() != TcKind::Void {
        members.push(("result", schemas.schema_of(&operation.result, documentation)));
    }
    let outs = operation.parameters.iter().filter(|parameter| parameter.mode.is_returned());
    let outs = outs.map(|parameter| (parameter.name.as_str(), schemas.schema_of(&parameter.type_code, documentation)));
    members.push(("out", record(outs.collect())));
    let result = json!({
        "description": if operation.is_oneway { "The request was sent." } else { "The results." },
        "content": { "application/json": { "schema": record(members) } },
    });
    let problem = |description: &str, schema: Value| json!({ "description": description, "content": { PROBLEM_JSON: { "schema": schema } } });
    let mut responses = Map::new();
    responses.insert(if operation.is_oneway { "202" } else { "200" }.to_owned(), result);
    if !operation.exceptions.is_empty() {
        let raised = operation.exceptions.iter().map(|exception_type| {
            let members = schemas.schema_of(exception_type, documentation);
            let exception =
                record(vec![("id", json!({ "const": exception_type.id().unwrap_or_default() })), ("members", members)]);
            json!({ "type": "object", "properties": { "exception": exception }, "required": ["exception"] })
        });
        let raised: Vec<Value> = raised.collect();
        let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Problem" }, { "oneOf": raised }] });
        responses.insert("422".to_owned(), problem("The operation raised an exception.", schema));
    }
    responses.insert(
        "default".to_owned(),
        problem("There is no result.", json!({ "$ref": "#/components/schemas/Problem" })),
    );
    Value::Object(responses)
}
