//! The executable `spandrel-serve`: services by configuration.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(unix)]
use std::io::Seek as _;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use spandrel::diagnostics::log::LogTail;
use spandrel::net::error::escape;
use spandrel::net::ipc::is_timeout;
use spandrel::net::reactor::Reactor;
use spandrel_configurator::{Configurator, Options, Reload};
use spandrel_daemon::{Failure, print};
use spandrel_serve::{Administered, LogForwarder, catalogue};
use spandrel_stream::StreamDirectives;

const HELP: &str = "\
Runs the services of svc.conf files

Usage: spandrel serve [OPTIONS]
       spandrel serve admin (-u SOCKET | -p PORT) [--timeout SECONDS] COMMAND…

Options, as those of ACE's service configurator:
  -f FILE       A file of directives; may be given more than once [default: svc.conf, if there is one]
  -S DIRECTIVE  A directive after the files; may be given more than once
  -w SECONDS    Also read the files again when they, or libraries, have changed; looked at in this interval
  -b            Become a daemon, once the services run
  -d            Log debug messages
  -k HOST:PORT  Send the log to a logging service, too
  -p FILE       Write the number of the process into a file
  -s NUMBER     The signal at which the files are read again [default: SIGHUP]
  -y, -n        Start the services that the program starts by itself, or not [default: not; there are none]
  -l            List the services that the program contains, and end
  -h, --help    Print help

Services that the program contains: `static NAME \"PARAMETERS\"`. Services of shared libraries:
`dynamic NAME Service_Object * LIBRARY:FACTORY() \"PARAMETERS\"`. See the page `Configuring services` of the book.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

const ADMIN_HELP: &str = "\
Sends a command to the service `Administration` of a running process, and prints the answer

Usage: spandrel serve admin (-u SOCKET | -p PORT) [--timeout SECONDS] COMMAND…

Options:
  -u SOCKET   The socket of the service, a file
  -p PORT     Its port on the loopback interface
  --timeout SECONDS
              The time limit for each line of the answer [default: 60]
  -h, --help  Print help";

/// The first argument of a daemon, which the program gives itself, and the line of output once its services run.
const DAEMON: &str = "daemon";

/// The time limit for each line of an answer of the administration, unless `--timeout` sets another.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    // Services with processes start this program again.
    #[cfg(target_os = "linux")]
    match spandrel_architectures::serve_as_process() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => {
            return spandrel_daemon::run(|| Err(Failure::failed(anyhow!("a process of a server has failed: {error}"))));
        }
    }
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "admin") {
        return spandrel_daemon::run(|| administer(&arguments[1..]));
    }
    let is_daemon = arguments.first().is_some_and(|word| word == DAEMON);
    arguments.drain(..usize::from(is_daemon));
    if arguments.iter().any(|word| word == "-h" || word == "--help") {
        return spandrel_daemon::run(|| print(&format!("{HELP}\n")));
    }
    let watch = match take_watch(&mut arguments) {
        Ok(watch) => watch,
        Err(failure) => return spandrel_daemon::run(|| Err(failure)),
    };
    let (options, rest) = match Options::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return spandrel_daemon::run(|| Err(Failure::usage(error))),
    };
    if options.is_daemon && !is_daemon {
        return match start_daemon() {
            Ok(code) => code,
            Err(failure) => spandrel_daemon::run(|| Err(failure)),
        };
    }
    let tail = options.logger_key.is_some().then(LogTail::default);
    let level = if options.is_debug { "debug" } else { "info" };
    spandrel_daemon::run_with_level(level, tail.as_ref(), || serve(&options, &rest, watch, tail.clone(), is_daemon))
}

/// Takes `-w SECONDS` out of the arguments, which is no option of ACE's.
fn take_watch(arguments: &mut Vec<String>) -> Result<Option<Duration>, Failure> {
    let Some(at) = arguments.iter().position(|word| word == "-w") else { return Ok(None) };
    let time = seconds("-w", arguments.get(at + 1).map_or("", String::as_str), 0.01)?;
    arguments.drain(at..=at + 1);
    Ok(Some(time))
}

/// The value of an option: from this number of seconds to a day.
fn seconds(option: &str, value: &str, least: f64) -> Result<Duration, Failure> {
    let seconds = value.parse().ok().filter(|seconds| (least..=86_400.0).contains(seconds));
    let expected = || anyhow!("invalid value \"{value}\" for {option}: expected a number of seconds");
    seconds.map(Duration::from_secs_f64).ok_or_else(|| Failure::usage(expected()))
}

fn serve(
    options: &Options,
    rest: &[String],
    watch: Option<Duration>,
    tail: Option<LogTail>,
    is_daemon: bool,
) -> Result<(), Failure> {
    let administered = Administered::default();
    let catalogue = catalogue(&administered);
    match rest {
        [] => {}
        [word] if word == "-l" => {
            return print(&catalogue.names().map(|name| format!("{name}\n")).collect::<String>());
        }
        [unknown, ..] => return Err(Failure::usage(anyhow!("unknown argument `{unknown}` (--help)"))),
    }
    if options.directives.is_empty() && options.configuration_files().is_empty() {
        return Err(Failure::usage(anyhow!(
            "there is nothing to serve: expected -f FILE or -S DIRECTIVE, or svc.conf"
        )));
    }
    // A forwarder that ends last has the last lines.
    let _forwarder = match (tail, &options.logger_key) {
        (Some(tail), Some(address)) => Some(
            LogForwarder::start(tail, address.clone()).context("no forwarding of the log").map_err(Failure::failed)?,
        ),
        _ => None,
    };
    let reactor = Reactor::new().context("no reactor").map_err(Failure::failed)?;
    let configurator = Configurator::new(reactor.registry(), catalogue).streams(StreamDirectives);
    administered.set(&configurator);
    let changes = configurator.open(options).inspect_err(|_| drop(configurator.close())).map_err(Failure::failed)?;
    tracing::info!("{changes}");
    let reload = reload(&configurator, options, watch)?;
    let ready: Vec<String> = configurator
        .repository()
        .iter()
        .map(|service| {
            format!("{} {}", service.name, configurator.repository().info(&service.name).unwrap_or_default())
        })
        .collect();
    let stopping = reactor.clone();
    let (mut ended, pid_file) = (Ok(()), std::cell::Cell::new(None));
    // Once signals are handled: the file tells others where to send them.
    let is_ready = || {
        pid_file.set(options.pid_file.as_ref().map(|file| PidFile::write(file)).transpose()?);
        if is_daemon { detach() } else { Ok(()) }
    };
    spandrel_daemon::serve(&ready, &is_ready, move || stopping.stop(), || ended = reactor.run())?;
    drop(reload);
    // Handlers of services may still be needed by their ends.
    reactor.restart();
    let running = reactor.clone();
    let thread = std::thread::Builder::new().name("spandrel-end".to_owned()).spawn(move || running.run());
    configurator.close();
    reactor.close();
    _ = thread.map(std::thread::JoinHandle::join);
    ended.context("the reactor has failed").map_err(Failure::failed)
}

#[cfg(unix)]
fn reload(configurator: &Configurator, options: &Options, watch: Option<Duration>) -> Result<Reload, Failure> {
    use spandrel::net::reactor::Signal;

    let signal = options.signal.map_or(Ok(Signal::HUP), Signal::new);
    let signal = signal.context("invalid value for -s").map_err(Failure::usage)?;
    let reload = Reload::start(configurator, watch).and_then(|reload| reload.on_signal(configurator, signal));
    reload.context("files cannot be read again").map_err(Failure::failed)
}

#[cfg(not(unix))]
fn reload(configurator: &Configurator, _options: &Options, watch: Option<Duration>) -> Result<Reload, Failure> {
    Reload::start(configurator, watch).context("files cannot be read again").map_err(Failure::failed)
}

/// The file with the number of the process, which goes with it.
struct PidFile(PathBuf);

impl PidFile {
    fn write(file: &std::path::Path) -> Result<Self, Failure> {
        std::fs::write(file, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write {} (-p)", file.display()))
            .map_err(Failure::failed)?;
        Ok(Self(file.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

/// Starts the program again in a session of its own, without a terminal. Waits until its services run; if they cannot, its
/// errors and its exit code are those of this process.
#[cfg(unix)]
fn start_daemon() -> Result<ExitCode, Failure> {
    use std::process::{Command, Stdio};

    let failed = |error: std::io::Error, what: &'static str| Failure::failed(anyhow!(error).context(what));
    let program = std::env::current_exe().map_err(|error| failed(error, "cannot become a daemon (-b)"))?;
    // A file without a name, and no pipe: processes of services may keep it open after this one has ended.
    let mut errors =
        nameless_file().map_err(|error| failed(error, "cannot become a daemon (-b): no temporary file"))?;
    let of_daemon = errors.try_clone().map_err(|error| failed(error, "cannot become a daemon (-b)"))?;
    let mut command = Command::new("setsid");
    command.arg(program).arg(DAEMON).args(std::env::args_os().skip(1));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(of_daemon);
    let mut daemon =
        command.spawn().map_err(|error| failed(error, "cannot become a daemon (-b): setsid cannot be run"))?;
    let output = daemon.stdout.take().expect("it is piped");
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line == DAEMON {
            return Ok(ExitCode::SUCCESS);
        }
        print(&format!("{line}\n"))?;
    }
    let status = daemon.wait().map_err(|error| failed(error, "cannot wait for the daemon (-b)"))?;
    let copied = errors.rewind().and_then(|()| std::io::copy(&mut errors, &mut std::io::stderr()));
    copied.map_err(|error| failed(error, "cannot read the errors of the daemon (-b)"))?;
    match status.code() {
        Some(code) => Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)),
        None => Err(Failure::failed(anyhow!("the daemon (-b) was ended: {status}"))),
    }
}

/// A temporary file that only this process and its children can read.
#[cfg(unix)]
fn nameless_file() -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut options = std::fs::File::options();
    options.read(true).append(true).create_new(true).mode(0o600);
    for attempt in 0_u8..=u8::MAX {
        let path = std::env::temp_dir().join(format!("spandrel-serve-{}-{attempt}", std::process::id()));
        match options.open(&path) {
            Ok(file) => return std::fs::remove_file(path).map(|()| file),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// Tells the process that has started this daemon that its services run, and leaves its output.
#[cfg(unix)]
fn detach() -> Result<(), Failure> {
    let detach = || {
        // The other process may have been ended meanwhile.
        _ = print(&format!("{DAEMON}\n"));
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        std::io::Result::Ok(())
    };
    detach().context("the daemon (-b) cannot leave its output").map_err(Failure::failed)
}

#[cfg(not(unix))]
fn start_daemon() -> Result<ExitCode, Failure> {
    Err(Failure::usage(anyhow!("this system has no daemons (-b)")))
}

#[cfg(not(unix))]
fn detach() -> Result<(), Failure> {
    Ok(())
}

/// Sends a command to a running process, and prints the answer.
fn administer(arguments: &[String]) -> Result<(), Failure> {
    const USAGE: &str = "expected -u SOCKET or -p PORT, and a command: spandrel serve admin -u SOCKET list";
    if arguments.iter().any(|word| word == "-h" || word == "--help") {
        return print(&format!("{ADMIN_HELP}\n\nCommands:\n{}\n", Administered::COMMANDS));
    }
    let [option, place, command @ ..] = arguments else { return Err(Failure::usage(anyhow!(USAGE))) };
    if command.is_empty() {
        return Err(Failure::usage(anyhow!(USAGE)));
    }
    let (time, command) = match command {
        [word, value, command @ ..] if word == "--timeout" => (seconds(word, value, 0.001)?, command),
        command => (ANSWER_TIMEOUT, command),
    };
    let line = format!("{}\n", command.join(" "));
    match option.as_str() {
        #[cfg(unix)]
        "-u" => {
            let stream = std::os::unix::net::UnixStream::connect(place);
            let stream = stream.with_context(|| format!("cannot reach {place}")).map_err(Failure::failed)?;
            let limited = stream.set_read_timeout(Some(time)).and_then(|()| stream.set_write_timeout(Some(time)));
            limited.map_err(Failure::failed)?;
            exchange(&stream, &stream, &line, time)
        }
        "-p" => {
            let port: u16 = place.parse().map_err(|_| Failure::usage(anyhow!(USAGE)))?;
            let stream = std::net::TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), time);
            let stream = stream.with_context(|| format!("cannot reach 127.0.0.1:{port}")).map_err(Failure::failed)?;
            let limited = stream.set_read_timeout(Some(time)).and_then(|()| stream.set_write_timeout(Some(time)));
            limited.map_err(Failure::failed)?;
            exchange(&stream, &stream, &line, time)
        }
        _ => Err(Failure::usage(anyhow!(USAGE))),
    }
}

fn exchange(
    mut writer: impl std::io::Write,
    reader: impl std::io::Read,
    line: &str,
    time: Duration,
) -> Result<(), Failure> {
    let sent = writer.write_all(line.as_bytes()).context("cannot send the command");
    // The process may have answered and ended the connection before the command.
    for answer in BufReader::new(reader).lines() {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if is_timeout(&error) => {
                let seconds = time.as_secs_f64();
                return Err(Failure::failed(anyhow!("the process did not answer within {seconds} s (--timeout)")));
            }
            Err(error) => {
                sent.map_err(Failure::failed)?;
                return Err(Failure::failed(anyhow!(error).context("cannot receive the answer")));
            }
        };
        if answer == "ok" {
            return Ok(());
        }
        if let Some(reason) = answer.strip_prefix("error: ") {
            return Err(Failure::failed(anyhow!("{reason}")));
        }
        print(&format!("{}\n", escape(&answer)))?;
    }
    Err(Failure::failed(anyhow!("the process has ended the connection")))
}
