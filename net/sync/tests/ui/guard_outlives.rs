//! A guard cannot outlive its lock.

use spandrel_sync::{Guarded, Mutex, MutexGuard, Permit, Semaphore, Token, TokenGuard};

fn of_a_mutex<'a>() -> MutexGuard<'a, u32> {
    let mutex = Mutex::new(0);
    mutex.lock()
}

fn of_a_strategy<'a>() -> MutexGuard<'a, u32> {
    let guarded = Guarded::<u32, Mutex>::new(0);
    guarded.lock()
}

fn of_a_semaphore<'a>() -> Permit<'a> {
    let semaphore = Semaphore::new(1);
    semaphore.acquire()
}

fn of_a_token<'a>() -> TokenGuard<'a> {
    let token = Token::new();
    token.acquire()
}

fn main() {
    let _ = (of_a_mutex, of_a_strategy, of_a_semaphore, of_a_token);
}
