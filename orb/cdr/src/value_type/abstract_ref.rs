//! Abstract interfaces: an object reference or a value, as the message determines.

use super::{ValueRef, ValueType};
use crate::{CdrError, Decode, Decoder, Encode, Encoder, FromBound, Reference};

/// An abstract interface: a reference or a value; nil is `Option::None` of it (CORBA 3.3 Part 2, 9.3.7).
pub enum AbstractRef<R, V: ?Sized> {
    /// A reference to an object with the interface.
    Object(R),
    /// A value that supports it.
    Value(ValueRef<V>),
}

impl<R: Clone, V: ?Sized + 'static> Clone for AbstractRef<R, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Object(object) => Self::Object(object.clone()),
            Self::Value(value) => Self::Value(value.clone()),
        }
    }
}

impl<R: std::fmt::Debug, V: ?Sized + 'static> std::fmt::Debug for AbstractRef<R, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(object) => f.debug_tuple("Object").field(object).finish(),
            Self::Value(value) => f.debug_tuple("Value").field(value).finish(),
        }
    }
}

impl<R: PartialEq, V: ?Sized + 'static> PartialEq for AbstractRef<R, V> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(one), Self::Object(other)) => one == other,
            (Self::Value(one), Self::Value(other)) => one == other,
            _ => false,
        }
    }
}

impl<R: Eq, V: ?Sized + 'static> Eq for AbstractRef<R, V> {}

fn encode<'a, R: Reference, V: ?Sized + 'static>(
    reference: Option<&'a AbstractRef<R, V>>,
    out: &mut Encoder<'a>,
) -> Result<(), CdrError> {
    out.bool(matches!(reference, Some(AbstractRef::Object(_))));
    match reference {
        Some(AbstractRef::Object(object)) => object.ior().encode(out),
        Some(AbstractRef::Value(value)) => value.encode_value(out),
        None => out.nil_value(),
    }
}

impl<R: Reference, V: ?Sized + 'static> Encode for Option<AbstractRef<R, V>> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        encode(self.as_ref(), out)
    }
}

impl<R: Reference, V: ?Sized + 'static> Encode for Option<&AbstractRef<R, V>> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        encode(*self, out)
    }
}

impl<R: FromBound, V: ValueType + ?Sized> Decode for Option<AbstractRef<R, V>> {
    const MIN_OCTETS: usize = 5;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        if input.bool()? {
            Option::<R>::decode(input).map(|object| object.map(AbstractRef::Object))
        } else {
            Option::<ValueRef<V>>::decode(input).map(|value| value.map(AbstractRef::Value))
        }
    }
}
