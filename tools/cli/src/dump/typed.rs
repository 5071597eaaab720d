//! Arguments and results as values of the types that IDL declares.
//!
//! A message names an operation and no interface. So each interface with an operation of this name is tried,
//! beginning with the one given by an option or by a reference to the object. The first one whose types take
//! up all octets is chosen.

use std::{collections::HashMap, fmt};

use anyhow::Context as _;
use spandrel::{
    dynamic::{ArgMode, Descriptions, DynAny, InterfaceDescription, OperationDescription, ParameterDescription},
    types::{Any, Ior, TcKind, TypeCode},
};
use spandrel_cdr::{CdrError, Decoder};

use crate::common::did_you_mean;
use crate::json;

/// The maximum number of objects with remembered types.
const MAX_KNOWN: usize = 16_384;
/// The maximum length of a remembered object key.
const MAX_KEY: usize = 1024;

/// Values by their names.
pub(super) type Values = Vec<(String, DisplayValue)>;

/// A value to be shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DisplayValue {
    /// A description, or a value in the text form.
    Text(String),
    /// A value in the JSON form, or an object of such.
    Json(String),
}

impl DisplayValue {
    /// The value as JSON.
    pub(super) fn json(&self) -> String {
        match self {
            Self::Text(text) => json::text(text),
            Self::Json(json) => json.clone(),
        }
    }
}

impl From<String> for DisplayValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for DisplayValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Json(text) => f.write_str(text),
        }
    }
}

/// The operation of a request: the indexes of an interface, and of one of its operations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OperationIndex(usize, usize);

/// The interfaces whose operations have decoded values.
#[derive(Debug)]
pub(super) struct Types {
    interfaces: Vec<InterfaceDescription>,
    /// The interface of every object, if given.
    given: Option<usize>,
    /// The interfaces of objects by object key, from references.
    known: HashMap<Vec<u8>, usize>,
    /// Whether values are shown as JSON.
    is_json: bool,
}

impl Types {
    /// These declarations. `interface`: that of every object.
    ///
    /// # Errors
    /// An interface that is not declared.
    pub(super) fn new(all: &[Descriptions], interface: Option<&str>, is_json: bool) -> anyhow::Result<Self> {
        let (mut interfaces, mut names) = (Vec::new(), Vec::new());
        for described in all {
            // Interfaces that no object can have, such as those only declared forward, are skipped.
            for name in described.interfaces() {
                if let Ok(interface) = described.interface(name) {
                    names.push(name.to_owned());
                    interfaces.push(interface);
                }
            }
        }
        let given = match interface {
            None => None,
            Some(name) => {
                let known = names.iter().zip(&interfaces);
                let mut known = known.map(|(known, interface)| known == name || interface.id() == name);
                let at = known.position(|is_it| is_it);
                let similar = || did_you_mean(name, names.iter().map(String::as_str));
                Some(at.with_context(|| format!("the given IDL files do not declare `{name}`{}", similar()))?)
            }
        };
        interfaces.push(every_object());
        Ok(Self { interfaces, given, known: HashMap::new(), is_json })
    }

    pub(super) fn operation(&self, operation_index: OperationIndex) -> &OperationDescription {
        &self.interfaces[operation_index.0].operations()[operation_index.1]
    }

    /// The repository id of the interface.
    pub(super) fn interface(&self, operation_index: OperationIndex) -> &str {
        self.interfaces[operation_index.0].id()
    }

    /// Records the type in a reference for the object with this key.
    pub(super) fn learn_type(&mut self, ior: &Ior, key: &[u8]) {
        let at = self.interfaces.iter().position(|interface| interface.id() == ior.type_id);
        if let (Some(at), true) = (at, self.known.len() < MAX_KNOWN && key.len() <= MAX_KEY) {
            self.known.insert(key.to_vec(), at);
        }
    }

    /// The operation of this name whose arguments the body holds, and these; otherwise the reason.
    pub(super) fn arguments(
        &self,
        operation: &str,
        key: Option<&[u8]>,
        body: &Decoder<'_>,
    ) -> Option<(OperationIndex, Result<Values, CdrError>)> {
        let first = self.given.or_else(|| self.known.get(key?).copied());
        let others = (0..self.interfaces.len()).filter(|_| self.given.is_none());
        let mut failure = None;
        for interface in first.into_iter().chain(others).chain([self.interfaces.len() - 1]) {
            let at = self.interfaces[interface].operations().iter().position(|known| known.name == operation);
            let Some(operation_index) = at.map(|at| OperationIndex(interface, at)) else { continue };
            let types = self.interfaces[interface].value_types();
            match self.read_arguments(operation_index, &mut body.clone().with_binder(types)) {
                Ok(values) => return Some((operation_index, Ok(values))),
                Err(error) => drop(failure.get_or_insert((operation_index, Err(error)))),
            }
        }
        failure
    }

    fn read_arguments(&self, operation_index: OperationIndex, body: &mut Decoder<'_>) -> Result<Values, CdrError> {
        let operation = self.operation(operation_index);
        let values = self.read_all(operation.parameters.iter().filter(|parameter| parameter.mode.is_sent()), body)?;
        // Context objects come after the arguments (CORBA 3.3 Part 2, 9.4.2.2).
        if body.remaining() > 0 && operation.contexts.is_empty() {
            return Err(CdrError::Malformed("the body is longer than the arguments"));
        }
        Ok(values)
    }

    /// The result, and the values of the out parameters.
    pub(super) fn results(&self, operation_index: OperationIndex, body: &Decoder<'_>) -> Result<Values, CdrError> {
        let operation = self.operation(operation_index);
        let body = &mut body.clone().with_binder(self.interfaces[operation_index.0].value_types());
        let mut values = Vec::new();
        if operation.result.kind() != TcKind::Void {
            values.push(("return".to_owned(), self.value(&operation.result, body)?));
        }
        let outs = operation.parameters.iter().filter(|parameter| parameter.mode != ArgMode::In);
        values.extend(self.read_all(outs, body)?);
        if body.remaining() > 0 {
            return Err(CdrError::Malformed("the body is longer than the results"));
        }
        Ok(values)
    }

    /// The members of an exception, whose id comes first; none if the operation does not raise it.
    pub(super) fn exception(
        &self,
        operation_index: OperationIndex,
        id: &str,
        body: &Decoder<'_>,
    ) -> Option<Result<DisplayValue, CdrError>> {
        let exceptions = &self.operation(operation_index).exceptions;
        let of = exceptions.iter().find(|of| of.without_aliases().id().is_ok_and(|known| known == id))?;
        Some(self.value(of, &mut body.clone().with_binder(self.interfaces[operation_index.0].value_types())))
    }

    fn read_all<'p>(
        &self,
        parameters: impl Iterator<Item = &'p ParameterDescription>,
        body: &mut Decoder<'_>,
    ) -> Result<Values, CdrError> {
        parameters.map(|parameter| Ok((parameter.name.clone(), self.value(&parameter.type_code, body)?))).collect()
    }

    fn value(&self, of: &TypeCode, body: &mut Decoder<'_>) -> Result<DisplayValue, CdrError> {
        let any = Any::read(of.clone(), body)?;
        let value = DynAny::new(&any).and_then(|value| {
            if self.is_json {
                value.to_json().map(DisplayValue::Json)
            } else {
                Ok(DisplayValue::Text(value.to_string()))
            }
        });
        // A value too large to be decoded is shown by its type.
        Ok(value.unwrap_or_else(|error| DisplayValue::Text(format!("a value of {} ({error})", of.type_spec()))))
    }
}

/// The implicit operations of every object (CORBA 3.3 Part 1, 8.3).
fn every_object() -> InterfaceDescription {
    let operations = [
        OperationDescription::new("_is_a")
            .parameter(ArgMode::In, "logical_type_id", TypeCode::STRING)
            .returns(TypeCode::BOOLEAN),
        OperationDescription::new("_non_existent").returns(TypeCode::BOOLEAN),
        OperationDescription::new("_not_existent").returns(TypeCode::BOOLEAN),
        OperationDescription::new("_repository_id").returns(TypeCode::STRING),
    ];
    let object = InterfaceDescription::new("IDL:omg.org/CORBA/Object:1.0", "Object");
    operations.into_iter().fold(object, |object, operation| {
        object.operation(operation).expect("their names differ, and they raise nothing")
    })
}
