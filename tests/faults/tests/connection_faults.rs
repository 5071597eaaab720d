//! A short run of calls whose connection or server fails at each step; `cargo xtask faults` runs them at
//! length.
#![cfg(target_os = "linux")]

use spandrel_faults::random_scenarios;
use spandrel_faults::scenario::ServerKind;

fn run_scenarios(kind: ServerKind, options: &[&str]) {
    let seed = random_scenarios::seed().unwrap();
    println!("SPANDREL_FAULTS_SEED={seed}");
    match random_scenarios::run(seed, 120, kind, options) {
        Ok(tally) => {
            println!("{tally}");
            assert!(tally.count("faults") > 30 && tally.count("done") > 10, "too few faults or results: {tally}");
        }
        Err(error) => panic!("{error:#}"),
    }
}

#[test]
fn thread_per_connection_servers() {
    run_scenarios(ServerKind::default(), &[]);
}

#[test]
fn asynchronous_servants() {
    run_scenarios(ServerKind { asynchronous: true, ..ServerKind::default() }, &[]);
}

#[test]
fn leader_followers_servers() {
    run_scenarios(ServerKind::default(), &["-ORBConcurrency", "leader-followers"]);
}

#[test]
fn servers_that_batch_replies() {
    run_scenarios(ServerKind::default(), &["-ORBConcurrency", "leader-followers", "-ORBReplyBatching", "yes"]);
}

#[test]
fn thread_pool_servers() {
    run_scenarios(ServerKind::default(), &["-ORBConcurrency", "thread-pool:4:64"]);
}

#[test]
fn tls_servers() {
    run_scenarios(ServerKind { secure: true, ..ServerKind::default() }, &[]);
}

#[test]
fn leader_followers_tls_servers() {
    run_scenarios(ServerKind { secure: true, ..ServerKind::default() }, &["-ORBConcurrency", "leader-followers"]);
}
