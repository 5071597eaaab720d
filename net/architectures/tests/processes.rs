//! The processes of the architectures that have some.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use spandrel_test_support::wait_until;

use crate::support::{Running, at_once, connect, greeted, request, rest, split, transfer};

/// The processes that descend from this one, with their states.
fn descendants(of: u32) -> Vec<(u32, char)> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // After the name, which is in parentheses: the state and the parent.
        let rest: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        if rest[1] == of.to_string() {
            all.push((pid, rest[0].chars().next().unwrap()));
            all.extend(descendants(pid));
        }
    }
    all
}

#[test]
fn processes_end_with_their_connections_and_leave_no_zombies() {
    let server = Running::start(&["process-per-connection"]);
    let pid = server.pid();
    assert_eq!(descendants(pid).len(), 1, "the process that forks");
    let open: Vec<_> = (0..3).map(|_| greeted(server.address)).collect();
    assert_eq!(descendants(pid).len(), 4);
    at_once(20, |_| transfer(server.address));
    open.iter().for_each(|stream| request(stream, &[b"0100"], 100));
    drop(open);
    wait_until("all children are reaped", || descendants(pid).len() == 1);
    server.terminate();
}

#[test]
fn a_killed_process_ends_its_connection_alone() {
    let server = Running::start(&["process-per-connection"]);
    let [first, second] = [greeted(server.address), greeted(server.address)];
    let forking = descendants(server.pid())[0].0;
    let victim = descendants(forking).first().unwrap().0;
    kill(victim);
    let answered = [&first, &second].map(|stream| {
        let mut octets = Vec::new();
        let mut stream = stream;
        stream.write_all(b"0100").is_ok()
            && stream.shutdown(std::net::Shutdown::Write).is_ok()
            && stream.read_to_end(&mut octets).is_ok()
            && octets.len() == 100
    });
    assert_eq!(answered.iter().filter(|answered| **answered).count(), 1, "{answered:?}");
    transfer(server.address);
    server.terminate();
}

#[test]
fn a_killed_worker_is_replaced() {
    for (architecture, count) in [("pre-forked", 3), ("process-per-connection", 1)] {
        let server = Running::start(&[architecture, "--workers", "3"]);
        let pid = server.pid();
        let workers = descendants(pid);
        assert_eq!(workers.len(), count);
        kill(workers[0].0);
        wait_until("the process is replaced", || {
            let now = descendants(pid);
            now.len() == count && now.iter().all(|(pid, state)| *pid != workers[0].0 && *state != 'Z')
        });
        at_once(20, |_| transfer(server.address));
        server.terminate();
    }
}

#[test]
fn processes_of_connections_end_with_the_killed_process_that_forked_them() {
    let server = Running::start(&["process-per-connection"]);
    let open: Vec<_> = (0..3).map(|_| greeted(server.address)).collect();
    let forking = descendants(server.pid())[0].0;
    kill(forking);
    for stream in open {
        assert!(rest(&stream).is_empty(), "the connection ends without a reply");
    }
    wait_until("the process that forks is replaced", || {
        descendants(server.pid()).iter().any(|(pid, _)| *pid != forking)
    });
    transfer(server.address);
    server.terminate();
}

/// The number of times that the thread which replaces processes has waited.
fn waits_of_the_supervisor(of: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).unwrap().flatten().map(|task| task.path());
    let is_supervisor =
        |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.contains("superv"));
    let supervisor = tasks.into_iter().find(is_supervisor).expect("a thread `supervisor`");
    let status = fs::read_to_string(supervisor.join("status")).unwrap();
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    waits.unwrap().trim().parse().unwrap()
}

#[test]
fn a_worker_that_cannot_be_replaced_is_replaced_after_the_shortage() {
    let server = Running::start(&["pre-forked", "--workers", "2"]);
    let pid = server.pid();
    let process = Pid::from_raw(i32::try_from(pid).unwrap());
    let limit = |soft: Option<u64>| {
        let before = getrlimit(Resource::Nofile);
        let limit = Rlimit { current: soft.or(before.current), maximum: before.maximum };
        prlimit(process, Resource::Nofile, limit).unwrap();
    };
    limit(Some(3)); // no more handles can be opened
    let killed = descendants(pid)[0].0;
    kill(killed);
    wait_until("it is reaped", || descendants(pid).iter().all(|(pid, _)| *pid != killed));
    let before = waits_of_the_supervisor(pid);
    wait_until("attempts to replace it", || waits_of_the_supervisor(pid) >= before + 6);
    assert_eq!(descendants(pid).len(), 1);
    limit(None);
    wait_until("it is replaced", || descendants(pid).len() == 2);
    server.terminate();
}

#[test]
fn a_worker_is_replaced_after_the_programs_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server");
    fs::copy(env!("CARGO_BIN_EXE_transfer-server"), &file).unwrap();
    let server = Running::start_program(&file, &["pre-forked", "--workers", "1"]);
    fs::remove_file(file).unwrap();
    let pid = server.pid();
    let killed = descendants(pid)[0].0;
    kill(killed);
    wait_until("it is replaced", || {
        let now = descendants(pid);
        now.len() == 1 && now[0].0 != killed
    });
    transfer(server.address);
    server.terminate();
}

#[test]
fn a_signal_to_all_processes_cuts_no_reply() {
    let folder = tempfile::tempdir().unwrap();
    let octets = spandrel_test_support::pattern(30_000_000); // more than the buffers of a connection
    fs::write(folder.path().join("file.bin"), &octets).unwrap();
    for architecture in ["pre-forked", "process-per-connection"] {
        let server = Running::start(&[architecture, "--http", folder.path().to_str().unwrap(), "--drain", "60"]);
        let mut stream = connect(server.address);
        stream.write_all(b"GET /file.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        let processes = descendants(server.pid());
        processes.iter().for_each(|(pid, _)| send_signal(*pid, Signal::TERM));
        send_signal(server.pid(), Signal::TERM);
        let mut response = first.to_vec();
        response.extend(rest(&stream));
        assert!(split(&response).1 == octets, "{architecture}: {} octets", response.len());
        server.wait_successful();
        assert!(processes.iter().all(|(pid, _)| is_gone(*pid)), "{architecture}: {processes:?}");
    }
}

#[test]
fn a_process_whose_server_has_ended_at_once_serves_nothing() {
    // The parent is this process, and not that of the parameters: the process ends, though the rest is a command line.
    let mut command = Command::new(env!("CARGO_BIN_EXE_transfer-server"));
    command.args(["server-process", "pre-forked"]).env("SPANDREL_SERVER_PROCESS", "1 pre-forked false transfer 1 1 1");
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_long_drain_ends_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file.bin"), vec![0; 30_000_000]).unwrap(); // more than the buffers of a connection
    let folder = folder.path().to_str().unwrap();
    let limits = ["--http", folder, "--drain", "3600", "--idle", "3600"];
    for (architecture, count) in [("pre-forked", 1), ("process-per-connection", 2)] {
        let server = Running::start(&[&[architecture, "--workers", "1"], &limits[..]].concat());
        let mut stream = connect(server.address);
        stream.write_all(b"GET /file.bin HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        let processes = descendants(server.pid());
        assert_eq!(processes.len(), count, "{processes:?}");
        send_signal(server.pid(), Signal::TERM);
        wait_until("nothing is accepted", || std::net::TcpStream::connect(server.address).is_err());
        assert!(!processes.iter().any(|(pid, _)| is_gone(*pid)), "the reply is not taken");
        drop(server); // kills it
        wait_until("its processes end", || processes.iter().all(|(pid, _)| is_gone(*pid)));
    }
}

#[test]
fn a_stopped_worker_is_killed_after_the_drain() {
    let server = Running::start(&["pre-forked", "--workers", "2", "--drain", "0"]);
    let stopped = descendants(server.pid())[0].0;
    send_signal(stopped, Signal::STOP);
    let is_stopped = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("stat")).unwrap().contains(") T ");
    wait_until("all its threads are stopped, also that in `accept`", || {
        fs::read_dir(format!("/proc/{stopped}/task")).unwrap().flatten().all(is_stopped)
    });
    (0..5).for_each(|_| transfer(server.address));
    server.terminate();
    assert!(is_gone(stopped));
}

#[test]
fn processes_of_connections_have_no_access_to_the_orders_of_their_parent() {
    let server = Running::start(&["process-per-connection"]);
    let _open = greeted(server.address);
    let forking = descendants(server.pid())[0].0;
    let child = descendants(forking)[0].0;
    let sockets = |pid: u32| {
        let handles = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let targets = handles.filter_map(|handle| fs::read_link(handle.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).collect::<Vec<_>>()
    };
    let own = sockets(child);
    assert_eq!(own.len(), 1, "the connection alone: {own:?}");
    assert!(!sockets(forking).contains(&own[0]));
    server.terminate();
}

#[test]
fn processes_end_when_their_server_is_killed() {
    for architecture in ["pre-forked", "process-per-connection"] {
        let server = Running::start(&[architecture]);
        let workers = descendants(server.pid());
        drop(server); // kills it
        wait_until("its processes end", || workers.iter().all(|(pid, _)| is_gone(*pid)));
    }
}

/// Whether a process has ended, reaped or not.
fn is_gone(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

fn kill(pid: u32) {
    send_signal(pid, Signal::KILL);
}

fn send_signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}
