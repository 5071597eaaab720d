//! A process for each connection. Run without the test harness, because the processes run this program again.

use std::io;

use spandrel_ipc::Family;
use spandrel_ipc::inet::{self, Addr, Inet};
use spandrel_reactor::strategy::{ProcessPerConnection, Reactive, ThreadPerConnection, ThreadPool, serve_handed};
use spandrel_reactor::{Acceptor, Peer, Reactor, ServiceHandler};

use crate::support::{Running, client, expect_end};
use spandrel_test_support::{TEST_TIMEOUT, eventually};

/// Sends its process ID; a `!` kills the process, a `~` keeps it busy for ever, a `#` requests its number of
/// handles, a `>` the view of a process that it starts; for a `<` another thread sends the process ID.
struct ReportsProcess;

impl<F: Family> ServiceHandler<F> for ReportsProcess {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut buffer = [0; 64];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            _ if buffer[0] == b'!' => std::process::abort(),
            _ if buffer[0] == b'~' => loop {
                std::thread::park();
            },
            _ if buffer[0] == b'#' => peer.put(&handles().to_le_bytes())?,
            _ if buffer[0] == b'>' => peer.put(&[grandchild()])?,
            _ if buffer[0] == b'<' => {
                let sender = peer.sender()?;
                std::thread::spawn(move || sender.put(&std::process::id().to_le_bytes()).unwrap());
            }
            _ => peer.put(&std::process::id().to_le_bytes())?,
        }
        Ok(())
    }
}

/// The number of open handles, apart from that of the check.
fn handles() -> u32 {
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u32 - 1
}

/// Environment variable of a process that only reports whether it serves a connection.
const PROBE: &str = "SPANDREL_TEST_PROBE";

fn grandchild() -> u8 {
    let program = std::env::current_exe().unwrap();
    let status = std::process::Command::new(program).env(PROBE, "1").status().unwrap();
    status.code().unwrap() as u8
}

fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |task: io::Result<std::fs::DirEntry>| {
        let children = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        children.split_whitespace().count()
    };
    tasks.map(of).sum()
}

fn ask(addr: &Addr) -> u32 {
    let stream = client(addr);
    stream.send_n(b"pid").unwrap();
    let mut id = [0; 4];
    stream.recv_n(&mut id).unwrap();
    u32::from_le_bytes(id)
}

pub(crate) fn a_process_serves_each_connection() {
    if std::env::var_os(PROBE).is_some() {
        let handed = spandrel_reactor::strategy::handed_connection::<Inet>().unwrap();
        std::process::exit(if handed.is_some() { 7 } else { 5 });
    }
    let inherited = handles();
    if serve_handed::<Inet, _>(ReportsProcess).expect("a connection that was handed over is served") {
        return;
    }
    // First of all, while this process has one thread.
    forked();
    executed(inherited);
    drained_processes_end();
    closed_with_the_reactor();
    unsupervised_processes_are_killed();
    without_descriptors(Reactive);
    without_descriptors(ThreadPerConnection::new(30));
    without_descriptors(ThreadPool::new(30, 0).unwrap());
    without_descriptors(ProcessPerConnection::new(30).unwrap());
    refused_to_fork();
    println!("test result: ok. processes serve connections");
}

fn executed(inherited: u32) {
    let running = Running::start(1);
    let server = Acceptor::new(Inet::default(), || ReportsProcess)
        .concurrency(ProcessPerConnection::new(2).unwrap())
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    let (one, two) = (ask(server.addr()), ask(server.addr()));
    assert!(one != two && one != std::process::id(), "each has a process of its own");
    eventually(|| server.connections() == 0);

    let (hurt, well) = (client(server.addr()), client(server.addr()));
    well.send_n(b"pid").unwrap();
    well.recv_n(&mut [0; 4]).unwrap();
    eventually(|| server.connections() == 2);
    expect_end(&client(server.addr())); // beyond the limit
    hurt.send_n(b"!").unwrap();
    expect_end(&hurt);
    well.send_n(b"pid").unwrap();
    well.recv_n(&mut [0; 4]).unwrap();
    eventually(|| server.connections() == 1);
    // The handles that this process inherited, and the connection once more.
    well.send_n(b"#").unwrap();
    let mut count = [0; 4];
    well.recv_n(&mut count).unwrap();
    assert_eq!(u32::from_le_bytes(count), inherited + 1, "handles are leaked to the child");
    well.send_n(b">").unwrap();
    let mut code = [0];
    well.recv_n(&mut code).unwrap();
    assert_eq!(code, [5], "the connection is passed to one process only");
    for question in ["<", "pid", "<"] {
        well.send_n(question.as_bytes()).unwrap();
        well.recv_n(&mut count).unwrap();
        assert_ne!(u32::from_le_bytes(count), std::process::id(), "{question}");
    }
    drop(well);
    eventually(|| server.connections() == 0);
    assert_eq!(children(), 0, "all are reaped");
}

/// Processes are drained like other services; one that does not end in time is killed.
fn drained_processes_end() {
    let running = Running::start(1);
    let server = executing(&running);
    let idle = client(server.addr());
    idle.send_n(b"pid").unwrap();
    idle.recv_n(&mut [0; 4]).unwrap();
    assert_eq!(server.drain(TEST_TIMEOUT), 0);
    expect_end(&idle);

    let server = executing(&running);
    let busy = client(server.addr());
    busy.send_n(b"pid").unwrap();
    busy.recv_n(&mut [0; 4]).unwrap();
    // It reads this before the end of its input.
    busy.send_n(b"~").unwrap();
    assert_eq!(server.drain(std::time::Duration::ZERO), 1);
    expect_end(&busy);
    eventually(|| server.connections() == 0);
    assert_eq!(children(), 0);
}

fn executing(running: &Running) -> spandrel_reactor::Server<Inet> {
    Acceptor::new(Inet::default(), || ReportsProcess)
        .concurrency(ProcessPerConnection::new(2).unwrap())
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap()
}

fn closed_with_the_reactor() {
    let running = Running::start(1);
    let server = executing(&running);
    let stream = client(server.addr());
    stream.send_n(b"pid").unwrap();
    stream.recv_n(&mut [0; 4]).unwrap();
    drop(running);
    expect_end(&stream);
    assert_eq!((children(), server.connections()), (0, 0));
}

/// Runs a reactor on this thread until a condition holds that other threads bring about without waking it.
fn run(reactor: &Reactor, mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TEST_TIMEOUT, "the condition never held");
        reactor.run_once(Some(std::time::Duration::from_millis(1))).unwrap();
    }
}

/// Under any concurrency strategy, a server without descriptors sheds load, and continues when there are some
/// again.
fn without_descriptors(concurrency: impl spandrel_reactor::strategy::Concurrency<Inet, ReportsProcess>) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let reactor = Reactor::new().unwrap();
    let server = Acceptor::new(Inet::default(), || ReportsProcess)
        .concurrency(concurrency)
        .open(reactor.registry(), &Addr::loopback(0))
        .unwrap();
    reactor.run_once(Some(std::time::Duration::ZERO)).unwrap();
    let crowd: Vec<_> = (0..20).map(|_| client(server.addr())).collect();
    let before = getrlimit(Resource::Nofile);
    let current = Some(u64::from(handles()) + 4);
    setrlimit(Resource::Nofile, Rlimit { current, maximum: before.maximum }).unwrap();
    let is_shed = || {
        let has_ended = |stream: &inet::Stream| !matches!(stream.try_recv(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        crowd.iter().filter(|stream| has_ended(stream)).count() >= 10
    };
    run(&reactor, is_shed);
    setrlimit(Resource::Nofile, before).unwrap();
    drop(crowd);
    run(&reactor, || server.connections() == 0);
    let late = client(server.addr());
    late.send_n(b"pid").unwrap();
    let is_served = || late.try_recv(&mut [0; 4]).is_ok_and(|count| count == 4);
    run(&reactor, is_served);
    drop(late);
    run(&reactor, || server.connections() == 0 && children() == 0);
}

/// A process that cannot be supervised is not left running: there is room for the listening handler only.
fn unsupervised_processes_are_killed() {
    let reactor = Reactor::with(&spandrel_reactor::Options::default().max_handlers(1)).unwrap();
    let server = Acceptor::new(Inet::default(), || ReportsProcess)
        .concurrency(ProcessPerConnection::new(2).unwrap())
        .open(reactor.registry(), &Addr::loopback(0))
        .unwrap();
    for _ in 0..3 {
        let stream = client(server.addr());
        let is_over = || !matches!(stream.try_recv(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        assert!(reactor.run_until(Some(TEST_TIMEOUT), is_over).unwrap());
        assert_eq!((children(), server.connections()), (0, 0));
    }
}

/// The reactor runs on this, the only thread; the client is a child forked before.
fn forked() {
    let listener = Inet::default().open(&Addr::loopback(0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let reactor = Reactor::new().unwrap();
    let server = Acceptor::new(Inet::default(), || ReportsProcess)
        .concurrency(ProcessPerConnection::forking(4))
        .adopt(reactor.registry(), listener)
        .unwrap();
    let start = std::time::Instant::now();
    let stream = client(&addr);
    stream.send_n(b"pid").unwrap();
    let mut id = [0; 4];
    let mut filled = 0;
    while filled < 4 {
        assert!(start.elapsed() < TEST_TIMEOUT);
        reactor.run_once(Some(std::time::Duration::from_millis(1))).unwrap();
        match stream.try_recv(&mut id[filled..]) {
            Ok(count) => filled += count,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    assert_ne!(u32::from_le_bytes(id), std::process::id());
    drop(stream);
    while server.connections() != 0 {
        assert!(start.elapsed() < TEST_TIMEOUT, "the child is reaped");
        reactor.run_once(Some(std::time::Duration::from_millis(1))).unwrap();
    }
}

fn refused_to_fork() {
    let running = Running::start(1);
    let server = Acceptor::new(Inet::default(), || ReportsProcess)
        .concurrency(ProcessPerConnection::forking(4))
        .open(running.reactor.registry(), &Addr::loopback(0))
        .unwrap();
    expect_end(&client(server.addr()));
}
