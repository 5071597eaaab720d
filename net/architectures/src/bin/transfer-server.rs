//! The executable `transfer-server`: one service in a server architecture chosen by name.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel_architectures::http::Http;
use spandrel_architectures::transfer::Transfer;
use spandrel_architectures::{Architecture, Port, Service, Settings};
use spandrel_error::{escape, output, report_in_line};
use spandrel_reactor::on_termination;

const HELP: &str = "\
Serves in a server architecture chosen by name

Usage: transfer-server ARCHITECTURE [OPTIONS]

  --port N          The port [default: 0, chosen by the system]
  --host ADDRESS    The address [default: 127.0.0.1]
  --workers N       The threads or processes of a pool [default: 5]
  --max N           The greatest number of connections that are served at once [default: 1024]
  --idle SECONDS    The time after which a connection without transfers is closed [default: 30]
  --drain SECONDS   The time that connections have after SIGTERM [default: 5]
  --no-greeting     Wait for the request without a greeting
  --http FOLDER     Serve the files of a folder over HTTP/1.1
  --backend NAME    The mechanism that waits, of `reactive` and `leader-followers`
  --lock NAME       The lock around `accept`, of `accept-pool`
  --until-stdin-closes
                    End also at the end of standard input
  --list            List the architectures, and end
  -h, --help        Print help

Prints `listening ADDRESS:PORT` when it serves, and ends at SIGTERM, on Windows at the events of a console.
Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// The longest time limit, in seconds: a day.
const LONGEST: u64 = 86_400;

/// The command line of the server.
struct Arguments {
    architecture: Architecture,
    address: SocketAddr,
    settings: Settings,
    has_greeting: bool,
    folder: Option<PathBuf>,
    drain: Duration,
    ends_with_stdin: bool,
}

enum Failure {
    Usage(String),
    Failed(io::Error),
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    match spandrel_architectures::serve_as_process() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return fail(&report_in_line(&error), 1),
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        return ended(output::print(&format!("{HELP}\n")));
    }
    if words.iter().any(|word| word == "--list") {
        let available = Architecture::ALL.iter().filter(|architecture| architecture.is_available());
        return ended(output::print(&available.map(|architecture| format!("{architecture}\n")).collect::<String>()));
    }
    match parse(words).map_err(Failure::Usage).and_then(|arguments| serve(&arguments).map_err(Failure::Failed)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(reason)) => fail(&reason, 2),
        Err(Failure::Failed(error)) => ended(Err(error)),
    }
}

fn ended(outcome: io::Result<()>) -> ExitCode {
    outcome.map_or_else(|error| fail(&report_in_line(&error), 1), |()| ExitCode::SUCCESS)
}

fn fail(reason: &str, code: u8) -> ExitCode {
    output::remark(&format!("transfer-server: {}\n", escape(reason)));
    ExitCode::from(code)
}

fn parse(words: Vec<String>) -> Result<Arguments, String> {
    let mut words = words.into_iter();
    let name = words.next().ok_or("expected an architecture (--list, --help)")?;
    if name.starts_with('-') {
        return Err(format!("expected an architecture before {name} (--list, --help)"));
    }
    let architecture = name.parse().map_err(|error: io::Error| error.to_string())?;
    let mut arguments = Arguments {
        architecture,
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        settings: Settings::default(),
        has_greeting: true,
        folder: None,
        drain: Duration::from_secs(5),
        ends_with_stdin: false,
    };
    while let Some(option) = words.next() {
        match &*option {
            "--no-greeting" => {
                arguments.has_greeting = false;
                continue;
            }
            "--until-stdin-closes" => {
                arguments.ends_with_stdin = true;
                continue;
            }
            _ => {}
        }
        let mut value = || words.next().ok_or_else(|| format!("expected a value after {option}"));
        match &*option {
            "--port" => arguments.address.set_port(number(&option, &value()?, 0..=u16::MAX)?),
            "--host" => {
                let text = value()?;
                let expected = || format!("invalid value \"{text}\" for {option}: expected an IP address");
                arguments.address.set_ip(text.parse::<IpAddr>().map_err(|_| expected())?);
            }
            "--workers" => arguments.settings.workers = number(&option, &value()?, 1..=Settings::MOST_WORKERS)?,
            "--max" => arguments.settings.max_connections = number(&option, &value()?, 1..=Settings::MOST_CONNECTIONS)?,
            "--idle" => arguments.settings.idle = Duration::from_secs(number(&option, &value()?, 1..=LONGEST)?),
            "--drain" => arguments.drain = Duration::from_secs(number(&option, &value()?, 0..=LONGEST)?),
            "--http" => arguments.folder = Some(value()?.into()),
            "--backend" => {
                arguments.settings.backend = value()?.parse().map_err(|error: io::Error| error.to_string())?
            }
            "--lock" => arguments.settings.lock = value()?.parse().map_err(|error: io::Error| error.to_string())?,
            _ => return Err(format!("unknown option {option} (--help)")),
        }
    }
    Ok(arguments)
}

/// A number in a range.
fn number<T>(option: &str, value: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let expected = || {
        let (first, last) = (range.start(), range.end());
        format!("invalid value \"{value}\" for {option}: expected a whole number from {first} to {last}")
    };
    value.parse().ok().filter(|number| range.contains(number)).ok_or_else(expected)
}

fn serve(arguments: &Arguments) -> io::Result<()> {
    let service = match &arguments.folder {
        Some(folder) => Service::Http(Http::open(folder)?),
        None => Service::Transfer(Transfer { has_greeting: arguments.has_greeting }),
    };
    let address = arguments.address;
    let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen at {address}: {error}"));
    let port = Port::exclusive(&address.into()).map_err(named)?;
    let (ending, ends) = mpsc::channel();
    if arguments.ends_with_stdin {
        let ending = ending.clone();
        let read = move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            ending.send(())
        };
        thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
    }
    // A second signal has its default effect, so that a user can end a drain.
    let is_ending = AtomicBool::new(false);
    let _handler = on_termination(move |_| !is_ending.swap(true, Ordering::SeqCst) && ending.send(()).is_ok())?;
    let server = arguments.architecture.start(&port, &service, &arguments.settings)?;
    output::print(&format!("listening {}\n", port.addr()?))?;
    // The sender lives as long as its handler.
    let _ = ends.recv();
    match server.stop(arguments.drain) {
        0 => {}
        cut => output::remark(&format!("transfer-server: {cut} connections were cut\n")),
    }
    Ok(())
}
