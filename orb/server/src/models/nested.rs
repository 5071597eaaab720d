//! Models of servants that wait while their threads serve further requests of the same connection.

use spandrel_orb::models::below;

use super::{reactor::Reactor, *};

#[test]
fn a_pool_of_one_thread_serves_nested_requests() {
    check(6000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start_with(&stage, 1);
        // Sent at once, so that the request for which a servant waits may have been read already.
        let asking = stage.ask(vec![encoded(&[two_way(NEST), two_way(10), two_way(RELEASE), two_way(11)]).concat()]);
        assert_eq!(stage.receive(4).replies, [RELEASE, NEST, 10, 11]);
        join([asking]);
        join([stage.ask(encoded(&[two_way(12)]))]);
        assert_eq!(stage.receive(1).replies, [12]);
        stage.client.close();
        stage.end(&reactor, threads);
        assert_eq!(stage.begun(), [RELEASE, NEST, 10, 11, 12]);
    });
}

#[test]
fn nested_servants_are_all_answered() {
    check(6000, || {
        // One more than the upcalls that run at once: a thread that tries to take over reading is counted
        // first.
        let stage = Stage::with(&Orb::builder().build().unwrap(), MAX_IN_FLIGHT + 1, true);
        let (reactor, threads) = Reactor::start_with(&stage, 1 + below(2));
        let second = if one_in(2) { two_way(NEST) } else { one_way(NEST) };
        let is_monitored = one_in(2);
        if is_monitored {
            // A thread that takes over serves no other requests while it waits, and loses the reader role in
            // its turn.
            stage.resources.upcall_monitor.add(&stage.connection);
        }
        let asking = stage.ask(encoded(&[two_way(NEST), second, two_way(RELEASE)]));
        let expected = if second.is_two_way { &[RELEASE, NEST, NEST][..] } else { &[RELEASE, NEST] };
        assert_eq!(stage.receive(expected.len()).replies, expected);
        stage.client.close_writer();
        stage.end(&reactor, threads.into_iter().chain([asking]));
        stage.resources.upcall_monitor.stop();
    });
}

#[test]
fn nesting_beyond_the_limit_is_refused_and_blocks_no_thread() {
    check(4000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start_with(&stage, 1);
        let asking = stage.ask(encoded(&[two_way(NEST), two_way(NEST), two_way(NEST), two_way(RELEASE)]));
        let received = stage.receive(3);
        assert_eq!((received.replies, received.exceptions), (vec![RELEASE, NEST, NEST], 1));
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain([asking]));
    });
}

#[test]
fn close_connection_follows_the_replies_of_nested_servants() {
    check(6000, || {
        let stage = Stage::pooled_or_fixed();
        let (reactor, threads) = Reactor::start_with(&stage, 1 + below(2));
        let requests = [two_way(NEST), two_way(10), one_way(11)];
        let diary = Arc::clone(&stage.diary);
        let releasing = thread::spawn(move || diary.release());
        let others = [stage.hand_over_reading(6), stage.shut_down(), stage.ask(encoded(&requests)), releasing];
        let received = stage.receive(usize::MAX);
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain(others));
        assert_eq!(received.closes, 1);
        assert_eq!(received.replies, stage.answers(&requests), "of {:?}", stage.begun());
    });
}

#[test]
fn a_client_that_leaves_during_nested_waits_leaves_nothing() {
    check(6000, || {
        let stage = Stage::pooled_or_fixed();
        let (reactor, threads) = Reactor::start_with(&stage, 1 + below(2));
        let diary = Arc::clone(&stage.diary);
        let releasing = thread::spawn(move || diary.release());
        let asking = stage.ask(encoded(&[two_way(NEST), two_way(10), two_way(NEST)]));
        let mut others = vec![stage.hand_over_reading(6), asking, releasing];
        if one_in(2) {
            others.push(stage.shut_down());
        }
        if one_in(2) {
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
