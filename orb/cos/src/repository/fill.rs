//! IDL into a repository.

mod contents;

use std::collections::{HashMap, HashSet};

use spandrel_cdr::{Any, CdrError, Encode, TypeCode};
use spandrel_dynamic::{DescribeError, Descriptions};
use spandrel_giop::SystemException;
use spandrel_idl::{
    Model,
    model::{self, DefId, Definition, DefinitionKind, Primitive, Struct, Type},
};
use spandrel_orb::{Interface as _, ObjectRef};

use super::{
    client::{call, is_unknown_operation, send},
    constants,
};
use crate::repository::corba::{
    DefinitionKind as Kind, IdlType, Initializer, PrimitiveKind, StructMember, UnionMember,
};
use crate::repository::interface_repository::PartDocumentation;

/// The changes of a repository by [`fill`]: the absolute names of definitions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changes {
    /// The definitions that were new.
    pub created: Vec<String>,
    /// Definitions that differed from the IDL, and are as in the IDL now.
    pub replaced: Vec<String>,
    /// Definitions in interfaces, values, structs, unions and exceptions that the IDL no longer has.
    pub removed: Vec<String>,
    /// The number of definitions that the repository had in the same form already.
    pub unchanged: usize,
}

/// The reason why a repository could not be filled. Definitions before the named one are in the repository.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The repository raised an exception.
    #[error("cannot enter `{name}` into the interface repository")]
    Call {
        /// The absolute name of the definition.
        name: String,
        /// The exception that the repository raised.
        #[source]
        cause: SystemException,
    },
    /// The definition has no form in a repository.
    #[error("`{name}` cannot be entered into an interface repository: {reason}")]
    Unsupported {
        /// The absolute name of the definition.
        name: String,
        /// The cause, worded to end the error message.
        reason: String,
    },
}

/// Enters the definitions of IDL, with those of included files, into a repository. Equal definitions are left as they are;
/// others of the same repository ids are changed.
///
/// # Errors
/// [`FillError`]; BAD_PARAM as its cause if another definition has the name, BAD_INV_ORDER if others depend on one that
/// would have to go.
pub fn fill(repository: &ObjectRef, idl: &Descriptions) -> Result<Changes, FillError> {
    let mut filling = Filling {
        repository,
        idl,
        model: idl.model(),
        defined: HashMap::new(),
        in_progress: HashSet::new(),
        finished: HashSet::new(),
        created: HashSet::new(),
        primitives: HashMap::new(),
        is_documented: true,
        is_extended: true,
        changes: Changes::default(),
    };
    for root in idl.model().roots() {
        filling.define(*root)?;
    }
    Ok(filling.changes)
}

struct Filling<'f> {
    repository: &'f ObjectRef,
    idl: &'f Descriptions,
    model: &'f Model,
    /// The definitions that exist in the repository; those in progress perhaps without their members.
    defined: HashMap<DefId, ObjectRef>,
    in_progress: HashSet<DefId>,
    /// The definitions that are complete in the repository.
    finished: HashSet<DefId>,
    /// The definitions that this run has created.
    created: HashSet<DefId>,
    primitives: HashMap<PrimitiveKind, ObjectRef>,
    /// Whether the repository keeps documentation.
    is_documented: bool,
    /// Whether the repository knows the exceptions of attributes.
    is_extended: bool,
    changes: Changes,
}

type Filled<T> = Result<T, FillError>;

impl Filling<'_> {
    fn failed(&self, id: DefId) -> impl Fn(SystemException) -> FillError + use<> {
        let name = self.model[id].scoped_name.clone();
        move |cause| FillError::Call { name: name.clone(), cause }
    }

    fn invalid(&self, id: DefId) -> impl Fn(CdrError) -> FillError + use<> {
        let failed = self.failed(id);
        move |error| failed(SystemException::from(error))
    }

    fn undescribed(&self, id: DefId) -> impl Fn(DescribeError) -> FillError + use<> {
        let name = self.model[id].scoped_name.clone();
        move |error| FillError::Unsupported { name: name.clone(), reason: error.to_string() }
    }

    fn type_code(&self, user: DefId, ty: &Type) -> Filled<TypeCode> {
        self.idl.type_code_of(ty).map_err(self.undescribed(user))
    }

    /// Enters a definition, unless it is there.
    fn define(&mut self, id: DefId) -> Filled<()> {
        if self.finished.contains(&id) || self.in_progress.contains(&id) {
            return Ok(());
        }
        let definition = &self.model[id];
        self.in_progress.insert(id);
        match &definition.kind {
            DefinitionKind::Module(body) => {
                self.shell(id)?;
                for content in &body.contents {
                    self.define(*content)?;
                }
            }
            DefinitionKind::Interface(_) | DefinitionKind::ValueType(_) => self.define_with_contents(id)?,
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => self.define_structure(id, body)?,
            DefinitionKind::Union(_)
            | DefinitionKind::Enum(_)
            | DefinitionKind::Typedef(_)
            | DefinitionKind::ValueBox(_)
            | DefinitionKind::Native
            | DefinitionKind::Const(_) => self.define_simple(id)?,
            // Enumerators belong to their enum; components have no form here.
            _ => {}
        }
        self.in_progress.remove(&id);
        self.finished.insert(id);
        Ok(())
    }

    /// The reference of a definition, with at least an empty definition there.
    fn reference(&mut self, id: DefId) -> Filled<ObjectRef> {
        if let Some(object) = self.defined.get(&id) {
            return Ok(object.clone());
        }
        if self.in_progress.contains(&id) {
            return self.shell(id).map(|(object, _)| object);
        }
        self.define(id)?;
        self.defined.get(&id).cloned().ok_or_else(|| FillError::Unsupported {
            name: self.model[id].scoped_name.clone(),
            reason: "it is a definition without a form in the standard".to_owned(),
        })
    }

    fn container(&mut self, definition: &Definition) -> Filled<ObjectRef> {
        match definition.parent {
            Some(parent) => match self.defined.get(&parent) {
                Some(object) => Ok(object.clone()),
                None => self.shell(parent).map(|(object, _)| object),
            },
            None => Ok(self.repository.clone()),
        }
    }

    /// The definition with the repository id. A module is found by its name: it has the id of its first opening, and files may
    /// open it under different prefixes.
    fn find(&self, id: DefId) -> Filled<Option<ObjectRef>> {
        let failed = self.failed(id);
        let definition = &self.model[id];
        if matches!(definition.kind, DefinitionKind::Module(_)) {
            let name = format!("::{}", definition.scoped_name);
            let object: Option<ObjectRef> = call(self.repository, "lookup", &[&name]).map_err(&failed)?;
            if let Some(object) = object
                && call::<Kind>(&object, "_get_def_kind", &[]).map_err(&failed)? == Kind::DkModule
            {
                return Ok(Some(object));
            }
        }
        call(self.repository, "lookup_id", &[&definition.repository_id]).map_err(failed)
    }

    /// The existing definition, if it is of this kind; one of another kind is destroyed.
    fn existing(&mut self, id: DefId, kind: Kind) -> Filled<Option<ObjectRef>> {
        let Some(object) = self.find(id)? else { return Ok(None) };
        let failed = self.failed(id);
        if call::<Kind>(&object, "_get_def_kind", &[]).map_err(&failed)? != kind {
            send(&object, "destroy", &[]).map_err(&failed)?;
            return Ok(None);
        }
        let definition = &self.model[id];
        let absolute: String = call(&object, "_get_absolute_name", &[]).map_err(&failed)?;
        if absolute != format!("::{}", definition.scoped_name) {
            let container = self.container(definition)?;
            let version = version(definition);
            send(&object, "move", &[&Some(container), &definition.name, &version]).map_err(&failed)?;
        }
        Ok(Some(object))
    }

    /// Finds or creates a definition, without its members if it is new. Returns whether it is new.
    fn shell(&mut self, id: DefId) -> Filled<(ObjectRef, bool)> {
        if let Some(object) = self.defined.get(&id) {
            return Ok((object.clone(), false));
        }
        let definition = &self.model[id];
        let kind = kind_of(definition);
        if let Some(object) = self.existing(id, kind)? {
            self.defined.insert(id, object.clone());
            return Ok((object, false));
        }
        let created = match &definition.kind {
            DefinitionKind::Module(_) => self.create(id, "create_module", &[])?,
            DefinitionKind::Struct(_) => self.create(id, "create_struct", &[&Vec::<StructMember>::new()])?,
            DefinitionKind::Exception(_) => self.create(id, "create_exception", &[&Vec::<StructMember>::new()])?,
            DefinitionKind::Union(body) => {
                // An enum that is declared in the union comes after it. Until then another type takes its place.
                let discriminator = match &body.discriminator {
                    Type::Named(inner) if self.model[*inner].parent == Some(id) => {
                        Some(self.primitive(id, PrimitiveKind::PkLong)?)
                    }
                    other => self.idl_type(id, other)?,
                };
                self.create(id, "create_union", &[&discriminator, &Vec::<UnionMember>::new()])?
            }
            DefinitionKind::Interface(body) => {
                let bases = self.references(&body.bases)?;
                let operation = match kind {
                    Kind::DkAbstractInterface => "create_abstract_interface",
                    Kind::DkLocalInterface => "create_local_interface",
                    _ => "create_interface",
                };
                self.create(id, operation, &[&bases])?
            }
            DefinitionKind::ValueType(body) => {
                let (base, abstract_bases) = self.value_bases(body)?;
                let supports = self.references(&body.supports)?;
                self.create(
                    id,
                    "create_value",
                    &[
                        &body.is_custom,
                        &body.is_abstract,
                        &base,
                        &body.is_truncatable,
                        &abstract_bases,
                        &supports,
                        &Vec::<Initializer>::new(),
                    ],
                )?
            }
            // A recursive type refers to it.
            DefinitionKind::Typedef(model::Typedef { ty }) | DefinitionKind::ValueBox(model::ValueBox { ty }) => {
                let original = self.idl_type(id, ty)?;
                let is_alias = matches!(definition.kind, DefinitionKind::Typedef(_));
                self.create(id, if is_alias { "create_alias" } else { "create_value_box" }, &[&original])?
            }
            _ => {
                return Err(FillError::Unsupported {
                    name: definition.scoped_name.clone(),
                    reason: "it contains itself other than in a sequence or value".to_owned(),
                });
            }
        };
        Ok((created, true))
    }

    /// Calls an operation of creation with a definition's id, name and version, and these arguments. No second one is created if
    /// the definitions of the arguments refer to this one and have created it: a base may mention its derived interface.
    fn create(&mut self, id: DefId, operation: &'static str, more: &[&dyn Encode]) -> Filled<ObjectRef> {
        if let Some(object) = self.defined.get(&id) {
            return Ok(object.clone());
        }
        let definition = &self.model[id];
        let container = self.container(definition)?;
        let version = version(definition);
        let mut arguments: Vec<&dyn Encode> = vec![&definition.repository_id, &definition.name, &version];
        arguments.extend(more);
        let created: Option<ObjectRef> = call(&container, operation, &arguments).map_err(self.failed(id))?;
        let created = created.ok_or_else(|| FillError::Unsupported {
            name: definition.scoped_name.clone(),
            reason: "the repository returned no definition".to_owned(),
        })?;
        self.defined.insert(id, created.clone());
        self.created.insert(id);
        self.changes.created.push(format!("::{}", definition.scoped_name));
        self.document(id, &created)?;
        Ok(created)
    }

    fn references(&mut self, ids: &[DefId]) -> Filled<Vec<Option<ObjectRef>>> {
        ids.iter().map(|id| self.reference(*id).map(Some)).collect()
    }

    fn value_bases(&mut self, body: &model::ValueType) -> Filled<(Option<ObjectRef>, Vec<Option<ObjectRef>>)> {
        let is_abstract = |id: &DefId| self.model[*id].as_value_type().is_some_and(|it| it.is_abstract);
        let (abstract_bases, concrete): (Vec<DefId>, Vec<DefId>) = body.bases.iter().partition(|id| is_abstract(id));
        let base = match concrete.first() {
            Some(base) => Some(self.reference(*base)?),
            None => None,
        };
        Ok((base, self.references(&abstract_bases)?))
    }

    /// Enters the named types that a type consists of.
    fn define_parts(&mut self, ty: &Type) -> Filled<()> {
        match ty {
            Type::Named(id) => self.define(*id),
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.define_parts(element),
            _ => Ok(()),
        }
    }

    /// The definition of a type (`IDLType`). A type without a name is created for its user.
    fn idl_type(&mut self, user: DefId, ty: &Type) -> Filled<Option<ObjectRef>> {
        let failed = self.failed(user);
        let create =
            |operation, arguments: &[&dyn Encode]| call(self.repository, operation, arguments).map_err(&failed);
        let kind = match ty {
            Type::String { bound: Some(bound) } => return create("create_string", &[bound]),
            Type::WString { bound: Some(bound) } => return create("create_wstring", &[bound]),
            Type::Fixed { digits, scale } => {
                return create("create_fixed", &[digits, &i16::try_from(*scale).unwrap_or(i16::MAX)]);
            }
            Type::Sequence { element, bound } => {
                let element = self.idl_type(user, element)?;
                return call(self.repository, "create_sequence", &[&bound.unwrap_or(0), &element]).map_err(&failed);
            }
            Type::Array { element, dimensions } => {
                let mut element = self.idl_type(user, element)?;
                for length in dimensions.iter().rev() {
                    element = call(self.repository, "create_array", &[length, &element]).map_err(&failed)?;
                }
                return Ok(element);
            }
            Type::Named(id) => return self.reference(*id).map(Some),
            Type::String { bound: None } => PrimitiveKind::PkString,
            Type::WString { bound: None } => PrimitiveKind::PkWstring,
            Type::Object => PrimitiveKind::PkObjref,
            Type::Any => PrimitiveKind::PkAny,
            Type::TypeCode => PrimitiveKind::PkTypeCode,
            Type::ValueBase => PrimitiveKind::PkValueBase,
            Type::Primitive(primitive) => primitive_kind(*primitive),
            other => {
                return Err(FillError::Unsupported {
                    name: self.model[user].scoped_name.clone(),
                    reason: format!("the standard has no definition of a type such as {other:?}"),
                });
            }
        };
        self.primitive(user, kind).map(Some)
    }

    fn primitive(&mut self, user: DefId, kind: PrimitiveKind) -> Filled<ObjectRef> {
        if let Some(known) = self.primitives.get(&kind) {
            return Ok(known.clone());
        }
        let object: Option<ObjectRef> = call(self.repository, "get_primitive", &[&kind]).map_err(self.failed(user))?;
        let object = object.ok_or_else(|| FillError::Unsupported {
            name: self.model[user].scoped_name.clone(),
            reason: "the repository lacks a primitive type".to_owned(),
        })?;
        self.primitives.insert(kind, object.clone());
        Ok(object)
    }

    fn member(&mut self, user: DefId, name: &str, ty: &Type) -> Filled<StructMember> {
        let type_def = self.idl_type(user, ty)?.map(IdlType::from_object);
        Ok(StructMember { name: name.to_owned(), r#type: TypeCode::VOID, type_def })
    }

    fn members(&mut self, user: DefId, body: &Struct) -> Filled<Vec<StructMember>> {
        body.members.iter().map(|member| self.member(user, &member.name, &member.ty)).collect()
    }

    fn define_structure(&mut self, id: DefId, body: &Struct) -> Filled<()> {
        for member in &body.members {
            self.define_parts(&member.ty)?;
        }
        let definition = &self.model[id];
        let is_exception = matches!(definition.kind, DefinitionKind::Exception(_));
        let was_created = self.was_created(id);
        match self.existing(id, kind_of(definition))? {
            Some(object) if !was_created && self.is_same_type(id, &object)? => self.keep(id, object)?,
            Some(object) => {
                self.defined.insert(id, object.clone());
                let members = self.members(id, body)?;
                send(&object, "_set_members", &[&members]).map_err(self.failed(id))?;
                if !was_created {
                    self.remove_former_types(id, &object, body.members.iter().map(|it| &it.ty))?;
                    self.replaced(id, &object)?;
                }
            }
            None => {
                let members = self.members(id, body)?;
                let operation = if is_exception { "create_exception" } else { "create_struct" };
                // A member of its own type, within a sequence, has made it meanwhile.
                match self.defined.get(&id).cloned() {
                    Some(object) => send(&object, "_set_members", &[&members]).map_err(self.failed(id))?,
                    None => drop(self.create(id, operation, &[&members])?),
                }
            }
        }
        Ok(())
    }

    /// Whether this run has created the definition.
    fn was_created(&self, id: DefId) -> bool {
        self.created.contains(&id)
    }

    fn define_simple(&mut self, id: DefId) -> Filled<()> {
        let definition = &self.model[id];
        match &definition.kind {
            DefinitionKind::Union(body) => {
                self.define_parts(&body.discriminator)?;
                for branch in &body.branches {
                    self.define_parts(&branch.member.ty)?;
                }
            }
            DefinitionKind::Typedef(body) => self.define_parts(&body.ty)?,
            DefinitionKind::ValueBox(body) => self.define_parts(&body.ty)?,
            DefinitionKind::Const(body) => self.define_parts(&body.ty)?,
            _ => {}
        }
        let was_created = self.was_created(id);
        // A type within itself has been entered meanwhile.
        if self.defined.contains_key(&id) && !matches!(definition.kind, DefinitionKind::Union(_)) {
            return Ok(());
        }
        let object = self.existing(id, kind_of(definition))?;
        if let Some(object) = &object {
            let is_same = match &definition.kind {
                DefinitionKind::Const(body) => self.is_same_constant(id, body, object)?,
                _ => self.is_same_type(id, object)?,
            };
            if is_same && !was_created {
                return self.keep(id, object.clone());
            }
            self.defined.insert(id, object.clone());
        }
        match (&definition.kind, object) {
            (DefinitionKind::Union(body), object) => self.fill_union(id, body, object, was_created)?,
            (DefinitionKind::Enum(body), object) => {
                let names: Vec<String> = body.enumerators.iter().map(|it| self.model[*it].name.clone()).collect();
                match object {
                    Some(object) => {
                        send(&object, "_set_members", &[&names]).map_err(self.failed(id))?;
                        self.replaced(id, &object)?;
                    }
                    None => drop(self.create(id, "create_enum", &[&names])?),
                }
            }
            (
                DefinitionKind::Typedef(model::Typedef { ty }) | DefinitionKind::ValueBox(model::ValueBox { ty }),
                object,
            ) => {
                let original = self.idl_type(id, ty)?;
                let is_alias = matches!(definition.kind, DefinitionKind::Typedef(_));
                match object {
                    Some(object) => {
                        send(&object, "_set_original_type_def", &[&original]).map_err(self.failed(id))?;
                        self.replaced(id, &object)?;
                    }
                    None if is_alias => drop(self.create(id, "create_alias", &[&original])?),
                    None => drop(self.create(id, "create_value_box", &[&original])?),
                }
            }
            (DefinitionKind::Const(body), object) => {
                if let Some(object) = object {
                    send(&object, "destroy", &[]).map_err(self.failed(id))?;
                    self.defined.remove(&id);
                    self.changes.replaced.push(format!("::{}", definition.scoped_name));
                }
                let idl_type = self.idl_type(id, &body.ty)?;
                let type_code = self.type_code(id, &body.ty)?;
                let value = constants::to_any(self.model, &type_code, &body.value).map_err(self.invalid(id))?;
                self.create(id, "create_constant", &[&idl_type, &value])?;
                self.only_replaced(id);
            }
            (DefinitionKind::Native, None) => drop(self.create(id, "create_native", &[])?),
            _ => {}
        }
        Ok(())
    }

    fn fill_union(
        &mut self,
        id: DefId,
        body: &model::Union,
        object: Option<ObjectRef>,
        was_created: bool,
    ) -> Filled<()> {
        let type_code = self.type_code(id, &body.discriminator)?;
        let mut members = Vec::new();
        for branch in &body.branches {
            let type_def = self.idl_type(id, &branch.member.ty)?.map(IdlType::from_object);
            for label in &branch.labels {
                let label = constants::label(self.model, &type_code, label).map_err(self.invalid(id))?;
                let (name, type_def) = (branch.member.name.clone(), type_def.clone());
                members.push(UnionMember { name, label, r#type: TypeCode::VOID, type_def });
            }
        }
        let discriminator = self.idl_type(id, &body.discriminator)?;
        let failed = self.failed(id);
        match object.or_else(|| self.defined.get(&id).cloned()) {
            Some(object) => {
                send(&object, "_set_discriminator_type_def", &[&discriminator]).map_err(&failed)?;
                send(&object, "_set_members", &[&members]).map_err(&failed)?;
                if !was_created && !self.was_created(id) {
                    let parts = body.branches.iter().map(|it| &it.member.ty);
                    self.remove_former_types(id, &object, parts.chain([&body.discriminator]))?;
                    self.replaced(id, &object)?;
                }
            }
            None => drop(self.create(id, "create_union", &[&discriminator, &members])?),
        }
        Ok(())
    }

    fn is_same_type(&self, id: DefId, object: &ObjectRef) -> Filled<bool> {
        let definition = &self.model[id];
        let expected = self.idl.type_code(&definition.repository_id).map_err(self.undescribed(id))?;
        let present: TypeCode = match call(object, "_get_type", &[]) {
            Ok(present) => present,
            // The repository has lost what the type consists of.
            Err(error) if error.kind() == spandrel_giop::SystemExceptionKind::BadParam => return Ok(false),
            Err(error) => return Err(self.failed(id)(error)),
        };
        Ok(present.equal(&expected))
    }

    fn is_same_constant(&self, id: DefId, body: &model::Const, object: &ObjectRef) -> Filled<bool> {
        let failed = self.failed(id);
        let type_code = self.type_code(id, &body.ty)?;
        let expected = constants::to_any(self.model, &type_code, &body.value).map_err(self.invalid(id))?;
        let present: TypeCode = call(object, "_get_type", &[]).map_err(&failed)?;
        let value: Any = call(object, "_get_value", &[]).map_err(&failed)?;
        Ok(present.equal(&type_code) && value == expected)
    }

    /// Records that a definition needs no change but perhaps its documentation.
    fn keep(&mut self, id: DefId, object: ObjectRef) -> Filled<()> {
        self.document(id, &object)?;
        self.defined.insert(id, object);
        self.changes.unchanged += 1;
        Ok(())
    }

    fn replaced(&mut self, id: DefId, object: &ObjectRef) -> Filled<()> {
        self.document(id, object)?;
        self.changes.replaced.push(format!("::{}", self.model[id].scoped_name));
        Ok(())
    }

    /// A definition that was destroyed and created again counts as replaced.
    fn only_replaced(&mut self, id: DefId) {
        let name = format!("::{}", self.model[id].scoped_name);
        if self.changes.replaced.contains(&name) {
            self.changes.created.retain(|it| *it != name);
        }
    }

    /// Enters an interface or a value type with its contents, and removes those that the IDL lacks.
    fn define_with_contents(&mut self, id: DefId) -> Filled<()> {
        let (object, is_new) = self.shell(id)?;
        let failed = self.failed(id);
        let definition = &self.model[id];
        let mut is_changed = false;
        let contents: Vec<DefId> = match &definition.kind {
            DefinitionKind::Interface(body) => {
                if body.forward_only {
                    return Ok(());
                }
                if !is_new && !self.was_created(id) {
                    let bases = self.references(&body.bases)?;
                    let expected: Vec<&str> = body.bases.iter().map(|it| &*self.model[*it].repository_id).collect();
                    if self.ids(&object, "_get_base_interfaces").map_err(&failed)? != expected {
                        send(&object, "_set_base_interfaces", &[&bases]).map_err(&failed)?;
                        is_changed = true;
                    }
                }
                body.contents.clone()
            }
            DefinitionKind::ValueType(body) => {
                if body.forward_only {
                    return Ok(());
                }
                is_changed = self.update_value(id, body, &object)?;
                body.contents.clone()
            }
            _ => Vec::new(),
        };
        let mut expected: HashSet<String> = contents.iter().map(|it| self.model[*it].repository_id.clone()).collect();
        for content in contents {
            match &self.model[content].kind {
                DefinitionKind::Operation(body) => self.operation(content, body, &object)?,
                DefinitionKind::Attribute(body) => self.attribute(content, body, &object)?,
                _ => self.define(content)?,
            }
        }
        if let DefinitionKind::ValueType(body) = &definition.kind {
            for member in &body.members {
                expected.insert(self.value_member(id, member, &object)?);
            }
            is_changed |= self.initializers(id, body, &object)?;
        }
        self.remove_others(id, &object, &expected)?;
        if is_changed {
            self.replaced(id, &object)?;
        } else if !is_new && !self.was_created(id) {
            self.keep(id, object)?;
        }
        Ok(())
    }

    /// Removes the contents of a definition that the IDL lacks.
    fn remove_others(&mut self, id: DefId, object: &ObjectRef, expected: &HashSet<String>) -> Filled<()> {
        let failed = self.failed(id);
        let present: Vec<Option<ObjectRef>> = match call(object, "contents", &[&Kind::DkAll, &true]) {
            // Structs, unions and exceptions are containers since CORBA 2.3.
            Err(error) if is_unknown_operation(&error) => Vec::new(),
            other => other.map_err(&failed)?,
        };
        for content in present.into_iter().flatten() {
            let content_id: String = call(&content, "_get_id", &[]).map_err(&failed)?;
            if !expected.contains(&content_id) {
                let name: String = call(&content, "_get_absolute_name", &[]).map_err(&failed)?;
                send(&content, "destroy", &[]).map_err(&failed)?;
                self.changes.removed.push(name);
            }
        }
        Ok(())
    }

    /// Removes the types that a struct, union or exception declared in the repository and no longer declares.
    fn remove_former_types<'t>(
        &mut self,
        id: DefId,
        object: &ObjectRef,
        parts: impl Iterator<Item = &'t Type>,
    ) -> Filled<()> {
        let declared = parts.filter_map(|ty| match ty {
            Type::Named(part) => Some(*part),
            Type::Array { element, .. } => match **element {
                Type::Named(part) => Some(part),
                _ => None,
            },
            _ => None,
        });
        let declared = declared.map(|part| &self.model[part]).filter(|part| part.parent == Some(id));
        let expected = declared.map(|part| part.repository_id.clone()).collect();
        self.remove_others(id, object, &expected)
    }

    fn ids(&self, object: &ObjectRef, operation: &'static str) -> Result<Vec<String>, SystemException> {
        let members: Vec<Option<ObjectRef>> = call(object, operation, &[])?;
        members.iter().flatten().map(|it| call(it, "_get_id", &[])).collect()
    }

    /// Stores documentation that differs.
    fn document(&mut self, id: DefId, object: &ObjectRef) -> Filled<()> {
        if !self.is_documented {
            return Ok(());
        }
        let failed = self.failed(id);
        let definition = &self.model[id];
        let text = definition.doc.join("\n");
        match call::<String>(object, "_get_documentation", &[]) {
            Ok(present) if present == text => {}
            Ok(_) => send(object, "_set_documentation", &[&text]).map_err(&failed)?,
            Err(error) if is_unknown_operation(&error) => {
                self.is_documented = false;
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        }
        let parts = definition.documented_parts(self.model).into_iter();
        let parts = parts.map(|(name, doc)| PartDocumentation { name: name.to_owned(), text: doc.join("\n") });
        let parts: Vec<_> = parts.collect();
        let present: Vec<PartDocumentation> = call(object, "_get_part_documentation", &[]).map_err(&failed)?;
        if present != parts {
            send(object, "_set_part_documentation", &[&parts]).map_err(&failed)?;
        }
        Ok(())
    }
}

fn kind_of(definition: &Definition) -> Kind {
    match &definition.kind {
        DefinitionKind::Module(_) => Kind::DkModule,
        DefinitionKind::Interface(body) if body.is_local => Kind::DkLocalInterface,
        DefinitionKind::Interface(body) if body.is_abstract => Kind::DkAbstractInterface,
        DefinitionKind::Interface(_) => Kind::DkInterface,
        DefinitionKind::Operation(_) => Kind::DkOperation,
        DefinitionKind::Attribute(_) => Kind::DkAttribute,
        DefinitionKind::Struct(_) => Kind::DkStruct,
        DefinitionKind::Exception(_) => Kind::DkException,
        DefinitionKind::Enum(_) => Kind::DkEnum,
        DefinitionKind::Typedef(_) => Kind::DkAlias,
        DefinitionKind::Const(_) => Kind::DkConstant,
        DefinitionKind::Union(_) => Kind::DkUnion,
        DefinitionKind::ValueType(_) => Kind::DkValue,
        DefinitionKind::ValueBox(_) => Kind::DkValueBox,
        DefinitionKind::Native => Kind::DkNative,
        _ => Kind::DkNone,
    }
}

/// The version in a repository id of the OMG's form (14.7.1.1).
fn version(definition: &Definition) -> String {
    let id = &definition.repository_id;
    let version = id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')).map(|(_, version)| version);
    version.unwrap_or("1.0").to_owned()
}

fn primitive_kind(primitive: Primitive) -> PrimitiveKind {
    match primitive {
        Primitive::Short => PrimitiveKind::PkShort,
        Primitive::UnsignedShort => PrimitiveKind::PkUshort,
        Primitive::Long => PrimitiveKind::PkLong,
        Primitive::UnsignedLong => PrimitiveKind::PkUlong,
        Primitive::LongLong => PrimitiveKind::PkLonglong,
        Primitive::UnsignedLongLong => PrimitiveKind::PkUlonglong,
        Primitive::Float => PrimitiveKind::PkFloat,
        Primitive::Double => PrimitiveKind::PkDouble,
        Primitive::LongDouble => PrimitiveKind::PkLongdouble,
        Primitive::Boolean => PrimitiveKind::PkBoolean,
        Primitive::Octet => PrimitiveKind::PkOctet,
        Primitive::Char => PrimitiveKind::PkChar,
        _ => PrimitiveKind::PkWchar,
    }
}
