//! Names of the components of an event, in the extended language (Notification Service 1.1, 2.4).

/// A step from a value to one of its components.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ComponentPart<'t> {
    /// `$name`: a variable of the run-time, or the property with this name.
    Variable(&'t str),
    /// `.name`: the member of a structure or union.
    Member(&'t str),
    /// `.2`: the member at this position.
    Position(usize),
    /// `[2]`: the element of a sequence or array.
    Element(usize),
    /// `(name)`: the value in a sequence of named values.
    Named(&'t str),
    /// `.(1)`, `.('label')`, `.()`: the member of a union, if its discriminator has this label.
    Case(UnionLabel<'t>),
    /// `._length`: the number of elements.
    Length,
    /// `._d`: the discriminator of a union.
    Discriminator,
    /// `._type_id`: the name of the type, without its scope.
    TypeId,
    /// `._repos_id`: the repository id of the type.
    RepositoryId,
}

/// A label of a union in a component name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnionLabel<'t> {
    /// The default member: `.()`.
    Default,
    /// The number of a label.
    Number(i64),
    /// The name of an enumerator, or a character.
    Text(&'t str),
}

/// The parts of a component name, from the whole event to the component. The name begins with `$`, as
/// [`Properties::value`](crate::Properties::value) receives it; a text that is none has the parts before its error.
pub fn component_parts(name: &str) -> impl Iterator<Item = ComponentPart<'_>> {
    let mut scan = Scan { rest: name.strip_prefix('$').unwrap_or_default(), is_first: true };
    std::iter::from_fn(move || scan.part().ok().flatten())
}

/// The part of a text that has not been read.
pub(crate) struct Scan<'t> {
    pub(crate) rest: &'t str,
    pub(crate) is_first: bool,
}

impl<'t> Scan<'t> {
    /// The next part; `None` behind the last one. The error is the part of the grammar that is expected.
    pub(crate) fn part(&mut self) -> Result<Option<ComponentPart<'t>>, &'static str> {
        let is_first = std::mem::take(&mut self.is_first);
        if is_first && let Some(name) = self.identifier() {
            return Ok(Some(ComponentPart::Variable(name)));
        }
        if self.take('[') {
            let index = self.digits().ok_or("an index")?;
            return self.close(']', "`]`", ComponentPart::Element(index)).map(Some);
        }
        if self.take('(') {
            let name = self.identifier().ok_or("a name")?;
            return self.close(')', "`)`", ComponentPart::Named(name)).map(Some);
        }
        if !self.take('.') {
            return Ok(None);
        }
        if self.take('(') {
            let label = self.label()?;
            return self.close(')', "`)`", ComponentPart::Case(label)).map(Some);
        }
        let special = [
            ("_length", ComponentPart::Length),
            ("_type_id", ComponentPart::TypeId),
            ("_repos_id", ComponentPart::RepositoryId),
            ("_d", ComponentPart::Discriminator),
        ];
        for (name, part) in special {
            if let Some(rest) = self.rest.strip_prefix(name) {
                self.rest = rest;
                return Ok(Some(part));
            }
        }
        if let Some(name) = self.identifier() {
            return Ok(Some(ComponentPart::Member(name)));
        }
        self.digits().map(|position| Some(ComponentPart::Position(position))).ok_or("the name of a member")
    }

    fn label(&mut self) -> Result<UnionLabel<'t>, &'static str> {
        if self.rest.starts_with(')') {
            return Ok(UnionLabel::Default);
        }
        if self.take('\'') {
            let end = self.rest.find(['\'', '\\']).filter(|end| self.rest[*end..].starts_with('\''));
            let (text, rest) = self.rest.split_at(end.ok_or("the closing quote of a label")?);
            self.rest = &rest[1..];
            return Ok(UnionLabel::Text(text));
        }
        let is_negative = self.take('-');
        let _ = !is_negative && self.take('+');
        let number = self.digits().and_then(|number| i64::try_from(number).ok()).ok_or("a label of a union")?;
        Ok(UnionLabel::Number(if is_negative { -number } else { number }))
    }

    fn close(
        &mut self,
        symbol: char,
        expected: &'static str,
        part: ComponentPart<'t>,
    ) -> Result<ComponentPart<'t>, &'static str> {
        if self.take(symbol) { Ok(part) } else { Err(expected) }
    }

    fn take(&mut self, symbol: char) -> bool {
        let rest = self.rest.strip_prefix(symbol);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A name of IDL; a backslash before it takes a keyword's meaning away.
    fn identifier(&mut self) -> Option<&'t str> {
        let text = self.rest.strip_prefix('\\').unwrap_or(self.rest);
        let is_part = |character: char| is_letter(character) || character.is_ascii_digit() || character == '_';
        if !text.starts_with(is_letter) {
            return None;
        }
        let (name, rest) = text.split_at(text.find(|character| !is_part(character)).unwrap_or(text.len()));
        self.rest = rest;
        Some(name)
    }

    fn digits(&mut self) -> Option<usize> {
        let end = self.rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().ok()
    }
}

/// Whether a character is a letter of ISO 8859-1, as in IDL names.
pub(crate) fn is_letter(character: char) -> bool {
    character.is_ascii_alphabetic()
        || matches!(character, '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{ff}')
}
