//! What a value is in Rust: traits that generated code implements, and values whose type is forgotten.
//!
//! A concrete or abstract value type `Shape` becomes a trait `Shape`, and whatever is said of it at compile time is said of
//! `dyn Shape`; a boxed value becomes a struct, which stands for itself.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::encoder::values::{About, Cast, Entry};
use crate::{CdrError, Decode, Encode, Encoder, ValueFactory};

/// What every value is (IDL `ValueBase`).
pub trait ValueBase: Any + Send + Sync {}

impl<T: Any + Send + Sync> ValueBase for T {}

/// A type that a position of values can have: `dyn Shape` of a value type `Shape`, or the struct of a boxed value.
pub trait ValueType: Any + Send + Sync {
    /// Its repository id.
    const REPOSITORY_ID: &'static str;

    /// How to make a received value of the type with this id, which is this one or derived from it, if nobody has
    /// registered a factory: what generated code knows by itself.
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
    /// Its members with those of its bases.
    type State: Encode + Decode;
    /// Its repository id, then those of the bases that it may be truncated to, nearest first.
    const IDS: &'static [&'static str];
    /// Whether its state is written by its implementer.
    const IS_CUSTOM: bool = false;
}

/// A value type that the Rust type `I` implements.
pub trait ImplementedBy<I>: ConcreteValue {
    /// Offers the value in each form that a reference to it can have.
    fn offer(value: &Arc<I>, cast: &mut Cast<'_>);

    /// Writes the state, from the highest base down.
    ///
    /// # Errors
    /// A member that the wire cannot say.
    fn encode_state<'a>(value: &'a I, out: &mut Encoder<'a>) -> Result<(), CdrError>;
}

/// A value type that is also a `B`: derived from it, or supporting it.
pub trait IsA<B: ?Sized> {
    /// The same value as a `B`.
    fn upcast(value: Arc<Self>) -> Arc<B>;
}

impl Entry {
    /// A value of type `T`, implemented by `I`.
    pub fn new<T: ImplementedBy<I> + ?Sized, I: Any + Send + Sync>(value: I) -> Self {
        Self { value: Arc::new(value), about: &Of::<T, I>::ABOUT }
    }
}

/// Gives [`About`] the types that it forgets.
struct Of<T: ?Sized, I>(PhantomData<fn(&T, I)>);

impl<T: ImplementedBy<I> + ?Sized, I: Any + Send + Sync> Of<T, I> {
    const ABOUT: About = About {
        ids: T::IDS,
        // What is read by a base's reader has its end found, and so has what a custom reader leaves (9.3.4.3, 9.3.4.5).
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
