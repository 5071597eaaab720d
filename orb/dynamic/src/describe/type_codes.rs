//! The type codes of IDL definitions: the same as those in code generated from them.

use std::collections::{HashMap, HashSet};

use spandrel_cdr::{Label, TypeCode, TypeCodeError, ValueModifier, Visibility};
use spandrel_idl::{
    Model,
    model::{self, ConstValue, DefId, Definition, DefinitionKind, Member, Primitive, Type, Union, ValueType},
};

use super::error::{DescribeError, impossible, unsupported};
use crate::ValueTypes;

/// Type codes by definition.
#[derive(Debug, Default)]
pub(crate) struct TypeCodes {
    /// The complete type codes.
    built: HashMap<DefId, TypeCode>,
    /// The definitions whose type codes are being built, the outermost first.
    in_progress: Vec<DefId>,
    /// The definitions nested in these that refer to one of them: their type codes are incomplete.
    incomplete: HashSet<DefId>,
    /// All value types with state, and boxes, once they are needed.
    values: Option<ValueTypes>,
}

impl TypeCodes {
    /// All value types with state, and boxed values, without those that contain a type without values.
    pub(super) fn values(&mut self, model: &Model) -> ValueTypes {
        if self.values.is_none() {
            let has_state = |it: &&Definition| match &it.kind {
                DefinitionKind::ValueBox(_) => true,
                DefinitionKind::ValueType(body) => !body.is_abstract && !body.forward_only,
                _ => false,
            };
            let definitions: Vec<_> = model.definitions().filter(has_state).collect();
            let types: Vec<_> = definitions.iter().filter_map(|it| self.of_definition(model, it.id).ok()).collect();
            self.values = Some(types.iter().filter(|type_code| !type_code.is_open()).collect());
        }
        self.values.clone().unwrap_or_default()
    }

    /// The type code of a type.
    pub(crate) fn of(&mut self, model: &Model, ty: &Type) -> Result<TypeCode, DescribeError> {
        let plain = |built: Result<TypeCode, TypeCodeError>| built.map_err(|error| impossible("a type", &error));
        Ok(match ty {
            Type::Primitive(primitive) => primitive_type(*primitive)?,
            Type::String { bound } => TypeCode::string(bound.unwrap_or(0)),
            Type::WString { bound } => TypeCode::wstring(bound.unwrap_or(0)),
            Type::Sequence { element, bound } => {
                plain(TypeCode::sequence(&self.of(model, element)?, bound.unwrap_or(0)))?
            }
            Type::Array { element, dimensions } => {
                let element = self.of(model, element)?;
                plain(dimensions.iter().rev().try_fold(element, |element, len| TypeCode::array(&element, *len)))?
            }
            Type::Named(id) => self.of_definition(model, *id)?,
            Type::Object => TypeCode::object(),
            Type::Fixed { digits, scale } => {
                plain(TypeCode::fixed(*digits, i16::try_from(*scale).unwrap_or(i16::MAX)))?
            }
            Type::Any => TypeCode::ANY,
            Type::TypeCode => TypeCode::TYPE_CODE,
            Type::ValueBase => TypeCode::value_base(),
            Type::AbstractBase => TypeCode::abstract_base(),
            _ => return Err(unknown("a type")),
        })
    }

    /// The type code of a named type.
    pub(super) fn of_definition(&mut self, model: &Model, id: DefId) -> Result<TypeCode, DescribeError> {
        let definition = &model[id];
        if let Some(built) = self.built.get(&id) {
            return Ok(built.clone());
        }
        if self.in_progress.contains(&id) || self.incomplete.contains(&id) {
            return TypeCode::recursive(definition.repository_id.clone())
                .map_err(|error| impossible(&definition.scoped_name, &error));
        }
        if let DefinitionKind::Typedef(_) = definition.kind {
            // Recursion ends at a struct, union, exception or value type, never at a typedef: a recursive
            // type code refers to one of these by its id (CORBA 3.3 Part 1, 8.11.3). So a typedef that occurs
            // within itself is built once more.
            let built = self.make(model, definition)?;
            if !built.is_open() {
                self.built.insert(id, built.clone());
            }
            return Ok(built);
        }
        let outside = self.incomplete.clone();
        self.in_progress.push(id);
        let built = self.make(model, definition);
        self.in_progress.pop();
        let built = built?;
        if built.is_open() {
            self.incomplete.insert(id);
        } else {
            // The incomplete type codes within it are complete now.
            self.incomplete = outside;
            self.built.insert(id, built.clone());
        }
        Ok(built)
    }

    fn make(&mut self, model: &Model, definition: &Definition) -> Result<TypeCode, DescribeError> {
        let (id, name) = (definition.repository_id.clone(), definition.name.clone());
        let built = match &definition.kind {
            DefinitionKind::Struct(body) => TypeCode::structure(id, name, &self.members(model, &body.members)?),
            DefinitionKind::Exception(body) => TypeCode::exception(id, name, &self.members(model, &body.members)?),
            DefinitionKind::Union(body) => {
                let discriminator = self.of(model, &body.discriminator)?;
                TypeCode::union(id, name, &discriminator, &self.branches(model, body)?)
            }
            DefinitionKind::Enum(body) => {
                let names: Vec<String> = body.enumerators.iter().map(|id| model[*id].name.clone()).collect();
                TypeCode::enumeration(id, name, &names)
            }
            DefinitionKind::Typedef(body) => TypeCode::alias(id, name, &self.of(model, &body.ty)?),
            DefinitionKind::ValueBox(body) => TypeCode::value_box(id, name, &self.of(model, &body.ty)?),
            DefinitionKind::ValueType(body) => return self.value(model, definition, body),
            DefinitionKind::Interface(body) if is_local(model, body) => TypeCode::local_interface(id, name),
            DefinitionKind::Interface(body) if body.is_abstract => TypeCode::abstract_interface(id, name),
            DefinitionKind::Interface(_) => TypeCode::object_reference(id, name),
            DefinitionKind::Native => TypeCode::native(id, name),
            other => return Err(unsupported(definition, &format!("it is a `{}`", other.keyword()))),
        };
        built.map_err(|error| impossible(&definition.scoped_name, &error))
    }

    fn members(&mut self, model: &Model, members: &[Member]) -> Result<Vec<(String, TypeCode)>, DescribeError> {
        members.iter().map(|member| Ok((member.name.clone(), self.of(model, &member.ty)?))).collect()
    }

    /// A branch of several labels is as many members (CORBA 3.3 Part 1, 8.11.2).
    fn branches(&mut self, model: &Model, body: &Union) -> Result<Vec<(Label, String, TypeCode)>, DescribeError> {
        let mut built = Vec::new();
        for branch in &body.branches {
            let type_code = self.of(model, &branch.member.ty)?;
            for label in &branch.labels {
                built.push((label_of(model, label)?, branch.member.name.clone(), type_code.clone()));
            }
        }
        Ok(built)
    }

    fn value(&mut self, model: &Model, definition: &Definition, body: &ValueType) -> Result<TypeCode, DescribeError> {
        let modifier = match body {
            ValueType { is_custom: true, .. } => ValueModifier::Custom,
            ValueType { is_abstract: true, .. } => ValueModifier::Abstract,
            ValueType { is_truncatable: true, .. } => ValueModifier::Truncatable,
            _ => ValueModifier::None,
        };
        let is_concrete = |id: &&DefId| model[**id].as_value_type().is_some_and(|base| !base.is_abstract);
        let base = body.bases.iter().find(is_concrete).map(|id| self.of_definition(model, *id)).transpose()?;
        let members = body.members.iter().map(|state| {
            let sees = if state.is_public { Visibility::Public } else { Visibility::Private };
            Ok((state.member.name.clone(), self.of(model, &state.member.ty)?, sees))
        });
        let members = members.collect::<Result<Vec<_>, DescribeError>>()?;
        let (id, name) = (definition.repository_id.clone(), definition.name.clone());
        TypeCode::value(id, name, modifier, base.as_ref(), &members)
            .map_err(|error| impossible(&definition.scoped_name, &error))
    }
}

/// Interfaces that inherit from local ones are local.
fn is_local(model: &Model, body: &model::Interface) -> bool {
    body.is_local || body.all_bases.iter().any(|id| model[*id].as_interface().is_some_and(|base| base.is_local))
}

fn label_of(model: &Model, label: &model::Label) -> Result<Label, DescribeError> {
    let model::Label::Value(value) = label else { return Ok(Label::Default) };
    Ok(Label::Value(match value {
        ConstValue::Integer(value) => *value,
        ConstValue::Boolean(value) => i128::from(*value),
        ConstValue::Char(value) => i128::from(*value),
        ConstValue::WideChar(value) => i128::from(u32::from(*value)),
        ConstValue::Enumerator(id) => match &model[*id].kind {
            DefinitionKind::Enumerator(body) => i128::from(body.ordinal),
            _ => return Err(unknown("a label")),
        },
        _ => return Err(unknown("a label")),
    }))
}

fn primitive_type(primitive: Primitive) -> Result<TypeCode, DescribeError> {
    Ok(match primitive {
        Primitive::Short => TypeCode::SHORT,
        Primitive::UnsignedShort => TypeCode::USHORT,
        Primitive::Long => TypeCode::LONG,
        Primitive::UnsignedLong => TypeCode::ULONG,
        Primitive::LongLong => TypeCode::LONGLONG,
        Primitive::UnsignedLongLong => TypeCode::ULONGLONG,
        Primitive::Float => TypeCode::FLOAT,
        Primitive::Double => TypeCode::DOUBLE,
        Primitive::LongDouble => TypeCode::LONGDOUBLE,
        Primitive::Boolean => TypeCode::BOOLEAN,
        Primitive::Octet => TypeCode::OCTET,
        Primitive::Char => TypeCode::CHAR,
        Primitive::WChar => TypeCode::WCHAR,
        _ => return Err(unknown("a primitive type")),
    })
}

/// The parser supports more than this conversion.
fn unknown(name: &str) -> DescribeError {
    DescribeError::Unsupported { name: name.to_owned(), reason: "dynamic invocation does not support it".to_owned() }
}
