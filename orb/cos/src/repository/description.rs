//! Descriptions of interfaces from a repository.

use std::collections::HashSet;
use std::time::Duration;

use spandrel_cdr::{Ior, TaggedProfile, TcKind, TypeCode};
use spandrel_dynamic::{
    ArgMode, AttributeDescription, Documentation, InterfaceDescription, OperationDescription, ParameterDescription,
    ValueTypes,
};
use spandrel_giop::{CompletionStatus, IiopProfile, SystemException, SystemExceptionKind, minor};
use spandrel_orb::{ObjectRef, Orb};

use super::client::{call, is_unknown_operation};
use crate::repository::corba::{
    self, AttributeMode, DefinitionKind as Kind, ExceptionDescription, ExtAttributeDescription, OperationMode,
    ParameterMode, interface_attr_extension::ExtFullInterfaceDescription, interface_def::FullInterfaceDescription,
};
use crate::repository::interface_repository::PartDocumentation;

/// The name of the repository as an initial reference, and its plain key.
const NAME: &str = "InterfaceRepository";
/// The most bases of an interface, inherited ones included. A repository with more is not believed.
const MAX_BASES: usize = 1_000;
/// The most modules and the most value types of a repository that are searched for derived value types.
const MAX_SEARCHED: usize = 1_000;

/// Describes the interface of an object: by the definition that the object's server returns (`get_interface`), and else by
/// the [default repository](default_repository) of the ORB.
///
/// ```no_run
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_cos as services; pub use spandrel_dynamic as dynamic; pub mod types { pub use spandrel_cdr::Any; } }
/// use spandrel::Orb;
/// use spandrel::dynamic::DynamicObject;
/// use spandrel::services::repository;
/// use spandrel::types::Any;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let orb = Orb::init(std::env::args())?; // -ORBInitRef InterfaceRepository=corbaloc::host:2809/InterfaceRepository
///     let object = orb.string_to_object("corbaloc::bank.example:2810/Account")?;
///     let account = DynamicObject::new(object.clone(), repository::interface_of(&orb, &object)?);
///     println!("{:?}", account.call("deposit", &[Any::new(500_i64)?])?.result);
///     Ok(())
/// }
/// ```
///
/// The description has the value types that derive from those in the interface, out of the first thousand of the repository.
///
/// # Errors
/// INTF_REPOS if no repository is configured, or it does not know the interface; the exceptions of the calls.
pub fn interface_of(orb: &Orb, object: &ObjectRef) -> Result<InterfaceDescription, SystemException> {
    if let Some(definition) = definition_of(object)? {
        return describe(&definition);
    }
    let repository = default_repository(orb)?;
    let id = match object.type_id() {
        "" => object.repository_id()?,
        id => id.to_owned(),
    };
    interface_by_id(&repository, &id).map_err(|error| match error.kind() {
        // The naming service has no repository beside it.
        SystemExceptionKind::ObjectNotExist if !orb.has_initial_reference(NAME) => no_repository().with_source(error),
        _ => error,
    })
}

/// The interface repository of a client: the ORB's initial reference `InterfaceRepository`. Without one, it is the object
/// with the plain key of that name at the addresses of the initial reference `NameService`, as `spandrel up` serves it.
///
/// No call is made, so that the object may not exist, unless one of the references is a `corbaname:` URL.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod services { pub use spandrel_cos::repository; } }
/// use spandrel::{Orb, services::repository::default_repository};
///
/// let orb = Orb::init(["-ORBInitRef", "NameService=corbaloc::names:2809/NameService"].map(String::from))?;
/// let repository = default_repository(&orb)?;
/// assert!(repository.is_equivalent(&orb.string_to_object("corbaloc::names:2809/InterfaceRepository")?));
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// INTF_REPOS if the ORB has neither reference; BAD_PARAM if one cannot be read.
pub fn default_repository(orb: &Orb) -> Result<ObjectRef, SystemException> {
    if orb.has_initial_reference(NAME) {
        return orb.resolve_initial_references(NAME);
    }
    if !orb.has_initial_reference("NameService") {
        return Err(no_repository());
    }
    let names = orb.resolve_initial_references("NameService")?;
    let of_repository = |profile: &TaggedProfile| {
        let profile = IiopProfile::decode(profile).ok()??;
        IiopProfile { object_key: NAME.as_bytes().to_vec(), ..profile }.encode().ok()
    };
    let profiles: Vec<_> = names.ior().profiles.iter().filter_map(of_repository).collect();
    if profiles.is_empty() {
        return Err(no_repository());
    }
    Ok(orb.reference(Ior { type_id: "IDL:omg.org/CORBA/Repository:1.0".into(), profiles }))
}

/// The definition that the object's server returns; `None` if it has no repository.
fn definition_of(object: &ObjectRef) -> Result<Option<ObjectRef>, SystemException> {
    use spandrel_giop::SystemExceptionKind as Kind;
    match object.interface() {
        // JacORB raises INITIALIZE without a repository.
        Err(error) if matches!(error.kind(), Kind::IntfRepos | Kind::Initialize) || is_unknown_operation(&error) => {
            Ok(None)
        }
        answered => answered,
    }
}

fn no_repository() -> SystemException {
    SystemException::intf_repos(minor::NO_INTERFACE_REPOSITORY, CompletionStatus::No).with_detail(
        "the object's server has no interface repository, the ORB no -ORBInitRef InterfaceRepository, and its naming \
             service none beside it",
    )
}

/// Describes the interface with this repository id or absolute name, such as `Bank::Account`.
///
/// # Errors
/// INTF_REPOS if the repository does not know it; the exceptions of the calls.
pub fn interface_by_id(repository: &ObjectRef, id: &str) -> Result<InterfaceDescription, SystemException> {
    let found = lookup(repository, id)?.ok_or_else(|| {
        SystemException::intf_repos(minor::NO_SUCH_INTERFACE, CompletionStatus::No)
            .with_detail(format!("the interface repository has no definition `{id}`"))
    })?;
    describe(&found)
}

/// The type with this repository id or absolute name, such as `Bank::Reason`; `None` if the repository has no such type.
///
/// # Errors
/// The exceptions of the calls.
pub fn type_by_id(repository: &ObjectRef, id: &str) -> Result<Option<TypeCode>, SystemException> {
    let Some(found) = lookup(repository, id)? else { return Ok(None) };
    // Attributes and constants have a type, and are none.
    match call(&found, "_get_def_kind", &[])? {
        Kind::DkAlias
        | Kind::DkStruct
        | Kind::DkUnion
        | Kind::DkEnum
        | Kind::DkException
        | Kind::DkInterface
        | Kind::DkAbstractInterface
        | Kind::DkLocalInterface
        | Kind::DkValue
        | Kind::DkValueBox
        | Kind::DkNative
        | Kind::DkEvent => call(&found, "_get_type", &[]).map(Some),
        _ => Ok(None),
    }
}

/// Whether an interface is another one or inherits from it. Both are given by a repository id or an absolute name, such as
/// `Bank::Account`. `None` if the repository does not have the first. Each of the calls has this time limit.
///
/// # Errors
/// The exceptions of the calls.
pub fn inherits(
    repository: &ObjectRef,
    interface: &str,
    base: &str,
    timeout: Duration,
) -> Result<Option<bool>, SystemException> {
    let repository = repository.with_timeout(Some(timeout));
    let Some(definition) = lookup(&repository, interface)? else { return Ok(None) };
    let base_id = if base.starts_with("IDL:") {
        base.to_owned()
    } else {
        match lookup(&repository, base)? {
            Some(base) => call(&base.with_timeout(Some(timeout)), "_get_id", &[])?,
            None => return Ok(Some(false)),
        }
    };
    match call(&definition.with_timeout(Some(timeout)), "is_a", &[&base_id]) {
        // A structure is no interface.
        Err(error) if is_unknown_operation(&error) => Ok(Some(false)),
        inherits => inherits.map(Some),
    }
}

fn lookup(repository: &ObjectRef, id: &str) -> Result<Option<ObjectRef>, SystemException> {
    let definition: Option<ObjectRef> = call(repository, "lookup_id", &[&id])?;
    if definition.is_some() || id.starts_with("IDL:") {
        return Ok(definition);
    }
    call(repository, "lookup", &[&format!("::{}", id.trim_start_matches("::"))])
}

/// The repository that describes an object: that of its server, else the [default repository](default_repository).
///
/// # Errors
/// INTF_REPOS if there is none; the exceptions of the calls.
pub fn repository_of(orb: &Orb, object: &ObjectRef) -> Result<ObjectRef, SystemException> {
    match definition_of(object)? {
        Some(definition) => {
            let repository: Option<ObjectRef> = call(&definition, "_get_containing_repository", &[])?;
            repository.ok_or_else(no_repository)
        }
        None => default_repository(orb),
    }
}

/// The documentation of an interface and of the types in it, which Spandrel's repository keeps; empty from others.
///
/// # Errors
/// The exceptions of the calls.
pub fn documentation(
    repository: &ObjectRef,
    interface: &InterfaceDescription,
) -> Result<Documentation, SystemException> {
    let mut documentation = Documentation::new();
    for id in interface.bases().iter().map(String::as_str).chain([interface.id()]) {
        let Some(definition) = call::<Option<ObjectRef>>(repository, "lookup_id", &[&id])? else { continue };
        if !document(&definition, id, &mut documentation)? {
            return Ok(documentation);
        }
        // Its own operations and attributes only: those of the bases come with these.
        let contents: Vec<Option<ObjectRef>> = call(&definition, "contents", &[&Kind::DkAll, &true])?;
        for content in contents.into_iter().flatten() {
            let kind: Kind = call(&content, "_get_def_kind", &[])?;
            if matches!(kind, Kind::DkOperation | Kind::DkAttribute) {
                let name: String = call(&content, "_get_name", &[])?;
                let text: String = call(&content, "_get_documentation", &[])?;
                // Inherited operations are operations of the interface.
                documentation.insert_part(id, name.as_str(), text.as_str());
                documentation.insert_part(interface.id(), name, text);
            }
        }
    }
    for type_code in interface.named_types() {
        let Ok(id) = type_code.id() else { continue };
        if let Some(definition) = call::<Option<ObjectRef>>(repository, "lookup_id", &[&id])? {
            document(&definition, id, &mut documentation)?;
        }
    }
    Ok(documentation)
}

/// Adds the documentation of a definition; returns whether the repository keeps it.
fn document(definition: &ObjectRef, id: &str, documentation: &mut Documentation) -> Result<bool, SystemException> {
    match call::<String>(definition, "_get_documentation", &[]) {
        Ok(text) => documentation.insert(id, text),
        Err(error) if is_unknown_operation(&error) => return Ok(false),
        Err(error) => return Err(error),
    }
    for part in call::<Vec<PartDocumentation>>(definition, "_get_part_documentation", &[])? {
        documentation.insert_part(id, part.name, part.text);
    }
    Ok(true)
}

/// Describes the interface that a definition (`InterfaceDef`) defines.
fn describe(definition: &ObjectRef) -> Result<InterfaceDescription, SystemException> {
    let described = match call::<ExtFullInterfaceDescription>(definition, "describe_ext_interface", &[]) {
        Err(error) if is_unknown_operation(&error) => plain(call(definition, "describe_interface", &[])?),
        other => other?,
    };
    let mut types = ValueTypes::new();
    let mut add = |type_code: &TypeCode| {
        for value in type_code.value_types() {
            types.add(&value);
        }
    };
    for operation in &described.operations {
        add(&operation.result);
        operation.parameters.iter().for_each(|it| add(&it.r#type));
    }
    described.attributes.iter().for_each(|it| add(&it.r#type));
    let mut made = InterfaceDescription::new(described.id, described.name).with_value_types(&types);
    for base in bases(definition)? {
        made = made.inherit(&InterfaceDescription::new(base, "")).map_err(invalid)?;
    }
    for operation in described.operations {
        let name = operation.name.clone();
        let built = operation_description(operation);
        made = match built.check() {
            Ok(()) => made.operation(built).map_err(invalid)?,
            Err(error) => made.without(name, error.to_string()),
        };
    }
    for attribute in described.attributes {
        let built = AttributeDescription {
            name: attribute.name,
            type_code: attribute.r#type,
            is_readonly: attribute.mode == AttributeMode::AttrReadonly,
            get_exceptions: type_codes(attribute.get_exceptions),
            set_exceptions: type_codes(attribute.put_exceptions),
        };
        made = match built.check() {
            Ok(()) => made.attribute(built).map_err(invalid)?,
            Err(error) => made.without(built.name, error.to_string()),
        };
    }
    let derived = derived_values(definition, &made)?;
    Ok(made.with_value_types(&derived))
}

/// The value types of the definition's repository that derive from types in an interface, and from types in these.
fn derived_values(definition: &ObjectRef, interface: &InterfaceDescription) -> Result<ValueTypes, SystemException> {
    let is_base =
        |type_code: &TypeCode| matches!(type_code.kind(), TcKind::Value | TcKind::Event | TcKind::AbstractInterface);
    let mut value_types = ValueTypes::new();
    let mut bases: Vec<TypeCode> = interface.named_types().into_iter().filter(is_base).collect();
    if bases.is_empty() {
        return Ok(value_types);
    }
    let Some(repository) = call::<Option<ObjectRef>>(definition, "_get_containing_repository", &[])? else {
        return Ok(value_types);
    };
    let values = values_in(repository)?;
    let mut ids: HashSet<String> = HashSet::new();
    while let Some(base) = bases.pop() {
        for value in values.iter().filter(|value| value.derives_from(&base)) {
            if value.id().is_ok_and(|id| ids.insert(id.to_owned())) {
                value_types.add(value);
                bases.extend(value.named_types().into_iter().filter(is_base));
            }
        }
    }
    Ok(value_types)
}

/// The value types and boxes in a repository, as far as it is searched.
fn values_in(repository: ObjectRef) -> Result<Vec<TypeCode>, SystemException> {
    let (mut containers, mut searched, mut values) = (vec![repository], 0, Vec::new());
    let contents = |object: &ObjectRef, kind: Kind| -> Result<Vec<ObjectRef>, SystemException> {
        let all: Vec<Option<ObjectRef>> = call(object, "contents", &[&kind, &true])?;
        Ok(all.into_iter().flatten().collect())
    };
    while let Some(container) = containers.pop() {
        for kind in [Kind::DkValue, Kind::DkEvent, Kind::DkValueBox] {
            for value in contents(&container, kind)? {
                if values.len() >= MAX_SEARCHED {
                    return Ok(values);
                }
                values.push(call(&value, "_get_type", &[])?);
            }
        }
        searched += 1;
        if searched < MAX_SEARCHED {
            containers.extend(contents(&container, Kind::DkModule)?);
        }
    }
    Ok(values)
}

/// The ids of all direct and indirect bases.
fn bases(definition: &ObjectRef) -> Result<Vec<String>, SystemException> {
    let mut waiting = vec![definition.clone()];
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    while let Some(at) = waiting.pop() {
        for base in call::<Vec<Option<ObjectRef>>>(&at, "_get_base_interfaces", &[])?.into_iter().flatten() {
            let id: String = call(&base, "_get_id", &[])?;
            if seen.insert(id.clone()) {
                found.push(id);
                waiting.push(base);
            }
        }
        if found.len() > MAX_BASES {
            return Err(SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail(format!("an interface of the repository has more than {MAX_BASES} bases")));
        }
    }
    Ok(found)
}

fn operation_description(operation: corba::OperationDescription) -> OperationDescription {
    let parameters = operation.parameters.into_iter().map(|it| ParameterDescription {
        name: it.name,
        mode: match it.mode {
            ParameterMode::ParamIn => ArgMode::In,
            ParameterMode::ParamOut => ArgMode::Out,
            ParameterMode::ParamInout => ArgMode::InOut,
        },
        type_code: it.r#type,
    });
    OperationDescription {
        name: operation.name,
        result: operation.result,
        parameters: parameters.collect(),
        exceptions: type_codes(operation.exceptions),
        contexts: operation.contexts,
        is_oneway: operation.mode == OperationMode::OpOneway,
    }
}

fn type_codes(exceptions: Vec<ExceptionDescription>) -> Vec<TypeCode> {
    exceptions.into_iter().map(|it| it.r#type).collect()
}

fn plain(found: FullInterfaceDescription) -> ExtFullInterfaceDescription {
    let attributes = found.attributes.into_iter().map(|it| ExtAttributeDescription {
        name: it.name,
        id: it.id,
        defined_in: it.defined_in,
        version: it.version,
        r#type: it.r#type,
        mode: it.mode,
        ..ExtAttributeDescription::default()
    });
    ExtFullInterfaceDescription {
        name: found.name,
        id: found.id,
        defined_in: found.defined_in,
        version: found.version,
        operations: found.operations,
        attributes: attributes.collect(),
        base_interfaces: found.base_interfaces,
        r#type: found.r#type,
    }
}

fn invalid(error: spandrel_dynamic::DescriptionError) -> SystemException {
    SystemException::intf_repos(0, CompletionStatus::No).with_detail(error.to_string()).with_source(error)
}
