//! As many connections to one server as this process can open (up to 20,000), and the memory of each while
//! idle.
#![cfg(unix)]

use spandrel_test_support::alone;
use std::{io::Write, net::TcpStream, sync::Arc};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spandrel::{
    Orb,
    cdr::{ByteOrder, GiopVersion},
    options::Concurrency,
    types::IiopProfile,
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    Server,
    support::{TEST_TIMEOUT, read_message, wait_until},
};
use stats_alloc::{Region, Stats};

use crate::ALLOCATOR;

/// The most octets of server memory that an idle connection may take.
const OCTETS_EACH: usize = 4096;

/// How many connections fit into the descriptor limit with both ends in this process; `wanted` at most.
pub(crate) fn affordable_connections(wanted: usize) -> usize {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let files = maximum.map_or(usize::MAX, |maximum| usize::try_from(maximum).unwrap());
    wanted.min((files - 200) / 2)
}

fn request_to_ping(server: &Server) -> Vec<u8> {
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let mut out = Encoder::new(wire);
    let template = RequestTemplate::new(wire, &profile.object_key);
    template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "ping", &[]).end(&mut out).unwrap();
    out.to_vec()
}

fn call(stream: &mut TcpStream, request: &[u8]) {
    stream.write_all(request).unwrap();
    assert_eq!(read_message(stream).unwrap()[7], 1, "a reply");
}

fn allocated(change: &Stats) -> usize {
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

#[test]
fn idle_connections_take_at_most_4096_octets_and_are_served() {
    alone(|| {
        for strategy in [
            Concurrency::LeaderFollowers { threads: None },
            Concurrency::Reactive,
            Concurrency::ThreadPool { threads: 2, queue: 64 },
        ] {
            // Closed connections keep their addresses for a minute, and the number of addresses is limited.
            let count = affordable_connections(if strategy == Concurrency::Reactive { 20_000 } else { 1_000 });
            let server = Server::with(Orb::builder().concurrency(strategy));
            let request = request_to_ping(&server);
            let connect = || {
                let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
                stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
                call(&mut stream, &request);
                stream
            };
            // Allocates state that is shared by all connections.
            let first = connect();
            let mut clients = Vec::with_capacity(count);
            let region = Region::new(ALLOCATOR);
            clients.extend((0..count).map(|_| connect()));
            let change = region.change();
            let each = allocated(&change) / count;
            println!("{strategy}: {count} connections of {each} octets each");
            assert!(each <= OCTETS_EACH, "{strategy}: {each} octets each");
            for client in clients.iter_mut().rev() {
                call(client, &request);
            }
            // An incomplete message takes no additional memory.
            for client in &mut clients {
                client.write_all(&request[..20]).unwrap();
            }
            for client in &mut clients {
                client.write_all(&request[20..]).unwrap();
                read_message(client).unwrap();
            }
            let change = region.change();
            let each = allocated(&change) / count;
            assert!(each <= OCTETS_EACH, "{strategy}: {each} octets each, afterwards");
            drop((first, clients));
            // Memory that is released later would be counted for the next strategy.
            let probe = Arc::downgrade(&server.probe);
            drop(server);
            wait_until("the end of the server", || probe.upgrade().is_none());
        }
    });
}
