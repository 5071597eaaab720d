//! The requests of threads that share a connection: those that begin while another thread writes leave in one write.
//!
//! [`AppendedRequests`], in the lock of pending calls, decides which thread
//! writes. A thread whose request is appended waits for its reply at once, and is notified if it is to write itself. A
//! thread that finds a writer role free waits for the write lock, and needs no further one.
//!
//! The thread that writes waits for room only for its own request, and for the rest of one that the transport has
//! accepted in part. Meanwhile any thread whose request was written may read.

use std::{io, ops::Range};

use spandrel_cdr::Encoder;
pub(super) use spandrel_connection::AppendedRequests;
use spandrel_connection::{WriteStart, Written};
use spandrel_sync::{Arc, MutexGuard, atomic::Ordering};
use spandrel_transport::{Deadline, send_slices};

use super::{
    ClientConnection, CloseOnPanic,
    pending_calls::PendingCalls,
    writing::{Writer, update_timeout},
};
use crate::client::urgency;

impl ClientConnection {
    /// Begins to write the request of a thread that will wait for its reply.
    pub(super) fn begin_write(&self, pending: &mut PendingCalls, request_id: u32, request: &Encoder<'_>) -> WriteStart {
        if request.position() > self.fragment_size {
            return WriteStart::Alone;
        }
        let copy = |octets: &mut Vec<u8>| request.slices().for_each(|slice| octets.extend_from_slice(slice));
        let start = pending.appended.begin(request_id, urgency::current(), request.position(), copy);
        if start == WriteStart::Append {
            pending.half.set_written(request_id, Written::Partly);
            self.has_appended.store(true, Ordering::Relaxed);
        }
        start
    }

    /// Writes the request of a thread that has a writer role, with those that are appended. The role stays with the
    /// thread until [`PendingCalls::end_write`].
    pub(super) fn write_shared(
        &self,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        let _guard = CloseOnPanic(self);
        let mut writer = Writer::lock(self, deadline)?;
        if self.is_retired() {
            // See `Writer::lock_and_send`.
            return Err(io::ErrorKind::NotConnected.into());
        }
        // If the flag is read too early, the thread of an appended request is notified afterwards. One-ways that wait may
        // be of a thread whose request is appended, and go before it.
        if self.has_appended.load(Ordering::Relaxed)
            && writer.half.may_write()
            && !writer.has_unsent()
            && !self.has_queued()
        {
            return self.write_appended(writer, request_id, request, deadline);
        }
        writer.send(self, request, deadline)
    }

    /// Writes the appended requests that are at least as urgent, and then this one, as one write if the transport accepts them.
    fn write_appended(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        let octets = self.take_appended(request_id);
        let mut parts = request.parts();
        parts.insert(0, io::IoSlice::new(&octets));
        let mut slices = &mut parts[..];
        let sent = match self.transport.try_send_v(slices) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            sent => sent.inspect_err(|_| writer.half.cut())?,
        };
        let rest = self.settle_appended(&octets, sent.min(octets.len()));
        if sent == octets.len() + request.position() {
            return Ok(());
        }
        if let Some(rest) = rest {
            let end = rest.end;
            writer.send_rest(self, &mut [io::IoSlice::new(&octets[rest])], deadline)?;
            self.settle_appended(&octets, end);
        }
        if sent <= octets.len() {
            return writer.send(self, request, deadline);
        }
        io::IoSlice::advance_slices(&mut slices, sent);
        writer.send_rest(self, slices, deadline)
    }

    /// Takes the appended requests. From now on the peer may have them.
    fn take_appended(&self, request_id: u32) -> Vec<u8> {
        let mut pending = self.pending.lock();
        let PendingCalls { appended, half, .. } = &mut *pending;
        let octets = appended.take(request_id, urgency::current());
        appended.in_write().for_each(|id| half.set_written(id, Written::Whole));
        self.has_appended.store(appended.appended().next().is_some(), Ordering::Relaxed);
        octets
    }

    /// Records that the transport has accepted so many octets of appended requests. Returns the rest of one.
    fn settle_appended(&self, octets: &[u8], written: usize) -> Option<Range<usize>> {
        let mut pending = self.pending.lock();
        let PendingCalls { appended, half, reader } = &mut *pending;
        let rest = appended.settle(octets, written);
        if written < octets.len() {
            appended.appended().for_each(|id| half.set_written(id, Written::Partly));
            self.has_appended.store(appended.appended().next().is_some(), Ordering::Relaxed);
        }
        if reader.is_some() {
            // No thread could take the reader before, unless its request was written.
            pending.wake_next_reader();
        }
        rest
    }
}

impl Writer {
    /// Waits until the transport has accepted the rest of a message.
    fn send_rest(
        &mut self,
        connection: &ClientConnection,
        rest: &mut [io::IoSlice<'_>],
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        let Self { timeout, half, .. } = self;
        let mut before = || update_timeout(connection, timeout, deadline, Deadline::wait_to_send);
        send_slices(&*connection.transport, rest, &mut before).inspect_err(|_| half.cut())
    }
}

impl PendingCalls {
    /// Ends the write of a thread, if it has a writer role, and notifies those that go on.
    #[inline]
    pub(super) fn end_write(&mut self, request_id: u32) {
        if self.appended.end(request_id) {
            self.appended.lost().for_each(|id| self.half.set_written(id, Written::Partly));
            self.notify_appended();
        }
    }

    /// Removes a call whose thread stops waiting. Returns whether its request is not and never will be written.
    pub(super) fn leave(&mut self, request_id: u32) -> bool {
        self.half.remove(request_id);
        self.end_write(request_id);
        let is_taken_back = self.appended.remove(request_id);
        self.notify_appended();
        is_taken_back
    }

    fn notify_appended(&mut self) {
        let Self { appended, half, .. } = self;
        let notify = |id| half.call(id).and_then(|mut call| call.waiter().wake().map(Arc::clone));
        appended.lost().chain(appended.next()).filter_map(notify).for_each(|wake| {
            wake.notify_one();
        });
    }
}
