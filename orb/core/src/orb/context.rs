//! Request contexts: named strings that a client sends with operations whose IDL has a `context` clause.
//!
//! The names that an operation needs are part of its IDL, and generated code selects them. The program
//! chooses the source of its context, such as its environment or its user.

use std::collections::BTreeMap;

use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder};

/// The properties of a request context, by name (CORBA 3.3 Part 1, 8.6).
///
/// ```
/// let mut context = spandrel_orb::Context::new();
/// context.set("user.name", "grace").set("user.shell", "/bin/sh").set("locale", "de");
/// assert_eq!(context.get("locale"), Some("de"));
/// assert_eq!(context.matching("user.*").count(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    values: BTreeMap<String, String>,
}

impl Context {
    /// A context to which properties are added by [`set`](Self::set).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a property, replacing its old value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.values.insert(name.into(), value.into());
        self
    }

    /// The value of the property with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The properties with this name or, if it ends in `*`, with this prefix, ordered by name.
    pub fn matching(&self, pattern: &str) -> impl Iterator<Item = (&str, &str)> {
        let (start, is_open) = match pattern.strip_suffix('*') {
            Some(start) => (start.to_owned(), true),
            None => (pattern.to_owned(), false),
        };
        let first = self.values.range(start.clone()..).map(|(name, value)| (name.as_str(), value.as_str()));
        first.take_while(move |(name, _)| if is_open { name.starts_with(&start) } else { *name == start })
    }

    /// All properties, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Writes the properties that a `context` clause names, as a sequence of strings that alternates names
    /// and values (CORBA 3.3 Part 2, 9.3.5.4). Unset properties are not sent.
    ///
    /// # Errors
    /// A string that cannot be encoded.
    pub fn encode_named(&self, patterns: &[&str], out: &mut Encoder<'_>) -> Result<(), CdrError> {
        let sent: BTreeMap<&str, &str> = patterns.iter().flat_map(|pattern| self.matching(pattern)).collect();
        out.len(sent.len() * 2)?;
        sent.into_iter().flat_map(|(name, value)| [name, value]).try_for_each(|text| out.short_str(text))
    }
}

impl Encode for Context {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.encode_named(&["*"], out)
    }
}

impl Decode for Context {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let len = input.sequence_len(String::MIN_OCTETS)?;
        if !len.is_multiple_of(2) {
            return Err(CdrError::Malformed("a context ends with a name that has no value"));
        }
        let mut context = Self::new();
        for _ in 0..len / 2 {
            let name = input.str()?.into_owned();
            context.set(name, input.str()?);
        }
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::Wire;

    use super::*;

    fn context() -> Context {
        let mut context = Context::new();
        context.set("A", "1").set("AB", "2").set("ABC", "3").set("B", "4");
        context
    }

    #[test]
    fn names_of_the_context_clause_are_sent_once() {
        let wire = Wire::default();
        let mut out = Encoder::new(wire);
        context().encode_named(&["AB*", "ABC", "B", "Missing", "C*"], &mut out).expect("plain texts");
        let octets = out.to_vec();
        let texts = Vec::<String>::decode(&mut Decoder::new(&octets, wire)).expect("a sequence of strings");
        assert_eq!(texts, ["AB", "2", "ABC", "3", "B", "4"]);
        let received = Context::decode(&mut Decoder::new(&octets, wire)).expect("a context");
        assert_eq!(received.iter().collect::<Vec<_>>(), [("AB", "2"), ("ABC", "3"), ("B", "4")]);
        assert_eq!(received.get("A"), None);
    }

    #[test]
    fn a_name_without_a_value_is_refused() {
        let wire = Wire::default();
        let texts = vec!["A".to_owned()];
        let mut out = Encoder::new(wire);
        texts.encode(&mut out).expect("a plain text");
        assert!(Context::decode(&mut Decoder::new(&out.to_vec(), wire)).is_err());
    }
}
