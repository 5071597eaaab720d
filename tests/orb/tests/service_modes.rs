//! The adaptive strategy: connections move between threads of their own and shared ones.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use spandrel::{Endpoint, ObjectRef, Orb, OrbBuilder, Poa, diagnostics::statistics::Level, options::Concurrency};
use spandrel_orb_tests::{
    probe::Target,
    support::{servant, wait_until},
};

/// The name of the threads that serve one connection, and of those that serve several.
const OWN: &str = "spandrel-serve";
const SHARED: &str = "spandrel-reactor";

/// A server whose object returns the name of the thread that runs the request.
fn server(builder: OrbBuilder, strategy: Concurrency) -> (Orb, ObjectRef) {
    let orb = builder.concurrency(strategy).build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(servant(|_, call| {
        let name = thread::current().name().unwrap_or_default().to_owned();
        call.reply(|out| out.str(&name))
    }));
    (orb, object.unwrap())
}

/// A client that calls without a pause.
struct BusyClient {
    /// The thread that ran the last request.
    served_by: Arc<Mutex<String>>,
    is_enough: Arc<AtomicBool>,
    calls: Option<JoinHandle<()>>,
}

impl BusyClient {
    fn start(object: &ObjectRef) -> Self {
        let target: Target =
            Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap().unchecked_narrow();
        let (served_by, is_enough) = <(Arc<Mutex<String>>, Arc<AtomicBool>)>::default();
        let (last, stop) = (Arc::clone(&served_by), Arc::clone(&is_enough));
        let calls = thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let name = target.echo("who?").expect("each call is answered");
                *last.lock().unwrap() = name;
            }
        });
        Self { served_by, is_enough, calls: Some(calls) }
    }

    fn is_served_by(&self, thread: &str) -> bool {
        *self.served_by.lock().unwrap() == thread
    }
}

impl Drop for BusyClient {
    fn drop(&mut self) {
        self.is_enough.store(true, Ordering::SeqCst);
        let ended = self.calls.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn connections_with_threads(orb: &Orb) -> i64 {
    // The level is updated when the metrics are rendered.
    let _ = orb.render_metrics();
    orb.statistics().level(Level::ThreadsOfConnections)
}

fn move_there_and_back(builder: OrbBuilder) {
    let (orb, object) = server(builder, Concurrency::Adaptive { limit: 3 });
    let first = BusyClient::start(&object);
    wait_until("a thread for the only client", || first.is_served_by(OWN));
    let (named, named_object) = server(Orb::builder(), Concurrency::ThreadPerConnection { limit: 64 });
    {
        let named_clients = [(); 2].map(|()| BusyClient::start(&named_object));
        let more = [(); 7].map(|()| BusyClient::start(&object));
        let all = || more.iter().chain([&first]);
        wait_until("shared threads for all clients", || all().all(|client| client.is_served_by(SHARED)));
        assert_eq!(connections_with_threads(&orb), 0);
        let is_unchanged = || named_clients.iter().all(|client| client.is_served_by(OWN));
        wait_until("calls by threads of their own, since the named strategy does not change", is_unchanged);
    }
    wait_until("a thread for the only busy client", || first.is_served_by(OWN));
    drop(first);
    named.shutdown().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn connections_share_threads_while_many_are_busy() {
    move_there_and_back(Orb::builder().listen(Endpoint::new("127.0.0.1", 0)));
}

#[test]
#[cfg(unix)]
fn connections_of_the_unix_domain_share_threads_while_many_are_busy() {
    move_there_and_back(Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).listen(Endpoint::of("uds", "")));
}
