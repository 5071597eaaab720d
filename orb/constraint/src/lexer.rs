//! The words of a text (B.3).

use crate::component::{Scan, is_letter};
use crate::error::ConstraintError;
use crate::expression::Comparison;
use crate::limits::Limit;

/// The most characters of a text in an error.
const SHOWN: usize = 40;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(String),
    Integer(i128),
    Floating(f64),
    Text(String),
    True,
    False,
    And,
    Or,
    Not,
    Exist,
    In,
    /// `default`, in the extended language alone.
    Default,
    /// The name of a component of an event, with its `$`.
    Component(String),
    Tilde,
    Plus,
    Minus,
    Star,
    Slash,
    Compare(Comparison),
    Open,
    Close,
    End,
}

/// The languages, which differ in their operands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Dialect {
    /// That of the trading service: names are those of properties.
    Trading,
    /// That of the notification service: `$` begins the name of a component, of at most this many parts.
    Extended { parts: usize },
}

/// Divides a text into tokens.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    dialect: Dialect,
    /// The position behind the last token.
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, dialect: Dialect) -> Self {
        Self { text, dialect, at: 0 }
    }

    pub(crate) fn is_extended(&self) -> bool {
        self.dialect != Dialect::Trading
    }

    /// The next token, and its position.
    pub(crate) fn next(&mut self) -> Result<(Token, usize), ConstraintError> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_space).len();
        let at = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok((Token::End, at)) };
        let token = match first {
            '\'' => self.text_literal()?,
            '.' | '0'..='9' => self.number()?,
            '$' if self.is_extended() => self.component()?,
            '\\' if self.is_extended() => {
                self.take("\\");
                match self.rest().starts_with(is_letter) {
                    true => Token::Name(self.identifier().to_owned()),
                    false => return Err(self.syntax(at, "a name behind the backslash")),
                }
            }
            _ if is_letter(first) => self.word(),
            _ => self.operator().ok_or_else(|| self.syntax(at, "an operator or an operand"))?,
        };
        Ok((token, at))
    }

    /// The error of a token that does not stand at a place of the grammar.
    pub(crate) fn syntax(&self, at: usize, expected: &'static str) -> ConstraintError {
        let shown: String = self.text[at..].chars().take(SHOWN).collect();
        let token = if shown.is_empty() { "the end of the text".to_owned() } else { format!("{shown:?}") };
        ConstraintError::Syntax { at, expected, token }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Takes the longest beginning of these characters.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let word = &rest[..rest.find(|character| !belongs(character)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn take(&mut self, symbol: &str) -> bool {
        let is_next = self.rest().starts_with(symbol);
        self.at += if is_next { symbol.len() } else { 0 };
        is_next
    }

    fn operator(&mut self) -> Option<Token> {
        // The longer ones first.
        let operators = [
            ("==", Token::Compare(Comparison::Equal)),
            ("!=", Token::Compare(Comparison::NotEqual)),
            ("<=", Token::Compare(Comparison::LessOrEqual)),
            (">=", Token::Compare(Comparison::GreaterOrEqual)),
            ("<", Token::Compare(Comparison::Less)),
            (">", Token::Compare(Comparison::Greater)),
            ("~", Token::Tilde),
            ("+", Token::Plus),
            ("-", Token::Minus),
            ("*", Token::Star),
            ("/", Token::Slash),
            ("(", Token::Open),
            (")", Token::Close),
        ];
        operators.into_iter().find(|(symbol, _)| self.take(symbol)).map(|(_, token)| token)
    }

    fn identifier(&mut self) -> &'t str {
        self.take_while(|character| is_letter(character) || character.is_ascii_digit() || character == '_')
    }

    /// The name of a component, as the text has it.
    fn component(&mut self) -> Result<Token, ConstraintError> {
        let start = self.at;
        self.take("$");
        let bound = match self.dialect {
            Dialect::Trading => 0,
            Dialect::Extended { parts } => parts,
        };
        let mut scan = Scan { rest: self.rest(), is_first: true };
        for nth in 0.. {
            let part = scan.part();
            self.at = self.text.len() - scan.rest.len();
            match part {
                Ok(None) => break,
                Ok(Some(_)) if nth == bound => return Err(Limit::Parts(bound).into()),
                Ok(Some(_)) => {}
                Err(expected) => return Err(self.syntax(self.at, expected)),
            }
        }
        Ok(Token::Component(self.text[start..self.at].to_owned()))
    }

    fn word(&mut self) -> Token {
        match self.identifier() {
            "default" if self.is_extended() => Token::Default,
            "and" => Token::And,
            "or" => Token::Or,
            "not" => Token::Not,
            "exist" => Token::Exist,
            "in" => Token::In,
            "TRUE" => Token::True,
            "FALSE" => Token::False,
            name => Token::Name(name.to_owned()),
        }
    }

    /// `digits`, `digits.`, `.digits` or `digits.digits`, and an exponent or none.
    fn number(&mut self) -> Result<Token, ConstraintError> {
        let start = self.at;
        let whole = self.take_while(|character| character.is_ascii_digit());
        let has_point = self.take(".");
        let fraction = if has_point { self.take_while(|character| character.is_ascii_digit()) } else { "" };
        if whole.is_empty() && fraction.is_empty() {
            return Err(self.syntax(start, "a number"));
        }
        let has_exponent = self.take("e") || self.take("E");
        if has_exponent {
            let _ = self.take("+") || self.take("-");
            if self.take_while(|character| character.is_ascii_digit()).is_empty() {
                return Err(self.syntax(self.at, "the digits of an exponent"));
            }
        }
        let text = &self.text[start..self.at];
        // An integer beyond all integer types is a double.
        if !has_point
            && !has_exponent
            && let Ok(integer) = text.parse::<u64>()
        {
            return Ok(Token::Integer(integer.into()));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Floating(number)),
            _ => Err(ConstraintError::Number { at: start }),
        }
    }

    fn text_literal(&mut self) -> Result<Token, ConstraintError> {
        let mut text = String::new();
        self.take("'");
        loop {
            text.push_str(self.take_while(|character| character != '\'' && character != '\\'));
            if self.take("'") {
                return Ok(Token::Text(text));
            }
            let at = self.at;
            if self.take("\\'") {
                text.push('\'');
            } else if self.take("\\\\") {
                text.push('\\');
            } else if self.rest().is_empty() {
                return Err(self.syntax(at, "the closing quote of a string"));
            } else {
                return Err(self.syntax(at, "\\' or \\\\"));
            }
        }
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}
