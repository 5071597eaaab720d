//! Tests that need the whole process, without the test harness: signals go to the main thread, which must be the one that waits;
//! allocations, descriptors and mappings are counted; and the program runs itself as a peer that is killed.

mod dgram_alloc;
#[cfg(target_os = "linux")]
mod dgram_signals;
#[cfg(target_os = "linux")]
mod shm_killed;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "shared with the other test program")]
mod support;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    #[cfg(target_os = "linux")]
    if let [_, role, addr] = &std::env::args().collect::<Vec<_>>()[..]
        && role == "peer"
    {
        return shm_killed::peer(&addr.parse().unwrap());
    }
    let mut passed = 0;
    let mut run = |name: &str, test: &dyn Fn()| {
        println!("test {name} ...");
        test();
        passed += 1;
    };
    run("sending_and_receiving_allocate_nothing", &|| dgram_alloc::sending_and_receiving_allocate_nothing(ALLOCATOR));
    #[cfg(target_os = "linux")]
    for (name, test) in [
        (
            "a_peer_that_dies_while_it_writes_is_noticed",
            shm_killed::a_peer_that_dies_while_it_writes_is_noticed as fn(),
        ),
        ("who_waits_for_octets_learns_of_the_death", shm_killed::who_waits_for_octets_learns_of_the_death),
        ("who_waits_for_space_learns_of_the_death", shm_killed::who_waits_for_space_learns_of_the_death),
        ("who_polls_learns_of_the_death", shm_killed::who_polls_learns_of_the_death),
        ("who_only_tries_learns_of_the_death", shm_killed::who_only_tries_learns_of_the_death),
        ("connections_leave_nothing_behind", shm_killed::connections_leave_nothing_behind),
        ("waits_for_datagrams_go_on_after_signals", dgram_signals::waits_go_on_after_signals),
        ("every_wait_goes_on_after_signals", signals::every_wait_goes_on_after_signals),
    ] {
        run(name, &test);
    }
    println!("process: {passed} passed");
}
