//! The requests of threads that share a connection, in a program without asynchronous calls: each thread writes its own,
//! one after another. Such a program is small, and the transports that it uses need not send without waiting.

use std::{io, iter};

use spandrel_cdr::Encoder;
use spandrel_connection::{WriteStart, WriteTurn};
use spandrel_transport::Deadline;

use super::{ClientConnection, pending_calls::PendingCalls, writing::Writer};

/// No requests are appended. The functions are those of [`spandrel_connection::AppendedRequests`].
#[derive(Debug, Default)]
pub(super) struct AppendedRequests(());

impl AppendedRequests {
    #[inline]
    pub(super) fn turn(&self, _request_id: u32) -> WriteTurn {
        WriteTurn::Written
    }

    #[inline]
    pub(super) fn is_written(&self, _request_id: u32) -> bool {
        true
    }

    #[inline]
    pub(super) fn appended(&self) -> iter::Empty<u32> {
        iter::empty()
    }
}

impl ClientConnection {
    #[inline]
    pub(super) fn begin_write(&self, _: &mut PendingCalls, _request_id: u32, _request: &Encoder<'_>) -> WriteStart {
        WriteStart::Alone
    }

    #[inline]
    pub(super) fn write_shared(
        &self,
        _request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        Writer::lock_and_send(self, request, deadline)
    }
}

impl PendingCalls {
    #[inline]
    pub(super) fn end_write(&mut self, _request_id: u32) {}

    /// Removes a call whose thread stops waiting. Its request was written.
    #[inline]
    pub(super) fn leave(&mut self, request_id: u32) -> bool {
        self.half.remove(request_id);
        false
    }
}
