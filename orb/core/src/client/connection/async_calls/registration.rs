//! The registration of a connection with the reactor: the events it waits for, and their handling.

use std::{fmt, io, time::Duration};

use spandrel_ipc::Interest;
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicU8, Ordering},
};

use super::{
    super::{ClientConnection, CloseOnPanic, Writer},
    Unsent, UnsentKind, UnsentMessage, WriteQueue,
};

/// In `wanted_interest`: replies are to be read.
const INPUT: u8 = 1;
/// In `wanted_interest`: requests are to be written.
const OUTPUT: u8 = 2;

/// The most messages that the reactor reads from one connection before it serves others: a server may send without
/// end.
pub(super) const MOST_AT_ONCE: usize = 1024;

/// The longest wait of the reactor for the lock of a thread that writes.
pub(super) const WRITER_LOCK_TIMEOUT: Duration = Duration::from_millis(1);

/// A connection's registration with a reactor, which calls [`serve_ready`] and [`write_ready`].
pub(crate) trait ReactorRegistration: Send + Sync + fmt::Debug {
    /// Replaces the events for which the reactor calls.
    fn wait_for(&self, interest: Interest);
    /// Makes the reactor call as if the handle were readable: there is input that the handle does not show.
    fn mark_readable(&self);
    /// Ends the registration.
    fn deregister(&self);
}

/// The registration of a connection with a reactor, and the events that it waits for.
#[derive(Debug, Default)]
pub(super) struct Registration {
    /// The events that the reactor is to wait for.
    wanted_interest: AtomicU8,
    /// The registration, made by the first asynchronous call.
    state: Mutex<RegistrationState>,
}

/// The registration, and the interest that it has now.
#[derive(Debug, Default)]
struct RegistrationState {
    registration: Option<Arc<dyn ReactorRegistration>>,
    reported_interest: u8,
}

impl Registration {
    /// Registers the connection with a reactor, unless it is registered.
    ///
    /// # Errors
    /// Those of `register`.
    pub(super) fn register_with(
        &self,
        register: impl FnOnce() -> io::Result<Arc<dyn ReactorRegistration>>,
    ) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.registration.is_none() {
            state.registration = Some(register()?);
        }
        Ok(())
    }

    /// Ends the registration.
    pub(super) fn leave(&self) {
        let registration = self.state.lock().registration.take();
        if let Some(registration) = registration {
            registration.deregister();
        }
    }

    /// Whether something waits to be written.
    pub(super) fn wants_output(&self) -> bool {
        self.wanted_interest.load(Ordering::SeqCst) & OUTPUT != 0
    }

    pub(super) fn want_output(&self) {
        self.wanted_interest.fetch_or(OUTPUT, Ordering::SeqCst);
        self.update_interest(true);
    }

    /// Adds reading to the interest. The caller holds the lock under which it has seen the idle reader.
    pub(super) fn want_input(&self) {
        self.wanted_interest.fetch_or(INPUT, Ordering::SeqCst);
    }

    /// Passes the wanted interest to the reactor. `is_drained`: the reader has buffered no further input.
    pub(super) fn update_interest(&self, is_drained: bool) {
        let mut state = self.state.lock();
        // Loaded under the lock, so that the last caller passes the newest value.
        let wanted_interest = self.wanted_interest.load(Ordering::SeqCst);
        let Some(registration) = state.registration.clone() else { return };
        if state.reported_interest != wanted_interest {
            state.reported_interest = wanted_interest;
            registration.wait_for(interest(wanted_interest));
        }
        if !is_drained && wanted_interest & INPUT != 0 {
            registration.mark_readable();
        }
    }

    /// Removes the next message to be written. Without any, the reactor no longer waits for output.
    fn next_unsent(&self, write_queue: &Mutex<WriteQueue>) -> Option<UnsentMessage> {
        let next = write_queue.lock().pop();
        if next.is_some() {
            return next;
        }
        self.wanted_interest.fetch_and(!OUTPUT, Ordering::SeqCst);
        // Checked after the interest was removed: a thread adds its message before the interest.
        let late = write_queue.lock().pop();
        if late.is_some() {
            self.wanted_interest.fetch_or(OUTPUT, Ordering::SeqCst);
        }
        self.update_interest(true);
        late
    }
}

/// Reads the available messages of a connection, [so many](MOST_AT_ONCE) at most; called by its reactor. Returns false
/// when no more will come.
pub(crate) fn serve_ready(connection: &ClientConnection) -> bool {
    let registration = &connection.async_state().registration;
    let mut pending = connection.pending.lock();
    if pending.half.ended().is_some() {
        return false;
    }
    let Some(mut reader) = pending.reader.take() else {
        // A thread reads. It adds the interest again when the reactor has to read.
        registration.wanted_interest.fetch_and(!INPUT, Ordering::SeqCst);
        drop(pending);
        registration.update_interest(true);
        return true;
    };
    drop(pending);
    let guard = CloseOnPanic(connection);
    let has_taken_all = connection.read_available(&mut reader, MOST_AT_ONCE).map_err(|end| connection.close(end));
    drop(guard);
    connection.return_reader(reader, None, true);
    if matches!(has_taken_all, Ok(false)) {
        // The reactor calls again, after it has served others.
        registration.update_interest(false);
    }
    has_taken_all.is_ok()
}

/// Writes as much of a connection's messages as the transport takes; called by its reactor.
pub(crate) fn write_ready(connection: &ClientConnection) {
    let state = connection.async_state();
    // A thread that holds the lock finds no room either, or has soon finished.
    let Some(mut writer) = connection.writer.try_lock_for(WRITER_LOCK_TIMEOUT) else { return };
    loop {
        let Writer { unsent, half, .. } = &mut *writer;
        let Unsent { rest, batching } = Unsent::get_or_make(unsent);
        if rest.is_none() {
            *rest = state.registration.next_unsent(&state.write_queue);
        }
        let Some(message) = rest else {
            drop(writer);
            connection.notify_written();
            return;
        };
        if !half.may_write() && !message.is_whole() {
            drop(writer);
            return connection.fail_unsent();
        }
        match message.write_ready(connection) {
            Ok(true) if message.is_batch() => batching.end(rest, false, &connection.statistics),
            Ok(true) => {
                let (request_id, kind) = (message.request_id, message.kind);
                *rest = None;
                if kind == UnsentKind::OneWay {
                    drop(writer);
                    // The reactor calls again for the others.
                    return connection.acknowledge(request_id);
                }
            }
            Ok(false) => return,
            Err(error) => {
                half.cut();
                drop(writer);
                return connection.end_with_peer_reason(error);
            }
        }
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
