//! Every attack, in short, against servers of each arrangement. `cargo xtask hostile` does the same at length.
#![cfg(target_os = "linux")]

use spandrel_hostile::{attacks, judge};

fn withstands(options: &[&str]) {
    for attack in &attacks::ALL {
        match judge::attack(attack, options, 2) {
            Ok(outcome) => println!("{outcome}"),
            Err(error) => panic!("{} against {options:?}: {error:#}", attack.name),
        }
    }
}

#[test]
fn servers_with_a_thread_for_each_connection_withstand() {
    withstands(&[]);
}

#[test]
fn servers_whose_connections_share_threads_withstand() {
    withstands(&["-ORBConcurrency", "leader-followers"]);
}

#[test]
fn servers_with_a_queue_withstand() {
    withstands(&["-ORBConcurrency", "thread-pool:4:64"]);
}
