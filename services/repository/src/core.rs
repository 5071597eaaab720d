//! The repository's state: the model behind one lock, its file, and the references of its objects.

use crate::generated::corba::{self, DefinitionKind, IdlType};
use spandrel::authorization::PathCheck;
use spandrel::net::sync::{Mutex, RwLock};
use spandrel::poa::ObjectId;
use spandrel::types::Interface;
use spandrel::{ObjectRef, Poa, SystemException, minor};

use crate::errors::{bad_param, dependency, indestructible, limit, not_durable, not_exist};
use crate::limits::{KEY, Limits};
use crate::model::{Edit, Model, NONE, Number, ROOT, is_anonymous, is_container, may_contain, references};
use crate::records::records::{Body, Definition, InterfaceFlavor, Kind};
use crate::store::Store;
use crate::types::TypeCodes;

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) model: RwLock<Model>,
    pub(crate) store: Mutex<Store>,
    pub(crate) adapter: Poa,
    pub(crate) limits: Limits,
    pub(crate) path_check: Option<PathCheck>,
}

/// The name, id and version of a new definition.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Naming {
    pub(crate) fn new(id: &str, name: &str, version: &str) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), version: version.to_owned() }
    }
}

impl Core {
    /// Makes changes that are durable when this returns, or none.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Edit<'_>) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let mut model = self.model.write();
        let mut edit = Edit::new(&mut model);
        let done = change(&mut edit).and_then(|done| {
            let changes = edit.changes();
            if !changes.is_empty() {
                let model = edit.model();
                let mut store = self.store.lock();
                store.commit(changes, model.next(), |number| model.get(number).cloned()).map_err(not_durable)?;
            }
            Ok(done)
        });
        if done.is_err() {
            edit.undo();
        }
        done
    }

    /// Whether the peer may call an operation of a definition, by its path.
    pub(crate) fn check_path(&self, operation: &str, number: Number) -> Result<(), SystemException> {
        let Some(path_check) = &self.path_check else { return Ok(()) };
        let path = self.model.read().path(number);
        path_check.check(operation, path.as_deref())
    }

    pub(crate) fn reference(&self, model: &Model, number: Number) -> Result<ObjectRef, SystemException> {
        let definition = model.get(number).ok_or_else(not_exist)?;
        let id: ObjectId = number.to_string().as_str().into();
        Ok(self.adapter.create_reference_with_id(&id, primary_interface(&definition.content))?)
    }

    pub(crate) fn typed<T: Interface>(&self, model: &Model, number: Number) -> Result<Option<T>, SystemException> {
        if number == NONE {
            return Ok(None);
        }
        Ok(Some(T::from_object(self.reference(model, number)?)))
    }

    /// The number of one of this repository's objects.
    pub(crate) fn number(&self, model: &Model, object: Option<&ObjectRef>) -> Result<Number, SystemException> {
        let object = object.ok_or_else(|| bad_param(0, "a reference to a definition is nil".to_owned()))?;
        let number = match self.adapter.reference_to_id(object) {
            Ok(id) => parse(id.as_bytes()),
            // The repository has a plain key, too.
            Err(_) if has_plain_key(object) => Some(ROOT),
            Err(_) => None,
        };
        number
            .filter(|number| model.get(*number).is_some())
            .ok_or_else(|| bad_param(0, "a reference denotes no definition of this repository".to_owned()))
    }

    /// The number of a type.
    pub(crate) fn type_number(&self, model: &Model, idl_type: Option<&IdlType>) -> Result<Number, SystemException> {
        let number = self.number(model, idl_type.map(|idl_type| idl_type.as_object()))?;
        match model.get(number) {
            Some(definition) if is_type(&definition.content) => Ok(number),
            _ => Err(bad_param(0, "a reference denotes a definition that is not a type".to_owned())),
        }
    }

    /// The numbers of definitions of one kind.
    pub(crate) fn numbers<T: Interface>(
        &self,
        model: &Model,
        objects: &[Option<T>],
        is_permitted: fn(&Body) -> bool,
    ) -> Result<Vec<Number>, SystemException> {
        let mut numbers: Vec<Number> = Vec::new();
        for object in objects {
            let number = self.number(model, object.as_ref().map(Interface::as_object))?;
            if !model.get(number).is_some_and(|it| is_permitted(&it.content)) {
                return Err(bad_param(0, "a reference denotes a definition of another kind".to_owned()));
            }
            if numbers.contains(&number) {
                return Err(bad_param(0, format!("`{}` is listed twice", model.absolute_name(number))));
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Adds a definition to a container.
    pub(crate) fn create(
        &self,
        edit: &mut Edit<'_>,
        container: Number,
        naming: Naming,
        content: Body,
    ) -> Result<Number, SystemException> {
        self.check_id(edit.model(), &naming.id, NONE)?;
        check_place(edit.model(), container, &naming.name, &content, NONE)?;
        check_text(&naming.version, self.limits.max_name, "version")?;
        if edit.model().len() >= self.limits.max_definitions {
            return Err(limit(format!("the repository has {} definitions, its limit", self.limits.max_definitions)));
        }
        let Naming { id, name, version } = naming;
        let definition = Definition { content, id, name, version, parent: container, ..Definition::default() };
        let number = edit.add(definition);
        update(edit, container, |container| container.contents.push(number))?;
        validate(edit.model(), number)?;
        Ok(number)
    }

    /// Adds a type without a name.
    pub(crate) fn create_anonymous(&self, edit: &mut Edit<'_>, content: Body) -> Result<Number, SystemException> {
        if edit.model().len() >= self.limits.max_definitions {
            return Err(limit(format!("the repository has {} definitions, its limit", self.limits.max_definitions)));
        }
        let number = edit.add(Definition { content, ..Definition::default() });
        validate(edit.model(), number)?;
        Ok(number)
    }

    /// Checks the repository id of a definition, which no other one has.
    pub(crate) fn check_id(&self, model: &Model, id: &str, own: Number) -> Result<(), SystemException> {
        check_text(id, self.limits.max_id, "repository id")?;
        if !id.contains(':') {
            return Err(bad_param(minor::BAD_REPOSITORY_ID, format!("`{id}` is not a repository id")));
        }
        match model.by_id(id) {
            Some(other) if other != own => {
                Err(bad_param(minor::REPOSITORY_ID_EXISTS, format!("the repository id `{id}` exists")))
            }
            _ => Ok(()),
        }
    }

    /// Replaces the content of a definition; types without a name that it no longer uses are removed.
    pub(crate) fn replace(&self, edit: &mut Edit<'_>, number: Number, content: Body) -> Result<(), SystemException> {
        let former = edit.model().get(number).ok_or_else(not_exist)?.content.clone();
        update(edit, number, |definition| definition.content = content)?;
        validate(edit.model(), number)?;
        remove_unused(edit, &former);
        Ok(())
    }

    /// Removes a definition and its contents (`destroy`).
    pub(crate) fn destroy(&self, edit: &mut Edit<'_>, number: Number) -> Result<(), SystemException> {
        let model = edit.model();
        let definition = model.get(number).ok_or_else(not_exist)?.clone();
        if number == ROOT || matches!(definition.content, Body::Primitive(_)) {
            return Err(indestructible());
        }
        let removed = model.subtree(number);
        let mut inner: std::collections::HashMap<Number, usize> = std::collections::HashMap::new();
        for target in removed.iter().filter_map(|it| model.get(*it)).flat_map(|it| references(&it.content)) {
            *inner.entry(target).or_default() += 1;
            // A reference through a type without a name, which goes with its user.
            let mut waiting = vec![target];
            while let Some(at) = waiting.pop() {
                let Some(through) = model.get(at).filter(|it| is_anonymous(&it.content) && model.uses(at) == 1) else {
                    continue;
                };
                for target in references(&through.content) {
                    *inner.entry(target).or_default() += 1;
                    waiting.push(target);
                }
            }
        }
        for it in &removed {
            if model.uses(*it) > inner.get(it).copied().unwrap_or_default() {
                let name = model.absolute_name(*it);
                return Err(dependency(format!("another definition uses `{name}`")));
            }
        }
        let contents: Vec<Body> = removed.iter().filter_map(|it| model.get(*it)).map(|it| it.content.clone()).collect();
        if definition.parent != NONE {
            update(edit, definition.parent, |container| container.contents.retain(|it| *it != number))?;
        }
        for it in removed {
            edit.set(it, None);
        }
        contents.iter().for_each(|content| remove_unused(edit, content));
        Ok(())
    }
}

/// Replaces a definition by a changed copy of it.
pub(crate) fn update(
    edit: &mut Edit<'_>,
    number: Number,
    change: impl FnOnce(&mut Definition),
) -> Result<(), SystemException> {
    let mut definition = (**edit.model().get(number).ok_or_else(not_exist)?).clone();
    change(&mut definition);
    // The repository and the primitive types exist without a record, except for the repository's contents.
    edit.set(number, Some(definition));
    Ok(())
}

/// Removes the types without a name that were used by this content alone.
fn remove_unused(edit: &mut Edit<'_>, former: &Body) {
    for target in references(former) {
        let Some(definition) = edit.model().get(target).filter(|it| is_anonymous(&it.content)).cloned() else {
            continue;
        };
        if edit.model().uses(target) == 0 {
            edit.set(target, None);
            remove_unused(edit, &definition.content);
        }
    }
}

/// Checks that a type or exception has a type code.
fn validate(model: &Model, number: Number) -> Result<(), SystemException> {
    let definition = model.get(number).ok_or_else(not_exist)?;
    match &definition.content {
        // The new discriminator comes before the branches that belong to it.
        Body::AUnion(body) if body.branches.is_empty() => TypeCodes::new(model).type_code(body.discriminator).map(drop),
        content if is_type(content) || matches!(content, Body::AnException(_)) => {
            TypeCodes::new(model).type_code(number).map(drop)
        }
        _ => Ok(()),
    }
}

/// Checks that a container can have a definition of this name and kind.
pub(crate) fn check_place(
    model: &Model,
    container: Number,
    name: &str,
    content: &Body,
    own: Number,
) -> Result<(), SystemException> {
    let definition = model.get(container).ok_or_else(not_exist)?;
    if !is_container(&definition.content) || !may_contain(&definition.content, content) {
        let target = model.absolute_name(container);
        return Err(bad_param(minor::INVALID_CONTAINER, format!("`{target}` cannot contain such a definition")));
    }
    check_name(name)?;
    let collides =
        |number: &Number| *number != own && model.get(*number).is_some_and(|it| it.name.eq_ignore_ascii_case(name));
    if definition.contents.iter().any(collides) {
        let target = model.absolute_name(container);
        return Err(bad_param(minor::NAME_USED_IN_CONTAINER, format!("`{target}` has a definition `{name}`")));
    }
    if matches!(content, Body::AnAttribute(_) | Body::Operation(_)) {
        let inherited = model.all_bases(container).into_iter().filter_map(|base| model.get(base));
        let is_feature = |number: &Number| {
            model.get(*number).is_some_and(|it| matches!(it.content, Body::AnAttribute(_) | Body::Operation(_)))
        };
        if inherited.flat_map(|base| &base.contents).filter(|it| is_feature(it)).any(collides) {
            return Err(bad_param(minor::NAME_CLASH_IN_INHERITANCE, format!("`{name}` is inherited")));
        }
    }
    Ok(())
}

/// Checks that a name is an IDL identifier.
pub(crate) fn check_name(name: &str) -> Result<(), SystemException> {
    let mut letters = name.chars();
    let is_valid = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
        && name.len() <= 1_024;
    if is_valid { Ok(()) } else { Err(bad_param(minor::BAD_NAME, format!("`{name}` is not an identifier"))) }
}

fn check_text(text: &str, max: usize, what: &str) -> Result<(), SystemException> {
    if text.len() > max { Err(limit(format!("the {what} has more than {max} octets"))) } else { Ok(()) }
}

/// The number in an object id.
pub(crate) fn parse(id: &[u8]) -> Option<Number> {
    std::str::from_utf8(id).ok()?.parse().ok()
}

fn has_plain_key(object: &ObjectRef) -> bool {
    let profiles = object.ior().profiles.iter();
    let keys = profiles.filter_map(|profile| spandrel::types::IiopProfile::decode(profile).ok().flatten());
    keys.into_iter().any(|profile| *profile.object_key == *KEY.as_bytes())
}

/// Whether it is an `IDLType`.
pub(crate) fn is_type(content: &Body) -> bool {
    !matches!(
        content,
        Body::Unlisted(Kind::KindRepository | Kind::KindModule)
            | Body::Constant(_)
            | Body::AnException(_)
            | Body::AnAttribute(_)
            | Body::Operation(_)
            | Body::ValueMember(_)
    )
}

pub(crate) fn kind(content: &Body) -> DefinitionKind {
    match content {
        Body::Unlisted(Kind::KindModule) => DefinitionKind::DkModule,
        Body::Unlisted(Kind::KindNative) => DefinitionKind::DkNative,
        Body::Unlisted(_) => DefinitionKind::DkRepository,
        Body::Constant(_) => DefinitionKind::DkConstant,
        Body::Structure(_) => DefinitionKind::DkStruct,
        Body::AnException(_) => DefinitionKind::DkException,
        Body::AUnion(_) => DefinitionKind::DkUnion,
        Body::Enumeration(_) => DefinitionKind::DkEnum,
        Body::Alias(_) => DefinitionKind::DkAlias,
        Body::ValueBox(_) => DefinitionKind::DkValueBox,
        Body::Primitive(_) => DefinitionKind::DkPrimitive,
        Body::Text(_) => DefinitionKind::DkString,
        Body::WideText(_) => DefinitionKind::DkWstring,
        Body::Decimal(_) => DefinitionKind::DkFixed,
        Body::ASequence(_) => DefinitionKind::DkSequence,
        Body::AnArray(_) => DefinitionKind::DkArray,
        Body::AnAttribute(_) => DefinitionKind::DkAttribute,
        Body::Operation(_) => DefinitionKind::DkOperation,
        Body::AnInterface(body) => match body.flavor {
            InterfaceFlavor::FlavorRemote => DefinitionKind::DkInterface,
            InterfaceFlavor::FlavorAbstract => DefinitionKind::DkAbstractInterface,
            InterfaceFlavor::FlavorLocal => DefinitionKind::DkLocalInterface,
        },
        Body::Value(_) => DefinitionKind::DkValue,
        Body::ValueMember(_) => DefinitionKind::DkValueMember,
    }
}

/// The repository id in references to a definition: the standard's basic interface, which older clients know.
pub(crate) fn primary_interface(content: &Body) -> &'static str {
    match content {
        Body::Unlisted(Kind::KindModule) => corba::ModuleDef::REPOSITORY_ID,
        Body::Unlisted(Kind::KindNative) => corba::NativeDef::REPOSITORY_ID,
        Body::Unlisted(_) => corba::Repository::REPOSITORY_ID,
        Body::Constant(_) => corba::ConstantDef::REPOSITORY_ID,
        Body::Structure(_) => corba::StructDef::REPOSITORY_ID,
        Body::AnException(_) => corba::ExceptionDef::REPOSITORY_ID,
        Body::AUnion(_) => corba::UnionDef::REPOSITORY_ID,
        Body::Enumeration(_) => corba::EnumDef::REPOSITORY_ID,
        Body::Alias(_) => corba::AliasDef::REPOSITORY_ID,
        Body::ValueBox(_) => corba::ValueBoxDef::REPOSITORY_ID,
        Body::AnAttribute(_) => corba::AttributeDef::REPOSITORY_ID,
        Body::Operation(_) => corba::OperationDef::REPOSITORY_ID,
        Body::AnInterface(body) => match body.flavor {
            InterfaceFlavor::FlavorRemote => corba::InterfaceDef::REPOSITORY_ID,
            InterfaceFlavor::FlavorAbstract => corba::AbstractInterfaceDef::REPOSITORY_ID,
            InterfaceFlavor::FlavorLocal => corba::LocalInterfaceDef::REPOSITORY_ID,
        },
        Body::Value(_) => corba::ValueDef::REPOSITORY_ID,
        Body::ValueMember(_) => corba::ValueMemberDef::REPOSITORY_ID,
        Body::Primitive(_) => corba::PrimitiveDef::REPOSITORY_ID,
        Body::Text(_) => corba::StringDef::REPOSITORY_ID,
        Body::WideText(_) => corba::WstringDef::REPOSITORY_ID,
        Body::Decimal(_) => corba::FixedDef::REPOSITORY_ID,
        Body::ASequence(_) => corba::SequenceDef::REPOSITORY_ID,
        Body::AnArray(_) => corba::ArrayDef::REPOSITORY_ID,
    }
}
