//! The replies that a thread has not sent, because it serves the requests behind theirs at once. They leave before the
//! thread makes a call: the client of one of them may be the one that the call waits for.

use std::cell::RefCell;

use spandrel_sync::{Weak, thread_local};

use crate::policy::thread_flags::{self, ThreadFlag};

/// A connection with such replies.
pub trait HeldReplies: Send + Sync {
    /// Sends the replies that are held, and holds none until the next upcall. The record of this thread is removed.
    fn send_held(&self);
}

thread_local! {
    /// The connection whose replies this thread may hold.
    static HELD: RefCell<Option<Weak<dyn HeldReplies>>> = const { RefCell::new(None) };
}

/// Records that this thread may hold replies of a connection. Returns false if that is recorded already. Replies of
/// another connection are sent.
pub fn record(connection: &Weak<impl HeldReplies + 'static>) -> bool {
    if is_recorded(connection) {
        return false;
    }
    send();
    HELD.with(|held| held.replace(Some(connection.clone())));
    thread_flags::set(ThreadFlag::HeldReplies, true);
    true
}

/// Removes that record. Returns false if there is none.
pub fn forget(connection: &Weak<impl HeldReplies + 'static>) -> bool {
    let is_held = thread_flags::is_set(ThreadFlag::HeldReplies) && is_recorded(connection);
    if is_held {
        drop(take());
    }
    is_held
}

/// Sends the replies that this thread holds.
#[cold]
pub(crate) fn send() {
    if let Some(connection) = take().and_then(|connection| connection.upgrade()) {
        connection.send_held();
    }
}

fn is_recorded(connection: &Weak<impl HeldReplies + 'static>) -> bool {
    let is_it = |held: &Weak<dyn HeldReplies>| std::ptr::addr_eq(held.as_ptr(), connection.as_ptr());
    HELD.with(|held| held.borrow().as_ref().is_some_and(is_it))
}

fn take() -> Option<Weak<dyn HeldReplies>> {
    thread_flags::set(ThreadFlag::HeldReplies, false);
    HELD.with(RefCell::take)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;
    use crate::Orb;

    #[derive(Default)]
    struct Connection(AtomicU32);

    impl HeldReplies for Connection {
        fn send_held(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_call_first_sends_the_replies_that_its_thread_holds() {
        let orb = Orb::builder().build().unwrap();
        let target = orb.string_to_object("corbaloc::127.0.0.1:1/key").unwrap();
        let connection = Arc::<Connection>::default();
        let sent = || connection.0.load(Ordering::SeqCst);
        let held = Arc::downgrade(&connection);
        assert!(record(&held) && forget(&held) && !forget(&held));
        let _ = target.call_policies();
        assert_eq!(sent(), 0, "none was held");
        assert!(record(&held) && !record(&held));
        let _ = target.call_policies();
        let _ = target.call_policies();
        assert_eq!(sent(), 1, "once");
        let other = Arc::<Connection>::default();
        assert!(record(&held) && record(&Arc::downgrade(&other)) && !forget(&held));
        assert_eq!(sent(), 2, "before those of another connection are held");
        orb.shutdown().unwrap();
    }
}
