//! Servers and clients killed at random moments during calls, over each transport.
#![cfg(target_os = "linux")]

use spandrel_faults::{random_kills, random_scenarios};

fn kill_servers_at(endpoint: &str) {
    let seed = random_scenarios::seed().unwrap();
    println!("SPANDREL_FAULTS_SEED={seed}");
    match random_kills::kill_servers(seed, 25, endpoint) {
        Ok((calls, failed)) => {
            println!("{calls} calls, {failed} failed");
            assert!(failed > 0 && failed < calls, "{failed} of {calls} failed");
        }
        Err(error) => panic!("{error:#}"),
    }
}

fn kill_clients_at(endpoint: &str) {
    let seed = random_scenarios::seed().unwrap();
    println!("SPANDREL_FAULTS_SEED={seed}");
    match random_kills::kill_clients(seed, 10, endpoint) {
        Ok(calls) => println!("{calls} calls"),
        Err(error) => panic!("{error:#}"),
    }
}

#[test]
fn killed_servers_over_tcp() {
    kill_servers_at(random_kills::ENDPOINTS[0]);
}

#[test]
fn killed_servers_over_local_sockets() {
    kill_servers_at(random_kills::ENDPOINTS[1]);
}

#[test]
fn killed_servers_over_shared_memory() {
    kill_servers_at(random_kills::ENDPOINTS[2]);
}

#[test]
fn killed_clients_over_tcp() {
    kill_clients_at(random_kills::ENDPOINTS[0]);
}

#[test]
fn killed_clients_over_local_sockets() {
    kill_clients_at(random_kills::ENDPOINTS[1]);
}

#[test]
fn killed_clients_over_shared_memory() {
    kill_clients_at(random_kills::ENDPOINTS[2]);
}
