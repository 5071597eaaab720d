//! The attributes and operations of an interface.

use spandrel::dynamic::{InterfaceDescription, OperationDescription, Undescribed};
use spandrel::net::error::escape;
use spandrel::types::TypeCode;

use crate::json::{self, JsonObject};

/// A declaration in each line, as in IDL.
pub(super) fn text(interface: &InterfaceDescription) -> String {
    let attributes = interface.attributes().iter().map(|attribute| format!("{attribute}\n"));
    let operations = operations(interface).map(|operation| format!("{operation}\n"));
    let left_out = interface.undescribed().iter();
    let left_out = left_out
        .map(|Undescribed { name, reason }| format!("// {} cannot be called: {}\n", escape(name), escape(reason)));
    attributes.chain(operations).chain(left_out).collect()
}

/// The whole interface as in IDL, with comments.
pub(crate) fn documented(interface: &InterfaceDescription) -> String {
    let documentation = interface.documentation();
    let mut text = comment(documentation.of(interface.id()), "");
    text += &format!("interface {} {{ // {}\n", escape(interface.name()), escape(interface.id()));
    for base in interface.bases() {
        text += &format!("  // inherits {}\n", escape(base));
    }
    for attribute in interface.attributes() {
        text += &comment(interface.documentation_of(&attribute.name), "  ");
        text += &format!("  {attribute};\n");
    }
    for operation in operations(interface) {
        text += &comment(interface.documentation_of(&operation.name), "  ");
        text += &format!("  {operation};\n");
    }
    for Undescribed { name, reason } in interface.undescribed() {
        text += &format!("  // {} cannot be called: {}\n", escape(name), escape(reason));
    }
    text + "};\n"
}

/// A comment of IDL; empty without a text.
fn comment(text: Option<&str>, indentation: &str) -> String {
    let Some(text) = text else { return String::new() };
    let lines: Vec<&str> = text.trim().lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    match &lines[..] {
        [only] => format!("{indentation}/** {only} */\n"),
        lines => {
            let inside: String = lines.iter().map(|line| format!("{indentation} * {line}\n")).collect();
            format!("{indentation}/**\n{inside}{indentation} */\n")
        }
    }
}

/// The description of one object's interface as JSON.
pub(crate) fn json(interface: &InterfaceDescription) -> String {
    let attributes = interface.attributes().iter().map(|attribute| {
        JsonObject::new()
            .value("name", attribute.name.as_str())
            .value("type", spec(&attribute.type_code))
            .value("readonly", attribute.is_readonly)
            .optional("documentation", interface.documentation_of(&attribute.name).map(str::trim))
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
            .optional("documentation", interface.documentation_of(&operation.name).map(str::trim))
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
        .optional("documentation", interface.documentation().of(interface.id()).map(str::trim))
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
