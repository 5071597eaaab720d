//! Models of servants that wait for their cancellation: none waits for ever, whichever thread reads
//! meanwhile.

use spandrel_connection::ReaderWord;
use spandrel_orb::{
    CancelReason, Orb,
    models::{check, messages, one_in},
};
use spandrel_sync::{Arc, thread};
use spandrel_transport::Transport;

use super::{Stage, encoded, join, lasting, two_way};
use crate::monitor::MonitoredConnection;

/// The token of a request that waits until it is cancelled.
pub(super) const CANCELLABLE: u32 = 4;

impl Stage {
    /// Waits until the servant runs. Returns the reader word during its upcall.
    fn await_upcall(&self) -> ReaderWord {
        let mut entries = self.diary.entries.lock();
        self.diary.changed.wait_while(&mut entries, |entries| entries.running == 0);
        drop(entries);
        self.connection.reader_word()
    }

    /// Acts as the monitor where no thread may take over reading: listens until the servant is cancelled.
    fn listen(&self) -> thread::JoinHandle<()> {
        let (connection, diary) = (Arc::clone(&self.connection), Arc::clone(&self.diary));
        thread::spawn(move || {
            while diary.entries.lock().cancelled.is_empty() {
                let word = connection.reader_word();
                if word.is_in_upcall() {
                    connection.listen(word);
                }
                thread::yield_now();
            }
        })
    }

    fn reasons(&self) -> Vec<CancelReason> {
        self.diary.entries.lock().cancelled.clone()
    }
}

#[test]
fn the_thread_that_takes_over_reading_handles_cancel_request() {
    check(6000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let is_lost = one_in(3);
        let mut messages = encoded(&[two_way(CANCELLABLE)]);
        if !is_lost {
            messages.push(messages::cancel(CANCELLABLE));
        }
        let threads = [stage.serve(), stage.ask(messages)];
        let word = stage.await_upcall();
        if is_lost {
            stage.client.close();
        }
        // A cancelled request is answered nevertheless, if the connection is open.
        stage.connection.overdue(&lasting(word, false));
        if !is_lost {
            assert_eq!(stage.receive(1).replies, [CANCELLABLE]);
            stage.client.close();
        }
        join(threads);
        let expected = if is_lost { CancelReason::ConnectionLost } else { CancelReason::ClientCancelled };
        assert_eq!(stage.reasons(), [expected]);
    });
}

#[test]
fn a_thread_that_only_watches_for_cancellation_leaves_requests_to_the_next_reader() {
    check(4000, || {
        let stage = Stage::new(&Orb::builder().build().unwrap());
        let mut messages = encoded(&[two_way(CANCELLABLE)]);
        messages.push(messages::cancel(CANCELLABLE));
        messages.extend(encoded(&[two_way(20), two_way(21)]));
        let threads = [stage.serve(), stage.listen(), stage.ask(messages)];
        assert_eq!(stage.receive(3).replies, [CANCELLABLE, 20, 21], "in their order");
        stage.client.close();
        join(threads);
        assert_eq!(stage.reasons(), [CancelReason::ClientCancelled]);
    });
}
