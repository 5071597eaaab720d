//! Traces that go through many systems: what of them travels with requests (W3C trace context), and what a thread does for which.
//!
//! A request that comes with a context makes that the context of its upcall, one step further; calls that the servant makes
//! carry it on. What is recorded of a trace, and where that is sent, belongs to whoever subscribes to `tracing`'s spans; a
//! [`TraceSource`] joins their contexts to ours.
//!
//! On the wire it is a service context of ours: an encapsulation with `traceparent` and `tracestate`, two strings.

mod context;
mod ids;

use std::{
    cell::{Cell, RefCell},
    fmt,
    marker::PhantomData,
};

#[cfg(feature = "server")]
use spandrel_cdr::Decoder;
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{ServiceContext, ids::CONTEXT_TRACE};
use spandrel_sync::{Arc, thread_local};

pub use context::{MAX_STATE, TraceContext, TraceContextError};

/// The longest context that is read: two strings with their lengths, the second as long as it may be.
#[cfg(feature = "server")]
const MAX_DATA: usize = MAX_STATE + 128;

thread_local! {
    /// What this thread works for.
    static CURRENT: RefCell<Option<TraceContext>> = const { RefCell::new(None) };
    /// Whether that is anything: all that a call looks at where nobody traces.
    static IS_TRACED: Cell<bool> = const { Cell::new(false) };
}

/// Whether requests carry trace contexts (`-ORBTraceContext`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum TracePropagation {
    /// Those that come are not looked at, and none are sent.
    No,
    /// What a request came with goes on to those that its servant makes; others have none.
    #[default]
    Propagate,
    /// The same, and calls that belong to no trace begin one.
    Yes,
}

/// Joins the contexts of requests to those of another tracing system, such as OpenTelemetry's.
///
/// Both methods are called in the request's own span (`tracing::Span::current()`), if there is one, and while no lock is held.
pub trait TraceSource: Send + Sync {
    /// What a call from here carries; nothing: what it would carry without a source, which is `current` if the thread has any.
    fn outgoing(&self, operation: &str, current: Option<&TraceContext>) -> Option<TraceContext>;

    /// A request has come with this context, and is about to be served in this thread.
    fn incoming(&self, operation: &str, context: &TraceContext) {
        let _ = (operation, context);
    }
}

/// A source among settings.
#[derive(Clone)]
pub(crate) struct TraceSourceSetting(pub(crate) Arc<dyn TraceSource>);

impl fmt::Debug for TraceSourceSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceSource")
    }
}

/// The time in which this thread works for a trace; at its end it goes on with what it did before.
#[derive(Debug)]
#[must_use = "the trace is left when it is dropped"]
pub struct TraceScope {
    before: Option<TraceContext>,
    /// It stays in its thread.
    _thread: PhantomData<*const ()>,
}

impl TraceContext {
    /// What this thread works for: in a servant, what its request came with, one step further.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// Makes it what this thread works for: calls carry it, unless their ORB has [`TracePropagation::No`].
    pub fn enter(self) -> TraceScope {
        TraceScope::of(Some(self))
    }

    /// As a service context.
    pub(crate) fn to_context(&self) -> ServiceContext {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.u8(ByteOrder::NATIVE.flag());
        // Both are printable ASCII.
        let written = out.short_str(&self.to_string()).and_then(|()| out.short_str(self.state()));
        debug_assert!(written.is_ok(), "ASCII can be said in every code set");
        ServiceContext { id: CONTEXT_TRACE, data: out.to_vec() }
    }

    /// What such a service context says; nothing if it is malformed.
    #[cfg(feature = "server")]
    pub(crate) fn of_context(data: &[u8]) -> Option<Self> {
        if data.len() > MAX_DATA {
            return None;
        }
        let mut input = Decoder::of_encapsulation(data, Wire::new(ByteOrder::Big, GiopVersion::V1_0)).ok()?;
        let (parent, state) = (input.str().ok()?, input.str().ok()?);
        Self::parse(&parent, &state).ok()
    }
}

impl TraceScope {
    /// `context`: none for work that belongs to no trace.
    pub(crate) fn of(context: Option<TraceContext>) -> Self {
        IS_TRACED.with(|is_traced| is_traced.set(context.is_some()));
        Self { before: CURRENT.with(|current| current.replace(context)), _thread: PhantomData }
    }
}

impl Drop for TraceScope {
    fn drop(&mut self) {
        let before = self.before.take();
        IS_TRACED.with(|is_traced| is_traced.set(before.is_some()));
        CURRENT.with(|current| current.replace(before));
    }
}

/// Whether this thread works for a trace.
#[inline]
pub(crate) fn is_traced() -> bool {
    IS_TRACED.with(Cell::get)
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;

    #[test]
    fn a_context_travels_in_a_service_context() {
        let sent = TraceContext::root(true).with_state("a=b");
        assert_eq!(TraceContext::of_context(&sent.to_context().data), Some(sent));
    }

    #[test]
    fn malformed_contexts_are_ignored() {
        let data = TraceContext::root(true).to_context().data;
        for cut in 0..data.len() {
            assert_eq!(TraceContext::of_context(&data[..cut]), None, "cut at {cut}");
        }
        for at in 4..data.len() {
            let mut changed = data.clone();
            changed[at] ^= 0x80;
            // Whatever it says, it is read without a panic.
            let _ = TraceContext::of_context(&changed);
        }
        assert_eq!(TraceContext::of_context(&vec![0; 100_000]), None);
    }

    #[test]
    fn scopes_nest() {
        let (outer, inner) = (TraceContext::root(true), TraceContext::root(false));
        assert!(!is_traced());
        {
            let _outer = outer.clone().enter();
            {
                let _inner = inner.clone().enter();
                assert_eq!(TraceContext::current(), Some(inner));
            }
            assert_eq!(TraceContext::current(), Some(outer));
            assert!(is_traced());
        }
        assert_eq!((TraceContext::current(), is_traced()), (None, false));
    }
}
