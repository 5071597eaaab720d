//! Tests that need the whole process, without the test harness: signals go to the main thread, so that thread
//! must be the one that waits; allocations, descriptors and mappings are counted; and the program runs itself
//! as a peer that is killed.

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
        ("the_death_of_a_writing_peer_is_noticed", shm_killed::the_death_of_a_writing_peer_is_noticed as fn()),
        ("a_receive_reports_the_peers_death", shm_killed::a_receive_reports_the_peers_death),
        ("a_send_reports_the_peers_death", shm_killed::a_send_reports_the_peers_death),
        ("a_poll_reports_the_peers_death", shm_killed::a_poll_reports_the_peers_death),
        ("a_try_reports_the_peers_death", shm_killed::a_try_reports_the_peers_death),
        ("connections_leave_no_descriptors_or_mappings", shm_killed::connections_leave_no_descriptors_or_mappings),
        ("waits_for_datagrams_go_on_after_signals", dgram_signals::waits_continue_after_signals),
        ("every_wait_continues_after_signals", signals::every_wait_continues_after_signals),
    ] {
        run(name, &test);
    }
    println!("process: {passed} passed");
}
