//! Arguments and results as values of the types that IDL declares.
//!
//! A message names an operation and no interface. So each interface with an operation of this name is tried,
//! beginning with the one given by an option or by a reference to the object. The first one whose types take
//! up all octets is chosen.

use std::{collections::HashMap, path::PathBuf};

use anyhow::Context as _;
use spandrel::{
    dynamic::{ArgMode, DynAny, InterfaceDescription, OperationDescription, ParameterDescription, describe_file},
    types::{Any, Ior, TcKind, TypeCode},
};
use spandrel_cdr::{CdrError, Decoder};

/// The maximum number of objects with remembered types.
const MAX_KNOWN: usize = 16_384;
/// The maximum length of a remembered object key.
const MAX_KEY: usize = 1024;

/// Values by their names.
pub(super) type Values = Vec<(String, String)>;

/// The operation of a request: the indexes of an interface, and of one of its operations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OperationIndex(usize, usize);

/// The known interfaces.
#[derive(Debug)]
pub(super) struct Types {
    interfaces: Vec<InterfaceDescription>,
    /// The interface of every object, if given.
    given: Option<usize>,
    /// The interfaces of objects by object key, from references.
    known: HashMap<Vec<u8>, usize>,
}

impl Types {
    /// The declarations of these files. `interface`: that of every object.
    ///
    /// # Errors
    /// A file that is not valid IDL; an interface that no file declares.
    pub(super) fn read(files: &[PathBuf], include: &[PathBuf], interface: Option<&str>) -> anyhow::Result<Self> {
        let (mut interfaces, mut names) = (Vec::new(), Vec::new());
        for file in files {
            let unusable = || format!("cannot use the IDL file {}", file.display());
            let described = describe_file(file, include.iter().cloned()).with_context(unusable)?;
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
                Some(at.with_context(|| format!("the given IDL files do not declare `{name}`"))?)
            }
        };
        interfaces.push(every_object());
        Ok(Self { interfaces, given, known: HashMap::new() })
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
        let values = read_all(operation.parameters.iter().filter(|parameter| parameter.mode.is_sent()), body)?;
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
            values.push(("return".to_owned(), value(&operation.result, body)?));
        }
        let outs = operation.parameters.iter().filter(|parameter| parameter.mode != ArgMode::In);
        values.extend(read_all(outs, body)?);
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
    ) -> Option<Result<String, CdrError>> {
        let exceptions = &self.operation(operation_index).exceptions;
        let of = exceptions.iter().find(|of| of.without_aliases().id().is_ok_and(|known| known == id))?;
        Some(value(of, &mut body.clone().with_binder(self.interfaces[operation_index.0].value_types())))
    }
}

fn read_all<'p>(
    parameters: impl Iterator<Item = &'p ParameterDescription>,
    body: &mut Decoder<'_>,
) -> Result<Values, CdrError> {
    parameters.map(|parameter| Ok((parameter.name.clone(), value(&parameter.type_code, body)?))).collect()
}

fn value(of: &TypeCode, body: &mut Decoder<'_>) -> Result<String, CdrError> {
    let any = Any::read(of.clone(), body)?;
    // A value too large to be decoded is shown by its type.
    Ok(DynAny::new(&any)
        .map_or_else(|error| format!("a value of {} ({error})", of.type_spec()), |value| value.to_string()))
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
