//! Who transfers ciphertext, and when: the only place where streams below are received from and sent to.

use std::io::{self, IoSlice, IoSliceMut};

use spandrel_ipc::{Interest, Shutdown, Transfer, is_timeout, wait_ready};
use spandrel_sync::MutexGuard;

use crate::Stream;
use crate::fault::Fault;
use crate::scratch;
use crate::session::{Output, Session};
use crate::wait::Wait;

/// The lock is given in, free while the stream below is waited for, and given back with what came of it.
pub(crate) type Locked<'a> = MutexGuard<'a, Session>;
pub(crate) type Step<'a> = (Locked<'a>, io::Result<()>);

/// Transfers of plaintext.
impl<S: Transfer> Stream<S> {
    pub(crate) fn recv_as(&self, slices: &mut [IoSliceMut<'_>], mut wait: Wait) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        let mut session = self.session.lock();
        session.is_patient = wait.is_patient();
        let mut has_sent = false;
        loop {
            if session.is_handshaking() && !session.is_read_shut {
                session = and_go_on(self.establish(session, &mut wait))?;
            }
            let taken = session.take(slices);
            if session.has_output() && !has_sent {
                session = self.send_what_can_be(session); // alerts, new keys
                has_sent = true;
                if let Ok(None) = taken {
                    continue; // the lock was free meanwhile, so something may have come
                }
            }
            match taken? {
                Some(octets) => return Ok(octets),
                None => session = and_go_on(self.fill(session, &mut wait))?,
            }
            has_sent = false;
        }
    }

    pub(crate) fn send_as(&self, slices: &[IoSlice<'_>], mut wait: Wait) -> io::Result<usize> {
        let Some(first) = slices.iter().position(|slice| !slice.is_empty()) else { return Ok(0) };
        let slices = &slices[first..];
        if slices.iter().map(|slice| slice.len()).sum::<usize>() == 1 {
            self.see_room(wait)?;
        }
        let mut session = self.session.lock();
        session.is_patient = wait.is_patient();
        session = and_go_on(self.establish(session, &mut wait))?;
        let octets = loop {
            session = and_go_on(self.await_turn(session, wait))?;
            session.check_sending()?;
            if session.output.is_held() {
                return self.send_held(session, slices[0][0], wait);
            }
            session = and_go_on(self.send_output(session, &mut wait))?;
            if session.is_sending {
                continue;
            }
            session.check_sending()?; // another thread may have ended it meanwhile
            match session.put(slices)? {
                0 => {}
                octets => break octets,
            }
        };
        let encrypted = session.encrypted();
        let (mut session, result) = self.send_output(session, &mut wait);
        match result {
            // What fails behind it, such as the end that another thread has told meanwhile, concerns others.
            _ if session.has_taken(encrypted) => Ok(octets),
            Err(error) if is_timeout(&error) => {
                // The last octet is said to be unsent, so that who sends comes back.
                let is_held = octets > 1 && session.output.hold(octet_at(slices, octets - 1));
                Ok(octets - usize::from(is_held))
            }
            result => result.map(|()| octets),
        }
    }

    /// Goes on where a send had to stop in the middle of a record: `next` was encrypted with what came before it.
    fn send_held(&self, mut session: Locked<'_>, next: u8, mut wait: Wait) -> io::Result<usize> {
        if !session.output.release(next) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a send stopped in the middle; what it did not send has to be sent next",
            ));
        }
        let encrypted = session.encrypted();
        let (mut session, result) = self.send_output(session, &mut wait);
        match result {
            _ if session.has_taken(encrypted) => Ok(1),
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

    /// One octet cannot be sent in part, so it is not encrypted before there is room.
    fn see_room(&self, wait: Wait) -> io::Result<()> {
        let left = match wait {
            Wait::No => Some(std::time::Duration::ZERO),
            wait => wait.left()?,
        };
        if left.is_some() && wait_ready(&self.inner, Interest::OUTPUT, left)?.is_none() {
            let kind = if wait.is_patient() { io::ErrorKind::TimedOut } else { io::ErrorKind::WouldBlock };
            return Err(kind.into());
        }
        Ok(())
    }
}

/// Transfers of ciphertext.
impl<S: Transfer> Stream<S> {
    /// Completes the handshake.
    pub(crate) fn establish<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> Step<'a> {
        while session.is_handshaking() {
            session.digest();
            if self.handshake_end.is_over() {
                session.fail(Fault::Late);
            }
            if let Some(fault) = session.handshake_fault() {
                return (self.send_what_can_be(session), Err(fault.into())); // with an alert
            }
            let mut limited = wait.not_beyond(self.handshake_end);
            if !session.is_handshaking() {
                break; // what follows (tickets) is not waited for
            }
            let result;
            (session, result) = match session.has_output() && session.collect() {
                true => self.send_once(session, &mut limited),
                false => self.fill(session, &mut limited),
            };
            *wait = wait.begun();
            match result {
                Err(error) if is_timeout(&error) && !self.handshake_end.is_over() => return (session, Err(error)),
                // Late, or broken: the peer may have said why.
                _ => {}
            }
        }
        (session, Ok(()))
    }

    /// Sends ciphertext until there is none, or another thread sends it. Failures are kept, for who sends.
    pub(crate) fn send_output<'a>(&'a self, mut session: Locked<'a>, wait: &mut Wait) -> Step<'a> {
        let mut has_sent = false;
        loop {
            if session.is_sending && !has_sent {
                let result;
                (session, result) = self.await_turn(session, *wait);
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
        *wait = wait.begun();
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

    /// Sends what can be sent without waiting. What becomes of it, who sends will be told.
    pub(crate) fn send_what_can_be<'a>(&'a self, session: Locked<'a>) -> Locked<'a> {
        if session.has_output() { self.send_output(session, &mut Wait::No).0 } else { session }
    }

    /// Receives ciphertext once. If another thread does so, waits for what comes of that instead.
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
        let waited = std::mem::replace(wait, wait.begun());
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
                    // Not every system shows the end that we have made ourselves.
                    _ if session.is_read_shut => {
                        session.end(Fault::Truncated);
                        Ok(())
                    }
                    Wait::AsSet(_) if !has_output => Err(io::ErrorKind::TimedOut.into()),
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
    pub(crate) fn await_turn<'a>(&'a self, mut session: Locked<'a>, wait: Wait) -> Step<'a> {
        while session.is_sending {
            let result;
            (session, result) = self.pause(session, wait);
            if result.is_err() {
                return (session, result);
            }
        }
        (session, Ok(()))
    }

    /// Waits until another thread has done what it is doing.
    fn pause<'a>(&'a self, mut session: Locked<'a>, wait: Wait) -> Step<'a> {
        let result = wait.left().map(|left| match left {
            None => self.changed.wait(&mut session),
            Some(left) => drop(self.changed.wait_for(&mut session, left)),
        });
        (session, result)
    }

    /// The peer was told that no more comes, and nothing is left to be sent.
    fn half_close(&self, session: &mut Session) -> io::Result<()> {
        session.is_half_closed = true;
        self.inner.shutdown(Shutdown::Write)
    }
}

/// The calls.
impl<S: Transfer> Stream<S> {
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
        if wait.is_patient() {
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

fn and_go_on((session, result): Step<'_>) -> io::Result<Locked<'_>> {
    result.map(|()| session)
}

fn octet_at(slices: &[IoSlice<'_>], mut at: usize) -> u8 {
    for slice in slices {
        match slice.get(at) {
            Some(octet) => return *octet,
            None => at -= slice.len(),
        }
    }
    unreachable!("it was sent from there")
}
