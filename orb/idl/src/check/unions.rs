//! Unions: the discriminator, the labels of the branches, and values without a label (IDL 4.2, 7.4.1.4.4.4.2
//! and 7.4.13).

use super::checker::{Checker, Shape};
use std::collections::BTreeMap;

use super::constants::Target;
use super::types::Place;
use crate::ast::{Expression, LabelItem, NewName, StepKind, TypeKind, TypeSpec, UnionItem};
use crate::diagnostic::Diagnostic;
use crate::model::{Branch, ConstValue, DefId, DefinitionKind, Label, Primitive, Type, Union};
use crate::source::Span;

/// The first surrogate code, and the number of surrogates: characters are numbered without them.
const FIRST_SURROGATE: u32 = 0xd800;
const SURROGATES: u32 = 0x800;

/// The labels of a union so far.
#[derive(Default)]
struct Labels {
    /// The covered values by their number, with the position of the label.
    covered: BTreeMap<i128, Span>,
    default: Option<Span>,
    /// Whether a label could not be evaluated: uncovered values are then unknown.
    broken: bool,
}

impl Checker<'_> {
    /// Declares a union for `union Name;`.
    pub(super) fn forward_union(&mut self, name: &NewName) {
        self.forward(name, empty());
    }

    pub(super) fn union(&mut self, item: &UnionItem) -> DefId {
        let id = self.define_or_complete(&item.name, empty());
        self.enter(id);
        self.open_structs.push(id);
        let discriminator = self.discriminator(&item.discriminator);
        let (branches, labels) = self.branches(item, discriminator.as_ref().map(|it| it.1));
        self.open_structs.pop();
        self.leave();
        let broken = discriminator.is_none() || labels.broken || branches.len() < item.branches.len();
        let Some((ty, target)) = discriminator.filter(|_| !broken) else {
            self.set_shape(id, Shape::default());
            return id;
        };
        let unlisted = self.unlisted(&item.name, target, &labels);
        let shape = self.union_shape(&ty, &branches, unlisted.is_some());
        if branches.iter().any(|it| self.is_local(&it.member.ty)) {
            self.mark_local(id);
        }
        if let DefinitionKind::Union(body) = &mut self.definitions[id.index()].kind {
            body.discriminator = ty;
            body.branches = branches;
            body.unlisted = unlisted;
        }
        self.set_shape(id, shape);
        id
    }

    fn discriminator(&mut self, spec: &TypeSpec) -> Option<(Type, Target)> {
        let ty = match &spec.kind {
            TypeKind::Enum(body) => Type::Named(self.enumeration(body)),
            _ => self.type_of(spec, Place::Element)?,
        };
        let target = self.target(&ty).filter(|target| {
            use Target::{Boolean, Char, Enum, Integer, WideChar};
            matches!(target, Integer { .. } | Boolean | Char | WideChar | Enum(_))
        });
        if target.is_none() {
            let error = Diagnostic::error("a union cannot have a discriminator of this type")
                .at(spec.span, "")
                .note("a discriminator is an integer, a character, a boolean, an octet or an enum");
            self.report(error);
        }
        target.map(|target| (ty, target))
    }

    /// The branches whose types are usable, and all labels.
    fn branches(&mut self, item: &UnionItem, target: Option<Target>) -> (Vec<Branch>, Labels) {
        let mut branches = Vec::new();
        let mut all_labels = Labels::default();
        for branch in &item.branches {
            let labels = branch.labels.iter().filter_map(|label| self.label(label, target, &mut all_labels)).collect();
            let mut members = Vec::new();
            self.member(&branch.member, &mut members);
            branches.extend(members.pop().map(|member| Branch { labels, member }));
        }
        (branches, all_labels)
    }

    fn label(&mut self, label: &LabelItem, target: Option<Target>, all_labels: &mut Labels) -> Option<Label> {
        let expression = match label {
            LabelItem::Case(expression) => expression,
            LabelItem::Default(span) => {
                match all_labels.default {
                    Some(earlier) => self.label_twice("`default`", *span, earlier),
                    None => all_labels.default = Some(*span),
                }
                return Some(Label::Default);
            }
        };
        let value = target.and_then(|target| self.label_value(expression, target));
        let Some(value) = value else {
            all_labels.broken = true;
            return None;
        };
        match all_labels.covered.get(&self.number(&value)) {
            Some(&earlier) => self.label_twice("this label", expression.span, earlier),
            None => {
                all_labels.covered.insert(self.number(&value), expression.span);
            }
        }
        Some(Label::Value(value))
    }

    fn label_twice(&mut self, label: &str, span: Span, earlier: Span) {
        let error = Diagnostic::error(format!("{label} occurs twice in one union"))
            .at(span, "again here")
            .also(earlier, "first here");
        self.report(error);
    }

    /// The value of a label. An enumerator that is not visible here is accepted, as by some other compilers,
    /// if the discriminator's type has it.
    fn label_value(&mut self, expression: &Expression, target: Target) -> Option<ConstValue> {
        if let (Target::Enum(enumeration), [step]) = (target, &expression.steps[..])
            && let StepKind::Name(name) = &step.kind
            && let ([simple], false) = (&name.parts[..], name.absolute)
            && !self.is_visible(*simple)
            && let Some(enumerator) = self.enumerator_named(enumeration, simple.symbol)
        {
            let full = &self[enumerator].scoped_name;
            let warning = Diagnostic::warning(format!("`{}` is not visible here", self[enumerator].name))
                .at(name.span, format!("interpreted as `{full}`"))
                .help(format!("most IDL compilers require `::{full}`"));
            self.report(warning);
            return Some(ConstValue::Enumerator(enumerator));
        }
        self.evaluate(expression, target)
    }

    fn enumerator_named(&self, enumeration: DefId, symbol: crate::intern::Symbol) -> Option<DefId> {
        match &self[enumeration].kind {
            DefinitionKind::Enum(body) => {
                body.enumerators.iter().copied().find(|id| self.facts[id.index()].symbol == symbol)
            }
            _ => None,
        }
    }

    /// The least value that selects no branch. A `default` that no value selects is an error.
    fn unlisted(&mut self, name: &NewName, target: Target, labels: &Labels) -> Option<ConstValue> {
        let (least, most) = self.domain(target);
        let gap = (least..=most).zip(labels.covered.keys()).find(|(expected, covered)| expected != *covered);
        let free = match gap {
            Some((expected, _)) => Some(expected),
            None => Some(least + labels.covered.len() as i128).filter(|it| *it <= most),
        };
        let Some(default) = labels.default else {
            return free.and_then(|number| self.numbered(target, number));
        };
        if free.is_none() {
            let error = Diagnostic::error("this `default` can never be selected")
                .at(default, "remove it")
                .also(name.name.span, "the other labels cover all values of the discriminator");
            self.report(error);
        }
        None
    }

    /// The first and last number of a discriminator's values.
    fn domain(&self, target: Target) -> (i128, i128) {
        match target {
            Target::Integer { least, most, .. } => (least, most),
            Target::Boolean => (0, 1),
            Target::Char => (0, i128::from(u8::MAX)),
            Target::WideChar => (0, i128::from(u32::from(char::MAX) - SURROGATES)),
            Target::Enum(enumeration) => match &self[enumeration].kind {
                DefinitionKind::Enum(body) => (0, body.enumerators.len() as i128 - 1),
                _ => (0, 0),
            },
            Target::Float { .. } | Target::String { .. } | Target::WideString { .. } | Target::Fixed { .. } => (0, 0),
        }
    }

    /// The number by which a label is compared with others.
    fn number(&self, value: &ConstValue) -> i128 {
        match value {
            ConstValue::Integer(value) => *value,
            ConstValue::Boolean(value) => i128::from(*value),
            ConstValue::Char(value) => i128::from(*value),
            ConstValue::WideChar(value) => {
                let code = u32::from(*value);
                i128::from(if code < FIRST_SURROGATE { code } else { code - SURROGATES })
            }
            ConstValue::Enumerator(id) => match &self[*id].kind {
                DefinitionKind::Enumerator(it) => i128::from(it.ordinal),
                _ => 0,
            },
            ConstValue::Float(_) | ConstValue::String(_) | ConstValue::WideString(_) | ConstValue::Fixed(_) => 0,
        }
    }

    /// The reverse of [`number`](Self::number); `None` for a code that is not a character.
    fn numbered(&self, target: Target, number: i128) -> Option<ConstValue> {
        let value = match target {
            Target::Integer { .. } => ConstValue::Integer(number),
            Target::Boolean => ConstValue::Boolean(number != 0),
            Target::Char => ConstValue::Char(u8::try_from(number).ok()?),
            Target::WideChar => {
                let number = u32::try_from(number).ok()?;
                let code = if number < FIRST_SURROGATE { number } else { number + SURROGATES };
                ConstValue::WideChar(char::from_u32(code)?)
            }
            Target::Enum(enumeration) => match &self[enumeration].kind {
                DefinitionKind::Enum(body) => {
                    ConstValue::Enumerator(*body.enumerators.get(usize::try_from(number).ok()?)?)
                }
                _ => return None,
            },
            Target::Float { .. } | Target::String { .. } | Target::WideString { .. } | Target::Fixed { .. } => {
                return None;
            }
        };
        Some(value)
    }

    fn union_shape(&self, discriminator: &Type, branches: &[Branch], may_be_empty: bool) -> Shape {
        let shapes: Vec<Shape> = branches.iter().map(|it| self.shape(&it.member.ty)).collect();
        let smallest = if may_be_empty { Some(0) } else { shapes.iter().map(|it| it.octets).min() };
        let octets = self.shape(discriminator).octets.saturating_add(smallest.unwrap_or(0));
        Shape { octets, fixed: false, ..self.composed(&shapes) }
    }
}

/// A union without known properties.
fn empty() -> DefinitionKind {
    DefinitionKind::Union(Union {
        discriminator: Type::Primitive(Primitive::Long),
        branches: Vec::new(),
        unlisted: None,
        contents: Vec::new(),
    })
}
