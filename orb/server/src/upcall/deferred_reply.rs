//! Replies of typed results and exceptions after the upcall, in front of a generated skeleton.

use std::{any::Any, fmt, marker::PhantomData};

use spandrel_cdr::{Decode, Encode};
use spandrel_demux::Operations;
use spandrel_giop::SystemException;
use spandrel_orb::{CancellationToken, ObjectRef, UserExceptions};
use spandrel_sync::Arc;

use super::{
    call::{Replied, ServerCall},
    deferred::DeferredCall,
    servant::Servant,
};

/// The reply that any thread sends later to a request with these results and exceptions.
///
/// `R` is the type that the method of the generated servant trait returns: `()`, a value, or a tuple of the returned
/// value and the `out` parameters. With `inout` parameters, `R` is the tuple of all values of the reply in the order of the
/// declaration. `E` is the error of that method. The compiler does not compare them with the operation: a client
/// that gets other values reads MARSHAL, or wrong ones.
///
/// Dropping it without a reply has the effects of dropping a [`DeferredCall`]: the client gets an exception.
pub struct DeferredReply<R, E = SystemException> {
    call: DeferredCall,
    outcome: PhantomData<fn(R, E)>,
}

impl<R: Encode, E: UserExceptions> DeferredReply<R, E> {
    /// Sends the outcome. A request that was cancelled gets no reply. An outcome that cannot be marshaled is sent as
    /// the system exception that says so.
    pub fn send(self, outcome: Result<R, E>) {
        let replied = self.call.answer(|call| match &outcome {
            Ok(returned) => call.reply(|out| returned.encode(out)),
            Err(error) => call.raise(error),
        });
        self.call.end(replied);
    }
}

impl<R, E> DeferredReply<R, E> {
    /// The token that shows whether the reply is still needed, and if not, for what reason.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.call.cancellation()
    }
}

impl<R, E> fmt::Debug for DeferredReply<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeferredReply").field(&self.call).finish()
    }
}

impl ServerCall<'_> {
    /// Takes the request out of its upcall, to be replied to later. The upcall returns the [`Replied`].
    ///
    /// # Errors
    /// Those of [`defer`](Self::defer).
    pub fn defer_reply<R, E>(self) -> Result<(DeferredReply<R, E>, Replied), SystemException> {
        let (call, replied) = self.defer()?;
        Ok((DeferredReply { call, outcome: PhantomData }, replied))
    }

    /// Decodes the arguments of the operation: the tuple of its `in` and `inout` parameters in the order of their
    /// declaration.
    ///
    /// # Errors
    /// MARSHAL if they have another form.
    pub fn decode_arguments<A: Decode>(&self) -> Result<A, SystemException> {
        Ok(A::decode(&mut self.unread().clone())?)
    }
}

/// Operations of an object whose replies are sent later, by any thread and without a thread that waits.
///
/// [`DeferringSkeleton`] has an example.
pub trait DeferredOperations: Send + Sync + 'static {
    /// Takes a request to reply to it later ([`ServerCall::defer_reply`]), or leaves it to the skeleton.
    ///
    /// It runs in the thread that serves the connection, in the place of the servant.
    ///
    /// # Errors
    /// The system exception to reply with.
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException>;

    /// Whether the object does not exist: [`Servant::non_existent`].
    fn non_existent(&self) -> bool {
        false
    }
}

/// The answer of [`DeferredOperations::take`] to a request.
#[derive(Debug)]
pub enum TakenRequest<'m> {
    /// The request is replied to later, or has its reply.
    Taken(Replied),
    /// The skeleton runs the request.
    LeftToSkeleton(ServerCall<'m>),
}

/// A servant that defers the replies of some operations, in front of the skeleton of all.
///
/// One-way requests and [direct](Servant::direct) calls of the same process have no reply to be deferred: the skeleton
/// gets all direct calls.
///
/// ```
/// # mod spandrel {
/// #     pub use spandrel_orb::*;
/// #     pub mod server { pub use spandrel_server::*; }
/// # }
/// # use std::sync::mpsc;
/// use spandrel::SystemException;
/// use spandrel::server::{DeferredOperations, DeferredReply, DeferringSkeleton, Servant, ServerCall, TakenRequest};
///
/// /// Passes the sums of `add` to another thread, which sends them.
/// struct Sums(mpsc::Sender<(i32, DeferredReply<i32>)>);
///
/// impl DeferredOperations for Sums {
///     fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
///         if call.operation() != "add" || !call.is_response_expected() {
///             return Ok(TakenRequest::LeftToSkeleton(call));
///         }
///         let (a, b): (i32, i32) = call.decode_arguments()?;
///         let (reply, replied) = call.defer_reply()?;
///         // A reply that is dropped sends an exception.
///         _ = self.0.send((a + b, reply));
///         Ok(TakenRequest::Taken(replied))
///     }
/// }
///
/// fn servant(skeleton: impl Servant + 'static) -> impl Servant {
///     let (sender, sums) = mpsc::channel();
///     std::thread::spawn(move || {
///         sums.iter().for_each(|(sum, reply): (i32, DeferredReply<i32>)| reply.send(Ok(sum)));
///     });
///     DeferringSkeleton::new(skeleton, Sums(sender))
/// }
/// ```
pub struct DeferringSkeleton<S, D> {
    skeleton: Arc<S>,
    operations: D,
}

impl<S: Servant + 'static, D: DeferredOperations> DeferringSkeleton<S, D> {
    /// Offers each request to `operations` first, and the others to the skeleton.
    pub fn new(skeleton: S, operations: D) -> Self {
        Self { skeleton: Arc::new(skeleton), operations }
    }

    fn run<'m>(
        &self,
        call: ServerCall<'m>,
        run: impl FnOnce(&S, ServerCall<'m>) -> Result<Replied, SystemException>,
    ) -> Result<Replied, SystemException> {
        match self.operations.take(call)? {
            TakenRequest::Taken(replied) => Ok(replied),
            TakenRequest::LeftToSkeleton(call) => run(&self.skeleton, call),
        }
    }
}

impl<S: Servant + 'static, D: DeferredOperations> Servant for DeferringSkeleton<S, D> {
    fn repository_id(&self) -> &str {
        self.skeleton.repository_id()
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.skeleton.is_a(repository_id)
    }

    fn non_existent(&self) -> bool {
        self.operations.non_existent() || self.skeleton.non_existent()
    }

    fn interface(&self) -> Option<ObjectRef> {
        self.skeleton.interface()
    }

    fn component(&self) -> Option<ObjectRef> {
        self.skeleton.component()
    }

    fn direct(self: std::sync::Arc<Self>, place: &mut dyn Any) {
        Arc::clone(&self.skeleton).direct(place);
    }

    fn operations(&self) -> &'static Operations {
        self.skeleton.operations()
    }

    fn upcall(&self, operation: usize, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.run(call, |skeleton, call| skeleton.upcall(operation, call))
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.run(call, |skeleton, call| skeleton.dispatch(operation, call))
    }
}

impl<S, D: fmt::Debug> fmt::Debug for DeferringSkeleton<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferringSkeleton").field("operations", &self.operations).finish_non_exhaustive()
    }
}
