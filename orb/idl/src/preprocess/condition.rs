//! The expressions of `#if` and `#elif`: integers of 64 bits, with the conversions of C. An operand that C does not
//! evaluate causes no error.

use crate::diagnostic::Diagnostic;
use crate::intern::Interner;
use crate::literal;
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};

/// Maximum nesting of parentheses and `?:`.
const DEEPEST: usize = 64;

/// Evaluates a condition after replacement of `defined` and macros. Remaining identifiers are 0.
pub(super) fn evaluate(line: &[Token], span: Span, interner: &Interner) -> Result<bool, Box<Diagnostic>> {
    let mut condition = Condition { rest: line, span, depth: 0, is_evaluated: true, interner };
    let value = condition.ternary()?;
    match condition.rest.first() {
        None => Ok(value.is_true()),
        Some(token) => Err(condition.unexpected(Some(token))),
    }
}

struct Condition<'t> {
    rest: &'t [Token],
    span: Span,
    depth: usize,
    is_evaluated: bool,
    interner: &'t Interner,
}

type Value = Result<Integer, Box<Diagnostic>>;

/// An integer of one of the two types that C's preprocessor has.
#[derive(Clone, Copy)]
struct Integer {
    bits: u64,
    is_unsigned: bool,
}

impl Integer {
    fn signed(value: i64) -> Self {
        Self { bits: value as u64, is_unsigned: false }
    }

    fn is_true(self) -> bool {
        self.bits != 0
    }
}

impl From<bool> for Integer {
    fn from(value: bool) -> Self {
        Self::signed(value.into())
    }
}

impl Condition<'_> {
    fn next(&mut self) -> Option<Token> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn accept(&mut self, punct: Punct) -> bool {
        let is_present = self.rest.first().is_some_and(|it| it.kind == TokenKind::Punct(punct));
        if is_present {
            self.rest = &self.rest[1..];
        }
        is_present
    }

    fn error(&self, span: Span, message: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(message).at(span, "in this condition"))
    }

    fn unexpected(&self, token: Option<&Token>) -> Box<Diagnostic> {
        match token {
            Some(token) => {
                let text = self.interner.text(token.symbol);
                self.error(token.span, &format!("`{text}` is not expected here"))
            }
            None => self.error(self.span, "the condition ends too early"),
        }
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Box<Diagnostic>>) -> Result<T, Box<Diagnostic>> {
        if self.depth == DEEPEST {
            return Err(self.error(self.span, "the condition is nested too deep"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Reads an operand; unless it is evaluated, it causes no error of arithmetic.
    fn evaluated(&mut self, is_evaluated: bool, operand: impl FnOnce(&mut Self) -> Value) -> Value {
        let around = self.is_evaluated;
        self.is_evaluated &= is_evaluated;
        let value = operand(self);
        self.is_evaluated = around;
        value
    }

    fn ternary(&mut self) -> Value {
        let condition = self.binary(0)?;
        if !self.accept(Punct::Question) {
            return Ok(condition);
        }
        let yes = self.evaluated(condition.is_true(), |inner| inner.nested(Self::ternary))?;
        if !self.accept(Punct::Colon) {
            let next = self.rest.first().copied();
            return Err(self.unexpected(next.as_ref()));
        }
        let no = self.evaluated(!condition.is_true(), |inner| inner.nested(Self::ternary))?;
        let chosen = if condition.is_true() { yes } else { no };
        Ok(Integer { is_unsigned: yes.is_unsigned || no.is_unsigned, ..chosen })
    }

    /// Operators with at least the precedence `least`; see [`precedence`].
    fn binary(&mut self, least: u8) -> Value {
        let mut left = self.unary()?;
        while let Some(&token) = self.rest.first() {
            let TokenKind::Punct(operator) = token.kind else {
                break;
            };
            let Some(precedence) = precedence(operator).filter(|it| *it >= least) else {
                break;
            };
            self.next();
            let decides = match operator {
                Punct::OrOr => left.is_true(),
                Punct::AndAnd => !left.is_true(),
                _ => false,
            };
            let right = self.evaluated(!decides, |inner| inner.nested(|inner| inner.binary(precedence + 1)))?;
            left = match apply(operator, left, right) {
                Some(value) => value,
                None if !self.is_evaluated => Integer::signed(0),
                None => return Err(self.error(token.span, "division by zero or overflow")),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Value {
        let mut operators = Vec::new();
        while let Some(Token { kind: TokenKind::Punct(operator), .. }) = self.rest.first() {
            match operator {
                Punct::Plus | Punct::Minus | Punct::Tilde | Punct::Not => operators.push(*operator),
                _ => break,
            }
            self.next();
        }
        let mut value = self.primary()?;
        for operator in operators.into_iter().rev() {
            value = match operator {
                Punct::Minus => Integer { bits: value.bits.wrapping_neg(), ..value },
                Punct::Tilde => Integer { bits: !value.bits, ..value },
                Punct::Not => Integer::from(!value.is_true()),
                _ => value,
            };
        }
        Ok(value)
    }

    fn primary(&mut self) -> Value {
        let Some(token) = self.next() else {
            return Err(self.unexpected(None));
        };
        match token.kind {
            TokenKind::Identifier => Ok(Integer::signed(0)),
            TokenKind::Number => {
                let text = self.interner.text(token.symbol);
                let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
                let bits = literal::integer(digits).ok().and_then(|value| u64::try_from(value).ok());
                match bits {
                    Some(bits) => {
                        let is_unsigned = text[digits.len()..].contains(['u', 'U']) || i64::try_from(bits).is_err();
                        Ok(Integer { bits, is_unsigned })
                    }
                    None => Err(self.error(token.span, &format!("`{text}` is not an integer"))),
                }
            }
            TokenKind::Char => match literal::character(&self.interner.text(token.symbol)) {
                Ok(value) => Ok(Integer::signed(u32::from(value).into())),
                Err(problem) => Err(self.error(token.span, &problem)),
            },
            TokenKind::Punct(Punct::OpenParen) => {
                let value = self.nested(Self::ternary)?;
                if !self.accept(Punct::CloseParen) {
                    let next = self.rest.first().copied();
                    return Err(self.unexpected(next.as_ref()));
                }
                Ok(value)
            }
            _ => Err(self.unexpected(Some(&token))),
        }
    }
}

/// The binding strength of a binary operator in `#if`: a greater one binds tighter. `None` for other tokens.
fn precedence(operator: Punct) -> Option<u8> {
    let precedence = match operator {
        Punct::OrOr => 0,
        Punct::AndAnd => 1,
        Punct::Or => 2,
        Punct::Caret => 3,
        Punct::And => 4,
        Punct::EqualEqual | Punct::NotEqual => 5,
        Punct::Less | Punct::Greater | Punct::LessEqual | Punct::GreaterEqual => 6,
        Punct::ShiftLeft | Punct::ShiftRight => 7,
        Punct::Plus | Punct::Minus => 8,
        Punct::Star | Punct::Slash | Punct::Percent => 9,
        _ => return None,
    };
    Some(precedence)
}

fn apply(operator: Punct, left: Integer, right: Integer) -> Option<Integer> {
    let is_unsigned = left.is_unsigned || right.is_unsigned;
    let (one, other) = (left.bits as i64, right.bits as i64);
    let order = if is_unsigned { left.bits.cmp(&right.bits) } else { one.cmp(&other) };
    // A negative number of bits is too large as well.
    let shift = || u32::try_from(right.bits).ok().filter(|bits| *bits < 64);
    let bits = match operator {
        Punct::OrOr => return Some((left.is_true() || right.is_true()).into()),
        Punct::AndAnd => return Some((left.is_true() && right.is_true()).into()),
        Punct::EqualEqual => return Some(order.is_eq().into()),
        Punct::NotEqual => return Some(order.is_ne().into()),
        Punct::Less => return Some(order.is_lt().into()),
        Punct::Greater => return Some(order.is_gt().into()),
        Punct::LessEqual => return Some(order.is_le().into()),
        Punct::GreaterEqual => return Some(order.is_ge().into()),
        Punct::ShiftLeft => return Some(Integer { bits: left.bits << shift()?, ..left }),
        Punct::ShiftRight if left.is_unsigned => return Some(Integer { bits: left.bits >> shift()?, ..left }),
        Punct::ShiftRight => return Some(Integer::signed(one >> shift()?)),
        Punct::Or => left.bits | right.bits,
        Punct::Caret => left.bits ^ right.bits,
        Punct::And => left.bits & right.bits,
        Punct::Plus => left.bits.wrapping_add(right.bits),
        Punct::Minus => left.bits.wrapping_sub(right.bits),
        Punct::Star => left.bits.wrapping_mul(right.bits),
        Punct::Slash if is_unsigned => left.bits.checked_div(right.bits)?,
        Punct::Slash => one.checked_div(other)? as u64,
        Punct::Percent if is_unsigned => left.bits.checked_rem(right.bits)?,
        Punct::Percent => one.checked_rem(other)? as u64,
        _ => return None,
    };
    Some(Integer { bits, is_unsigned })
}
