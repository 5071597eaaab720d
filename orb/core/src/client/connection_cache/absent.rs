//! What stands in for the count of all connections where there is none.

use std::time::Duration;

use spandrel_sync::Arc;

use super::CallFailure;

/// Nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheSettings {}

/// Nothing.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCache {}

/// Nothing.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {}

/// Nothing.
#[derive(Debug, Default)]
pub(crate) struct PurgingMarks {}

impl PurgingMarks {
    #[inline]
    pub(super) fn note_use(&mut self) {}
}

impl ConnectionCache {
    pub(crate) fn new(_settings: CacheSettings) -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn marks(&self) -> PurgingMarks {
        PurgingMarks {}
    }

    pub(super) fn join<M>(&self, _member: &Arc<M>) {}

    pub(super) fn tell(&self) {}

    pub(super) fn reserve<M>(&self, _member: &M, _timeout: Option<Duration>) -> Result<ConnectionSlot, CallFailure> {
        Ok(ConnectionSlot {})
    }
}
