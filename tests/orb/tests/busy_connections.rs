//! Many connections that call at the same time: the system calls of the server for each call, and the share of each
//! connection.
#![cfg(target_os = "linux")]

use std::{
    env,
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
};

use rustix::event::{PollFd, PollFlags, poll};
use spandrel::{Orb, OrbBuilder, options::Concurrency};
use spandrel_orb_tests::{
    Server,
    pipelined::{connect, echo},
    system_calls::{self, RECEIVES, SENDS},
};
use spandrel_test_support::alone;

use crate::many_connections::affordable_connections;

/// The environment variable of the process whose system calls are counted: the numbers of connections and of the requests
/// that each sends at once, and the strategy.
const COUNTED: &str = "SPANDREL_COUNTS_BUSY_CONNECTIONS";

/// The connections that call at the same time.
const CONNECTIONS: usize = 64;

/// The calls of that process.
const CALLS: u32 = 6400;

/// A server with this strategy; none is the default.
fn builder(strategy: &str) -> OrbBuilder {
    if strategy.is_empty() { Orb::builder() } else { Orb::builder().concurrency(strategy.parse().unwrap()) }
}

/// A connection whose system calls have other names than those of the server: `read` and `write`.
fn client(server: &Server) -> File {
    File::from(OwnedFd::from(connect(server)))
}

/// The octets of a reply to an `echo_octets` of one octet.
const REPLY_OCTETS: usize = 29;

/// Reads the reply to an `echo_octets` of one octet.
fn read_reply(stream: &mut File) {
    let mut reply = [0; 64];
    let len = stream.read(&mut reply).unwrap();
    assert_eq!((&reply[..4], reply[7], len), (&b"GIOP"[..], 1, REPLY_OCTETS), "a whole reply");
}

/// Calls on so many connections at the same time, with so many requests in one write for each.
fn call(server: &Server, connections: usize, in_flight: usize) {
    let mut clients: Vec<File> = (0..connections).map(|_| client(server)).collect();
    let requests = echo(server, 7, &[7]).repeat(in_flight);
    let mut replies = vec![0; in_flight * REPLY_OCTETS];
    for _ in 0..(CALLS as usize).checked_div(connections * in_flight).unwrap_or_default() {
        clients.iter_mut().for_each(|client| client.write_all(&requests).unwrap());
        clients.iter_mut().for_each(|client| client.read_exact(&mut replies).unwrap());
        assert!(replies.chunks(REPLY_OCTETS).all(|reply| reply.starts_with(b"GIOP")), "whole replies");
    }
}

#[test]
fn each_call_on_64_connections_has_at_most_three_system_calls_in_the_server() {
    if let Ok(counted) = env::var(COUNTED) {
        let mut words = counted.splitn(3, ' ');
        let mut number = || words.next().unwrap().parse().unwrap();
        let (connections, in_flight) = (number(), number());
        return call(&Server::with(builder(words.next().unwrap_or_default())), connections, in_flight);
    }
    // Beside the calls: each connection is accepted, registered and closed; it may move to other threads, and back.
    let others = 8 * CONNECTIONS as u32;
    let count = |names: &str, strategy: &str| {
        let test = "busy_connections::each_call_on_64_connections_has_at_most_three_system_calls_in_the_server";
        system_calls::count(test, names, (COUNTED, &format!("{CONNECTIONS} 1 {strategy}")))
    };
    for strategy in ["", "reactive", "leader-followers"] {
        let [sends, receives, waits] =
            [&format!("{SENDS},io_uring_enter"), RECEIVES, "epoll_wait,epoll_pwait,epoll_ctl,poll,ppoll"]
                .map(|names| count(names, strategy));
        println!("{strategy}: {sends} sends, {receives} receives, {waits} waits for {CALLS} calls");
        // Replies share sends while upcalls are known to be quick, which depends on time.
        assert!(sends < CALLS + others, "{strategy}: {sends} sends for {CALLS} calls");
        assert!((CALLS..CALLS + others).contains(&receives), "{strategy}: {receives} receives for {CALLS} calls");
        assert!(waits < CALLS + others, "{strategy}: {waits} waits for {CALLS} calls");
    }
}

/// Has each connection call again as soon as it has its reply, until so many calls for each have ended. Returns the
/// numbers of calls of all connections, in order.
fn calls_of_equal_clients(clients: &mut [File], request: &[u8], each: usize) -> Vec<usize> {
    let mut calls = vec![0; clients.len()];
    clients.iter_mut().for_each(|client| client.write_all(request).unwrap());
    let mut ended = 0;
    while ended < each * clients.len() {
        let mut ready: Vec<PollFd<'_>> = clients.iter().map(|client| PollFd::new(client, PollFlags::IN)).collect();
        poll(&mut ready, None).unwrap();
        let ready: Vec<bool> = ready.iter().map(|client| !client.revents().is_empty()).collect();
        for (index, client) in clients.iter_mut().enumerate().filter(|(index, _)| ready[*index]) {
            read_reply(client);
            calls[index] += 1;
            ended += 1;
            client.write_all(request).unwrap();
        }
    }
    clients.iter_mut().for_each(read_reply);
    calls.sort_unstable();
    calls
}

#[test]
fn the_slowest_of_1_000_equal_clients_has_half_of_the_median_calls() {
    alone(|| {
        for strategy in [None, Some(Concurrency::Reactive), Some(Concurrency::LeaderFollowers { threads: None })] {
            let name = strategy.map_or_else(|| "default".to_owned(), |strategy| strategy.to_string());
            let builder = strategy.map_or_else(Orb::builder, |strategy| Orb::builder().concurrency(strategy));
            let server = Server::with(builder);
            let mut clients: Vec<File> = (0..affordable_connections(1_000)).map(|_| client(&server)).collect();
            let request = echo(&server, 7, &[7]);
            // The default moves busy connections to shared threads meanwhile.
            calls_of_equal_clients(&mut clients, &request, 10);
            let calls = calls_of_equal_clients(&mut clients, &request, 20);
            let (slowest, median) = (calls[0], calls[calls.len() / 2]);
            println!("{name}: the slowest client has {slowest} calls, the median {median}");
            assert!(2 * slowest >= median, "{name}: {slowest} calls, the median {median}");
        }
    });
}
