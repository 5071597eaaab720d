//! The items that generated code uses, and nothing else. Not a public interface: it changes with the
//! compiler.

mod errors;
pub mod interpreted;
mod references;
mod types;

pub use std::{
    borrow::Cow,
    error::Error,
    fmt::{self, Debug, Display, Formatter},
    ops::Deref,
    sync::Arc,
};
// Those of the prelude, for the macros.
pub use std::{
    clone::Clone,
    cmp::{Eq, Ord, Ordering, PartialEq, PartialOrd},
    convert::{From, TryFrom},
    option::Option::{self, None, Some},
    result::Result::{self, Err, Ok},
    vec::Vec,
};

pub use errors::{clone_error, debug_error, display_error, equal_errors, error_source};
pub use references::{call, call_oneway, debug_reference, widen};
pub use spandrel_cdr::{
    AbstractRef, Cast, ConcreteValue, ImplementedBy, IsA, Linked, PlainFactory, ValueBase, ValueFactory, ValueRef,
    ValueType,
};
pub use spandrel_cdr::{
    Any, BoundedString, BoundedVec, BoundedWString, CdrError, Char, CompiledEnumeration, Decode, Decoder, Defining,
    Encode, Encoder, Enumeration, ExtractError, Fixed, FixedSize, Label, LongDouble, Pad, ReferencePointer, TypeCode,
    TypeDefinition, Typed, TypedReference, ValueModifier, Visibility, WString, Wide, decode_fixed_vec,
    encode_fixed_slice, encode_padded_slice, enumerator, lend_padded, zerocopy,
};
pub use spandrel_cdr::{
    definitions::{abstract_interface, alias, enumeration, exception, object_reference, structure},
    engine::{Compiled, Value},
    interpret,
};
pub use spandrel_giop::SystemException;
pub use types::{
    array_code, clone, compare_enumerators, decode, encode, encode_enumerator, min_octets, native_code, partial_order,
    sequence_code,
};

pub use crate::reference::exceptions::{
    ErrorEnum, Raised, SystemVariant, Variants, debug_exception, describe_exception, describe_exception_text,
    not_implemented, variant,
};
#[cfg(feature = "asynchronous")]
pub use crate::{
    AsyncReply,
    call::{
        asynchronous::generated::{call_async, call_oneway_async},
        messaging::{ExceptionHolder, Poller, ReplyHandler, send_to_handler},
    },
};
pub use crate::{Context, Interface, IntoError, ObjectRef, UserException, UserExceptions};
pub use crate::{
    generated_alias as alias, generated_enumeration as enumeration, generated_equal as equal,
    generated_errors as errors, generated_exception as exception,
    generated_interpreted_enumeration as interpreted_enumeration, generated_local_errors as local_errors,
    generated_local_exception as local_exception, generated_local_structure as local_structure,
    generated_ordered as ordered, generated_reference as reference, generated_root_alias as root_alias,
    generated_structure as structure, generated_typed as typed,
};

/// The result of `fmt` in generated code.
pub type Formatted = fmt::Result;

/// The formatter of `fmt` in generated code.
pub type Format<'a, 'f> = &'a mut Formatter<'f>;

/// The input of `decode` in generated code.
pub type Input<'a, 'm> = &'a mut Decoder<'m>;

/// The result of `source` in generated code.
pub type Cause<'a> = Option<&'a (dyn Error + 'static)>;

/// The result of `encode` in generated code.
pub type Encoded = Result<(), CdrError>;

/// The result of `partial_cmp` in generated code.
pub type PartialOrdering = Option<Ordering>;

/// The result of `decode` in generated code.
pub type Decoded<T> = Result<T, CdrError>;
