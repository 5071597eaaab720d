//! What a caller may be told, given what was executed.

use anyhow::{Result, bail, ensure};
use spandrel::{CompletionStatus, SystemExceptionKind};

use crate::call::{Told, Way};
use crate::journal::Executions;
use crate::relay::{Deed, Direction, Fired};
use crate::script::{Script, Step};

/// One request of a script.
#[derive(Debug)]
pub struct Case {
    pub script: Script,
    pub number: u64,
    pub told: Told,
    /// What has happened; none if the script came to its end before.
    pub fired: Option<Fired>,
}

/// Compares.
///
/// # Errors
/// If the caller was told what is not so, or not what it had to be told.
pub fn judge(case: &Case, executed: Executions) -> Result<()> {
    ensure!(executed.ended <= executed.begun, "it ended more often than it began: {executed:?}");
    ensure!(executed.begun <= 1, "it was executed {} times", executed.begun);
    let way = case.script.way;
    match &case.told {
        Told::Wrong(what) => bail!("{what}"),
        Told::Done if way.awaits_execution() => {
            ensure!(executed.ended == 1, "a result without an execution: {executed:?}");
        }
        Told::Done if way == Way::Locate => ensure!(executed.begun == 0, "a question was executed"),
        Told::Done | Told::Nothing => {}
        Told::Refused(exception) => {
            match exception.completed() {
                CompletionStatus::No => ensure!(executed.begun == 0, "it was executed: {exception}"),
                CompletionStatus::Yes => ensure!(executed.ended == 1, "it was not executed: {exception}"),
                CompletionStatus::Maybe => {}
            }
            kind(case, exception.kind(), exception.completed())?;
        }
    }
    if case.script.callers == 1 { strictly(case, executed) } else { Ok(()) }
}

/// Which exceptions there may be.
fn kind(case: &Case, kind: SystemExceptionKind, completed: CompletionStatus) -> Result<()> {
    let is_right = match kind {
        SystemExceptionKind::CommFailure => case.script.deed != Deed::Delay,
        // Whoever had nothing written yet tries once more, and may find a connection that others have just lost.
        SystemExceptionKind::Transient => {
            let in_handshake = case.script.kind.secure;
            let of_others = case.script.callers > 1;
            completed == CompletionStatus::No && (case.script.deed == Deed::Kill || of_others || in_handshake)
        }
        SystemExceptionKind::Timeout => case.script.deed == Deed::Silence,
        _ => false,
    };
    ensure!(is_right, "not the exception for that: {kind:?}, {completed:?}");
    // Where it comes to a silence there is little time, which a loaded machine may take before that.
    let is_late = kind == SystemExceptionKind::Timeout;
    ensure!(case.fired.is_some() || is_late, "nothing has happened, but it failed");
    Ok(())
}

/// What is certain where there was only one call: the table in docs/connections.md, "What a failure means".
fn strictly(case: &Case, executed: Executions) -> Result<()> {
    let (Some(fired), script) = (case.fired, case.script) else { return Ok(()) };
    if !script.way.awaits_answer() {
        return Ok(());
    }
    let is_done = matches!(case.told, Told::Done);
    let is_maybe = crate::call::completion(&case.told) == Some(CompletionStatus::Maybe);
    if script.deed == Deed::Delay {
        ensure!(is_done, "what is late only must arrive");
        return Ok(());
    }
    match script.step {
        Step::Request(_) if fired.whole == Some(false) => {
            ensure!(is_done || executed.begun == 0, "the server had only a part of it, and executed that");
        }
        Step::Request(_) => {}
        Step::Upcall if script.way.awaits_execution() => {
            ensure!(executed.begun == 1, "it was in its upcall");
            ensure!(is_maybe || script.deed == Deed::Half, "nobody can know whether it was done");
        }
        Step::Upcall => {}
        // It is answered before it is executed.
        Step::Reply(_) if script.way == Way::WithServer => {}
        Step::Reply(_) if fired.whole.is_none() => {}
        Step::Reply(_) if fired.direction == Direction::Reply && fired.whole == Some(false) => {
            ensure!(is_maybe, "a part of the answer came, which says nothing");
            ensure!(executed.begun == u32::from(script.way != Way::Locate), "it had been executed");
        }
        // It is not read any more by a caller whose time was up before.
        Step::Reply(_) if script.deed == Deed::Silence => {}
        Step::Reply(_) => ensure!(is_done || script.deed == Deed::Reset, "the answer had come whole"),
    }
    Ok(())
}
