//! Message queues of both kinds, against a model.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::{AdaptiveMutex, Arc, Mutex, NullMutex, thread};
use spandrel_test_support::wait_until;

use super::LONG;
use crate::{
    DequeueError, EnqueueError, EnqueueFailure, LockFreeQueue, MessageQueue, Position, Queued, Wait, WaterMarks,
};

/// An item of a certain size.
#[derive(Clone, Debug, Default, PartialEq)]
struct Item {
    octets: usize,
    priority: u32,
    deadline: Option<Instant>,
    producer: usize,
    number: usize,
}

impl Item {
    fn with_octets(octets: usize) -> Self {
        Self { octets, ..Self::default() }
    }
}

impl Queued for Item {
    fn octets(&self) -> usize {
        self.octets
    }

    fn priority(&self) -> u32 {
        self.priority
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// The operations that all queues have.
trait AnyQueue: fmt::Debug + Send + Sync + 'static {
    /// Whether it has no locks.
    const IS_LOCK_FREE: bool = false;
    fn with(marks: WaterMarks) -> Self;
    /// Queues an item behind all others.
    fn put(&self, item: Item, wait: Wait) -> Result<(), EnqueueError<Item>>;
    fn dequeue(&self, wait: Wait) -> Result<Item, DequeueError>;
    fn flush(&self) -> usize;
    fn close(&self);
    fn pulse(&self);
    fn pause(&self, is_paused: bool);
    fn set_water_marks(&self, marks: WaterMarks);
    fn water_marks(&self) -> WaterMarks;
    fn len(&self) -> usize;
    fn octets(&self) -> usize;
    fn is_full(&self) -> bool;
    fn waiting(&self) -> usize;
}

macro_rules! any_queue {
    ($queue:ident<Item $(, $lock:ident)?>, $is_lock_free:expr $(, $position:expr)?) => {
        impl AnyQueue for $queue<Item $(, $lock)?> {
            const IS_LOCK_FREE: bool = $is_lock_free;
            fn with(marks: WaterMarks) -> Self {
                Self::new(marks)
            }
            fn put(&self, item: Item, wait: Wait) -> Result<(), EnqueueError<Item>> {
                self.enqueue(item, $($position,)? wait)
            }
            fn dequeue(&self, wait: Wait) -> Result<Item, DequeueError> {
                self.dequeue(wait)
            }
            fn flush(&self) -> usize {
                self.flush()
            }
            fn close(&self) {
                self.close();
            }
            fn pulse(&self) {
                self.pulse();
            }
            fn pause(&self, is_paused: bool) {
                self.pause(is_paused);
            }
            fn set_water_marks(&self, marks: WaterMarks) {
                self.set_water_marks(marks);
            }
            fn water_marks(&self) -> WaterMarks {
                self.water_marks()
            }
            fn len(&self) -> usize {
                self.len()
            }
            fn octets(&self) -> usize {
                self.octets()
            }
            fn is_full(&self) -> bool {
                self.is_full()
            }
            fn waiting(&self) -> usize {
                self.waiting()
            }
        }
    };
}

any_queue!(MessageQueue<Item, Mutex>, false, Position::Tail);
any_queue!(MessageQueue<Item, AdaptiveMutex>, false, Position::Tail);
any_queue!(LockFreeQueue<Item>, true);

/// A test for each kind of queue, with a function that is generic over them.
macro_rules! for_all_queues {
    ($($name:ident: $test:ident;)+) => {
        $(#[test]
        fn $name() {
            $test::<MessageQueue<Item, Mutex>>();
            $test::<MessageQueue<Item, AdaptiveMutex>>();
            $test::<LockFreeQueue<Item>>();
        })+
    };
}

for_all_queues! {
    a_full_queue_takes_items_again_at_the_low_water_mark: full_until_low;
    items_without_octets_are_bounded_by_their_number: bounded_by_number;
    waits_with_a_limit_end_after_it: limited_waits;
    close_wakes_everybody: closing;
    pulse_ends_the_waits_of_consumers: pulsing;
    flush_lets_producers_go_on: flushing;
    a_paused_queue_keeps_its_items: pausing;
    a_higher_mark_lets_producers_go_on: raising_marks;
    memory_is_bounded_and_nothing_is_lost: bounded_memory;
}

fn queue_of<Q: AnyQueue>(high: usize, low: usize) -> Q {
    Q::with(WaterMarks::new(high, low))
}

fn full_until_low<Q: AnyQueue>() {
    let queue = queue_of::<Q>(10, 4);
    for octets in [4, 5] {
        queue.put(Item::with_octets(octets), Wait::Never).unwrap();
        assert!(!queue.is_full());
    }
    queue.put(Item::with_octets(3), Wait::Never).unwrap();
    assert_eq!((queue.octets(), queue.len(), queue.is_full()), (12, 3, true));
    let refused = queue.put(Item::with_octets(1), Wait::Never).unwrap_err();
    assert_eq!((refused.reason, refused.item.octets), (EnqueueFailure::Full, 1));
    assert_eq!(refused.to_string(), "the item was not queued: the queue is full");
    // Eight octets are below the high mark, and above the low one.
    assert_eq!(queue.dequeue(Wait::Never).unwrap().octets, 4);
    assert!(queue.is_full());
    assert_eq!(queue.dequeue(Wait::Never).unwrap().octets, 5);
    assert!(!queue.is_full());
    queue.put(refused.item, Wait::Never).unwrap();
}

fn bounded_by_number<Q: AnyQueue>() {
    let queue = Q::with(WaterMarks::new(10, 5).messages(3));
    for _ in 0..3 {
        queue.put(Item::with_octets(0), Wait::Never).unwrap();
    }
    assert!(queue.put(Item::with_octets(0), Wait::Never).is_err());
    queue.dequeue(Wait::Never).unwrap();
    queue.put(Item::with_octets(0), Wait::Never).unwrap();
}

fn limited_waits<Q: AnyQueue>() {
    let queue = queue_of::<Q>(1, 0);
    let time = Duration::from_millis(30);
    let begin = Instant::now();
    assert_eq!(queue.dequeue(Wait::For(time)).unwrap_err(), DequeueError::Empty);
    assert!(begin.elapsed() >= time);
    queue.put(Item::with_octets(1), Wait::Never).unwrap();
    let begin = Instant::now();
    let refused = queue.put(Item::with_octets(1), Wait::For(time)).unwrap_err();
    assert!(refused.reason == EnqueueFailure::Full && begin.elapsed() >= time);
    // A wait that ends beyond the end of time has no end.
    assert_eq!(queue.dequeue(Wait::For(Duration::MAX)).unwrap().octets, 1);
}

#[test]
fn one_thread_alone_never_waits() {
    let queue = MessageQueue::<Item, NullMutex>::new(WaterMarks::new(2, 1));
    assert_eq!(queue.dequeue(Wait::Forever).unwrap_err(), DequeueError::Empty);
    assert_eq!(queue.dequeue(Wait::For(LONG)).unwrap_err(), DequeueError::Empty);
    queue.enqueue(Item::with_octets(2), Position::Tail, Wait::Forever).unwrap();
    assert_eq!(
        queue.enqueue(Item::with_octets(2), Position::Tail, Wait::Forever).unwrap_err().reason,
        EnqueueFailure::Full
    );
    assert_eq!(queue.dequeue(Wait::Forever).unwrap().octets, 2);
}

/// Runs three threads that wait, and returns what they return once `end` was called.
fn waiting<R: Send>(queue: &impl AnyQueue, wait: impl Fn() -> R + Sync, end: impl FnOnce()) -> Vec<R> {
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    wait()
                })
            })
            .collect();
        wait_until("the threads to begin", || begun.load(Ordering::SeqCst) == 3);
        wait_until("the threads to wait", || queue.waiting() == 3);
        end();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn closing<Q: AnyQueue>() {
    let queue = queue_of::<Q>(1, 0);
    let consumers = waiting(&queue, || queue.dequeue(Wait::Forever).unwrap_err(), || queue.close());
    assert_eq!(consumers, [DequeueError::Closed; 3]);
    let queue = queue_of::<Q>(1, 0);
    queue.put(Item::with_octets(1), Wait::Never).unwrap();
    let put = || queue.put(Item::with_octets(1), Wait::Forever).unwrap_err().reason;
    assert_eq!(waiting(&queue, put, || queue.close()), [EnqueueFailure::Closed; 3]);
    // The one item can still be taken.
    assert_eq!(queue.dequeue(Wait::Forever).unwrap().octets, 1);
    assert_eq!(queue.dequeue(Wait::Forever).unwrap_err(), DequeueError::Closed);
}

fn pulsing<Q: AnyQueue>() {
    let queue = queue_of::<Q>(1, 0);
    let consumers = waiting(&queue, || queue.dequeue(Wait::Forever).unwrap_err(), || queue.pulse());
    assert_eq!(consumers, [DequeueError::Pulsed; 3]);
    assert_eq!(queue.dequeue(Wait::Never).unwrap_err(), DequeueError::Empty, "a pulse is for those that wait");
}

fn flushing<Q: AnyQueue>() {
    let queue = queue_of::<Q>(1, 0);
    queue.put(Item::with_octets(5), Wait::Never).unwrap();
    let put = || queue.put(Item::with_octets(0), Wait::For(LONG)).is_ok();
    assert_eq!(waiting(&queue, put, || assert_eq!(queue.flush(), 1)), [true; 3]);
    assert_eq!((queue.len(), queue.octets()), (3, 0));
}

fn pausing<Q: AnyQueue>() {
    let queue = queue_of::<Q>(10, 5);
    queue.pause(true);
    queue.put(Item::with_octets(1), Wait::Never).unwrap();
    assert_eq!(queue.dequeue(Wait::Never).unwrap_err(), DequeueError::Empty);
    for _ in 0..2 {
        queue.put(Item::with_octets(1), Wait::Never).unwrap();
    }
    let taken = waiting(&queue, || queue.dequeue(Wait::Forever).unwrap().octets, || queue.pause(false));
    assert_eq!(taken, [1; 3]);
    queue.put(Item::with_octets(2), Wait::Never).unwrap();
    queue.pause(true);
    queue.close();
    assert_eq!(queue.dequeue(Wait::Forever).unwrap().octets, 2, "what is left of a closed queue");
}

fn raising_marks<Q: AnyQueue>() {
    let queue = queue_of::<Q>(1, 0);
    queue.put(Item::with_octets(1), Wait::Never).unwrap();
    let put = || queue.put(Item::with_octets(1), Wait::For(LONG)).is_ok();
    assert_eq!(waiting(&queue, put, || queue.set_water_marks(WaterMarks::new(100, 50))), [true; 3]);
    queue.set_water_marks(WaterMarks::new(2, 9));
    assert_eq!(queue.water_marks(), WaterMarks::new(2, 2));
    assert!(queue.is_full());
}

#[test]
fn an_event_loop_is_notified_when_the_queue_is_no_longer_empty() {
    let queue = Arc::new(MessageQueue::<Item>::new(WaterMarks::new(100, 50)));
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let notify = {
        let (queue, lengths) = (Arc::downgrade(&queue), Arc::clone(&lengths));
        // Without a lock: the queue can be used.
        move || lengths.lock().push(queue.upgrade().unwrap().len())
    };
    queue.set_notification(Some(Arc::new(notify)));
    for _ in 0..3 {
        queue.enqueue(Item::with_octets(1), Position::Tail, Wait::Never).unwrap();
    }
    assert_eq!(*lengths.lock(), [1]);
    while queue.dequeue(Wait::Never).is_ok() {}
    queue.enqueue(Item::with_octets(1), Position::Head, Wait::Never).unwrap();
    queue.set_notification(None);
    while queue.dequeue(Wait::Never).is_ok() {}
    queue.enqueue(Item::with_octets(1), Position::Tail, Wait::Never).unwrap();
    assert_eq!(*lengths.lock(), [1, 1]);
}

fn bounded_memory<Q: AnyQueue>() {
    const PRODUCERS: usize = 4;
    const ITEMS: usize = 3000;
    const LARGEST: usize = 100;
    let queue = Arc::new(queue_of::<Q>(1000, 300));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                for number in 0..ITEMS {
                    let octets = (number * 37 + producer * 11) % (LARGEST + 1);
                    let item = Item { producer, number, ..Item::with_octets(octets) };
                    queue.put(item, Wait::Forever).unwrap();
                }
            })
        })
        .collect();
    let consumers: Vec<_> = (0..2)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let (mut last, mut count) = ([None; PRODUCERS], 0);
                while let Ok(item) = queue.dequeue(Wait::Forever) {
                    assert!(queue.octets() <= 1000 + LARGEST, "{queue:?}");
                    assert!(last[item.producer].is_none_or(|last| last < item.number), "{item:?} after {last:?}");
                    last[item.producer] = Some(item.number);
                    count += 1;
                }
                count
            })
        })
        .collect();
    producers.into_iter().for_each(|thread| thread.join().unwrap());
    queue.close();
    let taken: usize = consumers.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(taken, PRODUCERS * ITEMS);
    assert_eq!((queue.octets(), queue.len()), (0, 0));
}

#[derive(Clone, Debug)]
enum Action {
    Enqueue(Item, Position),
    Dequeue,
    Flush,
    Marks(WaterMarks),
    Close,
}

fn action() -> impl Strategy<Value = Action> {
    let start = Instant::now();
    let deadline = prop::option::of((0..9_u64).prop_map(move |seconds| start + Duration::from_secs(seconds)));
    let item = (0..9_usize, 0..4_u32, deadline).prop_map(|(octets, priority, deadline)| Item {
        octets,
        priority,
        deadline,
        ..Item::default()
    });
    let position = prop::sample::select(vec![Position::Tail, Position::Head, Position::Priority, Position::Deadline]);
    let marks =
        (0..40_usize, 0..40_usize, 1..12_usize).prop_map(|(high, low, n)| WaterMarks::new(high, low).messages(n));
    prop_oneof![
        10 => (item, position).prop_map(|(item, position)| Action::Enqueue(item, position)),
        8 => Just(Action::Dequeue),
        1 => Just(Action::Flush),
        1 => marks.prop_map(Action::Marks),
        1 => Just(Action::Close),
    ]
}

/// A queue as its documentation describes it.
struct Model {
    items: VecDeque<Item>,
    marks: WaterMarks,
    is_controlled: bool,
    is_closed: bool,
}

impl Model {
    fn octets(&self) -> usize {
        self.items.iter().map(|item| item.octets).sum()
    }

    fn is_full(&self) -> bool {
        self.is_controlled || self.items.len() >= self.marks.messages
    }

    /// Updates the flow control after items have left.
    fn has_fallen(&mut self) {
        let octets = self.octets();
        let is_low = octets <= self.marks.low && octets < self.marks.high;
        self.is_controlled &= !is_low && !self.items.is_empty();
    }

    fn enqueue(&mut self, item: &Item, position: Position) -> Result<(), EnqueueFailure> {
        if self.is_closed {
            return Err(EnqueueFailure::Closed);
        }
        if self.is_full() {
            return Err(EnqueueFailure::Full);
        }
        let later = |one: Option<Instant>, other: Option<Instant>| match (one, other) {
            (Some(one), Some(other)) => one > other,
            (None, Some(_)) => true,
            _ => false,
        };
        // Stable orders, also where the queue holds items of other positions: behind the last that comes first.
        let place = match position {
            Position::Tail => self.items.len(),
            Position::Head => 0,
            Position::Priority => {
                (0..self.items.len()).rev().find(|&at| self.items[at].priority >= item.priority).map_or(0, |at| at + 1)
            }
            Position::Deadline => (0..self.items.len())
                .rev()
                .find(|&at| !later(self.items[at].deadline, item.deadline))
                .map_or(0, |at| at + 1),
        };
        self.items.insert(place, item.clone());
        self.is_controlled |= self.octets() >= self.marks.high;
        Ok(())
    }
}

/// Compares a queue with its model; `put` enters an item.
fn compare<Q: AnyQueue>(
    marks: WaterMarks,
    actions: Vec<Action>,
    put: impl Fn(&Q, Item, Position) -> Result<(), EnqueueError<Item>>,
) -> Result<(), TestCaseError> {
    let queue = Q::with(marks);
    let mut model = Model { items: VecDeque::new(), marks, is_controlled: false, is_closed: false };
    for action in actions {
        match action {
            Action::Enqueue(item, position) => {
                let position = if Q::IS_LOCK_FREE { Position::Tail } else { position };
                let done = put(&queue, item.clone(), position).map_err(|error| error.reason);
                prop_assert_eq!(done, model.enqueue(&item, position));
            }
            Action::Dequeue => {
                let expected = model.items.pop_front();
                model.has_fallen();
                let otherwise = if model.is_closed { DequeueError::Closed } else { DequeueError::Empty };
                prop_assert_eq!(queue.dequeue(Wait::Never), expected.ok_or(otherwise));
            }
            Action::Flush => {
                prop_assert_eq!(queue.flush(), model.items.len());
                model.items.clear();
                model.has_fallen();
            }
            Action::Marks(marks) => {
                queue.set_water_marks(marks);
                model.marks = marks;
                model.is_controlled |= model.octets() >= marks.high;
                model.has_fallen();
            }
            Action::Close => {
                queue.close();
                model.is_closed = true;
            }
        }
        prop_assert_eq!(queue.octets(), model.octets());
        prop_assert_eq!((queue.len(), queue.is_full()), (model.items.len(), model.is_full()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_queue_does_what_its_model_does(
        (high, low) in (0..40_usize, 0..40_usize),
        actions in prop::collection::vec(action(), 1..80),
    ) {
        let marks = WaterMarks::new(high, low).messages(8);
        let put = |queue: &MessageQueue<_, Mutex>, item, position| queue.enqueue(item, position, Wait::Never);
        compare(marks, actions.clone(), put)?;
        compare(marks, actions, |queue: &LockFreeQueue<_>, item, _| queue.enqueue(item, Wait::Never))?;
    }
}
