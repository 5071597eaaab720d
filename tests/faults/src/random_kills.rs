//! Kills servers during the calls of many callers, and kills callers, at random moments and over each
//! transport.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use spandrel::{CompletionStatus, Orb, SystemExceptionKind};
use spandrel_test_support::{ChildProcess, holds_within};

use crate::call::{CALL_KINDS, CallKind, Outcome};
use crate::journal::{self, Executions, Journal};
use crate::ledger::Book;
use crate::server::{Configuration, program};
use crate::{Gate, Server, TIMEOUT};

/// The calls and their outcomes.
type Calls = Vec<(u64, CallKind, Outcome)>;

/// TCP, local sockets and shared memory; `FOLDER` stands for the run's temporary folder.
pub const ENDPOINTS: [&str; 3] =
    ["iiop://127.0.0.1:0", "iiop://127.0.0.1:0;uds://FOLDER/socket", "iiop://127.0.0.1:0;shm://FOLDER/memory"];

const CALLERS: usize = 4;
/// The maximum number of calls between two kills.
const CALLS_BETWEEN_KILLS: u64 = 60;

/// Kills the server `kills` times while callers call it; each server listens at this endpoint. Returns the
/// numbers of all calls and of failed ones.
///
/// # Errors
/// If the outcome of a call contradicts its executions.
pub fn kill_servers(seed: u64, kills: usize, endpoint: &str) -> Result<(usize, usize)> {
    let folder = tempfile::tempdir()?;
    let configuration = configuration(folder.path(), endpoint)?;
    let server = Server::start(&configuration)?;
    let current = Mutex::new(server.reference.clone());
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (server, calls) = thread::scope(|scope| -> Result<_> {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (current, next, stop) = (&current, &next, &stop);
                scope.spawn(move || call_until_stopped(Rng::with_seed(seed ^ caller as u64), current, next, stop))
            })
            .collect();
        let killed = kill_repeatedly(seed, kills, server, &configuration, &current, &next);
        stop.store(true, Ordering::SeqCst);
        let mut calls = Calls::new();
        for caller in callers {
            calls.extend(caller.join().unwrap_or_else(|_| bail!("a caller panicked"))?);
        }
        Ok((killed?, calls))
    })?;
    server.finish()?;
    let executed = journal::read(&configuration.journal)?;
    let failed = calls.iter().filter(|(_, _, outcome)| matches!(outcome, Outcome::Raised(_))).count();
    for (number, call_kind, outcome) in &calls {
        let executed = executed.get(number).copied().unwrap_or_default();
        check(*call_kind, outcome, executed)
            .with_context(|| format!("seed {seed}: {number}, {call_kind:?}: {outcome:?}, {executed:?}"))?;
    }
    Ok((calls.len(), failed))
}

fn configuration(folder: &std::path::Path, endpoint: &str) -> Result<Configuration> {
    let endpoints = endpoint.replace("FOLDER", &folder.to_string_lossy());
    Ok(Configuration {
        journal: folder.join("journal"),
        gate: Gate::open()?.addr(),
        asynchronous: false,
        options: vec!["-ORBListenEndpoints".to_owned(), endpoints],
    })
}

/// Calls the current reference until `stop` is set.
fn call_until_stopped(mut rng: Rng, current: &Mutex<String>, next: &AtomicU64, stop: &AtomicBool) -> Result<Calls> {
    let orb = Orb::builder().request_timeout(Some(TIMEOUT)).build()?;
    let mut calls = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let reference = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let book = Book::unchecked_narrow(&orb.string_to_object(&reference)?);
        let (call_kind, number) = (CALL_KINDS[rng.usize(..CALL_KINDS.len())], next.fetch_add(1, Ordering::SeqCst));
        let size = if rng.u8(..10) == 0 { rng.usize(1..50_000) } else { rng.usize(1..100) };
        calls.push((number, call_kind, call_kind.invoke(&book, number, &vec![0; size])));
    }
    orb.shutdown()?;
    Ok(calls)
}

fn kill_repeatedly(
    seed: u64,
    kills: usize,
    mut server: Server,
    configuration: &Configuration,
    current: &Mutex<String>,
    next: &AtomicU64,
) -> Result<Server> {
    let mut rng = Rng::with_seed(seed);
    for _ in 0..kills {
        let target = next.load(Ordering::SeqCst) + rng.u64(1..CALLS_BETWEEN_KILLS);
        let progress = holds_within(TIMEOUT, || next.load(Ordering::SeqCst) >= target);
        ensure!(progress, "the callers make no progress");
        server.kill()?;
        server = Server::start(configuration)?;
        current.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&server.reference);
    }
    Ok(server)
}

fn check(call_kind: CallKind, outcome: &Outcome, executed: Executions) -> Result<()> {
    ensure!(executed.begun <= 1 && executed.ended <= executed.begun, "the request was executed {executed:?}");
    match outcome {
        Outcome::Violation(what) => bail!("{what}"),
        Outcome::Returned if call_kind.awaits_execution() => {
            ensure!(executed.ended == 1, "a result without an execution")
        }
        Outcome::Returned | Outcome::Ignored => {}
        Outcome::Raised(exception) => {
            let (kind, completed) = (exception.kind(), exception.completed());
            ensure!(completed != CompletionStatus::No || executed.begun == 0, "the request was executed");
            ensure!(completed != CompletionStatus::Yes || executed.ended == 1, "the request was not executed");
            let is_transient = kind == SystemExceptionKind::Transient && completed == CompletionStatus::No;
            // The port of a killed server may belong to another server by now, which does not have the object.
            let is_stale = kind == SystemExceptionKind::ObjectNotExist && completed == CompletionStatus::No;
            let is_right = is_transient || is_stale || kind == SystemExceptionKind::CommFailure;
            ensure!(is_right, "the wrong exception for the fault");
        }
    }
    Ok(())
}

/// Starts a caller in its own process, which records its calls and their results.
fn start_caller(reference: &str, client_journal: &std::path::Path, first: u64) -> Result<ChildProcess> {
    let mut command = Command::new(program("faults-client")?);
    command.arg(reference).arg(client_journal).arg(first.to_string());
    Ok(ChildProcess::try_start(command.stdin(Stdio::null()).stdout(Stdio::null()))?)
}

/// The maximum number of calls of each caller.
const MAX_CALLS: u64 = 1 << 32;

/// Kills `kills` callers at random moments. Returns the number of their calls.
///
/// # Errors
/// If a request was executed twice or was never sent, or if the server keeps descriptors of killed callers.
pub fn kill_clients(seed: u64, kills: u64, endpoint: &str) -> Result<usize> {
    let folder = tempfile::tempdir()?;
    let client_journal = folder.path().join("client-journal");
    let configuration = configuration(folder.path(), endpoint)?;
    let server = Server::start(&configuration)?;
    let before = server.descriptors_without_clients();
    let mut rng = Rng::with_seed(seed);
    Journal::open(&client_journal)?;
    for kill in 0..kills {
        let target = std::fs::metadata(&client_journal)?.len() + rng.u64(9..20_000);
        let mut caller = start_caller(&server.reference, &client_journal, kill * MAX_CALLS)?;
        let start = Instant::now();
        while std::fs::metadata(&client_journal)?.len() < target {
            ensure!(
                start.elapsed() < TIMEOUT && caller.try_wait()?.is_none(),
                "seed {seed}: the caller makes no progress"
            );
            thread::yield_now();
        }
        caller.kill()?;
        caller.wait()?;
    }
    let is_clean = holds_within(TIMEOUT, || server.descriptors() <= before);
    ensure!(is_clean, "the server keeps descriptors of killed callers");
    server.finish()?;
    let (calls, executed) = (journal::read(&client_journal)?, journal::read(&configuration.journal)?);
    for (number, outcome) in &calls {
        let executed = executed.get(number).copied().unwrap_or_default();
        ensure!(executed.begun <= 1, "seed {seed}: {number} was executed {executed:?}");
        ensure!(outcome.ended <= executed.ended, "seed {seed}: {number}: a result without an execution");
    }
    ensure!(
        executed.keys().all(|number| calls.contains_key(number)),
        "seed {seed}: a request was executed that was never sent"
    );
    Ok(calls.len())
}
