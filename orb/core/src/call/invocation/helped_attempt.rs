//! Attempts with the help of other threads: buffered one-ways, which another thread may write, and calls whose
//! threads do not read their own replies.

use std::time::Duration;

use spandrel_cdr::Encoder;
use spandrel_sync::Arc;
use spandrel_transport::Deadline;

use super::await_reply;
use crate::{
    Orb,
    client::{
        CallFailure, ClientConnection, Lease, OneWayBuffer, Peer, Reply, call_kind::CallKind, destination::Destination,
    },
    orb::parts::{HelpedAttempts, Parts, THREAD_HELP, record_use},
    policy::thread_flags,
};

/// Called by each call whose reference buffers one-ways: from then on, calls of its ORB check whether they need help.
pub(super) const ENABLE_BUFFERING: Option<fn(&Orb)> = Some(enable);

/// The functions of attempts that may need help.
const HELPED_ATTEMPTS: HelpedAttempts = HelpedAttempts { lease, transmit };

/// Makes the calls of an ORB check from now on whether they need help.
fn enable(orb: &Orb) {
    orb.parts().add_helped_attempts();
}

impl Parts {
    /// Makes the calls of the ORB check from now on whether they need help.
    pub(crate) fn add_helped_attempts(&self) {
        record_use();
        self.helped_attempts.get_or_init(|| HELPED_ATTEMPTS);
    }
}

/// Makes the calls of this thread check whether they need help, or not any more.
pub(super) fn set_thread_help(is_needed: bool) {
    if is_needed {
        record_use();
        thread_flags::record_use();
    }
    THREAD_HELP.with(|of_thread| of_thread.set(is_needed.then_some(HELPED_ATTEMPTS)));
}

/// Leases a connection: for buffered one-ways always the same.
fn lease<'d>(
    peer: &'d Peer,
    call_kind: &CallKind<'_, '_>,
    connect_time: Option<Duration>,
) -> Result<Lease<&'d Peer>, CallFailure> {
    match call_kind {
        CallKind::Request { buffering: Some(_), .. } => peer.lease_first(connect_time),
        _ => peer.lease(connect_time),
    }
}

/// Sends a request and waits for its reply, with help if the call needs some.
fn transmit(
    orb: &Orb,
    destination: &Destination,
    connection: &Arc<ClientConnection>,
    call_kind: &CallKind<'_, '_>,
    out: &Encoder<'_>,
    request_id: u32,
    deadline: Option<&Deadline>,
) -> Result<Option<Reply>, CallFailure> {
    let (peer, limits) = (&*destination.peer, destination.peer.settings.write_limits);
    if let CallKind::Request { buffering: Some(buffering), .. } = call_kind {
        let maintenance_thread = peer.maintenance_thread();
        return OneWayBuffer::send(connection, out, buffering, limits.octets, maintenance_thread, deadline)
            .map(|()| None);
    }
    if call_kind.expects_reply() && await_reply::is_needed(orb) {
        return await_reply::two_way(orb, connection, request_id, out, deadline, limits).map(Some);
    }
    call_kind.transmit(connection, out, request_id, deadline)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::{OrbBuilder, WaitStrategy};

    fn is_helped(orb: &Orb) -> bool {
        orb.parts().helped_attempts().is_some()
    }

    #[test]
    fn a_wait_strategy_helps_the_calls_of_its_own_orb_only() {
        let delegating = OrbBuilder::bare().wait_strategy(WaitStrategy::OnWaker).build().unwrap();
        let bare = OrbBuilder::bare().build().unwrap();
        assert!(is_helped(&delegating) && !is_helped(&bare));
    }

    #[test]
    fn a_thread_that_nests_requests_helps_the_orbs_that_it_calls_by() {
        let [called, other] = [(); 2].map(|()| OrbBuilder::bare().build().unwrap());
        called.parts().add_thread_help();
        assert!(!is_helped(&called));
        set_thread_help(true);
        called.parts().add_thread_help();
        set_thread_help(false);
        other.parts().add_thread_help();
        assert!(is_helped(&called) && !is_helped(&other));
    }
}
