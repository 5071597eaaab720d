//! Types, typedefs and enumerations.

use super::checker::{Checker, Shape};
use super::names::named;
use super::shapes::{DEEPEST, LARGEST};
use crate::ast::{Declarator, EnumItem, Expression, ScopedName, TypeKind, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefinitionKind, Enum, Enumerator, Primitive, Type, Typedef};
use crate::parse::EXTENDED;
use crate::source::Span;

/// The position of a type, which determines the permitted types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Typedef,
    Member,
    /// The type of a parameter, a result or an attribute.
    Call,
    Element,
}

/// Maximum number of digits of a fixed-point type.
const MOST_DIGITS: u16 = crate::literal::MOST_DIGITS as u16;

/// Names of integer types from IDL 4.2 (7.4.13.4.4); an IDL file may define them itself.
const INTEGERS: [(&str, Primitive); 6] = [
    ("int16", Primitive::Short),
    ("int32", Primitive::Long),
    ("int64", Primitive::LongLong),
    ("uint16", Primitive::UnsignedShort),
    ("uint32", Primitive::UnsignedLong),
    ("uint64", Primitive::UnsignedLongLong),
];

impl Checker<'_> {
    /// The type, checked to be usable in this position. `None` if it is not; that has been reported.
    pub(super) fn type_of(&mut self, spec: &TypeSpec, usage: Place) -> Option<Type> {
        let ty = match &spec.kind {
            TypeKind::Primitive(primitive) => Type::Primitive(*primitive),
            TypeKind::Object => Type::Object,
            TypeKind::Any => Type::Any,
            TypeKind::ValueBase => Type::ValueBase,
            TypeKind::String(bound) => Type::String { bound: self.bound(bound.as_ref())? },
            TypeKind::WString(bound) => Type::WString { bound: self.bound(bound.as_ref())? },
            TypeKind::Fixed(size) => {
                self.anonymous(spec.span, usage, "a fixed-point type");
                self.fixed_type(spec.span, size.as_deref())?
            }
            TypeKind::Sequence(element, bound) => {
                self.anonymous(spec.span, usage, "a sequence");
                let element = self.type_of(element, Place::Element);
                let bound = self.bound(bound.as_ref());
                Type::Sequence { element: Box::new(element?), bound: bound? }
            }
            TypeKind::Scoped(name) => self.named_type(name)?,
            TypeKind::Struct(body) => {
                let id = self.structure(body);
                self.in_place_definition(spec.span, usage);
                Type::Named(id)
            }
            TypeKind::Union(body) => {
                let id = self.union(body);
                self.in_place_definition(spec.span, usage);
                Type::Named(id)
            }
            TypeKind::Enum(body) => {
                let id = self.enumeration(body);
                self.in_place_definition(spec.span, usage);
                Type::Named(id)
            }
        };
        self.check_complete(&ty, spec.span, usage).then_some(ty)
    }

    /// Warns of an anonymous type (IDL 4.2, 7.4.14).
    fn anonymous(&mut self, span: Span, usage: Place, what: &str) {
        if usage == Place::Call {
            let warning = Diagnostic::warning(format!("{what} without a name of its own"))
                .at(span, "many IDL compilers reject it here")
                .help("name it with a `typedef` and use that name");
            self.report(warning);
        }
    }

    /// `fixed<digits, scale>` (IDL 4.2, 7.4.1.4.4.3).
    fn fixed_type(&mut self, span: Span, size: Option<&(Expression, Expression)>) -> Option<Type> {
        let Some((digits, scale)) = size else {
            let error = Diagnostic::error("`fixed` needs its digits and scale here")
                .at(span, "as in `fixed<9, 2>`")
                .note("only the type of a constant omits them");
            self.report(error);
            return None;
        };
        let (counted, behind) = (self.natural(digits), self.natural(scale));
        let (counted, behind) = (counted?, behind?);
        let (problem, span) = match u16::try_from(counted) {
            Ok(digits @ 1..=MOST_DIGITS) => match u16::try_from(behind) {
                Ok(scale) if scale <= digits => return Some(Type::Fixed { digits, scale }),
                _ => (format!("a scale must be from 0 to the number of digits, {counted}"), scale.span),
            },
            _ => (format!("a fixed-point type has 1 to {MOST_DIGITS} digits"), digits.span),
        };
        self.report(Diagnostic::error(problem).at(span, ""));
        None
    }

    fn in_place_definition(&mut self, span: Span, usage: Place) {
        if matches!(usage, Place::Call | Place::Element) {
            let error = Diagnostic::error("a type cannot be defined here")
                .at(span, "defined in its place of use")
                .help("define it before and use its name here");
            self.report(error);
        }
    }

    fn named_type(&mut self, name: &ScopedName) -> Option<Type> {
        let id = match self.try_resolve(name) {
            Ok(definition) => definition?,
            Err(not_found) => {
                return match self.predefined(name) {
                    Some(predefined) => predefined,
                    None => {
                        self.report_not_found(name, &not_found);
                        None
                    }
                };
            }
        };
        match self[id].kind {
            DefinitionKind::Interface(_)
            | DefinitionKind::Struct(_)
            | DefinitionKind::Union(_)
            | DefinitionKind::Enum(_)
            | DefinitionKind::ValueType(_)
            | DefinitionKind::ValueBox(_)
            | DefinitionKind::Native => {}
            // An alias of a broken type is broken itself, so this one has a type.
            DefinitionKind::Typedef(_) => {}
            DefinitionKind::Unmapped(_) if let Some(ty) = self.unmapped_type(id) => return Some(ty),
            _ => {
                self.not_a_type(name, id);
                return None;
            }
        }
        Some(Type::Named(id))
    }

    /// A predefined name: `Some(None)` if it is not supported, which is then reported.
    #[expect(clippy::option_option, reason = "predefined, and supported")]
    fn predefined(&mut self, name: &ScopedName) -> Option<Option<Type>> {
        let texts: Vec<_> = name.parts.iter().map(|it| self.text(it.symbol)).collect();
        let texts: Vec<&str> = texts.iter().map(|it| &**it).collect();
        match texts[..] {
            ["CORBA", "Object"] => Some(Some(Type::Object)),
            ["CORBA", "TypeCode"] => Some(Some(Type::TypeCode)),
            ["CORBA", "ValueBase"] => Some(Some(Type::ValueBase)),
            ["CORBA", "AbstractBase"] => Some(Some(Type::AbstractBase)),
            ["TypeCode"] if self.in_corba() => Some(Some(Type::TypeCode)),
            ["AbstractBase"] if self.in_corba() => Some(Some(Type::AbstractBase)),
            [extended @ ("int8" | "uint8")] => {
                let message = format!("not part of CORBA: {extended}");
                self.report(Diagnostic::error(message).at(name.span, "used here").note(EXTENDED));
                Some(None)
            }
            [text] => {
                let &(_, primitive) = INTEGERS.iter().find(|(it, _)| *it == text)?;
                self.not_portable("integer types with their number of bits, such as `int32`", "IDL 4.2", name.span);
                Some(Some(Type::Primitive(primitive)))
            }
            _ => None,
        }
    }

    /// Whether this position is inside the module `CORBA`, whose types need no prefix there.
    fn in_corba(&self) -> bool {
        let owner = self.open.get(1).and_then(|&scope| self.scope(scope).owner);
        owner.is_some_and(|owner| self[owner].scoped_name == "CORBA")
    }

    fn not_a_type(&mut self, name: &ScopedName, id: DefId) {
        let definition = &self[id];
        let text = &definition.name;
        let mut error = Diagnostic::error(format!("`{text}` is not a type"))
            .at(name.span, "expected a type")
            .also(definition.span, named(&definition.kind));
        if matches!(definition.kind, DefinitionKind::Exception(_)) {
            error = error.note("exceptions can only be raised");
        }
        self.report(error);
    }

    fn bound(&mut self, bound: Option<&Expression>) -> Option<Option<u32>> {
        match bound {
            None => Some(None),
            Some(bound) => self.positive(bound).map(Some),
        }
    }

    /// The type with the dimensions of a declarator.
    pub(super) fn declared_type(&mut self, ty: &Type, declarator: &Declarator) -> Option<Type> {
        if declarator.dimensions.is_empty() {
            return Some(ty.clone());
        }
        let dimensions = declarator.dimensions.iter().map(|it| self.positive(it));
        let dimensions: Vec<Option<u32>> = dimensions.collect();
        let dimensions = dimensions.into_iter().collect::<Option<Vec<u32>>>()?;
        Some(Type::Array { element: Box::new(ty.clone()), dimensions })
    }

    pub(super) fn typedef(&mut self, spec: &TypeSpec, declarators: &[Declarator]) {
        let ty = self.type_of(spec, Place::Typedef);
        for declarator in declarators {
            let name = &declarator.name;
            let ty = ty.as_ref();
            let Some(ty) = ty.and_then(|ty| self.declared_type(ty, declarator)) else {
                self.broken(name);
                continue;
            };
            let mut shape = self.shape(&ty);
            shape.depth += 1;
            let id = self.define(name, DefinitionKind::Typedef(Typedef { ty }));
            self.set_shape(id, shape);
        }
    }

    /// Records the shape of a complete type, and reports one that is too large.
    pub(super) fn set_shape(&mut self, id: DefId, shape: Shape) {
        let span = self[id].span;
        self.facts[id.index()].shape = shape;
        self.facts[id.index()].complete = true;
        let error = if shape.depth > DEEPEST {
            Diagnostic::error("types are nested too deep")
                .note(format!("at most {DEEPEST} levels of structs, sequences, arrays and typedefs are permitted"))
        } else if shape.octets > LARGEST {
            Diagnostic::error("values of this type are too large to be sent").note("a GIOP message has at most 4 GiB")
        } else {
            return;
        };
        self.report(error.at(span, "the limit is exceeded here"));
        // Types built from it need no second report.
        self.facts[id.index()].broken = true;
    }

    pub(super) fn enumeration(&mut self, item: &EnumItem) -> DefId {
        let id = self.define(&item.name, DefinitionKind::Enum(Enum::default()));
        let shape = Shape { octets: 4, fixed: true, ..Shape::default() };
        self.set_shape(id, shape);
        let mut enumerators = Vec::with_capacity(item.enumerators.len());
        for (ordinal, written) in item.enumerators.iter().enumerate() {
            let ordinal = ordinal as u32;
            let kind = DefinitionKind::Enumerator(Enumerator { of: id, ordinal });
            let enumerator = self.define_below(&written.name, kind, Some(id));
            enumerators.push(enumerator);
            self.definitions[enumerator.index()].annotations = self.annotations(&written.annotations);
        }
        self.one_default_literal(item);
        if let DefinitionKind::Enum(body) = &mut self.definitions[id.index()].kind {
            body.enumerators = enumerators;
        }
        id
    }
}
