//! Transfers of ciphertext: the only place that receives from and sends to the underlying stream.

use std::io::{self, IoSlice, IoSliceMut};

use spandrel_ipc::{Interest, Shutdown, Transfer, is_timeout, wait_ready};
use spandrel_sync::MutexGuard;

use crate::Stream;
use crate::fault::Fault;
use crate::scratch;
use crate::session::{Output, Session};
use crate::wait::Wait;

/// The lock is passed in, released while waiting for the underlying stream, and returned with the result.
pub(crate) type Locked<'a> = MutexGuard<'a, Session>;
pub(crate) type Step<'a> = (Locked<'a>, io::Result<()>);

/// Transfers of plaintext, which the session encrypts and decrypts.
impl<S: Transfer> Stream<S> {
    pub(crate) fn recv_as(&self, slices: &mut [IoSliceMut<'_>], mut wait: Wait) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        let mut session = self.session.lock();
        session.may_wait = wait.may_wait();
        let mut has_sent = false;
        loop {
            if session.is_handshaking() && !session.is_read_shut {
                session = into_result(self.establish(session, &mut wait))?;
            }
            let accepted = session.take(slices);
            if session.has_output() && !has_sent {
                session = self.send_without_waiting(session); // alerts, new keys
                has_sent = true;
                if let Ok(None) = accepted {
                    continue; // the lock was free meanwhile, so octets may have arrived
                }
            }
            match accepted? {
                Some(octets) => return Ok(octets),
                None => session = into_result(self.fill(session, &mut wait))?,
            }
            has_sent = false;
        }
    }

    pub(crate) fn send_as(&self, slices: &[IoSlice<'_>], mut wait: Wait) -> io::Result<usize> {
        let Some(first) = slices.iter().position(|slice| !slice.is_empty()) else { return Ok(0) };
        let slices = &slices[first..];
        if slices.iter().map(|slice| slice.len()).sum::<usize>() == 1 {
            self.await_room(wait)?;
        }
        let mut session = self.session.lock();
        session.may_wait = wait.may_wait();
        session = into_result(self.establish(session, &mut wait))?;
        let octets = loop {
            session = into_result(self.await_sender(session, wait))?;
            session.check_sending()?;
            if session.output.is_held() {
                return self.send_held(session, slices[0][0], wait);
            }
            session = into_result(self.send_output(session, &mut wait))?;
            if session.is_sending {
                continue;
            }
            session.check_sending()?; // another thread may have shut it down meanwhile
            match session.put(slices)? {
                0 => {}
                octets => break octets,
            }
        };
        let encrypted = session.encrypted();
        let (mut session, result) = self.send_output(session, &mut wait);
        match result {
            // Failures behind these octets, such as a shutdown by another thread meanwhile, concern other
            // calls.
            _ if session.has_sent(encrypted) => Ok(octets),
            Err(error) if is_timeout(&error) => {
                // The last octet is reported as unsent, so that the sender repeats it.
                let is_held = octets > 1 && session.output.hold(octet_at(slices, octets - 1));
                Ok(octets - usize::from(is_held))
            }
            result => result.map(|()| octets),
        }
    }

    /// Continues a send that stopped in the middle of a record: `next` is already encrypted with the octets
    /// before it.
    fn send_held(&self, mut session: Locked<'_>, next: u8, mut wait: Wait) -> io::Result<usize> {
        if !session.output.release(next) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a send stopped in the middle of a record; its unsent octets must be sent next",
            ));
        }
        let encrypted = session.encrypted();
        let (mut session, result) = self.send_output(session, &mut wait);
        match result {
            _ if session.has_sent(encrypted) => Ok(1),
            Err(error) if is_timeout(&error) => {
                if session.output.hold(next) {
                    Err(error)
                } else {
                    Ok(1)
                }
            }
            result => result.map(|()| 1),
        }
    }

    /// A single octet cannot be sent in part, so it is not encrypted before there is room.
    fn await_room(&self, wait: Wait) -> io::Result<()> {
        let left = match wait {
            Wait::No => Some(std::time::Duration::ZERO),
            wait => wait.left()?,
        };
        if left.is_some() && wait_ready(&self.inner, Interest::OUTPUT, left)?.is_none() {
            let kind = if wait.may_wait() { io::ErrorKind::TimedOut } else { io::ErrorKind::WouldBlock };
            return Err(kind.into());
        }
        Ok(())
    }
}

/// Transfers of ciphertext between the session and the underlying stream.
impl<S: Transfer> Stream<S> {
    /// Continues the handshake until it is complete.
    pub(crate) fn establish<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> Step<'a> {
        while session.is_handshaking() {
            session.decrypt();
            if self.handshake_end.is_over() {
                session.fail(Fault::HandshakeTimeout);
            }
            if let Some(fault) = session.handshake_fault() {
                return (self.send_without_waiting(session), Err(fault.into())); // with an alert
            }
            let mut limited = wait.not_beyond(self.handshake_end);
            if !session.is_handshaking() {
                break; // no wait for what follows (tickets)
            }
            let result;
            (session, result) = match session.has_output() && session.collect() {
                true => self.send_once(session, &mut limited),
                false => self.fill(session, &mut limited),
            };
            *wait = wait.started();
            match result {
                Err(error) if is_timeout(&error) && !self.handshake_end.is_over() => return (session, Err(error)),
                // Timed out or broken: the peer may have sent an alert.
                _ => {}
            }
        }
        (session, Ok(()))
    }

    /// Sends ciphertext until there is none, or another thread sends it. Failures are recorded for senders.
    pub(crate) fn send_output<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> Step<'a> {
        let mut has_sent = false;
        loop {
            if session.is_sending && !has_sent {
                let result;
                (session, result) = self.await_sender(session, *wait);
                if result.is_err() {
                    return (session, result);
                }
            }
            if !session.has_output() {
                let result = session.check_below();
                return (session, result);
            }
            if !session.collect() {
                let result = self.half_close(&mut session);
                return (session, result);
            }
            let result;
            (session, result) = self.send_once(session, wait);
            if result.is_err() {
                return (session, result);
            }
            has_sent = true;
        }
    }

    fn send_once<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> Step<'a> {
        session.is_sending = true;
        let output = std::mem::take(&mut session.output);
        drop(session);
        let result = self.send_below(&output, *wait);
        *wait = wait.started();
        let mut session = self.session.lock();
        session.is_sending = false;
        self.changed.notify_all();
        let result = match result {
            Ok(octets) => {
                session.sent(output, octets);
                Ok(())
            }
            Err(error) if is_timeout(&error) => {
                session.output = output;
                wait.left().map(drop)
            }
            Err(error) => {
                session.break_off(Fault::below(&error));
                Err(error)
            }
        };
        (session, result)
    }

    /// Sends as much as possible without waiting. Senders get its failures.
    pub(crate) fn send_without_waiting<'a>(&'a self, session: Locked<'a>) -> Locked<'a> {
        if session.has_output() { self.send_output(session, &mut Wait::No).0 } else { session }
    }

    /// Receives ciphertext once. If another thread is receiving, waits for its result instead.
    pub(crate) fn fill<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> Step<'a> {
        if session.is_receiving {
            return self.pause(session, *wait);
        }
        session.is_receiving = true;
        let has_output = session.has_output();
        drop(session);
        let mut buffer = scratch::input();
        let result = match has_output {
            true => self.recv_or_see_output(&mut buffer, *wait),
            false => self.recv_below(&mut buffer, *wait),
        };
        let waited = std::mem::replace(wait, wait.started());
        let mut session = self.session.lock();
        session.is_receiving = false;
        self.changed.notify_all();
        let result = match result {
            Ok(octets) => {
                session.received(buffer, octets);
                Ok(())
            }
            Err(error) if is_timeout(&error) => {
                scratch::give_input(buffer);
                match waited {
                    // Not every system shows an end made by this side.
                    _ if session.is_read_shut => {
                        session.end(Fault::Truncated);
                        Ok(())
                    }
                    Wait::Configured(_) if !has_output => Err(io::ErrorKind::TimedOut.into()),
                    waited => waited.left().map(drop),
                }
            }
            Err(error) => {
                session.end(Fault::below(&error));
                Ok(())
            }
        };
        (session, result)
    }

    /// Waits until no thread sends.
    pub(crate) fn await_sender<'a>(&'a self, mut session: Locked<'a>, wait: Wait) -> Step<'a> {
        while session.is_sending {
            let result;
            (session, result) = self.pause(session, wait);
            if result.is_err() {
                return (session, result);
            }
        }
        (session, Ok(()))
    }

    /// Waits until another thread has finished its transfer.
    fn pause<'a>(&'a self, mut session: Locked<'a>, wait: Wait) -> Step<'a> {
        let result = wait.left().map(|left| match left {
            None => self.changed.wait(&mut session),
            Some(left) => drop(self.changed.wait_for(&mut session, left)),
        });
        (session, result)
    }

    /// `close_notify` was sent, and no ciphertext is left to send.
    fn half_close(&self, session: &mut Session) -> io::Result<()> {
        session.is_half_closed = true;
        self.inner.shutdown(Shutdown::Write)
    }
}

/// The calls of the underlying stream.
impl<S: Transfer> Stream<S> {
    fn recv_below(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        match wait {
            Wait::No => self.inner.try_recv(buffer),
            Wait::Configured(_) => self.inner.recv(buffer),
            Wait::Until(_) => match wait.left()? {
                Some(left) => self.inner.recv_within(buffer, left),
                None => loop {
                    match self.inner.recv(buffer) {
                        // A timeout set for another kind of wait.
                        Err(error) if is_timeout(&error) => wait_ready(&self.inner, Interest::INPUT, None)?,
                        result => return result,
                    };
                },
            },
        }
    }

    /// Receives, unless the stream becomes ready for output before there is input.
    fn recv_or_see_output(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        if wait.may_wait() {
            wait_ready(&self.inner, Interest::INPUT | Interest::OUTPUT, wait.left()?)?;
        }
        self.inner.try_recv(buffer)
    }

    fn send_below(&self, output: &Output, wait: Wait) -> io::Result<usize> {
        let sent = match wait {
            Wait::No => self.inner.try_send(output.rest()),
            Wait::Configured(_) => self.inner.send(output.rest()),
            Wait::Until(_) => match wait.left()? {
                Some(left) => self.inner.send_within(output.rest(), left),
                None => loop {
                    match self.inner.send(output.rest()) {
                        Err(error) if is_timeout(&error) => wait_ready(&self.inner, Interest::OUTPUT, None)?,
                        result => break result,
                    };
                },
            },
        }?;
        if sent == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(sent) }
    }
}

fn into_result((session, result): Step<'_>) -> io::Result<Locked<'_>> {
    result.map(|()| session)
}

fn octet_at(slices: &[IoSlice<'_>], mut at: usize) -> u8 {
    for slice in slices {
        match slice.get(at) {
            Some(octet) => return *octet,
            None => at -= slice.len(),
        }
    }
    unreachable!("the octet was sent from these slices")
}
