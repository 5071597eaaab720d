//! The replies that a thread has not sent, because it serves the requests behind theirs at once. They leave before the
//! thread makes a call: the client of one of them may be the one that the call waits for.

use std::cell::RefCell;

use spandrel_sync::{Weak, thread_local};

use crate::policy::thread_flags::{self, ThreadFlag};

/// A connection that delays replies until its thread has no further request to serve.
pub trait HeldReplies: Send + Sync {
    /// Sends the replies that are held, and holds none until the next upcall. The record of this thread is removed.
    fn send_held(&self, holder: Holder);
}

/// The thread or task that sends held replies, unless a call sends them before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Holder {
    /// The thread that the record belongs to.
    Thread,
    /// A task, in any thread. The record may outlast it.
    Task,
}

thread_local! {
    /// The connection whose replies this thread may hold.
    static HELD: RefCell<Option<(Weak<dyn HeldReplies>, Holder)>> = const { RefCell::new(None) };
}

/// Records that this thread may hold replies of a connection. Returns false if that is recorded already. Replies of
/// another connection are sent.
pub fn record(connection: &Weak<impl HeldReplies + 'static>) -> bool {
    if is_recorded(connection, Holder::Thread) {
        return false;
    }
    send();
    replace(connection, Holder::Thread);
    true
}

/// Records that a task may hold replies of a connection that this thread has made. The record for a task of another
/// connection is replaced. Returns false if the thread holds replies itself.
pub fn record_for_task(connection: &Weak<impl HeldReplies + 'static>) -> bool {
    if is_recorded(connection, Holder::Task) {
        return true;
    }
    let is_held_here = HELD.with(|held| held.borrow().as_ref().is_some_and(|(_, holder)| *holder == Holder::Thread));
    if !is_held_here {
        replace(connection, Holder::Task);
    }
    !is_held_here
}

fn replace(connection: &Weak<impl HeldReplies + 'static>, holder: Holder) {
    HELD.with(|held| held.replace(Some((connection.clone(), holder))));
    thread_flags::set(ThreadFlag::HeldReplies, true);
}

/// Removes this thread's own record of the connection. Returns false if there is none.
pub fn forget(connection: &Weak<impl HeldReplies + 'static>) -> bool {
    let is_held = thread_flags::is_set(ThreadFlag::HeldReplies) && is_recorded(connection, Holder::Thread);
    if is_held {
        drop(take());
    }
    is_held
}

/// Sends the replies that this thread holds.
#[cold]
pub(crate) fn send() {
    if let Some((connection, holder)) = take()
        && let Some(connection) = connection.upgrade()
    {
        connection.send_held(holder);
    }
}

/// Whether this thread has a record of the connection and the holder.
pub fn is_recorded(connection: &Weak<impl HeldReplies + 'static>, holder: Holder) -> bool {
    let is_it = |held: &(Weak<dyn HeldReplies>, Holder)| {
        std::ptr::addr_eq(held.0.as_ptr(), connection.as_ptr()) && held.1 == holder
    };
    HELD.with(|held| held.borrow().as_ref().is_some_and(is_it))
}

fn take() -> Option<(Weak<dyn HeldReplies>, Holder)> {
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
        fn send_held(&self, _holder: Holder) {
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
        assert!(!record_for_task(&held), "this thread holds some itself");
        assert!(forget(&Arc::downgrade(&other)));
        assert!(record_for_task(&held) && record_for_task(&held) && !forget(&held));
        let _ = target.call_policies();
        let _ = target.call_policies();
        assert_eq!(sent(), 3, "those for a task leave before a call, too");
        assert!(record_for_task(&held) && record_for_task(&Arc::downgrade(&other)));
        let _ = target.call_policies();
        assert_eq!((sent(), other.0.load(Ordering::SeqCst)), (3, 1), "the task sends those of the first one");
        orb.shutdown().unwrap();
    }
}
