//! Models of threads that share a connection.

mod async_calls;
mod batches;
mod bidirectional;

use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemExceptionKind};
use spandrel_sync::{Arc, Mutex, thread};
use spandrel_transport::{Address, Deadline};

use super::{CallFailure, ClientConnection};
use crate::{
    diagnostics::statistics::Statistics,
    models::{
        check,
        fake_transport::{FakeBehaviour, FakePeer, FakeTransport, Record},
        messages::{self, FakeRequest},
        one_in, pipe,
    },
};

type Outcome = (FakeRequest, Result<(), CallFailure>);

/// A connection to a fake server, and the outcomes of the calls over it.
struct TestBed {
    connection: Arc<ClientConnection>,
    /// The length of the requests' bodies.
    octets: usize,
    outcomes: Mutex<Vec<Outcome>>,
}

impl TestBed {
    /// Makes pipes of this capacity, for requests of this length.
    fn new(capacity: usize, octets: usize, behaviour: FakeBehaviour) -> (Arc<Self>, FakePeer) {
        let (test_bed, server, _) = Self::with_end(capacity, octets, behaviour);
        (test_bed, server)
    }

    /// Also returns the connection's end of the pipe.
    fn with_end(capacity: usize, octets: usize, behaviour: FakeBehaviour) -> (Arc<Self>, FakePeer, pipe::PipeEnd) {
        let (near, far) = pipe::pair(capacity);
        let transport = Arc::new(near.clone());
        let connection = Arc::new(ClientConnection::new(
            Arc::new(Address::new("pretend", "")),
            transport,
            messages::reader(),
            Statistics::default(),
        ));
        let test_bed = Arc::new(Self { connection, octets, outcomes: Mutex::default() });
        (test_bed, FakeTransport::start(far, behaviour), near)
    }

    /// Runs the calls in so many threads and waits for them.
    fn callers(self: &Arc<Self>, callers: u32, call: fn(&Self, u32)) {
        let start = |caller| {
            let test_bed = Arc::clone(self);
            thread::spawn(move || call(&test_bed, caller))
        };
        let threads: Vec<_> = (0..callers).map(start).collect();
        threads.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
    }

    fn two_way(&self, token: u32, deadline: Option<Deadline>) -> bool {
        let id = self.connection.request_id();
        let fake_request = FakeRequest { id, token, is_two_way: true, is_limited: deadline.is_some() };
        let outcome = self.connection.two_way(id, &messages::request(fake_request, self.octets), deadline.as_ref());
        self.record_outcome(
            fake_request,
            outcome.map(|reply| assert_eq!(messages::token_in(&reply.message, reply.body), token)),
        )
    }

    fn one_way(&self, token: u32, deadline: Option<Deadline>) -> bool {
        let id = self.connection.request_id();
        let fake_request = FakeRequest { id, token, is_two_way: false, is_limited: deadline.is_some() };
        let outcome = self.connection.one_way(&messages::request(fake_request, self.octets), deadline.as_ref());
        self.record_outcome(fake_request, outcome)
    }

    /// Records the outcome; returns true if the call succeeded.
    fn record_outcome(&self, fake_request: FakeRequest, outcome: Result<(), CallFailure>) -> bool {
        let succeeded = outcome.is_ok();
        self.outcomes.lock().push((fake_request, outcome));
        succeeded
    }

    /// Closes the connection; returns the outcomes and the server's record.
    fn close(self: Arc<Self>, server: FakePeer) -> (Vec<Outcome>, Record) {
        let test_bed = Arc::into_inner(self).expect("the callers are gone");
        drop(test_bed.connection);
        (test_bed.outcomes.into_inner(), server.record())
    }
}

/// Checks that each outcome agrees with the server's record.
fn verify(outcomes: &[Outcome], record: &Record) {
    for (fake_request, outcome) in outcomes {
        let was_read = record.read.contains(&fake_request.token);
        let was_answered = record.answered.contains(&fake_request.token);
        match outcome {
            Ok(()) if fake_request.is_two_way => {
                assert!(was_answered, "{fake_request:?} has a reply that the server did not write")
            }
            // The transport took it: a one-way has no other guarantee.
            Ok(()) => {}
            Err(failure) if failure.exception.completed() == CompletionStatus::No => {
                let may_be_sent_again = !was_read || record.sent_close && !was_answered;
                assert!(may_be_sent_again, "{fake_request:?} was acted on and failed with {}", failure.exception);
            }
            Err(failure) => assert!(!failure.may_repeat(), "{fake_request:?} may have been acted on"),
        }
    }
}

/// A deadline that may expire at any moment.
fn expiring_deadline() -> Option<Deadline> {
    Some(Deadline::after(Duration::from_secs(3600)))
}

#[test]
fn each_call_gets_its_own_reply_in_any_order() {
    check(6000, || {
        let (test_bed, server) = TestBed::new(4096, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            for turn in 0..2 {
                let token = caller * 10 + turn;
                let succeeded = if one_in(4) { test_bed.one_way(token, None) } else { test_bed.two_way(token, None) };
                assert!(succeeded, "nothing ended the connection");
            }
        });
        assert!(test_bed.two_way(99, None), "no call has left a reply unread");
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
        assert_eq!(record.read.len(), 7);
    });
}

#[test]
fn the_end_of_the_connection_ends_every_call() {
    check(6000, || {
        let (test_bed, server) =
            TestBed::new(4096, 4, FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            let _ = test_bed.two_way(caller * 10, None)
                && test_bed.one_way(caller * 10 + 1, None)
                && test_bed.two_way(caller * 10 + 2, None);
        });
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
    });
}

#[test]
fn a_timeout_of_one_call_leaves_the_others_alone() {
    check(6000, || {
        let (test_bed, server) =
            TestBed::new(4096, 4, FakeBehaviour { octets: 4, forgets: true, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            if caller == 0 {
                test_bed.two_way(0, expiring_deadline());
            } else {
                let _ = test_bed.two_way(caller * 10, None) && test_bed.two_way(caller * 10 + 1, None);
            }
        });
        for (fake_request, outcome) in test_bed.outcomes.lock().iter() {
            // Later calls are to use another connection, before they have written anything.
            if let Err(failure) = outcome {
                let is_timeout = failure.exception.kind() == SystemExceptionKind::Timeout;
                assert!(
                    fake_request.is_limited && is_timeout || failure.may_repeat(),
                    "{fake_request:?}: {}",
                    failure.exception
                );
            }
        }
        let has_lost_a_reply = test_bed.outcomes.lock().iter().any(|(_, outcome)| outcome.is_err());
        assert_eq!(test_bed.connection.is_retired(), has_lost_a_reply);
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
    });
}

#[test]
fn no_message_follows_a_request_that_its_deadline_interrupted() {
    check(6000, || {
        let (test_bed, server) = TestBed::new(64, 100, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            let deadline = if caller == 0 { expiring_deadline() } else { None };
            let _ = test_bed.two_way(caller * 10, deadline) && test_bed.one_way(caller * 10 + 1, deadline);
        });
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
        for (fake_request, outcome) in &outcomes {
            if let Err(failure) = outcome {
                let is_timeout = failure.exception.kind() == SystemExceptionKind::Timeout;
                assert!(
                    fake_request.is_limited && is_timeout || failure.may_repeat(),
                    "{fake_request:?}: {}",
                    failure.exception
                );
            }
        }
    });
}

#[test]
fn messages_larger_than_the_connection_pass_in_both_directions() {
    check(4000, || {
        let (test_bed, server) =
            TestBed::new(48, 100, FakeBehaviour { octets: 100, is_serial: true, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            for turn in 0..2 {
                let token = caller * 10 + turn;
                let succeeded = if one_in(4) { test_bed.one_way(token, None) } else { test_bed.two_way(token, None) };
                assert!(succeeded, "nothing ended the connection");
            }
        });
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
    });
}

#[test]
fn an_unread_late_reply_blocks_no_writer() {
    check(6000, || {
        let behaviour = FakeBehaviour { octets: 100, is_serial: true, ..FakeBehaviour::default() };
        let (test_bed, server) = TestBed::new(48, 100, behaviour);
        test_bed.callers(3, |test_bed, caller| {
            let deadline = if caller == 0 { expiring_deadline() } else { None };
            let _ = test_bed.two_way(caller * 10, deadline) && test_bed.two_way(caller * 10 + 1, deadline);
        });
        for (fake_request, outcome) in test_bed.outcomes.lock().iter() {
            if let Err(failure) = outcome {
                let is_timeout = failure.exception.kind() == SystemExceptionKind::Timeout;
                assert!(
                    fake_request.is_limited && is_timeout || failure.may_repeat(),
                    "{fake_request:?}: {}",
                    failure.exception
                );
            }
        }
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
    });
}
