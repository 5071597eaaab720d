//! Readiness of a stream: decrypted octets may be buffered while the handle shows none, and the other way
//! round.

use spandrel_ipc::{Handle, Interest, Pollable, Prepared, Transfer};

use crate::Stream;
use crate::fault::Fault;
use crate::session::Session;
use crate::wait::Wait;

impl<S: Transfer> Pollable for Stream<S> {
    fn handle(&self) -> Handle<'_> {
        self.inner.handle()
    }

    fn pending(&self) -> bool {
        self.session.lock().is_readable()
    }

    fn is_plain(&self) -> bool {
        false
    }

    fn prepare(&self, wanted: Interest) -> Prepared {
        let mut ready = self.advance(Interest::NONE, wanted);
        for _ in 0..MAX_ROUNDS {
            let wait_for = self.session.lock().needs(wanted);
            let below = self.inner.prepare(wait_for);
            if !ready.is_none() || !below.ready.intersects(wait_for) {
                return Prepared { wait_for: below.wait_for, ready };
            }
            // The underlying stream decodes too, and has buffered input.
            ready = self.advance(below.ready, wanted);
        }
        // A peer that keeps sending, but no octets of data. The next transfer reports it.
        Prepared { wait_for: wanted, ready: wanted }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        let needs = self.session.lock().needs(wanted);
        self.advance(self.inner.interpret(seen, needs), wanted)
    }
}

impl<S: Transfer> Stream<S> {
    /// Receives and sends as much as possible without waiting, and returns the ready events of `wanted`.
    fn advance(&self, seen: Interest, wanted: Interest) -> Interest {
        let mut session = self.session.lock();
        let was_handshaking = session.is_handshaking();
        if was_handshaking && self.handshake_end.is_over() {
            session.fail(Fault::HandshakeTimeout);
        }
        if !session.decrypt() && seen.contains(Interest::INPUT) {
            session = self.fill(session, &mut Wait::No).0;
        }
        let is_readable = session.is_readable();
        session = self.send_without_waiting(session);
        let mut ready = seen & wanted & Interest::EXCEPTION;
        if is_readable {
            ready |= Interest::INPUT;
        }
        let may_send = seen.contains(Interest::OUTPUT) || was_handshaking;
        let is_writable = !session.is_handshaking() && !session.has_output() && may_send;
        if is_writable || session.check_sending().is_err() || session.is_handshaking() && is_readable {
            ready |= Interest::OUTPUT;
        }
        ready & wanted
    }
}

impl Session {
    /// The events of the underlying stream to wait for.
    fn needs(&self, wanted: Interest) -> Interest {
        let mut needs = wanted & Interest::EXCEPTION;
        if !wanted.intersects(Interest::INPUT | Interest::OUTPUT) {
            return needs;
        }
        needs |= if self.is_handshaking() { Interest::INPUT } else { wanted };
        if self.has_output() {
            needs |= Interest::OUTPUT;
        }
        needs
    }
}

/// The number of times in one preparation that the underlying stream may have buffered input.
const MAX_ROUNDS: usize = 8;
