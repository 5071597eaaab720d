//! Design decision 3: a call in the steady state allocates nothing on either side.

use std::sync::Arc;

use spandrel::rt::{
    LaneSettings, LinearMapping, PoolSettings, Priority, RtClient, RtCurrent, RtPoaBuilder, RtServerOrb, Scheduling,
    SchedulingClass,
    contexts::{self, PropagatedPolicy},
    policies::{PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy, ThreadpoolPolicy},
};
use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::types::{IiopProfile, TypeCode};
use spandrel::{
    Endpoint, Orb, Poa, SystemException, dynamic::CreateRequest, options::Collocation, policy::ReferencePolicies,
};
use spandrel_orb_tests::{Probe, Server, probe::Target};
use spandrel_test_support::alone;
use stats_alloc::Region;

use crate::ALLOCATOR;

/// Allocations of client and server together in [`CALLS`] calls: the fewest of several rounds. On a busy
/// machine an upcall may be suspended for so long that another thread is started to read. If that happened in
/// each round, many short rounds are measured instead.
fn allocations(mut call: impl FnMut()) -> usize {
    let mut round = |calls: usize| {
        let region = Region::new(ALLOCATOR);
        (0..calls).for_each(|_| call());
        let change = region.change();
        change.allocations + change.reallocations
    };
    let fewest = (0..8).map(|_| round(CALLS)).min().expect("eight rounds");
    if fewest.is_multiple_of(CALLS) {
        return fewest;
    }
    let fewest = (0..200).map(|_| round(CALLS / PARTS)).min().expect("two hundred rounds");
    fewest * PARTS
}

const CALLS: usize = 300;
const PARTS: usize = 15;

// A single test: the allocations of concurrent tests would be counted, too.
#[test]
fn calls_allocate_nothing_except_results() {
    alone(|| {
        let server = Server::start();
        let target: Target = server.client();
        assert_eq!(allocations(|| target.ping().unwrap()), 0, "void");
        assert_eq!(allocations(|| assert_eq!(target.add(1, 2).unwrap(), 3)), 0, "numbers");
        let octets = vec![7; 64 << 10];
        let one_way = || {
            target.note(&octets).unwrap();
            target.ping().unwrap();
        };
        assert_eq!(allocations(one_way), 0, "a long one-way sequence, lent on both sides");
        // The servant's result and the caller's copy of it belong to the application.
        assert_eq!(allocations(|| drop(target.echo("text").unwrap())), 2 * 300, "a string");
        assert_reused_requests_allocate_nothing(&target);
        drop((target, server));
        for strategy in [Collocation::Direct, Collocation::ThroughPoa] {
            let server = Server::with(Orb::builder().collocation(strategy));
            let target: Target = server.object.unchecked_narrow();
            assert_eq!(allocations(|| target.ping().unwrap()), 0, "void, {strategy:?}");
            assert_eq!(allocations(|| assert_eq!(target.add(1, 2).unwrap(), 3)), 0, "numbers, {strategy:?}");
            let copies = if strategy == Collocation::Direct { 1 } else { 2 };
            assert_eq!(allocations(|| drop(target.echo("text").unwrap())), copies * 300, "a string, {strategy:?}");
        }
        assert_propagated_calls_allocate_nothing();
        assert_ready_futures_allocate_themselves();
    });
}

/// A servant whose futures are ready at once.
struct SpawningServant;

impl Servant for SpawningServant {
    fn repository_id(&self) -> &str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.spawn(|deferred| async move {
            let replied = deferred.answer(|call| call.reply(|_| Ok(())));
            deferred.end(replied);
        })
    }
}

/// A request whose future need not wait allocates the future. The copy of the request and its slot use the memory of the
/// last one, and no entry is made.
fn assert_ready_futures_allocate_themselves() {
    let server = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let object = Poa::root(&server).unwrap().activate(SpawningServant).unwrap();
    let client = Orb::builder().build().unwrap();
    let target: Target = client.string_to_object(&object.to_string()).unwrap().unchecked_narrow();
    assert_eq!(allocations(|| target.ping().unwrap()), CALLS, "void");
    server.shutdown().unwrap();
}

fn assert_reused_requests_allocate_nothing(target: &Target) {
    let mut ping = target.request("ping");
    assert_eq!(allocations(|| ping.invoke().unwrap()), 0, "void");
    let mut add = target.request("add");
    add.set_return_type(TypeCode::LONG);
    let mut a = 0;
    let replaced = || {
        a += 1;
        add.reset().add_in_arg(&a).unwrap().add_in_arg(&2_i32).unwrap().invoke().unwrap();
        assert_eq!(add.return_value::<i32>().unwrap(), a + 2);
    };
    assert_eq!(allocations(replaced), 0, "new arguments");
    let changed = || {
        a += 1;
        add.set_argument(0, &a).unwrap().invoke().unwrap();
        assert_eq!(add.return_value::<i32>().unwrap(), a + 2);
    };
    assert_eq!(allocations(changed), 0, "one argument changed");
    let octets = vec![7_u8; 64 << 10];
    let mut note = target.request("note");
    let one_way = || {
        note.reset().add_in_arg(&octets).unwrap().send_oneway().unwrap();
        target.ping().unwrap();
    };
    assert_eq!(allocations(one_way), 0, "a long one-way sequence");
    let mut note = target.request("note");
    note.add_in_arg(&octets[..10]).unwrap();
    let mut len = 0;
    let grows = || {
        len = (len + 1) % 100;
        note.set_argument(0, &octets[..len]).unwrap().send_oneway().unwrap();
        target.ping().unwrap();
    };
    assert_eq!(allocations(grows), 0, "a sequence of another length each time");
}

/// Calls of an object with CLIENT_PROPAGATED allocate nothing: those of an ordinary server, and those that lanes run.
fn assert_propagated_calls_allocate_nothing() {
    let scheduling = Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping));
    let model = PriorityModelPolicy { model: PriorityModel::ClientPropagated, server_priority: Priority::MIN };
    let client = Orb::builder().binding_policies(RtClient::new(&scheduling)).build().unwrap();
    RtCurrent::new(scheduling.clone()).set_the_priority(1_234).unwrap();
    let server = Server::start();
    let mut ior = server.object.ior().clone();
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    profile.components.push(contexts::encode_policies(&[PropagatedPolicy::PriorityModel(model)]).unwrap());
    ior.profiles = vec![profile.encode().unwrap()];
    let target: Target = client.reference(ior).unchecked_narrow();
    assert_eq!(allocations(|| target.ping().unwrap()), 0, "void, with a priority");
    assert_eq!(allocations(|| assert_eq!(target.add(1, 2).unwrap(), 3)), 0, "numbers, with a priority");
    let bands = [(0, 999), (1_000, 32_767)].map(|(low, high)| PriorityBand::new(low, high).unwrap());
    let banded = target.with_policy(PriorityBandedConnectionPolicy::new(bands.to_vec()).unwrap()).unwrap();
    assert_eq!(allocations(|| assert_eq!(banded.add(1, 2).unwrap(), 3)), 0, "numbers, by the connection of a band");
    drop(server);

    let rt_orb = RtServerOrb::new(scheduling);
    let lane = LaneSettings { priority: Priority::MIN, static_threads: 1, dynamic_threads: 0 };
    let buffering = Some((16, 1 << 20));
    let pool = rt_orb.create(PoolSettings { buffering, ..PoolSettings::with_lanes(vec![lane]) }).unwrap();
    let server = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let policies = [model.into(), ThreadpoolPolicy(pool).into()];
    let adapter = Poa::root(&server).unwrap().child("lanes").real_time(&rt_orb, policies).unwrap().create().unwrap();
    let reference: Target = adapter.serve(Probe::new(&server)).unwrap();
    let target: Target = client.string_to_object(&reference.to_string()).unwrap().unchecked_narrow();
    assert_eq!(allocations(|| target.ping().unwrap()), 0, "void, in a lane");
    assert_eq!(allocations(|| assert_eq!(target.add(1, 2).unwrap(), 3)), 0, "numbers, in a lane");
    let octets = vec![7; 4_000];
    let one_way = || {
        target.note(&octets).unwrap();
        target.ping().unwrap();
    };
    assert_eq!(allocations(one_way), 0, "a one-way sequence above the reserved octets, in a lane");
}
