//! The registration of a connection with the reactor: the events it waits for, and their handling.

use std::{fmt, io, time::Duration};

use spandrel_ipc::Interest;
use spandrel_sync::{Arc, atomic::Ordering};
use spandrel_transport::MessageReader;

use super::{
    super::{ClientConnection, CloseOnPanic, ConnectionEnd, Writer},
    Unsent, UnsentKind, UnsentMessage,
};

/// In `wanted_interest`: replies are to be read.
const INPUT: u8 = 1;
/// In `wanted_interest`: requests are to be written.
pub(super) const OUTPUT: u8 = 2;

/// The longest wait of the reactor for the lock of a thread that writes.
pub(super) const WRITER_LOCK_TIMEOUT: Duration = Duration::from_millis(1);

/// A connection's registration with a reactor, which calls [`ClientConnection::serve_ready`] and
/// [`ClientConnection::write_ready`].
pub(crate) trait ReactorRegistration: Send + Sync + fmt::Debug {
    /// Replaces the events for which the reactor calls.
    fn wait_for(&self, interest: Interest);
    /// Makes the reactor call as if the handle were readable: there is input that the handle does not show.
    fn mark_readable(&self);
    /// Ends the registration.
    fn deregister(&self);
}

/// The registration, and the interest that it has now.
#[derive(Debug, Default)]
pub(super) struct RegistrationState {
    registration: Option<Arc<dyn ReactorRegistration>>,
    reported_interest: u8,
}

impl ClientConnection {
    /// Registers the connection with a reactor, unless it is registered.
    ///
    /// # Errors
    /// Those of `register`.
    pub(crate) fn register_with(
        self: &Arc<Self>,
        register: impl FnOnce(&Arc<Self>) -> io::Result<Arc<dyn ReactorRegistration>>,
    ) -> io::Result<()> {
        let mut state = self.async_state().state.lock();
        if state.registration.is_none() {
            state.registration = Some(register(self)?);
        }
        Ok(())
    }

    /// Ends the registration.
    pub(super) fn leave_reactor(&self) {
        let registration = self.find_async_state().and_then(|state| state.state.lock().registration.take());
        if let Some(registration) = registration {
            registration.deregister();
        }
    }

    /// The transport that a reactor waits on.
    pub fn transport(&self) -> &Arc<dyn crate::transport::ConnectionTransport> {
        &self.transport
    }

    pub(super) fn want_output(&self) {
        self.async_state().wanted_interest.fetch_or(OUTPUT, Ordering::SeqCst);
        self.update_interest(true);
    }

    /// Adds reading to the interest. The caller holds the lock under which it has seen the idle reader.
    pub(super) fn want_input(&self) {
        self.async_state().wanted_interest.fetch_or(INPUT, Ordering::SeqCst);
    }

    /// Passes the wanted interest to the reactor. `is_drained`: the reader has buffered no further input.
    pub(super) fn update_interest(&self, is_drained: bool) {
        let mut state = self.async_state().state.lock();
        // Loaded under the lock, so that the last caller passes the newest value.
        let wanted_interest = self.async_state().wanted_interest.load(Ordering::SeqCst);
        let Some(registration) = state.registration.clone() else { return };
        if state.reported_interest != wanted_interest {
            state.reported_interest = wanted_interest;
            registration.wait_for(interest(wanted_interest));
        }
        if !is_drained && wanted_interest & INPUT != 0 {
            registration.mark_readable();
        }
    }

    /// Reads the available messages; called by the reactor. Returns false when no more will come.
    pub(crate) fn serve_ready(&self) -> bool {
        let mut pending = self.pending.lock();
        if pending.half.ended().is_some() {
            return false;
        }
        let Some(mut reader) = pending.reader.take() else {
            // A thread reads. It adds the interest again when the reactor has to read.
            self.async_state().wanted_interest.fetch_and(!INPUT, Ordering::SeqCst);
            drop(pending);
            self.update_interest(true);
            return true;
        };
        drop(pending);
        let guard = CloseOnPanic(self);
        let ended = self.read_ready(&mut reader).map_err(|end| self.close(end));
        drop(guard);
        self.return_reader(reader, None, true);
        ended.is_ok()
    }

    pub(super) fn read_ready(&self, reader: &mut MessageReader) -> Result<(), ConnectionEnd> {
        loop {
            match reader.next_ready(&*self.transport) {
                Ok(Some(message)) => {
                    if let Some(reply) = self.parse_message(message)? {
                        self.deliver(reply);
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.read_failed(error)),
            }
        }
    }

    /// Writes as much as the transport takes; called by the reactor.
    pub(crate) fn write_ready(&self) {
        // A thread that holds the lock finds no room either, or has soon finished.
        let Some(mut writer) = self.writer.try_lock_for(WRITER_LOCK_TIMEOUT) else { return };
        loop {
            let Writer { unsent, half, .. } = &mut *writer;
            let Unsent { rest, batching } = self.async_state().unsent(unsent);
            if rest.is_none() {
                *rest = self.next_unsent();
            }
            let Some(message) = rest else {
                drop(writer);
                self.notify_written();
                return;
            };
            if !half.may_write() && !message.is_whole() {
                drop(writer);
                return self.fail_unsent();
            }
            match self.write_rest(message) {
                Ok(true) if message.is_batch() => batching.end(rest, false, &self.statistics),
                Ok(true) => {
                    let (request_id, kind) = (message.request_id, message.kind);
                    *rest = None;
                    if kind == UnsentKind::OneWay {
                        drop(writer);
                        // The reactor calls again for the others.
                        return self.acknowledge(request_id);
                    }
                }
                Ok(false) => return,
                Err(error) => {
                    half.cut();
                    drop(writer);
                    return self.end_with_peer_reason(error);
                }
            }
        }
    }

    /// Removes the next message to be written. Without any, the reactor no longer waits for output.
    pub(super) fn next_unsent(&self) -> Option<UnsentMessage> {
        let next = self.async_state().write_queue.lock().pop();
        if next.is_some() {
            return next;
        }
        self.async_state().wanted_interest.fetch_and(!OUTPUT, Ordering::SeqCst);
        // Checked after the interest was removed: a thread adds its message before the interest.
        let late = self.async_state().write_queue.lock().pop();
        if late.is_some() {
            self.async_state().wanted_interest.fetch_or(OUTPUT, Ordering::SeqCst);
        }
        self.update_interest(true);
        late
    }
}

fn interest(wanted_interest: u8) -> Interest {
    match wanted_interest & (INPUT | OUTPUT) {
        0 => Interest::NONE,
        INPUT => Interest::INPUT,
        OUTPUT => Interest::OUTPUT,
        _ => Interest::INPUT | Interest::OUTPUT,
    }
}
