//! A value with the null strategy cannot be shared between threads.

use spandrel_sync::{Arc, Guarded, NullMutex, thread};

fn main() {
    let shared = Arc::new(Guarded::<u32, NullMutex>::new(0));
    let other = Arc::clone(&shared);
    thread::spawn(move || *other.lock() += 1);
}
