//! Semaphores and tokens against simple models of them, with random operations.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use spandrel_sync::{Semaphore, Token, TokenGuard, thread};

/// Time limit for events that must happen.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
enum Counting {
    Try,
    TryFor,
    GiveBack,
    Forget,
    Post(usize),
}

fn counting() -> impl Strategy<Value = Counting> {
    prop_oneof![
        3 => Just(Counting::Try),
        1 => Just(Counting::TryFor),
        2 => Just(Counting::GiveBack),
        1 => Just(Counting::Forget),
        1 => (0..3_usize).prop_map(Counting::Post),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Acquire,
    Try,
    Release,
    Renew,
}

/// A completed operation: the thread's number, the operation, and whether it succeeded.
type Done = (usize, Act, bool);

const THREADS: usize = 4;

/// Applies the given operations to the token.
fn act(number: usize, token: &Token, orders: &Receiver<Act>, done: &Sender<Done>) {
    let mut held: Vec<TokenGuard<'_>> = Vec::new();
    for order in orders {
        let result = match order {
            Act::Acquire => {
                held.push(token.acquire());
                true
            }
            Act::Try => token.try_acquire().map(|guard| held.push(guard)).is_some(),
            Act::Release => held.pop().is_some(),
            Act::Renew => held.last().is_some_and(TokenGuard::renew),
        };
        done.send((number, order, result)).unwrap();
    }
}

/// A model of the token, by its documentation.
#[derive(Default)]
struct Model {
    holder: Option<(usize, usize)>,
    queue: VecDeque<(usize, usize, Act)>,
}

impl Model {
    fn is_queued(&self, thread: usize) -> bool {
        self.queue.iter().any(|(queued, ..)| *queued == thread)
    }

    /// The operations that complete at once when a thread acts, in any order.
    fn act(&mut self, thread: usize, act: Act) -> Vec<Done> {
        let holds = self.holder.filter(|(holder, _)| *holder == thread);
        match (act, holds) {
            (Act::Acquire | Act::Try, Some((_, times))) => self.holder = Some((thread, times + 1)),
            (Act::Acquire | Act::Try, None) if self.holder.is_none() => self.holder = Some((thread, 1)),
            (Act::Acquire, None) => {
                self.queue.push_back((thread, 1, act));
                return Vec::new();
            }
            (Act::Try, None) => return vec![(thread, act, false)],
            (Act::Release, Some((_, 1))) => {
                let next = self.hand_over();
                return next.into_iter().chain([(thread, act, true)]).collect();
            }
            (Act::Release, Some((_, times))) => self.holder = Some((thread, times - 1)),
            (Act::Renew, Some((_, times))) if !self.queue.is_empty() => {
                self.queue.push_back((thread, times, act));
                return self.hand_over().into_iter().collect();
            }
            (Act::Release | Act::Renew, _) => return vec![(thread, act, false)],
        }
        vec![(thread, act, true)]
    }

    fn hand_over(&mut self) -> Option<Done> {
        let next = self.queue.pop_front();
        self.holder = next.map(|(thread, times, _)| (thread, times));
        next.map(|(thread, _, act)| (thread, act, true))
    }
}

/// Makes a thread act and checks that exactly the operations of the model complete.
fn step(token: &Token, model: &mut Model, orders: &[Sender<Act>], done: &Receiver<Done>, thread: usize, act: Act) {
    let key = |(thread, act, result): &Done| (*thread, *act as u8, *result);
    let mut expected = model.act(thread, act);
    orders[thread].send(act).unwrap();
    let mut completed: Vec<_> = expected.iter().map(|_| done.recv_timeout(TEST_TIMEOUT).expect("it happens")).collect();
    expected.sort_by_key(key);
    completed.sort_by_key(key);
    assert_eq!(completed, expected);
    let start = Instant::now();
    while token.waiting() != model.queue.len() {
        assert!(start.elapsed() < TEST_TIMEOUT, "{} queue, not {}", token.waiting(), model.queue.len());
        thread::yield_now();
    }
    assert!(done.try_recv().is_err(), "an operation completed that the model does not have");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_semaphore_counts(permits in 0..4_usize, steps in prop::collection::vec(counting(), 1..60)) {
        let semaphore = Semaphore::new(permits);
        let (mut free, mut held) = (permits, Vec::new());
        for step in steps {
            match step {
                Counting::Try | Counting::TryFor => {
                    let permit = match step {
                        Counting::Try => semaphore.try_acquire(),
                        _ => semaphore.acquire_for(Duration::ZERO),
                    };
                    prop_assert_eq!(permit.is_some(), free > 0);
                    free -= usize::from(permit.is_some());
                    held.extend(permit);
                }
                Counting::GiveBack => free += usize::from(held.pop().is_some()),
                Counting::Forget => held.pop().into_iter().for_each(spandrel_sync::Permit::forget),
                Counting::Post(permits) => {
                    semaphore.post(permits).unwrap();
                    free += permits;
                }
            }
            prop_assert_eq!(semaphore.available(), free);
        }
    }

    #[test]
    fn a_token_agrees_with_its_model(
        steps in prop::collection::vec(
            (0..THREADS, prop_oneof![
                4 => Just(Act::Acquire), 1 => Just(Act::Try), 4 => Just(Act::Release), 2 => Just(Act::Renew)
            ]),
            1..60,
        )
    ) {
        let (token, mut model) = (Token::new(), Model::default());
        thread::scope(|scope| {
            let (report, done) = channel();
            let orders: Vec<_> = (0..THREADS).map(|number| {
                let (order, orders) = channel();
                let (token, report) = (&token, report.clone());
                scope.spawn(move || act(number, token, &orders, &report));
                order
            }).collect();
            for (thread, act) in steps {
                if !model.is_queued(thread) {
                    step(&token, &mut model, &orders, &done, thread, act);
                }
            }
            while let Some((holder, _)) = model.holder {
                step(&token, &mut model, &orders, &done, holder, Act::Release);
            }
        });
        prop_assert!(token.try_acquire().is_some());
    }
}
