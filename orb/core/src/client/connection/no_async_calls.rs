//! Replacements for a build without asynchronous calls: there are no receivers, and no unwritten messages.

use std::{convert::Infallible, io};

use spandrel_transport::MessageReader;

use super::ClientConnection;

/// The empty state.
#[derive(Debug, Default)]
pub(super) struct AsyncWrites {}

/// A message that cannot exist.
#[derive(Debug)]
pub(super) struct UnsentMessage(Infallible);

impl ClientConnection {
    pub(super) fn leave_reactor(&self) {
        let AsyncWrites {} = self.async_writes;
    }

    pub(super) fn want_input(&self) {}

    pub(super) fn update_interest(&self, _is_drained: bool) {}

    pub(super) fn fail_unsent(&self) {}

    pub(super) fn finish_rest(
        &self,
        message: &mut UnsentMessage,
        _update_timeout: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        match message.0 {}
    }
}

pub(super) fn is_drained(_reader: &MessageReader) -> bool {
    true
}
