//! The executable `spandrel-serve`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use spandrel_test_support::{ChildProcess, check_output_errors, eventually, free_port, read_some};
use tempfile::TempDir;

/// A running process, with its standard output.
struct Serve {
    child: ChildProcess,
    output: BufReader<ChildStdout>,
    folder: TempDir,
}

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_spandrel-serve"))
}

impl Serve {
    /// Starts it with a file `svc.conf` in a folder, in which FOLDER stands for that.
    fn start(text: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = |text: &str| text.replace("FOLDER", folder.path().to_str().unwrap());
        fs::write(folder.path().join("svc.conf"), this(text)).unwrap();
        let mut command = command();
        let options = options.iter().map(|option| this(option));
        command.current_dir(folder.path()).args(options).stdout(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, folder }
    }

    /// The next `ready:` line of a service: its description.
    fn ready(&mut self, name: &str) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let prefix = format!("ready: {name} ");
        line.strip_prefix(&prefix).unwrap_or_else(|| panic!("{line}")).trim().to_owned()
    }

    fn configure(&self, text: &str) {
        let text = text.replace("FOLDER", self.folder.path().to_str().unwrap());
        let new = self.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.folder.path().join("svc.conf")).unwrap();
    }

    fn admin(&self, words: &[&str]) -> Output {
        let socket = self.folder.path().join("admin");
        command().args(["admin", "-u", socket.to_str().unwrap()]).args(words).output().unwrap()
    }

    fn list(&self) -> String {
        String::from_utf8(self.admin(&["list"]).stdout).unwrap()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

/// The text of a file, empty as long as it does not exist.
fn contents(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
#[cfg(target_os = "linux")]
fn lines_enter_and_leave_a_stream_of_modules_of_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let tests = std::env::current_exe().unwrap();
    let library = tests.ancestors().nth(2).unwrap().join("examples/libstream_modules.so");
    fs::copy(&library, folder.path().join("libstream_modules.so")).unwrap();
    let directives = include_str!("../examples/svc.conf").replace("127.0.0.1:2817", "127.0.0.1:0");
    fs::write(folder.path().join("svc.conf"), format!("{}{directives}", ADMINISTERED.replace("FOLDER/", ""))).unwrap();
    let log = folder.path().join("log");
    let mut command = command();
    command.current_dir(folder.path()).env("SPANDREL_LOG", "info").stdout(Stdio::null());
    let _serve = ChildProcess::start(command.stderr(fs::File::create(&log).unwrap()));
    let address = || {
        let log = contents(&log);
        let line = log.lines().find(|line| line.contains("datagrams are lines"))?;
        Some(line.split("127.0.0.1:").nth(1)?.split_whitespace().next()?.parse::<u16>().unwrap())
    };
    eventually(|| address().is_some());
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |text: &str| socket.send_to(text.as_bytes(), ("127.0.0.1", address().unwrap())).unwrap();
    let lines = folder.path().join("lines.txt");
    send("one");
    eventually(|| contents(&lines) == "ONE\n");
    let admin = |words: &[&str]| {
        let socket = folder.path().join("admin");
        let output = self::command().args(["admin", "-u", socket.to_str().unwrap()]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    // A suspended stream takes nothing in: datagrams wait in the socket.
    admin(&["suspend", "Lines"]);
    send("two"); // the receive that has begun may still take it in
    send("three");
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        let held = contents(&lines);
        assert!(["ONE\n", "ONE\nTWO\n"].contains(&&*held), "{held}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    admin(&["resume", "Lines"]);
    eventually(|| contents(&lines) == "ONE\nTWO\nTHREE\n");
    admin(&["remove", "Lines"]);
}

const ADMINISTERED: &str = "static Administration '-u FOLDER/admin'\n";

#[test]
fn a_file_is_served_changed_by_a_signal_and_ended() {
    let mut serve = Serve::start(&format!("{ADMINISTERED}static Echo '-p 0'"), &["-p", "FOLDER/pid"]);
    serve.ready("Administration");
    let address = serve.ready("Echo").split('/').next().unwrap().to_owned();
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
    client.write_all(b"x").unwrap();
    client.read_exact(&mut [0]).unwrap();
    let pid = serve.folder.path().join("pid");
    assert_eq!(fs::read_to_string(&pid).unwrap().trim(), serve.child.id().to_string());

    serve.configure(&format!("{ADMINISTERED}static Discard '-p 0'"));
    serve.signal(rustix::process::Signal::HUP);
    eventually(|| serve.list().contains("Discard active") && !serve.list().contains("Echo"));
    serve.configure("static Nonsense");
    serve.signal(rustix::process::Signal::HUP);
    assert_eq!(serve.admin(&["suspend", "Discard"]).status.code(), Some(0));
    assert!(serve.list().contains("Discard suspended"));
    let refused = serve.admin(&["reconfigure"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("svc.conf:1:1: the program contains no service `Nonsense`")
    );

    serve.signal(rustix::process::Signal::TERM);
    assert_eq!(serve.child.wait().unwrap().code(), Some(0));
    assert!(!pid.exists() && !serve.folder.path().join("admin").exists());
}

#[test]
fn a_changed_file_is_noticed_and_directives_come_from_the_command_line() {
    let mut serve =
        Serve::start("", &["-w", "0.02", "-f", "svc.conf", "-S", "static Administration '-u FOLDER/admin'", "-d"]);
    serve.ready("Administration");
    serve.configure("static Time '-p 0'");
    eventually(|| serve.list().contains("Time active"));
    assert!(serve.list().contains("Administration active"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_connection_of_a_former_architecture_of_processes_is_told_of_the_end() {
    let get = |client: &TcpStream| crate::architectures::get(client, "/a.txt");
    for architecture in ["process-per-connection", "pre-forked"] {
        let services = |architecture: &str| {
            format!(
                "{ADMINISTERED}static HttpServer '-p 0 -r FOLDER -a {architecture}'\n\
                 static Transfer '-p 0 -a {architecture}'"
            )
        };
        let mut serve = Serve::start(&services(architecture), &[]);
        fs::write(serve.folder.path().join("a.txt"), "the end\n").unwrap();
        serve.ready("Administration");
        let address = serve.ready("HttpServer").split('/').next().unwrap().to_owned();
        let mut transfer = TcpStream::connect(serve.ready("Transfer").split('/').next().unwrap()).unwrap();
        transfer.read_exact(&mut [0; 7]).unwrap();
        let clients = [(); 3].map(|()| TcpStream::connect(&address).unwrap());
        for client in &clients {
            client.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
            assert!(!get(client).contains("Connection: close"));
        }
        serve.configure(&services("reactive"));
        assert_eq!(serve.admin(&["reconfigure"]).status.code(), Some(0));
        for client in &clients {
            // The processes learn of it a moment later.
            eventually(|| get(client).contains("Connection: close"));
            assert_eq!(read_some(client, &mut [0]).unwrap(), 0, "{architecture}");
        }
        transfer.write_all(b"4000").unwrap();
        transfer.read_exact(&mut [0; 4_000]).unwrap_or_else(|error| panic!("{architecture}: {error}"));
        assert!(!get(&TcpStream::connect(&address).unwrap()).contains("Connection: close"));
    }
}

#[test]
fn the_log_goes_to_a_logging_service() {
    let mut log = Serve::start("static Logging '-p 0 -o FOLDER/log'", &[]);
    let address = log.ready("Logging").split('/').next().unwrap().to_owned();
    let mut serve = Serve::start(ADMINISTERED, &["-k", &address]);
    serve.ready("Administration");
    serve.signal(rustix::process::Signal::TERM);
    serve.child.wait().unwrap();
    let file = log.folder.path().join("log");
    eventually(|| {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.contains("\"program\":\"spandrel-serve\"") && text.contains("added Administration")
    });
}

#[test]
fn errors_are_one_line_with_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = command().current_dir(folder.path()).args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let nothing = (2, "error: there is nothing to serve: expected -f FILE or -S DIRECTIVE, or svc.conf\n".to_owned());
    assert_eq!(run(&[]), nothing);
    assert_eq!(run(&["-S"]), (2, "error: the option -S needs an argument\n".to_owned()));
    assert_eq!(run(&["x"]), (2, "error: unknown argument `x` (--help)\n".to_owned()));
    assert_eq!(run(&["-w", "x"]).0, 2);
    let (code, text) = run(&["-f", "gone"]);
    assert!(code == 1 && text.starts_with("error: cannot read gone: "), "{text}");
    let (code, text) = run(&["-S", "static Echo '-p 99999'"]);
    assert!(code == 1 && text.starts_with("error: ") && text.contains("99999 is not in 0..=65535"), "{text}");
    assert_eq!(text.lines().count(), 1, "the error is not logged, too: {text}");
    let (code, text) = run(&["admin", "-u", "gone", "list"]);
    assert!(code == 1 && text.starts_with("error: cannot reach gone: "), "{text}");
    assert_eq!(run(&["admin", "list"]).0, 2);
    let list = command().arg("-l").output().unwrap();
    assert!(String::from_utf8(list.stdout).unwrap().contains("Gateway\n"));
}

#[test]
fn the_file_of_the_folder_comes_before_the_directives_of_the_command_line() {
    let mut serve = Serve::start(&format!("{ADMINISTERED}static Echo '-p 0'"), &["-S", "suspend Echo"]);
    serve.ready("Administration");
    assert!(serve.list().contains("Echo suspended"), "{}", serve.list());
    // Files of the command line come before its directives as well, and take the place of the file of the folder.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("svc.conf"), "static Nonsense").unwrap();
    fs::write(at("other.conf"), "static Echo '-p 0'").unwrap();
    let mut command = command();
    command.current_dir(folder.path()).args(["-S", "remove Echo", "-f", "other.conf", "-S", "remove Echo"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("no service `Echo`"), "{text}");
}

#[test]
fn a_daemon_that_cannot_start_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = format!("static Echo '-p {}'", listener.local_addr().unwrap().port());
    fs::write(folder.path().join("bad.conf"), "static Echo '-p 0'\nnonsense").unwrap();
    let run = |arguments: &[&str]| {
        let output = command().current_dir(folder.path()).args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for (arguments, reason) in [
        (&["-b", "-f", "bad.conf"][..], "bad.conf:2:1: expected a directive"),
        (&["-bf", "bad.conf"], "bad.conf:2:1: expected a directive"),
        (&["-f", "gone", "-b"], "cannot read gone"),
        (&["-b", "-S", &occupied], "in use"),
    ] {
        let foreground: Vec<_> =
            arguments.iter().map(|word| word.replace("-bf", "-f")).filter(|word| word != "-b").collect();
        let expected = run(&foreground.iter().map(String::as_str).collect::<Vec<_>>());
        let (code, text) = run(arguments);
        assert!(text.contains(reason), "{arguments:?}: {text}");
        assert_eq!((code, text), expected, "{arguments:?}");
        assert_ne!(code, 0);
    }
    assert_eq!(run(&["-b"]).0, 2, "there is nothing to serve");
}

#[test]
fn a_logging_service_that_cannot_be_reached_is_reported() {
    let (code, text) = {
        let output = command().args(["-k", "nowhere", "-S", "static Echo '-p 0'"]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(code, Some(2));
    assert_eq!(text, "error: invalid value \"nowhere\" for -k: expected HOST:PORT\n");
    // Nobody listens there.
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = command();
    command.args(["-k", &address, "-S", "static Echo '-p 0'"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let warning = lines.find(|line| line.contains("logging service")).unwrap();
    assert!(warning.contains("WARN") && warning.contains(&address), "{warning}");
}

#[test]
fn each_command_has_help() {
    for arguments in
        [&["--help"][..], &["-h"], &["admin", "--help"], &["admin", "-h"], &["admin", "-u", "gone", "--help"]]
    {
        let output = command().args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("Usage: spandrel serve"), "{arguments:?}: {text}");
        assert_eq!(text.contains("reconfigure"), arguments[0] == "admin", "{text}");
    }
}

#[test]
fn a_daemon_leaves_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("svc.conf"), format!("static Administration '-u {}'", at("admin").display())).unwrap();
    let status = command().args(["-bd", "-p"]).arg(at("pid")).arg("-f").arg(at("svc.conf")).status().unwrap();
    assert!(status.success());
    let pid = |file: &Path| fs::read_to_string(file).ok()?.trim().parse::<i32>().ok();
    eventually(|| pid(&at("pid")).is_some());
    let pid = rustix::process::Pid::from_raw(pid(&at("pid")).unwrap()).unwrap();
    assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid, "it leads its session");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    eventually(|| !at("pid").exists());
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for words in [["--help"], ["-l"]] {
        check_output_errors(|| {
            let mut command = command();
            command.args(words);
            command
        });
    }
}

#[test]
fn the_administration_of_a_silent_process_ends_with_its_time_limit() {
    // It accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let admin = |words: &[&str]| {
        let output = command().args(["admin", "-p", &port, "--timeout"]).args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(
        admin(&["0.2", "list"]),
        (Some(1), "error: the process did not answer within 0.2 s (--timeout)\n".to_owned())
    );
    let (code, errors) = admin(&["x", "list"]);
    assert!(code == Some(2) && errors.contains("invalid value \"x\" for --timeout"), "{errors}");
}

#[test]
#[cfg(target_os = "linux")]
fn each_thread_of_the_daemon_is_listed() {
    let mut serve = Serve::start(&format!("{ADMINISTERED}static Echo '-p 0'"), &[]);
    serve.ready("Administration");
    serve.ready("Echo");
    spandrel_test_support::threads::check_daemon(serve.child.id());
}
