//! What stands in for interceptors of asynchronous calls where there are none.

use spandrel_giop::{ServiceContext, SystemException};
use spandrel_sync::Arc;

use super::asked::Asked;
use crate::{
    client::Reply,
    invocation::{Attempts, Verdict},
};

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

    pub(super) fn begin(
        &mut self,
        _asked: &Asked,
        _attempts: &mut Attempts,
        _index: usize,
    ) -> Result<bool, SystemException> {
        Ok(true)
    }

    pub(super) fn judge(
        &mut self,
        _asked: &Asked,
        _attempts: &mut Attempts,
        _reply: &Reply,
        judged: Result<Verdict, SystemException>,
    ) -> Result<Verdict, SystemException> {
        judged
    }

    pub(super) fn fail(
        &mut self,
        _asked: &Asked,
        _attempts: &mut Attempts,
        exception: SystemException,
    ) -> Result<(), SystemException> {
        Err(exception)
    }
}

pub(super) fn elsewhere<C>(_asked: &Asked, call: &Arc<C>, go_on: impl FnOnce(Arc<C>)) {
    go_on(Arc::clone(call));
}
