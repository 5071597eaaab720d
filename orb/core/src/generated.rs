//! The items that generated code uses, and nothing else. Not a public interface: it changes with the
//! compiler.

pub use std::{borrow::Cow, sync::Arc};

pub use spandrel_cdr::{
    AbstractRef, Cast, ConcreteValue, ImplementedBy, IsA, Linked, PlainFactory, ValueBase, ValueFactory, ValueRef,
    ValueType,
};
pub use spandrel_cdr::{
    Any, BoundedString, BoundedVec, BoundedWString, CdrError, Char, Decode, Decoder, Defining, Encode, Encoder, Fixed,
    FixedSize, FromBound, Ior, Label, LongDouble, Pad, Reference, TypeCode, Typed, ValueModifier, Visibility, WString,
    Wide, decode_fixed_vec, encode_fixed_slice, encode_padded_slice, lend_padded, zerocopy,
};
pub use spandrel_cdr::{
    engine::{Compiled, Value},
    interpret,
};
pub use spandrel_giop::SystemException;

#[cfg(feature = "asynchronous")]
pub use crate::AsyncReply;
pub use crate::exceptions::{describe_exception, describe_exception_text, not_implemented};
pub use crate::interpreted;
#[cfg(feature = "asynchronous")]
pub use crate::messaging::{ExceptionHolder, Poller, ReplyHandler, send_to_handler};
pub use crate::{Context, Interface, ObjectRef, UserException, UserExceptions};
