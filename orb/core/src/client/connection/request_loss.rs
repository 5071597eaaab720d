//! The reasons why a request gets no reply, and their consequences: the closed list of design decision 9.
//!
//! Only the requests that this table allows are sent twice. A reply that says COMPLETED_NO is no loss: its
//! exception goes to the caller, or leads a forwarded reference back to its first address. For TRANSIENT and
//! COMM_FAILURE the reference's other addresses are tried before.

use spandrel_giop::CompletionStatus;

/// The fate of a request without a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RequestLoss {
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
    /// No connection was tried: there is none, or it is at one of its limits. The exception has the
    /// completion status; other addresses are tried.
    Other,
}

/// The consequence of a loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LossConsequence {
    /// The completion status for the caller, if the request is not sent again; `None`: that of the exception.
    pub(super) completed: Option<CompletionStatus>,
    /// Whether it may be sent once more, on another connection.
    pub(super) repeats: bool,
}

impl RequestLoss {
    /// The consequence of each loss: the table.
    pub(super) const fn consequence(self) -> LossConsequence {
        use CompletionStatus::{Maybe, No};
        let (completed, repeats) = match self {
            Self::NotWritten | Self::ConnectionAbandoned | Self::PartiallyWritten | Self::ClosedOrderly => {
                (Some(No), true)
            }
            Self::Rejected | Self::SendTimedOut => (Some(No), false),
            Self::MessageErrorReceived | Self::InDoubt => (Some(Maybe), false),
            Self::ConnectionShareable => (None, false),
            Self::Other => (None, false),
        };
        LossConsequence { completed, repeats }
    }

    /// The same loss for an asynchronous request whose last octet was not written at that time.
    #[cfg(any(test, feature = "asynchronous"))]
    pub(super) const fn unwritten(self) -> Self {
        match self {
            Self::MessageErrorReceived | Self::Rejected => Self::Rejected,
            Self::ConnectionAbandoned => Self::ConnectionAbandoned,
            _ => Self::NotWritten,
        }
    }
}

#[cfg(test)]
mod tests {
    use spandrel_giop::SystemException;

    use super::{super::CallFailure, *};

    const ALL: &[RequestLoss] = &[
        RequestLoss::NotWritten,
        RequestLoss::ConnectionAbandoned,
        RequestLoss::PartiallyWritten,
        RequestLoss::ClosedOrderly,
        RequestLoss::Rejected,
        RequestLoss::MessageErrorReceived,
        RequestLoss::SendTimedOut,
        RequestLoss::InDoubt,
        RequestLoss::ConnectionShareable,
        RequestLoss::Other,
    ];

    #[test]
    fn only_requests_that_were_not_executed_are_retried() {
        let repeated: Vec<_> = ALL.iter().copied().filter(|loss| loss.consequence().repeats).collect();
        assert_eq!(
            repeated,
            [
                RequestLoss::NotWritten,
                RequestLoss::ConnectionAbandoned,
                RequestLoss::PartiallyWritten,
                RequestLoss::ClosedOrderly
            ]
        );
        assert!(repeated.iter().all(|loss| loss.consequence().completed == Some(CompletionStatus::No)));
    }

    #[test]
    fn each_kind_of_loss_has_its_completion_status() {
        for &loss in ALL {
            let exception = SystemException::comm_failure(0, CompletionStatus::Yes);
            let completed = CallFailure::of(loss, exception).exception.completed();
            let expected = match loss {
                RequestLoss::NotWritten
                | RequestLoss::ConnectionAbandoned
                | RequestLoss::PartiallyWritten
                | RequestLoss::ClosedOrderly
                | RequestLoss::Rejected
                | RequestLoss::SendTimedOut => CompletionStatus::No,
                RequestLoss::MessageErrorReceived | RequestLoss::InDoubt => CompletionStatus::Maybe,
                RequestLoss::ConnectionShareable => CompletionStatus::Yes,
                RequestLoss::Other => CompletionStatus::Yes,
            };
            assert_eq!(completed, expected, "{loss:?}");
        }
    }

    #[test]
    fn partly_written_requests_are_completed_no() {
        for &loss in ALL {
            let unwritten = loss.unwritten().consequence();
            assert_eq!(unwritten.completed, Some(CompletionStatus::No));
            assert_eq!(
                unwritten.repeats,
                !matches!(loss, RequestLoss::MessageErrorReceived | RequestLoss::Rejected),
                "{loss:?}"
            );
        }
    }
}
