//! The threads of the workers.

use std::io;
use std::thread;

use super::{LoadStop, Request, Schedule};

/// A worker of a load: a client with its own record of what it has measured.
pub trait Worker: Send {
    /// Makes a request that is due, and returns after its answer.
    fn make(&mut self, request: Request);
}

/// A thread that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start worker {number}: {source}")]
pub struct StartError {
    /// The number of the worker, from 0.
    pub number: usize,
    source: io::Error,
}

/// Makes the requests of a schedule with one thread for each worker, and returns the workers with their records.
///
/// A worker takes the next request, waits for its time and makes it, until the requests are taken or the load is stopped.
/// A worker that panics makes no further request; the others go on, and the panic is in its place of the result.
///
/// # Errors
/// A thread that the system does not start. Threads that have begun are stopped before.
pub fn drive<W: Worker>(
    schedule: &Schedule,
    stop: &LoadStop,
    workers: impl IntoIterator<Item = W>,
) -> Result<Vec<thread::Result<W>>, StartError> {
    thread::scope(|scope| {
        let mut started = Vec::new();
        for (number, mut worker) in workers.into_iter().enumerate() {
            let thread = thread::Builder::new().name(format!("load-{number}"));
            let work = move || {
                while let Some(request) = schedule.next()
                    && stop.wait_until(request.begin)
                {
                    worker.make(request);
                }
                worker
            };
            match thread.spawn_scoped(scope, work) {
                Ok(thread) => started.push(thread),
                Err(source) => {
                    stop.stop();
                    return Err(StartError { number, source });
                }
            }
        }
        Ok(started.into_iter().map(thread::ScopedJoinHandle::join).collect())
    })
}
