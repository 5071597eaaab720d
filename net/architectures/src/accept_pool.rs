//! A pool of threads that compete for `accept` (paper 004, section 4.3.2).
//!
//! Each worker accepts a connection and serves it to its end. With a lock, one worker waits in `accept`, and the
//! others wait for the lock; without one, the kernel chooses.

use std::io;

use spandrel_sync::{AdaptiveMutex, Mutex, Semaphore};

use crate::blocking::ROOM;
use crate::threads::ThreadedServer;
use crate::{AcceptLock, Port, Protocol, Server, Settings};

// ANCHOR: start
/// Starts a pool of [`Settings::workers`] threads with the lock of [`Settings::lock`].
///
/// # Errors
/// Any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    let server = ThreadedServer::new(port, protocol, settings, settings.workers)?;
    let lock = Locking::new(settings.lock);
    server.watch(settings.idle, |_| {})?;
    server.spawn("accept-pool", settings.workers, move |shared| {
        let mut buffer = [0; ROOM];
        while let Some(connection) = lock.accept(|| shared.accept()) {
            connection.serve(&mut buffer);
        }
    })?;
    Ok(server)
}
// ANCHOR_END: start

/// The lock around `accept`, or none.
enum Locking {
    None,
    Mutex(Mutex<()>),
    Adaptive(AdaptiveMutex<()>),
    Semaphore(Semaphore),
}

impl Locking {
    fn new(lock: AcceptLock) -> Self {
        match lock {
            AcceptLock::None => Self::None,
            AcceptLock::Mutex => Self::Mutex(Mutex::new(())),
            AcceptLock::Adaptive => Self::Adaptive(AdaptiveMutex::new(())),
            AcceptLock::Semaphore => Self::Semaphore(Semaphore::new(1)),
        }
    }

    /// Accepts while holding the lock.
    fn accept<T>(&self, accept: impl FnOnce() -> Option<T>) -> Option<T> {
        match self {
            Self::None => accept(),
            Self::Mutex(mutex) => {
                let _guard = mutex.lock();
                accept()
            }
            Self::Adaptive(mutex) => {
                let _guard = mutex.lock();
                accept()
            }
            Self::Semaphore(semaphore) => {
                let _permit = semaphore.acquire();
                accept()
            }
        }
    }
}
