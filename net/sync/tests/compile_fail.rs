//! Misuse of locks does not compile. The test calls Cargo, which is not available where Windows programs run
//! under Wine.

#![cfg(not(windows))]

use std::cell::Cell;

use spandrel_sync::{Arc, Guarded, Mutex, NullMutex, RecursiveMutex, Token, thread};

/// As a contrast: the errors of the other programs are not those of unknown names.
#[test]
fn correct_use_compiles() {
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
    assert_eq!((*shared.lock(), recursive.read().get()), (1, 1));
}

#[test]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/null_*.rs");
    cases.compile_fail("tests/ui/guard_*.rs");
    cases.compile_fail("tests/ui/recursive_*.rs");
}
