//! Runs the examples as described in the README, and compares the README with them.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpStream, UdpSocket},
    path::PathBuf,
    process::{Command, Stdio},
};

use spandrel_test_support::{ChildProcess, wait_until};

/// An example's executable, built by cargo beside this test; `cargo test --test programs` alone does not
/// build it, so this does.
pub(crate) fn example(name: &str) -> Command {
    Command::new(example_path(name))
}

/// The path of that executable.
pub(crate) fn example_path(name: &str) -> PathBuf {
    built(&format!("examples/{name}"), &[env!("CARGO_PKG_NAME"), "--example", name])
}

/// The path of the `spandrel` command.
#[cfg(unix)]
pub(crate) fn command_line() -> PathBuf {
    built("spandrel", &["spandrel-cli"])
}

/// Builds the executable of a service, which `spandrel NAME` runs.
pub(crate) fn build_service(name: &str) {
    let program = format!("spandrel-{name}");
    let package = if name == "av" { "spandrel-avstreams" } else { &program };
    built(&program, &[package]);
}

/// A program in the folder that this test is built into. If it is absent, `cargo build --package` with these
/// arguments builds it.
fn built(program: &str, package: &[&str]) -> PathBuf {
    let mut folder: PathBuf = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let path = folder.join(program).with_extension(std::env::consts::EXE_EXTENSION);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package"]).args(package);
        assert!(build.status().unwrap().success(), "{program} builds");
    }
    path
}

#[test]
fn the_quick_start_greets() {
    let mut server = ChildProcess::start(example("hello").stdout(Stdio::piped()));
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("IOR:"));
    assert_eq!(lines.next().unwrap(), "Hello, world!");
}

#[test]
fn the_control_loop_runs_each_operation_at_its_priority() {
    let output = example("real-time").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = [
        "actuator ran at 25000",
        "report ran at 100",
        "sensor ran at 20000",
        "step ran at 20000",
        "200 turns, the mean level is 500 mm\n",
    ];
    assert_eq!(String::from_utf8(output.stdout).unwrap(), lines.join("\n"));
}

/// One client and server, over each family.
#[test]
#[cfg(target_os = "linux")]
fn data_streams_flow_over_each_family() {
    let folder = tempfile::tempdir().unwrap();
    for family in ["inet", "unix", "spipe", "shm"] {
        let path = folder.path().join(family);
        let address = if family == "inet" { "127.0.0.1:0" } else { path.to_str().unwrap() };
        let mut server = example("data-stream-server");
        server.args([family, address]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = ChildProcess::start(&mut server);
        let mut notes = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
        let listening = notes.next().unwrap();
        let address = listening.strip_prefix("listening at ").unwrap();
        let mut client = example("data-stream-client");
        let mut client = ChildProcess::start(client.args([family, address]).stdin(Stdio::piped()));
        let text = "one line\n".repeat(20_000);
        client.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let mut received = vec![0; text.len()];
        server.stdout.take().unwrap().read_exact(&mut received).unwrap();
        assert!(client.wait().unwrap().success() && received == text.as_bytes(), "{family}");
        assert!(notes.next().unwrap().ends_with(" connected"), "{family}");
        assert!(notes.next().unwrap().ends_with(" sent 180000 octets"), "{family}");
    }
}

/// Images go to the server and back, by a UNIX-domain socket, by TCP, to a script, and by a client of omniORB.
#[test]
#[cfg(target_os = "linux")]
fn images_flow_beside_the_orb() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    std::fs::create_dir(&images).unwrap();
    let mut server = ChildProcess::start(example("bulk-server").arg(&images).stdout(Stdio::piped()));
    let mut reference = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut reference).unwrap();
    let client = |command: &str, name: &str, file: &[&std::path::Path]| {
        let output = example("bulk-client").args([reference.trim(), command, name]).args(file).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (scan, copy) = (folder.path().join("scan"), folder.path().join("copy"));
    let data = spandrel_test_support::pattern(12 << 20);
    std::fs::write(&scan, &data).unwrap();
    let (success, stdout, stderr) = client("put", "head.raw", &[&scan]);
    assert!(success && stdout.contains("12582912 octets, ") && stdout.contains(", Unix"), "{stdout}{stderr}");
    assert!(std::fs::read(images.join("head.raw")).unwrap() == data);
    let (success, stdout, stderr) = client("get", "head.raw", &[&copy]);
    assert!(success && stdout.contains(", PassedFile"), "{stdout}{stderr}");
    assert!(std::fs::read(&copy).unwrap() == data);
    for wrong in ["foot.raw", "../scan", ".bulk", ""] {
        let (success, _, stderr) = client("get", wrong, &[&copy]);
        assert!(!success && stderr.contains("NoSuchImage"), "{wrong}: {stderr}");
    }

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bulk/fetch.py");
    for index in [0, 1] {
        let (_, offer, stderr) = client("offer", "head.raw", &[]);
        let [unix, tcp, token] = offer.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{offer}{stderr}") };
        assert!(unix.starts_with("unix:/") && tcp.starts_with("tcp://127.0.0.1:"), "{offer}");
        let fetched = folder.path().join("fetched");
        let fetch =
            |token: &str| Command::new("python3").arg(script).args([[unix, tcp][index], token]).arg(&fetched).output();
        let output = fetch(token).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).lines().next(),
            stdout.trim().rsplit_once(", ").map(|it| it.0)
        );
        assert!(std::fs::read(&fetched).unwrap() == data);
        let output = fetch(token).unwrap();
        assert!(!output.status.success(), "a token is for one connection");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("refused: the token is unknown, used"), "{text}");
        assert!(std::fs::read(&fetched).unwrap() == data, "the file of before is untouched");
    }
    let names = |folder: &std::path::Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["copy", "fetched", "images", "scan"]);

    if let Some(omniorb) = spandrel_test_support::omniorb_peer("bulk/client", env!("CARGO_TARGET_TMPDIR").as_ref()) {
        let run = |command: &str, name: &str, file: &std::path::Path| {
            Command::new(&omniorb).args([reference.trim(), command, name]).arg(file).output().unwrap()
        };
        for (command, name, file) in [("get", "head.raw", "fetched"), ("put", "foot.raw", "scan")] {
            std::fs::write(folder.path().join("fetched"), "older").unwrap();
            let output = run(command, name, &folder.path().join(file));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
            let (octets, _) = stdout.trim().rsplit_once(", ").unwrap();
            assert_eq!(text, format!("{octets}, complete\n"));
        }
        assert!(std::fs::read(images.join("foot.raw")).unwrap() == data);
        let output = run("get", "none.raw", &folder.path().join("none"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "no such image: none.raw\n");
    }

    // A sender whose checksum is not that of its octets, and one that ends early.
    std::fs::write(folder.path().join("fetched"), &data).unwrap();
    for (cut, reason) in
        [(0, "the octets are not the ones that were sent"), (20, "the connection ended after 4 octets")]
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
        let sender = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 52]).unwrap();
            let mut octets = b"SPBULK\r\n\x01\x00\x00\x00".to_vec();
            octets.extend([0_u64.to_be_bytes(), 8_u64.to_be_bytes()].concat());
            octets.extend(b"\x01\0\0\0\0\0\0\x08datadata\x02\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x08\x01\0\0\0\0\0\0\x01");
            if cut > 0 {
                octets.truncate(octets.len() - cut - 8);
            }
            stream.write_all(&octets).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            _ = stream.read(&mut [0; 100]);
        });
        let mut fetch = Command::new("python3");
        fetch.args([script, &endpoint, &"00".repeat(32)]).arg(folder.path().join("fetched"));
        let output = fetch.output().unwrap();
        sender.join().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(reason), "{text}");
        assert!(std::fs::read(folder.path().join("fetched")).unwrap() == data);
        assert_eq!(names(folder.path()), ["copy", "fetched", "images", "scan"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn services_are_found_by_multicast() {
    let name = format!("bank-{}", std::process::id());
    let loopback = "127.0.0.1";
    let found = |name: &str| example("discovery").args(["find", name, loopback]).output().unwrap();
    let mut server = example("discovery");
    server.args(["answer", &name, "corbaloc::bank.example/Account", loopback]).stderr(Stdio::piped());
    let mut server = ChildProcess::start(&mut server);
    let mut notes = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(notes.next().unwrap(), format!("answering for {name}"));
    let output = found(&name);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "127.0.0.1: corbaloc::bank.example/Account\n");
    let output = found("nothing of this name");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody answers"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_magic_packet_is_broadcast() {
    let machine = UdpSocket::bind("0.0.0.0:0").unwrap();
    machine.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
    let port = machine.local_addr().unwrap().port().to_string();
    let mut wake = example("wake-on-lan");
    let output = wake.args(["00:16:3e:12:34:56", "127.0.0.1"]).env("PORT", port).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "sent over 1 of 1 networks\n");
    let mut packet = [0; 200];
    assert_eq!(spandrel_test_support::retry_interrupted(|| machine.recv(&mut packet)).unwrap(), 102);
    assert_eq!(packet[..12], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x16, 0x3e, 0x12, 0x34, 0x56]);
    assert_eq!(packet[96..102], packet[6..12]);
    assert!(!example("wake-on-lan").arg("00:16").output().unwrap().status.success());
}

#[test]
#[cfg(target_os = "linux")]
fn many_processes_have_one_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let path = path.to_str().unwrap();
    let mut reader = example("log-pipe");
    let mut reader = ChildProcess::start(reader.args(["read", path]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut notes = BufReader::new(reader.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(notes.next().unwrap(), format!("reading {path}"));
    for text in ["started\n", "one\ntwo\n"] {
        let mut writer = ChildProcess::start(example("log-pipe").args(["write", path]).stdin(Stdio::piped()));
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }
    let lines = BufReader::new(reader.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.take(3).collect::<Vec<_>>(), ["1: started", "2: one", "3: two"]);
}

#[test]
fn the_modules_of_streams_process_messages() {
    let output = example("streams").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "one\ntwo\n(1 missing) four\nfive\n");
}

#[test]
fn lines_enter_and_leave_a_configured_stream() {
    let folder = tempfile::tempdir().unwrap();
    let [directives, lines] = ["svc.conf", "lines.txt"].map(|name| folder.path().join(name));
    let text = include_str!("../streams/svc.conf")
        .replace("127.0.0.1:2817", "127.0.0.1:0")
        .replace("lines.txt", &lines.display().to_string());
    std::fs::write(&directives, text).unwrap();
    let mut program = ChildProcess::start(example("configured-stream").arg(&directives).stdout(Stdio::piped()));
    let mut listening = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut listening).unwrap();
    let address = listening.trim().strip_prefix("receiving at ").unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"one", address).unwrap();
    let content = || std::fs::read_to_string(&lines).unwrap_or_default();
    wait_until("the line has left the stream", || content() == "ONE\n");
    socket.send_to(b"two", address).unwrap();
    wait_until("the next line has left the stream", || content() == "ONE\nTWO\n");
}

#[test]
fn the_bank_serves_its_client() {
    let mut server = ChildProcess::start(example("bank-server").stdout(Stdio::piped()));
    let mut reference = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut reference).unwrap();
    let output = example("bank-client").arg(reference.trim()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "Grace has 500 cents\nrefused: only 500 cents are there\n");
}

#[test]
#[cfg(target_os = "linux")]
fn the_bank_shuts_down_when_it_is_told_to_end() {
    for signal in ["-TERM", "-INT"] {
        let mut server = ChildProcess::start(example("bank-server").stdout(Stdio::piped()));
        let mut reference = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut reference).unwrap();
        // The server handles signals once it prints nothing more: a client may come before.
        assert!(example("bank-client").arg(reference.trim()).output().unwrap().status.success());
        let handles_signals = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
            u64::from_str_radix(caught, 16).unwrap() & (1 << 14) != 0 // SIGTERM, the later one
        };
        while !handles_signals() {
            std::thread::yield_now();
        }
        let id = server.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(server.wait().unwrap().code(), Some(0), "an orderly end upon {signal}");
    }
}

#[test]
fn asynchronous_calls_can_be_awaited_called_back_and_polled() {
    let output = example("asynchronous").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines[0], lines[2], lines.len()), ("awaited: 20.5", "polled: 20.5", 3));
    assert!(lines[1].starts_with("called back: ") && lines[1].contains("NoSuchPlace"), "{said}");
}

#[test]
fn asynchronous_servants_run_in_tokio() {
    let output = example("with-tokio").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "here: 20.5\ntogether: true, false\nin time: false, false\n");
    // The pages that contain the advice.
    let advice = "move |task| drop(runtime.spawn(task))";
    for text in [
        include_str!("../tokio/main.rs"),
        include_str!("../../docs/mapping.md"),
        include_str!("../../orb/core/src/client/task.rs"),
        include_str!("../../orb/core/src/configuration/options/server.rs"),
    ] {
        assert!(text.contains(advice) && text.contains("Handle::current()"));
    }
}

#[test]
fn a_servant_stops_when_its_client_has_timed_out_or_cancelled() {
    let output = example("deadlines").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    // The order of these two reasons depends on timing: both sides check their clocks at the same time, and
    // the servant's output may arrive before its client has timed out.
    let reasons = ["the client's deadline has passed", "the client has cancelled the request"];
    assert!(["17: TIMEOUT", "17: TRANSIENT"].contains(&lines[0]), "{said}");
    assert_eq!(lines[1], "17: begun, in a hurry: true");
    assert!(reasons.iter().any(|reason| lines[2] == format!("17: stopped, {reason}")), "{said}");
    assert_eq!(lines[3..], ["23: begun, in a hurry: false", "23: stopped, the client has cancelled the request"]);
    let page = include_str!("../../docs/deadlines.md");
    assert!(page.contains(include_str!("../deadlines/main.rs")), "docs/deadlines.md does not show the example");
}

#[test]
fn the_echo_server_returns_its_input() {
    let lines = include_str!("../echo/server.rs").lines().count();
    assert!(lines <= 25, "{lines} lines");
    let mut server = ChildProcess::start(example("echo-server").stdout(Stdio::piped()));
    let mut addr = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut addr).unwrap();
    let mut clients: Vec<_> = (0..10).map(|_| TcpStream::connect(addr.trim()).unwrap()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let text = vec![number as u8; 100_000];
        client.write_all(&text).unwrap();
        let mut back = vec![0; text.len()];
        client.read_exact(&mut back).unwrap();
        assert_eq!(back, text);
    }
}

#[test]
fn the_readme_shows_the_examples() {
    let readme = include_str!("../../README.md");
    for (what, text) in
        [("hello.idl", include_str!("../hello/hello.idl")), ("the program hello", include_str!("../hello/main.rs"))]
    {
        assert!(readme.contains(text), "README.md does not show {what} of the examples");
    }
}
