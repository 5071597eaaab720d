//! Conversion between octets and components.
//!
//! An `Any` has validated its octets on creation. The limits here bound their size as components.
//!
//! A value of a value type is decoded with the type code of its own type, if known: the declared type, one
//! that the `Any` got from its request, or one of the `DynAny`. Sharing and cycles become links, and links
//! become indirections; the `Any` carries the [`ValueTypes`] along.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
};

use spandrel_cdr::{
    Any, CdrError, CharSet, Decode, Decoder, Encoder, Ior, StartedValue, TcKind, TypeCode, ValueModifier, ValueStart,
    Wire,
};

use super::{
    DynAny, DynAnyError,
    discriminator::label_of,
    dyn_any::{Link, State, Value, ValueId},
    leaf::Leaf,
    limits::Meter,
    members::{bases_of, members_of},
};
use crate::ValueTypes;

impl DynAny {
    /// Converts an `Any` to components (16.2.2, `create_dyn_any`).
    ///
    /// # Errors
    /// [`DynAnyError::InconsistentTypeCode`] for types without dynamic values; [`DynAnyError::TooLarge`].
    pub fn new(any: &Any) -> Result<Self, DynAnyError> {
        Self::with_limit(any, Self::COMPONENTS)
    }

    /// As [`DynAny::new`], without truncation (`create_dyn_any_without_truncation`): a value of a type that
    /// derives from the known one is an error.
    ///
    /// # Errors
    /// As [`DynAny::new`]; [`DynAnyError::MustTruncate`].
    pub fn without_truncation(any: &Any) -> Result<Self, DynAnyError> {
        Reader::new(Meter::without_truncation(Self::COMPONENTS)).read(any.type_code(), &mut any.value())
    }

    /// Converts an `Any` to at most `components` components.
    ///
    /// # Errors
    /// As [`DynAny::new`].
    pub fn with_limit(any: &Any, components: usize) -> Result<Self, DynAnyError> {
        Reader::new(Meter::new(components)).read(any.type_code(), &mut any.value())
    }

    /// Assigns the value of an `Any` (16.2.3.3); the current position is reset.
    ///
    /// # Errors
    /// As [`DynAny::assign`]; [`DynAnyError::TooLarge`].
    pub fn from_any(&mut self, any: &Any) -> Result<(), DynAnyError> {
        self.assign(&Self::new(any)?)
    }

    /// Converts the value to an `Any` (16.2.3.4), which knows the types of all values in it.
    ///
    /// # Errors
    /// A value that cannot be encoded, such as a string with NUL inside; a repeated value without its state.
    pub fn to_any(&self) -> Result<Any, DynAnyError> {
        self.to_any_within(self)
    }

    /// As [`DynAny::to_any`], for a component: the states of repeated values may be anywhere in `whole`.
    pub(crate) fn to_any_within(&self, whole: &Self) -> Result<Any, DynAnyError> {
        let writer = Writer::new(whole);
        let mut out = Encoder::new(own_wire());
        writer.write(self, &mut out)?;
        let types = writer.types.into_inner();
        let (octets, wire) = (out.to_vec(), out.wire());
        Ok(Any::read(self.type_code().clone(), &mut Decoder::new(&octets, wire).with_binder(&types))?)
    }

    /// Adds the types of the values in an `any` that is a component, as that `any` knows them.
    fn add_types(any: &Any, types: &mut ValueTypes) {
        if any.value().binder().is_none() {
            return;
        }
        // A value beyond the limit can be forwarded if its octets need no conversion.
        let Ok(apart) = Self::new(any) else { return };
        let mut todo = vec![&apart];
        while let Some(value) = todo.pop() {
            match &value.value {
                Value::State(State { type_code, .. }) => {
                    types.add(type_code);
                }
                Value::Leaf(Leaf::Any(any)) => Self::add_types(any, types),
                _ => {}
            }
            todo.extend(value.components());
        }
    }
}

/// A wire form in which every value can be encoded.
fn own_wire() -> Wire {
    let mut wire = Wire { char_set: CharSet::Utf8, ..Wire::default() };
    wire.limits.values = u32::MAX;
    wire
}

/// Converts octets to components.
struct Reader {
    meter: Meter,
    /// The values read so far, by position.
    read_values: HashMap<usize, Link>,
}

impl Reader {
    fn new(meter: Meter) -> Self {
        Self { meter, read_values: HashMap::new() }
    }

    /// Decodes a value of this type.
    fn read(&mut self, type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<DynAny, DynAnyError> {
        self.meter.enter()?;
        let value = self.value(type_code, input);
        self.meter.leave();
        Ok(DynAny::made_of(type_code, value?))
    }

    // A recursive function with a small frame, and loops for collections: values nest to a depth of hundreds.
    fn value(&mut self, type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
        let type_code = type_code.without_aliases();
        match type_code.kind() {
            TcKind::Struct => self.members(&type_code, input).map(Value::Parts),
            TcKind::Except => self.exception(&type_code, input),
            TcKind::Sequence => self.sequence(&type_code, input),
            TcKind::Array => self.elements(&type_code, type_code.length()? as usize, input),
            TcKind::Union => self.union(&type_code, input),
            // A boolean distinguishes references from values (9.3.7).
            TcKind::AbstractInterface if !input.bool()? => self.value_type(&type_code, input),
            TcKind::Value | TcKind::Event | TcKind::ValueBox => self.value_type(&type_code, input),
            _ => read_leaf(&type_code, input),
        }
    }

    fn exception(&mut self, type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
        // Its id should come first (CORBA 3.3 Part 2, 9.3.5.5), but omniORB writes none within an `any`.
        let ahead = input.clone().str();
        if ahead.is_ok_and(|id| !id.is_empty() && type_code.id() == Ok(&*id)) {
            input.str()?;
        }
        self.members(type_code, input).map(Value::Parts)
    }

    /// The members of a struct, exception or value type.
    fn members(&mut self, type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Vec<DynAny>, DynAnyError> {
        let mut members = Vec::new();
        for (_, member) in members_of(type_code)? {
            members.push(self.read(&member, input)?);
        }
        Ok(members)
    }

    fn sequence(&mut self, type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
        let len = input.sequence_len(1)?;
        self.elements(type_code, len, input)
    }

    fn elements(&mut self, type_code: &TypeCode, len: usize, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
        let element = type_code.content_type()?;
        // Collected without a size hint, since the length is not validated yet.
        let mut elements = Vec::new();
        for _ in 0..len {
            elements.push(self.read(&element, input)?);
        }
        Ok(Value::Parts(elements))
    }

    fn union(&mut self, type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
        let discriminator = self.read(&type_code.discriminator_type()?, input)?;
        let label = label_of(&discriminator)?;
        let mut parts = vec![discriminator];
        if let Some(index) = type_code.selected_member(label)? {
            parts.push(self.read(&type_code.member_type(index)?, input)?);
        }
        Ok(Value::Parts(parts))
    }

    /// A value of a value type, or null.
    fn value_type(&mut self, declared: &TypeCode, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
        let started = match input.start_value()? {
            ValueStart::Nil => return Ok(Value::Nothing),
            ValueStart::Indirection(at) => return self.repetition(at, declared, input),
            ValueStart::New(started) => started,
        };
        let Link { id, type_code } = self.begin_value(&started, declared, input)?;
        self.meter.enter_value()?;
        let parts = self.state(&type_code, input);
        self.meter.leave_value();
        let parts = parts?;
        input.leave_value(&started)?;
        Ok(Value::State(State { id, type_code, parts }))
    }

    /// Decodes the identity of the next value, and its type.
    fn begin_value(
        &mut self,
        started: &StartedValue,
        declared: &TypeCode,
        input: &Decoder<'_>,
    ) -> Result<Link, DynAnyError> {
        // A derived value is truncated to a known type, which only chunks permit (9.3.4.3).
        let Some((nth, type_code)) = started.state_type(declared, input) else {
            let id = started.ids().first().map(|id| &**id).or(declared.id().ok()).unwrap_or_default();
            return Err(CdrError::UnknownValue { repository_id: id.into() }.into());
        };
        if nth > 0 && !self.meter.truncates {
            return Err(DynAnyError::MustTruncate);
        }
        if bases_of(&type_code)?.iter().any(|type_code| type_code.type_modifier() == Ok(ValueModifier::Custom)) {
            return Err(
                CdrError::Malformed("the state of a custom value type can be decoded by its own code only").into()
            );
        }
        let link = Link { id: ValueId::new(), type_code };
        self.read_values.insert(started.position(), link.clone());
        Ok(link)
    }

    fn state(&mut self, type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Vec<DynAny>, DynAnyError> {
        if type_code.kind() == TcKind::ValueBox {
            return Ok(vec![self.read(&type_code.content_type()?, input)?]);
        }
        self.members(type_code, input)
    }

    /// A repetition of an earlier value.
    fn repetition(&mut self, at: usize, declared: &TypeCode, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
        match self.read_values.get(&at) {
            Some(link) if link.type_code.derives_from(declared) => Ok(Value::Link(link.clone())),
            Some(_) => Err(CdrError::Malformed("a value is not of the type that its position declares").into()),
            // It was skipped with the additions of a derived type to its base.
            None => input.read_skipped_value(at, |there| Ok(self.value_type(declared, there)))?,
        }
    }
}

fn read_leaf(type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Value, DynAnyError> {
    Ok(match type_code.kind() {
        TcKind::Null | TcKind::Void => Value::Nothing,
        TcKind::AbstractInterface => Value::Leaf(Leaf::Reference(Ior::decode(input)?)),
        _ => Value::Leaf(Leaf::read(type_code, input)?),
    })
}

/// Converts components to octets.
struct Writer<'d> {
    whole: &'d DynAny,
    /// All values with their states, collected on first use.
    states: OnceCell<HashMap<ValueId, &'d DynAny>>,
    /// The positions of encoded values.
    places: RefCell<HashMap<ValueId, usize>>,
    /// The number of enclosing values: the state of a repeated value may be inside another that repeats it.
    depth: Cell<u16>,
    /// The types of values that differ from their declared types.
    types: RefCell<ValueTypes>,
}

impl<'d> Writer<'d> {
    fn new(whole: &'d DynAny) -> Self {
        Self {
            whole,
            states: OnceCell::new(),
            places: RefCell::default(),
            depth: Cell::new(0),
            types: RefCell::default(),
        }
    }

    /// Encodes the value without its type code; that of an exception begins with its id.
    fn write(&self, value: &'d DynAny, out: &mut Encoder<'d>) -> Result<(), CdrError> {
        let resolved = value.resolved();
        let is_abstract = resolved.kind() == TcKind::AbstractInterface;
        match &value.value {
            Value::Leaf(Leaf::Reference(ior)) if is_abstract && ior.is_nil() => {
                out.bool(false);
                out.u32(0);
                Ok(())
            }
            Value::Leaf(leaf) => {
                if is_abstract {
                    out.bool(true);
                }
                if let Leaf::Any(any) = leaf {
                    DynAny::add_types(any, &mut self.types.borrow_mut());
                }
                leaf.write(&resolved, out)
            }
            Value::Nothing => {
                if !matches!(resolved.kind(), TcKind::Null | TcKind::Void) {
                    out.u32(0);
                }
                Ok(())
            }
            Value::Parts(parts) => {
                match resolved.kind() {
                    TcKind::Sequence => out.len(parts.len())?,
                    TcKind::Except => out.short_str(resolved.id().unwrap_or_default())?,
                    _ => {}
                }
                parts.iter().try_for_each(|part| self.write(part, out))
            }
            Value::State(State { id, type_code, .. }) | Value::Link(Link { id, type_code }) => {
                if is_abstract {
                    out.bool(false);
                }
                if is_abstract || resolved.id() != type_code.id() {
                    self.types.borrow_mut().add(type_code);
                }
                self.write_value(*id, value, out)
            }
        }
    }

    /// Encodes a value of a value type, or an indirection to it.
    fn write_value(&self, id: ValueId, value: &'d DynAny, out: &mut Encoder<'d>) -> Result<(), CdrError> {
        if let Some(&at) = self.places.borrow().get(&id) {
            return out.copy_indirection(at);
        }
        let original = match &value.value {
            Value::State(state) => Some(state),
            _ => self.states.get_or_init(|| self.whole.states()).get(&id).and_then(|value| match &value.value {
                Value::State(state) => Some(state),
                _ => None,
            }),
        };
        let State { type_code, parts, .. } =
            original.ok_or(CdrError::Malformed("a repeated value has its state outside the encoded value"))?;
        let limit = out.wire().limits.value_nesting;
        if self.depth.get() >= limit {
            return Err(CdrError::TooDeep { limit });
        }
        let ids = truncatable_to(type_code)?;
        // Truncatable values are in chunks, so that a base's decoder can skip additions (9.3.4.3).
        let at = out.copy_header(&ids, ids.len() > 1)?;
        self.places.borrow_mut().insert(id, at);
        self.depth.set(self.depth.get() + 1);
        parts.iter().try_for_each(|part| self.write(part, out))?;
        self.depth.set(self.depth.get() - 1);
        out.end_copy()
    }
}

/// The repository id of a value type, and those of the bases to which its values may be truncated, nearest
/// first.
fn truncatable_to(type_code: &TypeCode) -> Result<Vec<std::sync::Arc<str>>, CdrError> {
    let bases = bases_of(type_code).map_err(|_| CdrError::Malformed("a value type has too many bases"))?;
    let mut ids = Vec::new();
    for type_code in bases {
        ids.push(type_code.id().unwrap_or_default().into());
        if type_code.type_modifier() != Ok(ValueModifier::Truncatable) {
            break;
        }
    }
    Ok(ids)
}
