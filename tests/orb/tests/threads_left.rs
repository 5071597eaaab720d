//! What is left of an ORB when it is over, which only a process can tell in which nothing else runs.
#![cfg(target_os = "linux")]

use spandrel_orb_tests::{
    Server,
    support::{block_on, comes},
};
use spandrel_test_support::alone;

#[test]
fn an_orb_that_nobody_holds_any_more_leaves_no_thread_behind() {
    alone(|| {
        let server = Server::start();
        let target = server.client();
        block_on(target.ping_async()).unwrap();
        drop(target);
        let threads = || std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.filter(is_of_reactor).count());
        comes("the thread's end", || threads() == 0);
    });
}

fn is_of_reactor(task: &std::io::Result<std::fs::DirEntry>) -> bool {
    let name = task.as_ref().ok().and_then(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    name.is_some_and(|name| name.trim() == "spandrel-async")
}
