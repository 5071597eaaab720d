//! The reasons why a request gets no reply, and their consequences: the closed list of design decision 9.
//!
//! Only the requests that this table allows are sent twice. A reply that says COMPLETED_NO is no loss: its
//! exception goes to the caller, or leads a forwarded reference back to its first address. For TRANSIENT and
//! COMM_FAILURE the reference's other addresses are tried before.
//!
//! The call engine (`invocation` of `spandrel-orb`) sends them again, once for each call.

use spandrel_giop::{CompletionStatus, SystemException};

/// The fate of a request without a reply.
///
/// | loss | completion status | may be sent once more |
/// | --- | --- | --- |
/// | [`NotWritten`](Self::NotWritten) | NO | yes |
/// | [`ConnectionAbandoned`](Self::ConnectionAbandoned) | NO | yes |
/// | [`PartiallyWritten`](Self::PartiallyWritten) | NO | yes |
/// | [`ClosedOrderly`](Self::ClosedOrderly) | NO | yes |
/// | [`Rejected`](Self::Rejected) | NO | no |
/// | [`SendTimedOut`](Self::SendTimedOut) | NO | no |
/// | [`MessageErrorReceived`](Self::MessageErrorReceived) | MAYBE | no |
/// | [`InDoubt`](Self::InDoubt) | MAYBE | no |
/// | [`ConnectionShareable`](Self::ConnectionShareable) | that of the exception | no |
/// | [`CodeSetsUnknown`](Self::CodeSetsUnknown) | that of the exception | no |
/// | [`Other`](Self::Other) | that of the exception | no |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestLoss {
    /// No octet of it was written: the connection had ended before, or may not be written to any more.
    NotWritten,
    /// The transport did not accept its last octet: another call of this side had given the connection up, in
    /// most cases after a time-out. The peer is not known to have failed.
    ConnectionAbandoned,
    /// The transport did not accept its last octet.
    PartiallyWritten,
    /// The peer sent CloseConnection before it answered the request (CORBA 3.3 Part 2, 9.4.7).
    ClosedOrderly,
    /// It was not written to its end, since the peer sent MessageError. The peer would reject it on another
    /// connection, too.
    Rejected,
    /// The peer sent MessageError after all of it was written. The message may have been another one.
    MessageErrorReceived,
    /// The deadline passed before the transport had accepted its last octet.
    SendTimedOut,
    /// It was written whole, and then the connection ended, the reply could not be read, or the deadline
    /// passed.
    InDoubt,
    /// No loss: no connection may be opened for the request, but one can be shared now. It begins anew,
    /// without an exception.
    ConnectionShareable,
    /// The arguments cannot be encoded without code sets, and the reference names none. The object that the
    /// server forwards to may have some: it is located before the request fails.
    CodeSetsUnknown,
    /// No connection was tried: there is none, or it is at one of its limits. The exception has the
    /// completion status; other addresses are tried.
    Other,
}

/// The effect on the caller, and whether the ORB may hide the loss from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LossConsequence {
    /// The completion status for the caller, if the request is not sent again; `None`: that of the exception.
    pub completed: Option<CompletionStatus>,
    /// Whether it may be sent once more, on another connection.
    pub repeats: bool,
}

impl RequestLoss {
    /// The completion status, and whether the call may be repeated, for each kind of loss.
    #[must_use]
    pub const fn consequence(self) -> LossConsequence {
        use CompletionStatus::{Maybe, No};
        let (completed, repeats) = match self {
            Self::NotWritten | Self::ConnectionAbandoned | Self::PartiallyWritten | Self::ClosedOrderly => {
                (Some(No), true)
            }
            Self::Rejected | Self::SendTimedOut => (Some(No), false),
            Self::MessageErrorReceived | Self::InDoubt => (Some(Maybe), false),
            Self::ConnectionShareable => (None, false),
            Self::CodeSetsUnknown | Self::Other => (None, false),
        };
        LossConsequence { completed, repeats }
    }
}

/// The exception of a call without a reply, and the fate of its request.
#[derive(Clone, Debug)]
pub struct CallFailure {
    /// The exception for the caller, with the completion status of the loss.
    pub exception: SystemException,
    /// The fate of the request, from which the completion status follows.
    pub loss: RequestLoss,
}

impl CallFailure {
    /// Makes a failure whose exception has the right completion status already.
    #[must_use]
    pub fn new(exception: SystemException) -> Self {
        Self { exception, loss: RequestLoss::Other }
    }

    /// Makes a failure with the completion status of the loss.
    #[must_use]
    pub fn of(loss: RequestLoss, exception: SystemException) -> Self {
        let exception = match loss.consequence().completed {
            Some(completed) => exception.with_completed(completed),
            None => exception,
        };
        Self { exception, loss }
    }

    /// Whether the same request may be sent again on another connection: this one was closed under it.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        self.loss.consequence().repeats
    }
}

/// The reason for the end of a connection, seen from the side that waits for replies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EndCause {
    /// The peer sent CloseConnection.
    CloseConnection,
    /// The peer sent MessageError.
    MessageError,
    /// The peer closed the connection without CloseConnection, or sent a message that cannot be read or that
    /// it may not send; or the transport failed; or this side cannot read any longer.
    Failed,
}

/// How far the transport has accepted a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Written {
    /// Not to its last octet: the peer cannot have the whole request.
    Partly,
    /// To its last octet, or it may have: the peer may have the whole request.
    Whole,
}

impl EndCause {
    /// The loss of a request whose reply had not come when the connection ended.
    ///
    /// | end | written whole | not whole |
    /// | --- | --- | --- |
    /// | CloseConnection | ClosedOrderly: NO, repeats | NotWritten: NO, repeats |
    /// | MessageError | MessageErrorReceived: MAYBE | Rejected: NO |
    /// | failed | InDoubt: MAYBE | NotWritten: NO, repeats |
    #[must_use]
    pub const fn loss(self, written: Written) -> RequestLoss {
        match (self, written) {
            (Self::CloseConnection, Written::Whole) => RequestLoss::ClosedOrderly,
            (Self::MessageError, Written::Whole) => RequestLoss::MessageErrorReceived,
            (Self::MessageError, Written::Partly) => RequestLoss::Rejected,
            (Self::Failed, Written::Whole) => RequestLoss::InDoubt,
            (Self::CloseConnection | Self::Failed, Written::Partly) => RequestLoss::NotWritten,
        }
    }
}

/// The first reason for which a connection has ended, as all its calls see it.
#[derive(Clone, Debug)]
pub struct ConnectionEnd {
    /// The event that came first. Later ones do not replace it.
    pub cause: EndCause,
    /// The exception for the calls without a reply. Their loss decides about its completion status.
    pub exception: SystemException,
}

impl ConnectionEnd {
    /// The failure of a call that waited, by how far its request was written.
    #[must_use]
    pub fn failure(&self, written: Written) -> CallFailure {
        CallFailure::of(self.cause.loss(written), self.exception.clone())
    }
}

/// The reason why a request could not be written to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteFailure {
    /// The deadline passed.
    TimedOut,
    /// Another call of this side had given the connection up.
    Abandoned,
    /// The transport failed.
    Failed,
}

impl WriteFailure {
    /// The loss of the request. `read`: the loss with which reading ended after the failure, if the peer's
    /// reason was read. A CloseConnection or MessageError that was still unread comes before the failure.
    ///
    /// | write \ read | CloseConnection | MessageError | anything else |
    /// | --- | --- | --- | --- |
    /// | timed out | ClosedOrderly | Rejected | SendTimedOut |
    /// | abandoned | ClosedOrderly | Rejected | ConnectionAbandoned |
    /// | failed | ClosedOrderly | Rejected | PartiallyWritten |
    #[must_use]
    pub const fn loss(self, read: Option<RequestLoss>) -> RequestLoss {
        match (read, self) {
            (Some(RequestLoss::ClosedOrderly), _) => RequestLoss::ClosedOrderly,
            (Some(RequestLoss::MessageErrorReceived), _) => RequestLoss::Rejected,
            (_, Self::TimedOut) => RequestLoss::SendTimedOut,
            (_, Self::Abandoned) => RequestLoss::ConnectionAbandoned,
            (_, Self::Failed) => RequestLoss::PartiallyWritten,
        }
    }
}

#[cfg(test)]
mod tests {
    use CompletionStatus::{Maybe, No, Yes};

    use super::*;

    const TABLE: &[(RequestLoss, Option<CompletionStatus>, bool)] = &[
        (RequestLoss::NotWritten, Some(No), true),
        (RequestLoss::ConnectionAbandoned, Some(No), true),
        (RequestLoss::PartiallyWritten, Some(No), true),
        (RequestLoss::ClosedOrderly, Some(No), true),
        (RequestLoss::Rejected, Some(No), false),
        (RequestLoss::SendTimedOut, Some(No), false),
        (RequestLoss::MessageErrorReceived, Some(Maybe), false),
        (RequestLoss::InDoubt, Some(Maybe), false),
        (RequestLoss::ConnectionShareable, None, false),
        (RequestLoss::CodeSetsUnknown, None, false),
        (RequestLoss::Other, None, false),
    ];

    #[test]
    fn each_loss_has_its_consequence() {
        for &(loss, completed, repeats) in TABLE {
            assert_eq!(loss.consequence(), LossConsequence { completed, repeats }, "{loss:?}");
        }
    }

    #[test]
    fn a_failure_has_the_completion_status_of_its_loss() {
        for &(loss, completed, repeats) in TABLE {
            let failure = CallFailure::of(loss, SystemException::comm_failure(0, Yes));
            assert_eq!(failure.exception.completed(), completed.unwrap_or(Yes), "{loss:?}");
            assert_eq!(failure.may_repeat(), repeats, "{loss:?}");
        }
    }

    #[test]
    fn a_failure_without_a_loss_keeps_the_status_of_its_exception_and_is_not_repeated() {
        let failure = CallFailure::new(SystemException::comm_failure(5, Yes));
        assert_eq!((failure.loss, failure.exception.completed()), (RequestLoss::Other, Yes));
        assert_eq!(failure.exception.minor(), 5);
        assert!(!failure.may_repeat());
    }

    #[test]
    fn only_requests_that_were_not_executed_are_repeated() {
        assert!(TABLE.iter().all(|(_, completed, repeats)| !repeats || *completed == Some(No)));
    }

    #[test]
    fn the_end_of_a_connection_decides_by_how_far_a_request_was_written() {
        let table = [
            (EndCause::CloseConnection, RequestLoss::ClosedOrderly, RequestLoss::NotWritten),
            (EndCause::MessageError, RequestLoss::MessageErrorReceived, RequestLoss::Rejected),
            (EndCause::Failed, RequestLoss::InDoubt, RequestLoss::NotWritten),
        ];
        for (cause, whole, partly) in table {
            assert_eq!(cause.loss(Written::Whole), whole, "{cause:?}");
            assert_eq!(cause.loss(Written::Partly), partly, "{cause:?}");
            assert_eq!(partly.consequence().completed, Some(No), "{cause:?}");
            let end = ConnectionEnd { cause, exception: SystemException::comm_failure(0, Maybe) };
            assert_eq!(end.failure(Written::Partly).exception.completed(), No, "{cause:?}");
        }
    }

    #[test]
    fn the_peers_reason_comes_before_the_failure_of_the_write() {
        let table = [
            (WriteFailure::TimedOut, RequestLoss::SendTimedOut),
            (WriteFailure::Abandoned, RequestLoss::ConnectionAbandoned),
            (WriteFailure::Failed, RequestLoss::PartiallyWritten),
        ];
        for (failure, alone) in table {
            assert_eq!(failure.loss(None), alone);
            assert_eq!(failure.loss(Some(RequestLoss::InDoubt)), alone);
            assert_eq!(failure.loss(Some(RequestLoss::ClosedOrderly)), RequestLoss::ClosedOrderly);
            assert_eq!(failure.loss(Some(RequestLoss::MessageErrorReceived)), RequestLoss::Rejected);
        }
    }
}
