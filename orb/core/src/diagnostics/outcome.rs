//! The outcome of a call or request, as a label.

use spandrel_giop::ReplyStatus;
use spandrel_giop::SystemExceptionKind;

/// The outcome of a call or request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CallOutcome {
    /// Results; for one-ways, a completed sending.
    Ok,
    /// An exception that the operation's IDL names.
    UserException,
    System(SystemExceptionKind),
    /// The client was forwarded to another object.
    Forwarded,
    /// The caller did not wait for the end.
    Abandoned,
}

impl CallOutcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::UserException => "user_exception",
            Self::System(kind) => kind.name(),
            Self::Forwarded => "forwarded",
            Self::Abandoned => "abandoned",
        }
    }

    /// The outcome in a reply's status. The kind of a system exception is not known from it.
    pub(crate) fn of_reply(status: ReplyStatus) -> Self {
        match status {
            ReplyStatus::NoException => Self::Ok,
            ReplyStatus::UserException => Self::UserException,
            ReplyStatus::SystemException => Self::System(SystemExceptionKind::Unknown),
            _ => Self::Forwarded,
        }
    }
}
