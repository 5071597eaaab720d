//! A `tracing` span around each dispatch, on request.

use crate::scripted;

use scripted::{Log, NONE, Scripted, run_until};
use spandrel_reactor::{Backend, Options, Reactor};
use spandrel_sync::Arc;
use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_test_support::alone;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Counts the dispatch spans that were entered and left.
#[derive(Clone, Default)]
struct Counter {
    entered: Arc<AtomicUsize>,
    left: Arc<AtomicUsize>,
}

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "spandrel_reactor::dispatch"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        assert_eq!(span.metadata().name(), "dispatch");
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {
        self.entered.fetch_add(1, Ordering::SeqCst);
    }
    fn exit(&self, _: &Id) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn each_dispatch_has_a_span() {
    alone(|| {
        let counter = Counter::default();
        tracing::subscriber::set_global_default(counter.clone()).expect("the first");
        let reactor = Reactor::with(&Options::default().backend(Backend::Auto)).expect("a reactor");
        let log = Log::default();
        let handler = Scripted::new("a", &log).notice(|_, notice| {
            assert_ne!(notice, 2, "on purpose");
            Ok(())
        });
        let id = reactor.registry().register(handler, NONE).expect("registered");
        run_until(&reactor, || log.has("a open"));
        let before = counter.entered.load(Ordering::SeqCst);
        reactor.registry().notify(id, 1).expect("accepted");
        run_until(&reactor, || log.has("a notice 1"));
        reactor.registry().notify(id, 2).expect("accepted");
        run_until(&reactor, || reactor.registry().is_empty());
        assert_eq!(counter.entered.load(Ordering::SeqCst) - before, 2);
        assert_eq!(counter.left.load(Ordering::SeqCst), counter.entered.load(Ordering::SeqCst), "also when it panics");
    });
}
