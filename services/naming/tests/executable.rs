//! The executable: readiness, exit codes, foreign clients, and its end at any instant.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::services::cos_naming::naming_context::{BindError, RebindError};
use spandrel::services::cos_naming::{Binding, BindingType, NameComponent, NamingContextExt};
use spandrel::{ObjectRef, Orb, SystemException};
use spandrel_test_support::{ChildProcess, check_output_errors, free_port, wait_until};

fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-naming"));
    command.arg("--data").arg(data).env_remove("SPANDREL_LOG");
    command
}

/// A running service, which is killed when dropped.
struct Running {
    process: ChildProcess,
    /// The address as `HOST:PORT`.
    address: String,
}

impl Running {
    fn start(data: &Path, endpoint: &str) -> Self {
        Self::start_with(data, endpoint, &[])
    }

    fn start_with(data: &Path, endpoint: &str, options: &[&str]) -> Self {
        let mut command = command(data);
        command.args(options);
        command.args(["--listen", endpoint]).env("SPANDREL_LOG", "error").stdout(Stdio::piped());
        let mut process = ChildProcess::start(&mut command);
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("ready: NameService corbaloc::").unwrap_or_else(|| panic!("{line}"));
        Self { address: url.strip_suffix("/NameService").unwrap().to_owned(), process }
    }

    fn root(&self, orb: &Orb) -> NamingContextExt {
        let url = format!("corbaloc::{}/NameService", self.address);
        NamingContextExt::unchecked_narrow(&orb.string_to_object(&url).unwrap())
    }
}

pub(crate) fn name(id: &str) -> [NameComponent; 1] {
    [NameComponent { id: id.to_owned(), kind: String::new() }]
}

pub(crate) fn object(orb: &Orb) -> ObjectRef {
    orb.string_to_object("corbaloc::127.0.0.1:9/object").unwrap()
}

#[cfg(unix)]
#[test]
fn sigterm_ends_it_in_order_and_its_state_remains() {
    let data = tempfile::tempdir().unwrap();
    let orb = Orb::builder().build().unwrap();
    let mut first = Running::start(data.path(), "iiop://127.0.0.1:0");
    first.root(&orb).bind(&name("a"), Some(&object(&orb))).unwrap();
    assert!(Command::new("kill").arg(first.process.id().to_string()).status().unwrap().success());
    assert_eq!(first.process.wait().unwrap().code(), Some(0));
    let second = Running::start(data.path(), "iiop://127.0.0.1:0");
    let found = second.root(&orb).resolve(&name("a")).unwrap().unwrap();
    assert!(found.is_equivalent(&object(&orb)));
}

/// The names in a context, with the number of their object; contexts have none.
type Names = BTreeMap<String, Option<usize>>;

/// A change of one name.
fn change(context: &NamingContextExt, objects: &[ObjectRef], names: &mut Names) -> Result<(), SystemException> {
    let nth = fastrand::usize(..objects.len());
    let id = format!("n{}", fastrand::usize(..12));
    let name = name(&id);
    let of_bind = |error| match error {
        BindError::System(exception) => exception,
        other => panic!("{other}"),
    };
    let of_rebind = |error| match error {
        RebindError::System(exception) => exception,
        other => panic!("{other}"),
    };
    match (names.get(&id), fastrand::u8(..4)) {
        (None, 0) => {
            names.insert(id, None);
            context.bind_new_context(&name).map(drop).map_err(of_bind)
        }
        (None, _) => {
            names.insert(id, Some(nth));
            context.bind(&name, Some(&objects[nth])).map_err(of_bind)
        }
        (Some(Some(_)), 0..=2) => {
            names.insert(id, Some(nth));
            context.rebind(&name, Some(&objects[nth])).map_err(of_rebind)
        }
        (Some(_), _) => {
            names.remove(&id);
            context.unbind(&name).map_err(of_rebind)
        }
    }
}

/// The names as the service has them.
fn names_in(context: &NamingContextExt, objects: &[ObjectRef]) -> Names {
    let (bindings, rest) = context.list(100).unwrap();
    assert_eq!(rest, None);
    let with_number = |binding: Binding| {
        let target = context.resolve(&binding.binding_name).unwrap().unwrap();
        let number = objects.iter().position(|object| object.is_equivalent(&target));
        assert_eq!(number.is_none(), binding.binding_type == BindingType::Ncontext);
        (binding.binding_name[0].id.clone(), number)
    };
    bindings.into_iter().map(with_number).collect()
}

/// Each round ends the service at another instant. `SPANDREL_KILLS` is the number of rounds.
#[test]
fn acknowledged_changes_survive_kill_9_under_load() {
    const WORKERS: usize = 4;
    let data = tempfile::tempdir().unwrap();
    let rounds = std::env::var("SPANDREL_KILLS").map_or(5, |rounds| rounds.parse().unwrap());
    let mut known = Vec::<[Names; 2]>::new();
    let (mut changes, mut uncertain) = (0, 0);
    for round in 0..=rounds {
        let orb = Orb::builder().build().unwrap();
        let mut running = Running::start(data.path(), "iiop://127.0.0.1:0");
        let root = running.root(&orb);
        let url = |nth| format!("corbaloc::127.0.0.1:9/object{nth}");
        let objects: Vec<_> = (0..5).map(|nth| orb.string_to_object(&url(nth)).unwrap()).collect();
        let contexts: Vec<NamingContextExt> = (0..WORKERS)
            .map(|worker| {
                let name = name(&worker.to_string());
                if round == 0 {
                    root.bind_new_context(&name).unwrap();
                }
                root.resolve(&name).unwrap().unwrap().unchecked_narrow()
            })
            .collect();
        let present: Vec<Names> = contexts.iter().map(|context| names_in(context, &objects)).collect();
        for (found, [acknowledged, perhaps]) in present.iter().zip(&known) {
            assert!(found == acknowledged || found == perhaps, "{found:?}\n{acknowledged:?}\n{perhaps:?}");
            uncertain += usize::from(acknowledged != perhaps && found == perhaps);
        }
        if round == rounds {
            break;
        }
        let acknowledged = AtomicUsize::new(0);
        known = std::thread::scope(|scope| {
            let workers: Vec<_> = contexts
                .iter()
                .zip(present)
                .map(|(context, mut names)| {
                    let (objects, acknowledged) = (&objects, &acknowledged);
                    scope.spawn(move || {
                        loop {
                            let before = names.clone();
                            if change(context, objects, &mut names).is_err() {
                                return [before, names];
                            }
                            acknowledged.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            let instant = fastrand::usize(1..100);
            wait_until("changes", || acknowledged.load(Ordering::Relaxed) >= instant);
            running.process.kill().unwrap();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        changes += acknowledged.load(Ordering::Relaxed);
        orb.shutdown().unwrap();
    }
    println!("{rounds} ends, {changes} acknowledged changes; {uncertain} changes were made and not acknowledged");
}

/// `SPANDREL_SOAK` is the number of rounds.
#[cfg(target_os = "linux")]
#[test]
fn neither_memory_nor_file_grow_with_changes_and_forgotten_iterators() {
    let data = tempfile::tempdir().unwrap();
    let orb = Orb::builder().build().unwrap();
    let running = Running::start_with(data.path(), "iiop://127.0.0.1:0", &["--sync-interval", "20"]);
    let (root, object) = (running.root(&orb), object(&orb));
    let rounds: usize = std::env::var("SPANDREL_SOAK").map_or(600, |rounds| rounds.parse().unwrap());
    let used = || {
        let status = fs::read_to_string(format!("/proc/{}/status", running.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let memory: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        (memory, fs::metadata(data.path().join("naming.redb")).unwrap().len() >> 10)
    };
    let mut early = (0, 0);
    for round in 0..rounds {
        if round == rounds / 4 {
            early = used();
        }
        let inner = name(&format!("inner{round}"));
        let context = root.bind_new_context(&inner).unwrap().unwrap();
        for nth in 0..5 {
            context.bind(&name(&nth.to_string()), Some(&object)).unwrap();
        }
        assert!(context.list(1).unwrap().1.is_some(), "an iterator, which no client destroys");
        for nth in 0..5 {
            context.unbind(&name(&nth.to_string())).unwrap();
        }
        root.unbind(&inner).unwrap();
        context.destroy().unwrap();
    }
    let late = used();
    println!("{rounds} rounds: {early:?} kB of memory and file after a quarter, {late:?} at the end");
    assert!(late.0 < early.0 + 16_384 && late.1 <= 2 * early.1 + 1_024, "{early:?} {late:?}");
}

#[test]
fn nameclt_of_omniorb_works_unchanged() {
    if Command::new("nameclt").output().is_err() {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "nameclt is absent (package omniorb)");
        eprintln!("absent: nameclt (package omniorb)");
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    let init = format!("NameService=corbaloc::{}/NameService", running.address);
    let run = |words: &[&str]| {
        let output = Command::new("nameclt").args(["-ORBInitRef", &init]).args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.success(), text)
    };
    let target = "corbaloc::127.0.0.1:9/object";
    for words in [
        &["bind_new_context", "bank.dir"][..],
        &["bind", r"bank.dir/grace\.hopper.account", target],
        &["bind", "plain", target],
        &["-advanced", "rebind", "plain", target],
        &["bind_new_context", "empty"],
        &["remove_context", "empty"],
    ] {
        let (is_done, text) = run(words);
        assert!(is_done, "{words:?}: {text}");
    }
    let listed = run(&["list"]).1;
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(listed, ["bank.dir/", "plain"]);
    assert_eq!(run(&["list", "bank.dir"]).1.trim(), r"grace\.hopper.account");
    assert!(run(&["resolve", "plain"]).1.starts_with("IOR:"));
    assert!(run(&["resolve", "none"]).1.contains("NotFound"), "{}", run(&["resolve", "none"]).1);
    assert!(run(&["bind", "plain", target]).1.contains("AlreadyBound"));
    assert!(run(&["remove_context", "bank.dir"]).1.contains("NotEmpty"), "{}", run(&["remove_context", "bank.dir"]).1);
    assert!(run(&["unbind", "plain"]).0);
}

/// Runs the executable to its end; returns its exit code and its errors.
fn fails(command: &mut Command) -> (Option<i32>, String) {
    let output = command.stdout(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn wrong_input_has_an_error_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let running = Running::start(&data, "iiop://127.0.0.1:0");
    let taken = format!("iiop://{}", running.address);
    let other = folder.path().join("other");
    let cases: [(&Path, &[&str], i32, &str); 6] = [
        (&data, &[], 4, "is in use by another process (--data)"),
        (&data, &["check"], 4, "another process uses it"),
        (&other, &["--listen", &taken], 3, "cannot listen (--listen)"),
        (&other, &["--orb", "-ORBNoSuch yes"], 2, "-ORBNoSuch"),
        (&other, &["--cert", "none.pem", "--key", "none.pem"], 2, "cannot read none.pem"),
        (&other, &["check"], 4, "there is no store"),
    ];
    for (data, words, code, text) in cases {
        let (found, errors) = fails(command(data).args(words));
        assert!(errors.contains(text) && errors.starts_with("error: "), "{words:?}: {errors}");
        assert_eq!(found, Some(code), "{words:?}: {errors}");
    }
    let after_the_command = command(&data).args(["check", "--data", other.to_str().unwrap()]).output().unwrap();
    let errors = String::from_utf8(after_the_command.stderr).unwrap();
    assert!(errors.contains(other.to_str().unwrap()), "{errors}");
    drop(running);
    let store = data.join("naming.redb");
    fs::write(&store, "no database").unwrap();
    // The standard port may be in use.
    let (code, errors) = fails(command(&data).args(["--listen", "iiop://127.0.0.1:0"]));
    assert_eq!(code, Some(4), "{errors}");
    assert!(errors.contains("cannot open the store"), "{errors}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (code, errors) = fails(&mut command(&file));
    assert_eq!(code, Some(4), "{errors}");
    assert!(errors.contains("cannot create the data folder"), "{errors}");
}

#[test]
fn a_damaged_redo_log_ends_it_with_code_4_and_recover_says_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let orb = Orb::builder().build().unwrap();
    let running = Running::start(folder.path(), "iiop://127.0.0.1:0");
    for nth in 0..20 {
        running.root(&orb).bind(&name(&format!("name{nth}")), Some(&object(&orb))).unwrap();
    }
    drop(running); // killed
    let log = folder.path().join("naming.redb.log");
    let mut octets = fs::read(&log).unwrap();
    (560..octets.len()).step_by(50).for_each(|place| octets[place] ^= 0xff);
    fs::write(&log, octets).unwrap();
    for words in [&["--listen", "iiop://127.0.0.1:0"][..], &["check"], &["export", "none.dat"]] {
        let (code, errors) = fails(command(folder.path()).args(words));
        assert_eq!(code, Some(4), "{words:?}: {errors}");
        assert!(
            errors.contains("naming.redb.log: it is damaged at octet 512") && errors.contains("`recover`"),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert_eq!(errors.matches("it is damaged at octet 512").count(), 1, "{errors}");
    }
    let output = command(folder.path()).arg("recover").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("lost: it is damaged at octet 512, after 0 changes"), "{errors}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "the store has 1 bindings\n");
    let checked = command(folder.path()).arg("check").output().unwrap();
    assert_eq!(String::from_utf8(checked.stdout).unwrap(), "the store is sound: 1 bindings\n");
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    drop(Running::start(folder.path(), "iiop://127.0.0.1:0"));
    for words in [&["--help"][..], &["check"]] {
        check_output_errors(|| {
            let mut command = command(folder.path());
            command.args(words);
            command
        });
    }
    // A service whose readiness cannot be told. Other systems have no such device.
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else { return };
    let output = command(folder.path()).args(["--listen", "iiop://127.0.0.1:0"]).stdout(full).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && errors.contains("cannot write to standard output"), "{errors}");
}

#[test]
fn a_backup_ends_with_its_time_limit_at_a_silent_service() {
    // It accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let words = ["backup", "monday", "--server", &address, "--timeout", "1"];
    let (code, errors) = fails(command(folder.path()).args(words));
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("no backup by the service at 127.0.0.1:") && errors.contains("TIMEOUT"), "{errors}");
}

#[test]
fn a_backup_is_that_of_the_initial_reference_unless_a_server_is_given() {
    let data = tempfile::tempdir().unwrap();
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    let orb = Orb::builder().build().unwrap();
    let ior = format!("{}", running.root(&orb));
    let url = format!("corbaloc::{}/NameService", running.address);
    let elsewhere = tempfile::tempdir().unwrap();
    let backup = |name: &str, words: &[&str]| {
        let output = command(elsewhere.path()).args(["backup", name]).args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    for (copy, reference) in [("by-url", &url), ("by-ior", &ior)] {
        let option = format!("-ORBInitRef NameService={reference}");
        let copy_file = data.path().join("backups/naming").join(copy);
        assert_eq!(backup(copy, &["--orb", &option]), (Some(0), format!("{}\n", copy_file.display())));
        assert!(copy_file.exists());
    }
    // Nothing listens there: no other service takes the place of the given one.
    let gone = format!("127.0.0.1:{}", free_port());
    let option = format!("-ORBInitRef NameService=corbaloc::{gone}/NameService");
    let (code, text) = backup("none", &["--orb", &option]);
    assert!(code == Some(1) && text.contains(&format!("iiop://{gone}")), "{text}");
    assert_eq!(backup("given", &["--orb", &option, "--server", &running.address]).0, Some(0));
    let (code, text) = backup("none", &["--orb", "-ORBInitRef NameService=garbage"]);
    assert!(code == Some(1) && text.contains("given initial reference `NameService`: `garbage`"), "{code:?}: {text}");
}

#[test]
fn who_connects_first_is_answered_by_the_naming_service() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut command = command(folder.path());
    command.args(["--listen", &format!("iiop://127.0.0.1:{port}")]).stdout(Stdio::null());
    let _process = ChildProcess::start(&mut command);
    // It has the port before it has read its store.
    wait_until("a port", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let orb = Orb::builder().build().unwrap();
    let root = orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/NameService")).unwrap();
    assert!(!root.non_existent().unwrap());
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start_with(folder.path(), "iiop://127.0.0.1:0", &[]);
    let orb = Orb::builder().build().unwrap();
    running.root(&orb).bind(&name("a"), Some(&object(&orb))).unwrap();
    spandrel_test_support::threads::check_daemon(running.process.id());
}
