//! The executable `spandrel-repository`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use spandrel::Orb;
use spandrel::dynamic::describe;
use spandrel::services::repository::{Changes, fill, print};

/// A process that serves the store in this folder, and its URL.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_spandrel-repository"))
            .args(["--listen", "iiop://127.0.0.1:0", "--data"])
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("ready: InterfaceRepository ").expect("the line of readiness").to_owned();
        Self { child, url }
    }

    /// Ends it at once, as `kill -9` does.
    fn kill(self) {
        drop(self);
    }
}

/// A failed test leaves no process behind.
impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn acknowledged_definitions_survive_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = Orb::builder().build().expect("an ORB");
    let mut text = String::new();
    for round in 0..5 {
        let process = Process::start(folder.path());
        let root = client.string_to_object(&process.url).expect("a URL");
        assert_eq!(print(&root, None).expect("IDL"), text, "before round {round}");
        let idl = format!(
            "module M{round} {{ struct S {{ sequence<long, {}> them; }}; interface I {{ S get(); }}; }};",
            round + 1
        );
        let idl = describe(&idl).expect("valid IDL");
        let changes = fill(&root, &idl).expect("definitions");
        assert_eq!(changes.created.len(), 4, "{changes:?}");
        text = print(&root, None).expect("IDL");
        process.kill();
    }
    let process = Process::start(folder.path());
    let root = client.string_to_object(&process.url).expect("a URL");
    let idl = describe(&text).expect("valid IDL");
    // Modules have no content of their own that could differ.
    assert_eq!(fill(&root, &idl).expect("the same"), Changes { unchanged: 15, ..Changes::default() });
    process.kill();
    client.shutdown().expect("the end");
}

#[test]
fn a_damaged_store_ends_it_with_code_4() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("repository.redb"), "no database").expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_spandrel-repository"))
        .args(["--listen", "iiop://127.0.0.1:0", "--data"])
        .arg(folder.path())
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("repository.redb"), "{said}");
}
