//! The checks that each architecture of each program has to pass.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::client::{Client, exchange};
use super::program::{Environment, Program};

/// The number of simultaneous clients, and of the exchanges of each.
const CLIENTS: usize = 50;
const EXCHANGES: usize = 4;
/// The workers of a pool.
const WORKERS: &str = "5";
/// The numbers of octets that a request can have, and the paper's.
const COUNTS: [usize; 5] = [4000, 1, 10, 9999, 0];
/// The requests that a client sends before it reads a reply: their replies exceed the buffers of both ends.
const PIPELINED: usize = 1000;
/// The time in which a fragment arrives alone, and in which the buffers of a connection become full.
const PAUSE: Duration = Duration::from_millis(5);
/// The architecture that serves one connection after the other.
const ITERATIVE: &str = "iterative";

/// A check, by the text that names it in an error.
type Check = (&'static str, fn(SocketAddr) -> Result<()>);

const CHECKS: [Check; 6] = [
    ("greeting and reply", reply),
    ("fragmented requests", fragmented),
    ("early close", early_close),
    ("garbage instead of a request", garbage),
    ("50 clients at once", concurrent),
    ("greeting and reply after all", reply),
];

/// Checks the parts of the command line that have no architecture: `--list`, and errors.
pub(super) fn command_line(program: &Program, environment: &Environment) -> Result<()> {
    if program.backend.is_some() {
        return Ok(()); // the program without it is checked
    }
    let (status, lines, _) = program.output(environment, &["--list"])?;
    ensure!(status.success() && lines == program.architectures, "--list printed {lines:?} ({status})");
    for words in [&["nonesuch"][..], &["nonesuch", "--port", "0"], &[program.architectures[0], "--port", "many"]] {
        let (status, lines, errors) = program.output(environment, words)?;
        let is_refused = status.code() == Some(2) && lines.is_empty() && errors.lines().count() == 1;
        ensure!(is_refused, "`{}` gave {status}, {lines:?} and {errors:?}", words.join(" "));
    }
    Ok(())
}

/// Runs all checks of one architecture.
pub(super) fn architecture(program: &Program, architecture: &str, environment: &Environment) -> Result<()> {
    let options = ["--port", "0", "--host", "127.0.0.1", "--workers", WORKERS];
    let until_stdin_closes = program.ends_with_stdin.then_some("--until-stdin-closes");
    let options: Vec<&str> = options.into_iter().chain(until_stdin_closes).collect();

    let server = program.start(architecture, &options, environment)?;
    let address = server.address;
    for (name, check) in CHECKS {
        check(address).context(name)?;
    }
    if program.serves_many_requests {
        pipelined(address).context("requests before the replies")?;
    }
    server.await_reaped_children()?;
    // A connection that is open at the end does not delay it.
    let silent = Client::connect(address, true)?;
    if architecture != ITERATIVE {
        exchange(address, true, 4000).context("an exchange beside a silent client")?;
    }
    server.end()?;
    drop(silent);

    let without_greeting = [&options[..], &["--no-greeting"]].concat();
    let server = program.start(architecture, &without_greeting, environment)?;
    for count in COUNTS {
        exchange(server.address, false, count).context("without a greeting")?;
    }
    if program.ends_with_stdin { server.end_by_stdin() } else { server.end() }
}

fn reply(address: SocketAddr) -> Result<()> {
    for count in COUNTS {
        exchange(address, true, count)?;
    }
    let mut client = Client::connect(address, true)?;
    client.send(b"4000")?;
    client.expect_reply(4000)?;
    client.expect_open()?;
    client.close()
}

fn fragmented(address: SocketAddr) -> Result<()> {
    for (fragments, count) in [(&["40", "00"][..], 4000), (&["0", "1", "2", "3"], 123)] {
        let mut client = Client::connect(address, true)?;
        for fragment in fragments {
            client.send(fragment.as_bytes())?;
            thread::sleep(PAUSE);
        }
        client.expect_reply(count)?;
        client.close()?;
    }
    Ok(())
}

/// Clients that close before their reply; then the server still serves.
fn early_close(address: SocketAddr) -> Result<()> {
    drop(Client::connect_silently(address)?);
    drop(Client::connect(address, true)?);
    Client::connect(address, true)?.close()?;
    for octets in ["40", "9999"] {
        let mut client = Client::connect(address, true)?;
        client.send(octets.as_bytes())?;
    }
    let mut client = Client::connect(address, true)?;
    client.send(b"40")?;
    client.close()?;
    exchange(address, true, 4000)
}

fn garbage(address: SocketAddr) -> Result<()> {
    for octets in ["abcd", "12x4", "-100", " 100", "1e3\0", "\n\n\n\n"] {
        let mut client = Client::connect(address, true)?;
        client.send(octets.as_bytes())?;
        client.expect_end().with_context(|| format!("{octets:?}"))?;
    }
    let mut client = Client::connect(address, true)?;
    client.send_regardless(&[b'x'; 64 << 10]);
    client.expect_end()?;
    exchange(address, true, 4000)
}

fn concurrent(address: SocketAddr) -> Result<()> {
    thread::scope(|scope| {
        let run = || (0..EXCHANGES).try_for_each(|_| exchange(address, true, 4000));
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(run)).collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client does not panic"))
    })
}

/// A client that sends many requests and then reads the replies: a server that does not wait for its peer has
/// to queue.
fn pipelined(address: SocketAddr) -> Result<()> {
    let mut client = Client::connect(address, true)?;
    client.send("9999".repeat(PIPELINED).as_bytes())?;
    thread::sleep(4 * PAUSE);
    client.expect_reply(9999 * PIPELINED)?;
    client.close()
}
