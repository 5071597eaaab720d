//! Type codes of definitions, recursive ones included.

use std::collections::{HashMap, HashSet};

use spandrel::types::{Any, Label, TcKind, TypeCode, TypeCodeError, ValueModifier, Visibility};
use spandrel::{CompletionStatus, SystemException};

use crate::errors::{bad_param, not_exist};
use crate::model::{Model, NONE, Number, bases, is_anonymous};
use crate::records::records::{Body, Definition, InterfaceFlavor, Kind, Member};

/// The deepest nesting of types within each other.
const MAX_DEPTH: usize = 64;

/// Type codes by definition, for one state of the model.
#[derive(Debug)]
pub(crate) struct TypeCodes<'m> {
    model: &'m Model,
    built: HashMap<Number, TypeCode>,
    /// The definitions whose type codes are being built, the outermost first.
    in_progress: Vec<Number>,
    /// The definitions nested in these that refer to one of them: their type codes are incomplete.
    incomplete: HashSet<Number>,
    depth: usize,
}

impl<'m> TypeCodes<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        Self { model, built: HashMap::new(), in_progress: Vec::new(), incomplete: HashSet::new(), depth: 0 }
    }

    /// The type code of a type or an exception.
    ///
    /// # Errors
    /// BAD_PARAM for a definition without one, or with a member that is invalid; IMP_LIMIT for too deep nesting.
    pub(crate) fn type_code(&mut self, number: Number) -> Result<TypeCode, SystemException> {
        if let Some(built) = self.built.get(&number) {
            return Ok(built.clone());
        }
        let definition = self.model.get(number).ok_or_else(not_exist)?;
        // Recursion is by an id, which types without a name lack: they are built once more.
        let outer = self.in_progress.iter().position(|it| *it == number).filter(|_| !is_anonymous(&definition.content));
        if let Some(outer) = outer {
            let may_recur = |it: &Number| {
                self.model
                    .get(*it)
                    .is_some_and(|it| matches!(it.content, Body::ASequence(_) | Body::Value(_) | Body::ValueBox(_)))
            };
            if !self.in_progress[outer..].iter().any(may_recur) {
                return Err(bad_param(
                    0,
                    format!("`{}` contains itself other than in a sequence or value", definition.name),
                ));
            }
            return TypeCode::recursive(definition.id.clone()).map_err(invalid);
        }
        if self.incomplete.contains(&number) {
            return TypeCode::recursive(definition.id.clone()).map_err(invalid);
        }
        if self.depth == MAX_DEPTH {
            return Err(SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail("the types are nested too deeply, or an alias denotes itself"));
        }
        self.depth += 1;
        let built = self.in_turn(number, definition);
        self.depth -= 1;
        built
    }

    fn in_turn(&mut self, number: Number, definition: &Definition) -> Result<TypeCode, SystemException> {
        if matches!(definition.content, Body::Alias(_)) {
            // A recursive type code never denotes an alias (8.11.3): within itself, it is built once more.
            let built = self.make(definition)?;
            if !built.is_open() {
                self.built.insert(number, built.clone());
            }
            return Ok(built);
        }
        let outside = self.incomplete.clone();
        self.in_progress.push(number);
        let built = self.make(definition);
        self.in_progress.pop();
        let built = built?;
        if !built.is_open() {
            self.incomplete = outside;
            self.built.insert(number, built.clone());
        } else if !definition.id.is_empty() {
            self.incomplete.insert(number);
        }
        Ok(built)
    }

    fn make(&mut self, definition: &Definition) -> Result<TypeCode, SystemException> {
        let (id, name) = (definition.id.clone(), definition.name.clone());
        let built = match &definition.content {
            Body::Primitive(kind) => Ok(primitive(*kind)),
            Body::Text(bound) => Ok(TypeCode::string(*bound)),
            Body::WideText(bound) => Ok(TypeCode::wstring(*bound)),
            Body::Decimal(body) => TypeCode::fixed(body.digits, body.scale),
            Body::ASequence(body) => TypeCode::sequence(&self.type_code(body.r#type)?, body.count),
            Body::AnArray(body) => TypeCode::array(&self.type_code(body.r#type)?, body.count),
            Body::Structure(members) => TypeCode::structure(id, name, &self.members(members)?),
            Body::AnException(members) => TypeCode::exception(id, name, &self.members(members)?),
            Body::AUnion(body) => {
                let discriminator = self.type_code(body.discriminator)?;
                let branches = body.branches.iter().map(|branch| {
                    Ok((label(&branch.label, &discriminator)?, branch.name.clone(), self.type_code(branch.r#type)?))
                });
                let branches = branches.collect::<Result<Vec<_>, SystemException>>()?;
                TypeCode::union(id, name, &discriminator, &branches)
            }
            Body::Enumeration(names) => TypeCode::enumeration(id, name, names),
            Body::Alias(original) => TypeCode::alias(id, name, &self.type_code(*original)?),
            Body::ValueBox(original) => TypeCode::value_box(id, name, &self.type_code(*original)?),
            Body::AnInterface(body) => match body.flavor {
                InterfaceFlavor::FlavorRemote => TypeCode::object_reference(id, name),
                InterfaceFlavor::FlavorAbstract => TypeCode::abstract_interface(id, name),
                InterfaceFlavor::FlavorLocal => TypeCode::local_interface(id, name),
            },
            Body::Value(body) => {
                let modifier = match (body.is_custom, body.is_abstract, body.is_truncatable) {
                    (true, ..) => ValueModifier::Custom,
                    (_, true, _) => ValueModifier::Abstract,
                    (_, _, true) => ValueModifier::Truncatable,
                    _ => ValueModifier::None,
                };
                let base = if body.base == NONE { None } else { Some(self.type_code(body.base)?) };
                let mut members = Vec::new();
                for member in &definition.contents {
                    let Some(member) = self.model.get(*member) else { continue };
                    if let Body::ValueMember(body) = &member.content {
                        let sees = if body.access == 1 { Visibility::Public } else { Visibility::Private };
                        members.push((member.name.clone(), self.type_code(body.r#type)?, sees));
                    }
                }
                TypeCode::value(id, name, modifier, base.as_ref(), &members)
            }
            Body::Unlisted(Kind::KindNative) => TypeCode::native(id, name),
            _ => return Err(bad_param(0, format!("`{name}` is not a type"))),
        };
        built.map_err(invalid)
    }

    fn members(&mut self, members: &[Member]) -> Result<Vec<(String, TypeCode)>, SystemException> {
        members.iter().map(|member| Ok((member.name.clone(), self.type_code(member.r#type)?))).collect()
    }
}

/// The value of a label in an `any`; an octet zero is the default (CORBA 3.3 Part 1, 14.5.8).
fn label(any: &Any, discriminator: &TypeCode) -> Result<Label, SystemException> {
    let (expected, found) = (discriminator.without_aliases().kind(), any.type_code().without_aliases().kind());
    let invalid =
        || bad_param(0, format!("a label of type `{}` for a discriminator `{discriminator}`", any.type_code()));
    if found == TcKind::Octet && expected != TcKind::Octet {
        return Ok(Label::Default);
    }
    if expected != found {
        return Err(invalid());
    }
    let mut input = any.value();
    let value = match found {
        TcKind::Short => input.i16().map(i128::from),
        TcKind::UShort => input.u16().map(i128::from),
        TcKind::Long => input.i32().map(i128::from),
        TcKind::ULong | TcKind::Enum => input.u32().map(i128::from),
        TcKind::LongLong => input.i64().map(i128::from),
        TcKind::ULongLong => input.u64().map(i128::from),
        TcKind::Boolean => input.bool().map(i128::from),
        TcKind::Char | TcKind::Octet => input.u8().map(i128::from),
        TcKind::WChar => {
            let value = any.extract::<char>().map_err(|_| invalid())?;
            return Ok(Label::Value(i128::from(u32::from(value))));
        }
        _ => return Err(invalid()),
    };
    Ok(Label::Value(value?))
}

/// The type code of a primitive type, by the number of its `PrimitiveKind`.
fn primitive(kind: u32) -> TypeCode {
    match kind {
        0 => TypeCode::NULL,
        1 => TypeCode::VOID,
        2 => TypeCode::SHORT,
        3 => TypeCode::LONG,
        4 => TypeCode::USHORT,
        5 => TypeCode::ULONG,
        6 => TypeCode::FLOAT,
        7 => TypeCode::DOUBLE,
        8 => TypeCode::BOOLEAN,
        9 => TypeCode::CHAR,
        10 => TypeCode::OCTET,
        11 => TypeCode::ANY,
        12 => TypeCode::TYPE_CODE,
        13 => TypeCode::PRINCIPAL,
        14 => TypeCode::STRING,
        15 => TypeCode::object(),
        16 => TypeCode::LONGLONG,
        17 => TypeCode::ULONGLONG,
        18 => TypeCode::LONGDOUBLE,
        19 => TypeCode::WCHAR,
        20 => TypeCode::wstring(0),
        _ => TypeCode::value_base(),
    }
}

fn invalid(error: TypeCodeError) -> SystemException {
    bad_param(0, error.to_string())
}

/// Whether an interface or value has this definition among its bases, or is it.
pub(crate) fn derives(model: &Model, number: Number, base: Number) -> bool {
    let mut waiting = vec![number];
    let mut visited = HashSet::new();
    while let Some(at) = waiting.pop() {
        if at == base {
            return true;
        }
        if visited.insert(at) {
            waiting.extend(model.get(at).map(|it| bases(&it.content)).unwrap_or_default());
        }
    }
    false
}
