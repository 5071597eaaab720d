//! A thread may hold several guards of a recursive mutex, so none of them lets the value be changed.

use spandrel_sync::{Guarded, RecursiveMutex};

fn main() {
    let mutex = RecursiveMutex::new(0);
    *mutex.lock() += 1;
}

fn through_the_strategy(guarded: &Guarded<u32, RecursiveMutex>) {
    *guarded.lock() += 1;
}
