//! Factories of received values.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{ConcreteValue, ImplementedBy};
use crate::{CdrError, Decode, Decoder, Entry, ValueFactory};

/// The factory of values without operations, which consist of their state.
#[derive(Debug)]
pub struct PlainFactory<T: ?Sized>(PhantomData<fn(&T)>);

impl<T: ?Sized> PlainFactory<T> {
    /// The factory, which has no state.
    pub const NEW: Self = Self(PhantomData);
}

impl<T> ValueFactory for PlainFactory<T>
where
    T: ConcreteValue + ImplementedBy<<T as ConcreteValue>::State> + ?Sized,
    T::State: Any + Send + Sync,
{
    fn read(&self, input: &mut Decoder<'_>) -> Result<Entry, CdrError> {
        T::State::decode(input).map(Entry::new::<T, T::State>)
    }
}

/// The factory of custom values, which a function reads from their octets.
struct FromInput<T: ?Sized, F>(F, PhantomData<fn(&T)>);

impl<T, I, F> ValueFactory for FromInput<T, F>
where
    T: ImplementedBy<I> + ?Sized,
    I: Any + Send + Sync,
    F: Fn(&mut Decoder<'_>) -> Result<I, CdrError> + Send + Sync,
{
    fn read(&self, input: &mut Decoder<'_>) -> Result<Entry, CdrError> {
        (self.0)(input).map(Entry::new::<T, I>)
    }
}

/// A factory of values with the operations of `I`: `make` gets the received state.
pub fn value_factory<T, I>(make: impl Fn(T::State) -> I + Send + Sync + 'static) -> Arc<dyn ValueFactory>
where
    T: ImplementedBy<I> + ?Sized,
    I: Any + Send + Sync,
{
    custom_factory::<T, I>(move |input| T::State::decode(input).map(&make))
}

/// A factory of values of a custom type: `read` reads the output of their `marshal`.
pub fn custom_factory<T, I>(
    read: impl Fn(&mut Decoder<'_>) -> Result<I, CdrError> + Send + Sync + 'static,
) -> Arc<dyn ValueFactory>
where
    T: ImplementedBy<I> + ?Sized,
    I: Any + Send + Sync,
{
    Arc::new(FromInput::<T, _>(read, PhantomData))
}
