//! The cost of a `put` through synchronous modules, and of queues between two threads, beside a plain queue.
//!
//! `cargo bench -p spandrel-stream`: medians of interleaved rounds, with the fastest and the slowest.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use spandrel_message::MessageBlock;
use spandrel_stream::{
    Context, Message, MessageQueue, Module, Position, PutError, Queued, Service, Side, Stream, Synchronous, Wait,
    WaterMarks,
};
use spandrel_sync::{AdaptiveMutex, Monitor};

const ROUNDS: usize = 15;
const CALLS: usize = 200_000;
const ITEMS: usize = 200_000;

/// Passes messages on.
struct Passing;

impl Service for Passing {
    fn process(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
        context.put_next(message)
    }
}

/// Gives the message back to the caller, by its error.
struct Refusing;

impl Service for Refusing {
    fn process(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
        assert_eq!(context.side(), Side::Writer);
        Err(PutError::refused(message))
    }
}

/// Nanoseconds of a `put` through so many modules.
fn put_through(modules: usize) -> f64 {
    let stream = Stream::new("bench");
    stream.push(Module::writer("end", Synchronous(Refusing))).unwrap();
    for number in 1..modules {
        stream.push(Module::writer(number.to_string(), Synchronous(Passing))).unwrap();
    }
    let mut message = Message::data(MessageBlock::from(b"octets"));
    let begin = Instant::now();
    for _ in 0..CALLS {
        message = stream.put(message, Wait::Never).unwrap_err().message;
    }
    black_box(message);
    begin.elapsed().as_nanos() as f64 / CALLS as f64
}

/// An item of 100 octets.
struct Item(u64);

impl Queued for Item {
    fn octets(&self) -> usize {
        100
    }
}

/// Nanoseconds of an item from one thread to another.
fn transfer(put: impl Fn(Item) + Sync, take: impl Fn() -> Item + Sync) -> f64 {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..ITEMS as u64).for_each(|number| put(Item(number))));
        for number in 0..ITEMS as u64 {
            assert_eq!(take().0, number);
        }
    });
    begin.elapsed().as_nanos() as f64 / ITEMS as f64
}

fn message_queue<L: Monitor>() -> f64
where
    MessageQueue<Item, L>: Sync,
{
    let queue = MessageQueue::<Item, L>::new(WaterMarks::new(64 << 10, 32 << 10));
    transfer(
        |item| queue.enqueue(item, Position::Tail, Wait::Forever).ok().unwrap(),
        || queue.dequeue(Wait::Forever).unwrap(),
    )
}

/// A plain queue of as many items with a mutex and two conditions.
fn plain() -> f64 {
    let (items, not_empty, not_full) = (Mutex::new(VecDeque::new()), Condvar::new(), Condvar::new());
    transfer(
        |item| {
            let mut items = not_full.wait_while(items.lock().unwrap(), |items| items.len() >= 656).unwrap();
            items.push_back(item);
            drop(items);
            not_empty.notify_one();
        },
        || {
            let mut items = not_empty.wait_while(items.lock().unwrap(), |items| items.is_empty()).unwrap();
            let item = items.pop_front().unwrap();
            drop(items);
            not_full.notify_one();
            item
        },
    )
}

/// A name, and a function that returns nanoseconds.
type Contender = (&'static str, fn() -> f64);

fn main() {
    let contenders: [Contender; 6] = [
        ("put through 1 module", || put_through(1)),
        ("put through 5 modules", || put_through(5)),
        ("put through 20 modules", || put_through(20)),
        ("plain queue, 1 -> 1", plain),
        ("MessageQueue, Mutex", message_queue::<spandrel_sync::Mutex>),
        ("MessageQueue, AdaptiveMutex", message_queue::<AdaptiveMutex>),
    ];
    let mut times = contenders.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, run), times) in contenders.iter().zip(&mut times) {
            times.push(run());
        }
    }
    for ((name, _), times) in contenders.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{name:30} {:8.1} ns ({:.1} to {:.1})", times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
    }
}
