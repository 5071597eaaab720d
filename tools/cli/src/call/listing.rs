//! The attributes and operations of an interface.

use spandrel::dynamic::{InterfaceDescription, OperationDescription, Undescribed};
use spandrel::types::TypeCode;

use crate::json::{self, JsonObject};

/// A declaration in each line, as in IDL.
pub(super) fn text(interface: &InterfaceDescription) -> String {
    let attributes = interface.attributes().iter().map(|attribute| format!("{attribute}\n"));
    let operations = operations(interface).map(|operation| format!("{operation}\n"));
    let left_out = interface.undescribed().iter();
    let left_out = left_out.map(|Undescribed { name, reason }| format!("// {name} cannot be called: {reason}\n"));
    attributes.chain(operations).chain(left_out).collect()
}

/// One object.
pub(super) fn json(interface: &InterfaceDescription) -> String {
    let attributes = interface.attributes().iter().map(|attribute| {
        JsonObject::new()
            .value("name", attribute.name.as_str())
            .value("type", spec(&attribute.type_code))
            .value("readonly", attribute.is_readonly)
            .json("get_raises", &names(&attribute.get_exceptions))
            .json("set_raises", &names(&attribute.set_exceptions))
            .finish()
    });
    let operations = operations(interface).map(|operation| {
        let parameters = operation.parameters.iter().map(|parameter| {
            JsonObject::new()
                .value("name", parameter.name.as_str())
                .value("mode", parameter.mode.keyword())
                .value("type", spec(&parameter.type_code))
                .finish()
        });
        JsonObject::new()
            .value("name", operation.name.as_str())
            .value("oneway", operation.is_oneway)
            .value("result", spec(&operation.result))
            .json("parameters", &json::array(parameters))
            .json("raises", &names(&operation.exceptions))
            .finish()
    });
    let left_out = interface.undescribed().iter().map(|Undescribed { name, reason }| {
        JsonObject::new().value("name", name.as_str()).value("reason", reason.as_str()).finish()
    });
    let object = JsonObject::new()
        .value("interface", interface.id())
        .json("attributes", &json::array(attributes))
        .json("operations", &json::array(operations))
        .json("not_callable", &json::array(left_out));
    format!("{}\n", object.finish())
}

/// The operations that are no accessors of attributes.
fn operations(interface: &InterfaceDescription) -> impl Iterator<Item = &OperationDescription> {
    let is_accessor = |name: &str| {
        let attribute = name.strip_prefix("_get_").or_else(|| name.strip_prefix("_set_"));
        interface.attributes().iter().any(|known| Some(&*known.name) == attribute)
    };
    interface.operations().iter().filter(move |operation| !is_accessor(&operation.name))
}

fn spec(of: &TypeCode) -> String {
    of.type_spec().to_string()
}

fn names(exceptions: &[TypeCode]) -> String {
    json::array(exceptions.iter().map(|of| json::text(of.id().unwrap_or_default())))
}
