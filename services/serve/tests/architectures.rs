//! Services in server architectures, which change while they serve.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use spandrel_test_support::{eventually, read_some, wait_until};

use crate::Process;

const LONG: Duration = spandrel_test_support::TEST_TIMEOUT;

/// A client of the transfer service that has received the greeting.
fn greeted(address: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    let mut greeting = [0; 7];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"Hello\n\0");
    client
}

/// Requests octets, and checks them.
fn request(mut client: &TcpStream) {
    client.write_all(b"4000").unwrap();
    let mut reply = [0; 4_000];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [b'A'; 4_000]);
}

/// The response to a GET on a connection that stays open.
pub(crate) fn get(mut client: &TcpStream, path: &str) -> String {
    client.write_all(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"the end\n") {
        let mut octet = [0];
        client.read_exact(&mut octet).unwrap();
        response.push(octet[0]);
    }
    String::from_utf8(response).unwrap()
}

#[test]
fn nothing_is_lost_when_the_architecture_changes_under_load() {
    let process = Process::new();
    process.process("static Transfer '-p 0 -a iterative'").unwrap();
    let address = process.address("Transfer");
    let (is_over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let work = || {
            while !is_over.load(Ordering::Relaxed) {
                request(&greeted(&address));
                served.fetch_add(1, Ordering::Relaxed);
            }
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        for architecture in
            ["queue-pool -w 3", "reactive", "thread-per-connection", "adaptive", "accept-pool", "leader-followers"]
        {
            let before = greeted(&address); // accepted by the former architecture
            let changes = process.process(&format!("static Transfer '-p 0 -a {architecture}'")).unwrap();
            assert_eq!(changes, "replaced Transfer");
            let begun = served.load(Ordering::Relaxed);
            wait_until("clients are served by the new architecture", || served.load(Ordering::Relaxed) > begun + 20);
            request(&before);
            let name = architecture.split(' ').next().unwrap();
            let info = process.info("Transfer");
            assert!(info.contains(name) || name == "adaptive" && info.contains("by the load"), "{info}");
            assert_eq!(process.address("Transfer"), address, "the port stays the same");
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("no client loses a request");
        }
    });
}

#[test]
fn a_connection_of_the_former_architecture_is_served_and_told_of_the_end() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "the end\n").unwrap();
    let process = Process::new();
    let directive = |rest: &str| format!("static HttpServer '-p 0 -r {} {rest}'", folder.path().display());
    process.process(&directive("-a reactive")).unwrap();
    let address = process.address("HttpServer");
    let client = TcpStream::connect(&address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    assert!(!get(&client, "/a.txt").contains("Connection: close"));
    process.process(&directive("-a thread-per-connection")).unwrap();
    assert!(get(&client, "/a.txt").contains("Connection: close"));
    assert_eq!(read_some(&client, &mut [0]).unwrap(), 0);
    let client = TcpStream::connect(&address).unwrap();
    assert!(!get(&client, "/a.txt").contains("Connection: close"));
}

#[test]
fn a_refused_change_leaves_the_former_architecture() {
    let process = Process::new();
    process.process("static Transfer '-p 0 -a queue-pool'").unwrap();
    let address = process.address("Transfer");
    for (arguments, reason) in [
        ("-p 0 -a threads", "unknown architecture `threads`"),
        ("-p 0 -w 0", "the number of workers must be at least 1"),
        ("-p 0 -w 999999999999", "the number of workers is 999999999999: expected at most 1000"),
        ("-p 0 -r /", "the transfer service has no folder"),
    ] {
        let refused = process.process(&format!("static Transfer '{arguments}'")).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
        request(&greeted(&address));
        assert!(process.info("Transfer").contains("queue-pool"));
    }
}

#[test]
fn a_suspended_service_accepts_nothing_until_it_is_resumed() {
    let process = Process::new();
    process.process("static Transfer '-p 0 -a accept-pool'").unwrap();
    let address = process.address("Transfer");
    let before = greeted(&address);
    process.process("suspend Transfer").unwrap();
    let waiting = TcpStream::connect(&address).unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(read_some(&waiting, &mut [0]).is_err(), "it is not accepted");
    request(&before);
    process.process("resume Transfer").unwrap();
    waiting.set_read_timeout(Some(LONG)).unwrap();
    (&waiting).read_exact(&mut [0; 7]).unwrap();
    request(&waiting);
}

#[test]
fn a_removed_service_closes_its_port_and_serves_its_connections_to_their_end() {
    let process = Process::new();
    process.process("static Transfer '-p 0 -a reactive'").unwrap();
    let address = process.address("Transfer");
    let before = greeted(&address);
    process.process("remove Transfer").unwrap();
    request(&before);
    drop(before);
    eventually(|| TcpStream::connect(&address).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn processes_serve_in_the_executable() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "the end\n").unwrap();
    let service = format!("static HttpServer \"-p 0 -r {} -a process-per-connection\"", folder.path().display());
    let transfer = "static Transfer \"-p 0 -a pre-forked -w 2\"";
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-serve"));
    command.args(["-S", &service, "-S", transfer]).current_dir(folder.path()).stdout(Stdio::piped());
    let mut child = spandrel_test_support::ChildProcess::start(&mut command);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut address = |name: &str| {
        let line = lines.next().unwrap().unwrap();
        let rest = line.strip_prefix(&format!("ready: {name} ")).unwrap_or_else(|| panic!("{line}"));
        rest.split('/').next().unwrap().to_owned()
    };
    let (http, transfer) = (address("HttpServer"), address("Transfer"));
    assert!(get(&TcpStream::connect(http).unwrap(), "/a.txt").starts_with("HTTP/1.1 200 "));
    request(&greeted(&transfer));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}
