//! Values in Rust: the traits that generated code implements, and type-erased values.
//!
//! A concrete or abstract value type `Shape` becomes a trait `Shape`, with its compile-time properties on
//! `dyn Shape`; a boxed value becomes a struct with these properties itself.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::encoder::values::{Cast, Entry, EntryVtable};
use crate::{CdrError, Decode, Encode, Encoder, ValueFactory};

/// The base of all value types (IDL `ValueBase`).
pub trait ValueBase: Any + Send + Sync {}

impl<T: Any + Send + Sync> ValueBase for T {}

/// The type of a position of values: `dyn Shape` of a value type `Shape`, or the struct of a boxed value.
pub trait ValueType: Any + Send + Sync {
    /// The repository id of the type, or of its IDL `#pragma ID`.
    const REPOSITORY_ID: &'static str;

    /// The generated factory for received values of the type with this id, this one or a derived one. It is
    /// used without a registered factory.
    #[must_use]
    fn known(repository_id: &str) -> Option<&'static dyn ValueFactory> {
        let _ = repository_id;
        None
    }
}

impl ValueType for dyn ValueBase {
    const REPOSITORY_ID: &'static str = "IDL:omg.org/CORBA/ValueBase:1.0";
}

/// A value type with state: not an abstract one.
pub trait ConcreteValue: ValueType {
    /// The state members in the order of their encoding, those of its bases first.
    type State: Encode + Decode;
    /// Its repository id, then those of the bases that it may be truncated to, nearest first.
    const IDS: &'static [&'static str];
    /// Whether its state has a custom encoding.
    const IS_CUSTOM: bool = false;
}

/// A value type that the Rust type `I` implements.
pub trait ImplementedBy<I>: ConcreteValue {
    /// Offers the value in each form that a reference to it can have.
    fn offer(value: &Arc<I>, cast: &mut Cast<'_>);

    /// Encodes the state, from the topmost base down.
    ///
    /// # Errors
    /// A member that cannot be encoded.
    fn encode_state<'a>(value: &'a I, out: &mut Encoder<'a>) -> Result<(), CdrError>;
}

/// A value type that is also a `B`: derived from it, or supporting it.
pub trait IsA<B: ?Sized> {
    /// The same value as a `B`.
    fn upcast(value: Arc<Self>) -> Arc<B>;
}

impl Entry {
    /// Erases the type of a value that is implemented by `I`.
    pub fn new<T: ImplementedBy<I> + ?Sized, I: Any + Send + Sync>(value: I) -> Self {
        Self { value: Arc::new(value), vtable: &VtableOf::<T, I>::VTABLE }
    }
}

/// Creates the [`EntryVtable`] of a type.
struct VtableOf<T: ?Sized, I>(PhantomData<fn(&T, I)>);

impl<T: ImplementedBy<I> + ?Sized, I: Any + Send + Sync> VtableOf<T, I> {
    const VTABLE: EntryVtable = EntryVtable {
        ids: T::IDS,
        // A base's reader leaves additions of derived types, and a custom reader may leave a rest: both are
        // skipped (9.3.4.3, 9.3.4.5).
        is_chunked: T::IS_CUSTOM || T::IDS.len() > 1,
        cast: |value, cast| {
            if let Ok(value) = Arc::clone(value).downcast::<I>() {
                T::offer(&value, cast);
                cast.offer::<dyn ValueBase>(|| value);
            }
        },
        encode: |value, out| {
            let value = value.downcast_ref::<I>().expect("an entry is made together with its description");
            T::encode_state(value, out)
        },
    };
}
