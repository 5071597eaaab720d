//! The recipe of a proxy offer: the text of the constraint for the trader behind it (Trading Object Service 1.0, Annex C).
//!
//! `$*` stands for the constraint of the query, and `$(name)` for the value of a property of the proxy offer, as a literal of
//! the constraint language. A backslash takes the special meaning from the character behind it.

use std::fmt::Write as _;

use spandrel_constraint::{Limits, Properties, Value};

/// A recipe that violates the grammar, with the position of the first invalid character.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the recipe is invalid at the character {0}: expected $*, $(property) or text")]
pub struct InvalidRecipe(pub usize);

/// A text with holes for the query's constraint and the offer's properties, from which a proxy offer's
/// constraint is made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recipe(Vec<Part>);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Text(String),
    Constraint,
    Property(String),
}

impl Recipe {
    /// Parses a recipe: `$*` is the constraint, `$(name)` a property's value, and a backslash quotes the next
    /// character.
    ///
    /// # Errors
    /// `$` before anything but `*` and a name in parentheses; a backslash at the end.
    pub fn parse(text: &str) -> Result<Self, InvalidRecipe> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            let invalid = InvalidRecipe(at);
            match character {
                '\\' => plain.push(characters.next().ok_or(invalid)?.1),
                '$' => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(match characters.next().ok_or(invalid)?.1 {
                        '*' => Part::Constraint,
                        '(' => {
                            let name: String =
                                characters.by_ref().map(|(_, character)| character).take_while(|c| *c != ')').collect();
                            let is_closed = text.get(..characters.offset()).is_some_and(|read| read.ends_with(')'));
                            if name.is_empty() || !is_closed {
                                return Err(invalid);
                            }
                            Part::Property(name)
                        }
                        _ => return Err(invalid),
                    });
                }
                _ => plain.push(character),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }

    /// The names of the properties whose values are part of the constraint.
    pub fn properties(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter_map(|part| match part {
            Part::Property(name) => Some(name),
            Part::Text(_) | Part::Constraint => None,
        })
    }

    /// The constraint for the trader behind the proxy; `None` if a property has no value with a literal, or if the
    /// constraint is longer than the language permits.
    #[must_use]
    pub fn constraint(&self, query: &str, properties: &(impl Properties + ?Sized)) -> Option<String> {
        let longest = Limits::default().length;
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Constraint => text.push_str(query),
                Part::Property(name) => write_literal(&properties.value(name)?, &mut text)?,
            }
            if text.len() > longest {
                return None;
            }
        }
        Some(text)
    }
}

fn write_literal(value: &Value<'_>, out: &mut String) -> Option<()> {
    match value {
        Value::Boolean(true) => out.push_str("TRUE"),
        Value::Boolean(false) => out.push_str("FALSE"),
        Value::Integer(number) => write!(out, "{number}").ok()?,
        Value::Floating(number) if number.is_finite() => write!(out, "{number:?}").ok()?,
        Value::Text(text) => {
            out.push('\'');
            for character in text.chars() {
                if matches!(character, '\'' | '\\') {
                    out.push('\\');
                }
                out.push(character);
            }
            out.push('\'');
        }
        Value::Floating(_) | Value::Sequence(_) | Value::Other => return None,
    }
    Some(())
}
