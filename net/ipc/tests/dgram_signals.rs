//! Waits for datagrams continue after signals.
//!
//! Run without the test harness: a signal to the process goes to its main thread, and here that thread waits.
//! Linux itself never restarts receiving and sending with a timeout set (signal(7)), so every signal that
//! arrives during the wait is one `EINTR` that the endpoint must handle.

use std::fs;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGUSR1;
use spandrel_ipc::dgram::Batch;
use spandrel_ipc::inet::{Addr, Dgram};
use spandrel_ipc::unix;
use spandrel_test_support::{TEST_TIMEOUT, holds_within};

const SIGNALS: usize = 20;

pub(crate) fn waits_continue_after_signals() {
    let handled = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&handled)).unwrap();
    receives(&handled);
    sends(&handled);
}

/// One wait after the other, each ended by a datagram after many signals.
fn receives(handled: &Arc<AtomicBool>) {
    let (here, there) = (Dgram::open(&Addr::loopback(0)).unwrap(), Dgram::open(&Addr::loopback(0)).unwrap());
    let to = there.local_addr().unwrap();
    there.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut octets = [0; 8];
    let mut batch = Batch::new(4, 8);
    let waits: [&mut dyn FnMut(); 5] = [
        &mut || assert_eq!(there.recv_from(&mut octets).expect("it goes on").0.len(), 5),
        &mut || assert_eq!(there.recv_from_within(&mut [0; 8], TEST_TIMEOUT).expect("it goes on").0.len(), 5),
        &mut || assert_eq!(there.recv_batch(&mut batch).expect("it goes on"), 1),
        &mut || assert_eq!(there.recv_batch_within(&mut Batch::new(4, 8), TEST_TIMEOUT).expect("it goes on"), 1),
        &mut || assert_eq!(there.recv_arrival(&mut [0; 8]).expect("it goes on").received.len(), 5),
    ];
    for wait in waits {
        let handled = Arc::clone(handled);
        let sender = here.try_clone().unwrap();
        let interrupter = thread::spawn(move || {
            (0..SIGNALS).for_each(|_| interrupt(&handled));
            wait_until_main_sleeps();
            sender.send_to(b"hello", &to).unwrap();
        });
        wait();
        interrupter.join().unwrap();
    }
}

/// Sends that wait for a full queue.
fn sends(handled: &Arc<AtomicBool>) {
    for form in 0..3 {
        let (here, there) = unix::ConnectedDgram::pair().unwrap();
        here.set_send_timeout(Some(TEST_TIMEOUT)).unwrap();
        while here.try_send(b"octets").is_ok() {}
        let handled = Arc::clone(handled);
        let interrupter = thread::spawn(move || {
            (0..SIGNALS).for_each(|_| interrupt(&handled));
            wait_until_main_sleeps();
            let mut batch = Batch::new(1_024, 8);
            there.recv_batch(&mut batch).unwrap();
            there
        });
        match form {
            0 => here.send(b"at last").expect("it goes on"),
            1 => here.send_within(b"at last", TEST_TIMEOUT).expect("it goes on"),
            _ => {
                let mut batch = Batch::new(1, 8);
                batch.push(b"at last").unwrap();
                assert_eq!(here.send_batch(&mut batch).expect("it goes on"), 1);
            }
        }
        drop(interrupter.join().unwrap());
    }
}

/// Sends a signal to the main thread while that thread waits, and returns when its handler has run.
fn interrupt(handled: &AtomicBool) {
    wait_until_main_sleeps();
    handled.store(false, Ordering::SeqCst);
    kill_process(getpid(), Signal::USR1).unwrap();
    bounded(|| handled.load(Ordering::SeqCst));
}

fn wait_until_main_sleeps() {
    let stat = format!("/proc/self/task/{}/stat", process::id());
    bounded(|| fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1.starts_with('S'));
}

/// Waits for a condition; ends the program if it never holds, as the main thread may be waiting for this one.
fn bounded(condition: impl Fn() -> bool) {
    if !holds_within(TEST_TIMEOUT, condition) {
        eprintln!("dgram_signals: the main thread does not wait for a datagram any more");
        process::exit(1);
    }
}
