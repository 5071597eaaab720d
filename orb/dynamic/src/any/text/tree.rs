//! The syntax of a value's text: a tree without types.

use super::scan::{Scanner, TextError};
use crate::any::limits::Nesting;

/// A part of a text.
#[derive(Debug)]
pub(super) struct Node<'t> {
    /// Its position in octets.
    pub(super) at: usize,
    pub(super) form: Form<'t>,
}

#[derive(Debug)]
pub(super) enum Form<'t> {
    /// A number, a name, a URL.
    Word(&'t str),
    /// Text in quotes, with escapes replaced.
    Text(String),
    List(Vec<Node<'t>>),
    Members(Members<'t>),
    /// A type, and a value after it.
    TypedValue(&'t str, Box<Node<'t>>),
}

/// The content of braces.
#[derive(Debug)]
pub(super) struct Members<'t> {
    pub(super) members: Vec<Member<'t>>,
    /// Whether `..` stands for all other members.
    pub(super) has_rest: bool,
    /// The position of the closing brace.
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) struct Member<'t> {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) value: Node<'t>,
}

impl<'t> Members<'t> {
    /// Whether a member has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    /// Removes the members with this name, and returns the value of the only one.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<Node<'t>>, TextError> {
        let mut result = None;
        while let Some(index) = self.members.iter().position(|member| member.name == name) {
            let Member { at, value, .. } = self.members.remove(index);
            if result.replace(value).is_some() {
                return Err(TextError { message: format!("`{name}` occurs twice"), at });
            }
        }
        Ok(result)
    }

    /// Checks that no further members are left.
    pub(super) fn end(&self) -> Result<(), TextError> {
        match self.members.first() {
            Some(Member { at, name, .. }) => Err(TextError { message: format!("unexpected `{name}`"), at: *at }),
            None => Ok(()),
        }
    }
}

/// Parses the whole text.
pub(super) fn parse(text: &str) -> Result<Node<'_>, TextError> {
    let mut parser = Parser { scanner: Scanner::new(text), nesting: Nesting::of_text() };
    let node = parser.node()?;
    parser.scanner.end()?;
    Ok(node)
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    nesting: Nesting,
}

impl<'t> Parser<'t> {
    // A recursive function with a small frame, as those of the reader.
    fn node(&mut self) -> Result<Node<'t>, TextError> {
        let next = self.scanner.peek();
        let at = self.scanner.at;
        self.nesting.enter().map_err(|error| TextError { message: error.to_string(), at })?;
        let form = match next {
            Some('{') => self.members().map(Form::Members),
            Some('[') => self.list().map(Form::List),
            Some('"') => self.scanner.string().map(Form::Text),
            _ => self.words(),
        };
        self.nesting.leave();
        Ok(Node { at, form: form? })
    }

    fn list(&mut self) -> Result<Vec<Node<'t>>, TextError> {
        let mut elements = Vec::new();
        self.scanner.expect('[')?;
        while !self.scanner.eat(']') {
            elements.push(self.node()?);
            self.between(']')?;
        }
        Ok(elements)
    }

    fn members(&mut self) -> Result<Members<'t>, TextError> {
        let (mut members, mut has_rest) = (Vec::new(), false);
        self.scanner.expect('{')?;
        loop {
            let next = self.scanner.peek();
            let at = self.scanner.at;
            if next == Some('}') {
                self.scanner.eat('}');
                return Ok(Members { members, has_rest, end: at });
            }
            if has_rest {
                return Err(self.scanner.error_here("expected `}` after `..`"));
            }
            if self.scanner.eat_rest() {
                has_rest = true;
            } else {
                let name = self.scanner.key()?;
                members.push(Member { at, name, value: self.node()? });
            }
            self.between('}')?;
        }
    }

    /// Parses a comma, unless the end comes next.
    fn between(&mut self, end: char) -> Result<(), TextError> {
        if self.scanner.eat(',') || self.scanner.peek() == Some(end) {
            return Ok(());
        }
        Err(self.scanner.error_here(format!("expected `,` or `{end}`")))
    }

    /// A word; or the words of a type, and a value.
    fn words(&mut self) -> Result<Form<'t>, TextError> {
        let start = self.scanner.at;
        let mut word = self.scanner.word()?;
        loop {
            let end = self.scanner.at;
            match self.scanner.peek() {
                None | Some(',' | '}' | ']' | ':') => return Ok(Form::Word(word)),
                Some('{' | '[' | '"') => {
                    let type_code = self.scanner.between(start, end);
                    return Ok(Form::TypedValue(type_code, Box::new(self.node()?)));
                }
                Some(_) => {}
            }
            let at = self.scanner.at;
            word = self.scanner.word()?;
            if matches!(self.scanner.peek(), None | Some(',' | '}' | ']' | ':')) {
                let value = Node { at, form: Form::Word(word) };
                return Ok(Form::TypedValue(self.scanner.between(start, end), Box::new(value)));
            }
        }
    }
}
