//! The optional parts of one ORB, which its builder plugs in, or the first operation that needs one.
//!
//! Each part is a function of a module above this one. A program that plugs in none does not contain it. ORBs of one
//! process share no part.

use std::{cell::Cell, sync::OnceLock, time::Duration};

use spandrel_cdr::{Encoder, Ior};
use spandrel_giop::SystemException;
use spandrel_sync::{Arc, thread_local};
use spandrel_transport::Deadline;

use super::{Orb, start_times::StartTimes};
use crate::{
    client::{CallFailure, ClientConnection, Lease, Peer, Reply, call_kind::CallKind, destination::Destination},
    policy::{Overrides, PolicyValues},
};

/// Whether an ORB of this process has a part. It selects nothing, as each ORB has its own: a program that plugs in none
/// does not contain the code around them.
static ARE_IN_USE: OnceLock<()> = OnceLock::new();

/// Records that an ORB is about to get a part.
pub(crate) fn record_use() {
    ARE_IN_USE.get_or_init(|| ());
}

/// Whether an ORB of this process has a part.
#[inline]
pub(crate) fn are_in_use() -> bool {
    ARE_IN_USE.get().is_some()
}

/// The parts that an ORB has. An absent one costs a call one branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    urls: Option<UrlFunctions>,
    observe_call: Option<ObserveCall>,
    policy_lookup: OnceLock<PolicyLookup>,
    pub(crate) helped_attempts: OnceLock<HelpedAttempts>,
}

/// The functions for references in the form of URLs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UrlFunctions {
    /// Reads the string form of a reference.
    pub(crate) read: fn(&Orb, &str) -> Result<Ior, SystemException>,
    /// Checks the initial references of the options.
    pub(crate) check_initial: fn(&Orb) -> Result<(), SystemException>,
}

/// Makes a call that diagnostics observe, of the interface with this label. The last argument makes the call with
/// contexts and observer added.
pub(crate) type ObserveCall = for<'f, 'a> fn(
    &Orb,
    &str,
    &CallKind<'f, 'a>,
    &mut dyn FnMut(&CallKind<'_, 'a>) -> Result<Option<Reply>, SystemException>,
) -> Result<Option<Reply>, SystemException>;

/// Looks up the policies for which [`PolicyValues`] has only a flag. `Overrides` are those of the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyLookup {
    /// The values of the calling thread's policies.
    pub(crate) thread: fn(&Orb) -> PolicyValues,
    /// The deadline of a call that begins now, if more than its round trip is limited.
    pub(crate) limits: fn(&Orb, &Overrides, Option<Duration>) -> Option<Deadline>,
    /// The start times of the call, if there are some.
    pub(crate) start_times: fn(&Orb, &Overrides) -> Option<Box<dyn StartTimes>>,
}

/// The functions of attempts that may need other threads: those of buffered one-ways, and of calls whose threads do not
/// read their own replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HelpedAttempts {
    pub(crate) lease: LeaseConnection,
    pub(crate) transmit: Transmit,
}

/// Leases a connection for a call; a new one is opened within the given time.
pub(crate) type LeaseConnection =
    for<'d> fn(&'d Peer, &CallKind<'_, '_>, Option<Duration>) -> Result<Lease<&'d Peer>, CallFailure>;

/// Sends the encoded request with this id, and waits for its reply.
pub(crate) type Transmit = fn(
    &Orb,
    &Destination,
    &Arc<ClientConnection>,
    &CallKind<'_, '_>,
    &Encoder<'_>,
    u32,
    Option<&Deadline>,
) -> Result<Option<Reply>, CallFailure>;

thread_local! {
    /// Set in threads of pools that serve further requests while they wait: those belong to no ORB in particular.
    pub(crate) static THREAD_HELP: Cell<Option<HelpedAttempts>> = const { Cell::new(None) };
}

impl Parts {
    /// The functions for references in the form of URLs, if the ORB reads them.
    pub(crate) fn urls(&self) -> Option<UrlFunctions> {
        if are_in_use() { self.urls } else { None }
    }

    pub(crate) fn set_urls(&mut self, urls: UrlFunctions) {
        record_use();
        self.urls = Some(urls);
    }

    /// Makes the calls that diagnostics observe, if the ORB has diagnostics.
    #[inline]
    pub(crate) fn observe_call(&self) -> Option<ObserveCall> {
        if are_in_use() { self.observe_call } else { None }
    }

    pub(crate) fn set_observe_call(&mut self, observe_call: ObserveCall) {
        record_use();
        self.observe_call = Some(observe_call);
    }

    /// The lookup of policies, once one may be set that [`PolicyValues`] has only a flag for.
    pub(crate) fn policy_lookup(&self) -> Option<&PolicyLookup> {
        if are_in_use() { self.policy_lookup.get() } else { None }
    }

    pub(crate) fn add_policy_lookup(&self, lookup: PolicyLookup) {
        record_use();
        self.policy_lookup.get_or_init(|| lookup);
    }

    /// The functions of attempts, once a call may need the help of another thread.
    #[inline]
    pub(crate) fn helped_attempts(&self) -> Option<&HelpedAttempts> {
        if are_in_use() { self.helped_attempts.get() } else { None }
    }

    /// Plugs in helped attempts if a call of the present thread may need them.
    pub(crate) fn add_thread_help(&self) {
        if let Some(help) = THREAD_HELP.with(Cell::get) {
            self.helped_attempts.get_or_init(|| help);
        }
    }
}
