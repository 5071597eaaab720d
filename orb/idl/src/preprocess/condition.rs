//! The expressions of `#if` and `#elif`.

use crate::diagnostic::Diagnostic;
use crate::intern::Interner;
use crate::literal;
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};

/// Maximum nesting of parentheses and `?:`.
const DEEPEST: usize = 64;

/// Evaluates a condition after replacement of `defined` and macros. Remaining identifiers are 0.
pub(super) fn evaluate(line: &[Token], span: Span, interner: &Interner) -> Result<bool, Box<Diagnostic>> {
    let mut condition = Condition { rest: line, span, depth: 0, interner };
    let value = condition.ternary()?;
    match condition.rest.first() {
        None => Ok(value != 0),
        Some(token) => Err(condition.unexpected(Some(token))),
    }
}

struct Condition<'t> {
    rest: &'t [Token],
    span: Span,
    depth: usize,
    interner: &'t Interner,
}

type Value = Result<i64, Box<Diagnostic>>;

impl Condition<'_> {
    fn next(&mut self) -> Option<Token> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn accept(&mut self, punct: Punct) -> bool {
        let found = self.rest.first().is_some_and(|it| it.kind == TokenKind::Punct(punct));
        if found {
            self.rest = &self.rest[1..];
        }
        found
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

    fn ternary(&mut self) -> Value {
        let condition = self.binary(0)?;
        if !self.accept(Punct::Question) {
            return Ok(condition);
        }
        let yes = self.nested(Self::ternary)?;
        if !self.accept(Punct::Colon) {
            let next = self.rest.first().copied();
            return Err(self.unexpected(next.as_ref()));
        }
        let no = self.nested(Self::ternary)?;
        Ok(if condition != 0 { yes } else { no })
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
            let right = self.nested(|inner| inner.binary(precedence + 1))?;
            left =
                apply(operator, left, right).ok_or_else(|| self.error(token.span, "division by zero or overflow"))?;
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
                Punct::Minus => value.wrapping_neg(),
                Punct::Tilde => !value,
                Punct::Not => i64::from(value == 0),
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
            TokenKind::Identifier => Ok(0),
            TokenKind::Number => {
                let text = self.interner.text(token.symbol);
                let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
                match literal::integer(digits) {
                    Ok(value) if value <= u128::from(u64::MAX) => Ok(value as u64 as i64),
                    _ => Err(self.error(token.span, &format!("`{text}` is not an integer"))),
                }
            }
            TokenKind::Char => match literal::character(&self.interner.text(token.symbol)) {
                Ok(value) => Ok(i64::from(u32::from(value))),
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

/// The precedence of an operator.
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

fn apply(operator: Punct, left: i64, right: i64) -> Option<i64> {
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < 64);
    let value = match operator {
        Punct::OrOr => i64::from(left != 0 || right != 0),
        Punct::AndAnd => i64::from(left != 0 && right != 0),
        Punct::Or => left | right,
        Punct::Caret => left ^ right,
        Punct::And => left & right,
        Punct::EqualEqual => i64::from(left == right),
        Punct::NotEqual => i64::from(left != right),
        Punct::Less => i64::from(left < right),
        Punct::Greater => i64::from(left > right),
        Punct::LessEqual => i64::from(left <= right),
        Punct::GreaterEqual => i64::from(left >= right),
        Punct::ShiftLeft => left << shift()?,
        Punct::ShiftRight => left >> shift()?,
        Punct::Plus => left.wrapping_add(right),
        Punct::Minus => left.wrapping_sub(right),
        Punct::Star => left.wrapping_mul(right),
        Punct::Slash => left.checked_div(right)?,
        Punct::Percent => left.checked_rem(right)?,
        _ => return None,
    };
    Some(value)
}
