//! Reading of configuration files again, after changes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use spandrel_test_support::eventually;

use super::{names, recorders};
use crate::{Configurator, Options, Reload};

/// Writes a file in one step.
fn write(file: &Path, text: &str) {
    let temporary = file.with_extension("new");
    fs::write(&temporary, text).unwrap();
    // Windows refuses that while the file is read.
    eventually(|| fs::rename(&temporary, file).is_ok());
}

fn open(configurator: &Configurator, file: &Path) {
    let options = Options { files: vec![file.to_owned()], directives: vec!["static E".into()], ..Options::default() };
    configurator.open(&options).unwrap();
}

#[test]
fn a_file_is_applied_as_a_difference() {
    let (configurator, journal, _reactor) = recorders();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("svc.conf");
    write(&file, "static A\nstatic B 'x'\nstatic C");
    open(&configurator, &file);
    assert_eq!(names(&configurator), ["A", "B", "C", "E"]);
    journal.take();
    assert!(configurator.reconfigure().unwrap().is_empty());
    write(&file, "static D\nstatic A\nstatic B 'y'\nsuspend A");
    let changes = configurator.reconfigure().unwrap();
    assert_eq!(changes.to_string(), "added D; replaced B; removed C; suspended A");
    assert_eq!(names(&configurator), ["D", "A", "B", "E"], "a service of the command line stays");
    assert!(!journal.take().iter().any(|call| call.starts_with("E ") || *call == "A fini"));
}

#[test]
fn a_bad_file_changes_nothing() {
    let (configurator, journal, _reactor) = recorders();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("svc.conf");
    write(&file, "static A\nstatic B");
    open(&configurator, &file);
    journal.take();
    for bad in
        ["static A\nstatc C", "static C\nstatic Unknown", "static D 'fail=init'\nstatic A\nstatic B", "include gone"]
    {
        write(&file, bad);
        assert!(configurator.reconfigure().is_err(), "{bad}");
        assert_eq!(names(&configurator), ["A", "B", "E"]);
        assert!(!journal.take().iter().any(|call| call.starts_with("A ") || call.starts_with("B ")), "{bad}");
    }
    fs::remove_file(&file).unwrap();
    assert!(configurator.reconfigure().unwrap_err().to_string().starts_with("cannot read "));
    write(&file, "static A\nstatic B\nstatic C");
    assert_eq!(configurator.reconfigure().unwrap().added, ["C"]);
}

#[test]
fn a_changed_file_is_read_by_itself() {
    let (configurator, _journal, _reactor) = recorders();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("svc.conf");
    write(&file, "static A");
    open(&configurator, &file);
    let reload = Reload::start(&configurator, Some(Duration::from_millis(5))).unwrap();
    write(&file, "static A\nstatic B");
    eventually(|| names(&configurator) == ["A", "B", "E"]);
    write(&file, "wrong");
    eventually(|| matches!(reload.last(), Some(Err(_))));
    assert_eq!(names(&configurator), ["A", "B", "E"]);
    write(&file, "static B");
    eventually(|| names(&configurator) == ["B", "E"]);
}

#[cfg(unix)]
#[test]
fn a_signal_makes_the_files_be_read() {
    use spandrel_reactor::Signal;

    let (configurator, _journal, reactor) = recorders();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("svc.conf");
    write(&file, "static A");
    open(&configurator, &file);
    let reload = Reload::start(&configurator, None).unwrap().on_signal(&configurator, Signal::USR2).unwrap();
    let running = reactor.clone();
    let thread = std::thread::spawn(move || running.run().unwrap());
    write(&file, "static B");
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR2).unwrap();
    eventually(|| reload.readings() == 1);
    assert_eq!(names(&configurator), ["B", "E"]);
    drop(reload);
    reactor.stop();
    thread.join().unwrap();
}
