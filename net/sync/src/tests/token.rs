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

/// Starts threads that queue for the token in the order of their numbers and note when they have it.
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
fn one_at_a_time_has_the_token() {
    check_dfs(
        || {
            let shared = Arc::new((Token::new(), Mutex::new(0)));
            let other = Arc::clone(&shared);
            let enter = |shared: &(Token, Mutex<u32>)| {
                let _held = shared.0.acquire();
                let seen = *shared.1.lock();
                *shared.1.lock() = seen + 1;
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
fn the_token_passes_in_the_order_of_asking() {
    check_random(
        || {
            let (token, order) = (Arc::new(Token::new()), Arc::new(Mutex::new(Vec::new())));
            let held = token.acquire();
            let threads = queue(&token, &order, [1, 2]);
            drop(held);
            let last = token.acquire(); // asked after the two, who may not even have woken
            order.lock().push(3);
            drop(last);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(*order.lock(), [1, 2, 3]);
        },
        500,
    );
}

#[test]
fn a_renewal_lets_those_who_queue_go_first_and_keeps_what_was_held() {
    check_random(
        || {
            let (token, order) = (Arc::new(Token::new()), Arc::new(Mutex::new(Vec::new())));
            let held = token.acquire();
            let again = token.acquire();
            assert!(!held.renew(), "nobody queues");
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
fn whose_time_runs_out_leaves_the_queue_or_has_the_token() {
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
fn a_token_that_is_not_given_up_is_not_waited_for() {
    check_random(
        || {
            let token = Arc::new(Token::new());
            let _held = token.acquire();
            let other = Arc::clone(&token);
            let thread = thread::spawn(move || {
                assert!(token_is_refused(&other));
            });
            thread.join().unwrap();
            assert!(token.acquire_for(Duration::ZERO).is_some(), "its holder may");
        },
        50,
    );
}

fn token_is_refused(token: &Token) -> bool {
    token.try_acquire().is_none() && token.acquire_for(Duration::from_secs(1)).is_none() && token.waiting() == 0
}
