//! The parser: a method for each rule of the grammar.

use std::mem;

use crate::error::ConstraintError;
use crate::expression::{Expression, ProductOperator, SumOperator};
use crate::lexer::{Dialect, Lexer, Token};
use crate::limits::{Limit, Limits};
use crate::value::Value;

/// A text with its next token.
#[derive(Debug)]
pub(crate) struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token,
    /// The position of the token.
    at: usize,
    /// The parentheses that are open.
    open: usize,
    nesting: usize,
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str, limits: &Limits, dialect: Dialect) -> Result<Self, ConstraintError> {
        if text.len() > limits.length {
            return Err(Limit::Length(limits.length).into());
        }
        let mut lexer = Lexer::new(text, dialect);
        let (token, at) = lexer.next()?;
        Ok(Self { lexer, token, at, open: 0, nesting: limits.nesting })
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.token == Token::End
    }

    /// Takes the next token if it is this name: a word of the preference language.
    pub(crate) fn take_word(&mut self, word: &str) -> Result<bool, ConstraintError> {
        let is_next = matches!(&self.token, Token::Name(name) if name == word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// The error of the next token.
    pub(crate) fn unexpected(&self, expected: &'static str) -> ConstraintError {
        self.lexer.syntax(self.at, expected)
    }

    /// The expression up to the end of the text.
    pub(crate) fn whole_expression(&mut self) -> Result<Expression, ConstraintError> {
        let expression = self.or()?;
        if self.is_at_end() { Ok(expression) } else { Err(self.unexpected("an operator or the end of the text")) }
    }

    fn advance(&mut self) -> Result<Token, ConstraintError> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(mem::replace(&mut self.token, token))
    }

    fn take(&mut self, token: &Token) -> Result<bool, ConstraintError> {
        let is_next = self.token == *token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn or(&mut self) -> Result<Expression, ConstraintError> {
        let first = self.and()?;
        self.list(first, &Token::Or, Self::and, Expression::Or)
    }

    fn and(&mut self) -> Result<Expression, ConstraintError> {
        let first = self.comparison()?;
        self.list(first, &Token::And, Self::comparison, Expression::And)
    }

    fn list(
        &mut self,
        first: Expression,
        separator: &Token,
        operand: fn(&mut Self) -> Result<Expression, ConstraintError>,
        list: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, ConstraintError> {
        if self.token != *separator {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take(separator)? {
            operands.push(operand(self)?);
        }
        Ok(list(operands))
    }

    fn comparison(&mut self) -> Result<Expression, ConstraintError> {
        let left = self.membership()?;
        let Token::Compare(comparison) = self.token else { return Ok(left) };
        self.advance()?;
        let right = self.membership()?;
        Ok(Expression::Compare { comparison, left: Box::new(left), right: Box::new(right) })
    }

    fn membership(&mut self) -> Result<Expression, ConstraintError> {
        let element = self.substring()?;
        if !self.take(&Token::In)? {
            return Ok(element);
        }
        Ok(Expression::In { element: Box::new(element), sequence: self.name()? })
    }

    fn substring(&mut self) -> Result<Expression, ConstraintError> {
        let part = self.sum()?;
        if !self.take(&Token::Tilde)? {
            return Ok(part);
        }
        let whole = self.sum()?;
        Ok(Expression::Substring { part: Box::new(part), whole: Box::new(whole) })
    }

    fn sum(&mut self) -> Result<Expression, ConstraintError> {
        let first = self.product()?;
        let mut rest = Vec::new();
        loop {
            let operator = match self.token {
                Token::Plus => SumOperator::Add,
                Token::Minus => SumOperator::Subtract,
                _ if rest.is_empty() => return Ok(first),
                _ => return Ok(Expression::Sum { first: Box::new(first), rest }),
            };
            self.advance()?;
            rest.push((operator, self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, ConstraintError> {
        let first = self.negation()?;
        let mut rest = Vec::new();
        loop {
            let operator = match self.token {
                Token::Star => ProductOperator::Multiply,
                Token::Slash => ProductOperator::Divide,
                _ if rest.is_empty() => return Ok(first),
                _ => return Ok(Expression::Product { first: Box::new(first), rest }),
            };
            self.advance()?;
            rest.push((operator, self.negation()?));
        }
    }

    fn negation(&mut self) -> Result<Expression, ConstraintError> {
        if self.take(&Token::Not)? { Ok(Expression::Not(Box::new(self.factor()?))) } else { self.factor() }
    }

    fn factor(&mut self) -> Result<Expression, ConstraintError> {
        let value = match &mut self.token {
            Token::Open => return self.parentheses(),
            Token::Exist => {
                self.advance()?;
                return self.name().map(Expression::Exist);
            }
            Token::Default => {
                self.advance()?;
                return self.name().map(Expression::Default);
            }
            // The name of an enumerator has the value of a text.
            Token::Name(name) if self.lexer.is_extended() => Value::Text(mem::take(name).into()),
            Token::Name(_) | Token::Component(_) => return self.name().map(Expression::Property),
            Token::Plus => {
                self.advance()?;
                return self.signed_number(false);
            }
            Token::Minus => {
                self.advance()?;
                return self.signed_number(true);
            }
            Token::Integer(number) => Value::Integer(*number),
            Token::Floating(number) => Value::Floating(*number),
            Token::Text(text) => Value::Text(mem::take(text).into()),
            Token::True => Value::Boolean(true),
            Token::False => Value::Boolean(false),
            _ => return Err(self.unexpected("an operand")),
        };
        self.advance()?;
        Ok(Expression::Literal(value))
    }

    fn parentheses(&mut self) -> Result<Expression, ConstraintError> {
        if self.open >= self.nesting {
            return Err(Limit::Nesting(self.nesting).into());
        }
        self.open += 1;
        self.advance()?;
        let expression = self.or()?;
        self.open -= 1;
        if self.take(&Token::Close)? { Ok(expression) } else { Err(self.unexpected("an operator or `)`")) }
    }

    fn signed_number(&mut self, is_negative: bool) -> Result<Expression, ConstraintError> {
        let value = match self.token {
            Token::Component(_) => return self.signed_component(is_negative),
            Token::Integer(number) => Value::Integer(if is_negative { -number } else { number }),
            Token::Floating(number) => Value::Floating(if is_negative { -number } else { number }),
            _ => return Err(self.unexpected("a number")),
        };
        self.advance()?;
        Ok(Expression::Literal(value))
    }

    /// The component behind a sign: subtracted from zero if it is negative.
    fn signed_component(&mut self, is_negative: bool) -> Result<Expression, ConstraintError> {
        let component = self.name().map(Expression::Property)?;
        if !is_negative {
            return Ok(component);
        }
        let first = Box::new(Expression::Literal(Value::Integer(0)));
        Ok(Expression::Sum { first, rest: vec![(SumOperator::Subtract, component)] })
    }

    /// The name of a property, or of a component in the extended language.
    fn name(&mut self) -> Result<String, ConstraintError> {
        match (&self.token, self.lexer.is_extended()) {
            (Token::Component(_), true) | (Token::Name(_), false) => {}
            (_, true) => return Err(self.unexpected("the name of a component")),
            (_, false) => return Err(self.unexpected("the name of a property")),
        }
        match self.advance()? {
            Token::Name(name) | Token::Component(name) => Ok(name),
            _ => unreachable!("it was a name"),
        }
    }
}
