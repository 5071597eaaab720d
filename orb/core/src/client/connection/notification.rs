//! The notification of calls by the thread that reads for them. A receiver runs code of the application and
//! may make calls. A call on the same connection would wait for its own thread.

use std::cell::{Cell, RefCell};

use spandrel_sync::thread_local;

use super::ClientConnection;

thread_local! {
    /// The addresses of the connections that this thread reads and whose calls it is notifying.
    static TELLING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Whether there are any.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

impl ClientConnection {
    /// Whether this thread is notifying a call of this connection: a call on it would wait for its own
    /// thread.
    #[inline]
    pub(crate) fn is_read_here(&self) -> bool {
        IS_TELLING.with(Cell::get)
            && TELLING.with(|telling| telling.borrow().contains(&std::ptr::from_ref(self).addr()))
    }
}

/// The time in which the reading thread notifies a receiver, which may make calls.
pub(super) struct NotificationScope(());

impl NotificationScope {
    pub(super) fn begin(connection: &ClientConnection) -> Self {
        TELLING.with(|telling| telling.borrow_mut().push(std::ptr::from_ref(connection).addr()));
        IS_TELLING.with(|is_telling| is_telling.set(true));
        Self(())
    }
}

impl Drop for NotificationScope {
    fn drop(&mut self) {
        let still = TELLING.with(|telling| {
            let mut telling = telling.borrow_mut();
            telling.pop();
            !telling.is_empty()
        });
        IS_TELLING.with(|is_telling| is_telling.set(still));
    }
}
