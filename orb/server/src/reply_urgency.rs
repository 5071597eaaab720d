//! The urgency of the replies that a thread sends: the most urgent one that has not begun is written first on a connection
//! whose client does not read. With it, the priority of their packets.
//!
//! The reply to a request of an executor has the level of the request, in whichever thread it is sent: a servant that
//! [defers](crate::ServerCall::defer) it, or [spawns](crate::ServerCall::spawn) a future, keeps the level. Other replies
//! have zero, and the packets of their connection.

use std::cell::Cell;

use spandrel_connection::Urgency;
use spandrel_sync::{Arc, thread_local};
use spandrel_transport::{PacketPriority, ReactorTransport};

thread_local! {
    static URGENCY: Cell<u32> = const { Cell::new(0) };
    static PACKETS: Cell<Option<PacketPriority>> = const { Cell::new(None) };
}

/// The urgency of a reply, and the priority of its packets; `None` for that of its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplyUrgency {
    pub(crate) level: u32,
    pub(crate) packets: Option<PacketPriority>,
}

impl ReplyUrgency {
    /// That of the replies which this thread sends now, and of those that it defers.
    pub(crate) fn of_thread() -> Self {
        Self { level: current(), packets: PACKETS.with(Cell::get) }
    }
}

/// The time in which a thread answers a request.
pub(crate) struct ReplyUrgencyScope {
    before: ReplyUrgency,
}

impl ReplyUrgencyScope {
    pub(crate) fn enter(urgency: ReplyUrgency) -> Self {
        Self {
            before: ReplyUrgency {
                level: URGENCY.with(|of_thread| of_thread.replace(urgency.level)),
                packets: PACKETS.with(|of_thread| of_thread.replace(urgency.packets)),
            },
        }
    }
}

impl Drop for ReplyUrgencyScope {
    fn drop(&mut self) {
        URGENCY.with(|of_thread| of_thread.set(self.before.level));
        PACKETS.with(|of_thread| of_thread.set(self.before.packets));
    }
}

/// The urgency of the replies that this thread sends now.
pub(crate) fn current() -> u32 {
    URGENCY.with(Cell::get)
}

/// The same on a connection over which this side sends requests as well.
pub(crate) fn on_shared_connection() -> Urgency {
    current().try_into().unwrap_or(Urgency::MAX)
}

/// Gives the packets of this connection the priority of the reply that this thread is about to send.
pub(crate) fn prepare_packets(transport: Option<&Arc<dyn ReactorTransport>>) {
    if let (Some(packets), Some(transport)) = (PACKETS.with(Cell::get), transport) {
        packets.apply(&**transport);
    }
}
