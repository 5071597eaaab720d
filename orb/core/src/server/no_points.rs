//! What stands in for server interceptors where there are none.

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{ReplyStatus, ServiceContext, SystemException};

use super::asked::{Asked, Flow};
use crate::{ObjectRef, Orb, Servant, Target};

pub(super) type Instead = Result<ObjectRef, SystemException>;

pub(super) fn are_there(_orb: &Orb) -> bool {
    false
}

pub(super) fn begin(_asked: &Asked<'_>) -> Option<(Flow, Option<Instead>)> {
    None
}

pub(super) fn receive_request(
    flow: &Flow,
    _asked: &Asked<'_>,
    _servant: &dyn Servant,
    _target: &dyn Target,
) -> Option<Instead> {
    flow.never()
}

pub(super) fn lend_slots(_flow: Option<&Flow>) -> Option<Flow> {
    None
}

pub(super) fn answer<'a>(
    flow: &Flow,
    _asked: &Asked<'_>,
    _status: ReplyStatus,
    _said: &[ServiceContext],
    _encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    flow.never()
}

pub(super) fn give_up(_flow: Option<&Flow>, _asked: &Asked<'_>, _exception: &SystemException) {}
