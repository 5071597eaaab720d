//! The scanner of a value's text, and its errors.

/// The reason for which a text is not a value of the type.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("{message}, at character {}", .at + 1)]
pub struct TextError {
    /// The reason, without the position.
    pub message: String,
    /// The octet of the text at which the error was found, from 0.
    pub at: usize,
}
spandrel_error::debug_as_report!(TextError);

/// The text and the current position.
#[derive(Debug)]
pub(super) struct Scanner<'t> {
    text: &'t str,
    pub(super) at: usize,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character that is not blank.
    pub(super) fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    /// Consumes this character, if it comes next.
    pub(super) fn eat(&mut self, expected: char) -> bool {
        let is_there = self.peek() == Some(expected);
        if is_there {
            self.at += expected.len_utf8();
        }
        is_there
    }

    pub(super) fn expect(&mut self, expected: char) -> Result<(), TextError> {
        if self.eat(expected) { Ok(()) } else { Err(self.error_here(format!("expected `{expected}`"))) }
    }

    /// The text up to the next delimiter or blank: a number, a name, a URL, a part of a type. Delimiters inside
    /// `<…>` belong to it, and so do dimensions such as `[3]` directly after it.
    pub(super) fn word(&mut self) -> Result<&'t str, TextError> {
        self.peek();
        let rest = self.rest();
        let mut open = 0_usize;
        let is_end = |c: char| {
            match c {
                '<' => open += 1,
                '>' => open = open.saturating_sub(1),
                _ => {}
            }
            open == 0 && (c.is_whitespace() || matches!(c, ',' | '{' | '}' | '[' | ']' | '"'))
        };
        let mut end = rest.find(is_end).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error_here("expected a value"));
        }
        while let Some(dimension) = dimension(&rest[end..]) {
            end += dimension;
        }
        self.at += end;
        Ok(&rest[..end])
    }

    /// Consumes `..`, if it comes next.
    pub(super) fn eat_rest(&mut self) -> bool {
        self.peek();
        let is_there = self.rest().starts_with("..");
        if is_there {
            self.at += 2;
        }
        is_there
    }

    /// The text between two positions, without blanks around it.
    pub(super) fn between(&self, start: usize, end: usize) -> &'t str {
        self.text[start..end].trim()
    }

    /// A name, and the colon after it.
    pub(super) fn key(&mut self) -> Result<String, TextError> {
        let key = if self.peek() == Some('"') {
            self.string()?
        } else {
            let rest = self.rest();
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            self.at += end;
            rest[..end].to_owned()
        };
        if key.is_empty() {
            return Err(self.error_here("expected a member's name"));
        }
        self.expect(':')?;
        Ok(key)
    }

    /// Text in quotes, as in JSON.
    pub(super) fn string(&mut self) -> Result<String, TextError> {
        self.expect('"')?;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(next) = rest.chars().next() else { return Err(self.error_here("the text has no closing quote")) };
            self.at += next.len_utf8();
            match next {
                '"' => return Ok(text),
                '\\' => text.push(self.escaped()?),
                other => text.push(other),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, TextError> {
        let next = self.rest().chars().next();
        self.at += next.map_or(0, char::len_utf8);
        match next {
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('u') => self.code_point(),
            Some(other @ ('"' | '\\' | '/' | '\'')) => Ok(other),
            _ => Err(self.error_here("unknown escape sequence")),
        }
    }

    fn code_point(&mut self) -> Result<char, TextError> {
        let high = self.code_unit()?;
        let is_surrogate = (0xd800..0xdc00).contains(&high);
        if !is_surrogate {
            return char::from_u32(high).ok_or_else(|| self.error_here("the code point is not a character"));
        }
        let low = if self.rest().starts_with("\\u") {
            self.at += 2;
            self.code_unit()?
        } else {
            0
        };
        let units = [high, low].map(|unit| u16::try_from(unit).unwrap_or(0));
        let mut characters = char::decode_utf16(units);
        characters.next().and_then(Result::ok).ok_or_else(|| self.error_here("the surrogate has no partner"))
    }

    fn code_unit(&mut self) -> Result<u32, TextError> {
        let digits = self.rest().get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let unit = digits.ok_or_else(|| self.error_here("expected four hexadecimal digits"))?;
        self.at += 4;
        Ok(unit)
    }

    pub(super) fn end(&mut self) -> Result<(), TextError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error_here("unexpected text after the value")),
        }
    }

    pub(super) fn error_here(&self, message: impl Into<String>) -> TextError {
        TextError { message: message.into(), at: self.at }
    }
}

/// The length of `[3]` at the start of a text.
fn dimension(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?;
    let digits = inside.find(|c: char| !c.is_ascii_digit())?;
    (digits > 0 && inside[digits..].starts_with(']')).then_some(digits + 2)
}
