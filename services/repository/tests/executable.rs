//! The executable `spandrel-repository`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::dynamic::describe;
use spandrel::services::repository::{Changes, fill, print};
use spandrel::{ObjectRef, Orb};
use spandrel_test_support::{ChildProcess, check_output_errors, wait_until};

use crate::support::{call, lookup_id, make, send};

/// A process that serves the store in this folder, and its URL.
struct Process {
    child: ChildProcess,
    url: String,
}

impl Process {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-repository"));
        command.args(["--listen", "iiop://127.0.0.1:0", "--data"]).arg(folder).stdout(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
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

/// Modules in one container: created, renamed and destroyed by one thread.
fn change(container: &ObjectRef, names: &mut BTreeSet<String>) -> Result<(), spandrel::SystemException> {
    let name = format!("X{}", fastrand::u32(..12));
    if !names.contains(&name) {
        names.insert(name.clone());
        let id = format!("IDL:{name}/{}:1.0", fastrand::u64(..));
        return call::<Option<ObjectRef>>(container, "create_module", &[&id, &name, &"1.0"]).map(drop);
    }
    let found = call::<Option<ObjectRef>>(container, "lookup", &[&name])?.expect("an acknowledged definition");
    names.remove(&name);
    if fastrand::bool() {
        return send(&found, "destroy", &[]);
    }
    let new = format!("Y{}", fastrand::u64(..));
    names.insert(new.clone());
    send(&found, "move", &[&Some(container.clone()), &new, &"1.0"])
}

fn names_in(container: &ObjectRef) -> BTreeSet<String> {
    // `dk_all` is 1 (CORBA 3.3 Part 1, 14.5.1).
    let contents: Vec<Option<ObjectRef>> = call(container, "contents", &[&1_u32, &true]).expect("contents");
    contents.iter().flatten().map(|it| call::<String>(it, "_get_name", &[]).expect("a name")).collect()
}

/// Each round ends the service at another instant. `SPANDREL_KILLS` is the number of rounds.
#[test]
fn acknowledged_changes_survive_kill_9_under_load() {
    const WORKERS: usize = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let rounds = std::env::var("SPANDREL_KILLS").map_or(5, |rounds| rounds.parse().expect("a number"));
    let mut known = Vec::<[BTreeSet<String>; 2]>::new();
    let (mut changes, mut uncertain) = (0, 0);
    for round in 0..=rounds {
        let client = Orb::builder().build().expect("an ORB");
        let mut process = Process::start(folder.path());
        let root = client.string_to_object(&process.url).expect("a URL");
        let containers: Vec<ObjectRef> = (0..WORKERS)
            .map(|worker| {
                let (id, name) = (format!("IDL:W{worker}:1.0"), format!("W{worker}"));
                lookup_id(&root, &id).unwrap_or_else(|| make(&root, "create_module", &[&id, &name, &"1.0"]))
            })
            .collect();
        let present: Vec<_> = containers.iter().map(names_in).collect();
        for (found, [acknowledged, perhaps]) in present.iter().zip(&known) {
            assert!(found == acknowledged || found == perhaps, "{found:?}\n{acknowledged:?}\n{perhaps:?}");
            uncertain += usize::from(acknowledged != perhaps && found == perhaps);
        }
        if round == rounds {
            break;
        }
        let acknowledged = AtomicUsize::new(0);
        known = std::thread::scope(|scope| {
            let worker = |(container, mut names): (ObjectRef, BTreeSet<String>)| {
                let acknowledged = &acknowledged;
                scope.spawn(move || {
                    loop {
                        let before = names.clone();
                        if change(&container, &mut names).is_err() {
                            return [before, names];
                        }
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                })
            };
            let workers: Vec<_> = containers.into_iter().zip(present).map(worker).collect();
            let instant = fastrand::usize(1..100);
            wait_until("changes", || acknowledged.load(Ordering::Relaxed) >= instant);
            process.child.kill().expect("it runs");
            workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
        });
        changes += acknowledged.load(Ordering::Relaxed);
        client.shutdown().expect("the end");
    }
    println!("{rounds} ends, {changes} acknowledged changes; {uncertain} changes were made and not acknowledged");
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

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    Process::start(folder.path()).kill();
    for words in [&["--help"][..], &["check"]] {
        check_output_errors(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-repository"));
            command.arg("--data").arg(folder.path()).args(words);
            command
        });
    }
}

#[test]
fn a_running_service_makes_a_backup_by_command() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(&folder.path().join("data"));
    let client = Orb::builder().build().unwrap();
    let root = client.string_to_object(&process.url).unwrap();
    make(&root, "create_module", &[&"IDL:M:1.0", &"M", &"1.0"]);
    let address = process.url.trim_start_matches("corbaloc::").trim_end_matches("/InterfaceRepository");
    let backup = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-repository"));
        command.args(["backup", "--server", address, "--timeout", "60"]).args(words).output().unwrap()
    };
    let output = backup(&["monday"]);
    let file = folder.path().join("data/backups/repository/monday");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", file.display()), "{output:?}");
    let again = backup(&["monday"]);
    let errors = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(1) && errors.contains("exists") && errors.lines().count() == 1, "{errors}");
    process.kill();
    let restored = folder.path().join("restored");
    std::fs::create_dir(&restored).unwrap();
    std::fs::copy(file, restored.join("repository.redb")).unwrap();
    let process = Process::start(&restored);
    let root = client.string_to_object(&process.url).unwrap();
    assert!(lookup_id(&root, "IDL:M:1.0").is_some());
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path());
    spandrel_test_support::threads::check_daemon(process.child.id());
}
