//! Admission of connections by an acceptor.

use spandrel_ipc::Family;

/// Decides about each connection, before a handler is made for it.
///
/// A closure of the peer's address implements it.
pub trait Acceptance<F: Family>: Send + 'static {
    /// Whether to serve this connection; otherwise it is closed. `open` is the number of connections being
    /// served.
    fn admits(&mut self, stream: &F::Stream, remote: &F::Addr, open: usize) -> bool;
}

/// Admits all connections, without a limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl<F: Family> Acceptance<F> for AcceptAll {
    fn admits(&mut self, _stream: &F::Stream, _remote: &F::Addr, _open: usize) -> bool {
        true
    }
}

/// Admits up to that many connections at a time.
#[derive(Clone, Copy, Debug)]
pub struct AtMost(pub usize);

impl<F: Family> Acceptance<F> for AtMost {
    fn admits(&mut self, _stream: &F::Stream, remote: &F::Addr, open: usize) -> bool {
        if open >= self.0 {
            tracing::warn!(%remote, limit = self.0, "refused: too many connections");
        }
        open < self.0
    }
}

impl<F: Family, T: FnMut(&F::Addr) -> bool + Send + 'static> Acceptance<F> for T {
    fn admits(&mut self, _stream: &F::Stream, remote: &F::Addr, _open: usize) -> bool {
        self(remote)
    }
}
