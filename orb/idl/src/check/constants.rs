//! Constants: the expected type determines the arithmetic of an expression (IDL 4.2, 7.4.1.4.3).

use super::arithmetic;
use super::arithmetic::Width;
use super::checker::Checker;
use super::decimal;
use super::names::named;
use super::types::Place;
use crate::ast::{Expression, NewName, Step, StepKind, TypeKind, TypeSpec, Unary};
use crate::diagnostic::Diagnostic;
use crate::model::{Const, ConstValue, DefId, DefinitionKind, FixedValue, Primitive, Type};
use crate::source::Span;

/// The kind of constant that is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    Integer {
        name: &'static str,
        least: i128,
        most: i128,
        width: Width,
    },
    /// Rounded to `float` if `single`.
    Float {
        single: bool,
    },
    Boolean,
    Char,
    String {
        bound: Option<u32>,
    },
    WideChar,
    WideString {
        bound: Option<u32>,
    },
    /// Digits and scale, or `None` if the value determines them.
    Fixed {
        size: Option<(u16, u16)>,
    },
    Enum(DefId),
}

impl Target {
    /// Integers from 0 to `most`.
    pub(super) fn natural(most: i128) -> Target {
        Target::Integer { name: "unsigned long", least: 0, most, width: Width::W64 }
    }

    /// Integers of 64 bits with or without sign.
    pub(super) fn any_integer() -> Target {
        let (least, most) = Width::W64.range().into_inner();
        Target::Integer { name: "long long", least, most, width: Width::W64 }
    }
}

impl Checker<'_> {
    pub(super) fn constant(&mut self, spec: &TypeSpec, name: &NewName, value: &Expression) {
        let checked = match spec.kind {
            TypeKind::Fixed(None) => self.fixed_constant(value),
            _ => self.type_of(spec, Place::Element).and_then(|ty| {
                let target = self.target(&ty);
                if target.is_none() {
                    let error = Diagnostic::error("a constant cannot have this type")
                        .at(spec.span, "")
                        .note("constants are numbers, characters, strings, booleans, octets or enumerators");
                    self.report(error);
                }
                let value = self.evaluate(value, target?)?;
                Some(Const { ty, value })
            }),
        };
        match checked {
            Some(constant) => {
                self.define(name, DefinitionKind::Const(constant));
            }
            None => {
                self.broken(name);
            }
        }
    }

    /// A constant of type `fixed`: the value determines the digits (IDL 4.2, 7.4.1.4.3).
    fn fixed_constant(&mut self, value: &Expression) -> Option<Const> {
        let value = self.evaluate(value, Target::Fixed { size: None })?;
        let ConstValue::Fixed(number) = value else {
            return None;
        };
        let (digits, scale) = decimal::digits_and_scale(number);
        Some(Const { ty: Type::Fixed { digits, scale }, value })
    }

    /// An integer, computed in a wide type so that an error can name a value out of range.
    pub(super) fn natural(&mut self, expression: &Expression) -> Option<i128> {
        match self.evaluate_wide(expression, Target::any_integer())? {
            ConstValue::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// A bound or dimension.
    pub(super) fn positive(&mut self, expression: &Expression) -> Option<u32> {
        let value = self.natural(expression)?;
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

    /// The kind of constant for this type; `None` if constants cannot have this type.
    pub(super) fn target(&self, ty: &Type) -> Option<Target> {
        let mut ty = ty;
        while let Type::Named(id) = ty {
            match &self[*id].kind {
                DefinitionKind::Typedef(typedef) => ty = &typedef.ty,
                DefinitionKind::Enum(_) => return Some(Target::Enum(*id)),
                _ => return None,
            }
        }
        match ty {
            Type::Primitive(Primitive::Float) => Some(Target::Float { single: true }),
            Type::Primitive(Primitive::Double | Primitive::LongDouble) => Some(Target::Float { single: false }),
            Type::Primitive(Primitive::Boolean) => Some(Target::Boolean),
            Type::Primitive(Primitive::Char) => Some(Target::Char),
            Type::Primitive(Primitive::WChar) => Some(Target::WideChar),
            Type::Primitive(primitive) => integer(*primitive),
            Type::String { bound } => Some(Target::String { bound: *bound }),
            Type::WString { bound } => Some(Target::WideString { bound: *bound }),
            Type::Fixed { digits, scale } => Some(Target::Fixed { size: Some((*digits, *scale)) }),
            _ => None,
        }
    }

    /// The value, within the range of its type.
    pub(super) fn evaluate(&mut self, expression: &Expression, target: Target) -> Option<ConstValue> {
        let value = self.evaluate_wide(expression, target)?;
        let problem = match (&value, target) {
            (ConstValue::Integer(value), Target::Integer { name, least, most, .. })
                if !(least..=most).contains(value) =>
            {
                format!("{value} is not within the range of `{name}`, which is {least} to {most}")
            }
            (ConstValue::String(text), Target::String { bound: Some(bound) })
            | (ConstValue::WideString(text), Target::WideString { bound: Some(bound) })
                if text.chars().count() > bound as usize =>
            {
                let length = text.chars().count();
                format!("this string has {length} characters, but its type permits {bound}")
            }
            (ConstValue::Float(value), Target::Float { single: true }) => {
                let single = *value as f32;
                if single.is_finite() {
                    return Some(ConstValue::Float(f64::from(single)));
                }
                "this value is too large for a `float`".to_owned()
            }
            (ConstValue::Fixed(value), Target::Fixed { size: Some(size) }) => {
                match self.fitted(*value, size, expression.span) {
                    Some(value) => return Some(value),
                    None => format!("this value has too many digits for `fixed<{}, {}>`", size.0, size.1),
                }
            }
            _ => return Some(value),
        };
        let mut error = Diagnostic::error(problem).at(expression.span, "");
        if let Target::Integer { width, .. } = target
            && arithmetic::complements(&expression.steps)
        {
            let bits = width.bits();
            error = error.note(format!(
                "`~` of an expression without negation is its unsigned complement in {bits} bits (IDL 4.2, 7.4.1.4.3)"
            ));
        }
        self.report(error);
        None
    }

    /// The value with the scale of its type; excess digits after the point are dropped, as by omniidl.
    fn fitted(&mut self, value: FixedValue, (digits, scale): (u16, u16), span: Span) -> Option<ConstValue> {
        let (value, dropped) = decimal::fitted(value, digits, scale)?;
        if dropped {
            let warning = Diagnostic::warning("digits of this value are dropped")
                .at(span, "")
                .note(format!("its type has {scale} digits after the point"));
            self.report(warning);
        }
        Some(ConstValue::Fixed(value))
    }

    /// The value, which for integers may be outside the range of the type.
    ///
    /// Subexpressions are unsigned "by default", and signed "for negated literals or negative integer
    /// constants". For an expression with both, the standard does not define the rule. Such an expression has
    /// the sign of the expected type: `~` then gives a value of that type.
    fn evaluate_wide(&mut self, expression: &Expression, target: Target) -> Option<ConstValue> {
        let wants_signed = matches!(target, Target::Integer { least, .. } if least < 0);
        // With each value, whether a part of it is negated.
        let mut stack: Vec<(ConstValue, bool)> = Vec::new();
        for step in &expression.steps {
            let (result, is_negated) = match &step.kind {
                StepKind::Unary(operator) => {
                    let (operand, is_negated) = stack.pop()?;
                    let result = arithmetic::unary(*operator, &operand, width(target), is_negated && wants_signed);
                    (result, is_negated || *operator == Unary::Minus)
                }
                StepKind::Binary(operator) => {
                    let ((right, right_negated), (left, left_negated)) = (stack.pop()?, stack.pop()?);
                    (arithmetic::binary(*operator, &left, &right, width(target)), left_negated || right_negated)
                }
                _ => {
                    let operand = self.operand(step, target)?;
                    let is_negative = matches!(operand, ConstValue::Integer(..0));
                    (Ok(operand), is_negative)
                }
            };
            match result {
                Ok(value) => stack.push((value, is_negated)),
                Err(problem) => {
                    self.report(Diagnostic::error(problem).at(step.span, ""));
                    return None;
                }
            }
        }
        stack.pop().map(|(value, _)| value)
    }

    /// A literal or named value, if it is of the kind that the type needs.
    fn operand(&mut self, step: &Step, target: Target) -> Option<ConstValue> {
        let (value, definition) = match &step.kind {
            StepKind::Integer(value) => (ConstValue::Integer(i128::try_from(*value).ok()?), None),
            StepKind::Float(value) => (ConstValue::Float(*value), None),
            StepKind::Boolean(value) => (ConstValue::Boolean(*value), None),
            StepKind::Char(value) => (ConstValue::Char(u32::from(*value) as u8), None),
            StepKind::String(value) => (ConstValue::String(value.clone()), None),
            StepKind::WideChar(value) => (ConstValue::WideChar(*value), None),
            StepKind::WideString(value) => (ConstValue::WideString(value.clone()), None),
            StepKind::Fixed(value) => (ConstValue::Fixed(*value), None),
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
                            .at(step.span, "expected a value")
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
                .note(format!("the expected type requires a computation in {bits} bits"));
            self.report(error);
            return None;
        }
        Some(value)
    }

    fn pay_for_text(&mut self, value: &ConstValue, span: Span) -> Option<()> {
        match value {
            ConstValue::String(text) | ConstValue::WideString(text) => self.pay(text.len(), span),
            _ => Some(()),
        }
    }

    /// Charges copied octets against the budget of the run; reports an excess.
    pub(super) fn pay(&mut self, octets: usize, span: Span) -> Option<()> {
        match self.text_budget.checked_sub(octets) {
            Some(rest) => {
                self.text_budget = rest;
                Some(())
            }
            None => {
                let error = Diagnostic::error("constants or annotations repeat too much text")
                    .at(span, "the limit is exceeded here");
                self.report(error);
                None
            }
        }
    }

    fn suits(&self, value: &ConstValue, target: Target) -> bool {
        match (value, target) {
            (ConstValue::Integer(_), Target::Integer { .. })
            | (ConstValue::Float(_), Target::Float { .. })
            | (ConstValue::Boolean(_), Target::Boolean)
            | (ConstValue::Char(_), Target::Char)
            | (ConstValue::WideChar(_), Target::WideChar)
            | (ConstValue::String(_), Target::String { .. })
            | (ConstValue::WideString(_), Target::WideString { .. })
            | (ConstValue::Fixed(_), Target::Fixed { .. }) => true,
            (ConstValue::Enumerator(id), Target::Enum(enumeration)) => {
                matches!(&self[*id].kind, DefinitionKind::Enumerator(it) if it.of == enumeration)
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
            Target::WideChar => "a wide character".to_owned(),
            Target::WideString { .. } => "a wide string".to_owned(),
            Target::Fixed { .. } => "a fixed-point number".to_owned(),
            Target::Enum(of) => format!("an enumerator of `{}`", self[of].name),
        };
        let kind = arithmetic::kind_name(value);
        let mut error =
            Diagnostic::error(format!("expected {expected}, found {kind}")).at(step.span, format!("this is {kind}"));
        if let Some(definition) = definition {
            error = error.also(self[definition].span, "defined here");
        }
        match (&step.kind, target) {
            (StepKind::Integer(value), Target::Float { .. }) => {
                error = error.help(format!("write `{value}.0`"));
            }
            (StepKind::Integer(value), Target::Fixed { .. }) => {
                error = error.help(format!("write `{value}d`"));
            }
            (StepKind::Char(_), Target::WideChar) | (StepKind::String(_), Target::WideString { .. }) => {
                error = error.help("put an `L` before it");
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
