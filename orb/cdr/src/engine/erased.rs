//! Type-erased arguments and results of operations, so that one piece of code invokes and serves all
//! operations.
//!
//! A [`Value`] is a borrowed argument with its encoding function. A [`Place`] is room for results of an
//! erased type; [`receive`] creates one, and returns its content. An [`Upcall`] runs a servant with arguments
//! of an erased type. [`Arguments`] are the parameters of an operation, whose texts and sequences are lent
//! from the message, and [`Results`] its results.

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

/// A borrowed value that can be encoded.
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
    /// Borrows a value of a type that has a table.
    #[inline]
    pub fn of<T: Interpreted>(value: &'a T) -> Self {
        Self { start: std::ptr::from_ref(value).cast(), len: 1, encode: encode_one::<T>, lives: PhantomData }
    }

    /// Borrows all results of a servant, in the order of the reply.
    #[inline]
    pub fn returned<R: Returned>(value: &'a R) -> Self {
        Self { start: std::ptr::from_ref(value).cast(), len: 1, encode: encode_returned::<R>, lives: PhantomData }
    }

    /// Borrows the elements of a sequence.
    #[inline]
    pub fn sequence<T: Interpreted>(items: &'a [T]) -> Self {
        Self { start: items.as_ptr().cast(), len: items.len(), encode: encode_sequence::<T>, lives: PhantomData }
    }

    /// Refers to a string, encoded with its length and its final NUL.
    #[inline]
    #[must_use]
    pub fn text(text: &'a str) -> Self {
        Self { start: text.as_ptr(), len: text.len(), encode: encode_text, lives: PhantomData }
    }

    /// Borrows a value that encodes itself.
    #[inline]
    pub fn coded<T: Encode>(value: &'a T) -> Self {
        Self { start: std::ptr::from_ref(value).cast(), len: 1, encode: encode_coded::<T>, lives: PhantomData }
    }

    /// Writes the value, by its table or its own encoding.
    ///
    /// # Errors
    /// As [`Encode::encode`].
    pub fn encode(&self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        // SAFETY: the function is that of the value's type, and the value exists for `'a`.
        unsafe { (self.encode)(self.start, self.len, out) }
    }
}

/// # Safety
/// A `T` exists there, for as long as the encoder's borrows.
unsafe fn encode_one<T: Interpreted>(value: *const u8, _: usize, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    // SAFETY: as above.
    unsafe { write::value(T::PROGRAM.ops, value, out) }
}

/// # Safety
/// An `R` exists there, for as long as the encoder's borrows.
unsafe fn encode_returned<R: Returned>(value: *const u8, _: usize, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    // SAFETY: as above.
    unsafe { write::value(R::OPS, value, out) }
}

/// # Safety
/// `len` values of type `T` exist there, for as long as the encoder's borrows.
unsafe fn encode_sequence<T: Interpreted>(items: *const u8, len: usize, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    // SAFETY: as above.
    unsafe { encode_elements(T::PROGRAM, items, len, out) }
}

/// # Safety
/// `len` values of this type exist there, for as long as the encoder's borrows.
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
/// A text of this length exists there, for as long as the encoder's borrows.
unsafe fn encode_text<'a>(text: *const u8, len: usize, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: as above.
    let text: &'a str = unsafe { str::from_utf8_unchecked(slice::from_raw_parts(text, len)) };
    out.str(text)
}

/// # Safety
/// A `T` exists there, for as long as the encoder's borrows.
unsafe fn encode_coded<'a, T: Encode + 'a>(value: *const u8, _: usize, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: as above.
    let value: &'a T = unsafe { &*value.cast::<T>() };
    value.encode(out)
}

/// A parameter as received; lent parts live as long as the message.
///
/// # Safety
/// The op, at offset 0, is that of the type.
pub unsafe trait Received<'m>: Sized {
    /// The op that decodes it.
    const OP: Op;
}

// SAFETY: the op is the type's only one, or covers all of them.
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
/// None: the pointer is not used.
unsafe fn never_sent(_: *const u8, _: &mut Encoder<'_>) -> Result<(), CdrError> {
    Err(CdrError::Malformed("a value lent from a message cannot be encoded"))
}

/// # Safety
/// The destination has room for a `Cow<'m, str>`.
unsafe fn lend_text<'m>(storage: *mut u8, input: &mut Decoder<'m>) -> Result<(), CdrError> {
    let text = input.str()?;
    // SAFETY: as above.
    unsafe { storage.cast::<Cow<'m, str>>().write(text) };
    Ok(())
}

/// # Safety
/// The destination has room for a `Cow<'m, [T]>`.
unsafe fn lend_slice<'m, T: Decode + 'static>(storage: *mut u8, input: &mut Decoder<'m>) -> Result<(), CdrError> {
    let items = T::lend(input)?;
    // SAFETY: as above.
    unsafe { storage.cast::<Cow<'m, [T]>>().write(items) };
    Ok(())
}

/// A list of arguments, received from a message that lives as long as `'m`.
///
/// # Safety
/// The ops are those of the elements, each at its offset, and complete.
pub unsafe trait Arguments<'m>: Sized {
    /// The ops that decode them, one after the other.
    const OPS: &'static [Op];
}

/// The results of an operation, received as values that own their memory.
///
/// # Safety
/// As for [`Arguments`], for any lifetime of the decoded octets.
pub unsafe trait Results: Sized {
    /// The ops that decode them, one after the other.
    const OPS: &'static [Op];
}

/// The results of a servant: a value, or a tuple of none or several.
///
/// # Safety
/// The ops are those of all its parts, each at its offset.
pub unsafe trait Returned: Sized {
    /// The ops that encode them, one after the other.
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

/// Room for results, to be filled by other code. `'p` is that of one [`receive`], so that no two places can
/// be exchanged.
#[derive(Debug)]
pub struct Place<'p> {
    ops: &'static [Op],
    start: *mut u8,
    brand: Brand<'p>,
}

/// Proof that the place of this lifetime was filled; until it is handed in, it owns the results.
#[derive(Debug)]
pub struct Filled<'p>(Place<'p>);

impl Drop for Filled<'_> {
    fn drop(&mut self) {
        // SAFETY: all parts exist, and were not moved out.
        unsafe { read::drop_parts(self.0.ops, self.0.start) };
    }
}

/// A lifetime that no other can be substituted for.
type Brand<'p> = PhantomData<fn(&'p ()) -> &'p ()>;

impl<'p> Place<'p> {
    /// Decodes all values of the place, in their order.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    pub fn fill(self, input: &mut Decoder<'_>) -> Result<Filled<'p>, CdrError> {
        // SAFETY: the place has room for the parts of the ops, and is empty: no place is filled twice.
        unsafe { read::value(self.ops, self.start, input)? };
        Ok(Filled(self))
    }
}

/// The results with which `ask` fills its place.
///
/// # Errors
/// The errors of `ask`.
#[inline]
pub fn receive<R: Results, X>(ask: impl for<'p> FnOnce(Place<'p>) -> Result<Filled<'p>, X>) -> Result<R, X> {
    let mut results = MaybeUninit::<R>::uninit();
    std::mem::forget(ask(Place { ops: R::OPS, start: results.as_mut_ptr().cast(), brand: PhantomData })?);
    // SAFETY: the proof belongs to this place, which was filled according to the tuple's ops.
    Ok(unsafe { results.assume_init() })
}

/// The memory layout of a list of arguments.
#[derive(Debug)]
struct Shape {
    ops: &'static [Op],
    room: Layout,
}

/// A servant's part in an operation: takes arguments, and returns an outcome.
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

/// Arguments up to this size are decoded on the stack; nearly all are.
const SMALL: usize = 512;

/// Larger ones up to this size too, at the price of touching fresh stack pages.
const LARGE: usize = 8192;

/// Room for arguments, with the largest alignment of any mapped type.
#[repr(C, align(16))]
struct Room<const N: usize>([MaybeUninit<u8>; N]);

impl<'m, O> Upcall<'_, 'm, O> {
    /// Decodes the arguments in place and lends them to the servant; then they are dropped. `input` then
    /// stands behind them.
    ///
    /// # Errors
    /// As [`Decode::decode`]; then the servant is not called.
    pub fn run(&self, input: &mut Decoder<'m>) -> Result<O, CdrError> {
        let room = self.shape.room;
        if room.align() > align_of::<Room<0>>() || room.size() > LARGE {
            let block = read::Block::new(room);
            // SAFETY: the block has room for them.
            return unsafe { self.run_in(block.start(), input) };
        }
        if room.size() > SMALL { self.run_on_stack::<LARGE>(input) } else { self.run_on_stack::<SMALL>(input) }
    }

    #[inline(never)]
    fn run_on_stack<const N: usize>(&self, input: &mut Decoder<'m>) -> Result<O, CdrError> {
        assert!(self.shape.room.size() <= N);
        let mut room = MaybeUninit::<Room<N>>::uninit();
        // SAFETY: the caller has checked the alignment; the room is large enough.
        unsafe { self.run_in(room.as_mut_ptr().cast(), input) }
    }

    /// # Safety
    /// `room` has room for the arguments.
    unsafe fn run_in(&self, room: *mut u8, input: &mut Decoder<'m>) -> Result<O, CdrError> {
        // SAFETY: by the caller; the arguments may be lent from this decoder's octets.
        unsafe { read::value(self.shape.ops, room, input)? };
        // SAFETY: all of them exist, and are not used after this.
        let _arguments = unsafe { read::Partial::all(self.shape.ops, room) };
        Ok((self.serve)(room))
    }
}

/// Hides the types of an operation's arguments from `run`.
#[inline]
pub fn upcall<'m, A: Arguments<'m>, O, T>(serve: impl Fn(&mut A) -> O, run: impl FnOnce(&Upcall<'_, 'm, O>) -> T) -> T {
    // SAFETY: called only with arguments of the shape's type.
    let serve = |arguments: *mut u8| serve(unsafe { &mut *arguments.cast::<A>() });
    let shape = const { &Shape { ops: A::OPS, room: Layout::new::<A>() } };
    run(&Upcall { shape, serve: &serve, message: PhantomData })
}

/// A value that is dropped by a function call, so that the code of the drop exists once for each type and not
/// wherever one goes out of scope.
#[derive(Debug)]
pub struct Held<T>(ManuallyDrop<T>);

impl<T> Held<T> {
    /// Takes a value that only a call drops.
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
        // SAFETY: it is dropped here only.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

#[cfg(test)]
mod tests;
