//! Models of the token's order.

use std::time::Duration;

use shuttle::{check_dfs, check_random};

use crate::{Arc, Mutex, Token, thread};

/// Waits until so many threads queue for the token.
fn until_queued(token: &Token, threads: usize) {
    while token.waiting() < threads {
        thread::yield_now();
    }
}

/// Starts threads that queue for the token in the order of their numbers and record when they hold it.
fn queue(token: &Arc<Token>, order: &Arc<Mutex<Vec<u32>>>, numbers: [u32; 2]) -> Vec<thread::JoinHandle<()>> {
    let mut threads = Vec::new();
    for number in numbers {
        let before = token.waiting();
        let (token_, order) = (Arc::clone(token), Arc::clone(order));
        threads.push(thread::spawn(move || {
            let _held = token_.acquire();
            order.lock().push(number);
        }));
        until_queued(token, before + 1);
    }
    threads
}

#[test]
fn one_thread_at_a_time_holds_the_token() {
    check_dfs(
        || {
            let shared = Arc::new((Token::new(), Mutex::new(0)));
            let other = Arc::clone(&shared);
            let enter = |shared: &(Token, Mutex<u32>)| {
                let _held = shared.0.acquire();
                let read = *shared.1.lock();
                *shared.1.lock() = read + 1;
            };
            let thread = thread::spawn(move || enter(&other));
            enter(&shared);
            thread.join().unwrap();
            assert_eq!(*shared.1.lock(), 2);
            assert_eq!(shared.0.waiting(), 0);
        },
        Some(20_000),
    );
}

#[test]
fn the_token_passes_in_the_order_of_requests() {
    check_random(
        || {
            let (token, order) = (Arc::new(Token::new()), Arc::new(Mutex::new(Vec::new())));
            let held = token.acquire();
            let threads = queue(&token, &order, [1, 2]);
            drop(held);
            let last = token.acquire(); // queued after the two, which may not have woken yet
            order.lock().push(3);
            drop(last);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(*order.lock(), [1, 2, 3]);
        },
        500,
    );
}

#[test]
fn a_renewal_serves_the_queue_first_and_keeps_the_guards() {
    check_random(
        || {
            let (token, order) = (Arc::new(Token::new()), Arc::new(Mutex::new(Vec::new())));
            let held = token.acquire();
            let again = token.acquire();
            assert!(!held.renew(), "the queue is empty");
            let threads = queue(&token, &order, [1, 2]);
            assert!(held.renew());
            order.lock().push(3);
            drop(again);
            assert!(token.is_mine(), "two guards, one dropped");
            drop(held);
            assert!(!token.is_mine());
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(*order.lock(), [1, 2, 3]);
        },
        500,
    );
}

#[test]
fn a_timed_out_thread_leaves_the_queue_or_holds_the_token() {
    check_random(
        || {
            let token = Arc::new(Token::new());
            let held = token.acquire();
            let hasty = Arc::clone(&token);
            let hasty = thread::spawn(move || hasty.acquire_for(Duration::from_secs(1)).is_some());
            let patient = Arc::clone(&token);
            let patient = thread::spawn(move || drop(patient.acquire()));
            drop(held);
            hasty.join().unwrap();
            patient.join().unwrap();
            assert_eq!(token.waiting(), 0);
            assert!(token.try_acquire().is_some(), "left free");
        },
        1_000,
    );
}

#[test]
fn a_timed_acquire_of_a_held_token_times_out() {
    check_random(
        || {
            let token = Arc::new(Token::new());
            let _held = token.acquire();
            let other = Arc::clone(&token);
            let thread = thread::spawn(move || {
                assert!(token_is_refused(&other));
            });
            thread.join().unwrap();
            assert!(token.acquire_for(Duration::ZERO).is_some(), "the holder may acquire it again");
        },
        50,
    );
}

fn token_is_refused(token: &Token) -> bool {
    token.try_acquire().is_none() && token.acquire_for(Duration::from_secs(1)).is_none() && token.waiting() == 0
}
