//! What stands in for server interceptors where there are none.

use std::convert::Infallible;

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{ReplyStatus, SystemException};

use super::call::Asked;
use crate::{Orb, Replied, Servant, Target};

/// No request has any.
#[derive(Clone, Debug)]
pub(super) struct Flow(Infallible);

pub(super) fn are_there(_orb: &Orb) -> bool {
    false
}

pub(super) fn begin(_asked: &Asked<'_>) -> Option<Flow> {
    None
}

pub(super) fn receive_request(
    flow: &Flow,
    _asked: &Asked<'_>,
    _servant: &dyn Servant,
    _target: &dyn Target,
) -> Option<Result<Replied, SystemException>> {
    match flow.0 {}
}

pub(super) fn lend_slots(_flow: Option<&Flow>) {}

pub(super) fn answer<'a>(
    flow: &Flow,
    _asked: &Asked<'_>,
    _status: ReplyStatus,
    _encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    match flow.0 {}
}

pub(super) fn give_up(_flow: Option<&Flow>, _asked: &Asked<'_>, _exception: &SystemException) {}
