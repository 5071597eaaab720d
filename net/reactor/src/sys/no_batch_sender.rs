//! A [`BatchSender`] cannot be created where the target has no `io_uring`.

use std::convert::Infallible;
use std::io;

use spandrel_ipc::Handle;

/// Sends messages on several sockets by one system call. None of them waits.
#[derive(Debug)]
pub struct BatchSender(Infallible);

impl BatchSender {
    /// The most messages of one batch.
    pub const MAX_MESSAGES: usize = 64;

    /// Fails.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no io_uring"))
    }

    /// Cannot be called: no value of the type exists here.
    #[must_use]
    pub fn sends_together(&self) -> bool {
        match self.0 {}
    }

    /// Cannot be called: no value of the type exists here.
    pub fn send<'m>(
        &mut self,
        _messages: impl Iterator<Item = (Handle<'m>, &'m [u8])> + Clone,
        _sent: impl FnMut(io::Result<usize>),
    ) {
        match self.0 {}
    }
}
