//! Threads that remain after an ORB has ended, counted in a process of its own.
#![cfg(target_os = "linux")]

use spandrel_orb_tests::{
    Server,
    support::{block_on, wait_until},
};
use spandrel_test_support::alone;

#[test]
fn dropping_the_last_orb_handle_ends_the_reactor_thread() {
    alone(|| {
        let server = Server::start();
        let target = server.client();
        block_on(target.ping_async()).unwrap();
        drop(target);
        let threads =
            || std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.filter(is_reactor_thread).count());
        wait_until("the reactor thread's end", || threads() == 0);
    });
}

fn is_reactor_thread(task: &std::io::Result<std::fs::DirEntry>) -> bool {
    let name = task.as_ref().ok().and_then(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    name.is_some_and(|name| name.trim() == "spandrel-async")
}
