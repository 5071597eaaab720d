//! The executable: subcommands, exit codes, and its end at any instant.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use spandrel::services::activation;
use spandrel::services::cos_trading::Lookup;
use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::services::cos_trading_repos::service_type_repository::{PropStruct, PropertyMode};
use spandrel::services::implementation_repository::ServerObject;
use spandrel::types::TypeCode;
use spandrel::{Endpoint, Orb};
use spandrel_test_support::{ChildProcess, check_output_errors, wait_until};
use spandrel_trading::{TradingOptions, TradingService};

use crate::fixture::{call_after_kill, starts};

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-activator"));
    command.env_remove("SPANDREL_LOG").env_remove("SPANDREL_ACTIVATOR");
    command
}

/// A running activator, which is killed when dropped.
struct Running {
    process: ChildProcess,
    /// The address as `HOST:PORT`.
    address: String,
}

impl Running {
    fn start(data: &Path, endpoint: &str) -> Self {
        Self::with_options(data, &["--listen", endpoint])
    }

    fn with_options(data: &Path, options: &[&str]) -> Self {
        let mut command = command();
        command.arg("--data").arg(data).args(["--kill-grace", "200"]).args(options).stdout(Stdio::piped());
        let mut process = ChildProcess::start(&mut command);
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("ready: ImplRepoService corbaloc::").unwrap_or_else(|| panic!("{line}"));
        Self { address: url.strip_suffix("/ImplRepoService").unwrap().to_owned(), process }
    }

    fn run(&self, words: &[&str]) -> Output {
        command().args(["--server", &self.address]).args(words).output().unwrap()
    }

    /// The output of a subcommand that succeeds.
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A subcommand in the background.
    fn begin(&self, words: &[&str]) -> Subcommand {
        let mut command = command();
        command.args(["--server", &self.address]).args(words).stderr(Stdio::piped());
        Subcommand(ChildProcess::start(&mut command))
    }

    fn object(&self, server: &str) -> ServerObject {
        let url = format!("corbaloc::{}/ImplRepoService", self.address);
        let orb = Orb::builder().init_ref("ImplRepoService", url).build().unwrap();
        activation::bind(&orb, server, "grace").unwrap().unchecked_narrow()
    }
}

/// A running subcommand, which is killed when dropped.
struct Subcommand(ChildProcess);

impl Subcommand {
    /// Waits until it has failed. Returns its error without the beginning of the line.
    fn error(mut self) -> String {
        wait_until("the end of the subcommand", || self.0.try_wait().unwrap().is_some());
        assert_eq!(self.0.wait().unwrap().code(), Some(1));
        let text = std::io::read_to_string(self.0.stderr.take().unwrap()).unwrap();
        let line = text.strip_suffix('\n').unwrap_or_else(|| panic!("{text}"));
        assert!(line.starts_with("error: cannot start server `") && !line.contains('\n'), "{text}");
        line.split(": ").skip(2).collect::<Vec<_>>().join(": ")
    }
}

fn folder(behaviour: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let commands = format!("[commands.bank]\n{}", crate::server::command(folder.path(), behaviour));
    std::fs::write(folder.path().join("commands.toml"), commands).unwrap();
    folder
}

#[test]
fn servers_are_administered_by_subcommands() {
    let data = folder("normal");
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    running.ok(&["add", "bank", "--command", "bank", "--owner", "\u{141}ukasz", "--description", "Acc\u{1b}[1mounts"]);
    running.ok(&["start", "bank"]);
    let shown = running.ok(&["show", "bank"]);
    for part in ["state: running", "owner: \u{141}ukasz", r"description: Acc\u001b[1mounts", "starts: 1"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(running.ok(&["list"]).contains("running"));
    running.ok(&["drain", "bank"]);
    assert!(running.ok(&["show", "bank"]).contains("state: stopped"));
    running.ok(&["disable", "bank"]);
    assert!(running.ok(&["list"]).contains("disabled"));
    running.ok(&["enable", "bank"]);
    running.ok(&["start", "bank"]);
    running.ok(&["stop", "bank"]);
    running.ok(&["remove", "bank"]);

    let output = running.run(&["show", "bank"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with("error: cannot show server `bank` by the activator at 127.0.0.1:"), "{text}");
    let output = running.run(&["add", "bank", "--command", "/bin/sh"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("`/bin/sh` is not in the configuration of the activator"), "{text}");
}

#[test]
fn an_object_of_a_server_is_offered_when_the_server_is_added() {
    let data = folder("normal");
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let trader = TradingService::start(&orb, TradingOptions::default()).unwrap();
    let lookup: Lookup = trader.lookup().narrow().unwrap();
    let types: ServiceTypeRepository = lookup.type_repos().unwrap().unwrap().narrow().unwrap();
    let branch = PropStruct { name: "branch".into(), value_type: TypeCode::STRING, mode: PropertyMode::PropMandatory };
    types.add_type("Account", "", &[branch], &[]).unwrap();
    let option = format!("-ORBInitRef TradingService={}", trader.lookup());
    let add = |offer: &[&str]| {
        let words = ["--orb", &option, "add", "bank", "--command", "bank", "--offer"];
        running.run(&[&words[..], offer].concat())
    };
    // Nothing is registered with an offer that cannot be read.
    for (offer, reason) in [
        (&["Account", "grace", "branch"][..], "expected NAME=VALUE instead of `branch`"),
        (&["Account", "grace", "ranch=north"], "the service type has no property `ranch`"),
        (&["Accounts", "grace"], "UnknownServiceType"),
    ] {
        let output = add(offer);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && errors.contains(reason), "{errors}");
        assert!(!running.ok(&["list"]).contains("bank"), "{offer:?}");
    }
    let output = add(&["Account", "grace", "branch=north"]);
    assert!(output.status.success() && trader.offers() == 1, "{output:?}");
    let all = SpecifiedProps::Unlisted(HowManyProps::All);
    let (offers, _, _) = lookup.query("Account", "branch == 'north'", "", &[], &all, 10).unwrap();
    // The first call starts the server.
    let object: ServerObject = offers[0].reference.as_ref().unwrap().unchecked_narrow();
    assert!(running.ok(&["show", "bank"]).contains("state: stopped"));
    object.ping().unwrap();
    assert!(running.ok(&["show", "bank"]).contains("state: running"));
    running.ok(&["stop", "bank"]);
    trader.stop().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn start_ends_as_soon_as_a_limit_forbids_the_process() {
    let data = folder("normal");
    let text = std::fs::read_to_string(data.path().join("commands.toml")).unwrap();
    std::fs::write(data.path().join("commands.toml"), text + "limits = { instances = 1 }\n").unwrap();
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    running.ok(&["add", "first", "--command", "bank"]);
    running.ok(&["add", "second", "--command", "bank"]);
    running.ok(&["start", "first"]);
    let error = running.begin(&["start", "second"]).error();
    assert_eq!(error, "the limit of processes of the command `bank`, or of all, is reached");
    running.ok(&["start", "first"]);
    running.ok(&["stop", "first"]);
    running.ok(&["start", "second"]);
    running.ok(&["stop", "second"]);
}

#[test]
fn start_ends_when_its_server_is_stopped_or_disabled() {
    let data = folder("never ready");
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    running.ok(&["add", "bank", "--command", "bank"]);
    for (command, expected) in [("stop", "it was stopped, or has ended"), ("disable", "it is disabled")] {
        let started = starts(data.path()).len();
        let start = running.begin(&["start", "bank"]);
        wait_until("the process", || starts(data.path()).len() > started);
        running.ok(&[command, "bank"]);
        assert_eq!(start.error(), expected);
        running.ok(&["stop", "bank"]);
    }
}

#[test]
fn start_ends_at_the_first_failure() {
    for (behaviour, mode, expected) in [
        ("stubborn never ready", "normal", "it did not register in time"),
        (
            "end",
            "normal",
            "it ended before it registered: exit status: 0 (its output is in logs/bank.log); the activator tries again",
        ),
        ("end", "manual", "it ended before it registered: exit status: 0 (its output is in logs/bank.log)"),
    ] {
        let data = folder(behaviour);
        let options = ["--listen", "iiop://127.0.0.1:0", "--start-timeout", "2000"];
        let running = Running::with_options(data.path(), &options);
        running.ok(&["add", "bank", "--command", "bank", "--mode", mode]);
        let error = running.begin(&["start", "bank"]).error();
        assert!(error.starts_with(expected), "{behaviour}: {error}");
        running.ok(&["stop", "bank"]);
    }
}

#[test]
fn a_killed_activator_finds_its_servers_again_and_starts_none_twice() {
    let data = folder("normal");
    let mut first = Running::start(data.path(), "iiop://127.0.0.1:0");
    first.ok(&["add", "bank", "--command", "bank"]);
    let object = first.object("bank");
    object.ping().unwrap();
    first.process.kill().unwrap();
    first.process.wait().unwrap();
    object.ping().unwrap(); // the server goes on
    let second = Running::start(data.path(), &format!("iiop://{}", first.address));
    second.object("bank").ping().unwrap();
    object.ping().unwrap();
    assert_eq!(starts(data.path()).len(), 1);
    second.ok(&["stop", "bank"]);
}

#[test]
fn a_server_that_starts_while_the_activator_is_killed_registers_with_the_next_one() {
    let data = folder("slow");
    let mut first = Running::start(data.path(), "iiop://127.0.0.1:0");
    first.ok(&["add", "bank", "--command", "bank"]);
    let object = first.object("bank");
    let client = std::thread::spawn({
        let object = first.object("bank");
        move || object.ping()
    });
    wait_until("the start of the server", || starts(data.path()).len() == 1);
    first.process.kill().unwrap();
    first.process.wait().unwrap();
    assert!(client.join().unwrap().is_err());
    let second = Running::start(data.path(), &format!("iiop://{}", first.address));
    std::fs::write(data.path().join("go"), "").unwrap();
    object.ping().unwrap();
    assert_eq!(starts(data.path()).len(), 1);
    call_after_kill(starts(data.path())[0].1, &object);
    assert_eq!(starts(data.path()).len(), 2);
    second.ok(&["stop", "bank"]);
}

/// Ends the clients of a test, also after a failure.
struct EndClients<'t>(&'t AtomicBool);

impl Drop for EndClients<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_server_is_started_twice_if_the_activator_is_killed_at_any_instant() {
    let rounds: usize = std::env::var("SPANDREL_KILLS").map_or(3, |rounds| rounds.parse().unwrap());
    let data = folder("normal");
    let mut running = Running::start(data.path(), "iiop://127.0.0.1:0");
    for round in 0..rounds {
        let name = format!("bank-{round}");
        running.ok(&["add", &name, "--command", "bank"]);
        let is_over = AtomicBool::new(false);
        let attempts = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let _end = EndClients(&is_over);
            for _ in 0..4 {
                let object = running.object(&name);
                scope.spawn(|| {
                    let object = object;
                    while !is_over.load(Ordering::Relaxed) {
                        attempts.fetch_add(1, Ordering::Relaxed);
                        if object.ping().is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            // Before, during or after the start.
            match round % 3 {
                0 => wait_until("attempts", || attempts.load(Ordering::Relaxed) > round),
                1 => wait_until("the start", || data.path().join("logs").join(format!("{name}.log")).exists()),
                _ => wait_until("the process", || starts(data.path()).iter().any(|(server, _)| *server == name)),
            }
            running.process.kill().unwrap();
            running.process.wait().unwrap();
            let address = running.address.clone();
            running = Running::start(data.path(), &format!("iiop://{address}"));
            wait_until("the registration", || running.object(&name).ping().is_ok());
        });
        let of_server = starts(data.path()).into_iter().filter(|(server, _)| *server == name).count();
        assert_eq!(of_server, 1, "round {round}");
        running.ok(&["stop", &name]);
    }
}

#[test]
fn sighup_reads_the_commands_again() {
    let data = folder("normal");
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    let commands = format!("[commands.other]\n{}", crate::server::command(data.path(), "normal"));
    std::fs::write(data.path().join("commands.toml"), commands).unwrap();
    assert!(!running.run(&["add", "bank", "--command", "other"]).status.success());
    assert!(Command::new("kill").args(["-HUP", &running.process.id().to_string()]).status().unwrap().success());
    wait_until("the new commands", || running.run(&["add", "bank", "--command", "other"]).status.success());
}

#[test]
fn bad_commands_and_an_unreachable_activator_have_an_exit_code_and_one_line() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("commands.toml"), "[commands.a]\nprogram = 'sh'\n").unwrap();
    let output = command().arg("--data").arg(data.path()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    let file = data.path().canonicalize().unwrap().join("commands.toml");
    let reason = "line 2: program `sh` is not an absolute path";
    assert_eq!(text, format!("error: cannot read the commands {}: {reason}\n", file.display()));
    let output = command().args(["--server", "127.0.0.1:1", "list"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: cannot list servers by the activator at 127.0.0.1:1: "), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "no header without an answer");
}

#[test]
fn a_shell_completes_subcommands_and_options() {
    let completions = |words: &[&str]| {
        let mut command = command();
        command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9");
        command.env("_CLAP_COMPLETE_SPACE", "false").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        let output = command.args(["--", "spandrel-activator"]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(completions(&["dra"]), ["drain"]);
    assert_eq!(completions(&["--comm"]), ["--commands"]);
    assert_eq!(completions(&["add", "bank", "--comm"]), ["--command"]);
}

#[test]
fn the_default_port_is_that_of_the_activator() {
    // An address at which nothing listens.
    for (server, expected) in [("127.0.0.77", "127.0.0.77:2810"), ("[::1]", "[::1]:2810"), ("[::1]:1", "[::1]:1")] {
        let output = command().args(["--server", server, "show", "bank"]).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let line = format!("error: cannot show server `bank` by the activator at {expected}: ");
        assert!(text.starts_with(&line), "{text}");
        assert!(!text.contains("2809"), "{text}");
    }
    let output = command().args(["--server", "here:x", "list"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    let expected = "invalid value `here:x` for --server: expected HOST or HOST:PORT, such as 127.0.0.1:2810, \
                    ssliop://HOST:PORT, or the URL of the service's object";
    assert_eq!(text, format!("error: {expected}\n"));
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    let data = folder("normal");
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    running.ok(&["add", "bank", "--command", "bank"]);
    for words in [&["--help"][..], &["list"], &["show", "bank"]] {
        check_output_errors(|| {
            let mut command = command();
            command.args(["--server", &running.address]).args(words);
            command
        });
    }
}

#[test]
fn calls_of_a_silent_activator_end_with_their_time_limit() {
    // It accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let output = command().args(["list", "--server", &address, "--timeout", "1"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: cannot list servers by the activator at ") && text.contains("TIMEOUT"), "{text}");
}

#[test]
fn exceptions_and_missing_commands_are_explained() {
    let data = folder("normal");
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    running.ok(&["add", "bank", "--command", "bank"]);
    for (words, code, expected) in [
        (&["show", "none"][..], 1, "it is not registered ("),
        (&["stop", "none"], 1, "it is not registered ("),
        (&["add", "bank", "--command", "bank"], 1, "it is registered already ("),
        (&["add", "other"], 2, "a command is expected: --command NAME"),
        (&["update", "bank", "--mode", "auto"], 2, "a command is expected: --command NAME"),
        (&["list", "--timeout", "x"], 2, "'x' for '--timeout <SECONDS>': expected a whole number"),
    ] {
        let output = running.run(words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && text.contains(expected), "{words:?}: {text}");
    }
    running.ok(&["add", "by-hand", "--mode", "manual", "--start-timeout", "500"]);
}

#[test]
fn a_running_activator_makes_a_backup_by_command() {
    let data = folder("normal");
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    running.ok(&["add", "bank", "--command", "bank"]);
    let file = data.path().join("backups/activator/monday");
    assert_eq!(running.ok(&["backup", "monday"]), format!("{}\n", file.display()));
    let again = running.run(&["backup", "monday"]);
    let errors = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(1) && errors.contains("exists") && errors.lines().count() == 1, "{errors}");
    running.ok(&["remove", "bank"]);
    drop(running);
    std::fs::copy(file, data.path().join("activator.redb")).unwrap();
    let running = Running::start(data.path(), "iiop://127.0.0.1:0");
    running.ok(&["start", "bank"]);
    running.ok(&["stop", "bank"]);
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "iiop://127.0.0.1:0");
    spandrel_test_support::threads::check_daemon(running.process.id());
}
