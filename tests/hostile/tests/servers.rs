//! A short run of each attack against servers of each concurrency model; `cargo xtask hostile` runs them at
//! length.
#![cfg(target_os = "linux")]

use spandrel_hostile::{attacks, judge};

fn withstands_every_attack(options: &[&str]) {
    for attack in &attacks::ALL {
        match judge::attack(attack, options, 2) {
            Ok(outcome) => println!("{outcome}"),
            Err(error) => panic!("{} against {options:?}: {error:#}", attack.name),
        }
    }
}

#[test]
fn thread_per_connection_servers_withstand_every_attack() {
    withstands_every_attack(&[]);
}

#[test]
fn leader_followers_servers_withstand_every_attack() {
    withstands_every_attack(&["-ORBConcurrency", "leader-followers"]);
}

#[test]
fn thread_pool_servers_withstand_every_attack() {
    withstands_every_attack(&["-ORBConcurrency", "thread-pool:4:64"]);
}
