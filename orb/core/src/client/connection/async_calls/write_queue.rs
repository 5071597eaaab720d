//! Messages that are still to be written, because the transport did not take them at once.

use std::collections::VecDeque;

use spandrel_cdr::Encoder;
use spandrel_giop::Fragments;
use spandrel_transport::Charge;

/// Messages of which no octet was written yet, in order.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    pub(super) messages: VecDeque<UnsentMessage>,
    pub(super) octets: usize,
}

impl WriteQueue {
    pub(super) fn push(&mut self, message: UnsentMessage) {
        self.octets += message.octets.len();
        self.messages.push_back(message);
    }

    pub(super) fn pop(&mut self) -> Option<UnsentMessage> {
        self.take(0)
    }

    pub(super) fn take(&mut self, at: usize) -> Option<UnsentMessage> {
        let message = self.messages.remove(at)?;
        self.octets -= message.octets.len();
        Some(message)
    }
}

/// A message that is still to be written.
#[derive(Debug)]
pub(super) struct UnsentMessage {
    pub(super) request_id: u32,
    pub(super) octets: Vec<u8>,
    /// The number of octets that the transport has taken.
    pub(super) at: usize,
    pub(super) kind: UnsentKind,
    /// The ends of its fragments, without the last.
    pub(super) boundaries: Vec<usize>,
    /// The memory that a reply is counted against.
    pub(super) _charge: Option<Charge>,
    /// The number of messages in it.
    pub(super) messages: u32,
}

/// The kind of a queued message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UnsentKind {
    TwoWay,
    OneWay,
    /// A message that no call waits for: a CancelRequest, another control message, or a reply.
    Untracked,
    /// One-ways whose calls have returned.
    Batch,
}

impl UnsentMessage {
    pub(super) fn new(
        request_id: u32,
        message: &Encoder<'_>,
        fragments: Option<&Fragments>,
        at: usize,
        kind: UnsentKind,
    ) -> Self {
        let whole = |octets, boundaries| Self { request_id, octets, at, kind, boundaries, _charge: None, messages: 1 };
        let Some(fragments) = fragments else { return whole(message.to_vec(), Vec::new()) };
        let mut boundaries: Vec<_> = fragments.boundaries().collect();
        boundaries.pop();
        whole(fragments.to_vec(message), boundaries)
    }

    /// Ends the message after the fragment that is being written, and appends `cancel`, with which the server
    /// discards the request. Returns false if the message is not fragmented, or its last fragment is being
    /// written.
    pub(super) fn abort(&mut self, cancel: &Encoder<'_>) -> bool {
        let end = self.boundaries.iter().find(|end| **end >= self.at).copied();
        let Some(end) = end else { return false };
        self.octets.truncate(end);
        self.octets.extend_from_slice(&cancel.to_vec());
        (self.kind, self.boundaries) = (UnsentKind::Untracked, Vec::new());
        true
    }

    pub(super) fn is_whole(&self) -> bool {
        self.at == self.octets.len()
    }

    /// Whether a call waits for its outcome.
    pub(super) fn has_receiver(&self) -> bool {
        matches!(self.kind, UnsentKind::TwoWay | UnsentKind::OneWay)
    }
}
