//! Arguments and results of operations without their types, so that one piece of code invokes and serves all operations.
//!
//! A [`Value`] is a borrowed argument that knows how it is written. A [`Place`] is room for results of a type that whoever
//! fills it need not know; [`receive`] makes one, and gives what it was filled with. An [`Upcall`] runs a servant that wants
//! arguments of a type that whoever reads them need not know. [`Arguments`] are what an operation takes, where texts and
//! sequences are lent from the message, and [`Results`] what it returns.

use std::{
    alloc::Layout,
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

    /// All that a servant returned.
    #[inline]
    pub fn returned<R: Returned>(value: &'a R) -> Self {
        Self { start: std::ptr::from_ref(value).cast(), len: 1, encode: encode_returned::<R>, lives: PhantomData }
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
/// An `R` is there, for as long as what the encoder is lent.
unsafe fn encode_returned<R: Returned>(value: *const u8, _: usize, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    // SAFETY: as above.
    unsafe { write::value(R::OPS, value, out) }
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

/// What a servant returns: a value, or a tuple of none or several.
///
/// # Safety
/// The ops are those of all its parts, each at its offset.
pub unsafe trait Returned: Sized {
    /// How they are written, one after the other.
    const OPS: &'static [Op];
}

// SAFETY: the table is that of the type.
unsafe impl<T: Interpreted> Returned for T {
    const OPS: &'static [Op] = T::PROGRAM.ops;
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

        // SAFETY: as above.
        unsafe impl<$($type: Interpreted),*> Returned for ($($type,)*) {
            const OPS: &'static [Op] = <Self as Results>::OPS;
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
    brand: Brand<'p>,
}

/// Proof that the place of this lifetime was filled; until it is handed in, it owns what is there.
#[derive(Debug)]
pub struct Filled<'p>(Place<'p>);

impl Drop for Filled<'_> {
    fn drop(&mut self) {
        // SAFETY: all parts are there, and nobody took them.
        unsafe { read::drop_parts(self.0.ops, self.0.start) };
    }
}

/// Neither shorter nor longer than itself.
type Brand<'p> = PhantomData<fn(&'p ()) -> &'p ()>;

impl<'p> Place<'p> {
    /// Reads the values.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    pub fn fill(self, input: &mut Decoder<'_>) -> Result<Filled<'p>, CdrError> {
        // SAFETY: there is room for what the ops say, and nothing there yet: no place is filled twice.
        unsafe { read::value(self.ops, self.start, input)? };
        Ok(Filled(self))
    }
}

/// The results that `ask` fills its place with.
///
/// # Errors
/// Those of `ask`.
#[inline]
pub fn receive<R: Results, X>(ask: impl for<'p> FnOnce(Place<'p>) -> Result<Filled<'p>, X>) -> Result<R, X> {
    let mut results = MaybeUninit::<R>::uninit();
    std::mem::forget(ask(Place { ops: R::OPS, start: results.as_mut_ptr().cast(), brand: PhantomData })?);
    // SAFETY: the proof is that of this place, which was filled with what the tuple's ops say.
    Ok(unsafe { results.assume_init() })
}

/// What a list of arguments needs.
#[derive(Debug)]
struct Shape {
    ops: &'static [Op],
    room: Layout,
}

/// A servant's part in an operation: wants arguments, and makes an outcome of them.
pub struct Upcall<'s, 'm, O> {
    shape: &'static Shape,
    serve: &'s dyn Fn(*mut u8) -> O,
    message: Brand<'m>,
}

impl<O> fmt::Debug for Upcall<'_, '_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upcall").field("shape", self.shape).finish_non_exhaustive()
    }
}

/// Arguments up to this size are kept on the stack; nearly all are.
const SMALL: usize = 512;

/// So are these, at the price of touching pages that nobody may have used before.
const LARGE: usize = 8192;

/// Room for arguments, of the largest alignment that types of ours have.
#[repr(C, align(16))]
struct Room<const N: usize>([MaybeUninit<u8>; N]);

impl<'m, O> Upcall<'_, 'm, O> {
    /// Reads the arguments, and lends them to the servant where they are; then they are dropped.
    ///
    /// # Errors
    /// As [`Decode::decode`]; the servant is not called then.
    pub fn run(&self, input: &Decoder<'m>) -> Result<O, CdrError> {
        let room = self.shape.room;
        if room.align() > align_of::<Room<0>>() || room.size() > LARGE {
            let block = read::Block::new(room);
            // SAFETY: the block has room for them.
            return unsafe { self.run_in(block.start(), input) };
        }
        if room.size() > SMALL { self.run_on_stack::<LARGE>(input) } else { self.run_on_stack::<SMALL>(input) }
    }

    #[inline(never)]
    fn run_on_stack<const N: usize>(&self, input: &Decoder<'m>) -> Result<O, CdrError> {
        assert!(self.shape.room.size() <= N);
        let mut room = MaybeUninit::<Room<N>>::uninit();
        // SAFETY: the caller has looked at the alignment; the room is large enough.
        unsafe { self.run_in(room.as_mut_ptr().cast(), input) }
    }

    /// # Safety
    /// There is room for the arguments.
    unsafe fn run_in(&self, room: *mut u8, input: &Decoder<'m>) -> Result<O, CdrError> {
        // SAFETY: by the caller; the arguments may be lent from what this decoder reads.
        unsafe { read::value(self.shape.ops, room, &mut input.clone())? };
        // SAFETY: all of them are there, and nobody uses them after this.
        let _arguments = unsafe { read::Partial::all(self.shape.ops, room) };
        Ok((self.serve)(room))
    }
}

/// Hides the types of what an operation takes from `run`.
#[inline]
pub fn upcall<'m, A: Arguments<'m>, O, T>(serve: impl Fn(&mut A) -> O, run: impl FnOnce(&Upcall<'_, 'm, O>) -> T) -> T {
    // SAFETY: called only where the arguments are that the shape describes.
    let serve = |arguments: *mut u8| serve(unsafe { &mut *arguments.cast::<A>() });
    let shape = const { &Shape { ops: A::OPS, room: Layout::new::<A>() } };
    run(&Upcall { shape, serve: &serve, message: PhantomData })
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
