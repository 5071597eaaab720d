//! One TLS connection as it is between transfers: no system call is made here, and no clock is read.
//!
//! Ciphertext comes in through [`Session::received`] and goes out through [`Session::collect`]; who does the transfers, and when, is
//! written in `drive`. The two flags say who does them at the moment: a thread takes a flag under the lock, transfers without it, and
//! gives the flag back. So no thread holds the lock while it waits.

use std::io::{self, BufRead, IoSlice, IoSliceMut, Write};

use rustls::Connection;

use crate::fault::Fault;
use crate::scratch;

/// How many octets one `send` takes at most, and so what the stream itself may hold of what was sent, records not counted.
pub(crate) const MOST_AT_ONCE: usize = 65_536;

/// Between what was received below and what is received above, and the same the other way.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    input: Input,
    pub(crate) output: Output,
    /// How many octets were encrypted.
    encrypted: u64,
    /// How many of them the stream below has taken: of those it is not undone by what fails afterwards.
    taken: u64,
    /// A thread receives ciphertext.
    pub(crate) is_receiving: bool,
    /// A thread sends ciphertext, and has `output`.
    pub(crate) is_sending: bool,
    /// Nothing can be received any more, nor sent.
    failed: Option<Fault>,
    /// No more ciphertext comes.
    ended: Option<Fault>,
    /// No ciphertext can be sent.
    broken: Option<Fault>,
    /// This side wants to receive no more.
    pub(crate) is_read_shut: bool,
    /// This side sends no more. `close_notify` is sent once the handshake is done, and then the stream below is half-closed.
    pub(crate) is_write_shut: bool,
    is_close_told: bool,
    pub(crate) is_half_closed: bool,
    /// The last transfer was one that waits.
    pub(crate) is_patient: bool,
}

/// Ciphertext that was received and not yet decrypted; with memory of [`scratch`] as long as there is any.
#[derive(Debug, Default)]
struct Input {
    octets: Vec<u8>,
    start: usize,
    end: usize,
}

/// Ciphertext that was not yet sent; with memory of [`scratch`] as long as there is any.
#[derive(Debug, Default)]
pub(crate) struct Output {
    octets: Vec<u8>,
    sent: usize,
    held: Option<u8>,
    /// How many octets have been encrypted with the end of it.
    encrypted: u64,
}

impl Output {
    /// What may be sent.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.octets[self.sent..self.octets.len() - usize::from(self.is_held())]
    }

    fn advance(&mut self, sent: usize) {
        self.sent += sent;
        if self.sent == self.octets.len() {
            scratch::give_output(std::mem::take(self).octets);
        }
    }

    /// Holds the end of the last record back until `last`, its last octet of plaintext, is sent again: who was told that it is unsent
    /// may give it up, and then the peer must not have it. False if it has been sent.
    pub(crate) fn hold(&mut self, last: u8) -> bool {
        let is_unsent = self.sent < self.octets.len();
        self.held = is_unsent.then_some(last);
        is_unsent
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Holds the end back no longer. False if it waits for another octet than `last`.
    pub(crate) fn release(&mut self, last: u8) -> bool {
        self.held.take_if(|held| *held == last).is_some()
    }
}

impl Session {
    pub(crate) fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(MOST_AT_ONCE));
        Self {
            connection,
            input: Input::default(),
            output: Output::default(),
            encrypted: 0,
            taken: 0,
            is_receiving: false,
            is_sending: false,
            failed: None,
            ended: None,
            broken: None,
            is_read_shut: false,
            is_write_shut: false,
            is_close_told: false,
            is_half_closed: false,
            is_patient: false,
        }
    }

    /// Takes over the first `octets` of what was received below; none is its end.
    pub(crate) fn received(&mut self, buffer: Vec<u8>, octets: usize) {
        debug_assert!(self.input.start == self.input.end, "what was received before comes first");
        if octets == 0 {
            scratch::give_input(buffer);
            self.ended.get_or_insert(Fault::Truncated);
        } else {
            self.input = Input { octets: buffer, start: 0, end: octets };
        }
    }

    /// The stream below has taken `octets` of the output, which is given back.
    pub(crate) fn sent(&mut self, mut output: Output, octets: usize) {
        let encrypted = output.encrypted;
        output.advance(octets);
        if output.octets.is_empty() {
            self.taken = encrypted;
        }
        self.output = output;
    }

    /// Whether the stream below has taken all that was encrypted when this was so much.
    pub(crate) fn has_taken(&self, encrypted: u64) -> bool {
        self.taken >= encrypted
    }

    /// How much was encrypted so far.
    pub(crate) fn encrypted(&self) -> u64 {
        self.encrypted
    }

    /// The stream below cannot be received from any more.
    pub(crate) fn end(&mut self, why: Fault) {
        self.ended.get_or_insert(why);
    }

    /// The stream below cannot be sent to any more.
    pub(crate) fn break_off(&mut self, why: Fault) {
        self.broken.get_or_insert(why);
        self.output = Output::default();
    }

    /// TLS does not go on.
    pub(crate) fn fail(&mut self, why: Fault) {
        self.failed.get_or_insert(why);
    }

    /// Decrypts until there is something to be received, or more ciphertext is needed. True if there is something: octets or the end.
    pub(crate) fn digest(&mut self) -> bool {
        while !self.has_plaintext_or_close() && self.failed.is_none() {
            let mut rest = &self.input.octets[self.input.start..self.input.end];
            if rest.is_empty() {
                break;
            }
            let before = rest.len();
            match self.connection.read_tls(&mut rest) {
                Ok(0) | Err(_) => self.input.start = self.input.end, // nothing that comes after `close_notify` is read
                Ok(_) => self.input.start += before - rest.len(),
            }
            if let Err(error) = self.connection.process_new_packets() {
                self.fail(Fault::Protocol(error));
            }
        }
        if self.input.start == self.input.end && !self.input.octets.is_empty() {
            scratch::give_input(std::mem::take(&mut self.input).octets);
        }
        self.has_plaintext_or_close() || self.failed.is_some() || self.ended.is_some()
    }

    /// Whether a `recv` would not wait.
    pub(crate) fn is_readable(&mut self) -> bool {
        self.digest() || self.is_read_shut
    }

    fn has_plaintext_or_close(&mut self) -> bool {
        self.connection.reader().fill_buf().is_ok()
    }

    /// Takes what is there; `None` if more ciphertext is needed. Zero is the end.
    ///
    /// # Errors
    /// Why nothing comes any more, once all that came before was taken.
    pub(crate) fn take(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let mut taken = 0;
        'slices: for slice in slices {
            let mut room = &mut slice[..];
            while !room.is_empty() {
                if !self.digest() {
                    break 'slices;
                }
                let octets = match self.connection.reader().fill_buf() {
                    Ok(chunk) => {
                        let octets = chunk.len().min(room.len());
                        room[..octets].copy_from_slice(&chunk[..octets]);
                        octets
                    }
                    Err(_) => break 'slices,
                };
                if octets == 0 {
                    return Ok(Some(taken)); // `close_notify`
                }
                self.connection.reader().consume(octets);
                room = &mut room[octets..];
                taken += octets;
            }
        }
        match (taken, self.failed.as_ref().or(self.ended.as_ref())) {
            (0, None) => Ok(None),
            (0, Some(_)) if self.is_read_shut => Ok(Some(0)),
            (0, Some(why)) => Err(why.clone().into()),
            (taken, _) => Ok(Some(taken)),
        }
    }

    /// Encrypts some of `slices` to be sent, and says how many octets. Zero if earlier ones have to be sent before.
    pub(crate) fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let octets = match slices {
            [one] => self.connection.writer().write(one),
            several => self.connection.writer().write_vectored(&several[..several.len().min(MOST_SLICES)]),
        }?;
        self.encrypted += octets as u64;
        Ok(octets)
    }

    /// Whether something can be sent, now or later.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check_sending(&self) -> io::Result<()> {
        match self.failed.as_ref().or(self.broken.as_ref()) {
            Some(why) => Err(why.clone().into()),
            None if self.is_write_shut => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(()),
        }
    }

    /// Why the handshake cannot be completed. What TLS says comes first: a peer that refuses us may well cut the connection while
    /// we are sending.
    pub(crate) fn handshake_fault(&self) -> Option<Fault> {
        match (&self.failed, &self.broken, &self.ended) {
            (Some(why), _, _) | (None, Some(why), Some(_)) => Some(why.clone()),
            (None, _, Some(Fault::Truncated)) => Some(Fault::EndedEarly),
            (None, _, ended) => ended.clone(),
        }
    }

    /// Whether the peer cannot be told anything any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.failed.is_some() || self.broken.is_some()
    }

    /// Whether something may still come from the peer.
    pub(crate) fn is_open_below(&self) -> bool {
        self.ended.is_none()
    }

    /// Why nothing can be sent below any more, if that is so.
    pub(crate) fn check_below(&self) -> io::Result<()> {
        self.broken.clone().map_or(Ok(()), |why| Err(why.into()))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether there is ciphertext to send, or the stream below to be half-closed, which no thread is doing.
    pub(crate) fn has_output(&self) -> bool {
        if self.broken.is_some() || self.is_sending {
            return false;
        }
        let comes_next = self.connection.wants_write() || self.is_to_tell_close() || self.is_to_half_close();
        !self.output.rest().is_empty() || comes_next && !self.output.is_held()
    }

    /// Makes [`output`](Self::output) what is to be sent next. False if there is nothing.
    pub(crate) fn collect(&mut self) -> bool {
        if !self.output.rest().is_empty() {
            return true;
        }
        if self.is_to_tell_close() {
            self.connection.send_close_notify();
            self.is_close_told = true;
        }
        if !self.connection.wants_write() {
            return false;
        }
        let mut octets = scratch::output();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut octets).expect("memory takes everything");
        }
        self.output = Output { octets, sent: 0, held: None, encrypted: self.encrypted };
        true
    }

    fn is_to_tell_close(&self) -> bool {
        self.is_write_shut && !self.is_close_told && !self.is_handshaking() && self.failed.is_none()
    }

    fn is_to_half_close(&self) -> bool {
        self.is_close_told && !self.is_half_closed
    }
}

/// rustls makes a list of them for each call.
const MOST_SLICES: usize = 1024;
