//! Attributes that are types, as a type code and as a definition.

use crate::generated::corba::IdlType;
use spandrel::SystemException;
use spandrel::dynamic::{ArgMode, NamedValue, NvList, ServerRequest};
use spandrel::types::{Any, TcKind, Typed};

use super::{Definitions, Handled, arguments};
use crate::core::is_type;
use crate::describe::Describer;
use crate::errors::bad_param;
use crate::model::{Model, Number};
use crate::records::records::Body;
use crate::types::TypeCodes;

impl Definitions {
    pub(super) fn typed(&self, request: &mut ServerRequest<'_>, number: Number, content: &Body) -> Handled {
        let core = &*self.0;
        let operation = request.operation();
        if operation == "_get_type" && (is_type(content) || matches!(content, Body::AnException(_))) {
            request.arguments(NvList::new())?;
            request.set_result(&self.read(|model| Describer::new(core, model).type_code(number))?)?;
            return Ok(true);
        }
        let (access, name) = match (operation.strip_prefix("_get_"), operation.strip_prefix("_set_")) {
            (Some(name), _) => (false, name),
            (_, Some(name)) => (true, name),
            _ => return Ok(false),
        };
        // The attribute with the definition ends in `_def`; that with the type code is read-only.
        let (attribute, is_definition) = match name.strip_suffix("_def") {
            Some(attribute) => (attribute, true),
            None => (name, false),
        };
        let mut changed = content.clone();
        let Some(place) = type_place(&mut changed, attribute, is_definition) else { return Ok(false) };
        match (access, is_definition) {
            (false, true) => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| core.typed::<IdlType>(model, *place))?)?;
            }
            (false, false) => {
                request.arguments(NvList::new())?;
                request.set_result(&self.read(|model| Describer::new(core, model).type_code(*place))?)?;
            }
            (true, true) => {
                arguments!(request, idl_type: Option<IdlType>);
                core.change(|edit| {
                    let target = core.type_number(edit.model(), idl_type.as_ref())?;
                    core.replace(edit, number, |content| {
                        if let Some(place) = type_place(content, attribute, true) {
                            *place = target;
                        }
                        // Labels of another type would have no meaning: new members follow.
                        if let Body::AUnion(body) = content {
                            body.branches.clear();
                        }
                    })
                })?;
            }
            (true, false) => return Ok(false),
        }
        Ok(true)
    }
}

/// The type that an attribute of a definition stands for.
fn type_place<'c>(content: &'c mut Body, attribute: &str, is_definition: bool) -> Option<&'c mut Number> {
    if attribute == "original_type" && !is_definition {
        return None;
    }
    match (content, attribute) {
        (Body::Constant(body), "type") => Some(&mut body.r#type),
        (Body::AnAttribute(body), "type") => Some(&mut body.r#type),
        (Body::ValueMember(body), "type") => Some(&mut body.r#type),
        (Body::Alias(original) | Body::ValueBox(original), "original_type") => Some(original),
        (Body::AUnion(body), "discriminator_type") => Some(&mut body.discriminator),
        (Body::ASequence(body) | Body::AnArray(body), "element_type") => Some(&mut body.r#type),
        (Body::Operation(body), "result") => Some(&mut body.result),
        _ => None,
    }
}

/// Checks that a constant has a value of its type, a simple one (14.5.8).
pub(super) fn check_constant(model: &Model, number: Number, value: &Any) -> Result<(), SystemException> {
    let type_code = TypeCodes::new(model).type_code(number)?;
    let is_simple = matches!(
        type_code.without_aliases().kind(),
        TcKind::Short
            | TcKind::Long
            | TcKind::UShort
            | TcKind::ULong
            | TcKind::LongLong
            | TcKind::ULongLong
            | TcKind::Float
            | TcKind::Double
            | TcKind::LongDouble
            | TcKind::Boolean
            | TcKind::Char
            | TcKind::WChar
            | TcKind::Octet
            | TcKind::String
            | TcKind::WString
            | TcKind::Fixed
            | TcKind::Enum
    );
    // The digits of a fixed-point constant are those of its value.
    let is_fixed = |type_code: &spandrel::types::TypeCode| type_code.without_aliases().kind() == TcKind::Fixed;
    let is_same = type_code.equivalent(value.type_code()) || is_fixed(&type_code) && is_fixed(value.type_code());
    match is_simple && is_same {
        true => Ok(()),
        false => {
            Err(bad_param(0, format!("a constant of type `{type_code}` with a value of type `{}`", value.type_code())))
        }
    }
}
