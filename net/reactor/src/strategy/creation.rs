//! Creation of service handlers.

use std::io;

use spandrel_ipc::Family;

use crate::ServiceHandler;

/// Makes the handler of each connection.
///
/// A closure that returns a handler creates one for each connection.
pub trait Creation<F: Family>: Send + 'static {
    /// The handler that is made for each connection.
    type Handler: ServiceHandler<F>;

    /// The handler for a connection from, or to, `remote`.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn make(&mut self, remote: &F::Addr) -> io::Result<Self::Handler>;
}

impl<F: Family, H: ServiceHandler<F>, M: FnMut() -> H + Send + 'static> Creation<F> for M {
    type Handler = H;

    fn make(&mut self, _remote: &F::Addr) -> io::Result<H> {
        Ok(self())
    }
}
