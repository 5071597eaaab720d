//! Descriptions of interfaces and types from IDL: converts the parser's model for dynamic invocation.

mod error;
mod type_codes;

use std::path::{Path, PathBuf};

use spandrel_cdr::TypeCode;
use spandrel_idl::{
    FrontEndOptions, MemoryFiles, Model,
    model::{Attribute, DefId, Definition, DefinitionKind, Operation, ParameterMode, Type},
};
use spandrel_sync::Mutex;

use error::unsupported;
use type_codes::TypeCodes;

pub use error::DescribeError;

use crate::{
    ArgMode, AttributeDescription, DescriptionError, Documentation, InterfaceDescription, OperationDescription,
    ParameterDescription, ValueTypes,
};

/// The definitions of an IDL text. Types and interfaces are described on demand.
#[derive(Debug)]
pub struct Descriptions {
    model: Model,
    types: Mutex<TypeCodes>,
}

/// Definitions that the compiler's front end has checked.
impl From<Model> for Descriptions {
    fn from(model: Model) -> Self {
        Self::new(model)
    }
}

/// Reads IDL from a text, without files for `#include`.
///
/// ```
/// # mod spandrel { pub use spandrel_dynamic as dynamic; }
/// use spandrel::dynamic::describe;
///
/// let idl = describe("module Bank { interface Account { long long deposit(in long long amount); }; };")?;
/// let account = idl.interface("Bank::Account")?;
/// assert_eq!(account.id(), "IDL:Bank/Account:1.0");
/// assert_eq!(account.find("deposit").unwrap().to_string(), "long long deposit(in long long amount)");
/// # Ok::<(), spandrel::dynamic::DescribeError>(())
/// ```
///
/// # Errors
/// [`DescribeError::Idl`].
pub fn describe(idl: &str) -> Result<Descriptions, DescribeError> {
    let file = Path::new("text.idl");
    let files = MemoryFiles::new().with(file, idl);
    let model = spandrel_idl::compile_with(&FrontEndOptions::default(), &files, file);
    model.map(Descriptions::new).map_err(DescribeError::Idl)
}

/// Reads IDL from a file; included files are searched in these folders.
///
/// # Errors
/// [`DescribeError::Idl`], also if a file cannot be read.
pub fn describe_file(
    file: impl AsRef<Path>,
    include_paths: impl IntoIterator<Item = PathBuf>,
) -> Result<Descriptions, DescribeError> {
    let options = FrontEndOptions { include_paths: include_paths.into_iter().collect(), ..FrontEndOptions::default() };
    spandrel_idl::compile(&options, file.as_ref()).map(Descriptions::new).map_err(DescribeError::Idl)
}

impl Descriptions {
    fn new(model: Model) -> Self {
        Self { model, types: Mutex::default() }
    }

    /// The definitions as the compiler's front end has checked them.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The names of all interfaces, in the order in which they are declared, such as `Bank::Account`.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        let interfaces = self.model.definitions().filter(|it| it.as_interface().is_some());
        interfaces.map(|it| &*it.scoped_name)
    }

    /// The interface with this full name or repository id.
    ///
    /// # Errors
    /// [`DescribeError::Unknown`]; [`DescribeError::Unsupported`] for forward declarations without a
    /// definition and for local interfaces. An operation or attribute of a type without values is left out:
    /// [`InterfaceDescription::undescribed`] returns its name and the reason.
    pub fn interface(&self, name: &str) -> Result<InterfaceDescription, DescribeError> {
        let definition = self.find(name).filter(|it| it.as_interface().is_some());
        let definition =
            definition.ok_or_else(|| DescribeError::Unknown { what: "interface", name: name.to_owned() })?;
        self.describe(definition.id)
    }

    /// The type with this full name or repository id: a struct, an exception, a typedef, …
    ///
    /// # Errors
    /// [`DescribeError::Unknown`]; [`DescribeError::Unsupported`] for types without values.
    pub fn type_code(&self, name: &str) -> Result<TypeCode, DescribeError> {
        let definition =
            self.find(name).ok_or_else(|| DescribeError::Unknown { what: "type", name: name.to_owned() })?;
        self.types.lock().of_definition(&self.model, definition.id)
    }

    /// The type code of a type that a definition of [`Descriptions::model`] mentions.
    ///
    /// # Errors
    /// [`DescribeError::Unsupported`] for types without values.
    pub fn type_code_of(&self, ty: &Type) -> Result<TypeCode, DescribeError> {
        self.types.lock().of(&self.model, ty)
    }

    /// All value types with state, and boxed values: the possible values of a base, of `ValueBase` or of an
    /// abstract interface. The descriptions of interfaces contain them too.
    pub fn value_types(&self) -> ValueTypes {
        self.types.lock().values(&self.model)
    }

    fn find(&self, name: &str) -> Option<&Definition> {
        let by_id = || self.model.definitions().find(|it| it.repository_id == name);
        self.model.lookup(name).or_else(by_id)
    }

    fn describe(&self, id: DefId) -> Result<InterfaceDescription, DescribeError> {
        let definition = &self.model[id];
        let unsupported = |reason: &str| unsupported(definition, reason);
        let body = definition.as_interface().ok_or_else(|| unsupported("it is not an interface"))?;
        if body.is_local {
            return Err(unsupported("its objects never leave their process"));
        }
        if body.forward_only {
            return Err(unsupported("it is declared forward and not defined"));
        }
        let interface = InterfaceDescription::new(&*definition.repository_id, &*definition.name);
        let mut interface = interface.with_value_types(&self.value_types());
        let mut documentation = Documentation::new();
        documentation.insert(&*definition.repository_id, definition.doc.join("\n"));
        for base in &body.bases {
            interface = interface.inherit(&self.describe(*base)?).map_err(|error| unsupported(&error.to_string()))?;
        }
        for content in &body.contents {
            let content = &self.model[*content];
            documentation.insert_part(&*definition.repository_id, &*content.name, content.doc.join("\n"));
            let described = match &content.kind {
                DefinitionKind::Operation(body) => self.operation(content, body).map(Described::Operation),
                DefinitionKind::Attribute(body) => self.attribute(content, body).map(Described::Attribute),
                _ => continue,
            };
            interface = match described {
                Ok(described) => described.add_to(interface).map_err(|error| unsupported(&error.to_string()))?,
                Err(error) => interface.without(&*content.name, error.to_string()),
            };
        }
        for type_code in interface.named_types() {
            let named = type_code.id().ok().and_then(|id| self.model.definitions().find(|it| it.repository_id == id));
            named.inspect(|named| document(&self.model, named, &mut documentation));
        }
        Ok(interface.with_documentation(&documentation))
    }

    fn operation(&self, definition: &Definition, body: &Operation) -> Result<OperationDescription, DescribeError> {
        let mut types = self.types.lock();
        let mut type_code_of = |ty| types.of(&self.model, ty);
        let parameters = body.parameters.iter().map(|parameter| {
            let mode = match parameter.mode {
                ParameterMode::In => ArgMode::In,
                ParameterMode::Out => ArgMode::Out,
                ParameterMode::InOut => ArgMode::InOut,
            };
            Ok(ParameterDescription { name: parameter.name.clone(), mode, type_code: type_code_of(&parameter.ty)? })
        });
        let parameters = parameters.collect::<Result<_, DescribeError>>()?;
        let result = body.result.as_ref().map(&mut type_code_of).transpose()?.unwrap_or(TypeCode::VOID);
        drop(types);
        let operation = OperationDescription {
            name: definition.name.clone(),
            result,
            parameters,
            exceptions: self.exceptions(&body.raises)?,
            contexts: body.context.clone(),
            is_oneway: body.oneway,
        };
        operation.check().map(|()| operation).map_err(|error| unsupported(definition, &error.to_string()))
    }

    fn attribute(&self, definition: &Definition, body: &Attribute) -> Result<AttributeDescription, DescribeError> {
        let type_code = self.types.lock().of(&self.model, &body.ty)?;
        let attribute = AttributeDescription {
            name: definition.name.clone(),
            type_code,
            is_readonly: body.readonly,
            get_exceptions: self.exceptions(&body.get_raises)?,
            set_exceptions: self.exceptions(&body.set_raises)?,
        };
        attribute.check().map(|()| attribute).map_err(|error| unsupported(definition, &error.to_string()))
    }

    fn exceptions(&self, raised: &[DefId]) -> Result<Vec<TypeCode>, DescribeError> {
        let mut types = self.types.lock();
        raised.iter().map(|id| types.of_definition(&self.model, *id)).collect()
    }
}

/// Adds the comments of a type and its parts.
fn document(model: &Model, definition: &Definition, documentation: &mut Documentation) {
    documentation.insert(&*definition.repository_id, definition.doc.join("\n"));
    for (part, doc) in definition.documented_parts(model) {
        documentation.insert_part(&*definition.repository_id, part, doc.join("\n"));
    }
}

/// A part of an interface.
enum Described {
    Operation(OperationDescription),
    Attribute(AttributeDescription),
}

impl Described {
    fn add_to(self, interface: InterfaceDescription) -> Result<InterfaceDescription, DescriptionError> {
        match self {
            Self::Operation(operation) => interface.operation(operation),
            Self::Attribute(attribute) => interface.attribute(attribute),
        }
    }
}
