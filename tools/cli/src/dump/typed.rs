//! Arguments and results as values of the types that IDL declares.
//!
//! A message names an operation and no interface. So each interface that has an operation of this name is tried, beginning with the one
//! that was named or that references have named for the object; whose types take up all octets is it.

use std::{collections::HashMap, path::PathBuf};

use anyhow::Context as _;
use spandrel::{
    Any, Ior, TcKind, TypeCode,
    dynamic::{ArgMode, DynAny, InterfaceDescription, OperationDescription, ParameterDescription, describe_file},
};
use spandrel_cdr::{CdrError, Decoder};

/// Objects whose types are remembered, at most.
const MAX_KNOWN: usize = 16_384;
/// Keys that are longer are not remembered.
const MAX_KEY: usize = 1024;

/// Values by their names.
pub(super) type Values = Vec<(String, String)>;

/// Which operation a request means: an interface, and one of its operations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Meant(usize, usize);

/// What is known of interfaces.
#[derive(Debug)]
pub(super) struct Types {
    interfaces: Vec<InterfaceDescription>,
    /// The interface of every object.
    given: Option<usize>,
    /// What references have said of objects, by their keys.
    known: HashMap<Vec<u8>, usize>,
}

impl Types {
    /// What these files declare. `interface`: that of every object.
    ///
    /// # Errors
    /// A file that is no IDL; an interface that none declares.
    pub(super) fn read(files: &[PathBuf], include: &[PathBuf], interface: Option<&str>) -> anyhow::Result<Self> {
        let (mut interfaces, mut names) = (Vec::new(), Vec::new());
        for file in files {
            let unusable = || format!("cannot use the IDL in {}", file.display());
            let described = describe_file(file, include.iter().cloned()).with_context(unusable)?;
            // What no object has, such as what is only declared forward, is passed over.
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
                Some(at.with_context(|| format!("no IDL that was given declares `{name}`"))?)
            }
        };
        interfaces.push(every_object());
        Ok(Self { interfaces, given, known: HashMap::new() })
    }

    pub(super) fn operation(&self, meant: Meant) -> &OperationDescription {
        &self.interfaces[meant.0].operations()[meant.1]
    }

    /// The repository id of the interface.
    pub(super) fn interface(&self, meant: Meant) -> &str {
        self.interfaces[meant.0].id()
    }

    /// A reference says what type the object with this key has.
    pub(super) fn learn(&mut self, ior: &Ior, key: &[u8]) {
        let at = self.interfaces.iter().position(|interface| interface.id() == ior.type_id);
        if let (Some(at), true) = (at, self.known.len() < MAX_KNOWN && key.len() <= MAX_KEY) {
            self.known.insert(key.to_vec(), at);
        }
    }

    /// The operation with this name whose arguments the body holds, and these; why not, if none is it.
    pub(super) fn arguments(
        &self,
        operation: &str,
        key: Option<&[u8]>,
        body: &Decoder<'_>,
    ) -> Option<(Meant, Result<Values, CdrError>)> {
        let first = self.given.or_else(|| self.known.get(key?).copied());
        let others = (0..self.interfaces.len()).filter(|_| self.given.is_none());
        let mut failure = None;
        for interface in first.into_iter().chain(others).chain([self.interfaces.len() - 1]) {
            let at = self.interfaces[interface].operations().iter().position(|known| known.name == operation);
            let Some(meant) = at.map(|at| Meant(interface, at)) else { continue };
            let types = self.interfaces[interface].value_types();
            match self.read_arguments(meant, &mut body.clone().with_binder(types)) {
                Ok(values) => return Some((meant, Ok(values))),
                Err(error) => drop(failure.get_or_insert((meant, Err(error)))),
            }
        }
        failure
    }

    fn read_arguments(&self, meant: Meant, body: &mut Decoder<'_>) -> Result<Values, CdrError> {
        let operation = self.operation(meant);
        let values = read_all(operation.parameters.iter().filter(|parameter| parameter.mode.is_sent()), body)?;
        // Context objects come after the arguments (CORBA 3.3 Part 2, 9.4.2.2).
        if body.remaining() > 0 && operation.contexts.is_empty() {
            return Err(CdrError::Malformed("more octets than the arguments have"));
        }
        Ok(values)
    }

    /// The result, and what the parameters were set to.
    pub(super) fn results(&self, meant: Meant, body: &Decoder<'_>) -> Result<Values, CdrError> {
        let operation = self.operation(meant);
        let body = &mut body.clone().with_binder(self.interfaces[meant.0].value_types());
        let mut values = Vec::new();
        if operation.result.kind() != TcKind::Void {
            values.push(("return".to_owned(), value(&operation.result, body)?));
        }
        let outs = operation.parameters.iter().filter(|parameter| parameter.mode != ArgMode::In);
        values.extend(read_all(outs, body)?);
        if body.remaining() > 0 {
            return Err(CdrError::Malformed("more octets than the results have"));
        }
        Ok(values)
    }

    /// The members of an exception whose id comes first; nothing if the operation raises no such exception.
    pub(super) fn exception(&self, meant: Meant, id: &str, body: &Decoder<'_>) -> Option<Result<String, CdrError>> {
        let exceptions = &self.operation(meant).exceptions;
        let of = exceptions.iter().find(|of| of.without_aliases().id().is_ok_and(|known| known == id))?;
        Some(value(of, &mut body.clone().with_binder(self.interfaces[meant.0].value_types())))
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
    // What is too large to be taken apart is named all the same.
    Ok(DynAny::new(&any)
        .map_or_else(|error| format!("a value of {} ({error})", of.type_spec()), |value| value.to_string()))
}

/// The operations that every object has (CORBA 3.3 Part 1, 8.3).
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
