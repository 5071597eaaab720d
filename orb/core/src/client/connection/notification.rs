//! A thread that reads for others tells them what came. That is anybody's code, and may make calls: on the same connection it would wait for itself.

use std::cell::{Cell, RefCell};

use spandrel_sync::thread_local;

use super::ClientConnection;

thread_local! {
    /// Where the connections lie that this thread reads, and whose calls it is telling.
    static TELLING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Whether there are any.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

impl ClientConnection {
    /// True if this thread reads here, and is telling somebody what came: it would wait for itself.
    #[inline]
    pub(crate) fn is_read_here(&self) -> bool {
        IS_TELLING.with(Cell::get)
            && TELLING.with(|telling| telling.borrow().contains(&std::ptr::from_ref(self).addr()))
    }
}

/// The time in which a thread that reads tells somebody what came for him. That is anybody's code, and may make calls.
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
