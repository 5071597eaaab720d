//! The rules of flow for client and server (16.3.2).
//!
//! An interceptor is on the flow stack once its starting point has completed. At the end all interceptors are
//! taken off the stack, the last first. Each has exactly one ending point called, with the present outcome of
//! the request, and may change that for those below it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_giop::{CompletionStatus, ResponseFlags, SystemException};

use super::{Interruption, RaisedException};
use crate::{ObjectRef, policy::SyncScopePolicy};

/// The outcome of a request (`PortableInterceptor::ReplyStatus`, 16.3.12.10).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum ReplyStatus {
    /// Results; for one-way and asynchronous requests, a completed sending.
    Successful = 0,
    /// A system exception, raised by the object, by an ORB or by an interceptor.
    SystemException = 1,
    /// An exception that the operation raises.
    UserException = 2,
    /// A forwarding: the request is sent to another object.
    LocationForward = 3,
    /// A retry: the request is sent again, to the same object over another connection.
    TransportRetry = 4,
    /// An outcome that this side cannot know.
    Unknown = 5,
}

/// The sync scope that a one-way's request has (16.3.12.9).
pub(crate) fn sync_scope(response: ResponseFlags) -> SyncScopePolicy {
    match response {
        ResponseFlags::WITH_TARGET => SyncScopePolicy::WithTarget,
        ResponseFlags::WITH_SERVER => SyncScopePolicy::WithServer,
        _ => SyncScopePolicy::WithTransport,
    }
}

/// The end of a request, as interception points see it.
#[derive(Clone, Debug)]
pub enum RequestOutcome {
    /// A reply with results.
    Reply,
    /// A system exception, or one that the operation raises.
    Exception(RaisedException),
    /// Another outcome: its kind, and the target of a forwarding.
    Other(ReplyStatus, Option<ObjectRef>),
}

impl RequestOutcome {
    /// The outcome of a request that ends with this system exception.
    pub fn system(exception: SystemException) -> Self {
        Self::Exception(RaisedException::system_exception(exception))
    }

    /// The outcome of a request that is sent to `target` instead.
    pub fn forward(target: ObjectRef) -> Self {
        Self::Other(ReplyStatus::LocationForward, Some(target))
    }

    pub(crate) fn status(&self) -> ReplyStatus {
        match self {
            Self::Reply => ReplyStatus::Successful,
            Self::Exception(exception) if exception.system().is_some() => ReplyStatus::SystemException,
            Self::Exception(_) => ReplyStatus::UserException,
            Self::Other(status, _) => *status,
        }
    }

    /// The outcome after an interceptor has raised something at its ending point; `None` if that is not
    /// permitted.
    ///
    /// The ORB sets the completion status, not the interceptor (16.3.6.3 to 16.3.6.5, 16.3.9.3 to 16.3.9.5).
    /// A forwarding repeats the request, and is ignored where the operation might be executed twice
    /// (16.3.6.4).
    fn interrupted(&self, interruption: Interruption) -> Option<Self> {
        let completed = match self {
            Self::Reply => CompletionStatus::Yes,
            Self::Exception(exception) => exception.completed(),
            Self::Other(..) => CompletionStatus::No,
        };
        match interruption {
            Interruption::System(exception) => Some(Self::system(exception.with_completed(completed))),
            Interruption::ForwardRequest(target) if completed == CompletionStatus::No => Some(Self::forward(target)),
            Interruption::ForwardRequest(_) => {
                tracing::error!(%completed, "ignored: an interceptor forwards a request that may have been executed");
                None
            }
        }
    }
}

/// The outcome of a request whose starting point has raised something.
pub(super) fn interrupted_at_start(interruption: Interruption) -> RequestOutcome {
    match interruption {
        Interruption::System(exception) => RequestOutcome::system(exception.with_completed(CompletionStatus::No)),
        Interruption::ForwardRequest(target) => RequestOutcome::forward(target),
    }
}

/// A request with a flow stack.
pub(super) trait FlowStack {
    /// The number of interceptors on the stack.
    fn height(&mut self) -> &mut usize;

    /// The present outcome of the request.
    fn ending(&mut self) -> &mut RequestOutcome;

    /// Calls the ending point of one interceptor.
    fn call(&mut self, index: usize) -> Result<(), Interruption>;
}

/// Calls all ending points; returns true if the outcome has changed.
pub(super) fn unwind(stack: &mut impl FlowStack) -> bool {
    let mut is_changed = false;
    while let Some(top) = stack.height().checked_sub(1) {
        *stack.height() = top;
        if let Err(interruption) = catch_panic(|| stack.call(top))
            && let Some(ending) = stack.ending().interrupted(interruption)
        {
            *stack.ending() = ending;
            is_changed = true;
        }
    }
    is_changed
}

/// Runs an interceptor; a panic becomes its exception.
pub(crate) fn catch_panic<E: From<SystemException>>(point: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    spandrel_sync::held::assert_none("an interceptor");
    catch_unwind(AssertUnwindSafe(point)).unwrap_or_else(|_| {
        tracing::error!("an interceptor panicked");
        Err(SystemException::unknown(0, CompletionStatus::Maybe).with_detail("an interceptor panicked").into())
    })
}
