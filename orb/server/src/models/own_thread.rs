//! Models of a connection with a thread of its own.

use super::*;

#[test]
fn every_accepted_request_is_answered_once_before_close_connection() {
    check(6000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let requests: Vec<FakeRequest> =
            (10..14).map(|token| if one_in(4) { one_way(token) } else { two_way(token) }).collect();
        let mut messages = encoded(&requests);
        messages.insert(1, messages::locate(99));
        let threads = [stage.serve(), stage.hand_over_reading(6), stage.shut_down(), stage.ask(messages)];
        let received = stage.receive(usize::MAX);
        stage.client.close();
        join(threads);
        stage.check_in_flight();
        assert_eq!(received.closes, 1);
        let begun = stage.begun();
        let is_answered = |token: &&u32| requests.iter().any(|request| request.token == **token && request.is_two_way);
        let expected: Vec<u32> = begun.iter().filter(is_answered).copied().collect();
        assert_eq!(received.replies, expected, "of {begun:?}");
    });
}

#[test]
fn a_thread_that_handed_reading_over_still_sends_close_connection() {
    check(4000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let threads = [stage.serve(), stage.ask(encoded(&[two_way(HOLD)]))];
        stage.hand_over_and_release();
        let closing = stage.shut_down();
        let received = stage.receive(usize::MAX);
        stage.client.close();
        join(threads.into_iter().chain([closing]));
        assert_eq!((received.replies, received.closes), (vec![HOLD], 1));
    });
}

#[test]
fn a_client_that_shut_its_sending_side_gets_its_replies() {
    check(4000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let asking = stage.ask(encoded(&[two_way(HOLD), two_way(10)]));
        let serving = stage.serve();
        stage.hand_over_and_release();
        join([asking]);
        stage.client.close_writer();
        assert_eq!(stage.receive(usize::MAX).replies, [HOLD, 10]);
        join([serving]);
        stage.connection.await_close_phase(ClosePhase::Ended, Deadline::NEVER);
    });
}

#[test]
fn a_client_that_leaves_at_any_time_leaves_no_thread_waiting() {
    check(4000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let threads = [
            stage.serve(),
            stage.hand_over_reading(6),
            stage.shut_down(),
            stage.ask(encoded(&[two_way(10), one_way(11), two_way(12)])),
        ];
        if one_in(2) {
            // Octets that are not GIOP end the connection, too.
            let _ = send_octets(&stage.client, b"garbage, not GIOP");
        }
        stage.client.close();
        join(threads);
    });
}

#[test]
fn every_long_upcall_is_found() {
    check(2000, || {
        let orb = Orb::builder().build().unwrap();
        let stage = Stage::new(&orb);
        stage.resources.upcall_monitor.add(&stage.connection);
        let serving = stage.serve();
        let quick = usize::from(one_in(2));
        let mut requests = vec![two_way(10); quick];
        requests.extend([if one_in(4) { one_way(HOLD) } else { two_way(HOLD) }, two_way(RELEASE)]);
        let replies = requests.iter().filter(|request| request.is_two_way).count();
        let asking = stage.ask(encoded(&requests));
        assert_eq!(stage.receive(replies).replies.len(), replies);
        stage.client.close();
        join([serving, asking]);
        stage.resources.upcall_monitor.stop();
        stage.check_in_flight();
    });
}
