//! The values of properties, as the language sees them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::BuildHasher;

use spandrel_cdr::{Any, CdrError, Char, Decode, TcKind, TypeCode, WString};

use crate::number::Number;

/// The types of which the operators tell values apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SimpleType {
    /// The IDL type `boolean`.
    Boolean,
    /// `short`, `long`, `long long`, the unsigned ones, `float`, `double`.
    Number,
    /// `char`, `string`, `wchar`, `wstring`.
    Text,
}

impl fmt::Display for SimpleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::Text => "text",
        })
    }
}

/// The type of a property or an expression.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ValueType {
    /// A boolean, a number or a text.
    Simple(SimpleType),
    /// A sequence, for `in`.
    Sequence(SimpleType),
    /// A type that no operator but `exist` accepts.
    Other,
}

impl ValueType {
    /// The type of the values of an IDL type. Aliases and bounds make no difference.
    #[must_use]
    pub fn from_type_code(type_code: &TypeCode) -> Self {
        let resolved = type_code.without_aliases();
        if let Some(simple) = simple_type(resolved.kind()) {
            return Self::Simple(simple);
        }
        let content = if resolved.kind() == TcKind::Sequence { resolved.content_type().ok() } else { None };
        let element = content.and_then(|content| simple_type(content.without_aliases().kind()));
        element.map_or(Self::Other, Self::Sequence)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(simple) => simple.fmt(f),
            Self::Sequence(element) => write!(f, "sequence of {element}"),
            Self::Other => f.write_str("a value of another type"),
        }
    }
}

fn simple_type(kind: TcKind) -> Option<SimpleType> {
    Some(match kind {
        TcKind::Boolean => SimpleType::Boolean,
        TcKind::Short | TcKind::UShort | TcKind::Long | TcKind::ULong => SimpleType::Number,
        TcKind::LongLong | TcKind::ULongLong | TcKind::Float | TcKind::Double => SimpleType::Number,
        TcKind::Char | TcKind::String | TcKind::WChar | TcKind::WString => SimpleType::Text,
        _ => return None,
    })
}

/// A value as the operators see it: of a property, a literal or an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A value of `boolean`.
    Boolean(bool),
    /// A value of any integer type of 16 to 64 bits, or of integer arithmetic.
    Integer(i128),
    /// A value of `float` or `double`.
    Floating(f64),
    /// `char` and `string`, and the wide ones.
    Text(Cow<'a, str>),
    /// A sequence of values that are no sequences.
    Sequence(Cow<'a, [Value<'static>]>),
    /// A value of a type that no operator but `exist` accepts.
    Other,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl Value<'_> {
    /// Converts the value of an IDL `any`; [`Value::Other`] for types without operators.
    ///
    /// # Errors
    /// Octets that are no value of the `any`'s type.
    pub fn from_any(any: &Any) -> Result<Value<'static>, CdrError> {
        let resolved = any.type_code().without_aliases();
        let kind = resolved.kind();
        if simple_type(kind).is_some() {
            return simple_value(kind, &mut any.value());
        }
        let ValueType::Sequence(_) = ValueType::from_type_code(&resolved) else { return Ok(Value::Other) };
        let Ok(content) = resolved.content_type() else { return Ok(Value::Other) };
        let values = sequence(content.without_aliases().kind(), &mut any.value())?;
        Ok(Value::Sequence(Cow::Owned(values)))
    }

    /// The type of the value. An empty sequence has none, and fits each operand of `in`.
    pub(crate) fn value_type(&self) -> Option<ValueType> {
        Some(match self {
            Self::Boolean(_) => ValueType::Simple(SimpleType::Boolean),
            Self::Integer(_) | Self::Floating(_) => ValueType::Simple(SimpleType::Number),
            Self::Text(_) => ValueType::Simple(SimpleType::Text),
            Self::Sequence(elements) => match elements.first()?.value_type()? {
                ValueType::Simple(element) => ValueType::Sequence(element),
                _ => ValueType::Other,
            },
            Self::Other => ValueType::Other,
        })
    }

    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Self::Integer(number) => Some(Number::Integer(*number)),
            Self::Floating(number) => Some(Number::Floating(*number)),
            _ => None,
        }
    }

    /// The same value without a copy of its text or elements.
    #[must_use]
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Integer(number) => Value::Integer(*number),
            Self::Floating(number) => Value::Floating(*number),
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Sequence(elements) => Value::Sequence(Cow::Borrowed(elements)),
            Self::Other => Value::Other,
        }
    }
}

type Input<'i> = spandrel_cdr::Decoder<'i>;

fn simple_value(kind: TcKind, input: &mut Input<'_>) -> Result<Value<'static>, CdrError> {
    Ok(match kind {
        TcKind::Boolean => Value::Boolean(bool::decode(input)?),
        TcKind::Short => Value::Integer(i16::decode(input)?.into()),
        TcKind::UShort => Value::Integer(u16::decode(input)?.into()),
        TcKind::Long => Value::Integer(i32::decode(input)?.into()),
        TcKind::ULong => Value::Integer(u32::decode(input)?.into()),
        TcKind::LongLong => Value::Integer(i64::decode(input)?.into()),
        TcKind::ULongLong => Value::Integer(u64::decode(input)?.into()),
        TcKind::Float => Value::Floating(f32::decode(input)?.into()),
        TcKind::Double => Value::Floating(f64::decode(input)?),
        TcKind::Char => Value::Text(char::from(Char::decode(input)?.0).to_string().into()),
        TcKind::WChar => Value::Text(char::decode(input)?.to_string().into()),
        TcKind::String => Value::Text(String::decode(input)?.into()),
        TcKind::WString => Value::Text(WString::decode(input)?.to_string().into()),
        _ => Value::Other,
    })
}

/// Decodes a sequence, whose length its own type compares with the remaining octets.
fn sequence(kind: TcKind, input: &mut Input<'_>) -> Result<Vec<Value<'static>>, CdrError> {
    fn decode<T: Decode>(
        input: &mut Input<'_>,
        value: impl Fn(T) -> Value<'static>,
    ) -> Result<Vec<Value<'static>>, CdrError> {
        Ok(Vec::<T>::decode(input)?.into_iter().map(value).collect())
    }
    match kind {
        TcKind::Boolean => decode(input, Value::Boolean),
        TcKind::Short => decode(input, |number: i16| Value::Integer(number.into())),
        TcKind::UShort => decode(input, |number: u16| Value::Integer(number.into())),
        TcKind::Long => decode(input, |number: i32| Value::Integer(number.into())),
        TcKind::ULong => decode(input, |number: u32| Value::Integer(number.into())),
        TcKind::LongLong => decode(input, |number: i64| Value::Integer(number.into())),
        TcKind::ULongLong => decode(input, |number: u64| Value::Integer(number.into())),
        TcKind::Float => decode(input, |number: f32| Value::Floating(number.into())),
        TcKind::Double => decode(input, Value::Floating),
        TcKind::Char => decode(input, |character: Char| Value::Text(char::from(character.0).to_string().into())),
        TcKind::WChar => decode(input, |character: char| Value::Text(character.to_string().into())),
        TcKind::String => decode(input, |text: String| Value::Text(text.into())),
        TcKind::WString => decode(input, |text: WString| Value::Text(text.to_string().into())),
        _ => Ok(Vec::new()),
    }
}

/// The properties of an offer, or the components of an event.
pub trait Properties {
    /// The value of the property with this name; `None` if there is none.
    fn value(&self, name: &str) -> Option<Value<'_>>;

    /// Whether the property has a value. For properties whose value is costly.
    fn exists(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Whether the component with this name is a union with its default member, for `default` of the extended language.
    fn is_default(&self, name: &str) -> bool {
        _ = name;
        false
    }
}

impl<K: std::borrow::Borrow<str> + Eq + std::hash::Hash, S: BuildHasher> Properties for HashMap<K, Value<'_>, S> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        self.get(name).map(Value::borrowed)
    }
}

impl<K: std::borrow::Borrow<str> + Ord> Properties for BTreeMap<K, Value<'_>> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        self.get(name).map(Value::borrowed)
    }
}
