//! Correct uses, as a contrast: the errors of the other files are not those of unknown names.

use std::cell::Cell;

use spandrel_sync::{Arc, Guarded, Mutex, NullMutex, RecursiveMutex, Token, thread};

fn main() {
    let shared = Arc::new(Guarded::<u32, Mutex>::new(0));
    let other = Arc::clone(&shared);
    thread::spawn(move || *other.lock() += 1).join().unwrap();

    // Moved as a whole, a value that only one thread uses may change that thread.
    let own = Guarded::<u32, NullMutex>::new(0);
    thread::spawn(move || *own.lock() += 1).join().unwrap();

    let recursive = Arc::new(Guarded::<Cell<u32>, RecursiveMutex>::new(Cell::new(0)));
    let other = Arc::clone(&recursive);
    thread::spawn(move || other.read().set(1)).join().unwrap();

    let token = Arc::new(Token::new());
    thread::spawn(move || drop(token.acquire())).join().unwrap();
}
