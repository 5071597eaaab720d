//! Turns of the reactor that its thread keeps open: it writes the appended requests of those connections when it has
//! polled the future that it waits for ([`Orb::block_on`](crate::Orb::block_on)).

use std::cell::RefCell;

use spandrel_sync::{Arc, thread_local};

use super::{super::ClientConnection, registration::write_appended};

thread_local! {
    static OPEN_TURNS: RefCell<Option<Vec<Arc<ClientConnection>>>> = const { RefCell::new(None) };
}

/// Keeps the turn of a connection open, if this thread keeps turns.
pub(super) fn keep(connection: &Arc<ClientConnection>) -> bool {
    OPEN_TURNS.with(|turns| match &mut *turns.borrow_mut() {
        Some(turns) => {
            turns.push(Arc::clone(connection));
            true
        }
        None => false,
    })
}

/// The time in which this thread keeps turns open, until its drop.
#[derive(Debug)]
pub(crate) struct KeptTurns(());

impl KeptTurns {
    pub(crate) fn begin() -> Self {
        OPEN_TURNS.with(|turns| *turns.borrow_mut() = Some(Vec::new()));
        Self(())
    }

    /// Whether this thread has a turn to end.
    pub(crate) fn has_any() -> bool {
        OPEN_TURNS.with(|turns| turns.borrow().as_ref().is_some_and(|turns| !turns.is_empty()))
    }

    /// Ends the turns of this thread, if it keeps any, and writes what was appended in them.
    pub(crate) fn end_all() {
        let mut ended = OPEN_TURNS.with(|turns| turns.borrow_mut().as_mut().map(std::mem::take)).unwrap_or_default();
        for connection in ended.drain(..) {
            write_appended(&connection);
            connection.async_state().registration.update_interest(true);
        }
        // With its memory, for the next turns.
        OPEN_TURNS.with(|turns| turns.borrow_mut().iter_mut().for_each(|open| std::mem::swap(open, &mut ended)));
    }
}

impl Drop for KeptTurns {
    fn drop(&mut self) {
        Self::end_all();
        OPEN_TURNS.with(|turns| *turns.borrow_mut() = None);
    }
}
