//! Ends waits from other threads.

use std::fmt;
use std::io;

use spandrel_sync::Arc;
use spandrel_sync::atomic::{AtomicBool, Ordering};

/// Ends the wait of a [`Proactor`](crate::Proactor), from any thread; or its next wait.
#[derive(Clone)]
pub struct Waker(Arc<WakerState>);

struct WakerState {
    /// Whether the doorbell has been rung since the last wait.
    is_rung: AtomicBool,
    doorbell: Doorbell,
}

impl Waker {
    pub(super) fn new(doorbell: Doorbell) -> Self {
        Self(Arc::new(WakerState { is_rung: AtomicBool::new(false), doorbell }))
    }

    /// Ends the wait. Several calls before one wait are as one.
    pub fn wake(&self) {
        if !self.0.is_rung.swap(true, Ordering::SeqCst)
            && let Err(error) = self.0.doorbell.ring()
        {
            tracing::error!(%error, "cannot end the wait of a proactor");
        }
    }

    #[cfg(io_uring)]
    pub(super) fn doorbell(&self) -> &Doorbell {
        &self.0.doorbell
    }

    /// The wait has ended. Its caller sees all that was done before the calls of [`wake`](Self::wake).
    pub(super) fn answered(&self) {
        self.0.is_rung.store(false, Ordering::SeqCst);
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}

/// The eventfd that ends waits. The ring watches it for edges, so that it need not be read.
#[cfg(io_uring)]
pub(super) struct Doorbell(pub(super) std::os::fd::OwnedFd);

#[cfg(io_uring)]
impl Doorbell {
    fn ring(&self) -> io::Result<()> {
        crate::sys::eventfd::ring(&self.0)
    }
}

/// The port at which a packet without an operation ends a wait.
#[cfg(windows)]
pub(super) struct Doorbell(pub(super) Arc<std::os::windows::io::OwnedHandle>);

#[cfg(windows)]
impl Doorbell {
    fn ring(&self) -> io::Result<()> {
        use std::os::windows::io::AsRawHandle;
        use windows_sys::Win32::System::IO::PostQueuedCompletionStatus;
        // SAFETY: the port is open, and there is no operation to refer to.
        match unsafe { PostQueuedCompletionStatus(self.0.as_raw_handle(), 0, 0, std::ptr::null()) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}
