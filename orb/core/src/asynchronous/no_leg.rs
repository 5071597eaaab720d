//! What stands in for interceptors of asynchronous calls where there are none.

use spandrel_giop::{ServiceContext, SystemException};
use spandrel_sync::Arc;

use super::call::{Call, Progress};
use crate::{client::Reply, invocation::Verdict};

/// Nothing.
#[derive(Debug, Default)]
pub(super) struct Leg {}

impl Leg {
    pub(super) fn contexts(&self) -> &[ServiceContext] {
        &[]
    }

    pub(super) fn lose(&mut self) {}

    pub(super) fn is_open(&self) -> bool {
        false
    }
}

impl Call {
    pub(super) fn begin_leg(&self, _progress: &mut Progress, _index: usize) -> Result<bool, SystemException> {
        Ok(true)
    }

    pub(super) fn judge_leg(
        &self,
        _progress: &mut Progress,
        _reply: &Reply,
        judged: Result<Verdict, SystemException>,
    ) -> Result<Verdict, SystemException> {
        judged
    }

    pub(super) fn fail_leg(&self, _progress: &mut Progress, exception: SystemException) -> Result<(), SystemException> {
        Err(exception)
    }

    pub(super) fn elsewhere(self: &Arc<Self>, go_on: impl FnOnce(Arc<Self>)) {
        go_on(Arc::clone(self));
    }
}
