//! W3C trace contexts: what requests carry, what servants see of it, and what goes on with their calls.

use std::sync::{Arc, Mutex};

use spandrel::{
    Orb, OrbBuilder, Poa, SystemException,
    diagnostics::{TraceContext, TracePropagation, TraceSource},
};
use spandrel_orb_tests::{
    probe::{Relay, RelayServant, RelaySkeleton, Target},
    support::block_on,
};

/// Remembers what it worked for, and calls the next one.
#[derive(Default)]
struct Witness(Mutex<Vec<Option<TraceContext>>>);

impl RelayServant for Witness {
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

struct Stage {
    orb: Orb,
    witness: Arc<Witness>,
    relay: Relay,
}

impl Stage {
    fn new(builder: OrbBuilder) -> Self {
        let orb = builder.build().unwrap();
        let witness = Arc::<Witness>::default();
        let object = Poa::root(&orb).unwrap().activate(RelaySkeleton::new(Arc::clone(&witness))).unwrap();
        Self { relay: Relay::unchecked_narrow(&object), orb, witness }
    }

    /// Its object, for another.
    fn seen_by(&self, orb: &Orb) -> Relay {
        Relay::unchecked_narrow(
            &orb.string_to_object(&self.orb.object_to_string(spandrel::Interface::as_object(&self.relay))).unwrap(),
        )
    }

    fn seen(&self) -> Vec<Option<TraceContext>> {
        self.witness.0.lock().unwrap().clone()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.orb.shutdown(true).unwrap();
    }
}

#[test]
fn a_trace_goes_on_through_nested_calls() {
    let (first, second) = (Stage::new(Orb::builder()), Stage::new(Orb::builder()));
    let client = Orb::builder().build().unwrap();
    let root = TraceContext::root(true).with_state("vendor=value");
    {
        let _scope = root.clone().enter();
        // What the reference leads to is asked in the trace, and what that calls, too.
        first.seen_by(&client).recurse(Some(&second.seen_by(&client)), None, 1).unwrap();
    }
    let (one, two) = (first.seen()[0].clone().unwrap(), second.seen()[0].clone().unwrap());
    for seen in [&one, &two] {
        assert_eq!((seen.trace_id(), seen.state(), seen.is_sampled()), (root.trace_id(), "vendor=value", true));
    }
    let steps = [root.span_id(), one.span_id(), two.span_id()];
    assert!(steps[0] != steps[1] && steps[1] != steps[2] && steps[0] != steps[2], "each step has an id of its own");
    assert_eq!(TraceContext::current(), None);
}

#[test]
fn without_a_trace_nothing_is_sent_unless_that_is_wanted() {
    let stage = Stage::new(Orb::builder());
    let (quiet, tracing) =
        (Orb::builder().build().unwrap(), Orb::builder().trace_context(TracePropagation::Yes).build().unwrap());
    stage.seen_by(&quiet).recurse(None, None, 0).unwrap();
    stage.seen_by(&tracing).recurse(None, None, 0).unwrap();
    assert!(matches!(&stage.seen()[..], [None, Some(begun)] if begun.is_sampled()));
}

#[test]
fn whoever_has_none_neither_reads_nor_sends_them() {
    let off = || Orb::builder().trace_context(TracePropagation::No);
    let (deaf, hearing) = (Stage::new(off()), Stage::new(Orb::builder()));
    let (client, mute) = (Orb::builder().build().unwrap(), off().build().unwrap());
    let _scope = TraceContext::root(true).enter();
    deaf.seen_by(&client).recurse(None, None, 0).unwrap();
    hearing.seen_by(&mute).recurse(None, None, 0).unwrap();
    assert_eq!((deaf.seen(), hearing.seen()), (vec![None], vec![None]));
}

#[test]
fn calls_within_the_orb_and_asynchronous_ones_carry_it_too() {
    let stage = Stage::new(Orb::builder());
    let client = Orb::builder().build().unwrap();
    let root = TraceContext::root(false);
    let _scope = root.clone().enter();
    stage.relay.recurse(None, None, 0).unwrap();
    block_on(stage.seen_by(&client).recurse_async(None, None, 0)).unwrap();
    let seen = stage.seen();
    assert_eq!(seen.len(), 2);
    for seen in seen {
        let seen = seen.unwrap();
        assert_eq!((seen.trace_id(), seen.is_sampled()), (root.trace_id(), false));
    }
}

/// Another tracing system.
#[derive(Clone, Default)]
struct Elsewhere(Arc<Mutex<Vec<(String, TraceContext)>>>);

impl TraceSource for Elsewhere {
    fn outgoing(&self, operation: &str, current: Option<&TraceContext>) -> Option<TraceContext> {
        assert!(current.is_none());
        (operation == "recurse").then(|| TraceContext::new([7; 16], [8; 8], true).unwrap())
    }

    fn incoming(&self, operation: &str, context: &TraceContext) {
        self.0.lock().unwrap().push((operation.to_owned(), context.clone()));
    }
}

#[test]
fn a_source_supplies_and_receives_contexts() {
    let seen = Elsewhere::default();
    let stage = Stage::new(Orb::builder().trace_source(seen.clone()));
    let client = Orb::builder().trace_source(Elsewhere::default()).build().unwrap();
    let relay = stage.seen_by(&client);
    relay.recurse(None, None, 0).unwrap();
    relay.hold(None, 0).unwrap();
    let given = TraceContext::new([7; 16], [8; 8], true).unwrap();
    assert_eq!(*seen.0.lock().unwrap(), [("recurse".to_owned(), given.clone())]);
    assert!(matches!(&stage.seen()[..], [Some(one), None] if one.trace_id() == given.trace_id()));
}

#[test]
fn the_option_takes_its_three_values() {
    for (value, is_good) in [("yes", true), ("no", true), ("propagate", true), ("maybe", false)] {
        let mut args = vec!["-ORBTraceContext".to_owned(), value.to_owned()];
        assert_eq!(Orb::builder().take_args(&mut args).is_ok(), is_good, "{value}");
    }
}

/// Calls somebody, in no trace, while it is called.
struct Intruder(Relay);

impl RelayServant for Intruder {
    fn recurse(&self, _other: Option<&Relay>, _back: Option<&Relay>, _depth: i32) -> Result<i32, SystemException> {
        self.0.hold(None, 0)?;
        Ok(0)
    }

    fn hold(&self, _other: Option<&Target>, _gate: u32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn what_a_thread_serves_while_it_waits_is_of_no_trace_but_its_own() {
    let one_thread = ["-ORBConcurrency", "leader-followers:1", "-ORBWaitStrategy", "on-reactor"];
    let mut args = one_thread.map(String::from).to_vec();
    let stage = Stage::new(Orb::builder().take_args(&mut args).unwrap());
    let untraced = Orb::builder().trace_context(TracePropagation::No).build().unwrap();
    let elsewhere = Orb::builder().build().unwrap();
    let intruder = Intruder(stage.seen_by(&untraced));
    let intruder = Poa::root(&elsewhere).unwrap().activate(RelaySkeleton::new(intruder)).unwrap();
    let client = Orb::builder().build().unwrap();
    let other = Relay::unchecked_narrow(&client.string_to_object(&intruder.to_string()).unwrap());
    let root = TraceContext::root(true);
    let _scope = root.clone().enter();
    stage.seen_by(&client).recurse(Some(&other), None, 1).unwrap();
    let seen = stage.seen();
    assert!(matches!(&seen[..], [Some(outer), None] if outer.trace_id() == root.trace_id()), "{seen:?}");
    elsewhere.shutdown(true).unwrap();
}
