//! What an interface is made of (CORBA 3.3 Part 1, 14.5.24: `FullInterfaceDescription`).

use std::collections::HashMap;

use spandrel_cdr::{TcKind, TypeCode};

use crate::{ArgMode, ValueTypes};

/// A parameter of an operation (`ParameterDescription`).
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterDescription {
    /// Its name.
    pub name: String,
    /// Which way it goes.
    pub mode: ArgMode,
    /// Its type.
    pub type_code: TypeCode,
}

/// An operation (`OperationDescription`).
#[derive(Clone, Debug, PartialEq)]
pub struct OperationDescription {
    /// Its name on the wire: that of an attribute's accessors is `_get_` or `_set_` and the attribute's name.
    pub name: String,
    /// What it returns; `void` if nothing.
    pub result: TypeCode,
    /// Its parameters in order.
    pub parameters: Vec<ParameterDescription>,
    /// The exceptions that it may raise.
    pub exceptions: Vec<TypeCode>,
    /// What its `context` clause names.
    pub contexts: Vec<String>,
    /// True if nothing comes back.
    pub is_oneway: bool,
}

/// An attribute (`AttributeDescription`).
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeDescription {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_code: TypeCode,
    /// True if it cannot be set.
    pub is_readonly: bool,
    /// The exceptions that getting it may raise.
    pub get_exceptions: Vec<TypeCode>,
    /// The exceptions that setting it may raise.
    pub set_exceptions: Vec<TypeCode>,
}

/// An interface with all that its objects can do, what it inherits included (`FullInterfaceDescription`).
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
    /// Where an operation stands.
    places: HashMap<String, usize>,
}

/// An operation or attribute of an interface that has no description.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Undescribed {
    /// Its IDL name.
    pub name: String,
    /// Why it cannot be described.
    pub reason: String,
}

/// Why an interface cannot be so.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// It has two operations or attributes of one name.
    #[error("`{interface}` has `{name}` already")]
    Duplicate {
        /// The interface's id.
        interface: String,
        /// The name.
        name: String,
    },
    /// A one-way operation gives something back.
    #[error("`{name}` is one-way, and returns or raises something")]
    OneWay {
        /// The operation.
        name: String,
    },
    /// Values of this type cannot be sent.
    #[error("`{name}` has a parameter or result of type `{type_code}`, of which there are no values to be sent")]
    NotAValue {
        /// The operation.
        name: String,
        /// The type.
        type_code: TypeCode,
    },
    /// What is said to be raised is no exception.
    #[error("`{name}` raises `{type_code}`, which is no exception")]
    NotAnException {
        /// The operation.
        name: String,
        /// The type.
        type_code: TypeCode,
    },
}

impl OperationDescription {
    /// An operation without parameters, that returns nothing.
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

    /// The same with one more parameter.
    #[must_use]
    pub fn parameter(mut self, mode: ArgMode, name: impl Into<String>, type_code: TypeCode) -> Self {
        self.parameters.push(ParameterDescription { name: name.into(), mode, type_code });
        self
    }

    /// The same, returning this.
    #[must_use]
    pub fn returns(mut self, type_code: TypeCode) -> Self {
        self.result = type_code;
        self
    }

    /// The same, with one more exception that it may raise.
    #[must_use]
    pub fn raises(mut self, exception: TypeCode) -> Self {
        self.exceptions.push(exception);
        self
    }

    /// The same, with one more name in its `context` clause.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.contexts.push(name.into());
        self
    }

    /// The same, one-way.
    #[must_use]
    pub fn oneway(mut self) -> Self {
        self.is_oneway = true;
        self
    }

    /// Checks that IDL would allow it.
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
        let result = Some(&self.result).filter(|of| of.kind() != TcKind::Void);
        if let Some(of) = result.filter(|of| !is_value(of)).or_else(|| values.find(|of| !is_value(of))) {
            return Err(DescriptionError::NotAValue { name: name(), type_code: of.clone() });
        }
        match self.exceptions.iter().find(|of| of.without_aliases().kind() != TcKind::Except) {
            Some(of) => Err(DescriptionError::NotAnException { name: name(), type_code: of.clone() }),
            None => Ok(()),
        }
    }
}

/// Whether values of the type can be parameters.
fn is_value(of: &TypeCode) -> bool {
    let kind = of.without_aliases().kind();
    !of.is_open()
        && !matches!(
            kind,
            TcKind::Null | TcKind::Void | TcKind::Except | TcKind::LocalInterface | TcKind::Native | TcKind::Recursive
        )
}

/// As IDL declares it.
impl std::fmt::Display for OperationDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let oneway = if self.is_oneway { "oneway " } else { "" };
        write!(f, "{oneway}{} {}(", self.result.type_spec(), self.name)?;
        for (index, ParameterDescription { name, mode, type_code }) in self.parameters.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} {} {name}", mode.keyword(), type_code.type_spec())?;
        }
        f.write_str(")")
    }
}

impl AttributeDescription {
    /// An attribute that can be got and set.
    pub fn new(name: impl Into<String>, type_code: TypeCode) -> Self {
        let name = name.into();
        Self { name, type_code, is_readonly: false, get_exceptions: Vec::new(), set_exceptions: Vec::new() }
    }

    /// The same, `readonly`.
    #[must_use]
    pub fn readonly(mut self) -> Self {
        self.is_readonly = true;
        self
    }

    /// Checks that IDL would allow it.
    ///
    /// # Errors
    /// [`DescriptionError`], except `Duplicate`.
    pub fn check(&self) -> Result<(), DescriptionError> {
        self.accessors().try_for_each(|accessor| accessor.check())
    }

    /// The operations that it is on the wire (CORBA 3.3 Part 2, 9.4.2.1).
    fn accessors(&self) -> impl Iterator<Item = OperationDescription> {
        let of = &self.type_code;
        let get = OperationDescription::new(format!("_get_{}", self.name)).returns(of.clone());
        let set = OperationDescription::new(format!("_set_{}", self.name)).parameter(ArgMode::In, "value", of.clone());
        let get = OperationDescription { exceptions: self.get_exceptions.clone(), ..get };
        let set = OperationDescription { exceptions: self.set_exceptions.clone(), ..set };
        [Some(get), Some(set).filter(|_| !self.is_readonly)].into_iter().flatten()
    }
}

impl InterfaceDescription {
    /// An interface without operations.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), ..Self::default() }
    }

    /// The same, inheriting from another.
    ///
    /// # Errors
    /// [`DescriptionError::Duplicate`] if both have something of one name, and not from the same base.
    pub fn inherit(mut self, base: &Self) -> Result<Self, DescriptionError> {
        let known = |id: &String| self.bases.contains(id);
        if known(&base.id) {
            return Ok(self);
        }
        let shared = base.bases.iter().any(known);
        for operation in &base.operations {
            // By way of an interface that both inherit from.
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
        for id in base.bases.iter().chain([&base.id]) {
            if !self.bases.contains(id) {
                self.bases.push(id.clone());
            }
        }
        Ok(self)
    }

    /// The same with one more operation.
    ///
    /// # Errors
    /// [`DescriptionError`] for what IDL would not allow.
    pub fn operation(mut self, operation: OperationDescription) -> Result<Self, DescriptionError> {
        self.enter(operation)?;
        Ok(self)
    }

    /// The same with one more attribute.
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

    /// The same, with the types that values may be of where a base of theirs, `ValueBase` or an abstract interface is declared.
    #[must_use]
    pub fn with_value_types(mut self, types: &ValueTypes) -> Self {
        self.value_types.add_all(types);
        self
    }

    /// The same, with an operation or attribute that is left out for this reason. It cannot be called or served by the description.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        self.undescribed.push(Undescribed { name: name.into(), reason: reason.into() });
        self
    }

    fn enter(&mut self, operation: OperationDescription) -> Result<(), DescriptionError> {
        operation.check()?;
        let place = self.operations.len();
        if self.places.insert(operation.name.clone(), place).is_some() {
            return Err(DescriptionError::Duplicate { interface: self.id.clone(), name: operation.name });
        }
        self.operations.push(operation);
        Ok(())
    }

    /// Its repository id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its simple name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The repository ids of all interfaces that it inherits from, directly or not.
    #[must_use]
    pub fn bases(&self) -> &[String] {
        &self.bases
    }

    /// All operations, attributes' accessors and what is inherited included.
    #[must_use]
    pub fn operations(&self) -> &[OperationDescription] {
        &self.operations
    }

    /// All attributes, inherited ones included.
    #[must_use]
    pub fn attributes(&self) -> &[AttributeDescription] {
        &self.attributes
    }

    /// The operations and attributes that are left out, inherited ones included.
    #[must_use]
    pub fn undescribed(&self) -> &[Undescribed] {
        &self.undescribed
    }

    /// The types that values may be of where a base of theirs is declared.
    #[must_use]
    pub fn value_types(&self) -> &ValueTypes {
        &self.value_types
    }

    /// Why there is no operation with this name on the wire.
    pub(crate) fn why_not(&self, operation: &str) -> String {
        let attribute = operation.strip_prefix("_get_").or_else(|| operation.strip_prefix("_set_"));
        let left_out = |it: &&Undescribed| it.name == operation || Some(&*it.name) == attribute;
        match self.undescribed.iter().find(left_out) {
            Some(Undescribed { reason, .. }) => format!("`{operation}` of `{}` has no description: {reason}", self.id),
            None => format!("`{}` has no operation `{operation}`", self.id),
        }
    }

    /// The operation with this name on the wire.
    #[must_use]
    pub fn find(&self, operation: &str) -> Option<&OperationDescription> {
        self.places.get(operation).map(|place| &self.operations[*place])
    }

    /// True if its objects support the interface with this repository id.
    #[must_use]
    pub fn is_a(&self, repository_id: &str) -> bool {
        self.id == repository_id || self.bases.iter().any(|base| base == repository_id)
    }

    /// The type of references to its objects.
    ///
    /// # Errors
    /// If its id or name is none.
    pub fn type_code(&self) -> Result<TypeCode, spandrel_cdr::TypeCodeError> {
        TypeCode::object_reference(self.id.clone(), self.name.clone())
    }
}
