//! Waiting for many handles at once: one module per mechanism of the system, behind one trait.

mod backend;
mod demultiplexer;
#[cfg_attr(windows, path = "demux/doorbell_windows.rs")]
mod doorbell;
#[cfg(target_os = "linux")]
mod epoll;
#[cfg(unix)]
mod poll;
mod portable;
mod scan;
mod select;
#[cfg(windows)]
mod select_then_port;
#[cfg(io_uring)]
mod uring;

use std::io;

pub use self::backend::{Backend, Trigger};
pub(crate) use self::demultiplexer::{Demultiplexer, ReadyHandle};

/// Opens the named back end. Where the system forbids io_uring, or its version is too old, that is epoll.
pub(crate) fn open(backend: Backend) -> io::Result<Box<dyn Demultiplexer>> {
    match open_exactly(backend) {
        #[cfg(target_os = "linux")]
        Err(error) if backend == Backend::IoUring => {
            tracing::warn!(%error, "io_uring is not available; the reactor uses epoll instead");
            open_exactly(Backend::Epoll)
        }
        result => result,
    }
}

fn open_exactly(backend: Backend) -> io::Result<Box<dyn Demultiplexer>> {
    Ok(match backend {
        #[cfg(target_os = "linux")]
        Backend::Auto | Backend::Epoll => Box::new(epoll::Epoll::new()?),
        #[cfg(io_uring)]
        Backend::IoUring => Box::new(uring::Uring::new()?),
        #[cfg(all(target_os = "linux", not(io_uring)))]
        Backend::IoUring => {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring is not supported on this architecture"));
        }
        #[cfg(unix)]
        Backend::Poll => Box::new(scan::Scanner::new(poll::Poll::default())?),
        #[cfg(unix)]
        Backend::Select => Box::new(scan::Scanner::new(select::Select)?),
        #[cfg(windows)]
        Backend::Select => Box::new(select_then_port::SelectThenPort::new()?),
        #[cfg(not(target_os = "linux"))]
        Backend::Auto => Box::new(portable::Portable::new()?),
        Backend::Polling => Box::new(portable::Portable::new()?),
    })
}

impl Backend {
    /// The back ends that work on this system, the best first. [`Auto`](Self::Auto) is not among them: it
    /// stands for the first one, except on Windows in a reactor of one thread.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::KNOWN.iter().copied().filter(|backend| open_exactly(*backend).is_ok()).collect()
    }
}
