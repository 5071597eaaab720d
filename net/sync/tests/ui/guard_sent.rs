//! A guard of a lock whose holder is a thread cannot move to another thread.

use spandrel_sync::{RecursiveMutex, Token, thread};

fn main() {
    let (mutex, token) = (RecursiveMutex::new(0), Token::new());
    let (held, token_held) = (mutex.lock(), token.acquire());
    thread::scope(|scope| {
        scope.spawn(move || drop(held));
        scope.spawn(move || drop(token_held));
    });
}
