//! Calls that no thread waits for: they are told what becomes of them.
//!
//! Their replies are read by whoever leads, and where no thread does, by the reactor's: it calls [`ClientConnection::serve_ready`]
//! when there is something to read and [`ClientConnection::write_ready`] when there is room to write. Nothing here waits. What the
//! transport does not take at once stays in the connection, and comes before all that others write.
//!
//! Nobody is told while a lock is held: who is told may call again at once.

use std::{collections::VecDeque, fmt, io, time::Duration};

use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_giop::{CancelRequest, CompletionStatus, SystemException, minor};
use spandrel_ipc::Interest;
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicU8, Ordering},
};

use super::{
    CallFailure, ClientConnection, CloseOnPanic, Writer,
    mux::{Awaiting, Mux, Waiter, Who},
};
use crate::reader::MessageReader;

/// In `wanted`: replies are to be read.
const INPUT: u8 = 1;
/// In `wanted`: requests are to be written.
const OUTPUT: u8 = 2;

/// How long the reactor waits for a thread that is about to write.
const PATIENCE: Duration = Duration::from_millis(1);

/// With more requests than this that nobody waits for any more, a connection is given to nobody else.
const MAX_ABANDONED: usize = 256;

/// A connection's place in a reactor, which calls [`ClientConnection::serve_ready`] and [`ClientConnection::write_ready`].
pub(crate) trait Seat: Send + Sync + fmt::Debug {
    /// Calls for this and nothing else from now on.
    fn wait_for(&self, interest: Interest);
    /// Calls as if there were something to read: there is, and the handle does not show it.
    fn look(&self);
    /// Calls never again.
    fn leave(&self);
}

/// What a connection has for calls that no thread waits for.
#[derive(Debug, Default)]
pub(super) struct Soon {
    /// What they have still to send.
    outbox: Mutex<Outbox>,
    /// What the reactor is wanted to wait for: [`INPUT`], [`OUTPUT`].
    wanted: AtomicU8,
    /// The place in the reactor, once one of them has needed it.
    post: Mutex<Post>,
}

/// The seat, and what it was told last.
#[derive(Debug, Default)]
struct Post {
    seat: Option<Arc<dyn Seat>>,
    told: u8,
}

/// Messages of which nothing was written yet, in order.
type Outbox = VecDeque<Unsent>;

/// A message that has still to be written.
#[derive(Debug)]
pub(super) struct Unsent {
    request_id: u32,
    octets: Vec<u8>,
    /// How many of them the transport has taken.
    at: usize,
    kind: Kind,
}

/// What is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    TwoWay,
    OneWay,
    /// A message that nobody waits for and that may as well get lost.
    Hint,
}

impl Unsent {
    fn is_whole(&self) -> bool {
        self.at == self.octets.len()
    }
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
    pub(crate) fn transport(&self) -> &Arc<dyn crate::transport::Transport> {
        &self.transport
    }

    pub(super) fn leave_reactor(&self) {
        let seat = self.soon.post.lock().seat.take();
        if let Some(seat) = seat {
            seat.leave();
        }
    }

    /// Sends a request without waiting. `told` learns what becomes of it, unless this fails; at most `limit` requests wait for
    /// their replies at once.
    ///
    /// # Errors
    /// If it cannot be sent on this connection: the peer has not acted on it. TRANSIENT at the limit.
    pub(crate) fn send_soon(
        &self,
        request_id: u32,
        request: &Encoder<'_>,
        kind: Kind,
        told: Arc<dyn Awaiting>,
        limit: usize,
    ) -> Result<(), CallFailure> {
        {
            let mut mux = self.mux.lock();
            if let Some(failure) = &mux.closed {
                return Err(unsent(failure));
            }
            if mux.waiters.len() >= limit {
                return Err(self.too_many(limit));
            }
            mux.waiters.push(Waiter { request_id, reply: None, who: Who::Task { told, is_sent: true } });
            if mux.reader.is_some() {
                self.want_input();
            }
        }
        self.tell_reactor(true);
        self.write_soon(request_id, request, kind)
    }

    /// Writes as much as can be written without waiting, and leaves the rest to the reactor.
    fn write_soon(&self, request_id: u32, message: &Encoder<'_>, kind: Kind) -> Result<(), CallFailure> {
        let queued = |at| Unsent { request_id, octets: message.to_vec(), at, kind };
        let Some(mut writer) = self.writer.try_lock() else {
            self.queue(queued(0));
            return Ok(());
        };
        if kind == Kind::Hint && writer.is_cut {
            return Ok(());
        }
        if writer.is_cut || self.is_retired() && kind != Kind::Hint {
            drop(writer);
            return self.refuse(request_id, io::ErrorKind::NotConnected.into());
        }
        if writer.rest.is_some() || !self.soon.outbox.lock().is_empty() {
            drop(writer);
            self.queue(queued(0));
            return Ok(());
        }
        match self.transport.try_send_v(&message.parts()) {
            Ok(sent) if sent == message.position() => {
                drop(writer);
                if kind == Kind::OneWay {
                    self.acknowledge(request_id);
                }
                Ok(())
            }
            Ok(sent) => {
                self.mark_sent(request_id, false);
                writer.rest = Some(queued(sent));
                drop(writer);
                self.want_output();
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                drop(writer);
                self.queue(queued(0));
                Ok(())
            }
            Err(error) => {
                writer.is_cut = true;
                drop(writer);
                self.mark_sent(request_id, false);
                self.end_after_last_words(error);
                Ok(())
            }
        }
    }

    /// The request cannot be written here; the peer need not be asked why.
    fn refuse(&self, request_id: u32, error: io::Error) -> Result<(), CallFailure> {
        let mut mux = self.mux.lock();
        let removed = mux.find(request_id).map(|at| mux.waiters.swap_remove(at));
        drop(mux);
        // If it was closed meanwhile, the call has been told.
        if removed.is_some() { Err(self.write_failed(error)) } else { Ok(()) }
    }

    /// Another writes, or there is no room.
    fn queue(&self, message: Unsent) {
        // Said before it can be written, lest it is said after.
        self.mark_sent(message.request_id, false);
        self.soon.outbox.lock().push_back(message);
        self.want_output();
    }

    fn want_output(&self) {
        self.soon.wanted.fetch_or(OUTPUT, Ordering::SeqCst);
        self.tell_reactor(true);
    }

    /// To be said while the reader is seen to be there.
    pub(super) fn want_input(&self) {
        self.soon.wanted.fetch_or(INPUT, Ordering::SeqCst);
    }

    /// Has the reactor wait for what is wanted now. `is_drained`: nothing was read that it has still to look at.
    pub(super) fn tell_reactor(&self, is_drained: bool) {
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

    /// Whether the transport has taken the request's last octet, or may have.
    fn mark_sent(&self, request_id: u32, sent: bool) {
        let mut mux = self.mux.lock();
        if let Some(at) = mux.find(request_id)
            && let Who::Task { is_sent, .. } = &mut mux.waiters[at].who
        {
            *is_sent = sent;
        }
    }

    /// The transport has taken a one-way.
    fn acknowledge(&self, request_id: u32) {
        let mut mux = self.mux.lock();
        let waiter = mux.find(request_id).map(|at| mux.waiters.swap_remove(at));
        drop(mux);
        if let Some(Waiter { who: Who::Task { told, .. }, .. }) = waiter {
            told.done(Ok(None));
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

    fn read_ready(&self, reader: &mut MessageReader) -> Result<(), CallFailure> {
        loop {
            match reader.next_ready(&*self.transport) {
                Ok(Some(message)) => self.deliver(self.sort(message)?),
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
            let Some(message) = rest else { return };
            if *is_cut {
                drop(writer);
                return self.fail_unsent();
            }
            match self.write_rest(message) {
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
    fn next_unsent(&self) -> Option<Unsent> {
        let next = self.soon.outbox.lock().pop_front();
        if next.is_some() {
            return next;
        }
        self.soon.wanted.fetch_and(!OUTPUT, Ordering::SeqCst);
        // Looked at afterwards: who puts something in says so after that.
        let late = self.soon.outbox.lock().pop_front();
        if late.is_some() {
            self.soon.wanted.fetch_or(OUTPUT, Ordering::SeqCst);
        }
        self.tell_reactor(true);
        late
    }

    /// True once the transport has taken it all.
    fn write_rest(&self, message: &mut Unsent) -> io::Result<bool> {
        while !message.is_whole() {
            // Said before: whoever sees the connection end from now on does not know whether the peer has the whole of it.
            self.mark_sent(message.request_id, true);
            match self.transport.try_send_v(&[io::IoSlice::new(&message.octets[message.at..])]) {
                Ok(sent) => message.at += sent,
                Err(error) => {
                    self.mark_sent(message.request_id, false);
                    return if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) };
                }
            }
            if !message.is_whole() {
                self.mark_sent(message.request_id, false);
            }
        }
        Ok(true)
    }

    /// The same by a thread that has a message of its own to write and waits for room. The reactor tells the call.
    pub(super) fn finish_rest(&self, message: &mut Unsent, arm: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        while !message.is_whole() {
            arm()?;
            self.mark_sent(message.request_id, true);
            let sent = self.transport.send(&message.octets[message.at..]);
            message.at += sent.as_ref().map_or(0, |sent| *sent);
            if !message.is_whole() {
                self.mark_sent(message.request_id, false);
            }
            sent?;
        }
        Ok(())
    }

    /// Nothing can be written any more, for this reason, unless the peer said another before. All calls are told.
    fn end_after_last_words(&self, error: io::Error) {
        self.retire();
        let reader = self.mux.lock().reader.take();
        let Some(mut reader) = reader else {
            // Whoever reads sees the end by itself.
            return self.fail_unsent();
        };
        let guard = CloseOnPanic(self);
        let said = self.read_ready(&mut reader);
        drop(guard);
        let failure = said.err().unwrap_or_else(|| {
            let exception = SystemException::comm_failure(0, CompletionStatus::Maybe);
            CallFailure::new(exception.with_detail(|| format!("writing to {} failed", self.peer)).with_source(error))
        });
        self.close(failure);
        self.put_back(reader, None, true);
        self.fail_unsent();
    }

    /// Tells those whose requests stay unwritten for good, if that is so.
    pub(super) fn fail_unsent(&self) {
        // Where it is locked, nothing is cut off yet, or who cuts it off does this.
        let Some(mut writer) = self.writer.try_lock() else { return };
        if !writer.is_cut {
            return;
        }
        let queued = std::mem::take(&mut *self.soon.outbox.lock());
        let unwritten: Vec<Unsent> = writer.rest.take().into_iter().chain(queued).collect();
        drop(writer);
        let taken = unwritten.iter().filter(|message| message.is_whole() && message.kind == Kind::OneWay);
        taken.for_each(|message| self.acknowledge(message.request_id));
        if unwritten.is_empty() {
            return;
        }
        let is_unwritten = |id| unwritten.iter().any(|message| message.request_id == id && !message.is_whole());
        let mut mux = self.mux.lock();
        let unsent = |waiter: &mut Waiter| is_unwritten(waiter.request_id) && !matches!(waiter.who, Who::Thread(_));
        let tasks: Vec<_> = mux.waiters.extract_if(.., unsent).collect();
        drop(mux);
        let exception = SystemException::comm_failure(0, CompletionStatus::No);
        let failure = exception.with_detail(|| format!("writing to {} was cut off", self.peer));
        self.fail_all(tasks, &CallFailure::stale(failure));
    }

    pub(super) fn fail_all(&self, tasks: Vec<Waiter>, failure: &CallFailure) {
        for task in tasks {
            if let Who::Task { told, is_sent } = task.who {
                told.done(Err(if is_sent { failure.clone() } else { unsent(failure) }));
            }
        }
    }

    /// Nobody waits for this reply any more. True if the peer may have the request.
    ///
    /// `wire`: as the request was written, if the peer is to be told. `retires`: the connection is given to nobody any more, as it is after time-outs.
    pub(crate) fn abandon(&self, request_id: u32, wire: Option<Wire>, retires: bool) -> bool {
        if retires {
            self.retire();
        }
        let mut outbox = self.soon.outbox.lock();
        let unwritten = outbox.iter().position(|message| message.request_id == request_id);
        let unwritten = unwritten.and_then(|at| outbox.remove(at));
        drop(outbox);
        let mut mux = self.mux.lock();
        let Some(at) = mux.find(request_id) else { return true };
        if unwritten.is_some() {
            let removed = mux.waiters.swap_remove(at);
            drop(mux);
            drop(removed);
            return false;
        }
        let was = std::mem::replace(&mut mux.waiters[at].who, Who::Nobody);
        if mux.waiters.iter().filter(|waiter| matches!(waiter.who, Who::Nobody)).count() > MAX_ABANDONED {
            self.retire();
        }
        drop(mux);
        // What he may do when he is let go is anybody's code.
        drop(was);
        // Also where the transport has taken only a part of it yet: the rest will follow, before what others have to send.
        let Some(wire) = wire.filter(|wire| wire.version >= GiopVersion::V1_2) else { return true };
        let mut out = Encoder::new(wire);
        if (CancelRequest { request_id }).encode(&mut out).is_ok() {
            // A hint: if it cannot be sent, the server merely works in vain.
            let _ = self.write_soon(request_id, &out, Kind::Hint);
        }
        true
    }

    /// The reactor ends, or can wait for this connection no longer.
    pub(crate) fn deserted(&self, why: &str) {
        let exception = SystemException::comm_failure(0, CompletionStatus::Maybe);
        let detail = || format!("the replies of {} can no longer be waited for: {why}", self.peer);
        self.close(CallFailure::new(exception.with_detail(detail)));
    }

    fn too_many(&self, limit: usize) -> CallFailure {
        let detail = || format!("{limit} requests to {} wait for their replies (`-ORBPendingRequests`)", self.peer);
        CallFailure::new(SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No).with_detail(detail))
    }
}

/// True if nothing was read beyond the messages that were taken.
pub(super) fn is_drained(reader: &MessageReader) -> bool {
    reader.is_drained()
}

impl Mux {
    /// All but threads.
    pub(super) fn take_tasks(&mut self) -> Vec<Waiter> {
        self.waiters.extract_if(.., |waiter| !matches!(waiter.who, Who::Thread(_))).collect()
    }

    /// Whether replies will come that no thread waits for.
    pub(super) fn has_tasks(&self) -> bool {
        self.waiters.iter().any(|waiter| !matches!(waiter.who, Who::Thread(_)))
    }
}

/// What one learns whose request was not written to its end when the connection ended: the peer cannot have acted on it.
fn unsent(failure: &CallFailure) -> CallFailure {
    let exception = failure.exception.clone().with_completed(CompletionStatus::No);
    CallFailure { exception, stale: !failure.is_explained, is_explained: failure.is_explained }
}

fn interest(wanted: u8) -> Interest {
    match wanted & (INPUT | OUTPUT) {
        0 => Interest::NONE,
        INPUT => Interest::INPUT,
        OUTPUT => Interest::OUTPUT,
        _ => Interest::INPUT | Interest::OUTPUT,
    }
}
