//! Models of buffered one-ways, on a connection that is also used by other calls.

use spandrel_sync::Arc;

use super::{Stage, verify};
use crate::{
    client::{Buffering, MaintenanceThread},
    models::{
        check,
        fake_transport::{FakeBehaviour, Record},
        messages::{self, FakeRequest},
        one_in,
    },
};

impl Stage {
    /// Sends a one-way, which is buffered until there are three or another message is written.
    fn buffered(&self, maintenance_thread: &Arc<MaintenanceThread>, token: u32) -> bool {
        let id = self.connection.request_id();
        let question = FakeRequest { id, token, is_two_way: false, is_limited: false };
        let request = messages::request(question, self.octets);
        let buffering = Buffering { messages: 3, is_prompt: one_in(2), ..Buffering::default() };
        let outcome = self.connection.buffer_one_way(&request, &buffering, 256, maintenance_thread, None);
        self.note(question, outcome)
    }
}

/// Checks that the requests of each caller were read in its order. The tokens of caller n begin at 10 n.
fn assert_in_order(record: &Record, callers: u32) {
    for caller in 0..callers {
        let own: Vec<_> = record.read.iter().filter(|token| **token / 10 == caller).collect();
        assert!(own.is_sorted(), "{:?}", record.read);
    }
}

#[test]
fn buffered_messages_are_written_once_in_order_and_first() {
    check(4000, || {
        let capacity = if one_in(2) { 4096 } else { 96 };
        let (stage, server) = Stage::new(capacity, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        let maintenance_thread = Arc::<MaintenanceThread>::default();
        let callers = (0..2u32).map(|caller| {
            let (stage, maintenance_thread) = (Arc::clone(&stage), Arc::clone(&maintenance_thread));
            spandrel_sync::thread::spawn(move || {
                assert!(stage.buffered(&maintenance_thread, caller * 10));
                assert!(stage.buffered(&maintenance_thread, caller * 10 + 1));
                let last = caller * 10 + 2;
                let sent =
                    if one_in(2) { stage.two_way(last, None) } else { stage.buffered(&maintenance_thread, last) };
                assert!(sent);
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
        stage.connection.flush(None).unwrap_or_else(|failure| panic!("{}", failure.exception));
        maintenance_thread.close();
        let (outcomes, record) = stage.close(server);
        verify(&outcomes, &record);
        assert_in_order(&record, 2);
        assert_eq!(record.read.len(), 6, "each is read exactly once");
    });
}

#[test]
fn the_end_of_the_connection_ends_waits_for_a_flush() {
    check(3000, || {
        let (stage, server) = Stage::new(96, 4, FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() });
        let maintenance_thread = Arc::<MaintenanceThread>::default();
        let callers = (0..2u32).map(|caller| {
            let (stage, maintenance_thread) = (Arc::clone(&stage), Arc::clone(&maintenance_thread));
            spandrel_sync::thread::spawn(move || {
                let _ = stage.buffered(&maintenance_thread, caller * 10)
                    && stage.two_way(caller * 10 + 1, None)
                    && stage.buffered(&maintenance_thread, caller * 10 + 2)
                    && stage.connection.flush(None).is_ok();
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
        maintenance_thread.close();
        let (outcomes, record) = stage.close(server);
        verify(&outcomes, &record);
        assert_in_order(&record, 2);
    });
}
