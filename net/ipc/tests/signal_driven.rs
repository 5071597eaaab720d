//! Input that is announced by a signal, over every family of streams.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use spandrel_ipc::signal_driven::{InputSignal, SignalDriven};
use spandrel_ipc::{Interest, Pollable, Receive, Transmit};
use spandrel_test_support::wait_until;

use crate::for_every_place;
use crate::support::test_families::*;

/// The offset of the next test's real-time signal, since the tests run in one process.
static NEXT: AtomicI32 = AtomicI32::new(2);

macro_rules! at_place {
    ($name:ident, $TestFamily:ident) => {
        #[test]
        fn $name() {
            if !$TestFamily::is_available() {
                return eprintln!("left out: this machine has no {}", stringify!($name));
            }
            input_is_announced::<$TestFamily>();
        }
    };
}
for_every_place!(at_place);

/// Each message is received after a signal, never by waiting for the endpoint.
fn input_is_announced<P: TestFamily>() {
    let (near, far) = connected::<P>();
    let signal = InputSignal::real_time(NEXT.fetch_add(1, Ordering::SeqCst)).unwrap();
    let has_arrived = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal.number(), Arc::clone(&has_arrived)).unwrap();
    near.enable_signal_with(signal).unwrap();
    assert!(near.is_signal_enabled().unwrap() && !far.is_signal_enabled().unwrap());
    for number in 0..10 {
        assert!(near.prepare(Interest::INPUT).ready.is_none(), "there is nothing yet");
        far.send_n(&[number]).unwrap();
        let mut octet = [0];
        loop {
            wait_until("a signal", || has_arrived.swap(false, Ordering::SeqCst));
            // A signal may also announce room for sending.
            if near.try_recv(&mut octet).is_ok_and(|received| received == 1) {
                break;
            }
            if near.prepare(Interest::INPUT).ready.contains(Interest::INPUT) {
                has_arrived.store(true, Ordering::SeqCst);
            }
        }
        assert_eq!(octet, [number]);
    }
    near.disable_signal().unwrap();
    assert!(!near.is_signal_enabled().unwrap());
}
