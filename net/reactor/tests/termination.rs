//! Requests to end the process. Run without the test harness: this program again is the process that ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use spandrel_reactor::on_termination;
use spandrel_test_support::ChildProcess;

/// Environment variable of the process that handles the requests.
const HANDLES_REQUESTS: &str = "SPANDREL_TEST_TERMINATION";

/// Prints each request, and treats a number of them.
fn treats(name: &'static str, count: usize) -> spandrel_reactor::TerminationHandler {
    let requests = AtomicUsize::new(0);
    on_termination(move |request| {
        println!("{name}: {request}");
        requests.fetch_add(1, Ordering::SeqCst) < count
    })
    .expect("signals can be handled")
}

/// In the process itself: handles requests, the third of which ends it.
pub(crate) fn handle_requests_if_started_for_that() {
    if std::env::var_os(HANDLES_REQUESTS).is_none() {
        return;
    }
    let (_first, _second) = (treats("first", 1), treats("second", 2));
    drop(treats("dropped", 100));
    println!("ready");
    loop {
        std::thread::park();
    }
}

pub(crate) fn requests_to_end_reach_all_handlers_until_none_treats_them() {
    if std::env::var_os("SPANDREL_HANDED_CONNECTION").is_some() {
        return; // a process that was started to serve a connection
    }
    let program = std::env::current_exe().unwrap();
    let mut process = ChildProcess::start(Command::new(program).env(HANDLES_REQUESTS, "1").stdout(Stdio::piped()));
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    for (signal, text) in [
        (Signal::INT, "interrupted from the keyboard (SIGINT)"),
        (Signal::TERM, "told to terminate (SIGTERM)"),
        (Signal::TERM, "told to terminate (SIGTERM)"),
    ] {
        kill_process(Pid::from_child(&process), signal).unwrap();
        for name in ["first", "second"] {
            assert_eq!(lines.next(), Some(format!("{name}: {text}")));
        }
    }
    assert_eq!(lines.next(), None);
    assert_eq!(process.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}
