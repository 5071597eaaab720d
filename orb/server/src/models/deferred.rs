//! Models of deferred requests, which another thread answers after their upcalls.

use spandrel_orb::{
    Orb,
    internal::PollScope,
    models::{check, messages, one_in},
};
use spandrel_sync::{Arc, thread, time::Deadline};
use spandrel_transport::{Transport, send_octets};

use super::{Stage, encoded, join, one_way, two_way};
use crate::{DeferredCall, connection::ClosePhase};

/// Requests from this token on are deferred.
pub(super) const DEFERRED: u32 = 50;

impl Stage {
    /// Answers deferred requests, in any order, until [`stop_answering`](Self::stop_answering) is called.
    fn answer_deferred(&self) -> thread::JoinHandle<()> {
        let diary = Arc::clone(&self.diary);
        let orb = self.connection.orb().instance();
        thread::spawn(move || {
            // As in a thread of an executor, whose replies are held for the others.
            let _scope = PollScope::enter(orb, None);
            loop {
                let mut entries = diary.entries.lock();
                diary.changed.wait_while(&mut entries, |entries| entries.deferred.is_empty() && !entries.is_enough);
                let Some((token, call)) = entries.deferred.pop() else { return };
                drop(entries);
                answer(token, call);
            }
        })
    }

    fn stop_answering(&self) {
        self.diary.entries.lock().is_enough = true;
        self.diary.changed.notify_all();
    }
}

fn answer(token: u32, call: DeferredCall) {
    if one_in(4) {
        // A dropped call is answered with an exception.
        return;
    }
    let answered = call.answer(|call| {
        if !call.is_response_expected() {
            return Ok(call.finish_oneway());
        }
        call.reply(|out| {
            out.u32(token);
            out.octet_sequence(&[])
        })
    });
    call.end(answered);
}

#[test]
fn close_connection_follows_the_last_deferred_reply() {
    check(6000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let requests = [two_way(10), two_way(DEFERRED), one_way(DEFERRED + 1), two_way(DEFERRED + 2), two_way(11)];
        let answering = stage.answer_deferred();
        let threads = [stage.serve(), stage.hand_over_reading(6), stage.shut_down(), stage.ask(encoded(&requests))];
        let received = stage.receive(usize::MAX);
        stage.client.close();
        join(threads);
        stage.stop_answering();
        join([answering]);
        assert_eq!(received.closes, 1);
        let one_way = DEFERRED + 1;
        let begun = stage.begun().into_iter().filter(|token| *token != one_way).count();
        assert_eq!(received.replies.len() + received.exceptions, begun, "each is answered once");
    });
}

#[test]
fn a_cancelled_deferred_call_is_not_answered_and_not_waited_for() {
    check(6000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let answering = stage.answer_deferred();
        let requests = [two_way(DEFERRED), two_way(DEFERRED + 1)];
        let mut messages = encoded(&requests);
        messages.push(messages::cancel(DEFERRED));
        let threads = [stage.serve(), stage.hand_over_reading(3), stage.ask(messages)];
        if one_in(3) {
            let _ = send_octets(&stage.client, b"garbage, not GIOP");
        }
        stage.client.close();
        join(threads);
        stage.connection.await_close_phase(ClosePhase::Ended, Deadline::NEVER);
        stage.stop_answering();
        join([answering]);
    });
}
