//! Constant expressions (IDL 4.2, 7.4.1.4.3).

use super::{Parsed, Parser};
use crate::ast::{Binary, Expression, Step, StepKind, Unary};
use crate::diagnostic::Diagnostic;
use crate::intern::Keyword;
use crate::literal;
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        let start = self.here();
        let mut steps = Vec::new();
        self.binary(0, &mut steps)?;
        let last = self.next.checked_sub(1).and_then(|it| self.tokens.get(it));
        let span = last.map_or(start, |last| start.to(last.span));
        Ok(Expression { steps, span })
    }

    /// An expression before a closing `>`.
    pub(super) fn bound(&mut self) -> Parsed<Expression> {
        let in_angles = std::mem::replace(&mut self.in_angles, true);
        let bound = self.expression();
        self.in_angles = in_angles;
        bound
    }

    /// Operators with at least the precedence `least`; see [`operator`].
    fn binary(&mut self, least: u8, steps: &mut Vec<Step>) -> Parsed<()> {
        self.unary(steps)?;
        while let Some(token) = self.peek() {
            let TokenKind::Punct(punct) = token.kind else {
                break;
            };
            let Some((precedence, binary)) = operator(punct).filter(|it| it.0 >= least) else {
                break;
            };
            if punct == Punct::ShiftRight && self.in_angles {
                break;
            }
            self.bump();
            self.binary(precedence + 1, steps)?;
            steps.push(Step { kind: StepKind::Binary(binary), span: token.span });
        }
        Ok(())
    }

    fn unary(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        let mut operators = Vec::new();
        loop {
            let operator = match self.peek().map(|token| token.kind) {
                Some(TokenKind::Punct(Punct::Plus)) => Unary::Plus,
                Some(TokenKind::Punct(Punct::Minus)) => Unary::Minus,
                Some(TokenKind::Punct(Punct::Tilde)) => Unary::Complement,
                _ => break,
            };
            operators.push((operator, self.here()));
            self.bump();
        }
        self.primary(steps)?;
        let operators = operators.into_iter().rev();
        steps.extend(operators.map(|(operator, span)| Step { kind: StepKind::Unary(operator), span }));
        Ok(())
    }

    fn primary(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        if self.accept(Punct::OpenParen).is_some() {
            let in_angles = std::mem::replace(&mut self.in_angles, false);
            let inner = self.nested(|parser| parser.binary(0, steps));
            self.in_angles = in_angles;
            inner?;
            self.expect(Punct::CloseParen, "an expression")?;
            return Ok(());
        }
        let step = self.operand()?;
        steps.push(step);
        Ok(())
    }

    fn operand(&mut self) -> Parsed<Step> {
        let span = self.here();
        if let Some(keyword @ (Keyword::True | Keyword::False)) = self.keyword() {
            self.bump();
            let kind = StepKind::Boolean(keyword == Keyword::True);
            return Ok(Step { kind, span });
        }
        if self.at_scoped_name() {
            let name = self.scoped_name("a value")?;
            let span = name.span;
            let kind = StepKind::Name(name);
            return Ok(Step { kind, span });
        }
        let Some(token) = self.peek() else {
            return Err(self.unexpected("a value"));
        };
        let kind = match token.kind {
            TokenKind::Number => self.number(token),
            TokenKind::Char => {
                let text = self.interner.text(token.symbol);
                self.literal(literal::character(&text).map(StepKind::Char), span)
            }
            TokenKind::WideChar => {
                let text = self.interner.text(token.symbol);
                self.literal(literal::wide_character(&text).map(StepKind::WideChar), span)
            }
            TokenKind::String | TokenKind::WideString => return Ok(self.string_literal(token.kind)),
            TokenKind::Unterminated => {
                let error = Diagnostic::error("a literal is not closed on its line").at(span, "");
                self.report(error);
                StepKind::Malformed
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.bump();
        Ok(Step { kind, span })
    }

    fn number(&mut self, token: Token) -> StepKind {
        let text = self.interner.text(token.symbol);
        let value = if literal::is_fixed(&text) {
            literal::fixed(&text).map(StepKind::Fixed)
        } else if literal::is_float(&text) {
            literal::float(&text).map(StepKind::Float)
        } else {
            literal::integer(&text).map(StepKind::Integer)
        };
        self.literal(value, token.span)
    }

    /// Concatenates adjacent string literals of one kind, wide or not.
    pub(super) fn string_literal(&mut self, sort: TokenKind) -> Step {
        let start = self.here();
        let mut end = start;
        let mut whole = Some(String::new());
        while let Some(token) = self.peek().filter(|it| it.kind == sort) {
            end = token.span;
            let text = self.interner.text(token.symbol);
            let part = match sort {
                TokenKind::WideString => literal::wide_string(&text),
                _ => literal::string(&text),
            };
            match part {
                Ok(part) => whole = whole.map(|whole| whole + &part),
                Err(problem) => {
                    self.report(Diagnostic::error(problem).at(token.span, ""));
                    whole = None;
                }
            }
            self.bump();
        }
        let kind = match (whole, sort) {
            (None, _) => StepKind::Malformed,
            (Some(text), TokenKind::WideString) => StepKind::WideString(text),
            (Some(text), _) => StepKind::String(text),
        };
        Step { kind, span: start.to(end) }
    }

    fn literal(&mut self, value: Result<StepKind, String>, span: Span) -> StepKind {
        value.unwrap_or_else(|problem| {
            self.report(Diagnostic::error(problem).at(span, ""));
            StepKind::Malformed
        })
    }
}

/// The precedence of an operator, and the operator.
fn operator(punct: Punct) -> Option<(u8, Binary)> {
    let operator = match punct {
        Punct::Or => (0, Binary::Or),
        Punct::Caret => (1, Binary::Xor),
        Punct::And => (2, Binary::And),
        Punct::ShiftLeft => (3, Binary::ShiftLeft),
        Punct::ShiftRight => (3, Binary::ShiftRight),
        Punct::Plus => (4, Binary::Add),
        Punct::Minus => (4, Binary::Subtract),
        Punct::Star => (5, Binary::Multiply),
        Punct::Slash => (5, Binary::Divide),
        Punct::Percent => (5, Binary::Remainder),
        _ => return None,
    };
    Some(operator)
}
