//! Message queues.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::{AdaptiveMutex, Arc, Monitor, Mutex, NullMutex, thread};
use spandrel_test_support::wait_until;

use super::LONG;
use crate::{DequeueError, EnqueueFailure, MessageQueue, Position, Queued, Wait, WaterMarks};

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
    fn of(octets: usize) -> Self {
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

fn queue_of<L: Monitor>(high: usize, low: usize) -> MessageQueue<Item, L> {
    MessageQueue::new(WaterMarks::new(high, low))
}

#[test]
fn a_full_queue_takes_items_again_at_the_low_water_mark() {
    let queue = queue_of::<Mutex>(10, 4);
    for octets in [4, 5] {
        queue.enqueue(Item::of(octets), Position::Tail, Wait::Never).unwrap();
        assert!(!queue.is_full());
    }
    queue.enqueue(Item::of(3), Position::Tail, Wait::Never).unwrap();
    assert_eq!((queue.octets(), queue.len(), queue.is_full()), (12, 3, true));
    let refused = queue.enqueue(Item::of(1), Position::Head, Wait::Never).unwrap_err();
    assert_eq!((refused.reason, refused.item.octets), (EnqueueFailure::Full, 1));
    assert_eq!(refused.to_string(), "the item was not queued: the queue is full");
    // Eight octets are below the high mark, and above the low one.
    assert_eq!(queue.dequeue(Wait::Never).unwrap().octets, 4);
    assert!(queue.is_full());
    assert_eq!(queue.dequeue(Wait::Never).unwrap().octets, 5);
    assert!(!queue.is_full());
    queue.enqueue(refused.item, Position::Tail, Wait::Never).unwrap();
}

#[test]
fn items_without_octets_are_bounded_by_their_number() {
    let queue = MessageQueue::<Item>::new(WaterMarks::new(10, 5).messages(3));
    for _ in 0..3 {
        queue.enqueue(Item::of(0), Position::Tail, Wait::Never).unwrap();
    }
    assert!(queue.enqueue(Item::of(0), Position::Tail, Wait::Never).is_err());
    queue.dequeue(Wait::Never).unwrap();
    queue.enqueue(Item::of(0), Position::Tail, Wait::Never).unwrap();
}

#[test]
fn waits_with_a_limit_end_after_it() {
    let queue = queue_of::<Mutex>(1, 0);
    let time = Duration::from_millis(30);
    let begin = Instant::now();
    assert_eq!(queue.dequeue(Wait::For(time)).unwrap_err(), DequeueError::Empty);
    assert!(begin.elapsed() >= time);
    queue.enqueue(Item::of(1), Position::Tail, Wait::Never).unwrap();
    let begin = Instant::now();
    let refused = queue.enqueue(Item::of(1), Position::Tail, Wait::For(time)).unwrap_err();
    assert!(refused.reason == EnqueueFailure::Full && begin.elapsed() >= time);
    // A wait that ends beyond the end of time has no end.
    assert_eq!(queue.dequeue(Wait::For(Duration::MAX)).unwrap().octets, 1);
}

#[test]
fn one_thread_alone_never_waits() {
    let queue = queue_of::<NullMutex>(2, 1);
    assert_eq!(queue.dequeue(Wait::Forever).unwrap_err(), DequeueError::Empty);
    assert_eq!(queue.dequeue(Wait::For(LONG)).unwrap_err(), DequeueError::Empty);
    queue.enqueue(Item::of(2), Position::Tail, Wait::Forever).unwrap();
    assert_eq!(queue.enqueue(Item::of(2), Position::Tail, Wait::Forever).unwrap_err().reason, EnqueueFailure::Full);
    assert_eq!(queue.dequeue(Wait::Forever).unwrap().octets, 2);
}

/// Runs three threads that wait, and returns what they return once `end` was called.
fn waiting<L: Monitor, R: Send>(
    queue: &MessageQueue<Item, L>,
    wait: impl Fn() -> R + Sync,
    end: impl FnOnce(),
) -> Vec<R>
where
    MessageQueue<Item, L>: Sync,
{
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

fn close_wakes_everybody_with<L: Monitor>()
where
    MessageQueue<Item, L>: Sync,
{
    let queue = queue_of::<L>(1, 0);
    let consumers = waiting(&queue, || queue.dequeue(Wait::Forever).unwrap_err(), || queue.close());
    assert_eq!(consumers, [DequeueError::Closed; 3]);
    let queue = queue_of::<L>(1, 0);
    queue.enqueue(Item::of(1), Position::Tail, Wait::Never).unwrap();
    let put = || queue.enqueue(Item::of(1), Position::Tail, Wait::Forever).unwrap_err().reason;
    assert_eq!(waiting(&queue, put, || queue.close()), [EnqueueFailure::Closed; 3]);
    // The one item can still be taken.
    assert_eq!(queue.dequeue(Wait::Forever).unwrap().octets, 1);
    assert_eq!(queue.dequeue(Wait::Forever).unwrap_err(), DequeueError::Closed);
}

#[test]
fn close_wakes_everybody() {
    close_wakes_everybody_with::<Mutex>();
    close_wakes_everybody_with::<AdaptiveMutex>();
}

#[test]
fn pulse_ends_the_waits_of_consumers() {
    let queue = queue_of::<Mutex>(1, 0);
    let consumers = waiting(&queue, || queue.dequeue(Wait::Forever).unwrap_err(), || queue.pulse());
    assert_eq!(consumers, [DequeueError::Pulsed; 3]);
    assert_eq!(queue.dequeue(Wait::Never).unwrap_err(), DequeueError::Empty, "a pulse is for those that wait");
}

#[test]
fn flush_lets_producers_go_on() {
    let queue = queue_of::<Mutex>(1, 0);
    queue.enqueue(Item::of(5), Position::Tail, Wait::Never).unwrap();
    let put = || queue.enqueue(Item::of(0), Position::Tail, Wait::For(LONG)).is_ok();
    assert_eq!(waiting(&queue, put, || assert_eq!(queue.flush(), 1)), [true; 3]);
    assert_eq!((queue.len(), queue.octets()), (3, 0));
}

#[test]
fn a_paused_queue_keeps_its_items() {
    let queue = queue_of::<Mutex>(10, 5);
    queue.pause(true);
    queue.enqueue(Item::of(1), Position::Tail, Wait::Never).unwrap();
    assert_eq!(queue.dequeue(Wait::Never).unwrap_err(), DequeueError::Empty);
    for _ in 0..2 {
        queue.enqueue(Item::of(1), Position::Tail, Wait::Never).unwrap();
    }
    let taken = waiting(&queue, || queue.dequeue(Wait::Forever).unwrap().octets, || queue.pause(false));
    assert_eq!(taken, [1; 3]);
    queue.enqueue(Item::of(2), Position::Tail, Wait::Never).unwrap();
    queue.pause(true);
    queue.close();
    assert_eq!(queue.dequeue(Wait::Forever).unwrap().octets, 2, "what is left of a closed queue");
}

#[test]
fn a_higher_mark_lets_producers_go_on() {
    let queue = queue_of::<Mutex>(1, 0);
    queue.enqueue(Item::of(1), Position::Tail, Wait::Never).unwrap();
    let put = || queue.enqueue(Item::of(1), Position::Tail, Wait::For(LONG)).is_ok();
    assert_eq!(waiting(&queue, put, || queue.set_water_marks(WaterMarks::new(100, 50))), [true; 3]);
    queue.set_water_marks(WaterMarks::new(2, 9));
    assert_eq!(queue.water_marks(), WaterMarks::new(2, 2));
    assert!(queue.is_full());
}

#[test]
fn an_event_loop_is_notified_when_the_queue_is_no_longer_empty() {
    let queue = Arc::new(queue_of::<Mutex>(100, 50));
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let notify = {
        let (queue, lengths) = (Arc::downgrade(&queue), Arc::clone(&lengths));
        // Without a lock: the queue can be used.
        move || lengths.lock().push(queue.upgrade().unwrap().len())
    };
    queue.set_notification(Some(Arc::new(notify)));
    for _ in 0..3 {
        queue.enqueue(Item::of(1), Position::Tail, Wait::Never).unwrap();
    }
    assert_eq!(*lengths.lock(), [1]);
    while queue.dequeue(Wait::Never).is_ok() {}
    queue.enqueue(Item::of(1), Position::Head, Wait::Never).unwrap();
    queue.set_notification(None);
    while queue.dequeue(Wait::Never).is_ok() {}
    queue.enqueue(Item::of(1), Position::Tail, Wait::Never).unwrap();
    assert_eq!(*lengths.lock(), [1, 1]);
}

fn memory_is_bounded_with<L: Monitor>()
where
    MessageQueue<Item, L>: Send + Sync + 'static,
{
    const PRODUCERS: usize = 4;
    const ITEMS: usize = 3000;
    const LARGEST: usize = 100;
    let queue = Arc::new(queue_of::<L>(1000, 300));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                for number in 0..ITEMS {
                    let octets = (number * 37 + producer * 11) % (LARGEST + 1);
                    let item = Item { producer, number, ..Item::of(octets) };
                    queue.enqueue(item, Position::Tail, Wait::Forever).unwrap();
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

#[test]
fn memory_is_bounded_and_nothing_is_lost() {
    memory_is_bounded_with::<Mutex>();
    memory_is_bounded_with::<AdaptiveMutex>();
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

    /// Items have left.
    fn has_fallen(&mut self) {
        self.is_controlled &= self.octets() > self.marks.low;
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

proptest! {
    #[test]
    fn a_queue_does_what_its_model_does(
        (high, low) in (0..40_usize, 0..40_usize),
        actions in prop::collection::vec(action(), 1..80),
    ) {
        let marks = WaterMarks::new(high, low).messages(8);
        let queue = MessageQueue::<Item>::new(marks);
        let mut model = Model { items: VecDeque::new(), marks, is_controlled: false, is_closed: false };
        for action in actions {
            match action {
                Action::Enqueue(item, position) => {
                    let done = queue.enqueue(item.clone(), position, Wait::Never).map_err(|error| error.reason);
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
    }
}
