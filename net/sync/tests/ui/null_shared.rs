//! A value of the null strategy is one thread's.

use spandrel_sync::{Arc, Guarded, NullMutex, thread};

fn main() {
    let shared = Arc::new(Guarded::<u32, NullMutex>::new(0));
    let other = Arc::clone(&shared);
    thread::spawn(move || *other.lock() += 1);
}
