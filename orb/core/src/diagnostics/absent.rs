//! What stands in for diagnostics where there are none: nobody watches anything.

use std::{convert::Infallible, fmt};

#[cfg(feature = "server")]
use spandrel_giop::{ReplyStatus, SystemException};

/// Nothing is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiagnosticsSettings {}

/// Nobody watches.
#[derive(Debug)]
pub(crate) struct Diagnostics {}

impl Diagnostics {
    pub(crate) fn new(_settings: &DiagnosticsSettings) -> Self {
        Self {}
    }

    pub(crate) fn begin_close(&self) {}

    pub(crate) fn close(&self) {}
}

/// Nothing.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMetrics {}

/// No calls are measured, and none have a label.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InterfaceLabel {}

impl InterfaceLabel {
    pub(crate) fn narrowed<I: crate::Interface>(self) -> Self {
        self
    }

    #[cfg(feature = "asynchronous")]
    pub(crate) fn name(self) -> &'static str {
        ""
    }
}

/// No call.
#[derive(Debug)]
pub(crate) struct WatchedCall(Infallible);

impl WatchedCall {
    pub(crate) fn sent(
        &self,
        _connection: Option<(&ConnectionMetrics, &dyn fmt::Display)>,
        _key: &[u8],
        _request_id: u32,
        _octets: usize,
    ) {
        match self.0 {}
    }
}

#[cfg(feature = "asynchronous")]
impl WatchedCall {
    pub(crate) fn in_scope<R>(&self, _act: impl FnOnce() -> R) -> R {
        match self.0 {}
    }

    pub(crate) fn contexts(&self) -> &[spandrel_giop::ServiceContext] {
        match self.0 {}
    }

    pub(crate) fn end(
        &self,
        _interface: &str,
        _operation: &str,
        _outcome: Result<Option<spandrel_giop::ReplyStatus>, &spandrel_giop::SystemException>,
    ) {
        match self.0 {}
    }

    pub(crate) fn abandon(&self, _interface: &str, _operation: &str) {
        match self.0 {}
    }
}

/// No request.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct WatchedRequest(Infallible);

#[cfg(feature = "server")]
impl WatchedRequest {
    pub(crate) fn in_scope<R>(&self, _act: impl FnOnce() -> R) -> R {
        match self.0 {}
    }

    pub(crate) fn found(&self, _interface: &str, _operation: &str, _has_operation: bool) {
        match self.0 {}
    }

    pub(crate) fn raised(&self, _exception: &SystemException) {
        match self.0 {}
    }

    pub(crate) fn answered(&self, _status: ReplyStatus) {
        match self.0 {}
    }
}

/// Nothing.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalTime {}

#[cfg(feature = "server")]
impl ArrivalTime {
    pub(crate) fn now(_diagnostics: &Diagnostics) -> Self {
        Self {}
    }

    pub(crate) fn ends(self, _diagnostics: &Diagnostics) {
        let Self {} = self;
    }
}

#[cfg(feature = "server")]
pub(crate) fn untraced<R>(act: impl FnOnce() -> R) -> R {
    act()
}
