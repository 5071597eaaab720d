//! The connections of an asynchronous server, each with one operation at a time.

use std::time::Duration;

use spandrel_reactor::{ConnectionHandle, OperationId};
use spandrel_sync::time::Instant;

/// The number of pairs of buffers that wait for the next connections.
const MAX_SPARE: usize = 64;
/// The capacity of buffers that are kept.
const MAX_KEPT: usize = 16 << 10;

/// A time limit of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeLimit {
    /// The limit of the time between transfers.
    Idle,
    /// That of the present request.
    Request,
}

/// A connection. Its entry is dropped with it.
pub(super) struct Connection<S, E> {
    /// The handle; none while it belongs to the pending operation.
    pub(super) handle: Option<ConnectionHandle>,
    pub(super) session: S,
    /// The pending operation; none before the first.
    pub(super) operation: Option<OperationId>,
    /// The time limit that the client has exceeded, and for which the pending operation is cancelled.
    pub(super) exceeded: Option<TimeLimit>,
    /// The time at which the pending operation began.
    active: Instant,
    /// The time at which a part of the present request had arrived.
    request_began: Option<Instant>,
    has_ended_output: bool,
    entry: E,
}

impl<S, E> Connection<S, E> {
    pub(super) fn new(handle: ConnectionHandle, session: S, entry: E, now: Instant) -> Self {
        let (operation, request_began) = (None, None);
        Self {
            handle: Some(handle),
            session,
            operation,
            exceeded: None,
            active: now,
            request_began,
            has_ended_output: false,
            entry,
        }
    }

    /// Whether its sending side is to be ended, once.
    pub(super) fn begin_end_output(&mut self) -> bool {
        !std::mem::replace(&mut self.has_ended_output, true)
    }

    /// An operation begins, perhaps in the middle of a request.
    pub(super) fn set_active(&mut self, now: Instant, is_in_request: bool) {
        self.active = now;
        self.request_began = is_in_request.then(|| self.request_began.unwrap_or(now));
    }

    /// The time of the present request ends.
    pub(super) fn end_request(&mut self) {
        self.request_began = None;
    }

    /// The time limit that its request or its pending operation has exceeded.
    pub(super) fn exceeded_limit(&self, now: Instant, idle: Duration, request: Duration) -> Option<TimeLimit> {
        let since = |time: Instant| now.saturating_duration_since(time);
        if self.request_began.is_some_and(|began| since(began) >= request) {
            Some(TimeLimit::Request)
        } else {
            (since(self.active) >= idle).then_some(TimeLimit::Idle)
        }
    }
}

/// Connections by their keys, which are used again.
pub(super) struct Connections<S, E> {
    slots: Vec<Option<Connection<S, E>>>,
    free: Vec<usize>,
    spare: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<S, E> Default for Connections<S, E> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), spare: Vec::new() }
    }
}

impl<S, E> Connections<S, E> {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a connection. Returns its key, and buffers for its first operation.
    pub(super) fn insert(&mut self, connection: Connection<S, E>) -> (u64, Vec<u8>, Vec<u8>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(connection);
        let (data, buffer) = self.spare.pop().unwrap_or_default();
        (slot as u64, data, buffer)
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut Connection<S, E>> {
        self.slots.get_mut(usize::try_from(key).ok()?)?.as_mut()
    }

    /// Removes a connection, and keeps its buffers for others. Returns its handle.
    pub(super) fn remove(&mut self, key: u64, data: Vec<u8>, buffer: Vec<u8>) -> Option<ConnectionHandle> {
        let slot = usize::try_from(key).ok()?;
        let Connection { handle, entry, .. } = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        if self.spare.len() < MAX_SPARE && data.capacity() <= MAX_KEPT {
            self.spare.push((data, buffer));
        }
        drop(entry);
        handle
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection<S, E>> {
        self.slots.iter_mut().flatten()
    }

    /// The operations that have not completed.
    pub(super) fn operations(&self) -> impl Iterator<Item = OperationId> {
        self.slots.iter().flatten().filter_map(|connection| connection.operation)
    }
}
