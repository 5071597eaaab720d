//! The rules of flow that client and server have in common (16.3.2).
//!
//! An interceptor is on the flow stack once its starting point has completed. At the end everything on the stack is taken off, the last
//! first, and told at exactly one ending point what the request has come to by then: each may change that for those below it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_giop::{CompletionStatus, SystemException};

use super::{Interruption, RaisedException, ReplyStatus};
use crate::ObjectRef;

/// What a request has come to.
#[derive(Clone, Debug)]
pub(crate) enum RequestOutcome {
    /// Results.
    Reply,
    /// An exception.
    Exception(RaisedException),
    /// Neither: what it is, and where it goes to if it is a forwarding.
    Other(ReplyStatus, Option<ObjectRef>),
}

impl RequestOutcome {
    pub(crate) fn system(exception: SystemException) -> Self {
        Self::Exception(RaisedException::system_exception(exception))
    }

    pub(crate) fn forward(target: ObjectRef) -> Self {
        Self::Other(ReplyStatus::LocationForward, Some(target))
    }

    /// The system exception that it is, if it is one.
    pub(crate) fn system_exception(&self) -> Option<SystemException> {
        match self {
            Self::Exception(exception) => exception.system().cloned(),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> ReplyStatus {
        match self {
            Self::Reply => ReplyStatus::Successful,
            Self::Exception(exception) if exception.system().is_some() => ReplyStatus::SystemException,
            Self::Exception(_) => ReplyStatus::UserException,
            Self::Other(status, _) => *status,
        }
    }

    /// What it is after an interceptor has raised something at its ending point; nothing if that is not permitted.
    ///
    /// The completion status is not the interceptor's to choose (16.3.6.3 to 16.3.6.5, 16.3.9.3 to 16.3.9.5). A forwarding repeats the
    /// request, and is ignored where that would have it done twice (16.3.6.4).
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
                tracing::error!(%completed, "an interceptor forwards a request that may have been carried out: ignored");
                None
            }
        }
    }
}

/// What interceptors raise before the operation has begun ends it so.
pub(super) fn interrupted_at_start(interruption: Interruption) -> RequestOutcome {
    match interruption {
        Interruption::System(exception) => RequestOutcome::system(exception.with_completed(CompletionStatus::No)),
        Interruption::ForwardRequest(target) => RequestOutcome::forward(target),
    }
}

/// A flow stack that is taken down.
pub(super) trait FlowStack {
    /// How many interceptors are on it.
    fn height(&mut self) -> &mut usize;

    /// What the request has come to.
    fn ending(&mut self) -> &mut RequestOutcome;

    /// Calls the ending point of one interceptor.
    fn call(&mut self, index: usize) -> Result<(), Interruption>;
}

/// Takes the stack down; true if that has changed what the request has come to.
pub(super) fn unwind(stack: &mut impl FlowStack) -> bool {
    let mut is_changed = false;
    while let Some(top) = stack.height().checked_sub(1) {
        *stack.height() = top;
        if let Err(interruption) = contained(|| stack.call(top))
            && let Some(ending) = stack.ending().interrupted(interruption)
        {
            *stack.ending() = ending;
            is_changed = true;
        }
    }
    is_changed
}

/// Runs an interceptor; a panic is its exception and nobody else's.
pub(super) fn contained<E: From<SystemException>>(point: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    spandrel_sync::held::assert_none("an interceptor");
    catch_unwind(AssertUnwindSafe(point)).unwrap_or_else(|_| {
        tracing::error!("an interceptor panicked");
        Err(SystemException::unknown(0, CompletionStatus::Maybe).with_detail("an interceptor panicked").into())
    })
}
