//! Flow control from module to module.

use std::time::{Duration, Instant};

use spandrel_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use spandrel_sync::{Arc, Mutex, thread};

use super::{AnyStrategy, LONG, Tracing, for_all_strategies, get, number_of, numbered};
use crate::{
    Asynchronous, Context, LockFree, Message, Module, PutError, PutFailure, Query, Service, Side, Stream, Synchronous,
    Wait, WaterMarks,
};

/// Queues of one message.
const ONE: WaterMarks = WaterMarks::new(1, 0).messages(1);

for_all_strategies! {
    a_module_that_stands_still_stops_those_before_it: standing_still;
    an_application_that_takes_nothing_stops_its_stream: taking_nothing;
    modules_that_wait_for_each_other_go_on: bouncing;
}

fn standing_still<L: AnyStrategy>() {
    let stream = Stream::<L>::new("backlog");
    stream.push(Module::writer("echo", Synchronous(super::Echoing))).unwrap();
    for name in ["slow", "b", "a"] {
        stream.push(Module::writer(name, Asynchronous::new(Tracing)).water_marks(ONE)).unwrap();
    }
    stream.control(Some("slow"), Query::Stop, None, LONG).unwrap();
    let mut taken = 0;
    while stream.put(numbered(taken), Wait::For(Duration::from_millis(200))).is_ok() {
        taken += 1;
    }
    // One in each queue, and one in each thread that waits.
    assert_eq!(taken, 5);
    assert_eq!(stream.put(numbered(99), Wait::Never).unwrap_err().reason, PutFailure::Full);
    stream.control(Some("slow"), Query::Start, None, LONG).unwrap();
    for number in 0..taken {
        assert_eq!(number_of(&get(&stream)), number);
    }
}

fn taking_nothing<L: AnyStrategy>() {
    let stream = Stream::<L>::new("unread");
    stream.push(Module::writer("echo", Synchronous(super::Echoing))).unwrap();
    let mut taken = 0;
    while stream.put(Message::data([0; 1 << 10].as_slice().into()), Wait::Never).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, WaterMarks::DEFAULT.high >> 10);
    assert_eq!(stream.get(Wait::Never).unwrap().octets(), 1 << 10);
}

/// Sends each message back to where it came from, as often as it says: its number counts down.
struct Bouncing {
    bounces: Arc<AtomicU32>,
}

impl<L: AnyStrategy> Service<L> for Bouncing {
    fn process(&self, context: &Context<'_, L>, mut message: Message) -> Result<(), PutError> {
        let left = number_of(&message);
        if left == 0 {
            // It leaves the stream at the top.
            return match context.side() {
                Side::Reader => context.put_next(message),
                Side::Writer => context.reply(message),
            };
        }
        self.bounces.fetch_add(1, Ordering::SeqCst);
        message.set_block((&(left - 1).to_be_bytes()).into());
        // Nothing leaves the stream; between its ends, two of three turn round.
        let turns_round = match (context.module_name(), context.side()) {
            ("highest", side) => side == Side::Reader,
            ("lowest", side) => side == Side::Writer,
            _ => !left.is_multiple_of(3),
        };
        if turns_round { context.reply(message) } else { context.put_next(message) }
    }
}

/// Three modules that send messages to each other both ways, through queues of one message, while they are taken out and
/// replaced.
fn bouncing<L: AnyStrategy>() {
    const MESSAGES: u32 = 300;
    let bounces = Arc::new(AtomicU32::new(0));
    let module = |name: &str| -> Module<L> {
        let task = || Asynchronous::new(Bouncing { bounces: Arc::clone(&bounces) });
        Module::new(name, task(), task()).water_marks(ONE)
    };
    let stream = Arc::new(Stream::<L>::new("bouncing"));
    for name in ["lowest", "middle", "highest"] {
        stream.push(module(name)).unwrap();
    }
    /// Also after a panic.
    struct Done<'d>(&'d AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let done = Done(&is_done);
        let changing = scope.spawn(|| {
            let mut changes = 0;
            while !is_done.load(Ordering::SeqCst) {
                for name in ["lowest", "middle", "highest"] {
                    _ = stream.replace(name, module(name)).unwrap();
                    thread::yield_now();
                }
                _ = stream.remove("middle").unwrap();
                stream.insert("highest", module("middle")).unwrap();
                changes += 5;
            }
            changes
        });
        let sending = scope.spawn(|| {
            for number in 0..MESSAGES {
                let begin = Instant::now();
                while stream.put(numbered(number % 40), Wait::For(Duration::from_millis(100))).is_err() {
                    assert!(begin.elapsed() < LONG && !is_done.load(Ordering::SeqCst), "the stream stands still");
                }
            }
        });
        for _ in 0..MESSAGES {
            assert_eq!(number_of(&get(&stream)), 0);
        }
        sending.join().unwrap();
        drop(done);
        assert!(changing.join().unwrap() > 0);
    });
    assert!(bounces.load(Ordering::SeqCst) > MESSAGES * 10);
    stream.close(LONG).unwrap();
}
