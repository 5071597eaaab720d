//! Models of an idle connection that is closed while a request may arrive.

use spandrel_orb::statistics::Event;

use super::{reactor::Reactor, *};
use crate::{connection::dispatch_queue::AcceptedQueue, queue::WorkerQueue};

impl Stage {
    /// Acts as the sweep: reads the connection's state, and closes the connection later if no request has
    /// arrived meanwhile. Returns whether it was closed.
    fn close_idle(&self) -> thread::JoinHandle<bool> {
        let connection = Arc::clone(&self.connection);
        thread::spawn(move || {
            let word = connection.reader_word();
            thread::yield_now();
            connection.close_idle(word, Event::ServerClosedIdle)
        })
    }

    /// Sends requests while the connection may be closed. Checks that all requests that ran were answered,
    /// and that CloseConnection follows if others did not run.
    fn meet_the_end(&self) -> thread::JoinHandle<()> {
        let requests: Vec<FakeRequest> = (10..13).map(two_way).collect();
        let closing = self.close_idle();
        let asking = self.ask(encoded(&requests));
        let received = self.receive(requests.len());
        let is_closed = closing.join().expect("it did not panic");
        assert_eq!(received.replies, self.answers(&requests), "of {:?}", self.begun());
        assert_eq!(received.replies.len() < requests.len(), is_closed && received.closes == 1);
        self.client.close();
        asking
    }
}

#[test]
fn a_request_during_idle_closing_is_answered_or_not_run() {
    check(4000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let serving = stage.serve();
        join([stage.meet_the_end(), serving]);
        stage.connection.await_close_phase(ClosePhase::Ended, Deadline::NEVER);
    });
}

#[test]
fn a_request_during_idle_closing_by_a_reactor_is_answered_or_not_run() {
    check(4000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start_with(&stage, 2);
        let asking = stage.meet_the_end();
        stage.end(&reactor, threads.into_iter().chain([asking]));
    });
}

#[test]
fn a_queued_request_during_idle_closing_is_answered_or_not_run() {
    check(4000, || {
        let queue = Arc::new(AcceptedQueue::new(2, 2, Arc::new(ServerThreads::new(1024)), Arc::default()));
        let stage =
            Stage::served(&Orb::builder().build().unwrap(), MAX_IN_FLIGHT, ServiceStrategy::Queue(Arc::clone(&queue)));
        Arc::clone(&queue).ensure_workers().expect("threads can be started");
        let (reactor, threads) = Reactor::start_with(&stage, 1);
        let asking = stage.meet_the_end();
        stage.end(&reactor, threads.into_iter().chain([asking]));
        queue.close();
    });
}
