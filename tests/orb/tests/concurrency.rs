//! Concurrency strategies: number of concurrent upcalls, order of one-ways, nested calls, shutdown.

use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use spandrel::diagnostics::statistics::{Event, Level};
use spandrel::{
    CompletionStatus, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    options::{Concurrency, OrbProfile},
    server::{Replied, Servant, ServerCall},
};
use spandrel_orb_tests::{
    Repeater, Server,
    probe::{Relay, RelaySkeleton, Target},
    support::{TEST_TIMEOUT, in_background, wait_until},
};

/// The strategies, with few threads each.
const STRATEGIES: [Concurrency; 6] = [
    Concurrency::ThreadPerConnection { limit: 64 },
    Concurrency::ThreadPerConnection { limit: 1 },
    Concurrency::LeaderFollowers { threads: None },
    Concurrency::LeaderFollowers { threads: Some(4) },
    Concurrency::Reactive,
    Concurrency::ThreadPool { threads: 4, queue: 8 },
];

/// A time after which the monitor of upcalls would sleep.
const TOO_EARLY: Duration = Duration::from_millis(400);

/// The least and the greatest number of concurrent upcalls.
fn concurrent_upcalls(strategy: Concurrency) -> (u32, u32) {
    match strategy {
        Concurrency::Reactive => (1, 1),
        Concurrency::LeaderFollowers { threads: Some(threads) } | Concurrency::ThreadPool { threads, .. } => {
            (threads as u32, threads as u32)
        }
        _ => (20, u32::MAX),
    }
}

#[test]
fn the_number_of_concurrent_upcalls_is_that_of_the_strategy() {
    const MORE: u32 = 3;
    for strategy in STRATEGIES {
        let server = Server::with(Orb::builder().concurrency(strategy));
        let (least, most) = concurrent_upcalls(strategy);
        let held: Vec<_> = (0..least + MORE)
            .map(|_| {
                let target = server.client();
                in_background(move || target.hold(1))
            })
            .collect();
        let running = if most == least { least } else { least + MORE };
        server.probe.await_held(running as usize);
        server.probe.open(1);
        held.into_iter().for_each(|call| call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
    }
}

#[test]
fn requests_of_one_connection_run_at_once_while_threads_are_idle() {
    let strategies = STRATEGIES.into_iter().chain([Concurrency::LeaderFollowers { threads: Some(2) }]);
    for strategy in strategies.filter(|strategy| *strategy != Concurrency::Reactive) {
        let server = Server::with(Orb::builder().concurrency(strategy));
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let call = |gate| {
            let target = target.clone();
            in_background(move || target.hold(gate))
        };
        let (least, most) = concurrent_upcalls(strategy);
        let calls = least.min(8);
        let held: Vec<_> = (1..=calls).map(call).collect();
        server.probe.await_held(calls as usize);
        if most == calls {
            // A further request waits for a thread, and no longer.
            server.probe.open(calls + 1);
            let further = call(calls + 1);
            assert!(further.recv_timeout(TOO_EARLY).is_err(), "{strategy}: no thread is idle");
            server.probe.open(1);
            further.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|_| panic!("{strategy}: a thread is idle")).unwrap();
            server.probe.await_held(calls as usize - 1);
        }
        (1..=calls).for_each(|gate| server.probe.open(gate));
        held.into_iter().for_each(|call| call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
    }
}

#[test]
fn later_calls_do_not_overtake_one_ways_of_their_connection() {
    for strategy in STRATEGIES {
        let server = Server::with(Orb::builder().concurrency(strategy));
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        for round in 1..=10 {
            for _ in 0..50 {
                target.note(&[7; 20]).unwrap();
            }
            assert_eq!(target.count().unwrap(), round * 50, "{strategy}");
        }
    }
}

/// Records the order in which its operations begin, and how many run at once.
#[derive(Clone, Default)]
struct OrderRecorder {
    begun: Arc<Mutex<Vec<String>>>,
    running: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
}

impl Servant for OrderRecorder {
    fn repository_id(&self) -> &'static str {
        "IDL:Scribe:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        self.begun.lock().unwrap().push(operation.to_owned());
        thread::yield_now();
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(call.finish_oneway())
    }
}

#[test]
fn one_ways_of_a_connection_run_in_order_and_one_at_a_time() {
    const COUNT: usize = 200;
    let are_in_order = |strategy| {
        let server = Server::with(Orb::builder().concurrency(strategy));
        let recorder = OrderRecorder::default();
        let object = server.poa.activate(recorder.clone()).unwrap();
        let client = Orb::builder().connections_per_peer(1).build().unwrap();
        let object = client.string_to_object(&object.to_string()).unwrap();
        let sent: Vec<String> = (0..COUNT).map(|number| format!("op{number}")).collect();
        for operation in &sent {
            object.send_oneway(operation, |_| Ok(())).unwrap();
        }
        wait_until("the last one", || recorder.begun.lock().unwrap().len() == COUNT);
        *recorder.begun.lock().unwrap() == sent && recorder.most.load(Ordering::SeqCst) == 1
    };
    for strategy in STRATEGIES {
        // On a loaded machine, an upcall may wait for a processor for longer than it may delay the reading.
        wait_until("one-ways that run one after the other", || are_in_order(strategy));
    }
}

#[test]
fn circular_calls_complete_with_a_single_thread() {
    for strategy in [
        Concurrency::Reactive,
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 1 },
    ] {
        let orbs = [(); 2].map(|()| Orb::builder().concurrency(strategy).connections_per_peer(1).build().unwrap());
        let relay = |orb: &Orb| {
            let object = Poa::root(orb).unwrap().activate(RelaySkeleton::new(Repeater)).unwrap();
            object.to_string()
        };
        let [first, second] = [relay(&orbs[0]), relay(&orbs[1])];
        let client = Orb::builder().build().unwrap();
        let bind = |ior: &str| Relay::narrow(&client.string_to_object(ior).unwrap()).unwrap();
        let (first, second) = (bind(&first), bind(&second));
        let called = in_background(move || first.recurse(Some(&second), Some(&first), 10));
        assert_eq!(called.recv_timeout(TEST_TIMEOUT).expect("the nested calls end").unwrap(), 10, "{strategy}");
        orbs.iter().for_each(|orb| orb.shutdown().unwrap());
    }
}

/// A servant that answers asynchronously.
struct AsynchronousServant;

impl Servant for AsynchronousServant {
    fn repository_id(&self) -> &'static str {
        "IDL:Later:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.spawn(|call| async move {
            let answered = call.answer(|call| {
                call.reply(|out| {
                    out.u32(42);
                    Ok(())
                })
            });
            call.end(answered);
        })
    }
}

#[test]
fn asynchronous_servants_answer_with_every_strategy() {
    for strategy in STRATEGIES {
        let server = Server::with(Orb::builder().concurrency(strategy));
        let object = server.poa.activate(AsynchronousServant).unwrap();
        let client = Orb::builder().build().unwrap();
        let object = client.string_to_object(&object.to_string()).unwrap();
        for _ in 0..20 {
            let answer: Result<u32, SystemException> = object.invoke("later", |_| Ok(()), |input| input.u32());
            assert_eq!(answer.unwrap(), 42, "{strategy}");
        }
    }
}

#[test]
fn shutdown_answers_running_and_waiting_requests() {
    const CALLS: usize = 6;
    for strategy in STRATEGIES {
        let server = Server::with(Orb::builder().concurrency(strategy));
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let calls: Vec<_> = (0..CALLS)
            .map(|_| {
                let target: Target = target.clone();
                in_background(move || target.hold(1))
            })
            .collect();
        server.probe.await_held(1);
        server.orb.begin_shutdown().unwrap();
        server.probe.open(1);
        for call in calls {
            // A request that was not accepted any more was not run. The outcome is unknown if its connection was not
            // accepted either: the system resets what waits at a listener that closes.
            if let Err(exception) = call.recv_timeout(TEST_TIMEOUT).expect("the call ends") {
                let is_other_connection = target.as_object().orb().statistics().count(Event::ConnectionOpened) > 1;
                let is_reset = is_other_connection && exception.kind() == SystemExceptionKind::CommFailure;
                let is_known = is_reset || exception.completed() == CompletionStatus::No;
                assert!(is_known, "{strategy}: {exception}");
            }
        }
    }
}

#[test]
fn aborted_connections_are_removed() {
    for strategy in STRATEGIES {
        let server = Server::with(Orb::builder().concurrency(strategy));
        for _ in 0..10 {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            stream.write_all(b"GIOP\x01\x02\x01\x03\x00\x00").unwrap();
        }
        assert_eq!(server.client().add(1, 2).unwrap(), 3);
        let level = spandrel::diagnostics::statistics::Level::ServerConnections;
        wait_until("the end of the aborted connections", || server.orb.statistics().level(level) <= 1);
    }
}

/// The threads of a server that has answered this number of clients, whose connections stay open.
fn threads_for(clients: usize, builder: OrbBuilder) -> i64 {
    let server = Server::with(builder);
    let clients: Vec<Target> = (0..clients).map(|_| server.client()).collect();
    clients.iter().for_each(|client| client.ping().unwrap());
    // The level is updated when the metrics are rendered.
    let _ = server.orb.render_metrics();
    let threads = [Level::ThreadsOfConnections, Level::ThreadsOfPool].map(|level| server.orb.statistics().level(level));
    server.orb.shutdown().unwrap();
    threads.iter().sum()
}

#[test]
fn profiles_differ_in_their_threads() {
    assert!(threads_for(20, Orb::builder().profile(OrbProfile::Default)) >= 20);
    for profile in [OrbProfile::Small, OrbProfile::HighConcurrency] {
        let threads = threads_for(20, Orb::builder().profile(profile));
        assert!((1..10).contains(&threads), "{profile}: {threads}");
    }
}
