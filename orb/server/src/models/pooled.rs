//! Models of a connection that a reactor's threads serve, and of the threads that take over from them.

use spandrel_orb::{Concurrency, models::below};

use super::{reactor::Reactor, *};

impl Stage {
    pub(super) fn pooled() -> Self {
        Self::with(&Orb::builder().build().unwrap(), MAX_IN_FLIGHT, true)
    }

    /// A connection of a pool in which new threads read on during long upcalls, or else of one with a fixed number of
    /// threads.
    pub(super) fn pooled_or_fixed() -> Self {
        if one_in(2) {
            return Self::pooled();
        }
        let concurrency = Concurrency::LeaderFollowers { threads: Some(2) };
        let orb = Orb::builder().build().unwrap();
        Self::served_with(concurrency, &orb, MAX_IN_FLIGHT, ServiceStrategy::Reactor)
    }

    /// Waits for the end of the connection, and checks that nothing is left of it.
    pub(super) fn end(&self, reactor: &Reactor, threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
        join(threads);
        self.connection.await_close_phase(ClosePhase::Ended, Deadline::NEVER);
        assert_eq!(reactor.place.lock().closes, 1);
        self.check_in_flight();
        // No upcall runs any more.
        let entries = self.diary.entries.lock();
        assert_eq!(entries.running, 0);
        drop(entries);
        // The monitor may be about to find that the upcall which it counted has ended. If it counted that
        // upcall for ever, this loop would exceed the steps of an execution.
        while self.resources.pool.blocked() != 0 {
            thread::yield_now();
        }
    }

    /// The tokens of the two-ways among these requests that were run.
    pub(super) fn answers(&self, requests: &[FakeRequest]) -> Vec<u32> {
        let is_answered = |token: &u32| requests.iter().any(|request| request.token == *token && request.is_two_way);
        self.begun().into_iter().filter(is_answered).collect()
    }
}

fn random_requests() -> Vec<FakeRequest> {
    (10..14).map(|token| if one_in(4) { one_way(token) } else { two_way(token) }).collect()
}

#[test]
fn every_accepted_request_is_answered_once_before_close_connection() {
    check(6000, || {
        let stage = Stage::pooled_or_fixed();
        let requests = random_requests();
        let mut messages = encoded(&requests);
        messages.insert(1, messages::locate(99));
        let (reactor, threads) = Reactor::start(&stage);
        let others = [stage.hand_over_reading(6), stage.hand_over_reading(6), stage.shut_down(), stage.ask(messages)];
        let received = stage.receive(usize::MAX);
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain(others));
        assert_eq!(received.closes, 1);
        assert_eq!(received.replies, stage.answers(&requests), "of {:?}", stage.begun());
    });
}

#[test]
fn no_request_is_lost_or_run_twice() {
    check(6000, || {
        let stage = Stage::pooled_or_fixed();
        let requests = random_requests();
        let (reactor, threads) = Reactor::start(&stage);
        let others = [stage.hand_over_reading(8), stage.hand_over_reading(8)];
        let asking = stage.ask(encoded(&requests));
        let expected: Vec<u32> =
            requests.iter().filter(|request| request.is_two_way).map(|request| request.token).collect();
        assert_eq!(stage.receive(expected.len()).replies, expected);
        join([asking]);
        if one_in(2) {
            stage.client.close_writer();
        } else {
            stage.client.close();
        }
        stage.end(&reactor, threads.into_iter().chain(others));
        assert_eq!(stage.begun(), requests.iter().map(|request| request.token).collect::<Vec<_>>());
    });
}

#[test]
fn the_reactor_serves_again_after_a_long_upcall() {
    check(3000, || {
        let stage = Stage::pooled();
        stage.resources.upcall_monitor.add(&stage.connection);
        let (reactor, threads) = Reactor::start(&stage);
        let its_threads: Vec<_> = threads.iter().map(|handle| handle.thread().id()).collect();
        for round in 0..2 {
            stage.diary.entries.lock().released = 0;
            let asking = stage.ask(encoded(&[two_way(HOLD), two_way(RELEASE)]));
            assert_eq!(stage.receive(2).replies, [HOLD, RELEASE]);
            join([asking]);
            reactor.await_seated();
            join([stage.ask(encoded(&[two_way(10)]))]);
            assert_eq!(stage.receive(1).replies, [10]);
            let last = *stage.diary.entries.lock().threads.last().expect("it was run");
            assert!(its_threads.contains(&last), "round {round} left a thread with the connection");
        }
        stage.client.close();
        stage.end(&reactor, threads);
        stage.resources.upcall_monitor.stop();
    });
}

#[test]
fn a_client_that_leaves_at_any_time_leaves_no_thread_and_no_registration() {
    check(6000, || {
        let stage = Stage::pooled_or_fixed();
        let (reactor, threads) = Reactor::start(&stage);
        let asking = stage.ask(encoded(&[two_way(10), one_way(11), two_way(12)]));
        let mut others = vec![stage.hand_over_reading(6), stage.hand_over_reading(6), asking];
        if one_in(2) {
            others.push(stage.shut_down());
        }
        if one_in(2) {
            // Octets that are not GIOP end the connection, too.
            let _ = send_octets(&stage.client, b"garbage, not GIOP");
        }
        if one_in(2) {
            stage.client.close_writer();
        } else {
            stage.client.close();
        }
        stage.end(&reactor, threads.into_iter().chain(others));
    });
}

#[test]
fn a_client_that_stays_after_a_protocol_error_is_not_waited_for() {
    check(3000, || {
        let stage = Stage::pooled_or_fixed();
        let (reactor, threads) = Reactor::start(&stage);
        let watching = stage.hand_over_reading(6);
        let requests = [two_way(10), two_way(11)];
        let mut messages = encoded(&requests);
        messages.extend([b"garbage, not GIOP".to_vec(), b"and more of it".to_vec()]);
        let asking = stage.ask(messages);
        let received = stage.receive(usize::MAX);
        stage.end(&reactor, threads.into_iter().chain([watching, asking]));
        assert_eq!(received.replies, [10, 11]);
        // MessageError may be left out if a reply is just being written.
        assert!(received.complaints <= 1, "it was told {} times", received.complaints);
        assert_eq!(stage.begun(), [10, 11]);
    });
}

#[test]
fn a_panic_in_the_reactor_ends_the_connection_and_nothing_else() {
    check(6000, || {
        let stage = Stage::pooled_or_fixed();
        let (reactor, threads) = Reactor::start(&stage);
        let its_threads = threads.iter().map(|handle| handle.thread().id());
        stage.diary.entries.lock().nervous.extend(its_threads);
        let requests = [two_way(10), one_way(11)];
        let mut messages = encoded(&requests);
        messages.insert(below(3), messages::locate(99));
        let others = [stage.hand_over_reading(8), stage.hand_over_reading(8)];
        join([stage.ask(messages)]);
        stage.client.close_writer();
        let received = stage.receive(usize::MAX);
        stage.end(&reactor, threads.into_iter().chain(others));
        assert_eq!(received.replies, stage.answers(&requests));
    });
}

#[test]
fn a_reactor_that_stops_at_any_time_releases_the_connection() {
    check(4000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start(&stage);
        let is_taken_over = one_in(2);
        let asking = stage.ask(encoded(&[two_way(if is_taken_over { HOLD } else { 10 }), two_way(11)]));
        if is_taken_over {
            stage.hand_over_and_release();
        }
        let others = [stage.hand_over_reading(6), reactor.stop(), asking];
        // A thread that has taken over reads to the end.
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain(others));
    });
}

#[test]
fn a_late_registration_is_ended() {
    check(2000, || {
        let stage = Stage::pooled();
        let connection = Arc::clone(&stage.connection);
        let ending = thread::spawn(move || connection.registration_closed());
        let (reactor, threads) = Reactor::start(&stage);
        stage.end(&reactor, threads.into_iter().chain([ending]));
    });
}

#[test]
fn a_long_upcall_gets_a_replacement_thread_and_reader() {
    check(2000, || {
        let stage = Stage::with(&Orb::builder().build().unwrap(), 1, true);
        let (reactor, threads) = Reactor::start(&stage);
        let asking = stage.ask(encoded(&[two_way(HOLD), two_way(10)]));
        let mut entries = stage.diary.entries.lock();
        stage.diary.changed.wait_while(&mut entries, |entries| entries.running == 0);
        drop(entries);
        join([stage.hand_over_reading(1), stage.hand_over_reading(1)]);
        assert_eq!(stage.resources.pool.blocked(), 1);
        let watching = stage.hand_over_reading(4);
        stage.diary.release();
        assert_eq!(stage.receive(2).replies, [HOLD, 10]);
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain([asking, watching]));
        assert_eq!(stage.diary.entries.lock().most_running, 1);
    });
}
