//! Where the holder is a thread, the guard stays with it.

use spandrel_sync::{RecursiveMutex, Token, thread};

fn main() {
    let (mutex, token) = (RecursiveMutex::new(0), Token::new());
    let (held, token_held) = (mutex.lock(), token.acquire());
    thread::scope(|scope| {
        scope.spawn(move || drop(held));
        scope.spawn(move || drop(token_held));
    });
}
