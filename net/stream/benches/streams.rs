//! The cost of a `put` through synchronous modules, and of queues between threads, beside a plain queue and
//! the bounded channel of `crossbeam-channel`.
//!
//! `cargo bench -p spandrel-stream` prints medians of interleaved rounds with the fastest and the slowest,
//! and for queues the 99th percentile of blocks of 1,000 messages.
//!
//! With the argument `serve` it runs one round of a queue for each line of its input (`NAME PRODUCERS`), and
//! answers with the nanoseconds a message of each block: so `cargo xtask queues` interleaves it with a
//! program over ACE.

use std::collections::VecDeque;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::Instant;

use spandrel_measure::stats::{Moments, Summary, percentile};
use spandrel_message::MessageBlock;
use spandrel_stream::{
    Context, LockFreeQueue, Message, MessageQueue, Module, Position, PutError, Queued, Service, Side, Stream,
    Synchronous, Wait, WaterMarks,
};
use spandrel_sync::{AdaptiveMutex, Monitor};

const ROUNDS: usize = 15;
const CALLS: usize = 200_000;
/// The messages of a round, and of a block.
const MESSAGES: usize = 200_000;
const BLOCK: usize = 1000;
/// The octets of a message, and the limits of all queues: as many octets, or as many messages.
const OCTETS: usize = 100;
const HIGH: usize = 64 << 10;
const LOW: usize = 32 << 10;
const CAPACITY: usize = HIGH.div_ceil(OCTETS);
/// The numbers of producers; one thread consumes.
const PRODUCERS: [usize; 2] = [1, 4];

/// A task that passes messages on.
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

/// A message, which is passed by pointer.
struct Item {
    number: usize,
    octets: usize,
}

impl Queued for &'static Item {
    fn octets(&self) -> usize {
        self.octets
    }
}

/// The messages, which are made before the clock runs.
static ITEMS: LazyLock<Vec<Item>> =
    LazyLock::new(|| (0..MESSAGES).map(|number| Item { number, octets: OCTETS }).collect());

/// Passes all messages from so many threads to this one; returns the nanoseconds a message of each block.
fn transfer(producers: usize, put: impl Fn(&'static Item) + Sync, take: impl Fn() -> &'static Item) -> Vec<f64> {
    let items = &**LazyLock::force(&ITEMS);
    std::thread::scope(|scope| {
        for part in items.chunks(MESSAGES.div_ceil(producers)) {
            scope.spawn(|| part.iter().for_each(&put));
        }
        let (mut sum, mut begin) = (0, Instant::now());
        let blocks = (0..MESSAGES / BLOCK).map(|_| {
            (0..BLOCK).for_each(|_| sum += take().number);
            let end = Instant::now();
            let time = end - std::mem::replace(&mut begin, end);
            time.as_nanos() as f64 / BLOCK as f64
        });
        let blocks = blocks.collect();
        assert_eq!(sum, MESSAGES * (MESSAGES - 1) / 2);
        blocks
    })
}

fn message_queue<L: Monitor>(producers: usize) -> Vec<f64>
where
    MessageQueue<&'static Item, L>: Sync,
{
    let queue = MessageQueue::<&'static Item, L>::new(WaterMarks::new(HIGH, LOW));
    let put = |item| queue.enqueue(item, Position::Tail, Wait::Forever).unwrap();
    transfer(producers, put, || queue.dequeue(Wait::Forever).unwrap())
}

fn lock_free(producers: usize) -> Vec<f64> {
    let queue = LockFreeQueue::<&'static Item>::new(WaterMarks::new(HIGH, LOW));
    let put = |item| queue.enqueue(item, Wait::Forever).unwrap();
    transfer(producers, put, || queue.dequeue(Wait::Forever).unwrap())
}

fn channel(producers: usize) -> Vec<f64> {
    let (sender, receiver) = crossbeam_channel::bounded(CAPACITY);
    transfer(producers, |item| sender.send(item).unwrap(), || receiver.recv().unwrap())
}

/// A plain queue with a mutex and two conditions.
fn plain(producers: usize) -> Vec<f64> {
    let (items, not_empty, not_full) = (Mutex::new(VecDeque::new()), Condvar::new(), Condvar::new());
    transfer(
        producers,
        |item| {
            let mut items = not_full.wait_while(items.lock().unwrap(), |items| items.len() >= CAPACITY).unwrap();
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

/// A name, and a function of the number of producers.
type Queue = (&'static str, fn(usize) -> Vec<f64>);

const QUEUES: [Queue; 5] = [
    ("plain", plain),
    ("mutex", message_queue::<spandrel_sync::Mutex>),
    ("adaptive", message_queue::<AdaptiveMutex>),
    ("channel", channel),
    ("lock-free", lock_free),
];

/// Runs the rounds that the input asks for.
fn serve() {
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (name, producers) = line.split_once(' ').expect("a name and a number");
        let (_, run) = QUEUES.iter().find(|(known, _)| *known == name).expect("a known name");
        let blocks: Vec<_> = run(producers.parse().unwrap()).iter().map(|time| format!("{time:.2}")).collect();
        println!("{}", blocks.join(" "));
        std::io::stdout().flush().unwrap();
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "serve") {
        return serve();
    }
    for modules in [1, 5, 20] {
        let summary = Summary::from_values((0..ROUNDS).map(|_| put_through(modules)));
        let Summary { median, low, high, .. } = summary.expect("there is a round");
        println!("put through {modules:2} modules   {median:8.1} ns ({low:.1} to {high:.1})");
    }
    for producers in PRODUCERS {
        let mut times = QUEUES.map(|_| (Vec::new(), Vec::new()));
        for _ in 0..ROUNDS {
            for ((_, run), (means, blocks)) in QUEUES.iter().zip(&mut times) {
                let round = run(producers);
                means.extend(Moments::from_values(round.iter().copied()).map(|moments| moments.mean));
                blocks.extend(round);
            }
        }
        for ((name, _), (means, mut blocks)) in QUEUES.iter().zip(times) {
            let Summary { median, low, high, .. } = Summary::from_values(means).expect("there is a round");
            blocks.sort_by(f64::total_cmp);
            let p99 = percentile(&blocks, 99).expect("there is a block");
            println!("{producers} -> 1, {name:12} {median:8.1} ns ({low:.1} to {high:.1}), p99 {p99:8.1} ns");
        }
    }
}
