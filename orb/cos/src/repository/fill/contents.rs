//! The contents of interfaces and value types: operations, attributes, state members and initializers.

use spandrel_cdr::{Encode, TypeCode};
use spandrel_giop::SystemException;
use spandrel_idl::model::{self, Attribute, DefId, Definition, Operation};
use spandrel_orb::{Interface as _, ObjectRef};

use super::{Filled, Filling, version};
use crate::repository::{
    client::{call, is_unknown_operation, send},
    corba::{
        self, AttributeMode, DefinitionKind as Kind, ExtInitializer, IdlType, Initializer, OperationMode,
        ParameterMode, PrimitiveKind,
    },
};

impl Filling<'_> {
    pub(super) fn operation(&mut self, id: DefId, body: &Operation, container: &ObjectRef) -> Filled<()> {
        let types = body.result.iter().chain(body.parameters.iter().map(|it| &it.ty));
        types.cloned().collect::<Vec<_>>().iter().try_for_each(|ty| self.define_parts(ty))?;
        let exceptions = self.references(&body.raises)?;
        let failed = self.failed(id);
        let definition = &self.model[id];
        if let Some(object) = self.existing(id, Kind::DkOperation)? {
            let described: corba::contained::Description = call(&object, "describe", &[]).map_err(&failed)?;
            let present = described.value.extract::<corba::OperationDescription>().ok();
            if present.is_some_and(|it| self.is_same_operation(id, body, &it).unwrap_or(false)) {
                return self.keep(id, object);
            }
            send(&object, "destroy", &[]).map_err(&failed)?;
            self.changes.replaced.push(format!("::{}", definition.scoped_name));
        }
        let result = match &body.result {
            Some(ty) => self.idl_type(id, ty)?,
            None => Some(self.primitive(id, PrimitiveKind::PkVoid)?),
        };
        let mode = if body.oneway { OperationMode::OpOneway } else { OperationMode::OpNormal };
        let parameters = body.parameters.iter().map(|it| {
            Ok(corba::ParameterDescription {
                name: it.name.clone(),
                r#type: TypeCode::VOID,
                type_def: self.idl_type(id, &it.ty)?.map(IdlType::from_object),
                mode: parameter_mode(it.mode),
            })
        });
        let parameters: Vec<_> = parameters.collect::<Filled<_>>()?;
        self.create_in(id, container, "create_operation", &[&result, &mode, &parameters, &exceptions, &body.context])
    }

    /// Creates an operation, attribute or value member.
    fn create_in(
        &mut self,
        id: DefId,
        container: &ObjectRef,
        operation: &'static str,
        more: &[&dyn Encode],
    ) -> Filled<()> {
        let definition = &self.model[id];
        let version = version(definition);
        let mut arguments: Vec<&dyn Encode> = vec![&definition.repository_id, &definition.name, &version];
        arguments.extend(more);
        let created: Option<ObjectRef> = call(container, operation, &arguments).map_err(self.failed(id))?;
        self.changes.created.push(format!("::{}", definition.scoped_name));
        self.only_replaced(id);
        match created {
            Some(created) => self.document(id, &created),
            None => Ok(()),
        }
    }

    fn is_same_operation(&self, id: DefId, body: &Operation, present: &corba::OperationDescription) -> Filled<bool> {
        let result = match &body.result {
            Some(ty) => self.type_code(id, ty)?,
            None => TypeCode::VOID,
        };
        let raises: Vec<&str> = body.raises.iter().map(|it| &*self.model[*it].repository_id).collect();
        let mut is_same = present.result.equal(&result)
            && (present.mode == OperationMode::OpOneway) == body.oneway
            && present.contexts == body.context
            && present.parameters.len() == body.parameters.len()
            && present.exceptions.iter().map(|it| &*it.id).eq(raises);
        for (parameter, other) in body.parameters.iter().zip(&present.parameters) {
            is_same = is_same
                && parameter.name == other.name
                && parameter_mode(parameter.mode) == other.mode
                && other.r#type.equal(&self.type_code(id, &parameter.ty)?);
        }
        Ok(is_same)
    }

    pub(super) fn attribute(&mut self, id: DefId, body: &Attribute, container: &ObjectRef) -> Filled<()> {
        self.define_parts(&body.ty)?;
        let (get, set) = (self.references(&body.get_raises)?, self.references(&body.set_raises)?);
        let failed = self.failed(id);
        let mode = if body.readonly { AttributeMode::AttrReadonly } else { AttributeMode::AttrNormal };
        if let Some(object) = self.existing(id, Kind::DkAttribute)? {
            let present: TypeCode = call(&object, "_get_type", &[]).map_err(&failed)?;
            let mut is_same = present.equal(&self.type_code(id, &body.ty)?)
                && call::<AttributeMode>(&object, "_get_mode", &[]).map_err(&failed)? == mode;
            if is_same && self.is_extended {
                let ids = |raises: &[DefId]| -> Vec<String> {
                    raises.iter().map(|it| self.model[*it].repository_id.clone()).collect()
                };
                match call::<corba::ExtAttributeDescription>(&object, "describe_attribute", &[]) {
                    Ok(it) => {
                        is_same = it.get_exceptions.iter().map(|it| it.id.clone()).eq(ids(&body.get_raises))
                            && it.put_exceptions.iter().map(|it| it.id.clone()).eq(ids(&body.set_raises));
                    }
                    Err(error) if is_unknown_operation(&error) => self.is_extended = false,
                    Err(error) => return Err(failed(error)),
                }
            }
            if is_same {
                return self.keep(id, object);
            }
            send(&object, "destroy", &[]).map_err(&failed)?;
            self.changes.replaced.push(format!("::{}", self.model[id].scoped_name));
        }
        let idl_type = self.idl_type(id, &body.ty)?;
        if get.is_empty() && set.is_empty() {
            return self.create_in(id, container, "create_attribute", &[&idl_type, &mode]);
        }
        self.create_in(id, container, "create_ext_attribute", &[&idl_type, &mode, &get, &set])
    }

    pub(super) fn value_member(
        &mut self,
        value: DefId,
        state: &model::StateMember,
        container: &ObjectRef,
    ) -> Filled<String> {
        let failed = self.failed(value);
        let (definition, member) = (&self.model[value], &state.member);
        self.define_parts(&member.ty)?;
        let id = member_id(definition, &member.name);
        let access: i16 = i16::from(state.is_public);
        let object: Option<ObjectRef> = call(self.repository, "lookup_id", &[&id]).map_err(&failed)?;
        if let Some(object) = object {
            let present: TypeCode = call(&object, "_get_type", &[]).map_err(&failed)?;
            let is_same = present.equal(&self.type_code(value, &member.ty)?)
                && call::<i16>(&object, "_get_access", &[]).map_err(&failed)? == access;
            if is_same {
                self.changes.unchanged += 1;
                return Ok(id);
            }
            send(&object, "destroy", &[]).map_err(&failed)?;
            self.changes.replaced.push(format!("::{}::{}", definition.scoped_name, member.name));
        } else {
            self.changes.created.push(format!("::{}::{}", definition.scoped_name, member.name));
        }
        let idl_type = self.idl_type(value, &member.ty)?;
        let arguments: [&dyn Encode; 5] = [&id, &member.name, &version(definition), &idl_type, &access];
        call::<Option<ObjectRef>>(container, "create_value_member", &arguments).map_err(&failed)?;
        Ok(id)
    }

    /// Changes the attributes of a value type that differ. Returns whether there were any.
    pub(super) fn update_value(&mut self, id: DefId, body: &model::ValueType, object: &ObjectRef) -> Filled<bool> {
        let failed = self.failed(id);
        if self.was_created(id) {
            return Ok(false);
        }
        let mut is_changed = false;
        let flags = [
            ("_get_is_custom", "_set_is_custom", body.is_custom),
            ("_get_is_abstract", "_set_is_abstract", body.is_abstract),
            ("_get_is_truncatable", "_set_is_truncatable", body.is_truncatable),
        ];
        for (get, set, expected) in flags {
            if call::<bool>(object, get, &[]).map_err(&failed)? != expected {
                send(object, set, &[&expected]).map_err(&failed)?;
                is_changed = true;
            }
        }
        let (base, abstract_bases) = self.value_bases(body)?;
        let supports = self.references(&body.supports)?;
        let expected = |references: &[Option<ObjectRef>]| -> Result<Vec<String>, SystemException> {
            references.iter().flatten().map(|it| call(it, "_get_id", &[])).collect()
        };
        let present: Option<ObjectRef> = call(object, "_get_base_value", &[]).map_err(&failed)?;
        let is_same =
            expected(&[present]).map_err(&failed)? == expected(std::slice::from_ref(&base)).map_err(&failed)?;
        if !is_same {
            send(object, "_set_base_value", &[&base]).map_err(&failed)?;
            is_changed = true;
        }
        for (get, set, wanted) in [
            ("_get_abstract_base_values", "_set_abstract_base_values", &abstract_bases),
            ("_get_supported_interfaces", "_set_supported_interfaces", &supports),
        ] {
            if self.ids(object, get).map_err(&failed)? != expected(wanted).map_err(&failed)? {
                send(object, set, &[wanted]).map_err(&failed)?;
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    /// Sets the initializers if they differ. Returns whether an existing definition was changed.
    pub(super) fn initializers(&mut self, id: DefId, body: &model::ValueType, object: &ObjectRef) -> Filled<bool> {
        let failed = self.failed(id);
        let mut expected = Vec::new();
        for factory in &body.factories {
            let mut parameters = Vec::new();
            for parameter in &factory.parameters {
                self.define_parts(&parameter.ty)?;
                parameters.push((parameter.name.clone(), self.type_code(id, &parameter.ty)?));
            }
            expected.push((factory.name.clone(), parameters));
        }
        let present: Vec<Initializer> = call(object, "_get_initializers", &[]).map_err(&failed)?;
        let is_same = present.len() == expected.len()
            && present.iter().zip(&expected).all(|(present, (name, parameters))| {
                let members = present.members.iter().map(|it| (&it.name, &it.r#type));
                present.name == *name
                    && present.members.len() == parameters.len()
                    && members.zip(parameters).all(|(it, other)| *it.0 == other.0 && it.1.equal(&other.1))
            });
        if is_same {
            return Ok(false);
        }
        let mut given = Vec::new();
        for factory in &body.factories {
            let members =
                factory.parameters.iter().map(|it| self.member(id, &it.name, &it.ty)).collect::<Filled<_>>()?;
            let mut exceptions = Vec::new();
            for raised in &factory.raises {
                self.reference(*raised)?;
                let id = self.model[*raised].repository_id.clone();
                exceptions.push(corba::ExceptionDescription { id, ..corba::ExceptionDescription::default() });
            }
            given.push(ExtInitializer { members, exceptions, name: factory.name.clone() });
        }
        if given.iter().all(|it| it.exceptions.is_empty()) {
            let plain = given.into_iter().map(|it| Initializer { members: it.members, name: it.name });
            send(object, "_set_initializers", &[&plain.collect::<Vec<_>>()]).map_err(&failed)?;
        } else {
            send(object, "_set_ext_initializers", &[&given]).map_err(&failed)?;
        }
        Ok(!self.was_created(id))
    }
}

/// The repository id of a state member: that of its value type with the member's name.
fn member_id(value: &Definition, name: &str) -> String {
    match value.repository_id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')) {
        Some((path, version)) => format!("IDL:{path}/{name}:{version}"),
        None => format!("{}/{name}", value.repository_id),
    }
}

fn parameter_mode(mode: model::ParameterMode) -> ParameterMode {
    match mode {
        model::ParameterMode::In => ParameterMode::ParamIn,
        model::ParameterMode::Out => ParameterMode::ParamOut,
        model::ParameterMode::InOut => ParameterMode::ParamInout,
    }
}
