//! How a call or a request ended, in a word.

#[cfg(feature = "server")]
use spandrel_giop::ReplyStatus;
use spandrel_giop::SystemExceptionKind;

/// How it ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CallOutcome {
    /// With results, or sent, for one-ways.
    Ok,
    /// With an exception that the operation's IDL names.
    UserException,
    System(SystemExceptionKind),
    /// The client was told to ask elsewhere.
    #[cfg(feature = "server")]
    Forwarded,
    /// Nobody waited for the end.
    #[cfg(feature = "asynchronous")]
    Abandoned,
}

impl CallOutcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::UserException => "user_exception",
            Self::System(kind) => kind.name(),
            #[cfg(feature = "server")]
            Self::Forwarded => "forwarded",
            #[cfg(feature = "asynchronous")]
            Self::Abandoned => "abandoned",
        }
    }

    /// What a reply with this status says; of system exceptions no more than that.
    #[cfg(feature = "server")]
    pub(crate) fn of_reply(status: ReplyStatus) -> Self {
        match status {
            ReplyStatus::NoException => Self::Ok,
            ReplyStatus::UserException => Self::UserException,
            ReplyStatus::SystemException => Self::System(SystemExceptionKind::Unknown),
            _ => Self::Forwarded,
        }
    }
}
