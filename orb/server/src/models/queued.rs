//! Models of a connection whose requests one thread reads and others run, and of the queue between them.

use spandrel_orb::internal::nesting::NestedWork;
use spandrel_sync::{
    Condition,
    atomic::{AtomicBool, Ordering},
};

use super::{reactor::Reactor, *};
use crate::{
    connection::dispatch_queue::AcceptedQueue,
    queue::{Request, RequestQueue, WorkerQueue},
};

/// A connection with a queue, the thread that reads, and the workers.
struct Queued {
    stage: Stage,
    queue: Arc<AcceptedQueue>,
    reactor: Arc<Reactor>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Queued {
    fn start(capacity: usize, workers: usize) -> Self {
        let queue = Arc::new(AcceptedQueue::new(capacity, workers, Arc::new(ServerThreads::new(1024)), Arc::default()));
        let stage =
            Stage::served(&Orb::builder().build().unwrap(), MAX_IN_FLIGHT, ServiceStrategy::Queue(Arc::clone(&queue)));
        Arc::clone(&queue).ensure_workers().expect("threads can be started");
        let (reactor, threads) = Reactor::start_with(&stage, 1);
        Self { stage, queue, reactor, threads }
    }

    fn end(self, others: impl IntoIterator<Item = thread::JoinHandle<()>>) {
        self.stage.end(&self.reactor, self.threads.into_iter().chain(others));
        self.queue.close();
    }
}

/// Checks that no request has begun before a one-way that was sent before it.
fn check_order(stage: &Stage, requests: &[FakeRequest]) {
    let begun = stage.diary.entries.lock().begun.clone();
    let position_of = |token: u32| begun.iter().position(|begun| *begun == token);
    for (at, request) in requests.iter().enumerate().filter(|(_, request)| !request.is_two_way) {
        for later in &requests[at + 1..] {
            if let Some(later) = position_of(later.token) {
                assert!(position_of(request.token).is_some_and(|position| position < later), "overtaken in {begun:?}");
            }
        }
    }
}

fn random_requests() -> Vec<FakeRequest> {
    (10..14).map(|token| if one_in(3) { one_way(token) } else { two_way(token) }).collect()
}

#[test]
fn every_queued_request_is_answered_once_in_order_before_close_connection() {
    check(4000, || {
        let queued = Queued::start(if one_in(2) { 1 } else { 3 }, 2);
        let stage = &queued.stage;
        let requests = random_requests();
        let mut messages = encoded(&requests);
        messages.insert(1, messages::locate(99));
        let others = [stage.shut_down(), stage.ask(messages)];
        let received = stage.receive(usize::MAX);
        stage.client.close();
        assert_eq!(received.closes, 1);
        assert_eq!(received.replies, stage.answers(&requests), "of {:?}", stage.begun());
        check_order(stage, &requests);
        queued.end(others);
    });
}

#[test]
fn no_request_is_lost_in_a_small_queue_with_overtaken_one_ways() {
    check(4000, || {
        let queued = Queued::start(1, 2);
        let stage = &queued.stage;
        let requests = random_requests();
        let replies = requests.iter().filter(|request| request.is_two_way).count();
        let others = [stage.hand_over_reading(6), stage.ask(encoded(&requests))];
        let received = stage.receive(replies);
        assert_eq!(received.replies.len(), replies);
        stage.client.close_writer();
        queued.end(others);
    });
}

#[test]
fn a_long_one_way_does_not_block_later_requests_for_ever() {
    check(2000, || {
        let queued = Queued::start(3, 2);
        let stage = &queued.stage;
        let asking = stage.ask(encoded(&[one_way(HOLD), two_way(RELEASE)]));
        let mut entries = stage.diary.entries.lock();
        stage.diary.changed.wait_while(&mut entries, |entries| entries.running == 0);
        drop(entries);
        stage.connection.overdue(&lasting(stage.connection.reader_word(), false));
        assert_eq!(stage.receive(1).replies, [RELEASE]);
        stage.client.close_writer();
        queued.end([asking]);
    });
}

/// A request of the queue alone.
#[derive(Debug)]
enum QueuedRequest {
    /// Takes further requests until it is released.
    Nests(Arc<RequestQueue<Self>>, Arc<Progress>),
    /// Waits for the end of that one.
    AwaitsOther(Arc<Progress>),
}

#[derive(Debug, Default)]
struct Progress {
    has_begun: AtomicBool,
    is_released: AtomicBool,
    has_returned: Mutex<bool>,
    changed: Condition,
}

impl Request for QueuedRequest {
    fn run(self) {
        match self {
            Self::Nests(queue, progress) => {
                progress.has_begun.store(true, Ordering::SeqCst);
                queue.serve_until(None, &mut || progress.is_released.load(Ordering::SeqCst));
                *progress.has_returned.lock() = true;
                progress.changed.notify_all();
            }
            Self::AwaitsOther(progress) => {
                progress.is_released.store(true, Ordering::SeqCst);
                let mut has_returned = progress.has_returned.lock();
                progress.changed.wait_while(&mut has_returned, |has_returned| !*has_returned);
            }
        }
    }
}

#[test]
fn a_waiting_worker_leaves_requests_to_an_idle_one() {
    check(4000, || {
        let queue = Arc::new(RequestQueue::new(4, 2, Arc::new(ServerThreads::new(1024)), Arc::default()));
        Arc::clone(&queue).ensure_workers().expect("threads can be started");
        let progress: Arc<Progress> = Arc::default();
        queue.push(QueuedRequest::Nests(Arc::clone(&queue), Arc::clone(&progress)));
        while !progress.has_begun.load(Ordering::SeqCst) || queue.idle() == 0 {
            thread::yield_now();
        }
        queue.push(QueuedRequest::AwaitsOther(Arc::clone(&progress)));
        while !progress.is_released.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        queue.wake();
        let mut has_returned = progress.has_returned.lock();
        progress.changed.wait_while(&mut has_returned, |has_returned| !*has_returned);
        drop(has_returned);
        queue.close();
    });
}
