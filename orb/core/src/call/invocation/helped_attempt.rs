//! Attempts with the help of other threads: buffered one-ways, which another thread may write, and calls whose
//! threads do not read their own replies.

use super::{
    Invocation, await_reply,
    blocking::{Attempt, HELPED_ATTEMPT},
};
use crate::client::{
    CallFailure, OneWayBuffer, Peer, Reply, WriteLimits, call_kind::CallKind, destination::Destination,
};

/// Called by each call whose reference buffers one-ways: from then on, calls of the process check whether they need help.
pub(super) const ENABLE_BUFFERING: Option<fn()> = Some(enable_helped_attempts);

/// Makes the calls of this process check from now on whether they need help.
pub(crate) fn enable_helped_attempts() {
    HELPED_ATTEMPT.get_or_init(|| attempt as Attempt);
}

/// Makes an attempt, with help if it needs some.
fn attempt(
    invocation: &mut Invocation<'_>,
    destination: &Destination,
    call_kind: &CallKind<'_, '_>,
    limits: WriteLimits,
) -> Result<Option<Reply>, CallFailure> {
    let (orb, deadline, peer) = (invocation.object.orb(), invocation.deadline, &*destination.peer);
    let CallKind::Request { buffering: Some(buffering), .. } = call_kind else {
        let lease = invocation.lease(destination, Peer::lease)?;
        return invocation.exchange(&lease, destination, call_kind, |out, request_id| {
            if call_kind.expects_reply() && await_reply::is_needed(orb) {
                return await_reply::two_way(orb, &lease, request_id, out, deadline, limits).map(Some);
            }
            call_kind.transmit(&lease, out, request_id, deadline)
        });
    };
    let lease = invocation.lease(destination, Peer::lease_first)?;
    invocation.exchange(&lease, destination, call_kind, |out, _| {
        OneWayBuffer::send(&lease, out, buffering, limits.octets, peer.maintenance_thread(), deadline).map(|()| None)
    })
}
