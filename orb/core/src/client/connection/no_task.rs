//! What stands in for calls that no thread waits for where there are none: nobody is told, and nothing is left to be written.

use std::{convert::Infallible, io};

use spandrel_transport::MessageReader;

use super::{CallFailure, ClientConnection, mux::Mux};

/// Nothing.
#[derive(Debug, Default)]
pub(super) struct Soon {}

/// No message.
#[derive(Debug)]
pub(super) struct Unsent(Infallible);

impl ClientConnection {
    pub(super) fn leave_reactor(&self) {
        let Soon {} = self.soon;
    }

    pub(super) fn want_input(&self) {}

    pub(super) fn tell_reactor(&self, _is_drained: bool) {}

    pub(super) fn fail_unsent(&self) {}

    pub(super) fn fail_all(&self, _nobody: [Infallible; 0], _failure: &CallFailure) {}

    pub(super) fn finish_rest(&self, message: &mut Unsent, _arm: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        match message.0 {}
    }
}

impl Mux {
    pub(super) fn take_tasks(&mut self) -> [Infallible; 0] {
        []
    }

    pub(super) fn has_tasks(&self) -> bool {
        false
    }
}

pub(super) fn is_drained(_reader: &MessageReader) -> bool {
    true
}
