//! Constants: the type that is expected decides how an expression is computed (IDL 4.2, 7.4.1.4.3).

use super::Checker;
use super::arithmetic;
use super::arithmetic::Width;
use super::names::named;
use super::types::Place;
use crate::ast::{Expression, NewName, Step, StepKind, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{Const, ConstValue, DefId, DefinitionKind, Primitive, Type};
use crate::source::Span;

/// How many octets string constants may copy from each other in one run.
pub(super) const TEXT_BUDGET: usize = 16 << 20;

/// What a constant may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Integer {
        name: &'static str,
        least: i128,
        most: i128,
        width: Width,
    },
    /// Whether it is rounded to a `float`.
    Float {
        single: bool,
    },
    Boolean,
    Char,
    String {
        bound: Option<u32>,
    },
    Enum(DefId),
}

impl Checker<'_> {
    pub(super) fn constant(&mut self, spec: &TypeSpec, name: &NewName, value: &Expression) {
        let ty = self.type_of(spec, Place::Element);
        let target = ty.as_ref().and_then(|ty| self.target(ty, spec));
        let value = target.and_then(|target| self.evaluate(value, target));
        match (ty, value) {
            (Some(ty), Some(value)) => {
                self.define(name, DefinitionKind::Const(Const { ty, value }));
            }
            _ => {
                self.broken(name);
            }
        }
    }

    /// A bound or dimension.
    pub(super) fn positive(&mut self, expression: &Expression) -> Option<u32> {
        // Computed in a wider type, so that what is out of range can be called by its value.
        let target = integer(Primitive::UnsignedLongLong)?;
        let ConstValue::Integer(value) = self.evaluate_wide(expression, target)? else {
            return None;
        };
        match u32::try_from(value) {
            Ok(bound) if bound > 0 => Some(bound),
            _ => {
                let error = Diagnostic::error("a bound must be from 1 to 4294967295")
                    .at(expression.span, format!("this is {value}"));
                self.report(error);
                None
            }
        }
    }

    fn target(&mut self, ty: &Type, spec: &TypeSpec) -> Option<Target> {
        let mut ty = ty;
        while let Type::Named(id) = ty {
            match &self[*id].kind {
                DefinitionKind::Typedef(typedef) => ty = &typedef.ty,
                _ => break,
            }
        }
        let target = match ty {
            Type::Primitive(Primitive::Float) => Some(Target::Float { single: true }),
            Type::Primitive(Primitive::Double | Primitive::LongDouble) => Some(Target::Float { single: false }),
            Type::Primitive(Primitive::Boolean) => Some(Target::Boolean),
            Type::Primitive(Primitive::Char) => Some(Target::Char),
            Type::Primitive(primitive) => integer(*primitive),
            Type::String { bound } => Some(Target::String { bound: *bound }),
            Type::Named(id) => {
                let is_enum = matches!(self[*id].kind, DefinitionKind::Enum(_));
                is_enum.then_some(Target::Enum(*id))
            }
            _ => None,
        };
        if target.is_none() {
            let error = Diagnostic::error("a constant cannot have this type")
                .at(spec.span, "")
                .note("constants are numbers, characters, strings, booleans, octets or enumerators");
            self.report(error);
        }
        target
    }

    /// The value, within the range of its type.
    fn evaluate(&mut self, expression: &Expression, target: Target) -> Option<ConstValue> {
        let value = self.evaluate_wide(expression, target)?;
        let problem = match (&value, target) {
            (ConstValue::Integer(value), Target::Integer { name, least, most, .. })
                if !(least..=most).contains(value) =>
            {
                format!("{value} is not within the range of `{name}`, which is {least} to {most}")
            }
            (ConstValue::String(text), Target::String { bound: Some(bound) })
                if text.chars().count() > bound as usize =>
            {
                let length = text.chars().count();
                format!("this string has {length} characters and its type allows {bound}")
            }
            (ConstValue::Float(value), Target::Float { single: true }) => {
                let single = *value as f32;
                if single.is_finite() {
                    return Some(ConstValue::Float(f64::from(single)));
                }
                "this value is too large for a `float`".to_owned()
            }
            _ => return Some(value),
        };
        let mut error = Diagnostic::error(problem).at(expression.span, "");
        if let Target::Integer { width, .. } = target
            && arithmetic::complements(&expression.steps)
        {
            let bits = width.bits();
            error = error.note(format!(
                "`~` of a value that is not negative is its unsigned complement in {bits} bits (IDL 4.2, 7.4.1.4.3)"
            ));
        }
        self.report(error);
        None
    }

    /// The value, which for integers may lie outside the range of the type.
    fn evaluate_wide(&mut self, expression: &Expression, target: Target) -> Option<ConstValue> {
        let mut stack: Vec<ConstValue> = Vec::new();
        for step in &expression.steps {
            let result = match &step.kind {
                StepKind::Unary(operator) => {
                    let operand = stack.pop()?;
                    arithmetic::unary(*operator, &operand, width(target))
                }
                StepKind::Binary(operator) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    arithmetic::binary(*operator, &left, &right, width(target))
                }
                _ => Ok(self.operand(step, target)?),
            };
            match result {
                Ok(value) => stack.push(value),
                Err(problem) => {
                    self.report(Diagnostic::error(problem).at(step.span, ""));
                    return None;
                }
            }
        }
        stack.pop()
    }

    /// A literal or named value, if it is of the kind that the type needs.
    fn operand(&mut self, step: &Step, target: Target) -> Option<ConstValue> {
        let (value, definition) = match &step.kind {
            StepKind::Integer(value) => (ConstValue::Integer(i128::try_from(*value).ok()?), None),
            StepKind::Float(value) => (ConstValue::Float(*value), None),
            StepKind::Boolean(value) => (ConstValue::Boolean(*value), None),
            StepKind::Char(value) => (ConstValue::Char(u32::from(*value) as u8), None),
            StepKind::String(value) => (ConstValue::String(value.clone()), None),
            StepKind::Name(name) => {
                let id = self.resolve(name)?;
                match &self[id].kind {
                    DefinitionKind::Const(constant) => {
                        let value = constant.value.clone();
                        self.pay_for_text(&value, step.span)?;
                        (value, Some(id))
                    }
                    DefinitionKind::Enumerator(_) => (ConstValue::Enumerator(id), Some(id)),
                    _ => {
                        let error = Diagnostic::error(format!("`{}` is not a constant", self[id].name))
                            .at(step.span, "a value is expected")
                            .also(self[id].span, named(&self[id].kind));
                        self.report(error);
                        return None;
                    }
                }
            }
            StepKind::Malformed | StepKind::Unary(_) | StepKind::Binary(_) => return None,
        };
        if !self.suits(&value, target) {
            self.wrong_kind(step, &value, target, definition);
            return None;
        }
        if let (ConstValue::Integer(number), Some(width)) = (&value, width(target))
            && !width.range().contains(number)
        {
            let bits = width.bits();
            let error = Diagnostic::error(format!("{number} is too large here"))
                .at(step.span, "")
                .note(format!("the type that is expected makes this a computation in {bits} bits"));
            self.report(error);
            return None;
        }
        Some(value)
    }

    fn pay_for_text(&mut self, value: &ConstValue, span: Span) -> Option<()> {
        let ConstValue::String(text) = value else {
            return Some(());
        };
        match self.text_budget.checked_sub(text.len()) {
            Some(rest) => self.text_budget = rest,
            None => {
                let error =
                    Diagnostic::error("string constants repeat too much text").at(span, "here the limit is passed");
                self.report(error);
                return None;
            }
        }
        Some(())
    }

    fn suits(&self, value: &ConstValue, target: Target) -> bool {
        match (value, target) {
            (ConstValue::Integer(_), Target::Integer { .. })
            | (ConstValue::Float(_), Target::Float { .. })
            | (ConstValue::Boolean(_), Target::Boolean)
            | (ConstValue::Char(_), Target::Char)
            | (ConstValue::String(_), Target::String { .. }) => true,
            (ConstValue::Enumerator(id), Target::Enum(of)) => {
                matches!(&self[*id].kind, DefinitionKind::Enumerator(it) if it.of == of)
            }
            _ => false,
        }
    }

    fn wrong_kind(&mut self, step: &Step, value: &ConstValue, target: Target, definition: Option<DefId>) {
        let expected = match target {
            Target::Integer { .. } => "an integer".to_owned(),
            Target::Float { .. } => "a floating-point number".to_owned(),
            Target::Boolean => "`TRUE` or `FALSE`".to_owned(),
            Target::Char => "a character".to_owned(),
            Target::String { .. } => "a string".to_owned(),
            Target::Enum(of) => format!("an enumerator of `{}`", self[of].name),
        };
        let found = arithmetic::kind_name(value);
        let mut error =
            Diagnostic::error(format!("expected {expected}, found {found}")).at(step.span, format!("this is {found}"));
        if let Some(definition) = definition {
            error = error.also(self[definition].span, "defined here");
        }
        match (&step.kind, target) {
            (StepKind::Integer(value), Target::Float { .. }) => {
                error = error.help(format!("write `{value}.0`"));
            }
            (StepKind::Integer(value @ (0 | 1)), Target::Boolean) => {
                let word = if *value == 1 { "TRUE" } else { "FALSE" };
                error = error.help(format!("write `{word}`"));
            }
            _ => {}
        }
        self.report(error);
    }
}

fn width(target: Target) -> Option<Width> {
    match target {
        Target::Integer { width, .. } => Some(width),
        _ => None,
    }
}

/// The range of an integer type; `None` for other types.
fn integer(primitive: Primitive) -> Option<Target> {
    let (least, most, width) = match primitive {
        Primitive::Octet => (0, i128::from(u8::MAX), Width::W32),
        Primitive::Short => (i128::from(i16::MIN), i128::from(i16::MAX), Width::W32),
        Primitive::UnsignedShort => (0, i128::from(u16::MAX), Width::W32),
        Primitive::Long => (i128::from(i32::MIN), i128::from(i32::MAX), Width::W32),
        Primitive::UnsignedLong => (0, i128::from(u32::MAX), Width::W32),
        Primitive::LongLong => (i128::from(i64::MIN), i128::from(i64::MAX), Width::W64),
        Primitive::UnsignedLongLong => (0, i128::from(u64::MAX), Width::W64),
        _ => return None,
    };
    let name = primitive.keyword();
    Some(Target::Integer { name, least, most, width })
}
