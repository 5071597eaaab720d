//! Models of buffered one-ways, on a connection that is also used by other calls.

use spandrel_sync::Arc;

use super::{TestBed, verify};
use crate::{
    client::{Buffering, MaintenanceThread, OneWayBuffer},
    models::{
        check,
        fake_transport::{FakeBehaviour, Record},
        messages::{self, FakeRequest},
        one_in,
    },
};

impl TestBed {
    /// Sends a one-way, which is buffered until there are three or another message is written.
    fn buffered(&self, maintenance_thread: &Arc<MaintenanceThread>, token: u32) -> bool {
        let id = self.connection.request_id();
        let fake_request = FakeRequest { id, token, is_two_way: false, is_limited: false };
        let request = messages::request(fake_request, self.octets);
        let buffering = Buffering { messages: 3, is_prompt: one_in(2), ..Buffering::default() };
        let outcome = OneWayBuffer::send(&self.connection, &request, &buffering, 256, maintenance_thread, None);
        self.record_outcome(fake_request, outcome)
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
        let (test_bed, server) = TestBed::new(capacity, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        let maintenance_thread = Arc::<MaintenanceThread>::default();
        let callers = (0..2u32).map(|caller| {
            let (test_bed, maintenance_thread) = (Arc::clone(&test_bed), Arc::clone(&maintenance_thread));
            spandrel_sync::thread::spawn(move || {
                assert!(test_bed.buffered(&maintenance_thread, caller * 10));
                assert!(test_bed.buffered(&maintenance_thread, caller * 10 + 1));
                let last = caller * 10 + 2;
                let sent =
                    if one_in(2) { test_bed.two_way(last, None) } else { test_bed.buffered(&maintenance_thread, last) };
                assert!(sent);
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
        OneWayBuffer::of(&test_bed.connection).flush(None).unwrap_or_else(|failure| panic!("{}", failure.exception));
        maintenance_thread.close();
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
        assert_in_order(&record, 2);
        assert_eq!(record.read.len(), 6, "each is read exactly once");
    });
}

#[test]
fn the_end_of_the_connection_ends_waits_for_a_flush() {
    check(3000, || {
        let (test_bed, server) =
            TestBed::new(96, 4, FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() });
        let maintenance_thread = Arc::<MaintenanceThread>::default();
        let callers = (0..2u32).map(|caller| {
            let (test_bed, maintenance_thread) = (Arc::clone(&test_bed), Arc::clone(&maintenance_thread));
            spandrel_sync::thread::spawn(move || {
                let _ = test_bed.buffered(&maintenance_thread, caller * 10)
                    && test_bed.two_way(caller * 10 + 1, None)
                    && test_bed.buffered(&maintenance_thread, caller * 10 + 2)
                    && OneWayBuffer::of(&test_bed.connection).flush(None).is_ok();
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
        maintenance_thread.close();
        let (outcomes, record) = test_bed.close(server);
        verify(&outcomes, &record);
        assert_in_order(&record, 2);
    });
}
