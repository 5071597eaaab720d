//! Many callers of a server that is killed again and again at any moment, by whichever transport; and callers that are killed.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use spandrel::{CompletionStatus, Orb, SystemExceptionKind};
use spandrel_test_support::comes_within;

use crate::call::{Told, WAYS, Way};
use crate::journal::{self, Executions, Journal};
use crate::ledger::Book;
use crate::server::{Arrangement, program};
use crate::{Gate, LONG, Server};

/// What was asked in a storm, and how it ended.
type Asked = Vec<(u64, Way, Told)>;

/// By TCP, by sockets of the host, and by shared memory; `FOLDER` is one of each storm's own.
pub const ENDPOINTS: [&str; 3] =
    ["iiop://127.0.0.1:0", "iiop://127.0.0.1:0;uds://FOLDER/socket", "iiop://127.0.0.1:0;shm://FOLDER/memory"];

const CALLERS: usize = 4;
/// Calls between one death and the next, at most.
const BETWEEN: u64 = 60;

/// Lets callers call while servers, each of which listens at this endpoint, are killed so many times. How many calls there were, and
/// how many of them failed.
///
/// # Errors
/// If a caller was told what is not so.
pub fn over_servers(seed: u64, kills: usize, endpoint: &str) -> Result<(usize, usize)> {
    let folder = tempfile::tempdir()?;
    let arrangement = arrangement(folder.path(), endpoint)?;
    let server = Server::start(&arrangement)?;
    let current = Mutex::new(server.reference.clone());
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (server, asked) = thread::scope(|scope| -> Result<_> {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (current, next, stop) = (&current, &next, &stop);
                scope.spawn(move || call_on(Rng::with_seed(seed ^ caller as u64), current, next, stop))
            })
            .collect();
        let killed = kill_on(seed, kills, server, &arrangement, &current, &next);
        stop.store(true, Ordering::SeqCst);
        let mut asked = Asked::new();
        for caller in callers {
            asked.extend(caller.join().unwrap_or_else(|_| bail!("a caller panicked"))?);
        }
        Ok((killed?, asked))
    })?;
    server.finish()?;
    let executed = journal::read(&arrangement.journal)?;
    let failed = asked.iter().filter(|(_, _, told)| matches!(told, Told::Refused(_))).count();
    for (number, way, told) in &asked {
        let executed = executed.get(number).copied().unwrap_or_default();
        compare(*way, told, executed)
            .with_context(|| format!("seed {seed}: {number}, {way:?}: {told:?}, {executed:?}"))?;
    }
    Ok((asked.len(), failed))
}

fn arrangement(folder: &std::path::Path, endpoint: &str) -> Result<Arrangement> {
    let endpoints = endpoint.replace("FOLDER", &folder.to_string_lossy());
    Ok(Arrangement {
        journal: folder.join("journal"),
        gate: Gate::open()?.addr(),
        asynchronous: false,
        options: vec!["-ORBListenEndpoints".to_owned(), endpoints],
    })
}

/// Calls until it is told to stop, by what reference there is.
fn call_on(mut rng: Rng, current: &Mutex<String>, next: &AtomicU64, stop: &AtomicBool) -> Result<Asked> {
    let orb = Orb::builder().request_timeout(Some(LONG)).build()?;
    let mut asked = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let reference = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let book = Book::unchecked_narrow(&orb.string_to_object(&reference)?);
        let (way, number) = (WAYS[rng.usize(..WAYS.len())], next.fetch_add(1, Ordering::SeqCst));
        let size = if rng.u8(..10) == 0 { rng.usize(1..50_000) } else { rng.usize(1..100) };
        asked.push((number, way, way.ask(&book, number, &vec![0; size])));
    }
    orb.shutdown(true)?;
    Ok(asked)
}

fn kill_on(
    seed: u64,
    kills: usize,
    mut server: Server,
    arrangement: &Arrangement,
    current: &Mutex<String>,
    next: &AtomicU64,
) -> Result<Server> {
    let mut rng = Rng::with_seed(seed);
    for _ in 0..kills {
        let then = next.load(Ordering::SeqCst) + rng.u64(1..BETWEEN);
        let go_on = comes_within(LONG, || next.load(Ordering::SeqCst) >= then);
        ensure!(go_on, "the callers do not go on");
        server.kill()?;
        server = Server::start(arrangement)?;
        current.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&server.reference);
    }
    Ok(server)
}

fn compare(way: Way, told: &Told, executed: Executions) -> Result<()> {
    ensure!(executed.begun <= 1 && executed.ended <= executed.begun, "it was executed {executed:?}");
    match told {
        Told::Wrong(what) => bail!("{what}"),
        Told::Done if way.awaits_execution() => ensure!(executed.ended == 1, "a result without an execution"),
        Told::Done | Told::Nothing => {}
        Told::Refused(exception) => {
            let (kind, completed) = (exception.kind(), exception.completed());
            ensure!(completed != CompletionStatus::No || executed.begun == 0, "it was executed");
            ensure!(completed != CompletionStatus::Yes || executed.ended == 1, "it was not executed");
            let is_transient = kind == SystemExceptionKind::Transient && completed == CompletionStatus::No;
            // The port of one that is gone may be another's by now, which does not know the object.
            let is_stale = kind == SystemExceptionKind::ObjectNotExist && completed == CompletionStatus::No;
            let is_right = is_transient || is_stale || kind == SystemExceptionKind::CommFailure;
            ensure!(is_right, "not the exception for that");
        }
    }
    Ok(())
}

/// A caller in a process of its own, which writes down what it asks and what it is told.
fn caller(reference: &str, diary: &std::path::Path, first: u64) -> Result<Child> {
    let mut command = Command::new(program("faults-client")?);
    command.arg(reference).arg(diary).arg(first.to_string());
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
}

/// What each caller may ask at most.
const SPAN: u64 = 1 << 32;

/// Kills so many callers at any moment. How many calls they had made.
///
/// # Errors
/// If something was executed twice or for nobody, or if the server kept what it had of them.
pub fn over_clients(seed: u64, kills: u64, endpoint: &str) -> Result<usize> {
    let folder = tempfile::tempdir()?;
    let diary = folder.path().join("diary");
    let arrangement = arrangement(folder.path(), endpoint)?;
    let server = Server::start(&arrangement)?;
    let before = server.descriptors_without_clients();
    let mut rng = Rng::with_seed(seed);
    Journal::open(&diary)?;
    for kill in 0..kills {
        let then = std::fs::metadata(&diary)?.len() + rng.u64(9..20_000);
        let mut caller = caller(&server.reference, &diary, kill * SPAN)?;
        let begun = Instant::now();
        while std::fs::metadata(&diary)?.len() < then {
            ensure!(begun.elapsed() < LONG && caller.try_wait()?.is_none(), "seed {seed}: the caller does not go on");
            thread::yield_now();
        }
        caller.kill()?;
        caller.wait()?;
    }
    let is_clean = comes_within(LONG, || server.descriptors() <= before);
    ensure!(is_clean, "the server keeps what it had of callers that are gone");
    server.finish()?;
    let (asked, executed) = (journal::read(&diary)?, journal::read(&arrangement.journal)?);
    for (number, told) in &asked {
        let executed = executed.get(number).copied().unwrap_or_default();
        ensure!(executed.begun <= 1, "seed {seed}: {number} was executed {executed:?}");
        ensure!(told.ended <= executed.ended, "seed {seed}: {number}: a result without an execution");
    }
    ensure!(executed.keys().all(|number| asked.contains_key(number)), "seed {seed}: something that nobody asked for");
    Ok(asked.len())
}
