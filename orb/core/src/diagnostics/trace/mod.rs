//! Distributed traces: the W3C trace context that requests carry, and the trace that a thread works for.
//!
//! The context of a request becomes, with a new span id, the context of its upcall; calls of the servant
//! carry it on. Recording and export belong to the subscribers of `tracing`'s spans; a [`TraceSource`] joins
//! their contexts to those of requests.
//!
//! On the wire it is a service context of Spandrel: an encapsulation with the two strings `traceparent` and
//! `tracestate`.
//!
//! [`TracePropagation`] and [`TraceSource`] take effect in `call` (`outgoing_context`) and in `request`
//! (`incoming_context`).

mod context;

use std::{
    cell::{Cell, RefCell},
    fmt,
    marker::PhantomData,
};

use spandrel_cdr::Decoder;
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{ServiceContext, ids::CONTEXT_TRACE};
use spandrel_sync::{Arc, thread_local};

pub use context::{MAX_STATE, TraceContext, TraceContextError};

/// The longest context that is read: two strings with their lengths, the second of the greatest length.
const MAX_DATA: usize = MAX_STATE + 128;

thread_local! {
    /// The trace context of this thread.
    static CURRENT: RefCell<Option<TraceContext>> = const { RefCell::new(None) };
    /// Whether there is one: without traces, a call reads only this.
    static IS_TRACED: Cell<bool> = const { Cell::new(false) };
}

/// Whether requests carry trace contexts (`-ORBTraceContext`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum TracePropagation {
    /// Received contexts are ignored, and none are sent.
    No,
    /// The context of a request is passed on to calls of its servant; other calls have none.
    #[default]
    Propagate,
    /// The same, and calls without a trace begin one.
    Yes,
}

/// Joins the contexts of requests to those of another tracing system, such as OpenTelemetry's.
///
/// Both methods are called in the request's own span (`tracing::Span::current()`), if there is one, and while no lock is held.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; }
/// use spandrel::Orb;
/// use spandrel::diagnostics::{TraceContext, TracePropagation, TraceSource};
///
/// /// Begins a trace for each call outside of one, and prints its id.
/// struct Traces;
///
/// impl TraceSource for Traces {
///     fn outgoing(&self, operation: &str, current: Option<&TraceContext>) -> Option<TraceContext> {
///         let context = current.map_or_else(|| TraceContext::root(true), TraceContext::child);
///         println!("{operation}: {context}");
///         Some(context)
///     }
/// }
///
/// let orb = Orb::builder().trace_context(TracePropagation::Propagate).trace_source(Traces).build()?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TraceSource: Send + Sync {
    /// Returns the context of a call. With `None`, the call carries the context that it has without a source:
    /// a child of `current`, if there is one.
    fn outgoing(&self, operation: &str, current: Option<&TraceContext>) -> Option<TraceContext>;

    /// Called when a request has come with this context, by the thread that will serve it.
    fn incoming(&self, operation: &str, context: &TraceContext) {
        let _ = (operation, context);
    }
}

/// A source in the settings.
#[derive(Clone)]
pub(crate) struct TraceSourceSetting(pub(crate) Arc<dyn TraceSource>);

impl fmt::Debug for TraceSourceSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceSource")
    }
}

/// The time in which this thread works for a trace. When it is dropped, the former context is restored.
#[derive(Debug)]
#[must_use = "the trace is left when it is dropped"]
pub struct TraceScope {
    before: Option<TraceContext>,
    /// The scope stays in its thread.
    _thread: PhantomData<*const ()>,
}

impl TraceContext {
    /// The trace context of this thread: in a servant, a child of its request's.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// Makes it the context of this thread: calls carry it, unless their ORB has [`TracePropagation::No`].
    pub fn enter(self) -> TraceScope {
        TraceScope::of(Some(self))
    }

    /// Encodes the service context.
    pub(crate) fn to_context(&self) -> ServiceContext {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.u8(ByteOrder::NATIVE.flag());
        // Both are printable ASCII.
        let written = out.short_str(&self.to_string()).and_then(|()| out.short_str(self.state()));
        debug_assert!(written.is_ok(), "ASCII can be encoded in every code set");
        ServiceContext { id: CONTEXT_TRACE, data: out.to_vec() }
    }

    /// Decodes the service context; `None` if it is malformed.
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
    /// A scope with this context; `None` for work without a trace.
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

#[cfg(test)]
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
            assert_eq!(TraceContext::of_context(&data[..cut]), None, "truncated at {cut}");
        }
        for at in 4..data.len() {
            let mut changed = data.clone();
            changed[at] ^= 0x80;
            // Any result will do: decoding must not panic.
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
