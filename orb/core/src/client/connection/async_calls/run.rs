//! Queued messages that leave in one write.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
};

use spandrel_connection::Written;
use spandrel_sync::{Mutex, atomic::Ordering};

use super::{
    super::ClientConnection,
    unsent::{Unsent, UnsentKind, UnsentMessage, WriteQueue},
};
use crate::diagnostics::statistics::Statistics;

/// The most messages of one write; systems accept 1,024 parts.
const MOST_MESSAGES: usize = 512;

/// A run takes no further message beyond so many octets.
const MOST_OCTETS: usize = 64 << 10;

/// The first messages of a write queue, taken by the thread that holds the write lock.
#[derive(Debug)]
pub(super) struct Run {
    messages: VecDeque<UnsentMessage>,
    /// The memory of requests that were written.
    spares: Vec<Vec<u8>>,
}

impl Run {
    /// Takes as many messages as one write should have.
    pub(super) fn take(write_queue: &Mutex<WriteQueue>) -> Self {
        let mut write_queue = write_queue.lock();
        let mut messages = if write_queue.messages.is_empty() { VecDeque::new() } else { write_queue.take_run() };
        let mut octets = 0;
        while messages.len() < MOST_MESSAGES && octets < MOST_OCTETS {
            let Some(message) = write_queue.take(0) else { break };
            octets += message.unwritten();
            messages.push_back(message);
        }
        Self { messages, spares: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether a message is still to be written.
    pub(super) fn has_unwritten(&self) -> bool {
        self.messages.iter().any(|message| !message.is_whole())
    }

    /// Writes the messages by one `send`, and records how far it has come.
    ///
    /// # Errors
    /// Those of `send`; [`io::ErrorKind::WouldBlock`] if it has taken nothing.
    pub(super) fn write(
        &mut self,
        connection: &ClientConnection,
        send: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let parts: Vec<_> = self.unwritten().map(|message| IoSlice::new(&message.octets[message.at..])).collect();
        if parts.is_empty() {
            return Ok(());
        }
        // Set before the write: if the connection ends from now on, the peer may have the whole requests.
        self.mark(connection, Written::Whole);
        let sent =
            send(&parts).and_then(|sent| if sent == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(sent) });
        drop(parts);
        let mut left = *sent.as_ref().unwrap_or(&0);
        for message in self.messages.iter_mut().filter(|message| !message.is_whole()) {
            let accepted = left.min(message.unwritten());
            message.at += accepted;
            left -= accepted;
        }
        self.mark(connection, Written::Partly);
        connection.async_state().written.fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
        sent.map(drop)
    }

    /// Drops the messages that were written, without the one-ways that a call waits for. The one that was written in
    /// part becomes the message that comes first.
    pub(super) fn settle(&mut self, Unsent { rest, batching }: &mut Unsent, statistics: &Statistics) {
        for _ in 0..self.messages.len() {
            let Some(message) = self.messages.pop_front() else { break };
            match message.kind {
                UnsentKind::Batch if message.is_whole() => batching.end(&mut Some(message), false, statistics),
                UnsentKind::TwoWay | UnsentKind::Untracked if message.is_whole() => {
                    self.spares.extend(message.into_spare());
                }
                _ if message.at > 0 && !message.is_whole() => *rest = Some(message),
                _ => self.messages.push_back(message),
            }
        }
    }

    /// Removes the one-ways that were written and that calls wait for; returns their request ids.
    pub(super) fn take_one_ways(&mut self) -> Vec<u32> {
        let is_done = |message: &&UnsentMessage| message.is_whole() && message.kind == UnsentKind::OneWay;
        let request_ids = self.messages.iter().filter(is_done).map(|message| message.request_id).collect();
        self.messages.retain(|message| !is_done(&message));
        request_ids
    }

    /// Puts back what is left, before what was queued meanwhile.
    pub(super) fn put_back(mut self, write_queue: &Mutex<WriteQueue>) {
        if self.messages.capacity() == 0 && self.spares.is_empty() {
            return;
        }
        let mut write_queue = write_queue.lock();
        while let Some(message) = self.messages.pop_back() {
            write_queue.put_back(message);
        }
        write_queue.give_spares(&mut self.spares, self.messages);
    }

    fn unwritten(&self) -> impl Iterator<Item = &UnsentMessage> {
        self.messages.iter().filter(|message| !message.is_whole())
    }

    /// Records this for the calls of messages that are not whole.
    fn mark(&self, connection: &ClientConnection, written: Written) {
        if self.unwritten().next().is_none() {
            return;
        }
        let mut pending = connection.pending.lock();
        for message in self.unwritten().filter(|message| message.has_receiver()) {
            pending.half.set_written(message.request_id, written);
        }
    }
}
