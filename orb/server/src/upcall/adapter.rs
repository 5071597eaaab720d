//! The interface between the server and object adapters, which are implemented in crates above it.
//!
//! An adapter runs no request. It returns an [`Upcall`]: a servant that is in use and ready to run. The
//! server runs the servant, replies and drops the upcall. So everything that the adapter has to end is in one
//! value, and ends also when the servant panics.

use std::{any::Any, cell::Ref, fmt, pin::Pin, rc::Rc};

use spandrel_giop::SystemException;
use spandrel_orb::{BidirectionalPolicy, Located, ObjectRef, Target};
use spandrel_sync::Arc;

use super::{
    executor::{EndpointNumber, RequestExecutor},
    servant::Servant,
};

/// Finds the servants of object keys. Called from many threads at once.
pub trait ObjectAdapter: Send + Sync + fmt::Debug {
    /// Finds the servant for one call on an object, and takes it into use. No lock is held when this returns.
    ///
    /// # Errors
    /// The exception that the call ends with: OBJECT_NOT_EXIST for an unknown key.
    fn resolve(&self, object_key: &[u8], operation: &str, entry: Entry<'_>) -> Result<Resolution, SystemException>;

    /// Locates the object, without running an operation on it (LocateRequest).
    ///
    /// # Errors
    /// The exception that a request would be refused with at present, though the object may exist here.
    fn locate(&self, object_key: &[u8]) -> Result<Located, SystemException>;

    /// The dedicated endpoint at which the objects are called; `None` for all others.
    fn endpoint(&self) -> Option<EndpointNumber> {
        None
    }

    /// Whether the thread that reads requests for the objects may wait before it hands one to an executor: it reads a
    /// dedicated endpoint, and the ORB is not shutting down.
    fn reader_may_wait(&self) -> bool {
        false
    }

    /// The adapter's bidirectional policy, if it has one: whether the object is called over connections that
    /// its own ORB has opened.
    fn bidirectional_policy(&self, object_key: &[u8]) -> Option<BidirectionalPolicy> {
        _ = object_key;
        None
    }

    /// The number of requests that the adapter's managers hold.
    fn held(&self) -> usize {
        0
    }

    /// Ends the waits of all requests when the ORB begins to shut down, so that they are answered now.
    /// Running requests go on.
    fn begin_close(&self) {}

    /// Releases all servants, after the end of the ORB. Called without any lock held.
    fn close(&self);

    /// Returns the adapter as `Any`, for a downcast to its own type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// The kind of a call that enters an adapter, which decides whether it may wait.
pub enum Entry<'e> {
    /// A request, remote or collocated. It may have to wait.
    Request {
        /// The prediction of the request's connection.
        last: &'e dyn LastTarget,
        /// The result of the [wait](Resolution::Wait) before, if the request has waited.
        reservation: Option<Reservation>,
    },
    /// A call in this process that does not marshal. It never waits, and calls no servant manager.
    Direct,
}

/// The position of the last object that a connection's requests were for: adaptive demultiplexing.
pub trait LastTarget {
    /// The position in the adapter's table, if predictions are enabled.
    fn predicted_target(&self) -> Option<u64>;

    /// Records the position of the object that was found now.
    fn record_target(&self, place: u64);
}

/// The place that a request has kept in its adapter while it waited, or [`Placed`](crate::Placed).
pub type Reservation = Box<dyn Any + Send>;

/// A future that is ready when the adapter admits the request.
pub type AdapterWait = Pin<Box<dyn Future<Output = Option<Reservation>> + Send>>;

/// The decision of [`ObjectAdapter::resolve`] on a request.
pub enum Resolution {
    /// The servant was found and is in use.
    Serve(Upcall),
    /// The object is behind another reference, for now.
    Forward(ObjectRef),
    /// The object is behind another reference; the one of the request is invalid from now on.
    ForwardPermanently(ObjectRef),
    /// The request waits, and is then resolved again with the reservation.
    Wait(AdapterWait),
    /// The main thread has to run the request, and resolves it again.
    MainThread,
    /// An executor chooses the thread that runs the request. That thread resolves it again, with the reservation
    /// [`Placed`](crate::Placed).
    Executor {
        /// The executor of the adapter.
        executor: Arc<dyn RequestExecutor>,
        /// The position of the object's id in the object key.
        object_id_at: usize,
    },
    /// The object cannot be called directly at present: a request would have to wait, to be forwarded, or to
    /// be run by another thread. Only for [`Entry::Direct`].
    Marshal,
}

/// A servant that runs one call, and all that ends with the call.
///
/// Its drop ends the use of the servant first, then gives back the thread's turn in the adapter. It stays in
/// the thread that resolved the request; of several upcalls in a thread the last one is dropped first.
#[must_use]
pub struct Upcall {
    servant_use: Rc<dyn ServantUse>,
    ends_before_reply: bool,
}

/// The use of a servant by one call: the adapter's side of an [`Upcall`].
pub trait ServantUse {
    /// The servant, until the use has ended.
    fn servant(&self) -> Ref<'_, Arc<dyn Servant>>;

    /// The identity and policies of the object, for the upcall.
    fn target(&self) -> Ref<'_, dyn Target>;

    /// The servant and the target, at once.
    fn parts(&self) -> (Ref<'_, Arc<dyn Servant>>, Ref<'_, dyn Target>) {
        (self.servant(), self.target())
    }

    /// Ends the use: the object can be deactivated, and a servant locator's `postinvoke` is called. Without
    /// an effect if the use has ended. No lock is held.
    ///
    /// # Errors
    /// The exception that `postinvoke` raised.
    fn end(&self) -> Result<(), SystemException>;

    /// Ends the use unless it has ended, and then gives back the thread's turn. Called once.
    fn release(&self);
}

impl Upcall {
    /// An upcall that ends this use of a servant when it ends.
    #[inline]
    pub fn new(servant_use: Rc<dyn ServantUse>) -> Self {
        Self { servant_use, ends_before_reply: false }
    }

    /// Returns the upcall with a use of the servant that ends before the reply is sent.
    #[inline]
    pub fn ending_before_reply(mut self) -> Self {
        self.ends_before_reply = true;
        self
    }

    /// Whether the use of the servant has to [end](Self::end) before the reply is sent.
    #[inline]
    #[must_use]
    pub fn ends_before_reply(&self) -> bool {
        self.ends_before_reply
    }

    /// The servant that the adapter has found for the upcall.
    #[inline]
    #[must_use]
    pub fn servant(&self) -> Ref<'_, Arc<dyn Servant>> {
        self.servant_use.servant()
    }

    /// The identity and policies of the object.
    #[inline]
    #[must_use]
    pub fn target(&self) -> Ref<'_, dyn Target> {
        self.servant_use.target()
    }

    /// The servant, and the identity and policies of the object.
    #[inline]
    #[must_use]
    pub fn parts(&self) -> (Ref<'_, Arc<dyn Servant>>, Ref<'_, dyn Target>) {
        self.servant_use.parts()
    }

    /// Ends the use of the servant before the upcall ends.
    ///
    /// # Errors
    /// The exception that a servant locator's `postinvoke` raised.
    pub fn end(&self) -> Result<(), SystemException> {
        self.servant_use.end()
    }
}

impl Drop for Upcall {
    #[inline]
    fn drop(&mut self) {
        self.servant_use.release();
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request { .. } => "Request",
            Self::Direct => "Direct",
        })
    }
}

impl fmt::Debug for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serve(upcall) => f.debug_tuple("Serve").field(upcall).finish(),
            Self::Forward(target) => f.debug_tuple("Forward").field(target).finish(),
            Self::ForwardPermanently(target) => f.debug_tuple("ForwardPermanently").field(target).finish(),
            Self::Wait(_) => f.write_str("Wait"),
            Self::MainThread => f.write_str("MainThread"),
            Self::Executor { executor, .. } => f.debug_tuple("Executor").field(executor).finish(),
            Self::Marshal => f.write_str("Marshal"),
        }
    }
}

impl fmt::Debug for Upcall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upcall").field("ends_before_reply", &self.ends_before_reply).finish_non_exhaustive()
    }
}
