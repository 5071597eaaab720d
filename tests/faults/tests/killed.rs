//! Servers and clients that are killed at any moment while calls are under way, by each transport.
#![cfg(target_os = "linux")]

use spandrel_faults::{rounds, storm};

fn servers(endpoint: &str) {
    let seed = rounds::seed().unwrap();
    println!("SPANDREL_FAULTS_SEED={seed}");
    match storm::over_servers(seed, 25, endpoint) {
        Ok((calls, failed)) => {
            println!("{calls} calls, {failed} failed");
            assert!(failed > 0 && failed < calls, "{failed} of {calls} failed");
        }
        Err(error) => panic!("{error:#}"),
    }
}

fn clients(endpoint: &str) {
    let seed = rounds::seed().unwrap();
    println!("SPANDREL_FAULTS_SEED={seed}");
    match storm::over_clients(seed, 10, endpoint) {
        Ok(calls) => println!("{calls} calls"),
        Err(error) => panic!("{error:#}"),
    }
}

#[test]
fn servers_by_tcp() {
    servers(storm::ENDPOINTS[0]);
}

#[test]
fn servers_by_sockets_of_the_host() {
    servers(storm::ENDPOINTS[1]);
}

#[test]
fn servers_by_shared_memory() {
    servers(storm::ENDPOINTS[2]);
}

#[test]
fn clients_by_tcp() {
    clients(storm::ENDPOINTS[0]);
}

#[test]
fn clients_by_sockets_of_the_host() {
    clients(storm::ENDPOINTS[1]);
}

#[test]
fn clients_by_shared_memory() {
    clients(storm::ENDPOINTS[2]);
}
