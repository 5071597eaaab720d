//! Design decision 3: a call allocates nothing in the steady state, on neither side.

use std::alloc::System;

use spandrel::{Collocation, Orb, TypeCode, dynamic::CreateRequest};
use spandrel_orb_tests::{Server, probe::Target};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations of client and server together in some hundred calls: the fewest of several rounds, because on a busy machine
/// an upcall may be kept from running for so long that another thread is started to read on.
fn allocations(mut call: impl FnMut()) -> usize {
    let round = |_| {
        let region = Region::new(ALLOCATOR);
        (0..300).for_each(|_| call());
        let change = region.change();
        change.allocations + change.reallocations
    };
    (0..8).map(round).min().expect("eight rounds")
}

// One test: others beside it would be counted, too.
#[test]
fn calls_allocate_nothing_but_what_they_return() {
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
    // The servant's answer and the caller's copy of it are the application's.
    assert_eq!(allocations(|| drop(target.echo("text").unwrap())), 2 * 300, "a string");
    let mut request = target.as_object().request("add");
    request.add_in_arg(&1_i32).unwrap().add_in_arg(&2_i32).unwrap().set_return_type(TypeCode::LONG);
    assert_eq!(allocations(|| request.invoke().unwrap()), 0, "a dynamic request that is used again");
    drop((target, server));
    for strategy in [Collocation::Direct, Collocation::ThroughPoa] {
        let server = Server::with(Orb::builder().collocation(strategy));
        let target: Target = server.object.unchecked_narrow();
        assert_eq!(allocations(|| target.ping().unwrap()), 0, "void, {strategy:?}");
        assert_eq!(allocations(|| assert_eq!(target.add(1, 2).unwrap(), 3)), 0, "numbers, {strategy:?}");
        let copies = if strategy == Collocation::Direct { 1 } else { 2 };
        assert_eq!(allocations(|| drop(target.echo("text").unwrap())), copies * 300, "a string, {strategy:?}");
    }
}
