//! What stands in for interceptors of asynchronous calls where there are none.

use spandrel_giop::{ServiceContext, SystemException};
use spandrel_sync::Arc;

use super::request::AsyncRequest;
use crate::{
    client::Reply,
    invocation::{ReplyAction, RetryState},
};

/// Nothing.
#[derive(Debug, Default)]
pub(super) struct AsyncInterception {}

impl AsyncInterception {
    pub(super) fn contexts(&self) -> &[ServiceContext] {
        &[]
    }

    pub(super) fn lose(&mut self) {}

    pub(super) fn is_open(&self) -> bool {
        false
    }

    pub(super) fn begin(
        &mut self,
        _asked: &AsyncRequest,
        _attempts: &mut RetryState,
        _index: usize,
    ) -> Result<bool, SystemException> {
        Ok(true)
    }

    pub(super) fn judge(
        &mut self,
        _asked: &AsyncRequest,
        _attempts: &mut RetryState,
        _reply: &Reply,
        judged: Result<ReplyAction, SystemException>,
    ) -> Result<ReplyAction, SystemException> {
        judged
    }

    pub(super) fn fail(
        &mut self,
        _asked: &AsyncRequest,
        _attempts: &mut RetryState,
        exception: SystemException,
    ) -> Result<(), SystemException> {
        Err(exception)
    }
}

pub(super) fn elsewhere<C>(_asked: &AsyncRequest, call: &Arc<C>, advance: impl FnOnce(Arc<C>)) {
    advance(Arc::clone(call));
}
