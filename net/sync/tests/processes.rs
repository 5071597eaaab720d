//! The process manager with real children: this test program itself, in roles.

#[cfg(unix)]
use std::io::Read;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, process};

#[cfg(unix)]
use spandrel_sync::Process;
use spandrel_sync::{OnDrop, ProcessError, ProcessManager, thread};

/// Time limit for events that must happen.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

const ROLE: &str = "SPANDREL_SYNC_TEST_ROLE";

/// This program as a child, in a role of [`play`]. Its standard input is a pipe: it ends when its parent
/// does.
fn child(role: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "processes::play", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A test without a role; the whole program of a child with one.
#[test]
fn play() {
    let Ok(role) = env::var(ROLE) else { return };
    match role.as_str() {
        "end with 7" => process::exit(7),
        "listen" => wait_for_end_of_input(),
        #[cfg(target_os = "linux")]
        "work" => {
            let workers = [(); 2].map(|()| thread::spawn(burn));
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            wait_for_end_of_input();
        }
        "have a child" => {
            // It shares input and output, and the test keeps the input open: so it ends when killed, not
            // before.
            let mut grandchild = child("listen").stdin(Stdio::inherit()).stdout(Stdio::inherit()).spawn().unwrap();
            wait_for_end_of_input();
            grandchild.wait().unwrap();
        }
        other => panic!("no such role: {other}"),
    }
    process::exit(0);
}

/// Reports that it is ready, then waits for the end of its input.
fn wait_for_end_of_input() {
    println!("ready");
    std::io::stdout().flush().unwrap();
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

/// The processor time that each thread of the role `work` uses.
#[cfg(target_os = "linux")]
const WORK: Duration = Duration::from_millis(60);

#[cfg(target_os = "linux")]
fn burn() {
    use rustix::time::{ClockId, clock_gettime};
    while Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap() < WORK {
        std::hint::black_box((0..1_000_u64).sum::<u64>());
    }
}

/// Waits until a child prints a line that contains this.
#[cfg(unix)]
#[track_caller]
fn wait_for_line(child: &Process, what: &str) {
    let (mut output, mut stderr) = (child.take_stdout().expect("a pipe"), Vec::new());
    let mut octet = [0];
    while !String::from_utf8_lossy(&stderr).contains(what) {
        output.read_exact(&mut octet).unwrap_or_else(|error| panic!("the child did not print {what}: {error}"));
        stderr.extend_from_slice(&octet);
    }
    std::mem::forget(output); // stays open, so that the child can go on writing
}

#[test]
fn an_exit_status_stays_available_to_all_handles() {
    let manager = ProcessManager::new();
    let child = manager.spawn(&mut child("end with 7")).unwrap();
    let clone = child.clone();
    let waiting = thread::spawn(move || clone.wait().unwrap().code());
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert_eq!(waiting.join().unwrap(), Some(7));
    assert_eq!(manager.reap().len(), 1);
    drop(manager);
    assert_eq!(child.status().unwrap().unwrap().code(), Some(7));
}

#[test]
fn waiting_with_a_limit_ends_without_the_child() {
    let manager = ProcessManager::new();
    let child = manager.spawn(&mut child("listen")).unwrap();
    let (start, limit) = (Instant::now(), Duration::from_millis(30));
    assert!(child.wait_for(limit).unwrap().is_none());
    assert!(manager.wait_any(limit).unwrap().is_none());
    assert!(!manager.wait_for(limit).unwrap());
    assert!(start.elapsed() >= 3 * limit);
    assert_eq!(manager.running(), 1);
    assert!(manager.reap().is_empty());
    drop(child.take_stdin());
    assert!(child.wait_for(TEST_TIMEOUT).unwrap().expect("its input has ended").success());
}

#[test]
fn the_first_to_end_is_found_among_many() {
    let manager = ProcessManager::new();
    let listeners: Vec<_> = (0..3).map(|_| manager.spawn(&mut child("listen")).unwrap()).collect();
    let quick = manager.spawn(&mut child("end with 7")).unwrap();
    let found = manager.wait_any(TEST_TIMEOUT).unwrap().expect("one ends");
    assert_eq!((found.id(), manager.running()), (quick.id(), 3));
    drop(listeners[1].take_stdin());
    assert_eq!(manager.wait_any(TEST_TIMEOUT).unwrap().map(|child| child.id()), Some(listeners[1].id()));
    manager.kill_all().unwrap();
    assert_eq!((manager.running(), manager.reap().len()), (0, 2));
    assert!(manager.wait_any(TEST_TIMEOUT).unwrap().is_none(), "at once: no child is left");
}

#[test]
fn only_living_children_count_towards_the_limit() {
    let manager = ProcessManager::with_limit(1);
    let first = manager.spawn(&mut child("listen")).unwrap();
    assert!(matches!(manager.spawn(&mut child("listen")), Err(ProcessError::LimitReached { limit: 1 })));
    first.kill().unwrap();
    assert!(!first.wait().unwrap().success());
    let second = manager.spawn(&mut child("end with 7")).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(7));
}

#[test]
fn a_missing_program_is_named_in_the_error() {
    let missing = ProcessManager::new().spawn(&mut Command::new("no-such-program")).unwrap_err();
    assert_eq!(missing.to_string(), "cannot run `no-such-program`");
}

#[test]
fn a_dropped_manager_kills_and_reaps() {
    let manager = ProcessManager::new();
    let children = [(); 2].map(|()| manager.spawn(&mut child("listen")).unwrap());
    drop(manager);
    for child in children {
        assert!(!child.status().unwrap().expect("it has ended").success());
    }
}

#[test]
fn a_dropped_manager_waits_if_set_so() {
    let manager = ProcessManager::new().on_drop(OnDrop::Wait);
    let child = manager.spawn(&mut child("end with 7")).unwrap();
    drop(manager);
    assert_eq!(child.status().unwrap().expect("waited for").code(), Some(7));
}

#[test]
fn a_child_spawned_elsewhere_is_not_reaped() {
    let manager = ProcessManager::new();
    let mut others = child("end with 7").spawn().unwrap();
    manager.spawn(&mut child("end with 7")).unwrap().wait().unwrap();
    manager.reap();
    manager.wait().unwrap();
    assert_eq!(others.wait().unwrap().code(), Some(7));
}

#[cfg(unix)]
mod unix {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use spandrel_sync::{Arc, Semaphore, Signal};

    /// A shell, ready, that ignores SIGTERM.
    fn shell_ignoring_sigterm(manager: &ProcessManager, spawn: Spawn) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; echo ready; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = spawn(manager, &mut command).unwrap();
        wait_for_line(&process, "ready");
        process
    }

    type Spawn = fn(&ProcessManager, &mut Command) -> Result<Process, ProcessError>;

    #[test]
    fn a_signal_reaches_the_child_and_no_process_after_it() {
        let manager = ProcessManager::new();
        let child = manager.spawn(&mut child("listen")).unwrap();
        child.signal(Signal::STOP).unwrap();
        assert!(child.wait_for(Duration::from_millis(20)).unwrap().is_none(), "stopped is not ended");
        child.signal(Signal::CONT).unwrap();
        assert!(child.signal_group(Signal::TERM).is_err(), "it leads no group");
        child.signal(Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
        let refused = child.signal(Signal::TERM).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::SRCH.raw_os_error()));
        child.kill().unwrap();
    }

    #[test]
    fn a_child_that_ignores_sigterm_is_killed() {
        let manager = ProcessManager::new();
        let willing = manager.spawn(&mut child("listen")).unwrap();
        assert_eq!(willing.terminate(TEST_TIMEOUT).unwrap().signal(), Some(Signal::TERM.as_raw()));
        let unwilling = shell_ignoring_sigterm(&manager, ProcessManager::spawn);
        assert_eq!(unwilling.terminate(Duration::from_millis(20)).unwrap().signal(), Some(Signal::KILL.as_raw()));
        assert_eq!(
            unwilling.terminate(TEST_TIMEOUT).unwrap().signal(),
            Some(Signal::KILL.as_raw()),
            "again, to no effect"
        );
    }

    #[test]
    fn terminate_all_signals_all_at_once_and_kills_after_one_grace_period() {
        let manager = ProcessManager::new();
        let shell_ignoring_sigterm = [
            shell_ignoring_sigterm(&manager, ProcessManager::spawn),
            shell_ignoring_sigterm(&manager, ProcessManager::spawn_group),
        ];
        let willing = manager.spawn(&mut child("listen")).unwrap();
        // Enough for the willing child to end, also on a busy machine; the others use up all of it.
        manager.terminate_all(Duration::from_secs(2)).unwrap();
        assert_eq!(manager.running(), 0);
        let how = |child: &Process| child.status().unwrap().unwrap().signal();
        assert_eq!(how(&willing), Some(Signal::TERM.as_raw()));
        assert_eq!(shell_ignoring_sigterm.each_ref().map(how), [Some(Signal::KILL.as_raw()); 2]);
    }

    /// A child with a child of its own that holds the returned end of a pipe too and does not end by itself.
    fn parent_and_child(manager: &ProcessManager) -> (Process, process::ChildStdout) {
        let parent = manager.spawn_group(&mut child("have a child")).unwrap();
        let mut output = parent.take_stdout().unwrap();
        let (mut stderr, mut octet) = (String::new(), [0]);
        while stderr.matches("ready").count() < 2 {
            output.read_exact(&mut octet).unwrap();
            stderr.push(octet[0].into());
        }
        (parent, output)
    }

    /// Waits until no process holds the other end of the pipe.
    #[track_caller]
    fn until_all_have_ended(mut output: process::ChildStdout) {
        let ended = Arc::new(Semaphore::new(0));
        let seen = Arc::clone(&ended);
        thread::spawn(move || {
            std::io::copy(&mut output, &mut std::io::sink()).unwrap();
            seen.post(1).unwrap();
        });
        assert!(ended.acquire_for(TEST_TIMEOUT).is_some(), "a process is left");
    }

    #[test]
    fn a_group_is_killed_with_its_leader() {
        let manager = ProcessManager::new();
        let (killed, output) = parent_and_child(&manager);
        killed.kill().unwrap();
        until_all_have_ended(output);
        let (dropped, output) = parent_and_child(&manager);
        drop(manager);
        until_all_have_ended(output);
        assert_eq!(dropped.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn the_rest_of_a_group_is_killed_when_its_leader_was_killed_by_others() {
        let manager = ProcessManager::new();
        let (leader, output) = parent_and_child(&manager);
        leader.kill_group_at_end();
        leader.signal(Signal::KILL).unwrap(); // to the leader alone
        assert_eq!(leader.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        until_all_have_ended(output);
    }

    #[test]
    fn the_rest_of_a_group_is_killed_after_its_leader_has_ended() {
        let manager = ProcessManager::new();
        let leader = "sh -c 'trap \"\" TERM; echo ready; read line' <&3 & echo ready; wait";
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 3<&0; {leader}")]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let parent = manager.spawn_group(&mut command).unwrap();
        let mut output = parent.take_stdout().unwrap();
        let (mut stderr, mut octet) = (String::new(), [0]);
        while stderr.matches("ready").count() < 2 {
            output.read_exact(&mut octet).unwrap();
            stderr.push(octet[0].into());
        }
        assert_eq!(parent.terminate(TEST_TIMEOUT).unwrap().signal(), Some(Signal::TERM.as_raw()));
        until_all_have_ended(output); // the inner shell ignores SIGTERM, so it was killed
    }

    #[test]
    fn a_group_signal_reaches_all_members() {
        let manager = ProcessManager::new();
        let (parent, output) = parent_and_child(&manager);
        // Not a signal that a background shell ignores, together with all its children.
        parent.signal_group(Signal::USR1).unwrap();
        until_all_have_ended(output);
        assert_eq!(parent.wait().unwrap().signal(), Some(Signal::USR1.as_raw()));
    }

    #[test]
    fn a_child_reaped_elsewhere_is_neither_waited_for_nor_signalled() {
        let manager = ProcessManager::new();
        let child = manager.spawn(&mut child("end with 7")).unwrap();
        let id = rustix::process::Pid::from_raw(child.id().cast_signed());
        let stranger = rustix::process::waitpid(id, rustix::process::WaitOptions::empty()).unwrap();
        assert!(stranger.is_some());
        assert!(child.wait().unwrap_err().to_string().contains("outside of the process manager"));
        assert!(child.signal(Signal::TERM).is_err());
        assert_eq!(manager.running(), 0);
        manager.wait().unwrap();
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    /// The state of the process in /proc: `R`, `S`, `Z` …; none if it does not exist.
    fn state(id: u32) -> Option<char> {
        let line = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        line[line.rfind(')')? + 1..].trim_start().chars().next()
    }

    #[track_caller]
    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < TEST_TIMEOUT, "timed out waiting for {what}");
            thread::yield_now();
        }
    }

    #[test]
    fn an_ended_child_is_a_zombie_until_it_is_reaped() {
        let manager = ProcessManager::new();
        let child = manager.spawn(&mut child("end with 7")).unwrap();
        until("its end", || state(child.id()) == Some('Z'));
        assert_eq!(manager.reap().len(), 1);
        assert_eq!(state(child.id()), None);
        assert_eq!(child.status().unwrap().unwrap().code(), Some(7));
    }

    #[test]
    fn a_handle_is_readable_when_its_child_has_ended() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let manager = ProcessManager::new();
        let child = manager.spawn(&mut child("listen")).unwrap();
        let Some(handle) = child.handle() else { return }; // Linux before 5.3
        let mut polled = [PollFd::new(&handle, PollFlags::IN)];
        assert_eq!(poll(&mut polled, Some(&Timespec::default())).unwrap(), 0);
        child.kill().unwrap();
        assert_eq!(poll(&mut polled, Some(&TEST_TIMEOUT.try_into().unwrap())).unwrap(), 1);
        assert_eq!(manager.reap().len(), 1);
    }

    #[test]
    fn detached_children_go_on_and_leave_no_zombies() {
        let manager = ProcessManager::new().on_drop(OnDrop::Detach);
        let children = [(); 2].map(|()| manager.spawn(&mut child("listen")).unwrap());
        drop(manager);
        for child in children {
            assert!(matches!(state(child.id()), Some('R' | 'S' | 'D')), "it goes on");
            drop(child.take_stdin());
            until("its end, seen by the reaper", || state(child.id()).is_none());
            assert!(child.status().unwrap().expect("reaped").success());
        }
    }

    #[test]
    fn processor_times_cover_all_threads_before_and_after_the_end() {
        let manager = ProcessManager::new();
        let child = manager.spawn(&mut child("work")).unwrap();
        until("some work", || child.cpu_times().unwrap().total() > Duration::from_millis(20));
        assert!(child.status().unwrap().is_none(), "it runs");
        wait_for_line(&child, "ready"); // both of its workers have ended
        let during = child.cpu_times().unwrap();
        let least = 2 * WORK - Duration::from_millis(40); // the kernel counts in ticks, at most 10 ms each, rounded down
        assert!(during.total() >= least, "{during:?}");
        drop(child.take_stdin());
        assert!(child.wait().unwrap().success());
        let after = child.cpu_times().unwrap();
        assert!(after.total() >= during.total(), "{during:?} {after:?}");
        assert_eq!(child.cpu_times().unwrap(), after, "the times are final");
    }
}
