//! Who transfers ciphertext, and when: the only place where streams below are received from and sent to.

use std::io::{self, IoSlice, IoSliceMut};

use spandrel_ipc::{Interest, Shutdown, Transfer, is_timeout, wait_ready};
use spandrel_sync::MutexGuard;

use crate::Stream;
use crate::fault::Fault;
use crate::scratch;
use crate::session::{Output, Session};
use crate::wait::Wait;

/// The lock is given in and given back; after an error it is free.
type Locked<'a> = MutexGuard<'a, Session>;

impl<S: Transfer> Stream<S> {
    pub(crate) fn recv_as(&self, slices: &mut [IoSliceMut<'_>], mut wait: Wait) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        let mut session = self.session.lock();
        session.is_patient = wait.is_patient();
        loop {
            if session.is_handshaking() && !session.is_read_shut {
                session = self.establish(session, &mut wait)?;
            }
            let taken = session.take(slices);
            session = self.send_what_can_be(session); // alerts, new keys
            match taken? {
                Some(octets) => return Ok(octets),
                None => session = self.fill(session, &mut wait)?,
            }
        }
    }

    pub(crate) fn send_as(&self, slices: &[IoSlice<'_>], mut wait: Wait) -> io::Result<usize> {
        let Some(first) = slices.iter().position(|slice| !slice.is_empty()) else { return Ok(0) };
        let mut session = self.session.lock();
        session.is_patient = wait.is_patient();
        session = self.establish(session, &mut wait)?;
        let octets = loop {
            session.check_sending()?;
            session = self.send_output(session, &mut wait)?;
            match session.put(&slices[first..])? {
                0 => {}
                octets => break octets,
            }
        };
        match self.send_output(session, &mut wait) {
            // What is left is sent before anything else.
            Err(error) if is_timeout(&error) => Ok(octets),
            result => result.map(|_| octets),
        }
    }

    /// Completes the handshake.
    pub(crate) fn establish<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> io::Result<Locked<'a>> {
        while session.is_handshaking() {
            session.digest();
            if self.handshake_end.is_over() {
                session.fail(Fault::Late);
            }
            if let Some(fault) = session.handshake_fault() {
                drop(self.send_what_can_be(session)); // an alert
                return Err(fault.into());
            }
            let mut limited = wait.not_beyond(self.handshake_end);
            let step = match session.has_output() {
                true => self.send_output(session, &mut limited),
                false if session.is_handshaking() => self.fill(session, &mut limited),
                false => return Ok(session),
            };
            *wait = wait.begun();
            session = match step {
                Ok(session) => session,
                Err(error) if is_timeout(&error) && !self.handshake_end.is_over() => return Err(error),
                // Late, or broken: the peer may have said why.
                Err(_) => self.session.lock(),
            };
        }
        Ok(session)
    }

    /// Sends ciphertext until there is none. Failures are kept, for who sends.
    pub(crate) fn send_output<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> io::Result<Locked<'a>> {
        let mut has_sent = false;
        loop {
            if session.is_sending {
                if has_sent {
                    return Ok(session);
                }
                session = self.pause(session, *wait)?;
                continue;
            }
            if !session.has_output() {
                return Ok(session);
            }
            if !session.collect() {
                return self.half_close(session);
            }
            session.is_sending = true;
            let mut output = std::mem::take(&mut session.output);
            drop(session);
            let result = self.send_below(&output, *wait);
            *wait = wait.begun();
            session = self.session.lock();
            session.is_sending = false;
            self.changed.notify_all();
            match result {
                Ok(octets) => {
                    output.advance(octets);
                    has_sent = true;
                }
                Err(error) if is_timeout(&error) => {
                    session.output = output;
                    wait.left()?;
                    continue;
                }
                Err(error) => {
                    session.break_off(Fault::below(&error));
                    return Err(error);
                }
            }
            session.output = output;
        }
    }

    /// Sends what can be sent without waiting. What becomes of it, who sends will be told.
    pub(crate) fn send_what_can_be<'a>(&'a self, session: Locked<'a>) -> Locked<'a> {
        if !session.has_output() {
            return session;
        }
        self.send_output(session, &mut Wait::No).unwrap_or_else(|_| self.session.lock())
    }

    /// Receives ciphertext once. If another thread does so, waits for what comes of that instead.
    pub(crate) fn fill<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> io::Result<Locked<'a>> {
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
        let waited = std::mem::replace(wait, wait.begun());
        let mut session = self.session.lock();
        session.is_receiving = false;
        self.changed.notify_all();
        match result {
            Ok(octets) => session.received(buffer, octets),
            Err(error) if is_timeout(&error) => {
                scratch::give_input(buffer);
                match waited {
                    Wait::AsSet(_) if !has_output => return Err(io::ErrorKind::TimedOut.into()),
                    waited => waited.left()?,
                };
            }
            Err(error) => session.end(Fault::below(&error)),
        }
        Ok(session)
    }

    /// Waits until another thread has done what it is doing.
    fn pause<'a>(&'a self, mut session: Locked<'a>, wait: Wait) -> io::Result<Locked<'a>> {
        match wait.left()? {
            None => self.changed.wait(&mut session),
            Some(left) => drop(self.changed.wait_for(&mut session, left)),
        }
        Ok(session)
    }

    /// The peer was told that no more comes, and nothing is left to be sent.
    fn half_close<'a>(&'a self, mut session: Locked<'a>) -> io::Result<Locked<'a>> {
        session.is_half_closed = true;
        self.inner.shutdown(Shutdown::Write)?;
        Ok(session)
    }

    fn recv_below(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        match wait {
            Wait::No => self.inner.try_recv(buffer),
            Wait::AsSet(_) => self.inner.recv(buffer),
            Wait::Until(_) => match wait.left()? {
                Some(left) => self.inner.recv_within(buffer, left),
                None => loop {
                    match self.inner.recv(buffer) {
                        // A time-out that is set for another kind of wait.
                        Err(error) if is_timeout(&error) => wait_ready(&self.inner, Interest::INPUT, None)?,
                        result => return result,
                    };
                },
            },
        }
    }

    /// Receives, unless something can be sent before there is something to receive.
    fn recv_or_see_output(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        if !matches!(wait, Wait::No) {
            wait_ready(&self.inner, Interest::INPUT | Interest::OUTPUT, wait.left()?)?;
        }
        self.inner.try_recv(buffer)
    }

    fn send_below(&self, output: &Output, wait: Wait) -> io::Result<usize> {
        let sent = match wait {
            Wait::No => self.inner.try_send(output.rest()),
            Wait::AsSet(_) => self.inner.send(output.rest()),
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
