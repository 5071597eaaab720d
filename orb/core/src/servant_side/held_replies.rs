//! The replies that a thread has not sent, because it serves the requests behind theirs at once. They leave before the
//! thread makes a call: the client of one of them may be the one that the call waits for.

use std::cell::RefCell;

use spandrel_sync::{Weak, thread_local};

use crate::policy::thread_flags::{self, ThreadFlag};

/// A connection with such replies.
pub trait HeldReplies: Send + Sync {
    /// Sends the replies that are held.
    fn send_held(&self);
}

thread_local! {
    /// The connection whose replies this thread holds.
    static HELD: RefCell<Option<Weak<dyn HeldReplies>>> = const { RefCell::new(None) };
}

/// Records that this thread holds replies of a connection.
pub fn record(connection: Weak<dyn HeldReplies>) {
    let before = HELD.with(|held| held.replace(Some(connection)));
    drop(before);
    thread_flags::set(ThreadFlag::HeldReplies, true);
}

/// Records that this thread has sent them.
pub fn forget() {
    drop(take());
}

/// Sends the replies that this thread holds.
#[cold]
pub(crate) fn send() {
    if let Some(connection) = take().and_then(|connection| connection.upgrade()) {
        connection.send_held();
    }
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
        let held = || Arc::downgrade(&connection) as Weak<dyn HeldReplies>;
        record(held());
        forget();
        let _ = target.call_policies();
        assert_eq!(connection.0.load(Ordering::SeqCst), 0, "they were sent before");
        record(held());
        let _ = target.call_policies();
        let _ = target.call_policies();
        assert_eq!(connection.0.load(Ordering::SeqCst), 1, "once");
        orb.shutdown().unwrap();
    }
}
