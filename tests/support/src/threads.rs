//! The threads of a process, compared with those that `docs/real-time.md` lists.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::holds_within;

/// The octets of a thread's name that Linux keeps.
const KEPT_OCTETS: usize = 15;

/// A thread, as `/proc` shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ThreadState {
    /// The number of the thread in its system.
    pub id: u32,
    /// The first 15 octets of its name.
    pub name: String,
    /// The nice value (proc(5): the field 19 of `stat`).
    pub nice: i64,
    /// The real-time priority, and 0 for ordinary threads (the field 40).
    pub real_time_priority: i64,
}

/// The threads of a process, the first one first. Those that end meanwhile are left out.
///
/// # Panics
/// Without such a process.
#[must_use]
pub fn threads_of(process: u32) -> Vec<ThreadState> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    let thread = |stat: String| {
        let (start, end) = stat.rsplit_once(") ")?;
        let (id, name) = start.split_once(" (")?;
        let fields: Vec<&str> = end.split(' ').collect();
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(ThreadState {
            id: id.parse().ok()?,
            name: name.to_owned(),
            nice: number(19)?,
            real_time_priority: number(40)?,
        })
    };
    let mut threads: Vec<ThreadState> = stats.filter_map(thread).collect();
    threads.sort_by_key(|thread| thread.id);
    threads
}

/// The names of threads in the tables of the section "Threads of the ORB". One that ends with `*` stands for all names that
/// begin like it.
///
/// # Panics
/// Without the page.
#[must_use]
pub fn listed_threads() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/real-time.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let section = page.split("\n## ").find(|section| section.starts_with("Threads of the ORB\n"));
    let rows = section.expect("the section is there").lines().filter(|line| line.starts_with("| `"));
    let first_cells = rows.filter_map(|row| row.split(" | ").next());
    first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Fails for a thread that the page does not list.
///
/// # Panics
/// With the names that are missing there.
#[track_caller]
pub fn check_listed(threads: &[ThreadState]) {
    let unlisted = unlisted(threads);
    assert!(unlisted.is_empty(), "threads that docs/real-time.md does not list: {unlisted:?}");
}

fn unlisted(threads: &[ThreadState]) -> Vec<&ThreadState> {
    let listed = listed_threads();
    let is_listed = |name: &str| {
        listed.iter().any(|entry| match entry.strip_suffix('*') {
            Some(start) => name.starts_with(&start[..start.len().min(KEPT_OCTETS)]),
            None => name == &entry[..entry.len().min(KEPT_OCTETS)],
        })
    };
    threads.iter().filter(|thread| !is_listed(&thread.name)).collect()
}

/// Fails for a thread of a daemon that the page does not list, and for one with another priority than the daemon was started
/// with. Prints the names.
///
/// # Panics
/// With the threads.
#[track_caller]
pub fn check_daemon(process: u32) {
    // A thread has the name of the one that starts it until it begins.
    _ = holds_within(Duration::from_secs(10), || unlisted(&threads_of(process)[1..]).is_empty());
    let threads = threads_of(process);
    let (first, others) = threads.split_first().expect("a process has a thread");
    check_listed(others);
    for thread in others {
        let of_both = [first, thread].map(|thread| (thread.nice, thread.real_time_priority));
        assert_eq!(of_both[0], of_both[1], "{} has another priority than {}", thread.name, first.name);
    }
    let mut counts = BTreeMap::<&str, usize>::new();
    others.iter().for_each(|thread| *counts.entry(&thread.name).or_default() += 1);
    println!("threads of {}: {counts:?}", first.name);
}
