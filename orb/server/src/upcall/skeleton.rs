//! Skeletons: they pass the requests for objects of an interface to an implementation of its servant trait.

use std::{
    any::Any,
    fmt::{self, Debug, Formatter},
    marker::PhantomData,
};

use spandrel_demux::Operations;
use spandrel_giop::SystemException;
use spandrel_orb::{Interface, internal::OBJECT_ID};
use spandrel_sync::Arc;

use super::{
    call::{Replied, ServerCall},
    servant::Servant,
};

/// A servant of the interface `I` for an object adapter: it decodes the arguments of requests and calls `S`, which
/// implements the servant trait of the interface, or is an `Arc` of an implementation.
///
/// Generated code has an alias for each interface, as in `AccountSkeleton::new(Savings::default())`.
pub struct Skeleton<I, S>(pub S, PhantomData<fn() -> I>);

impl<I, S> Skeleton<I, S> {
    /// Wraps a servant, to be activated in an object adapter.
    pub fn new(servant: S) -> Self {
        Self(servant, PhantomData)
    }
}

impl<I: Interface, S> Debug for Skeleton<I, S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Skeleton").field(&I::REPOSITORY_ID).finish_non_exhaustive()
    }
}

impl<I: ServedBy<S>, S: Send + Sync> Servant for Skeleton<I, S> {
    fn repository_id(&self) -> &str {
        I::REPOSITORY_ID
    }

    fn is_a(&self, repository_id: &str) -> bool {
        [I::REPOSITORY_ID, OBJECT_ID].contains(&repository_id) || I::Access::bases().contains(&repository_id)
    }

    fn direct(self: Arc<Self>, cell: &mut dyn Any) {
        I::Access::direct(self, cell);
    }

    #[inline]
    fn operations(&self) -> &'static Operations {
        I::Access::operations()
    }

    #[inline]
    fn upcall(&self, operation: usize, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        I::Access::upcall(&self.0, self, operation, call)
    }

    /// For an interface without operations.
    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

/// An interface whose objects a value of type `S` can serve: `S` implements the servant trait of the interface, or is
/// an `Arc` of such a servant. Generated references implement it.
#[diagnostic::on_unimplemented(
    message = "`{S}` does not serve objects of the interface `{Self}`",
    label = "the servant trait of `{Self}` is not implemented",
    note = "a value serves an interface `Account` if it implements `AccountServant`; for `AccountAsyncServant` there is \
            `serve_async`"
)]
pub trait ServedBy<S>: Interface + 'static {
    /// The way from `S` to the implementation of the servant trait.
    #[doc(hidden)]
    type Access: Access<Self, S>;

    /// Wraps a servant in the skeleton that decodes requests and calls it.
    fn skeleton(servant: S) -> Arc<dyn Servant>
    where
        S: Send + Sync + 'static,
    {
        Arc::new(Skeleton::<Self, S>::new(servant))
    }
}

/// The dispatch of an interface's requests to an implementation of its servant trait. Generated code implements it for
/// the reference of the interface.
#[doc(hidden)]
pub trait Dispatch<S: ?Sized>: Interface {
    /// The repository ids of the direct and indirect bases.
    const BASES: &'static [&'static str] = &[];

    /// A hash of the names in the table of operations.
    const FINGERPRINT: u32 = 0;

    /// The table of operations, inherited ones included.
    fn operations() -> &'static Operations {
        Operations::NONE
    }

    /// Runs the operation with this index.
    ///
    /// # Errors
    /// The system exception to reply with instead.
    fn upcall_on(
        servant: &S,
        skeleton: &dyn Servant,
        operation: usize,
        call: ServerCall<'_>,
    ) -> Result<Replied, SystemException> {
        _ = (servant, operation);
        call.implicit(skeleton)
    }

    /// [`Servant::direct`] of a skeleton whose servant is not in an `Arc`.
    fn direct(skeleton: Arc<Skeleton<Self, S>>, cell: &mut dyn Any)
    where
        S: Sized,
    {
        _ = (skeleton, cell);
    }
}

/// The way from the contents of a skeleton to the implementation of the servant trait of `I`.
#[doc(hidden)]
pub trait Access<I, S> {
    /// The repository ids of the interface's bases.
    fn bases() -> &'static [&'static str];

    /// The table of operations of the interface.
    fn operations() -> &'static Operations;

    /// As [`Dispatch::upcall_on`], with the contents of the skeleton.
    ///
    /// # Errors
    /// The system exception to reply with instead.
    fn upcall(
        contents: &S,
        skeleton: &dyn Servant,
        operation: usize,
        call: ServerCall<'_>,
    ) -> Result<Replied, SystemException>;

    /// Puts the skeleton into the cell, as [`Servant::direct`] does.
    fn direct(skeleton: Arc<Skeleton<I, S>>, cell: &mut dyn Any) {
        _ = (skeleton, cell);
    }
}

/// The access to an implementation that the skeleton owns.
#[doc(hidden)]
#[derive(Debug)]
pub enum Owned {}

impl<I: Dispatch<S>, S> Access<I, S> for Owned {
    fn bases() -> &'static [&'static str] {
        I::BASES
    }

    #[inline]
    fn operations() -> &'static Operations {
        I::operations()
    }

    #[inline]
    fn upcall(
        contents: &S,
        skeleton: &dyn Servant,
        operation: usize,
        call: ServerCall<'_>,
    ) -> Result<Replied, SystemException> {
        I::upcall_on(contents, skeleton, operation, call)
    }

    fn direct(skeleton: Arc<Skeleton<I, S>>, cell: &mut dyn Any) {
        I::direct(skeleton, cell);
    }
}

/// The access to an implementation in an `Arc`.
#[doc(hidden)]
#[derive(Debug)]
pub enum Shared {}

impl<I: Dispatch<S>, S: ?Sized> Access<I, Arc<S>> for Shared {
    fn bases() -> &'static [&'static str] {
        I::BASES
    }

    #[inline]
    fn operations() -> &'static Operations {
        I::operations()
    }

    #[inline]
    fn upcall(
        contents: &Arc<S>,
        skeleton: &dyn Servant,
        operation: usize,
        call: ServerCall<'_>,
    ) -> Result<Replied, SystemException> {
        I::upcall_on(contents, skeleton, operation, call)
    }
}

/// Runs an operation that the interface `B` declares, for the skeleton of an interface derived from it.
///
/// # Errors
/// The system exception to reply with instead.
#[inline]
pub fn inherited<B: Dispatch<S>, S: ?Sized, N: Into<usize>>(
    servant: &S,
    skeleton: &dyn Servant,
    operation: N,
    call: ServerCall<'_>,
) -> Result<Replied, SystemException> {
    B::upcall_on(servant, skeleton, operation.into(), call)
}

/// As [`inherited`], for a base whose code is generated from another file: it does not compile if that file has other
/// operations than the derived interface's IDL, whose indexes would be those of others.
///
/// # Errors
/// The system exception to reply with instead.
#[inline]
pub fn inherited_external<B: Dispatch<S>, S: ?Sized, N: Into<usize>, const FINGERPRINT: u32>(
    servant: &S,
    skeleton: &dyn Servant,
    operation: N,
    call: ServerCall<'_>,
) -> Result<Replied, SystemException> {
    const { assert!(B::FINGERPRINT == FINGERPRINT, "the stubs of a base interface are generated from other IDL") }
    inherited::<B, S, N>(servant, skeleton, operation, call)
}
