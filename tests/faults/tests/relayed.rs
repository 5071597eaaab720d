//! Calls whose connection or server is lost at every step, in short. `cargo xtask faults` does the same at length.
#![cfg(target_os = "linux")]

use spandrel_faults::rounds;
use spandrel_faults::script::Kind;

fn plays(kind: Kind, options: &[&str]) {
    let seed = rounds::seed().unwrap();
    println!("SPANDREL_FAULTS_SEED={seed}");
    match rounds::run(seed, 120, kind, options) {
        Ok(tally) => {
            println!("{tally}");
            assert!(tally.count("misfortunes") > 30 && tally.count("done") > 10, "hardly anything happened: {tally}");
        }
        Err(error) => panic!("{error:#}"),
    }
}

#[test]
fn servers_with_a_thread_for_each_connection() {
    plays(Kind::default(), &[]);
}

#[test]
fn servants_that_answer_later() {
    plays(Kind { asynchronous: true, ..Kind::default() }, &[]);
}

#[test]
fn servers_whose_connections_share_threads() {
    plays(Kind::default(), &["-ORBConcurrency", "leader-followers"]);
}

#[test]
fn servers_with_a_queue() {
    plays(Kind::default(), &["-ORBConcurrency", "thread-pool:4:64"]);
}

#[test]
fn servers_that_speak_tls() {
    plays(Kind { secure: true, ..Kind::default() }, &[]);
}

#[test]
fn servers_that_speak_tls_whose_connections_share_threads() {
    plays(Kind { secure: true, ..Kind::default() }, &["-ORBConcurrency", "leader-followers"]);
}
