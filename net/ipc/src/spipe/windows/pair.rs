//! Both ends of one STREAM pipe.

use std::hash::{BuildHasher, RandomState};
use std::io;

use spandrel_sync::atomic::{AtomicU64, Ordering};

use super::options::QUEUE;
use super::{Addr, Stream};
use crate::sys::named_pipe::{Instance, Pipe, is_in_use};

/// Both ends of one pipe, for threads of this process.
///
/// # Errors
/// Any error of the operating system, such as too many open handles.
pub fn pair() -> io::Result<(Stream, Stream)> {
    // Windows has no unnamed bidirectional pipe. If another process guesses this name first, a new attempt is
    // made.
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if is_in_use(&error) => {}
            result => return result,
        }
    }
    attempt()
}

const ATTEMPTS: u32 = 8;

/// Makes a pipe of one instance; it fails if another process has connected to it first.
fn attempt() -> io::Result<(Stream, Stream)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let any = RandomState::new().hash_one(count);
    let addr = Addr::name(&format!("spandrel-pair-{}-{count}-{any:016x}", std::process::id()))?;
    let one = Pipe::create(addr.rendezvous()?, &Instance { limit: 1, queues: [QUEUE; 2] }, true)?;
    let other = Pipe::open(addr.rendezvous()?)?;
    Ok((Stream::new(one)?, Stream::new(other)?))
}
