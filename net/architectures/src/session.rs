//! The interface between a protocol and an architecture. It has no sockets, threads or clocks.
//!
//! An architecture moves octets between a connection and its [`Session`], and decides which thread or process does
//! so. So the same session runs under every architecture, and the architecture is the only difference.

// ANCHOR: session
/// Makes the session of each connection.
pub trait Protocol: Send + Sync + 'static {
    /// The state machine that serves one connection.
    type Session: Session;

    /// The session of a new connection. Its first [`output`](Session::output) is sent before any input is received.
    fn open(&self) -> Self::Session;

    /// The server accepts no more connections: open sessions may announce their end to their clients.
    fn begin_drain(&self) {}
}

/// One connection, seen from the protocol.
///
/// The architecture repeats two steps: it sends all output, and then waits for input. So a session needs room for one
/// request and for one piece of output, and a client that does not read causes no work.
pub trait Session: Send + 'static {
    /// Takes received octets, at least one. Called only while there is no output.
    fn receive(&mut self, octets: &[u8]);

    /// The client sends no more.
    fn end_input(&mut self);

    /// The client has exceeded a time limit. The session is closed after its remaining output.
    fn time_out(&mut self);

    /// The next piece of output, of at most [`MAX_PIECE`] octets; empty if there is none before further input.
    fn output(&mut self) -> &[u8];

    /// So many octets of the last piece are sent.
    fn sent(&mut self, octets: usize);

    /// The state of the session. Valid while there is no output.
    fn phase(&self) -> Phase;

    /// Whether there is no further output, although input is still received. Valid while there is no output.
    ///
    /// The architecture then ends the sending side of the connection, and goes on to receive. A connection that is
    /// closed with unread input would be reset, and the client could lose the last output (RFC 9112, 9.6).
    fn has_ended_output(&self) -> bool {
        false
    }

    /// Whether the client may lose the last output, so that the architecture resets the connection at its end: the server
    /// drains, and the client has gone on to send. Without the reset it could wait for room in its queue for a minute.
    fn may_be_reset(&self) -> bool {
        false
    }
}
// ANCHOR_END: session

/// The greatest length of a piece of output, in octets: 64 KiB.
pub const MAX_PIECE: usize = 64 << 10;

/// The state of a session without output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for a request, or for the client to close.
    Idle,
    /// It has a part of a request. The time until the rest arrives is limited.
    InRequest,
    /// The connection is to be closed.
    Closing,
}
