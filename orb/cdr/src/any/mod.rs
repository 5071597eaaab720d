//! `Any`: a value together with its type (CORBA 3.3 Part 1, 8.11; Part 2, 9.3.5.2).
//!
//! An `Any` holds the CDR octets of its value and the context needed to decode them: byte order, version and
//! code sets of the original message, the offset from a multiple of eight, and the binder of references. A
//! received value is walked once to find its end; the walk also rejects octets that are no value of the type.
//! It becomes a Rust value on extraction, and is usually forwarded as octets.
//!
//! The walk over values of a type belongs to `walk`, and access to values of unknown type to
//! `spandrel-dynamic`.

mod content;

use std::{fmt, sync::Arc};

use crate::{
    Binder, CdrError, CharSet, Decode, Decoder, Encode, Encoder, FromBound, GiopVersion, TcKind, TypeCode, Typed,
    ValueRef, ValueStart, ValueType, Wire, walk,
};
use content::ValueContent;

/// A value of any IDL type, together with its type: IDL `any`.
///
/// Clones share the octets of the value, which are immutable: a clone is as good as a deep copy.
///
/// Two are equal if their types are [equivalent](TypeCode::equivalent) and their values have the same octets
/// in the same encoding: floating-point numbers are compared by their bits.
#[derive(Clone, Default)]
pub struct Any {
    type_code: TypeCode,
    octets: Arc<[u8]>,
    /// Position of the first octet, modulo 8.
    offset: u8,
    wire: Wire,
    binder: Option<Arc<dyn Binder>>,
}

/// The reason for which an [`Any`] gives no value of a Rust type.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The value is of another type.
    #[error("a value of type `{found}` is not a `{expected}`")]
    OtherType {
        /// The type of the Rust type.
        expected: TypeCode,
        /// The type of the value.
        found: TypeCode,
    },
    /// The octets are not a value of the type.
    #[error(transparent)]
    Value(#[from] CdrError),
}
spandrel_error::debug_as_report!(ExtractError);

impl Any {
    /// Holds a copy of the value, with the type code of its Rust type. The value may be passed by reference.
    ///
    /// # Errors
    /// A value that has no CDR form.
    pub fn new<T: Encode + Typed>(value: T) -> Result<Self, CdrError> {
        Self::encoded(T::type_code(), &value)
    }

    /// Holds a copy of the value, with a more specific type code than that of its Rust type: that of a
    /// typedef.
    ///
    /// # Errors
    /// A type code that is not [equivalent](TypeCode::equivalent) to that of the Rust type; a value that has
    /// no CDR form.
    pub fn with_type<T: Encode + Typed + ?Sized>(type_code: TypeCode, value: &T) -> Result<Self, CdrError> {
        if !type_code.equivalent(&T::type_code()) {
            return Err(CdrError::Malformed("a value is not of the type that it is inserted as"));
        }
        Self::encoded(type_code, value)
    }

    fn encoded<T: Encode + ?Sized>(type_code: TypeCode, value: &T) -> Result<Self, CdrError> {
        let mut out = Encoder::new(own_wire());
        if let (TcKind::Except, Ok(id)) = (type_code.kind(), type_code.id()) {
            // An exception's members follow its id (9.3.7); the encoding of its Rust form omits the id.
            out.short_str(id)?;
        }
        value.encode(&mut out)?;
        Ok(Self::holding(type_code, &out))
    }

    fn holding(type_code: TypeCode, out: &Encoder<'_>) -> Self {
        let octets = out.contiguous().map_or_else(|| out.to_vec().into(), Arc::from);
        Self { type_code, octets, offset: 0, wire: out.wire(), binder: None }
    }

    /// Holds the octets that `write` writes. They must be exactly one value of this type; that of an
    /// exception begins with its id.
    ///
    /// # Errors
    /// The errors of `write`; octets that are no value of the type.
    pub fn write<'a>(
        type_code: TypeCode,
        write: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Self, CdrError> {
        let mut out = Encoder::new(own_wire());
        write(&mut out)?;
        let any = Self::holding(type_code, &out);
        let mut input = any.value();
        walk::skip(&any.type_code, &mut input)?;
        if input.remaining() > 0 {
            return Err(CdrError::Malformed("more was written than a value of the type"));
        }
        Ok(any)
    }

    /// Decodes a value of this type from a message, where it stands without its type code.
    ///
    /// # Errors
    /// Octets that are no value of the type.
    pub fn read(type_code: TypeCode, input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let binder = input.binder().filter(|_| ValueContent::of(&type_code).binds).map(Binder::share);
        // If alignment restarts within the value, or a chunk ends, its octets cannot be copied elsewhere.
        if !input.has_joints() && !input.is_confined() {
            let (from, start, offset) = (input.rest(), input.position(), input.misalignment());
            let view = input.view();
            if walk::find_end(&type_code, input)? {
                let octets = from[..input.position() - start].into();
                return Ok(Self { type_code, octets, offset, wire: input.wire(), binder });
            }
            // It shares a value with earlier parts of the message.
            input.restore(view);
        }
        let mut out = Encoder::new(input.wire());
        walk::copy(&type_code, input, &mut out)?;
        Ok(Self { binder, ..Self::holding(type_code, &out) })
    }

    /// Encodes the value alone, without its type code.
    ///
    /// # Errors
    /// A value that cannot be encoded in the encoder's version or code sets.
    pub fn write_value<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        // A value stands outside the chunks of the enclosing value (CORBA 3.3 Part 2, 9.3.4.6).
        let is_cut = out.is_in_chunks() && ValueContent::of(&self.type_code).binds;
        if !is_cut && self.matches_encoding(out) {
            let content = ValueContent::of(&self.type_code);
            if content.wide || (content.narrow && !self.octets.is_ascii()) {
                out.record_code_sets();
            }
            out.lend(&self.octets);
            return Ok(());
        }
        walk::copy(&self.type_code, &mut self.value(), out)
    }

    /// Whether the octets can be copied to the encoder's position without conversion.
    fn matches_encoding(&self, out: &Encoder<'_>) -> bool {
        let (mine, its) = (self.wire, out.wire());
        let apart = out.misalignment() ^ self.offset;
        if mine.order != its.order {
            return false;
        }
        let same = |wire: Wire| (wire.version, wire.char_set, wire.wchar_set);
        if apart == 0 && same(mine) == same(its) {
            return true;
        }
        let content = ValueContent::of(&self.type_code);
        apart & (content.alignment - 1) == 0
            && (!content.narrow || mine.char_set == its.char_set)
            && (!content.wide || (mine.version, mine.wchar_set) == (its.version, its.wchar_set))
    }

    /// Encodes the members of a struct or an exception: as [`Any::write_value`], without the id of an
    /// exception.
    ///
    /// # Errors
    /// As [`Any::write_value`].
    pub fn write_members<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        let mut input = self.members();
        if input.remaining() == self.octets.len() {
            self.write_value(out)
        } else {
            walk::copy(&self.type_code, &mut input, out)
        }
    }

    /// The type of the value: [`TypeCode::NULL`] without a value.
    #[must_use]
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// The same value with another, [equivalent](TypeCode::equivalent) type.
    ///
    /// # Errors
    /// A type that is not equivalent.
    pub fn retyped(&self, type_code: TypeCode) -> Result<Self, CdrError> {
        if !type_code.equivalent(&self.type_code) {
            return Err(CdrError::Malformed("a value is not of the type that it should have"));
        }
        Ok(Self { type_code, ..self.clone() })
    }

    /// A decoder of the value's octets; those of an exception begin with its id, unless omniORB sent it.
    #[must_use]
    pub fn value(&self) -> Decoder<'_> {
        let input = Decoder::new(&self.octets, self.wire).offset_by(self.offset);
        match &self.binder {
            Some(binder) => input.with_binder(&**binder),
            None => input,
        }
    }

    /// The value as a Rust value.
    ///
    /// # Errors
    /// A value whose type is not [equivalent](TypeCode::equivalent) to that of the Rust type; a value that
    /// the Rust type rejects.
    pub fn extract<T: Decode + Typed>(&self) -> Result<T, ExtractError> {
        let expected = T::type_code();
        if !expected.equivalent(&self.type_code) {
            return Err(ExtractError::OtherType { expected, found: self.type_code.clone() });
        }
        Ok(T::decode(&mut self.members())?)
    }

    /// The object reference in it, of any interface, or nil. `R` is the type of references to any object
    /// (`ObjectRef`), or that of the `Any`'s interface. An abstract interface holds a reference too, unless
    /// it holds a value.
    ///
    /// ```no_run
    /// # use spandrel_cdr::{Any, ExtractError, FromBound, Typed};
    /// # fn example<ObjectRef: FromBound + Typed>(any: &Any) -> Result<(), ExtractError> {
    /// let object: Option<ObjectRef> = any.to_object()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ExtractError::OtherType`] if it holds no reference, or `R` is another interface; a reference that
    /// the receiving ORB cannot use.
    pub fn to_object<R: FromBound + Typed>(&self) -> Result<Option<R>, ExtractError> {
        let (expected, mut input) = (R::type_code(), self.value());
        if expected.equivalent(&TypeCode::object()) || expected.equivalent(&self.type_code) {
            match self.type_code.view().resolved().kind() {
                TcKind::ObjRef | TcKind::Component | TcKind::Home => return Ok(Option::<R>::decode(&mut input)?),
                // A boolean distinguishes the two; nil is a null value (CORBA 3.3 Part 2, 9.3.7).
                TcKind::AbstractInterface if input.bool()? => return Ok(Option::<R>::decode(&mut input)?),
                TcKind::AbstractInterface if input.u32()? == 0 => return Ok(None),
                _ => {}
            }
        }
        Err(ExtractError::OtherType { expected, found: self.type_code.clone() })
    }

    /// The value in it as a `T`, or null. `T` may be its type, a base of it, or `dyn ValueBase`. An abstract
    /// interface may hold a value too.
    ///
    /// The factory of the value's own type creates it, as for a received value declared as `T`.
    ///
    /// # Errors
    /// [`ExtractError::OtherType`] if it holds no value, or one of a type that does not derive from `T`; the
    /// errors of decoding a value.
    pub fn to_value<T: ValueType + Typed + ?Sized>(&self) -> Result<Option<ValueRef<T>>, ExtractError> {
        let (expected, actual) = (T::type_code(), self.type_code.view().resolved());
        let other = || ExtractError::OtherType { expected: expected.clone(), found: self.type_code.clone() };
        let mut input = self.value();
        if actual.kind() == TcKind::AbstractInterface {
            // A boolean distinguishes the two (CORBA 3.3 Part 2, 9.3.7).
            if input.bool()? {
                return Err(other());
            }
        } else if !self.type_code.derives_from(&expected) {
            // The value's type may derive from the type code's, or be another box.
            let may_be = |id: &Arc<str>| {
                let is_box = actual.kind() == TcKind::ValueBox && expected.view().resolved().id() == Some(&**id);
                actual.id() != Some(&**id) && (is_box || expected.derives_from(&self.type_code))
            };
            let is_expected = match self.value().start_value() {
                Ok(ValueStart::New(started)) => started.ids().first().is_some_and(may_be),
                _ => false,
            };
            if !is_expected {
                return Err(other());
            }
        }
        let named;
        if let Some(octets) = walk::named_value(&self.type_code, &self.value())? {
            named = octets;
            input = Decoder::new(&named, self.wire);
            if let Some(binder) = &self.binder {
                input = input.with_binder(&**binder);
            }
        }
        match Option::<ValueRef<T>>::decode(&mut input) {
            Err(CdrError::WrongValue { .. }) => Err(other()),
            value => Ok(value?),
        }
    }

    /// A decoder of the value's octets, after the id of an exception.
    #[must_use]
    pub fn members(&self) -> Decoder<'_> {
        let (view, mut input) = (self.type_code.view().resolved(), self.value());
        if view.kind() == TcKind::Except && walk::has_exception_id(view, &input) {
            input.str().expect("the id was decoded before");
        }
        input
    }

    /// The value's octets in native encoding, which are the same for equal values.
    fn canonical(&self) -> Result<Vec<u8>, CdrError> {
        let mut out = Encoder::new(own_wire());
        walk::copy(&self.type_code, &mut self.members(), &mut out)?;
        Ok(out.to_vec())
    }
}

/// The encoding of inserted values, in which every value can be represented.
fn own_wire() -> Wire {
    let mut wire = Wire { version: GiopVersion::V1_2, ..Wire::default() };
    wire.char_set = CharSet::Utf8;
    wire.limits.values = u32::MAX;
    wire
}

impl PartialEq for Any {
    fn eq(&self, other: &Self) -> bool {
        if !self.type_code.equivalent(&other.type_code) {
            return false;
        }
        let alike = (self.wire, self.offset) == (other.wire, other.offset) && self.octets == other.octets;
        alike || matches!((self.canonical(), other.canonical()), (Ok(a), Ok(b)) if a == b)
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Any")
            .field("type_code", &self.type_code)
            .field("octets", &self.octets.len())
            .finish_non_exhaustive()
    }
}

impl Typed for Any {
    #[inline]
    fn type_code() -> TypeCode {
        TypeCode::ANY
    }
}

impl Encode for Any {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.type_code.write(out)?;
        self.write_value(out)
    }
}

impl Decode for Any {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let type_code = TypeCode::decode(input)?;
        input.nested(|input| Self::read(type_code, input))
    }
}
