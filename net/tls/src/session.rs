//! The state of one TLS connection between transfers: no system call is made here, and no clock is read.
//!
//! Ciphertext enters through [`Session::received`] and leaves through [`Session::collect`]; `drive` performs
//! the transfers. Two flags mark the threads that perform them: a thread sets a flag under the lock,
//! transfers without the lock, and clears the flag. So no thread holds the lock while it waits.

use std::io::{self, BufRead, IoSlice, IoSliceMut, Write};

use rustls::{Connection, Side};

use crate::fault::{Explain, Fault};
use crate::scratch;

/// The maximum of one `send` in octets, and so of the sent octets that the stream itself may hold, record
/// overhead not counted.
pub(crate) const MAX_SEND: usize = 65_536;

/// The state between ciphertext and plaintext, in both directions.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    explain: Option<Explain>,
    input: Input,
    pub(crate) output: Output,
    /// The number of octets encrypted.
    encrypted: u64,
    /// The number of those that the underlying stream has taken: a later failure does not undo them.
    accepted: u64,
    /// A thread is receiving ciphertext.
    pub(crate) is_receiving: bool,
    /// A thread is sending ciphertext, and has `output`.
    pub(crate) is_sending: bool,
    /// Nothing can be received or sent any more.
    failed: Option<Fault>,
    /// No more ciphertext arrives.
    ended: Option<Fault>,
    /// No ciphertext can be sent.
    broken: Option<Fault>,
    /// This side has shut down receiving.
    pub(crate) is_read_shut: bool,
    /// This side has shut down sending. `close_notify` is sent after the handshake, and then the underlying
    /// stream is half-closed.
    pub(crate) is_write_shut: bool,
    is_close_notify_sent: bool,
    pub(crate) is_half_closed: bool,
    /// The last transfer was a waiting one.
    pub(crate) may_wait: bool,
}

/// Ciphertext received and not yet decrypted; in a buffer of [`scratch`] as long as there is any.
#[derive(Debug, Default)]
struct Input {
    octets: Vec<u8>,
    start: usize,
    end: usize,
}

/// Ciphertext not yet sent; in a buffer of [`scratch`] as long as there is any.
#[derive(Debug, Default)]
pub(crate) struct Output {
    octets: Vec<u8>,
    sent: usize,
    held: Option<u8>,
    /// The number of octets encrypted up to its end.
    encrypted: u64,
}

impl Output {
    /// The part that may be sent.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.octets[self.sent..self.octets.len() - usize::from(self.is_held())]
    }

    fn advance(&mut self, sent: usize) {
        self.sent += sent;
        if self.sent == self.octets.len() {
            scratch::give_output(std::mem::take(self).octets);
        }
    }

    /// Withholds the end of the last record until `last`, its last octet of plaintext, is sent again: a
    /// sender that was told that the octet is unsent may give up, and then the peer must not get the record.
    /// False if it has been sent.
    pub(crate) fn hold(&mut self, last: u8) -> bool {
        let is_unsent = self.sent < self.octets.len();
        self.held = is_unsent.then_some(last);
        is_unsent
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Ends the withholding. False if it waits for another octet than `last`.
    pub(crate) fn release(&mut self, last: u8) -> bool {
        self.held.take_if(|held| *held == last).is_some()
    }
}

impl Session {
    pub(crate) fn new(mut connection: Connection, explain: Option<Explain>) -> Self {
        connection.set_buffer_limit(Some(MAX_SEND));
        Self {
            connection,
            explain,
            input: Input::default(),
            output: Output::default(),
            encrypted: 0,
            accepted: 0,
            is_receiving: false,
            is_sending: false,
            failed: None,
            ended: None,
            broken: None,
            is_read_shut: false,
            is_write_shut: false,
            is_close_notify_sent: false,
            is_half_closed: false,
            may_wait: false,
        }
    }

    /// Takes over the first `octets` received from the underlying stream; zero is its end.
    pub(crate) fn received(&mut self, buffer: Vec<u8>, octets: usize) {
        debug_assert!(self.input.start == self.input.end, "earlier input comes first");
        if octets == 0 {
            scratch::give_input(buffer);
            self.ended.get_or_insert(Fault::Truncated);
        } else {
            self.input = Input { octets: buffer, start: 0, end: octets };
        }
    }

    /// Records that the underlying stream has taken `octets` of the output, which is returned.
    pub(crate) fn sent(&mut self, mut output: Output, octets: usize) {
        let encrypted = output.encrypted;
        output.advance(octets);
        if output.octets.is_empty() {
            self.accepted = encrypted;
        }
        self.output = output;
    }

    /// Whether the underlying stream has taken the first `encrypted` octets.
    pub(crate) fn has_sent(&self, encrypted: u64) -> bool {
        self.accepted >= encrypted
    }

    /// The number of octets encrypted so far.
    pub(crate) fn encrypted(&self) -> u64 {
        self.encrypted
    }

    /// The underlying stream cannot be received from any more.
    pub(crate) fn end(&mut self, reason: Fault) {
        self.ended.get_or_insert(reason);
    }

    /// The underlying stream cannot be sent to any more.
    pub(crate) fn break_off(&mut self, reason: Fault) {
        self.broken.get_or_insert(reason);
        self.output = Output::default();
    }

    /// Makes both directions fail; the first reason stays.
    pub(crate) fn fail(&mut self, reason: Fault) {
        self.failed.get_or_insert(reason);
    }

    /// Decrypts until there is plaintext, or more ciphertext is needed. True if there is something to
    /// receive: octets or the end.
    pub(crate) fn decrypt(&mut self) -> bool {
        while !self.has_plaintext_or_close() && self.failed.is_none() {
            let mut rest = &self.input.octets[self.input.start..self.input.end];
            if rest.is_empty() {
                break;
            }
            let before = rest.len();
            match self.connection.read_tls(&mut rest) {
                Ok(0) | Err(_) => self.input.start = self.input.end, // octets after `close_notify` are discarded
                Ok(_) => self.input.start += before - rest.len(),
            }
            if let Err(error) = self.connection.process_new_packets() {
                let side = match self.connection {
                    Connection::Client(_) => Side::Client,
                    Connection::Server(_) => Side::Server,
                };
                let meaning = self.explain.and_then(|explain| explain(side, &error));
                self.fail(Fault::Protocol { error, meaning });
            }
        }
        if self.input.start == self.input.end && !self.input.octets.is_empty() {
            scratch::give_input(std::mem::take(&mut self.input).octets);
        }
        self.has_plaintext_or_close() || self.failed.is_some() || self.ended.is_some()
    }

    /// Whether a `recv` would not wait.
    pub(crate) fn is_readable(&mut self) -> bool {
        self.decrypt() || self.is_read_shut
    }

    fn has_plaintext_or_close(&mut self) -> bool {
        self.connection.reader().fill_buf().is_ok()
    }

    /// Takes available plaintext; `None` if more ciphertext is needed. Zero is the end.
    ///
    /// # Errors
    /// The failure that ended receiving, once all earlier octets were taken.
    pub(crate) fn take(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let mut accepted = 0;
        'slices: for slice in slices {
            let mut room = &mut slice[..];
            while !room.is_empty() {
                if !self.decrypt() {
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
                    return Ok(Some(accepted)); // `close_notify`
                }
                self.connection.reader().consume(octets);
                room = &mut room[octets..];
                accepted += octets;
            }
        }
        match (accepted, self.failed.as_ref().or(self.ended.as_ref())) {
            (0, None) => Ok(None),
            (0, Some(_)) if self.is_read_shut => Ok(Some(0)),
            (0, Some(reason)) => Err(reason.clone().into()),
            (accepted, _) => Ok(Some(accepted)),
        }
    }

    /// Encrypts some of `slices` for sending, and returns the number of octets. Zero if earlier ones have to
    /// be sent before.
    pub(crate) fn put(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let octets = match slices {
            [one] => self.connection.writer().write(one),
            several => self.connection.writer().write_vectored(&several[..several.len().min(MAX_SLICES)]),
        }?;
        self.encrypted += octets as u64;
        Ok(octets)
    }

    /// Whether octets can be sent, now or later.
    ///
    /// # Errors
    /// The reason why not.
    pub(crate) fn check_sending(&self) -> io::Result<()> {
        match self.failed.as_ref().or(self.broken.as_ref()) {
            Some(reason) => Err(reason.clone().into()),
            None if self.is_write_shut => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(()),
        }
    }

    /// The reason why the handshake cannot be completed. TLS errors take precedence: a peer that rejects this
    /// side may cut the connection while this side is sending.
    pub(crate) fn handshake_fault(&self) -> Option<Fault> {
        match (&self.failed, &self.broken, &self.ended) {
            (Some(reason), _, _) | (None, Some(reason), Some(_)) => Some(reason.clone()),
            (None, _, Some(Fault::Truncated)) => Some(Fault::EndedEarly),
            (None, _, ended) => ended.clone(),
        }
    }

    /// Whether nothing can be sent to the peer any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.failed.is_some() || self.broken.is_some()
    }

    /// Whether the peer may still send.
    pub(crate) fn is_open_below(&self) -> bool {
        self.ended.is_none()
    }

    /// The reason why the underlying stream cannot be sent to any more, if so.
    pub(crate) fn check_below(&self) -> io::Result<()> {
        self.broken.clone().map_or(Ok(()), |reason| Err(reason.into()))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether there is ciphertext to send, or the underlying stream to be half-closed, and no thread does
    /// it.
    pub(crate) fn has_output(&self) -> bool {
        if self.broken.is_some() || self.is_sending {
            return false;
        }
        let comes_next = self.connection.wants_write() || self.must_send_close_notify() || self.is_to_half_close();
        !self.output.rest().is_empty() || comes_next && !self.output.is_held()
    }

    /// Makes [`output`](Self::output) the next ciphertext to send. False if there is none.
    pub(crate) fn collect(&mut self) -> bool {
        if !self.output.rest().is_empty() {
            return true;
        }
        if self.must_send_close_notify() {
            self.connection.send_close_notify();
            self.is_close_notify_sent = true;
        }
        if !self.connection.wants_write() {
            return false;
        }
        let mut octets = scratch::output();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut octets).expect("writing to memory does not fail");
        }
        self.output = Output { octets, sent: 0, held: None, encrypted: self.encrypted };
        true
    }

    fn must_send_close_notify(&self) -> bool {
        self.is_write_shut && !self.is_close_notify_sent && !self.is_handshaking() && self.failed.is_none()
    }

    fn is_to_half_close(&self) -> bool {
        self.is_close_notify_sent && !self.is_half_closed
    }
}

/// rustls allocates a list of them for each call.
const MAX_SLICES: usize = 1024;
