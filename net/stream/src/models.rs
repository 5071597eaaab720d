//! Models of threads that share queues, and of those that wait for each other.
//!
//! A lost wake-up leaves a thread waiting, which the checker reports.

use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::models::{below, check, one_in};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, thread};

use crate::excess::Excess;
use crate::flow::TaskThreads;
use crate::wait::WaitEnd;
use crate::{
    DequeueError, EnqueueError, EnqueueFailure, LockFreeQueue, MessageQueue, Position, Queued, Wait, WaterMarks,
};

/// An item of a certain size.
#[derive(Debug, PartialEq)]
struct Item(usize);

impl Queued for Item {
    fn octets(&self) -> usize {
        self.0
    }
}

/// A queue of either kind.
trait AnyQueue: Send + Sync + Sized + 'static {
    fn with(marks: WaterMarks, excess: Option<&Arc<Excess>>) -> Arc<Self>;
    fn put(&self, item: Item, wait: Wait) -> Result<(), EnqueueError<Item>>;
    fn put_beyond(&self, item: Item);
    fn take(&self, wait: Wait) -> Result<Item, DequeueError>;
    fn pulse(&self);
    fn pause(&self, is_paused: bool);
    fn set_water_marks(&self, marks: WaterMarks);
    fn flush(&self) -> usize;
    fn close(&self);
    /// Octets, items, and waiting threads.
    fn counts(&self) -> (usize, usize, usize);
}

macro_rules! any_queue {
    ($queue:ty $(, $position:expr)?) => {
        impl AnyQueue for $queue {
            fn with(marks: WaterMarks, excess: Option<&Arc<Excess>>) -> Arc<Self> {
                let queue = Self::new(marks);
                excess.inspect(|excess| queue.set_excess(Arc::clone(excess)));
                Arc::new(queue)
            }
            fn put(&self, item: Item, wait: Wait) -> Result<(), EnqueueError<Item>> {
                self.enqueue(item, $($position,)? wait)
            }
            fn put_beyond(&self, item: Item) {
                self.enqueue_beyond(item $(, $position)?).unwrap();
            }
            fn take(&self, wait: Wait) -> Result<Item, DequeueError> {
                self.dequeue(wait)
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
            fn flush(&self) -> usize {
                self.flush()
            }
            fn close(&self) {
                self.close();
            }
            fn counts(&self) -> (usize, usize, usize) {
                (self.octets(), self.len(), self.waiting())
            }
        }
    };
}

any_queue!(MessageQueue<Item>, [Position::Tail, Position::Head][below(2)]);
any_queue!(LockFreeQueue<Item>);

/// A model for each kind of queue.
macro_rules! for_both_queues {
    ($($name:ident, $lock_free:ident: $model:ident;)+) => {
        $(#[test]
        fn $name() {
            check(2000, $model::<MessageQueue<Item>>);
        }

        #[test]
        fn $lock_free() {
            check(2000, $model::<LockFreeQueue<Item>>);
        })+
    };
}

for_both_queues! {
    each_item_is_taken_once_and_everybody_ends, without_locks_each_item_is_taken_once: taking_once;
    flush_and_close_end_the_waits_of_producers, without_locks_flush_and_close_end_waits: flushing;
    a_circle_of_tasks_goes_on, without_locks_a_circle_of_tasks_goes_on: circle;
    messages_from_outside_wait_for_the_end_of_an_excess, without_locks_messages_from_outside_wait: excess;
    the_limits_hold, without_locks_the_limits_hold: limits;
}

/// For items beyond the limits, too, which have no room in the ring.
#[test]
fn without_locks_each_producer_has_its_order() {
    check(4000, || {
        let queue = LockFreeQueue::<Item>::with(WaterMarks::new(1, 0).messages(1), None);
        let producers: Vec<_> = [10, 20]
            .map(|first| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || (first..first + 4).for_each(|number| queue.put_beyond(Item(number))))
            })
            .into();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let mut items: Vec<usize> = Vec::new();
                    while let Ok(Item(number)) = queue.take(Wait::Forever) {
                        let last = items.iter().rfind(|other| **other / 10 == number / 10);
                        assert!(last.is_none_or(|last| *last < number), "{number} after {items:?}");
                        items.push(number);
                    }
                    items.len()
                })
            })
            .collect();
        producers.into_iter().for_each(|thread| thread.join().unwrap());
        queue.close();
        let item_count: usize = consumers.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!((item_count, queue.counts()), (8, (0, 0, 0)));
    });
}

fn taking_once<Q: AnyQueue>() {
    let queue = Q::with(WaterMarks::new(3, 1).messages(2), None);
    let item_count = Arc::new(AtomicUsize::new(0));
    let producers: Vec<_> = (0..2)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                for _ in 0..3 {
                    queue.put(Item(below(4)), Wait::Forever).unwrap();
                }
            })
        })
        .collect();
    let consumers: Vec<_> = (0..2)
        .map(|_| {
            let (queue, item_count) = (Arc::clone(&queue), Arc::clone(&item_count));
            thread::spawn(move || {
                loop {
                    match queue.take(Wait::Forever) {
                        Ok(_) => _ = item_count.fetch_add(1, Ordering::SeqCst),
                        Err(DequeueError::Closed) => return,
                        Err(error) => assert_eq!(error, DequeueError::Pulsed),
                    }
                }
            })
        })
        .collect();
    if one_in(2) {
        queue.pulse();
    }
    if one_in(2) {
        queue.pause(true);
        queue.set_water_marks(WaterMarks::new(2, 1).messages(1));
        queue.pause(false);
    }
    producers.into_iter().for_each(|thread| thread.join().unwrap());
    queue.close();
    consumers.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(item_count.load(Ordering::SeqCst), 6);
    assert_eq!(queue.counts(), (0, 0, 0));
}

fn flushing<Q: AnyQueue>() {
    let queue = Q::with(WaterMarks::new(1, 0), None);
    let producers: Vec<_> = (0..2)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || while queue.put(Item(1), Wait::Forever).is_ok() {})
        })
        .collect();
    queue.flush();
    queue.flush();
    queue.close();
    producers.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(queue.counts().1 <= 1);
}

/// Tasks pass messages in a circle through queues of one: each thread takes a message, and waits for room in the next queue
/// unless its wait would close the circle.
fn circle<Q: AnyQueue>() {
    const TASKS: usize = 3;
    const PASSES: usize = 3;
    let excess = Arc::<Excess>::default();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let queue = Q::with(WaterMarks::new(1, 0).messages(1), Some(&excess));
            queue.put(Item(1), Wait::Never).unwrap();
            let threads = Arc::<TaskThreads>::default();
            threads.started(1);
            Arc::new((queue, threads))
        })
        .collect();
    let running: Vec<_> = (0..TASKS)
        .map(|at| {
            let (own, next) = (Arc::clone(&tasks[at]), Arc::clone(&tasks[(at + 1) % TASKS]));
            thread::spawn(move || {
                for _ in 0..PASSES {
                    let mut item = own.0.take(Wait::Forever).unwrap();
                    while let Err(refused) = next.0.put(item, Wait::Never) {
                        let wait = own.1.wait_for(&next.1);
                        item = refused.item;
                        if wait.is_in_circle() {
                            next.0.put_beyond(item);
                            break;
                        }
                        // As a wait for room that has a limit.
                        thread::yield_now();
                    }
                }
                _ = own.1.ended();
            })
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().unwrap());
    let left: usize = tasks.iter().map(|task| task.0.flush()).sum();
    assert_eq!(left, TASKS);
    assert!(excess.is_none());
}

fn excess<Q: AnyQueue>() {
    let excess = Arc::<Excess>::default();
    let queue = Q::with(WaterMarks::new(1, 0), Some(&excess));
    queue.put(Item(1), Wait::Never).unwrap();
    queue.put_beyond(Item(1));
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let excess = Arc::clone(&excess);
            thread::spawn(move || assert!(excess.until_none(WaitEnd::At(Deadline::NEVER))))
        })
        .collect();
    if one_in(2) {
        _ = queue.take(Wait::Never).unwrap()
    } else {
        drop(queue)
    }
    waiting.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Producers and consumers that do not wait: at no time does the queue hold more than its limits allow.
fn limits<Q: AnyQueue>() {
    let queue = Q::with(WaterMarks::new(4, 2).messages(3), None);
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                for _ in 0..3 {
                    if number < 2 {
                        let refused = queue.put(Item(below(4)), Wait::Never).err().map(|error| error.reason);
                        assert_ne!(refused, Some(EnqueueFailure::Closed));
                    } else {
                        assert_ne!(queue.take(Wait::Never).err(), Some(DequeueError::Closed));
                    }
                    let (octets, items, _) = queue.counts();
                    assert!(octets < 4 + 3 && items <= 3, "{octets} octets, {items} items");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let (octets, items, _) = queue.counts();
    let left: Vec<_> = std::iter::from_fn(|| queue.take(Wait::Never).ok()).collect();
    assert_eq!((octets, items), (left.iter().map(Queued::octets).sum(), left.len()));
}
