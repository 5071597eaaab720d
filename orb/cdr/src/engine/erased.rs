//! Arguments and results of operations without their types, so that one piece of code invokes and serves all operations.
//!
//! A [`Value`] is a borrowed argument that knows how it is written. A [`Place`] is room for results of a type that whoever
//! fills it need not know; [`receive`] makes one, and gives what it was filled with. [`Arguments`] are what an
//! operation takes, where texts and sequences are lent from the message, and [`Results`] what it returns.

use std::{
    borrow::Cow,
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit},
    ops::Deref,
    slice,
};

use super::{
    Interpreted,
    program::{ArrayTable, Op, OpaqueTable, Program},
    read,
    types::{drop_value, program_of},
    write,
};
use crate::{CdrError, Decode, Decoder, Encode, Encoder};

/// A borrowed value that can be written.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    start: *const u8,
    len: usize,
    encode: unsafe fn(*const u8, usize, &mut Encoder<'a>) -> Result<(), CdrError>,
    lives: PhantomData<&'a ()>,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").finish_non_exhaustive()
    }
}

impl<'a> Value<'a> {
    /// A value of a type with a table.
    #[inline]
    pub fn of<T: Interpreted>(value: &'a T) -> Self {
        Self { start: std::ptr::from_ref(value).cast(), len: 1, encode: encode_one::<T>, lives: PhantomData }
    }

    /// A sequence.
    #[inline]
    pub fn sequence<T: Interpreted>(items: &'a [T]) -> Self {
        Self { start: items.as_ptr().cast(), len: items.len(), encode: encode_sequence::<T>, lives: PhantomData }
    }

    /// A string.
    #[inline]
    #[must_use]
    pub fn text(text: &'a str) -> Self {
        Self { start: text.as_ptr(), len: text.len(), encode: encode_text, lives: PhantomData }
    }

    /// A value that codes itself.
    #[inline]
    pub fn coded<T: Encode>(value: &'a T) -> Self {
        Self { start: std::ptr::from_ref(value).cast(), len: 1, encode: encode_coded::<T>, lives: PhantomData }
    }

    /// Writes the value.
    ///
    /// # Errors
    /// As [`Encode::encode`].
    pub fn encode(&self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        // SAFETY: the function is that for what is there, for as long as `'a`.
        unsafe { (self.encode)(self.start, self.len, out) }
    }
}

/// # Safety
/// A `T` is there, for as long as what the encoder is lent.
unsafe fn encode_one<T: Interpreted>(value: *const u8, _: usize, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    // SAFETY: as above.
    unsafe { write::value(T::PROGRAM.ops, value, out) }
}

/// # Safety
/// So many `T`s are there, for as long as what the encoder is lent.
unsafe fn encode_sequence<T: Interpreted>(items: *const u8, len: usize, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    // SAFETY: as above.
    unsafe { encode_elements(T::PROGRAM, items, len, out) }
}

/// # Safety
/// So many values of this type are there, for as long as what the encoder is lent.
unsafe fn encode_elements(
    program: &'static Program,
    items: *const u8,
    len: usize,
    out: &mut Encoder<'_>,
) -> Result<(), CdrError> {
    out.len(len)?;
    // SAFETY: as above.
    unsafe { write::slice(program, items, len, out) }
}

/// # Safety
/// A text of this length is there, for as long as what the encoder is lent.
unsafe fn encode_text<'a>(text: *const u8, len: usize, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: as above.
    let text: &'a str = unsafe { str::from_utf8_unchecked(slice::from_raw_parts(text, len)) };
    out.str(text)
}

/// # Safety
/// A `T` is there, for as long as what the encoder is lent.
unsafe fn encode_coded<'a, T: Encode + 'a>(value: *const u8, _: usize, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: as above.
    let value: &'a T = unsafe { &*value.cast::<T>() };
    value.encode(out)
}

/// A parameter as it is received; what is lent lives as long as the message.
///
/// # Safety
/// The op, at offset 0, is that of the type.
pub unsafe trait Received<'m>: Sized {
    /// How it is read.
    const OP: Op;
}

// SAFETY: the op is the type's only one, or goes through all of them.
unsafe impl<T: Interpreted> Received<'_> for T {
    const OP: Op = match T::PROGRAM.ops {
        [only] => *only,
        _ => Op::Array { at: 0, table: const { &ArrayTable { element: program_of::<T>, count: 1 } } },
    };
}

// SAFETY: the table is that of the type: a text lent from the decoder's octets for their lifetime.
unsafe impl<'m> Received<'m> for Cow<'m, str> {
    const OP: Op = Op::Opaque {
        at: 0,
        table: &OpaqueTable { encode: never_sent, decode: lend_text, drop: Some(drop_value::<Cow<'static, str>>) },
    };
}

// SAFETY: the table is that of the type: elements lent from the decoder's octets for their lifetime.
unsafe impl<'m, T: Decode + 'static> Received<'m> for Cow<'m, [T]> {
    const OP: Op = Op::Opaque {
        at: 0,
        table: const {
            &OpaqueTable { encode: never_sent, decode: lend_slice::<T>, drop: Some(drop_value::<Cow<'static, [T]>>) }
        },
    };
}

/// # Safety
/// None: nothing is touched.
unsafe fn never_sent(_: *const u8, _: &mut Encoder<'_>) -> Result<(), CdrError> {
    Err(CdrError::Malformed("what was lent from a message is not sent on"))
}

/// # Safety
/// There is room for a `Cow<'m, str>`.
unsafe fn lend_text<'m>(place: *mut u8, input: &mut Decoder<'m>) -> Result<(), CdrError> {
    let text = input.str()?;
    // SAFETY: as above.
    unsafe { place.cast::<Cow<'m, str>>().write(text) };
    Ok(())
}

/// # Safety
/// There is room for a `Cow<'m, [T]>`.
unsafe fn lend_slice<'m, T: Decode + 'static>(place: *mut u8, input: &mut Decoder<'m>) -> Result<(), CdrError> {
    let items = T::lend(input)?;
    // SAFETY: as above.
    unsafe { place.cast::<Cow<'m, [T]>>().write(items) };
    Ok(())
}

/// A list of arguments as received from a message that lives as long as `'m`.
///
/// # Safety
/// The ops are those of the elements, each at its offset, all of them.
pub unsafe trait Arguments<'m>: Sized {
    /// How they are read, one after the other.
    const OPS: &'static [Op];
}

/// A list of results, none of which is lent.
///
/// # Safety
/// As for [`Arguments`], whatever lifetime the octets have that they are read from.
pub unsafe trait Results: Sized {
    /// How they are read, one after the other.
    const OPS: &'static [Op];
}

macro_rules! tuples {
    ($($type:ident $index:tt)*) => {
        // SAFETY: each element, at its offset.
        unsafe impl<'m, $($type: Received<'m>),*> Arguments<'m> for ($($type,)*) {
            const OPS: &'static [Op] = &[$($type::OP.moved(std::mem::offset_of!(Self, $index) as u32)),*];
        }

        // SAFETY: as above; types with tables borrow nothing.
        unsafe impl<$($type: Interpreted),*> Results for ($($type,)*) {
            const OPS: &'static [Op] = <Self as Arguments<'static>>::OPS;
        }
    };
}

tuples!();
tuples!(A 0);
tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);
tuples!(A 0 B 1 C 2 D 3 E 4);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);

/// Room for values that somebody else reads. `'p` is that of one [`receive`], so that no two places can be exchanged.
#[derive(Debug)]
pub struct Place<'p> {
    ops: &'static [Op],
    start: *mut u8,
    is_filled: bool,
    brand: Brand<'p>,
}

/// Proof that the place of this lifetime was filled.
#[derive(Debug)]
pub struct Filled<'p>(Brand<'p>);

/// Neither shorter nor longer than itself.
type Brand<'p> = PhantomData<fn(&'p ()) -> &'p ()>;

impl<'p> Place<'p> {
    /// Reads the values.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    ///
    /// # Panics
    /// If the place was filled already.
    pub fn fill(&mut self, input: &mut Decoder<'_>) -> Result<Filled<'p>, CdrError> {
        assert!(!self.is_filled, "values are read once");
        // SAFETY: there is room for what the ops say, and nothing there yet.
        unsafe { read::value(self.ops, self.start, input)? };
        self.is_filled = true;
        Ok(Filled(PhantomData))
    }

    /// # Safety
    /// The place is empty, and for values that may be lent from what this decoder reads.
    #[inline(never)]
    unsafe fn fill_lending<X: From<CdrError>>(&mut self, input: &Decoder<'_>) -> Result<(), X> {
        // SAFETY: as above.
        unsafe { self.fill_from(input).map_err(X::from) }
    }

    /// # Safety
    /// As [`Place::fill_lending`].
    unsafe fn fill_from(&mut self, input: &Decoder<'_>) -> Result<(), CdrError> {
        // SAFETY: as above.
        unsafe { read::value(self.ops, self.start, &mut input.clone())? };
        self.is_filled = true;
        Ok(())
    }
}

impl Drop for Place<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        if self.is_filled {
            // SAFETY: all parts are there, and nobody took them.
            unsafe { read::drop_parts(self.ops, self.start) };
        }
    }
}

/// The results that `ask` fills its place with.
///
/// # Errors
/// Those of `ask`.
#[inline]
pub fn receive<R: Results, X>(ask: impl for<'p> FnOnce(&mut Place<'p>) -> Result<Filled<'p>, X>) -> Result<R, X> {
    let mut results = MaybeUninit::<R>::uninit();
    let mut place = Place { ops: R::OPS, start: results.as_mut_ptr().cast(), is_filled: false, brand: PhantomData };
    ask(&mut place)?;
    std::mem::forget(place);
    // SAFETY: the proof is that of this place, which was filled with what the tuple's ops say.
    Ok(unsafe { results.assume_init() })
}

/// Reads an operation's arguments, and lends them to `serve` where they are; then they are dropped.
///
/// # Errors
/// As [`Decode::decode`], before `serve` is called, or those of `serve`.
#[inline]
pub fn with_arguments<'m, A: Arguments<'m>, R, X: From<CdrError>>(
    input: &Decoder<'m>,
    serve: impl FnOnce(&mut A) -> Result<R, X>,
) -> Result<R, X> {
    let mut arguments = MaybeUninit::<A>::uninit();
    let mut place = Place { ops: A::OPS, start: arguments.as_mut_ptr().cast(), is_filled: false, brand: PhantomData };
    // SAFETY: there is room for the arguments, which may be lent from what this decoder reads, and after success they are
    // there until the place is dropped.
    unsafe {
        place.fill_lending::<X>(input)?;
        serve(&mut *place.start.cast::<A>())
    }
}

/// A value that is dropped by a call: once for each type, and not wherever one goes out of scope.
#[derive(Debug)]
pub struct Held<T>(ManuallyDrop<T>);

impl<T> Held<T> {
    /// Holds the value.
    #[inline]
    pub fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Held<T> {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: it is dropped here and nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

#[cfg(test)]
mod tests;
