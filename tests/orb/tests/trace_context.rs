//! W3C trace contexts in requests, upcalls and nested calls.

use std::sync::{Arc, Mutex};

use spandrel::{
    Orb, OrbBuilder, Poa, SystemException,
    diagnostics::{TraceContext, TracePropagation, TraceSource},
};
use spandrel_orb_tests::{
    probe::{Relay, RelayServant, RelaySkeleton, Target},
    support::block_on,
};

/// Records the current trace context of each upcall, and calls the next relay.
#[derive(Default)]
struct RecordingRelay(Mutex<Vec<Option<TraceContext>>>);

impl RelayServant for RecordingRelay {
    fn recurse(&self, other: Option<&Relay>, _back: Option<&Relay>, depth: i32) -> Result<i32, SystemException> {
        self.0.lock().unwrap().push(TraceContext::current());
        if let (Some(other), 1..) = (other, depth) {
            other.recurse(None, None, depth - 1)?;
        }
        Ok(depth)
    }

    fn hold(&self, _other: Option<&Target>, _gate: u32) -> Result<(), SystemException> {
        self.0.lock().unwrap().push(TraceContext::current());
        Ok(())
    }
}

struct RelayServer {
    orb: Orb,
    recorder: Arc<RecordingRelay>,
    relay: Relay,
}

impl RelayServer {
    fn new(builder: OrbBuilder) -> Self {
        let orb = builder.build().unwrap();
        let recorder = Arc::<RecordingRelay>::default();
        let object = Poa::root(&orb).unwrap().activate(RelaySkeleton::new(Arc::clone(&recorder))).unwrap();
        Self { relay: Relay::unchecked_narrow(&object), orb, recorder }
    }

    /// The relay as referred to by another ORB.
    fn as_client_of(&self, orb: &Orb) -> Relay {
        Relay::unchecked_narrow(
            &orb.string_to_object(&self.orb.object_to_string(spandrel::types::Interface::as_object(&self.relay)))
                .unwrap(),
        )
    }

    fn contexts(&self) -> Vec<Option<TraceContext>> {
        self.recorder.0.lock().unwrap().clone()
    }
}

impl Drop for RelayServer {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

#[test]
fn a_trace_continues_through_nested_calls() {
    let (first, second) = (RelayServer::new(Orb::builder()), RelayServer::new(Orb::builder()));
    let client = Orb::builder().build().unwrap();
    let root = TraceContext::root(true).with_state("vendor=value");
    {
        let _scope = root.clone().enter();
        // The call and the nested call belong to the trace.
        first.as_client_of(&client).recurse(Some(&second.as_client_of(&client)), None, 1).unwrap();
    }
    let (one, two) = (first.contexts()[0].clone().unwrap(), second.contexts()[0].clone().unwrap());
    for contexts in [&one, &two] {
        assert_eq!(
            (contexts.trace_id(), contexts.state(), contexts.is_sampled()),
            (root.trace_id(), "vendor=value", true)
        );
    }
    let steps = [root.span_id(), one.span_id(), two.span_id()];
    assert!(steps[0] != steps[1] && steps[1] != steps[2] && steps[0] != steps[2], "each step has its own span id");
    assert_eq!(TraceContext::current(), None);
}

#[test]
fn without_a_trace_a_context_is_sent_only_if_enabled() {
    let server = RelayServer::new(Orb::builder());
    let (untraced, tracing) =
        (Orb::builder().build().unwrap(), Orb::builder().trace_context(TracePropagation::Yes).build().unwrap());
    server.as_client_of(&untraced).recurse(None, None, 0).unwrap();
    server.as_client_of(&tracing).recurse(None, None, 0).unwrap();
    assert!(matches!(&server.contexts()[..], [None, Some(begun)] if begun.is_sampled()));
}

#[test]
fn trace_context_no_neither_reads_nor_sends_contexts() {
    let off = || Orb::builder().trace_context(TracePropagation::No);
    let (ignoring, reading) = (RelayServer::new(off()), RelayServer::new(Orb::builder()));
    let (client, silent) = (Orb::builder().build().unwrap(), off().build().unwrap());
    let _scope = TraceContext::root(true).enter();
    ignoring.as_client_of(&client).recurse(None, None, 0).unwrap();
    reading.as_client_of(&silent).recurse(None, None, 0).unwrap();
    assert_eq!((ignoring.contexts(), reading.contexts()), (vec![None], vec![None]));
}

#[test]
fn collocated_and_asynchronous_calls_carry_the_context() {
    let server = RelayServer::new(Orb::builder());
    let client = Orb::builder().build().unwrap();
    let root = TraceContext::root(false);
    let _scope = root.clone().enter();
    server.relay.recurse(None, None, 0).unwrap();
    block_on(server.as_client_of(&client).recurse_async(None, None, 0)).unwrap();
    let contexts = server.contexts();
    assert_eq!(contexts.len(), 2);
    for contexts in contexts {
        let contexts = contexts.unwrap();
        assert_eq!((contexts.trace_id(), contexts.is_sampled()), (root.trace_id(), false));
    }
}

/// A trace source that stands for another tracing system.
#[derive(Clone, Default)]
struct ExternalSource(Arc<Mutex<Vec<(String, TraceContext)>>>);

impl TraceSource for ExternalSource {
    fn outgoing(&self, operation: &str, current: Option<&TraceContext>) -> Option<TraceContext> {
        assert!(current.is_none());
        (operation == "recurse").then(|| TraceContext::new([7; 16], [8; 8], true).unwrap())
    }

    fn incoming(&self, operation: &str, context: &TraceContext) {
        self.0.lock().unwrap().push((operation.to_owned(), context.clone()));
    }
}

#[test]
fn a_trace_source_supplies_and_receives_contexts() {
    let contexts = ExternalSource::default();
    let server = RelayServer::new(Orb::builder().trace_source(contexts.clone()));
    let client = Orb::builder().trace_source(ExternalSource::default()).build().unwrap();
    let relay = server.as_client_of(&client);
    relay.recurse(None, None, 0).unwrap();
    relay.hold(None, 0).unwrap();
    let given = TraceContext::new([7; 16], [8; 8], true).unwrap();
    assert_eq!(*contexts.0.lock().unwrap(), [("recurse".to_owned(), given.clone())]);
    assert!(matches!(&server.contexts()[..], [Some(one), None] if one.trace_id() == given.trace_id()));
}

#[test]
fn orb_trace_context_takes_its_three_values() {
    for (value, is_good) in [("yes", true), ("no", true), ("propagate", true), ("maybe", false)] {
        let mut args = vec!["-ORBTraceContext".to_owned(), value.to_owned()];
        assert_eq!(Orb::builder().take_args(&mut args).is_ok(), is_good, "{value}");
    }
}

/// Makes an untraced call within its upcall.
struct UntracedCaller(Relay);

impl RelayServant for UntracedCaller {
    fn recurse(&self, _other: Option<&Relay>, _back: Option<&Relay>, _depth: i32) -> Result<i32, SystemException> {
        self.0.hold(None, 0)?;
        Ok(0)
    }

    fn hold(&self, _other: Option<&Target>, _gate: u32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn an_upcall_nested_in_a_waiting_thread_does_not_inherit_its_trace() {
    let one_thread = ["-ORBConcurrency", "leader-followers:1", "-ORBWaitStrategy", "on-reactor"];
    let mut args = one_thread.map(String::from).to_vec();
    let server = RelayServer::new(Orb::builder().take_args(&mut args).unwrap());
    let untraced = Orb::builder().trace_context(TracePropagation::No).build().unwrap();
    let elsewhere = Orb::builder().build().unwrap();
    let nested = UntracedCaller(server.as_client_of(&untraced));
    let nested = Poa::root(&elsewhere).unwrap().activate(RelaySkeleton::new(nested)).unwrap();
    let client = Orb::builder().build().unwrap();
    let other = Relay::unchecked_narrow(&client.string_to_object(&nested.to_string()).unwrap());
    let root = TraceContext::root(true);
    let _scope = root.clone().enter();
    server.as_client_of(&client).recurse(Some(&other), None, 1).unwrap();
    let contexts = server.contexts();
    assert!(matches!(&contexts[..], [Some(outer), None] if outer.trace_id() == root.trace_id()), "{contexts:?}");
    elsewhere.shutdown().unwrap();
}
