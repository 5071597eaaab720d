//! Descriptions of interfaces (CORBA 3.3 Part 1, 14.5.24: `FullInterfaceDescription`).

use std::collections::{HashMap, HashSet};

use spandrel_cdr::{TcKind, TypeCode};
use spandrel_error::escape;

use super::Documentation;
use crate::{ArgMode, ValueTypes};

/// A parameter of an operation (`ParameterDescription`).
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterDescription {
    /// The name in IDL, by which named arguments refer to it.
    pub name: String,
    /// `in`, `out` or `inout`.
    pub mode: ArgMode,
    /// The type that an argument must have.
    pub type_code: TypeCode,
}

/// An operation's name, parameters, result and exceptions (IDL `OperationDescription`).
#[derive(Clone, Debug, PartialEq)]
pub struct OperationDescription {
    /// Its name on the wire: that of an attribute's accessors is `_get_` or `_set_` and the attribute's name.
    pub name: String,
    /// The type of its return value; `void` without one.
    pub result: TypeCode,
    /// Its parameters in order.
    pub parameters: Vec<ParameterDescription>,
    /// The types of the user exceptions that it may raise.
    pub exceptions: Vec<TypeCode>,
    /// The names of context properties that its callers send.
    pub contexts: Vec<String>,
    /// Whether callers get no reply.
    pub is_oneway: bool,
}

/// An attribute's name, type and access (IDL `AttributeDescription`).
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeDescription {
    /// The name of the attribute in IDL.
    pub name: String,
    /// The type of the attribute's value.
    pub type_code: TypeCode,
    /// Whether it is read-only.
    pub is_readonly: bool,
    /// The exceptions that reading the attribute can raise (`getraises`).
    pub get_exceptions: Vec<TypeCode>,
    /// The exceptions that setting the attribute can raise (`setraises`).
    pub set_exceptions: Vec<TypeCode>,
}

/// An interface with all its operations and attributes, inherited ones included (`FullInterfaceDescription`).
///
/// ```
/// use spandrel_cdr::TypeCode;
/// use spandrel_dynamic::{ArgMode, AttributeDescription, InterfaceDescription, OperationDescription};
///
/// let deposit = OperationDescription::new("deposit")
///     .parameter(ArgMode::In, "amount", TypeCode::LONGLONG)
///     .returns(TypeCode::LONGLONG);
/// let account = InterfaceDescription::new("IDL:Bank/Account:1.0", "Account")
///     .operation(deposit)?
///     .attribute(AttributeDescription::new("owner", TypeCode::STRING).readonly())?;
/// assert_eq!(account.find("deposit").unwrap().to_string(), "long long deposit(in long long amount)");
/// assert!(account.find("_set_owner").is_none());
/// # Ok::<(), spandrel_dynamic::DescriptionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceDescription {
    id: String,
    name: String,
    bases: Vec<String>,
    operations: Vec<OperationDescription>,
    attributes: Vec<AttributeDescription>,
    undescribed: Vec<Undescribed>,
    value_types: ValueTypes,
    documentation: Documentation,
    /// The index of each operation.
    places: HashMap<String, usize>,
}

/// An operation or attribute of an interface without a description.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Undescribed {
    /// The name of the operation or attribute in IDL.
    pub name: String,
    /// The reason why it cannot be called, as text for people.
    pub reason: String,
}

/// The reason why a description is not valid IDL, or ambiguous.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// Two operations or attributes of the same name.
    #[error("`{interface}` already has `{name}`")]
    Duplicate {
        /// The repository id of the interface.
        interface: String,
        /// The name that both have.
        name: String,
    },
    /// A one-way operation with a result.
    #[error("`{name}` is one-way, and returns or raises something")]
    OneWay {
        /// The name of the operation.
        name: String,
    },
    /// A parameter or result of a type whose values cannot be sent.
    #[error("`{name}` has a parameter or result of type `{type_code}`, whose values cannot be sent")]
    NotAValue {
        /// The name of the operation or attribute.
        name: String,
        /// The type whose values cannot be sent.
        type_code: TypeCode,
    },
    /// A raised type that is not an exception.
    #[error("`{name}` raises `{type_code}`, which is not an exception")]
    NotAnException {
        /// The name of the operation.
        name: String,
        /// The type that is not an exception.
        type_code: TypeCode,
    },
}
spandrel_error::debug_as_report!(DescriptionError);

impl OperationDescription {
    /// An operation without parameters and return value.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            result: TypeCode::VOID,
            parameters: Vec::new(),
            exceptions: Vec::new(),
            contexts: Vec::new(),
            is_oneway: false,
        }
    }

    /// Appends a parameter; the order is that of the declaration.
    #[must_use]
    pub fn parameter(mut self, mode: ArgMode, name: impl Into<String>, type_code: TypeCode) -> Self {
        self.parameters.push(ParameterDescription { name: name.into(), mode, type_code });
        self
    }

    /// Sets the type of the result. Without it, the operation returns `void`.
    #[must_use]
    pub fn returns(mut self, type_code: TypeCode) -> Self {
        self.result = type_code;
        self
    }

    /// Appends an exception that the operation may raise.
    #[must_use]
    pub fn raises(mut self, exception: TypeCode) -> Self {
        self.exceptions.push(exception);
        self
    }

    /// Adds a name to its `context` clause.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.contexts.push(name.into());
        self
    }

    /// Marks the operation as one-way: its callers get no reply.
    #[must_use]
    pub fn oneway(mut self) -> Self {
        self.is_oneway = true;
        self
    }

    /// Checks the description by the rules of IDL, such as those of one-ways.
    ///
    /// # Errors
    /// [`DescriptionError`], except `Duplicate`.
    pub fn check(&self) -> Result<(), DescriptionError> {
        let name = || self.name.clone();
        let gives_back = || self.parameters.iter().any(|parameter| parameter.mode.is_returned());
        if self.is_oneway && (self.result.kind() != TcKind::Void || !self.exceptions.is_empty() || gives_back()) {
            return Err(DescriptionError::OneWay { name: name() });
        }
        let mut values = self.parameters.iter().map(|parameter| &parameter.type_code);
        let result = Some(&self.result).filter(|type_code| type_code.kind() != TcKind::Void);
        if let Some(type_code) =
            result.filter(|type_code| !is_value(type_code)).or_else(|| values.find(|type_code| !is_value(type_code)))
        {
            return Err(DescriptionError::NotAValue { name: name(), type_code: type_code.clone() });
        }
        match self.exceptions.iter().find(|type_code| type_code.without_aliases().kind() != TcKind::Except) {
            Some(type_code) => Err(DescriptionError::NotAnException { name: name(), type_code: type_code.clone() }),
            None => Ok(()),
        }
    }
}

/// Whether parameters may have this type.
fn is_value(type_code: &TypeCode) -> bool {
    let kind = type_code.without_aliases().kind();
    !type_code.is_open()
        && !matches!(
            kind,
            TcKind::Null | TcKind::Void | TcKind::Except | TcKind::LocalInterface | TcKind::Native | TcKind::Recursive
        )
}

/// Prints its IDL declaration.
impl std::fmt::Display for OperationDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let oneway = if self.is_oneway { "oneway " } else { "" };
        write!(f, "{oneway}{} {}(", self.result.type_spec(), escape(&self.name))?;
        for (index, ParameterDescription { name, mode, type_code }) in self.parameters.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} {} {}", mode.keyword(), type_code.type_spec(), escape(name))?;
        }
        f.write_str(")")?;
        exceptions(" raises", &self.exceptions, f)?;
        if !self.contexts.is_empty() {
            let names: Vec<String> = self.contexts.iter().map(|name| format!("{name:?}")).collect();
            write!(f, " context ({})", names.join(", "))?;
        }
        Ok(())
    }
}

/// Prints its IDL declaration.
impl std::fmt::Display for AttributeDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let readonly = if self.is_readonly { "readonly " } else { "" };
        write!(f, "{readonly}attribute {} {}", self.type_code.type_spec(), escape(&self.name))?;
        exceptions(if self.is_readonly { " raises" } else { " getraises" }, &self.get_exceptions, f)?;
        exceptions(" setraises", &self.set_exceptions, f)
    }
}

fn exceptions(keyword: &str, exceptions: &[TypeCode], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    if exceptions.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = exceptions.iter().map(|type_code| type_code.type_spec().to_string()).collect();
    write!(f, "{keyword} ({})", names.join(", "))
}

impl AttributeDescription {
    /// An attribute with getter and setter.
    pub fn new(name: impl Into<String>, type_code: TypeCode) -> Self {
        let name = name.into();
        Self { name, type_code, is_readonly: false, get_exceptions: Vec::new(), set_exceptions: Vec::new() }
    }

    /// Marks the attribute as `readonly`: it cannot be set.
    #[must_use]
    pub fn readonly(mut self) -> Self {
        self.is_readonly = true;
        self
    }

    /// Checks the description by the rules of IDL.
    ///
    /// # Errors
    /// [`DescriptionError`], except `Duplicate`.
    pub fn check(&self) -> Result<(), DescriptionError> {
        self.accessors().try_for_each(|accessor| accessor.check())
    }

    /// Its accessor operations on the wire (CORBA 3.3 Part 2, 9.4.2.1).
    fn accessors(&self) -> impl Iterator<Item = OperationDescription> {
        let type_code = &self.type_code;
        let get = OperationDescription::new(format!("_get_{}", self.name)).returns(type_code.clone());
        let set =
            OperationDescription::new(format!("_set_{}", self.name)).parameter(ArgMode::In, "value", type_code.clone());
        let get = OperationDescription { exceptions: self.get_exceptions.clone(), ..get };
        let set = OperationDescription { exceptions: self.set_exceptions.clone(), ..set };
        [Some(get), Some(set).filter(|_| !self.is_readonly)].into_iter().flatten()
    }
}

impl InterfaceDescription {
    /// Describes an interface to which operations, attributes and bases are added.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), ..Self::default() }
    }

    /// Adds a base interface with all its operations and attributes.
    ///
    /// # Errors
    /// [`DescriptionError::Duplicate`] if both have an operation or attribute of the same name from different
    /// bases.
    pub fn inherit(mut self, base: &Self) -> Result<Self, DescriptionError> {
        let is_base = |id: &String| self.bases.contains(id);
        if is_base(&base.id) {
            return Ok(self);
        }
        let shared = base.bases.iter().any(is_base);
        for operation in &base.operations {
            // Already inherited through a common base.
            if shared && self.find(&operation.name) == Some(operation) {
                continue;
            }
            self.enter(operation.clone())?;
        }
        for attribute in &base.attributes {
            if !self.attributes.contains(attribute) {
                self.attributes.push(attribute.clone());
            }
        }
        for item in &base.undescribed {
            if !self.undescribed.contains(item) {
                self.undescribed.push(item.clone());
            }
        }
        self.value_types.add_all(&base.value_types);
        self.documentation.inherit(&base.documentation, &base.id, &self.id);
        for id in base.bases.iter().chain([&base.id]) {
            if !self.bases.contains(id) {
                self.bases.push(id.clone());
            }
        }
        Ok(self)
    }

    /// Adds an operation of the interface itself.
    ///
    /// # Errors
    /// [`DescriptionError`] for invalid IDL.
    pub fn operation(mut self, operation: OperationDescription) -> Result<Self, DescriptionError> {
        self.enter(operation)?;
        Ok(self)
    }

    /// Adds an attribute of the interface itself, with its accessors.
    ///
    /// # Errors
    /// As [`InterfaceDescription::operation`].
    pub fn attribute(mut self, attribute: AttributeDescription) -> Result<Self, DescriptionError> {
        for accessor in attribute.accessors() {
            self.enter(accessor)?;
        }
        self.attributes.push(attribute);
        Ok(self)
    }

    /// Sets the value types that are permitted where one of their bases, `ValueBase` or an abstract interface
    /// is declared.
    #[must_use]
    pub fn with_value_types(mut self, types: &ValueTypes) -> Self {
        self.value_types.add_all(types);
        self
    }

    /// Adds documentation: of the interface, its operations and attributes, and types in it.
    #[must_use]
    pub fn with_documentation(mut self, documentation: &Documentation) -> Self {
        let id = self.id.clone();
        self.documentation.inherit(documentation, &id, &id);
        self
    }

    /// Omits an operation or attribute, with a reason. It can be neither called nor served with the
    /// description.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.undescribed.push(Undescribed { name: name.into(), reason: reason.into() });
        self
    }

    fn enter(&mut self, operation: OperationDescription) -> Result<(), DescriptionError> {
        operation.check()?;
        let index = self.operations.len();
        if self.places.insert(operation.name.clone(), index).is_some() {
            return Err(DescriptionError::Duplicate { interface: self.id.clone(), name: operation.name });
        }
        self.operations.push(operation);
        Ok(())
    }

    /// The repository id, e.g. `IDL:Bank/Account:1.0`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name in IDL without those of modules.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The repository ids of all its direct and indirect base interfaces.
    #[must_use]
    pub fn bases(&self) -> &[String] {
        &self.bases
    }

    /// All operations, including attributes' accessors and inherited ones.
    #[must_use]
    pub fn operations(&self) -> &[OperationDescription] {
        &self.operations
    }

    /// All attributes, inherited ones included.
    #[must_use]
    pub fn attributes(&self) -> &[AttributeDescription] {
        &self.attributes
    }

    /// The omitted operations and attributes, inherited ones included.
    #[must_use]
    pub fn undescribed(&self) -> &[Undescribed] {
        &self.undescribed
    }

    /// The value types that are permitted where one of their bases is declared.
    #[must_use]
    pub fn value_types(&self) -> &ValueTypes {
        &self.value_types
    }

    /// The documentation of the interface, of its operations and attributes (as its parts, by their names) and of the types in it. Empty
    /// unless its source has comments.
    #[must_use]
    pub fn documentation(&self) -> &Documentation {
        &self.documentation
    }

    /// The documentation of one of its operations or attributes; an accessor has that of its attribute.
    #[must_use]
    pub fn documentation_of(&self, operation: &str) -> Option<&str> {
        let attribute = operation.strip_prefix("_get_").or_else(|| operation.strip_prefix("_set_"));
        self.documentation.of_part(&self.id, attribute.unwrap_or(operation))
    }

    /// All types with a repository id in its operations and attributes, each once.
    #[must_use]
    pub fn named_types(&self) -> Vec<TypeCode> {
        let mut types: Vec<TypeCode> = Vec::new();
        let mut ids = HashSet::new();
        let operations = self.operations.iter().flat_map(|operation| {
            let parameters = operation.parameters.iter().map(|parameter| &parameter.type_code);
            parameters.chain([&operation.result]).chain(&operation.exceptions)
        });
        for type_code in operations.flat_map(TypeCode::named_types) {
            if type_code.id().is_ok_and(|id| ids.insert(id.to_owned())) {
                types.push(type_code);
            }
        }
        types
    }

    /// The reason for which it has no operation with this name on the wire.
    pub(crate) fn missing_reason(&self, operation: &str) -> String {
        let attribute = operation.strip_prefix("_get_").or_else(|| operation.strip_prefix("_set_"));
        let left_out = |it: &&Undescribed| it.name == operation || Some(&*it.name) == attribute;
        match self.undescribed.iter().find(left_out) {
            Some(Undescribed { reason, .. }) => format!("`{operation}` of `{}` has no description: {reason}", self.id),
            None => format!("`{}` has no operation `{operation}`", self.id),
        }
    }

    /// The operation with this name in requests, such as `_get_balance`.
    #[must_use]
    pub fn find(&self, operation: &str) -> Option<&OperationDescription> {
        self.places.get(operation).map(|index| &self.operations[*index])
    }

    /// Whether its objects support the interface with this repository id.
    #[must_use]
    pub fn is_a(&self, repository_id: &str) -> bool {
        self.id == repository_id || self.bases.iter().any(|base| base == repository_id)
    }

    /// The type of references to its objects.
    ///
    /// # Errors
    /// If its id or name is invalid.
    pub fn type_code(&self) -> Result<TypeCode, spandrel_cdr::TypeCodeError> {
        TypeCode::object_reference(self.id.clone(), self.name.clone())
    }
}
