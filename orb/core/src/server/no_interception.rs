//! What stands in for server interceptors where there are none.

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{ReplyStatus, ServiceContext, SystemException};

use super::incoming_request::{IncomingRequest, RequestFlow};
use crate::{ObjectRef, Orb, Servant, Target};

pub(super) type PointDecision = Result<ObjectRef, SystemException>;

pub(super) fn are_there(_orb: &Orb) -> bool {
    false
}

pub(super) fn begin(_asked: &IncomingRequest<'_>) -> Option<(RequestFlow, Option<PointDecision>)> {
    None
}

pub(super) fn receive_request(
    flow: &RequestFlow,
    _asked: &IncomingRequest<'_>,
    _servant: &dyn Servant,
    _target: &dyn Target,
) -> Option<PointDecision> {
    flow.never()
}

pub(super) fn lend_slots(_flow: Option<&RequestFlow>) -> Option<RequestFlow> {
    None
}

pub(super) fn answer<'a>(
    flow: &RequestFlow,
    _asked: &IncomingRequest<'_>,
    _status: ReplyStatus,
    _said: &[ServiceContext],
    _encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    flow.never()
}

pub(super) fn give_up(_flow: Option<&RequestFlow>, _asked: &IncomingRequest<'_>, _exception: &SystemException) {}
