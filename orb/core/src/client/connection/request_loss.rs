//! Why a request got no answer, and what follows from it: the closed list of design decision 9.
//!
//! What is not in this table is never sent twice. A reply that says COMPLETED_NO itself is no loss: its exception goes to the caller,
//! or has the reference led back to where it was first; TRANSIENT and COMM_FAILURE have the reference's other addresses asked before.

use spandrel_giop::CompletionStatus;

/// What has become of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RequestLoss {
    /// Nothing of it was written: the connection had ended before, or nobody may write to it any more.
    NotWritten,
    /// The transport did not accept its last octet: another call of this side had given the connection up, most often since its time was
    /// over. That says nothing of the peer.
    GivenUp,
    /// The transport did not accept its last octet.
    CutOff,
    /// The peer sent CloseConnection and had not answered it (CORBA 3.3 Part 2, 9.4.7).
    ClosedInOrder,
    /// Nothing, or not all, of it was written, since the peer sent MessageError: to another connection it would say the same.
    Rejected,
    /// The peer sent MessageError when the whole of it was written; whether it meant this one is not known.
    Explained,
    /// The time was up before the transport had accepted its last octet.
    LateToBeSent,
    /// Anything else that happens once all of it was written: the end of the connection, a reply that cannot be read, a time-out.
    InDoubt,
    /// It is none: no connection may be opened for it, but there is one by now that it can share. It begins anew, and nobody is told.
    Superseded,
    /// Nothing was even tried on a connection: there is none, or it has as much to do as it may have. What is known is what its
    /// exception says; other addresses are asked.
    Other,
}

/// What follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LossConsequence {
    /// What the caller is told of the request's completion, if it is not sent again; none: what its exception says.
    pub(super) completed: Option<CompletionStatus>,
    /// It may be sent once more, on another connection.
    pub(super) repeats: bool,
}

impl RequestLoss {
    /// The table.
    pub(super) const fn consequence(self) -> LossConsequence {
        use CompletionStatus::{Maybe, No};
        let (completed, repeats) = match self {
            Self::NotWritten | Self::GivenUp | Self::CutOff | Self::ClosedInOrder => (Some(No), true),
            Self::Rejected | Self::LateToBeSent => (Some(No), false),
            Self::Explained | Self::InDoubt => (Some(Maybe), false),
            Self::Superseded => (None, false),
            Self::Other => (None, false),
        };
        LossConsequence { completed, repeats }
    }

    /// The same loss for an asynchronous request of which the last octet was not written when that happened to the connection.
    #[cfg(any(test, feature = "asynchronous"))]
    pub(super) const fn unwritten(self) -> Self {
        match self {
            Self::Explained | Self::Rejected => Self::Rejected,
            Self::GivenUp => Self::GivenUp,
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
        RequestLoss::GivenUp,
        RequestLoss::CutOff,
        RequestLoss::ClosedInOrder,
        RequestLoss::Rejected,
        RequestLoss::Explained,
        RequestLoss::LateToBeSent,
        RequestLoss::InDoubt,
        RequestLoss::Superseded,
        RequestLoss::Other,
    ];

    #[test]
    fn only_requests_that_were_not_executed_are_retried() {
        let repeated: Vec<_> = ALL.iter().copied().filter(|loss| loss.consequence().repeats).collect();
        assert_eq!(
            repeated,
            [RequestLoss::NotWritten, RequestLoss::GivenUp, RequestLoss::CutOff, RequestLoss::ClosedInOrder]
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
                | RequestLoss::GivenUp
                | RequestLoss::CutOff
                | RequestLoss::ClosedInOrder
                | RequestLoss::Rejected
                | RequestLoss::LateToBeSent => CompletionStatus::No,
                RequestLoss::Explained | RequestLoss::InDoubt => CompletionStatus::Maybe,
                RequestLoss::Superseded => CompletionStatus::Yes,
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
            assert_eq!(unwritten.repeats, !matches!(loss, RequestLoss::Explained | RequestLoss::Rejected), "{loss:?}");
        }
    }
}
