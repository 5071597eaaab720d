//! The registration of a connection with a reactor.

use std::{fmt, io, mem, time::Duration};

use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// A connection's registration with a reactor. The reactor calls `serve_ready` when there
/// is input, and `registration_closed` when the registration has ended.
pub(crate) trait ReactorRegistration: Send + Sync + fmt::Debug {
    /// Suspends the calls.
    fn suspend(&self);
    /// Resumes the calls. Returns false if the registration has ended.
    fn resume(&self) -> bool;
    /// Resumes the calls, and has one made even if the handle shows no input. Returns false if the
    /// registration has ended.
    fn resume_marked(&self) -> bool;
    /// Has one call made even if the handle shows neither input nor room for output, unless the calls are
    /// suspended.
    fn mark_ready(&self);
    /// Has the reactor call `write_ready` when the transport takes more, and make no
    /// other calls meanwhile; or ends that.
    fn want_output(&self, is_wanted: bool);
    /// Resumes the calls, and ends the registration after this time. Returns false if it has ended before.
    fn linger(&self, time: Duration) -> bool;
    /// Ends the registration.
    fn leave(&self);
    /// Registers the connection anew during a call, so that other threads may be called before that call returns.
    /// `is_ready`: there is input that the handle does not show. The caller has ended the reading by this
    /// registration, which finds that it is replaced before the next one begins to read.
    ///
    /// # Errors
    /// The registration has ended.
    fn renew(&self, is_ready: bool) -> io::Result<()>;
}

/// The registration of one connection, if it has one.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct RegistrationSlot {
    /// The number of registrations that were replaced by others. Each visit of the reactor reads it.
    renewals: AtomicU32,
    /// Empty while the connection has a thread of its own.
    registration: Mutex<Option<Arc<dyn ReactorRegistration>>>,
    /// Whether a reactor writes the waiting replies, although the connection has a thread of its own. The lock
    /// is also held while a registration is updated with the presence of waiting replies.
    has_writer: Mutex<bool>,
}

impl RegistrationSlot {
    pub(super) fn get(&self) -> Option<Arc<dyn ReactorRegistration>> {
        self.registration.lock().clone()
    }

    /// The number of registrations that were replaced by others.
    #[inline]
    pub(super) fn renewals(&self) -> u32 {
        self.renewals.load(Ordering::SeqCst)
    }

    /// Records that the present registration is replaced.
    pub(super) fn count_renewal(&self) {
        self.renewals.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn set(&self, registration: Arc<dyn ReactorRegistration>) {
        *self.registration.lock() = Some(registration);
    }

    /// Ends the registration.
    pub(super) fn leave(&self) {
        let registration = self.registration.lock().take();
        if let Some(registration) = registration {
            registration.leave();
        }
    }

    /// Makes the reactor look at the transport after this side has shut it down. Windows does not report that
    /// as an event of the socket; Unix does.
    pub(super) fn announce_shutdown(&self) {
        if cfg!(windows)
            && let Some(registration) = self.get()
        {
            registration.mark_ready();
        }
    }

    /// Updates the registration: it waits for output if replies wait to be written.
    pub(super) fn update_output(&self, is_wanted: impl FnOnce() -> bool) {
        // One update at a time, so that the last one sets the present state.
        let _order = self.has_writer.lock();
        if let Some(registration) = self.get() {
            registration.want_output(is_wanted());
        }
    }

    /// Records that a reactor is to write the waiting replies. Returns false if one does already.
    pub(super) fn begin_writer(&self) -> bool {
        !mem::replace(&mut *self.has_writer.lock(), true)
    }

    /// Records that the reactor no longer writes.
    pub(super) fn end_writer(&self) {
        *self.has_writer.lock() = false;
    }
}
