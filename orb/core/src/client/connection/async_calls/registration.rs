//! The registration of a connection with the reactor: the events it waits for, and their handling.

use std::{fmt, io, time::Duration};

use spandrel_ipc::{Interest, Pollable};
use spandrel_sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use super::{
    super::{ClientConnection, CloseOnPanic, NotificationScope, Writer},
    Unsent, UnsentKind, WriteQueue, kept_turns,
    run::Run,
    wake_batch::WakeBatch,
};

/// In `wanted_interest`: replies are to be read.
const INPUT: u8 = 1;
/// In `wanted_interest`: requests are to be written.
const OUTPUT: u8 = 2;
/// In `wanted_interest`: the reactor delivers replies, and looks at [`OUTPUT`] afterwards.
const IN_TURN: u8 = 4;

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
    /// Makes the reactor call no longer; a call that is under way may still end later.
    fn deregister(&self);
}

/// The registration of a connection with a reactor, and the events that it waits for.
#[derive(Debug, Default)]
pub(super) struct Registration {
    /// The events that the reactor is to wait for.
    wanted_interest: AtomicU8,
    /// The events that it waits for now, or as soon as the thread with the lock has said so.
    reported_interest: AtomicU8,
    is_registered: AtomicBool,
    /// The registration, made by the first asynchronous call.
    registration: Mutex<Option<Arc<dyn ReactorRegistration>>>,
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
        let mut registration = self.registration.lock();
        if registration.is_some() {
            return Ok(());
        }
        *registration = Some(register()?);
        self.is_registered.store(true, Ordering::SeqCst);
        drop(registration);
        self.update_interest(true);
        Ok(())
    }

    pub(super) fn is_registered(&self) -> bool {
        self.is_registered.load(Ordering::SeqCst)
    }

    /// Leaves the reactor, if the connection is registered. It may register again.
    pub(super) fn leave(&self) {
        let mut registration = self.registration.lock();
        self.is_registered.store(false, Ordering::SeqCst);
        self.reported_interest.store(0, Ordering::SeqCst);
        let ended = registration.take();
        drop(registration);
        if let Some(registration) = ended {
            registration.deregister();
        }
    }

    /// Whether something waits to be written.
    pub(super) fn wants_output(&self) -> bool {
        self.wanted_interest.load(Ordering::SeqCst) & OUTPUT != 0
    }

    /// Has the reactor write what was queued. Without a change, it was told before or will look.
    pub(super) fn want_output(&self) {
        if self.wanted_interest.fetch_or(OUTPUT, Ordering::SeqCst) & (OUTPUT | IN_TURN) == 0 {
            self.update_interest(true);
        }
    }

    /// Begins a turn of the reactor: until its end, it need not be told of output.
    pub(super) fn begin_turn(&self) {
        self.wanted_interest.fetch_or(IN_TURN, Ordering::SeqCst);
    }

    /// Ends the turn. Returns whether something is to be written.
    fn end_turn(&self) -> bool {
        self.wanted_interest.fetch_and(!IN_TURN, Ordering::SeqCst) & OUTPUT != 0
    }

    /// Adds reading to the interest. The caller holds the lock under which it has seen the idle reader.
    pub(super) fn want_input(&self) {
        self.wanted_interest.fetch_or(INPUT, Ordering::SeqCst);
    }

    /// Passes the wanted interest to the reactor. `is_drained`: the reader has buffered no further input.
    pub(super) fn update_interest(&self, is_drained: bool) {
        // In most cases nothing is to be done. A thread that passes an older value loads the wanted one again afterwards.
        if is_drained && self.changed_interest().is_none() {
            return;
        }
        let registration = self.registration.lock();
        let Some(registration) = &*registration else { return };
        while let Some(wanted_interest) = self.changed_interest() {
            self.reported_interest.store(wanted_interest, Ordering::SeqCst);
            registration.wait_for(interest(wanted_interest));
        }
        if !is_drained && self.wanted_interest.load(Ordering::SeqCst) & INPUT != 0 {
            registration.mark_readable();
        }
    }

    /// The interest that the reactor is to have, unless it has it already.
    fn changed_interest(&self) -> Option<u8> {
        let reported_interest = self.reported_interest.load(Ordering::SeqCst);
        let mut wanted_interest = self.wanted_interest.load(Ordering::SeqCst);
        if wanted_interest & IN_TURN != 0 {
            // The end of the turn looks whether there is output.
            wanted_interest = wanted_interest & INPUT | reported_interest & OUTPUT;
        }
        (wanted_interest != reported_interest).then_some(wanted_interest)
    }

    /// Removes the next messages to be written. Without any, the reactor no longer waits for output.
    fn next_run(&self, write_queue: &Mutex<WriteQueue>) -> Run {
        let next = Run::take(write_queue);
        if !next.is_empty() {
            return next;
        }
        self.wanted_interest.fetch_and(!OUTPUT, Ordering::SeqCst);
        // Checked after the interest was removed: a thread adds its message before the interest.
        let late = Run::take(write_queue);
        if !late.is_empty() {
            self.wanted_interest.fetch_or(OUTPUT, Ordering::SeqCst);
        }
        self.update_interest(true);
        late
    }
}

/// Reads the available messages of a connection, [so many](MOST_AT_ONCE) at most; called by its reactor. Returns false
/// when no more will come.
pub(crate) fn serve_ready(connection: &Arc<ClientConnection>) -> bool {
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
    registration.begin_turn();
    let guard = CloseOnPanic(connection);
    let batch = WakeBatch::begin();
    // A waker may call the same peer, and must not wait for a reply on this connection.
    let wake_all = || {
        connection.dispatch_accepted_callbacks();
        batch.wake_all(|| NotificationScope::begin(connection));
    };
    let handle_shows_rest = connection.transport.pollable().is_some_and(Pollable::is_plain);
    let has_taken_all = connection.read_available(&mut reader, (MOST_AT_ONCE, handle_shows_rest), wake_all);
    wake_all();
    drop(batch);
    let has_taken_all = has_taken_all.map_err(|end| connection.close(end));
    drop(guard);
    connection.return_reader(reader, None, true);
    if !kept_turns::keep(connection) {
        write_appended(connection);
    }
    // If there is more, the reactor calls again, after it has served others.
    registration.update_interest(!matches!(has_taken_all, Ok(false)));
    has_taken_all.is_ok()
}

/// Ends a turn of the reactor, and writes what was queued in it.
pub(super) fn write_appended(connection: &ClientConnection) {
    // A thread that writes is not waited for: it may need this thread to read. The reactor waits for room instead.
    if connection.async_state().registration.end_turn()
        && let Some(writer) = connection.writer.try_lock()
    {
        write_queued(connection, writer);
    }
}

/// Writes as much of a connection's messages as the transport takes; called by its reactor.
pub(crate) fn write_ready(connection: &ClientConnection) {
    // A thread that holds the lock finds no room either, or has soon finished.
    if let Some(writer) = connection.writer.try_lock_for(WRITER_LOCK_TIMEOUT) {
        write_queued(connection, writer);
    }
}

fn write_queued(connection: &ClientConnection, mut writer: MutexGuard<'_, Writer>) {
    let state = connection.async_state();
    loop {
        let Writer { unsent, half, .. } = &mut *writer;
        let Unsent { rest, batching } = Unsent::get_or_make(unsent);
        let Some(message) = rest else {
            let mut run = state.registration.next_run(&state.write_queue);
            if run.is_empty() {
                drop(writer);
                connection.notify_written();
                state.flow_waiters.notify();
                return;
            }
            if !half.may_write() && run.has_unwritten() {
                run.put_back(&state.write_queue);
                drop(writer);
                return connection.fail_unsent();
            }
            let sent = run.write(connection, |parts| connection.transport.try_send_v(parts));
            run.settle(Unsent::get_or_make(unsent), &connection.statistics);
            let one_ways = run.take_one_ways();
            run.put_back(&state.write_queue);
            let error = sent.err();
            if error.is_none() && one_ways.is_empty() {
                continue;
            }
            let error = error.filter(|error| error.kind() != io::ErrorKind::WouldBlock);
            if error.is_some() {
                half.cut();
            }
            drop(writer);
            one_ways.into_iter().for_each(|request_id| connection.acknowledge(request_id));
            if let Some(error) = error {
                connection.end_with_peer_reason(error);
            }
            // The reactor calls again for the others.
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
