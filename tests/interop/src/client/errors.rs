//! Exceptions and timeouts.

use std::time::Duration;

use anyhow::Context;
use spandrel::{CompletionStatus, SystemException, SystemExceptionKind};

use crate::idl::errors::RaiseUserError;
use crate::idl::*;
use crate::suite::{Suite, TIME_LIMIT, equal, kind, raises};
use crate::values::{Value, value};

const USER_MINOR: u32 = 0x1234_5678;

/// Standard exceptions that omniORB 4.2 does not have; there are no cases for them.
const NOT_IN_OMNIORB: [SystemExceptionKind; 4] = [
    SystemExceptionKind::InvalidActivity,
    SystemExceptionKind::ActivityCompleted,
    SystemExceptionKind::ActivityRequired,
    SystemExceptionKind::ThreadCancelled,
];

pub(super) fn run(suite: &mut Suite<'_>, target: &Errors) {
    suite.case("errors/user", || {
        equal("none", target.raise_user(0, 0)?, 17)?;
        raises(target.raise_user(1, 0), |error| matches!(error, RaiseUserError::Empty(_)))?;
        raises(
            target.raise_user(2, 99),
            |error| matches!(error, RaiseUserError::Plain(Plain { code: 99, why }) if why == GREETING),
        )?;
        raises(
            target.raise_user(4, 0),
            |error| matches!(error, RaiseUserError::Mismatch(what) if is_requested_mismatch(what)),
        )
    });
    suite.seeded("errors/user-rich", |seed| {
        raises(
            target.raise_user(3, seed),
            |error| matches!(error, RaiseUserError::Rich(rich) if rich.same(&value(seed, 1))),
        )
    });
    for kind in SystemExceptionKind::ALL.iter().filter(|kind| !NOT_IN_OMNIORB.contains(kind)) {
        suite.case(&format!("errors/{}", kind.name()), || {
            for (completed, number) in
                [(CompletionStatus::Yes, 0), (CompletionStatus::No, 1), (CompletionStatus::Maybe, 2)]
            {
                let expected = SystemException::new(*kind, USER_MINOR + number, completed);
                let raised = target.raise_system(kind.name(), USER_MINOR + number, number);
                raises(raised, |seen| *seen == expected).context(expected)?;
            }
            Ok(())
        });
    }
    suite.case("errors/unknown-operation", || {
        let bulk = Bulk::unchecked_narrow(target.as_object());
        raises(bulk.text(0, "", 0), |error| {
            matches!(error, bulk::TextError::System(error)
                if kind(error) == "BAD_OPERATION" && error.completed() == CompletionStatus::No)
        })
    });
    suite.case("errors/timeout", || {
        equal("in time", target.sleep(20)?, 20)?;
        let timed = |limit| Errors::unchecked_narrow(&target.as_object().with_timeout(Some(limit)));
        raises(timed(Duration::from_millis(150)).sleep(1000), |error| kind(error) == "TIMEOUT")?;
        equal("the next call", timed(TIME_LIMIT).sleep(0)?, 0)
    });
}

/// True for the text that servers put into a [`Mismatch`] raised on request.
pub(super) fn is_requested_mismatch(Mismatch { what }: &Mismatch) -> bool {
    what == "as you asked"
}
