//! A connection in the reactor: what it is wanted to wait for, and what happens when that comes.

use std::{fmt, io, time::Duration};

use spandrel_ipc::Interest;
use spandrel_sync::{Arc, atomic::Ordering};
use spandrel_transport::MessageReader;

use super::{
    super::{CallFailure, ClientConnection, CloseOnPanic, Writer},
    Kind, Unsent,
};

/// In `wanted`: replies are to be read.
const INPUT: u8 = 1;
/// In `wanted`: requests are to be written.
pub(super) const OUTPUT: u8 = 2;

/// How long the reactor waits for a thread that is about to write.
pub(super) const PATIENCE: Duration = Duration::from_millis(1);

/// A connection's place in a reactor, which calls [`ClientConnection::serve_ready`] and [`ClientConnection::write_ready`].
pub(crate) trait Seat: Send + Sync + fmt::Debug {
    /// Calls for this and nothing else from now on.
    fn wait_for(&self, interest: Interest);
    /// Calls as if there were something to read: there is, and the handle does not show it.
    fn look(&self);
    /// Calls never again.
    fn leave(&self);
}

/// The seat, and what it was told last.
#[derive(Debug, Default)]
pub(super) struct Post {
    seat: Option<Arc<dyn Seat>>,
    told: u8,
}

impl ClientConnection {
    /// Takes a place in a reactor, unless it has one.
    ///
    /// # Errors
    /// Those of `register`.
    pub(crate) fn take_seat(
        self: &Arc<Self>,
        register: impl FnOnce(&Arc<Self>) -> io::Result<Arc<dyn Seat>>,
    ) -> io::Result<()> {
        let mut post = self.soon.post.lock();
        if post.seat.is_none() {
            post.seat = Some(register(self)?);
        }
        Ok(())
    }

    /// What a reactor waits on.
    pub(crate) fn transport(&self) -> &Arc<dyn crate::transport::ConnectionTransport> {
        &self.transport
    }

    pub(in crate::client::connection) fn leave_reactor(&self) {
        let seat = self.soon.post.lock().seat.take();
        if let Some(seat) = seat {
            seat.leave();
        }
    }

    pub(super) fn want_output(&self) {
        self.soon.wanted.fetch_or(OUTPUT, Ordering::SeqCst);
        self.tell_reactor(true);
    }

    /// To be said while the reader is seen to be there.
    pub(in crate::client::connection) fn want_input(&self) {
        self.soon.wanted.fetch_or(INPUT, Ordering::SeqCst);
    }

    /// Has the reactor wait for what is wanted now. `is_drained`: nothing was read that it has still to look at.
    pub(in crate::client::connection) fn tell_reactor(&self, is_drained: bool) {
        let mut post = self.soon.post.lock();
        // Loaded under the lock, so that whoever comes last tells what was wanted last.
        let wanted = self.soon.wanted.load(Ordering::SeqCst);
        let Some(seat) = post.seat.clone() else { return };
        if post.told != wanted {
            post.told = wanted;
            seat.wait_for(interest(wanted));
        }
        if !is_drained && wanted & INPUT != 0 {
            seat.look();
        }
    }

    /// Reads what is there; called by the reactor. False: nothing more will come.
    pub(crate) fn serve_ready(&self) -> bool {
        let mut mux = self.mux.lock();
        if mux.closed.is_some() {
            return false;
        }
        let Some(mut reader) = mux.reader.take() else {
            // A thread leads. It says so when somebody else has to read.
            self.soon.wanted.fetch_and(!INPUT, Ordering::SeqCst);
            drop(mux);
            self.tell_reactor(true);
            return true;
        };
        drop(mux);
        let guard = CloseOnPanic(self);
        let ended = self.read_ready(&mut reader).map_err(|failure| self.close(failure));
        drop(guard);
        self.put_back(reader, None, true);
        ended.is_ok()
    }

    pub(super) fn read_ready(&self, reader: &mut MessageReader) -> Result<(), CallFailure> {
        loop {
            match reader.next_ready(&*self.transport) {
                Ok(Some(message)) => {
                    if let Some(reply) = self.sort(message)? {
                        self.deliver(reply);
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.read_failed(error)),
            }
        }
    }

    /// Writes what there is room for; called by the reactor.
    pub(crate) fn write_ready(&self) {
        // A thread that writes finds no room either, or is done soon.
        let Some(mut writer) = self.writer.try_lock_for(PATIENCE) else { return };
        loop {
            if writer.rest.is_none() {
                writer.rest = self.next_unsent();
            }
            let Writer { rest, is_cut, .. } = &mut *writer;
            let Some(message) = rest else {
                drop(writer);
                #[cfg(feature = "server")]
                self.tell_written();
                return;
            };
            if *is_cut {
                drop(writer);
                return self.fail_unsent();
            }
            match self.write_rest(message) {
                #[cfg(feature = "batching")]
                Ok(true) if message.is_batch() => writer.end_batch(&self.statistics),
                Ok(true) => {
                    let (request_id, kind) = (message.request_id, message.kind);
                    *rest = None;
                    if kind == Kind::OneWay {
                        drop(writer);
                        // Called again for the others.
                        return self.acknowledge(request_id);
                    }
                }
                Ok(false) => return,
                Err(error) => {
                    *is_cut = true;
                    drop(writer);
                    return self.end_after_last_words(error);
                }
            }
        }
    }

    /// The next message to be written; without any, the reactor need not call for it.
    pub(super) fn next_unsent(&self) -> Option<Unsent> {
        let next = self.soon.outbox.lock().pop();
        if next.is_some() {
            return next;
        }
        self.soon.wanted.fetch_and(!OUTPUT, Ordering::SeqCst);
        // Looked at afterwards: who puts something in says so after that.
        let late = self.soon.outbox.lock().pop();
        if late.is_some() {
            self.soon.wanted.fetch_or(OUTPUT, Ordering::SeqCst);
        }
        self.tell_reactor(true);
        late
    }
}

fn interest(wanted: u8) -> Interest {
    match wanted & (INPUT | OUTPUT) {
        0 => Interest::NONE,
        INPUT => Interest::INPUT,
        OUTPUT => Interest::OUTPUT,
        _ => Interest::INPUT | Interest::OUTPUT,
    }
}
