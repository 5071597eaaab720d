//! The operations of the repository itself (`Repository`, CORBA 3.3 Part 1, 14.5.6).

use spandrel::SystemException;
use spandrel::types::{Interface, TcKind, TypeCode};

use super::object::{Object, Outcome};
use crate::core::is_type;
use crate::describe::Describer;
use crate::errors::bad_param;
use crate::generated::corba::{
    ArrayDef, Contained, FixedDef, IdlType, PrimitiveDef, PrimitiveKind, RepositoryServant, SequenceDef, StringDef,
    WstringDef,
};
use crate::model::{Model, NONE, primitive};
use crate::records::records::{Body, ElementsBody, FixedBody};

impl RepositoryServant for Object<'_> {
    fn lookup_id(&self, search_id: &str) -> Outcome<Option<Contained>> {
        self.read(|model| self.core.typed(model, model.by_id(search_id).unwrap_or(NONE)))
    }

    fn get_canonical_typecode(&self, tc: &TypeCode) -> Outcome<TypeCode> {
        self.describe(|describer| canonical(describer, tc))
    }

    fn get_primitive(&self, kind: PrimitiveKind) -> Outcome<Option<PrimitiveDef>> {
        self.reference(primitive(kind as u32))
    }

    fn create_string(&self, bound: u32) -> Outcome<Option<StringDef>> {
        self.create_anonymous(|_| Ok(Body::Text(bounded(bound)?)))
    }

    fn create_wstring(&self, bound: u32) -> Outcome<Option<WstringDef>> {
        self.create_anonymous(|_| Ok(Body::WideText(bounded(bound)?)))
    }

    fn create_sequence(&self, bound: u32, element_type: Option<&IdlType>) -> Outcome<Option<SequenceDef>> {
        self.create_anonymous(|model| Ok(Body::ASequence(self.elements(model, bound, element_type)?)))
    }

    fn create_array(&self, length: u32, element_type: Option<&IdlType>) -> Outcome<Option<ArrayDef>> {
        self.create_anonymous(|model| Ok(Body::AnArray(self.elements(model, length, element_type)?)))
    }

    fn create_fixed(&self, digits: u16, scale: i16) -> Outcome<Option<FixedDef>> {
        self.create_anonymous(|_| Ok(Body::Decimal(FixedBody { digits, scale })))
    }
}

impl Object<'_> {
    /// Adds a type without a name, and returns a reference to it.
    fn create_anonymous<T: Interface>(&self, content: impl FnOnce(&Model) -> Outcome<Body>) -> Outcome<Option<T>> {
        let created = self.core.change(|edit| {
            let content = content(edit.model())?;
            let number = self.core.create_anonymous(edit, content)?;
            self.core.reference(edit.model(), number)
        })?;
        Ok(Some(T::from_object(created)))
    }

    fn elements(&self, model: &Model, count: u32, element_type: Option<&IdlType>) -> Outcome<ElementsBody> {
        Ok(ElementsBody { count, r#type: self.core.type_number(model, element_type)? })
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
