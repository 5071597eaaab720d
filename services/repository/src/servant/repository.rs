//! The operations of the repository itself (`Repository`, CORBA 3.3 Part 1, 14.5.6).

use crate::generated::corba::{Contained, IdlType, PrimitiveKind};
use spandrel::SystemException;
use spandrel::dynamic::{ArgMode, NamedValue, NvList, ServerRequest};
use spandrel::types::{TcKind, TypeCode, Typed};

use super::{Definitions, Handled, arguments};
use crate::core::is_type;
use crate::describe::Describer;
use crate::errors::bad_param;
use crate::model::{NONE, primitive};
use crate::records::records::{Body, ElementsBody, FixedBody};

impl Definitions {
    pub(super) fn repository(&self, request: &mut ServerRequest<'_>) -> Handled {
        let core = &*self.0;
        match request.operation() {
            "lookup_id" => {
                arguments!(request, id: String);
                let result = self.read(|model| core.typed::<Contained>(model, model.by_id(&id).unwrap_or(NONE)))?;
                request.set_result(&result)?;
            }
            "get_canonical_typecode" => {
                arguments!(request, type_code: TypeCode);
                let result = self.read(|model| canonical(&mut Describer::new(core, model), &type_code))?;
                request.set_result(&result)?;
            }
            "get_primitive" => {
                arguments!(request, kind: PrimitiveKind);
                let result = self.read(|model| core.reference(model, primitive(kind as u32)))?;
                request.set_result(&Some(result))?;
            }
            "create_string" => {
                arguments!(request, bound: u32);
                self.anonymous(request, Body::Text(bounded(bound)?))?;
            }
            "create_wstring" => {
                arguments!(request, bound: u32);
                self.anonymous(request, Body::WideText(bounded(bound)?))?;
            }
            "create_fixed" => {
                arguments!(request, digits: u16, scale: i16);
                self.anonymous(request, Body::Decimal(FixedBody { digits, scale }))?;
            }
            operation @ ("create_sequence" | "create_array") => {
                arguments!(request, count: u32, element: Option<IdlType>);
                let created = core.change(|edit| {
                    let body = ElementsBody { count, r#type: core.type_number(edit.model(), element.as_ref())? };
                    let is_sequence = operation == "create_sequence";
                    let content = if is_sequence { Body::ASequence(body) } else { Body::AnArray(body) };
                    let number = core.create_anonymous(edit, content)?;
                    core.reference(edit.model(), number)
                })?;
                request.set_result(&Some(created))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn anonymous(&self, request: &mut ServerRequest<'_>, content: Body) -> Result<(), SystemException> {
        let core = &*self.0;
        let created = core.change(|edit| {
            let number = core.create_anonymous(edit, content)?;
            core.reference(edit.model(), number)
        })?;
        request.set_result(&Some(created))
    }
}

/// Unbounded strings are primitive types (14.5.19).
fn bounded(bound: u32) -> Result<u32, SystemException> {
    match bound {
        0 => Err(bad_param(0, "a bound of zero; unbounded strings are primitive types".to_owned())),
        bound => Ok(bound),
    }
}

/// The type code with all names and ids, as far as the repository knows them (14.5.6.1).
fn canonical(describer: &mut Describer<'_>, type_code: &TypeCode) -> Result<TypeCode, SystemException> {
    let existing = type_code.id().ok().and_then(|id| describer.model.by_id(id));
    let existing = existing.filter(|number| {
        describer
            .model
            .get(*number)
            .is_some_and(|it| is_type(&it.content) || matches!(it.content, Body::AnException(_)))
    });
    if let Some(number) = existing {
        let registered = describer.type_code(number)?;
        if registered.equivalent(type_code) || registered.kind() == type_code.kind() {
            return Ok(registered);
        }
    }
    let invalid = |error: spandrel::types::TypeCodeError| bad_param(0, error.to_string());
    match type_code.kind() {
        TcKind::Sequence => {
            let content = canonical(describer, &type_code.content_type().map_err(invalid)?)?;
            TypeCode::sequence(&content, type_code.length().map_err(invalid)?).map_err(invalid)
        }
        TcKind::Array => {
            let content = canonical(describer, &type_code.content_type().map_err(invalid)?)?;
            TypeCode::array(&content, type_code.length().map_err(invalid)?).map_err(invalid)
        }
        _ => Ok(type_code.clone()),
    }
}
