//! The program of paper 000 in its three forms: plain C, typed endpoints, and CORBA.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spandrel_test_support::{ChildProcess, pattern};

use crate::programs::{build_service, example, example_path};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data_stream")
}

/// Sends these octets by a client, and checks that it ends and that the server prints them.
fn check_flow(mut client: Command, server: &mut ChildProcess, octets: &[u8]) {
    let mut client = ChildProcess::start(client.stdin(Stdio::piped()));
    let (mut input, sent) = (client.stdin.take().unwrap(), octets.to_vec());
    let sender = std::thread::spawn(move || input.write_all(&sent));
    let mut received = vec![0; octets.len()];
    server.stdout.as_mut().unwrap().read_exact(&mut received).unwrap();
    sender.join().unwrap().unwrap();
    assert!(client.wait().unwrap().success() && received == octets);
}

/// Two clients in turn, as the server is an iterative one.
#[test]
fn octets_flow_in_plain_c() {
    let programs = tempfile::tempdir().unwrap();
    let compiled = |name: &str| {
        let program = programs.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-Wall", "-Wextra", "-Werror", "-O2", "-o"]).arg(&program);
        let compiled = compiler.arg(folder().join(format!("{name}.c"))).status();
        assert!(compiled.expect("this test needs a C compiler: apt-get install gcc").success(), "{name}.c");
        program
    };
    let mut server = Command::new(compiled("server"));
    let mut server = ChildProcess::start(server.arg("0").stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut notes = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let listening = notes.next().unwrap();
    let port = listening.strip_prefix("listening at port ").unwrap();
    let client = compiled("client");
    for length in [1, 300_000] {
        let mut command = Command::new(&client);
        command.args(["127.0.0.1", port]);
        check_flow(command, &mut server, &pattern(length));
        assert!(notes.next().unwrap().ends_with(" connected"));
        assert!(notes.next().unwrap().ends_with(&format!(" sent {length} octets")));
    }
    drop(server);
    let refused = Command::new(&client).args(["127.0.0.1", port]).stdin(Stdio::null()).output().unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).starts_with("connect: "));
}

/// The server registers with the activator, by which the client finds it.
#[test]
fn octets_flow_by_calls_on_a_server_that_the_activator_names() {
    build_service("activator");
    let folder = tempfile::tempdir().unwrap();
    let server_path = example_path("data-stream-corba-server");
    let commands = format!("[commands.data-stream]\nprogram = {:?}\n", server_path.to_str().unwrap());
    std::fs::write(folder.path().join("commands.toml"), commands).unwrap();
    let activator_path = server_path.with_file_name("..").join("spandrel-activator");
    let mut activator = Command::new(&activator_path);
    activator.env_remove("SPANDREL_ACTIVATOR").arg("--data").arg(folder.path());
    activator.args(["--listen", "iiop://127.0.0.1:0"]).stdout(Stdio::piped());
    let mut activator = ChildProcess::start(&mut activator);
    let mut line = String::new();
    BufReader::new(activator.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("ready: ImplRepoService ").unwrap_or_else(|| panic!("{line}"));
    let repository = format!("ImplRepoService={url}");
    let address = url.strip_prefix("corbaloc::").and_then(|url| url.strip_suffix("/ImplRepoService")).unwrap();
    // Started by hand, as the persistent server of the paper.
    let mut add = Command::new(&activator_path);
    assert!(add.args(["--server", address, "add", "Data_Stream", "--mode", "manual"]).status().unwrap().success());
    let client = |marker: &str| {
        let mut client = example("data-stream-corba-client");
        client.args([marker, "-ORBInitRef", &repository]);
        client
    };

    let mut server = Command::new(&server_path);
    server.args(["images", "-ORBListenEndpoints", "iiop://127.0.0.1:0", "-ORBInitRef", &repository]);
    let mut server = ChildProcess::start(server.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut notes = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(notes.next().unwrap(), "ready");
    for length in [1, 300_000] {
        check_flow(client("images"), &mut server, &pattern(length));
    }
    let fails = |marker: &str| {
        let mut client = ChildProcess::start(client(marker).stdin(Stdio::piped()).stderr(Stdio::piped()));
        client.stdin.take().unwrap().write_all(b"1").unwrap();
        let mut text = String::new();
        client.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(!client.wait().unwrap().success());
        text
    };
    assert!(fails("none").contains("OBJECT_NOT_EXIST"), "there is no such marker");
    drop(server.stdout.take());
    assert!(fails("images").contains("Disconnected"), "the output of the server has ended");
}

/// The lines of a file with code.
fn lines(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let is_code = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !["//", "/*", "*"].iter().any(|begin| line.starts_with(begin))
    };
    text.lines().filter(is_code).count()
}

#[test]
fn the_lines_in_the_book_are_those_of_the_programs() {
    let count = |names: &[&str]| names.iter().map(|name| lines(&folder().join(name)).to_string()).collect::<Vec<_>>();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/network.md");
    let page = std::fs::read_to_string(page).unwrap();
    for files in [
        &["client.c", "server.c"][..],
        &["client.rs", "server.rs"],
        &["corba_client.rs", "corba_server.rs", "data_stream.idl"],
    ] {
        let names: Vec<String> = files.iter().map(|name| format!("`{name}`")).collect();
        let end = format!("({}) | {} |", names.join(", "), count(files).join(" | "));
        assert!(page.contains(&end), "docs/network.md needs the row: … {end}");
    }
    let [c, typed, corba] =
        [&["client.c", "server.c"], &["client.rs", "server.rs"], &["corba_client.rs", "corba_server.rs"]]
            .map(|files| files.iter().map(|name| lines(&folder().join(name))).sum::<usize>());
    assert!(corba < typed && typed < c, "as the paper says of its own: {corba}, {typed}, {c}");
}
