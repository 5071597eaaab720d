//! The notification of calls by the thread that reads for them. A receiver runs code of the application and
//! may make calls. A call on the same connection would wait for its own thread.

use std::cell::{Cell, RefCell};

use spandrel_sync::thread_local;

use super::ClientConnection;

thread_local! {
    /// The addresses of the connections that this thread reads and whose calls it is notifying.
    static NOTIFYING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Whether there are any.
    static IS_NOTIFYING: Cell<bool> = const { Cell::new(false) };
}

impl ClientConnection {
    /// Whether this thread is notifying a call of this connection: a call on it would wait for its own
    /// thread.
    #[inline]
    pub(crate) fn is_notifying_thread(&self) -> bool {
        IS_NOTIFYING.with(Cell::get)
            && NOTIFYING.with(|notifying| notifying.borrow().contains(&std::ptr::from_ref(self).addr()))
    }
}

/// The time in which the reading thread notifies a receiver, which may make calls.
pub(super) struct NotificationScope(());

impl NotificationScope {
    pub(super) fn begin(connection: &ClientConnection) -> Self {
        NOTIFYING.with(|notifying| notifying.borrow_mut().push(std::ptr::from_ref(connection).addr()));
        IS_NOTIFYING.with(|is_notifying| is_notifying.set(true));
        Self(())
    }
}

impl Drop for NotificationScope {
    fn drop(&mut self) {
        let still = NOTIFYING.with(|notifying| {
            let mut notifying = notifying.borrow_mut();
            notifying.pop();
            !notifying.is_empty()
        });
        IS_NOTIFYING.with(|is_notifying| is_notifying.set(still));
    }
}
