//! The interface between an adapter and a servant behind its skeleton.

use std::any::Any;

use spandrel_demux::Operations;
use spandrel_giop::SystemException;
use spandrel_orb::{Interface, ObjectRef};
use spandrel_sync::Arc;

use super::call::{Replied, ServerCall};

/// An implementation of an interface, to which requests are dispatched; generated skeletons implement it.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod server { pub use spandrel_server::*; } }
/// use spandrel::SystemException;
/// use spandrel::server::{Replied, Servant, ServerCall};
///
/// /// A servant without generated code: each operation returns its own name.
/// struct Echo;
///
/// impl Servant for Echo {
///     fn repository_id(&self) -> &str {
///         "IDL:Demo/Echo:1.0"
///     }
///
///     fn is_a(&self, repository_id: &str) -> bool {
///         repository_id == self.repository_id()
///     }
///
///     fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
///         match operation.strip_prefix('_') {
///             Some(_) => call.implicit(self), // `_is_a` and other operations of every object
///             None => call.reply(|out| out.str(operation)),
///         }
///     }
/// }
/// // Poa::root(&orb)?.activate(Echo)? returns a reference.
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a servant for an object adapter",
    label = "a skeleton is missing around this value",
    note = "if `{Self}` implements a servant trait such as `AccountServant`, wrap it in the skeleton of the same \
            interface: `AccountSkeleton::new(…)`, or `AccountAsyncSkeleton::new(…)` for an asynchronous servant",
    note = "otherwise implement `Servant`, which dispatches requests by the names of operations"
)]
pub trait Servant: AnyServant + Send + Sync {
    /// The repository id of the most derived interface.
    fn repository_id(&self) -> &str;

    /// Whether the servant supports the interface with this repository id.
    fn is_a(&self, repository_id: &str) -> bool;

    /// Whether the object does not exist, although it has a servant (`_non_existent`). Default servants and
    /// dynamic servants, which run the requests of many objects, may return true.
    fn non_existent(&self) -> bool {
        false
    }

    /// The description of its interface in an interface repository, if there is one (`_interface`).
    fn interface(&self) -> Option<ObjectRef> {
        None
    }

    /// The component of which the object is a facet, if there is one (`_component`).
    fn component(&self) -> Option<ObjectRef> {
        None
    }

    /// Whether operations return futures, which the ORB's executor polls after the upcall has returned.
    fn is_asynchronous(&self) -> bool {
        false
    }

    /// Puts the skeleton into `place`, if that is a cell for one of its interfaces. Stubs in the same process
    /// then call it without marshaling. Skeletons without direct calls leave the cell empty.
    fn direct(self: Arc<Self>, place: &mut dyn Any) {
        _ = place;
    }

    /// The table of operations; empty for servants that compare names themselves.
    fn operations(&self) -> &'static Operations {
        Operations::NONE
    }

    /// Runs the operation with this index and replies to the call.
    ///
    /// # Errors
    /// The system exception to reply with instead.
    fn upcall(&self, operation: usize, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        _ = operation;
        call.refuse()
    }

    /// Runs an operation and replies to the call, for servants without a table of
    /// [`operations`](Self::operations).
    ///
    /// # Errors
    /// The system exception to reply with instead.
    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        _ = operation;
        call.refuse()
    }
}

/// Access to the concrete type of a servant. One that borrows has none, since `Any` needs `'static`. All
/// types implement the trait.
pub trait AnyServant {
    /// The skeleton as `Any`, to be downcast.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>
    where
        Self: 'static;

    /// The borrowed skeleton as `Any`, to be downcast.
    fn as_any(&self) -> &dyn Any
    where
        Self: 'static;
}

impl<T: Send + Sync> AnyServant for T {
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>
    where
        Self: 'static,
    {
        self
    }

    fn as_any(&self) -> &dyn Any
    where
        Self: 'static,
    {
        self
    }
}

impl dyn Servant {
    /// The servant behind the common type: a servant manager gets back what it has made. With generated code `T` is
    /// the skeleton, whose field `0` is the implementation, as in `servant.downcast::<AccountSkeleton<Savings>>()`.
    ///
    /// ```
    /// # mod spandrel { pub mod server { pub use spandrel_server::*; } }
    /// use std::sync::Arc;
    ///
    /// use spandrel::server::Servant;
    /// # struct Account { cents: i64 }
    /// # impl Servant for Account {
    /// #     fn repository_id(&self) -> &str { "IDL:Bank/Account:1.0" }
    /// #     fn is_a(&self, _: &str) -> bool { false }
    /// # }
    ///
    /// let servant: Arc<dyn Servant> = Arc::new(Account { cents: 500 });
    /// let account = servant.downcast::<Account>().ok().expect("an account");
    /// assert_eq!(account.cents, 500);
    /// ```
    ///
    /// # Errors
    /// The servant itself, if it has another type.
    pub fn downcast<T: Servant + 'static>(self: Arc<Self>) -> Result<Arc<T>, Arc<Self>> {
        // The method of the servant, and not that of the `Arc`, which has a type of its own.
        match <Self as AnyServant>::into_any(Arc::clone(&self)).downcast() {
            Ok(servant) => Ok(servant),
            Err(_) => Err(self),
        }
    }

    /// As `downcast`, of a borrowed servant.
    pub fn downcast_ref<T: Servant + 'static>(&self) -> Option<&T> {
        <Self as AnyServant>::as_any(self).downcast_ref()
    }
}

/// An interface whose objects an asynchronous servant of type `S` can serve, or an `Arc` of it. Generated references
/// implement it if the IDL is compiled with asynchronous servants.
#[diagnostic::on_unimplemented(
    message = "`{S}` does not serve objects of the interface `{Self}` asynchronously",
    label = "the asynchronous servant trait of `{Self}` is not implemented",
    note = "a value serves an interface `Account` if it implements `AccountAsyncServant`, which the build script \
            generates with `.asynchronous_server(true)`; for `AccountServant` there is `serve`"
)]
pub trait ServedAsyncBy<S>: Interface {
    /// Wraps a servant in the skeleton that decodes requests and polls the futures of its methods.
    fn async_skeleton(servant: S) -> Arc<dyn Servant>;
}
