//! Models of threads that share queues, and of those that wait for each other.
//!
//! A lost wake-up leaves a thread waiting, which the checker reports.

use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::models::{below, check, one_in};
use spandrel_sync::{Arc, thread};

use crate::excess::Excess;
use crate::flow::TaskThreads;
use crate::wait::WaitEnd;
use crate::{DequeueError, MessageQueue, Position, Queued, Wait, WaterMarks};

/// An item of a certain size.
struct Item(usize);

impl Queued for Item {
    fn octets(&self) -> usize {
        self.0
    }
}

fn position() -> Position {
    [Position::Tail, Position::Head][below(2)]
}

#[test]
fn each_item_is_taken_once_and_everybody_ends() {
    check(2000, || {
        let queue = Arc::new(MessageQueue::<Item>::new(WaterMarks::new(3, 1).messages(2)));
        let taken = Arc::new(AtomicUsize::new(0));
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    for _ in 0..3 {
                        queue.enqueue(Item(below(4)), position(), Wait::Forever).unwrap();
                    }
                })
            })
            .collect();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, taken) = (Arc::clone(&queue), Arc::clone(&taken));
                thread::spawn(move || {
                    loop {
                        match queue.dequeue(Wait::Forever) {
                            Ok(_) => _ = taken.fetch_add(1, Ordering::SeqCst),
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
        assert_eq!(taken.load(Ordering::SeqCst), 6);
        assert_eq!((queue.octets(), queue.waiting()), (0, 0));
    });
}

#[test]
fn flush_and_close_end_the_waits_of_producers() {
    check(2000, || {
        let queue = Arc::new(MessageQueue::<Item>::new(WaterMarks::new(1, 0)));
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || while queue.enqueue(Item(1), Position::Tail, Wait::Forever).is_ok() {})
            })
            .collect();
        queue.flush();
        queue.flush();
        queue.close();
        producers.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(queue.len() <= 1);
    });
}

/// Tasks pass messages in a circle through queues of one: each thread takes a message, and waits for room in the next queue
/// unless its wait would close the circle.
#[test]
fn a_circle_of_tasks_goes_on() {
    const TASKS: usize = 3;
    const PASSES: usize = 3;
    check(2000, || {
        let excess = Arc::<Excess>::default();
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let queue = MessageQueue::<Item>::new(WaterMarks::new(1, 0));
                queue.set_excess(Arc::clone(&excess));
                queue.enqueue(Item(1), Position::Tail, Wait::Never).unwrap();
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
                        let mut item = own.0.dequeue(Wait::Forever).unwrap();
                        while let Err(refused) = next.0.enqueue(item, Position::Tail, Wait::Never) {
                            let wait = own.1.wait_for(&next.1);
                            item = refused.item;
                            if wait.is_in_circle() {
                                next.0.enqueue_beyond(item, Position::Tail).unwrap();
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
    });
}

#[test]
fn messages_from_outside_wait_for_the_end_of_an_excess() {
    check(2000, || {
        let excess = Arc::<Excess>::default();
        let queue = MessageQueue::<Item>::new(WaterMarks::new(1, 0));
        queue.set_excess(Arc::clone(&excess));
        queue.enqueue(Item(1), Position::Tail, Wait::Never).unwrap();
        queue.enqueue_beyond(Item(1), Position::Tail).unwrap();
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let excess = Arc::clone(&excess);
                thread::spawn(move || assert!(excess.until_none(WaitEnd::Open)))
            })
            .collect();
        if one_in(2) {
            _ = queue.dequeue(Wait::Never).unwrap()
        } else {
            drop(queue)
        }
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
