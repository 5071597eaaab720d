//! Cost of the locking strategies: uncontended, and with two threads that contend for a short critical
//! section.
//!
//! The strategies run in turn, so that a noisy machine affects them alike; the medians of the rounds are
//! printed. Run with `cargo bench -p spandrel-sync`. The arguments `alone STRATEGY` or `two STRATEGY` lock
//! one strategy a million times and do nothing else, for counting instructions (`valgrind --tool=callgrind`)
//! and system calls (`strace -c -f`).

use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

use spandrel_measure::stats::Summary;
use spandrel_sync::{
    AdaptiveMutex, Guarded, Lock, Mutex, NullMutex, RecursiveMutex, RwLock, SharedLock, Token, thread,
};

/// Locks and unlocks the given number of times, in one thread or in each of two.
type Run = fn(u32);

fn alone<L: Lock>(times: u32) {
    let value = Guarded::<u64, L>::new(0);
    let value = black_box(&value);
    (0..times).for_each(|_| *value.lock() += 1);
}

fn alone_shared<L: SharedLock>(times: u32) {
    let value = Guarded::<Cell<u64>, L>::new(Cell::new(0));
    let value = black_box(&value);
    (0..times).for_each(|_| {
        let guard = value.read();
        guard.set(guard.get() + 1);
    });
}

fn alone_token(times: u32) {
    let token = Token::new();
    let token = black_box(&token);
    (0..times).for_each(|_| drop(token.acquire()));
}

fn contended<L: Lock>(times: u32)
where
    L::Of<[u64; 8]>: Sync,
{
    let value = Guarded::<[u64; 8], L>::new([0; 8]);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..times).for_each(|_| value.lock().iter_mut().for_each(|one| *one += 1)));
        }
    });
    assert_eq!(value.into_inner(), [2 * u64::from(times); 8]);
}

const ALONE: [(&str, Run); 7] = [
    ("NullMutex", alone::<NullMutex>),
    ("Mutex", alone::<Mutex>),
    ("AdaptiveMutex", alone::<AdaptiveMutex>),
    ("RwLock, write", alone::<RwLock>),
    ("RwLock, read", alone_shared::<RwLock>),
    ("RecursiveMutex", alone_shared::<RecursiveMutex>),
    ("Token", alone_token),
];

const CONTENDED: [(&str, Run); 3] =
    [("Mutex", contended::<Mutex>), ("AdaptiveMutex", contended::<AdaptiveMutex>), ("RwLock", contended::<RwLock>)];

fn print(title: &str, candidates: &[(&str, Run)], turns: usize, times: u32) {
    let mut figures = vec![Vec::new(); candidates.len()];
    for _ in 0..turns {
        for ((_, run), figures) in candidates.iter().zip(&mut figures) {
            let start = Instant::now();
            run(times);
            figures.push(start.elapsed().as_nanos() as f64 / f64::from(times));
        }
    }
    println!("{title}");
    for ((name, _), figures) in candidates.iter().zip(figures) {
        println!("  {name:<16}{:>9.1}", Summary::from_values(figures).expect("there is a turn").median);
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    for (word, candidates) in [("alone", &ALONE[..]), ("two", &CONTENDED[..])] {
        if let Some(at) = arguments.iter().position(|argument| argument == word) {
            let scenario = arguments.get(at + 1).map_or("", String::as_str);
            let (_, run) = candidates.iter().find(|(name, _)| *name == scenario).expect("the name of a strategy");
            return run(1_000_000);
        }
    }
    // `cargo test --benches` runs this too, as a smoke test.
    let (turns, times) = if arguments.iter().any(|argument| argument == "--bench") { (21, 200_000) } else { (1, 10) };
    print("alone: nanoseconds to lock, change a number and unlock", &ALONE, turns, times);
    print("two threads: nanoseconds for each to lock, change a cache line and unlock", &CONTENDED, turns, times);
}
