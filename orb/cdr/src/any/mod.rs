//! `Any`: a value together with its type (CORBA 3.3 Part 1, 8.11; Part 2, 9.3.5.2).
//!
//! An `Any` keeps the octets that its value has in CDR, and what is needed to read them: the order, version and code sets of
//! the message that they come from, their offset from a multiple of eight, and who binds references. What arrives is walked
//! once to find its end, which also refuses what is no value of the type; it becomes a Rust value when it is extracted, and
//! most often is sent on as the octets that it is.
//!
//! How values of a type are walked is `walk`'s business, and looking into them without knowing their type that of
//! `spandrel-dynamic`.

mod survey;

use std::{fmt, sync::Arc};

use crate::{
    Binder, CdrError, CharSet, Decode, Decoder, Encode, Encoder, FromBound, GiopVersion, MetValue, TcKind, TypeCode,
    Typed, ValueRef, ValueType, Wire, walk,
};
use survey::Survey;

/// A value of any IDL type, and which type that is: IDL `any`.
///
/// Cloning it shares the octets of the value, which nobody can change: it is as good as a deep copy.
///
/// Two are equal if their types are [equivalent](TypeCode::equivalent) and their values have the same octets, written the
/// same way: floating-point numbers are compared by their bits.
#[derive(Clone, Default)]
pub struct Any {
    type_code: TypeCode,
    octets: Arc<[u8]>,
    /// Where the first octet stood, modulo 8.
    offset: u8,
    wire: Wire,
    binder: Option<Arc<dyn Binder>>,
}

/// Why an [`Any`] gives no value of a Rust type.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
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
    /// The octets do not make such a value.
    #[error(transparent)]
    Value(#[from] CdrError),
}

impl Any {
    /// Holds a copy of the value, with the type code of its Rust type.
    ///
    /// # Errors
    /// A value that has no CDR form.
    pub fn new<T: Encode + Typed + ?Sized>(value: &T) -> Result<Self, CdrError> {
        Self::encoded(T::type_code(), value)
    }

    /// Holds a copy of the value, with a type code that says more than its Rust type does: that of a typedef.
    ///
    /// # Errors
    /// A type code that is not [equivalent](TypeCode::equivalent) to that of the Rust type; a value that has no CDR form.
    pub fn with_type<T: Encode + Typed + ?Sized>(type_code: TypeCode, value: &T) -> Result<Self, CdrError> {
        if !type_code.equivalent(&T::type_code()) {
            return Err(CdrError::Malformed("a value is not of the type that it is inserted as"));
        }
        Self::encoded(type_code, value)
    }

    fn encoded<T: Encode + ?Sized>(type_code: TypeCode, value: &T) -> Result<Self, CdrError> {
        let mut out = Encoder::new(own_wire());
        if let (TcKind::Except, Ok(id)) = (type_code.kind(), type_code.id()) {
            // An exception's members follow its id (9.3.7), which its Rust form leaves to whoever raises it.
            out.short_str(id)?;
        }
        value.encode(&mut out)?;
        Ok(Self::holding(type_code, &out))
    }

    fn holding(type_code: TypeCode, out: &Encoder<'_>) -> Self {
        let octets = out.contiguous().map_or_else(|| out.to_vec().into(), Arc::from);
        Self { type_code, octets, offset: 0, wire: out.wire(), binder: None }
    }

    /// Holds what `write` writes, which must be exactly one value of this type; that of an exception begins with its id.
    ///
    /// # Errors
    /// Those of `write`; octets that are no value of the type.
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

    /// Reads a value of this type, which stands in a message without its type code.
    ///
    /// # Errors
    /// Octets that are no value of the type.
    pub fn read(type_code: TypeCode, input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let binder = input.binder().filter(|_| Survey::of(&type_code).binds).map(Binder::share);
        // Where alignment starts anew somewhere within, or a chunk ends, the octets are not as they are elsewhere.
        if !input.has_joints() && !input.is_confined() {
            let (from, start, offset) = (input.rest(), input.position(), input.misalignment());
            let view = input.view();
            if walk::find_end(&type_code, input)? {
                let octets = from[..input.position() - start].into();
                return Ok(Self { type_code, octets, offset, wire: input.wire(), binder });
            }
            // It shares a value with what was before it.
            input.restore(view);
        }
        let mut out = Encoder::new(input.wire());
        walk::copy(&type_code, input, &mut out)?;
        Ok(Self { binder, ..Self::holding(type_code, &out) })
    }

    /// Writes the value alone, without its type code.
    ///
    /// # Errors
    /// A value that the encoder's version or code sets cannot say.
    pub fn write_value<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        // A value stands outside of the chunks of the value around it (CORBA 3.3 Part 2, 9.3.4.6).
        let is_cut = out.is_in_chunks() && Survey::of(&self.type_code).binds;
        if !is_cut && self.agrees(out) {
            // There may be text in it.
            out.note_code_sets();
            out.lend(&self.octets);
            return Ok(());
        }
        walk::copy(&self.type_code, &mut self.value(), out)
    }

    /// The octets mean the same in the encoder's place.
    fn agrees(&self, out: &Encoder<'_>) -> bool {
        let (mine, its) = (self.wire, out.wire());
        let apart = out.misalignment() ^ self.offset;
        if mine.order != its.order {
            return false;
        }
        let same = |wire: Wire| (wire.version, wire.char_set, wire.wchar_set);
        if apart == 0 && same(mine) == same(its) {
            return true;
        }
        let survey = Survey::of(&self.type_code);
        apart & (survey.alignment - 1) == 0
            && (!survey.narrow || mine.char_set == its.char_set)
            && (!survey.wide || (mine.version, mine.wchar_set) == (its.version, its.wchar_set))
    }

    /// Writes the members of a struct or an exception: as [`Any::write_value`], but for the id that an exception may begin with.
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

    /// The type of the value: [`TypeCode::NULL`] if there is none.
    #[must_use]
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// The same value, said to be of another, [equivalent](TypeCode::equivalent) type.
    ///
    /// # Errors
    /// A type that is not equivalent.
    pub fn retyped(&self, type_code: TypeCode) -> Result<Self, CdrError> {
        if !type_code.equivalent(&self.type_code) {
            return Err(CdrError::Malformed("a value is not of the type that it should have"));
        }
        Ok(Self { type_code, ..self.clone() })
    }

    /// Reads the value's octets; those of an exception begin with its id, unless omniORB sent it.
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
    /// A value whose type is not [equivalent](TypeCode::equivalent) to that of the Rust type; one that the Rust type refuses.
    pub fn extract<T: Decode + Typed>(&self) -> Result<T, ExtractError> {
        let expected = T::type_code();
        if !expected.equivalent(&self.type_code) {
            return Err(ExtractError::OtherType { expected, found: self.type_code.clone() });
        }
        Ok(T::decode(&mut self.members())?)
    }

    /// The object reference in it, of any interface, or nil. `R` is the type of references to any object (`ObjectRef`), or that of the
    /// `Any`'s interface. What an abstract interface has is a reference too, unless it is a value.
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
    /// [`ExtractError::OtherType`] if there is no reference in it, or `R` is another interface; a reference that the ORB which received
    /// it cannot use.
    pub fn to_object<R: FromBound + Typed>(&self) -> Result<Option<R>, ExtractError> {
        let (expected, mut input) = (R::type_code(), self.value());
        if expected.equivalent(&TypeCode::object()) || expected.equivalent(&self.type_code) {
            match self.type_code.view().resolved().kind() {
                TcKind::ObjRef | TcKind::Component | TcKind::Home => return Ok(Option::<R>::decode(&mut input)?),
                // A boolean says what follows; nil is a null value (CORBA 3.3 Part 2, 9.3.7).
                TcKind::AbstractInterface if input.bool()? => return Ok(Option::<R>::decode(&mut input)?),
                TcKind::AbstractInterface if input.u32()? == 0 => return Ok(None),
                _ => {}
            }
        }
        Err(ExtractError::OtherType { expected, found: self.type_code.clone() })
    }

    /// The value in it as a `T`, which may be its type, one of the bases of that, or `dyn ValueBase`; or null. It is also what an
    /// abstract interface has, unless that is an object reference.
    ///
    /// The value is made by the factory of its own type, as one that is received where a `T` is declared.
    ///
    /// # Errors
    /// [`ExtractError::OtherType`] if there is no value in it, or one of a type that does not derive from `T`; what reading a value may
    /// end in.
    pub fn to_value<T: ValueType + Typed + ?Sized>(&self) -> Result<Option<ValueRef<T>>, ExtractError> {
        let (expected, of) = (T::type_code(), self.type_code.view().resolved());
        let other = || ExtractError::OtherType { expected: expected.clone(), found: self.type_code.clone() };
        let mut input = self.value();
        if of.kind() == TcKind::AbstractInterface {
            // A boolean says what follows (CORBA 3.3 Part 2, 9.3.7).
            if input.bool()? {
                return Err(other());
            }
        } else if !self.type_code.derives_from(&expected) {
            // The value may be of a type that derives from what the type code says.
            let says_more = |id: &Arc<str>| of.id() != Some(&**id);
            let is_more = || match self.value().meet_value() {
                Ok(MetValue::New(coming)) => coming.ids().first().is_some_and(says_more),
                _ => false,
            };
            if !(expected.derives_from(&self.type_code) && is_more()) {
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

    /// Reads the value's octets, an exception's from its members on.
    #[must_use]
    pub fn members(&self) -> Decoder<'_> {
        let (of, mut input) = (self.type_code.view().resolved(), self.value());
        if of.kind() == TcKind::Except && walk::has_exception_id(of, &input) {
            input.str().expect("that an id stands here has been seen");
        }
        input
    }

    /// The value's octets as we would write them, which are the same for equal values.
    fn canonical(&self) -> Result<Vec<u8>, CdrError> {
        let mut out = Encoder::new(own_wire());
        walk::copy(&self.type_code, &mut self.members(), &mut out)?;
        Ok(out.to_vec())
    }
}

/// What is inserted here is written so that everything can be said.
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
