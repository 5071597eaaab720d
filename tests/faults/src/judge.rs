//! Checks the outcome at the caller against the executions.

use anyhow::{Result, bail, ensure};
use spandrel::{CompletionStatus, SystemExceptionKind};

use crate::call::{CallKind, Outcome};
use crate::journal::Executions;
use crate::proxy::{Direction, Fault, Injected};
use crate::scenario::{Scenario, Step};

/// One request of a scenario.
#[derive(Debug)]
pub struct Case {
    pub scenario: Scenario,
    pub number: u64,
    pub outcome: Outcome,
    /// The injected fault; `None` if the call ended before it.
    pub injected: Option<Injected>,
}

/// Checks one case.
///
/// # Errors
/// If the outcome contradicts the executions, or is not the required one.
pub fn judge(case: &Case, executed: Executions) -> Result<()> {
    ensure!(executed.ended <= executed.begun, "more ends than starts: {executed:?}");
    ensure!(executed.begun <= 1, "the request was executed {} times", executed.begun);
    let call_kind = case.scenario.call_kind;
    match &case.outcome {
        Outcome::Violation(what) => bail!("{what}"),
        Outcome::Returned if call_kind.awaits_execution() => {
            ensure!(executed.ended == 1, "a result without an execution: {executed:?}");
        }
        Outcome::Returned if call_kind == CallKind::Locate => {
            ensure!(executed.begun == 0, "a LocateRequest was executed")
        }
        Outcome::Returned | Outcome::Ignored => {}
        Outcome::Raised(exception) => {
            match exception.completed() {
                CompletionStatus::No => ensure!(executed.begun == 0, "the request was executed: {exception}"),
                CompletionStatus::Yes => ensure!(executed.ended == 1, "the request was not executed: {exception}"),
                CompletionStatus::Maybe => {}
            }
            check_exception(case, exception.kind(), exception.completed())?;
        }
    }
    if case.scenario.callers == 1 { check_single_call(case, executed) } else { Ok(()) }
}

/// Checks the exception's kind.
fn check_exception(case: &Case, kind: SystemExceptionKind, completed: CompletionStatus) -> Result<()> {
    let is_right = match kind {
        SystemExceptionKind::CommFailure => case.scenario.fault != Fault::Delay,
        // A call that has written nothing retries, and may use a connection that other calls have just lost.
        SystemExceptionKind::Transient => {
            let in_handshake = case.scenario.server.secure;
            let shared_connection = case.scenario.callers > 1;
            completed == CompletionStatus::No
                && (case.scenario.fault == Fault::Kill || shared_connection || in_handshake)
        }
        SystemExceptionKind::Timeout => case.scenario.fault == Fault::Silence,
        _ => false,
    };
    ensure!(is_right, "the wrong exception for the fault: {kind:?}, {completed:?}");
    // With a silence fault the timeout is short, and may expire before the fault on a loaded machine.
    let is_late = kind == SystemExceptionKind::Timeout;
    ensure!(case.injected.is_some() || is_late, "the call failed without a fault");
    Ok(())
}

/// The required outcome of a single call: the table in docs/connections.md, "What a failure means".
fn check_single_call(case: &Case, executed: Executions) -> Result<()> {
    let (Some(injected), scenario) = (case.injected, case.scenario) else { return Ok(()) };
    if !scenario.call_kind.awaits_message() {
        return Ok(());
    }
    let is_done = matches!(case.outcome, Outcome::Returned);
    let is_maybe = crate::call::completion(&case.outcome) == Some(CompletionStatus::Maybe);
    if scenario.fault == Fault::Delay {
        ensure!(is_done, "a delayed call must return");
        return Ok(());
    }
    match scenario.step {
        Step::Request(_) if injected.message_complete == Some(false) => {
            ensure!(is_done || executed.begun == 0, "the server executed a truncated request");
        }
        Step::Request(_) => {}
        Step::Upcall if scenario.call_kind.awaits_execution() => {
            ensure!(executed.begun == 1, "the upcall had begun");
            ensure!(is_maybe || scenario.fault == Fault::HalfClose, "the completion is unknown");
        }
        Step::Upcall => {}
        // The reply is sent before the execution.
        Step::Reply(_) if scenario.call_kind == CallKind::WithServer => {}
        Step::Reply(_) if injected.message_complete.is_none() => {}
        Step::Reply(_) if injected.direction == Direction::Reply && injected.message_complete == Some(false) => {
            ensure!(is_maybe, "a truncated reply leaves the completion unknown");
            ensure!(
                executed.begun == u32::from(scenario.call_kind != CallKind::Locate),
                "the request was executed before the reply"
            );
        }
        // The caller does not read the reply after its timeout.
        Step::Reply(_) if scenario.fault == Fault::Silence => {}
        Step::Reply(_) => ensure!(is_done || scenario.fault == Fault::Reset, "the complete reply had arrived"),
    }
    Ok(())
}
