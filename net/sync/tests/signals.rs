//! Waits for children continue after signals.
//!
//! A program of its own, without the test harness: a signal to the process goes to its main thread, and here
//! that thread waits. Linux itself never restarts `poll(2)` (signal(7)), so every signal that arrives during
//! the wait is one `EINTR`.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::waiting_for_children_goes_on_after_signals();
    println!("signals: 1 passed");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::process::{self, Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use rustix::process::{Signal, getpid, kill_process};
    use signal_hook::consts::SIGUSR1;
    use spandrel_sync::{Arc, ProcessManager, thread};

    const LIMIT: Duration = Duration::from_millis(100);
    const SIGNALS: usize = 50;

    pub(super) fn waiting_for_children_goes_on_after_signals() {
        let handled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&handled)).unwrap();
        let manager = ProcessManager::new();
        let mut shell = Command::new("sh");
        let children = [(); 2].map(|()| {
            manager.spawn(shell.args(["-c", "read line; exit 7"]).stdin(Stdio::piped()).stdout(Stdio::null())).unwrap()
        });

        let inputs = children.each_ref().map(|child| child.take_stdin().unwrap());
        let is_over = Arc::new(AtomicBool::new(false));
        let until_over = Arc::clone(&is_over);
        let flag = Arc::clone(&handled);
        let interrupter = thread::spawn(move || {
            // During the waits with a timeout …
            while !until_over.load(Ordering::SeqCst) {
                interrupt(&flag);
            }
            // … and during each wait without, before its child ends.
            for input in inputs {
                (0..SIGNALS).for_each(|_| interrupt(&flag));
                drop(input);
            }
        });
        let start = Instant::now();
        assert!(children[0].wait_for(LIMIT).expect("goes on").is_none());
        assert!(manager.wait_any(LIMIT).expect("goes on").is_none());
        assert!(start.elapsed() >= 2 * LIMIT, "a signal cut a wait short");
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(children[0].wait().expect("goes on").code(), Some(7));
        manager.wait().expect("goes on");
        assert_eq!(children[1].status().unwrap().unwrap().code(), Some(7));
        interrupter.join().unwrap();
    }

    /// Sends one signal to the main thread once it sleeps, and waits until the signal has been handled.
    fn interrupt(handled: &AtomicBool) {
        let start = Instant::now();
        let in_time = || assert!(start.elapsed() < Duration::from_secs(60), "the main thread does not wait");
        let stat = format!("/proc/self/task/{}/stat", process::id());
        while !fs::read_to_string(&stat).unwrap().contains(") S ") {
            in_time();
            thread::yield_now();
        }
        handled.store(false, Ordering::SeqCst);
        kill_process(getpid(), Signal::from_named_raw(SIGUSR1).unwrap()).unwrap();
        while !handled.load(Ordering::SeqCst) {
            in_time();
            thread::yield_now();
        }
    }
}
