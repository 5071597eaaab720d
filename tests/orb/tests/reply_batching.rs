//! A server that sends the replies of one round together (`-ORBReplyBatching`).

use std::{
    io::Write as _,
    net::Shutdown,
    sync::{Arc, Mutex, mpsc},
    thread,
};

use spandrel::{
    Orb, OrbBuilder, SystemException,
    cdr::{ByteOrder, GiopVersion},
    diagnostics::statistics::Level,
    interception::{Interceptor, LocateRequestInfo, OrbInitInfo, OrbInitializer, ServerRequestInterceptor},
    options::Concurrency,
    types::IiopProfile,
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_orb_tests::{
    Server,
    pipelined::{connect, echo, hold, read_reply},
    probe::Target,
    support::{TEST_TIMEOUT, in_background, read_message, read_some, wait_until},
};

/// With one thread, so that all requests of a wait are in one batch.
fn batching() -> OrbBuilder {
    batching_with(Concurrency::Reactive)
}

fn batching_with(strategy: Concurrency) -> OrbBuilder {
    Orb::builder().concurrency(strategy).reply_batching(true)
}

/// Keeps the thread of the server while `send` runs, so that one wait then finds all that it has sent.
fn in_one_round(server: &Server, gate: u32, send: impl FnOnce()) {
    let mut first = connect(server);
    first.write_all(&hold(server, gate)).unwrap();
    server.probe.await_held(1);
    send();
    server.probe.open(gate);
    assert_eq!(read_reply(&mut first).0, gate);
}

fn call_often(target: &Target, id: i32) {
    for round in 0..100 {
        assert_eq!(target.add(id, round).unwrap(), id + round);
        let data = vec![7; 3000 + 20 * usize::try_from(round).unwrap()];
        assert_eq!(target.echo_octets(&data).unwrap(), data);
    }
}

#[test]
fn each_client_gets_its_own_replies() {
    for strategy in [Concurrency::Reactive, Concurrency::LeaderFollowers { threads: None }] {
        let server = Server::with(batching_with(strategy));
        thread::scope(|scope| {
            for id in 0..32 {
                let target = server.client();
                scope.spawn(move || call_often(&target, id));
            }
        });
    }
}

#[test]
fn more_replies_than_fit_into_a_batch_are_sent() {
    let server = Server::with(batching());
    let mut clients: Vec<_> = (0..100).map(|_| connect(&server)).collect();
    in_one_round(&server, 1, || {
        for (id, stream) in (0..).zip(&mut clients) {
            stream.write_all(&echo(&server, id, &[7; 100])).unwrap();
        }
    });
    for (id, stream) in (0..).zip(&mut clients) {
        assert_eq!(read_reply(stream).0, id);
    }
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = Server::with(batching());
    let mut clients: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    in_one_round(&server, 1, || {
        for stream in &mut clients {
            let requests: Vec<_> = (0..20).flat_map(|id| echo(&server, id, &[7; 100])).collect();
            stream.write_all(&requests).unwrap();
        }
    });
    for stream in &mut clients {
        assert_eq!((0..20).map(|_| read_reply(stream).0).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn a_long_upcall_does_not_delay_the_replies_before_it() {
    let server = Server::with(batching());
    let (mut quick, mut slow) = (connect(&server), connect(&server));
    in_one_round(&server, 1, || {
        quick.write_all(&echo(&server, 5, &[7; 100])).unwrap();
        slow.write_all(&hold(&server, 2)).unwrap();
    });
    assert_eq!(read_reply(&mut quick).0, 5, "while the other client's upcall runs");
    server.probe.await_held(1);
    server.probe.open(2);
    assert_eq!(read_reply(&mut slow).0, 2);
}

/// An interceptor that waits where a LocateRequest has arrived.
#[derive(Clone)]
struct SlowLocation {
    begun: mpsc::Sender<()>,
    may_end: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Interceptor for SlowLocation {}

impl ServerRequestInterceptor for SlowLocation {
    fn receive_locate_request(&self, _info: &LocateRequestInfo<'_>) -> Result<(), SystemException> {
        self.begun.send(()).unwrap();
        self.may_end.lock().unwrap().recv_timeout(TEST_TIMEOUT).unwrap();
        Ok(())
    }
}

impl OrbInitializer for SlowLocation {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        Ok(info.add_server_request_interceptor(self.clone())?)
    }
}

#[test]
fn a_slow_location_does_not_delay_the_replies_before_it() {
    let (begun, begins) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    let may_end = Arc::new(Mutex::new(may_end));
    let server = Server::with(batching().initializer(SlowLocation { begun, may_end }));
    // The operation is known to be quick.
    let target = server.client();
    for _ in 0..20 {
        target.echo_octets(&[7; 100]).unwrap();
    }
    let location = {
        let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
        let mut out = Encoder::new(Wire::new(ByteOrder::Little, GiopVersion::V1_2));
        spandrel_giop::locate_request(&mut out, 6, &profile.object_key).unwrap();
        out.to_vec()
    };
    // By another connection of the same round, and by the same connection.
    for (gate, is_pipelined) in [(1, false), (2, true)] {
        let (mut quick, mut slow) = (connect(&server), connect(&server));
        in_one_round(&server, gate, || {
            quick.write_all(&echo(&server, 5, &[7; 100])).unwrap();
            if is_pipelined {
                slow.write_all(&[echo(&server, 5, &[7; 100]), location.clone()].concat()).unwrap();
            } else {
                slow.write_all(&location).unwrap();
            }
        });
        begins.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(read_reply(&mut quick).0, 5, "while the location waits");
        if is_pipelined {
            assert_eq!(read_reply(&mut slow).0, 5, "while the location waits");
        }
        end.send(()).unwrap();
        assert!(!read_message(&mut slow).unwrap().is_empty());
    }
}

#[test]
fn replies_that_a_client_does_not_take_wait_and_delay_no_other() {
    const REQUESTS: u32 = 2_000;
    let server = Server::with(batching().socket_queues(Some(16 * 1024), None));
    let (mut stalled, mut other) = (connect(&server), connect(&server));
    let sending = {
        let mut stream = stalled.try_clone().unwrap();
        let requests: Vec<_> = (0..REQUESTS).map(|id| echo(&server, id, &vec![7; 2000 + id as usize])).collect();
        in_background(move || requests.iter().for_each(|request| stream.write_all(request).unwrap()))
    };
    for id in 0..200 {
        in_one_round(&server, id + 1, || other.write_all(&echo(&server, id, &[7; 100])).unwrap());
        assert_eq!(read_reply(&mut other).0, id);
    }
    for id in 0..REQUESTS {
        let (replied, len) = read_reply(&mut stalled);
        assert!(replied == id && len > 2000 + id as usize);
    }
    sending.recv_timeout(TEST_TIMEOUT).unwrap();
    wait_until("the release of the memory", || server.orb.statistics().level(Level::OctetsReceived) == 0);
}

#[test]
fn a_client_that_ends_its_side_gets_its_reply_before_the_end() {
    let server = Server::with(batching());
    let mut clients: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    in_one_round(&server, 1, || {
        for (id, stream) in (0..).zip(&mut clients) {
            stream.write_all(&echo(&server, id, &[7; 100])).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        }
    });
    for (id, stream) in (0..).zip(&mut clients) {
        assert_eq!(read_reply(stream).0, id);
        assert_eq!(read_some(&*stream, &mut [0]).unwrap(), 0);
    }
}

#[test]
fn clients_that_are_gone_leave_nothing() {
    let server = Server::with(batching());
    in_one_round(&server, 1, || {
        for id in 0..20 {
            connect(&server).write_all(&echo(&server, id, &[7; 100])).unwrap();
        }
    });
    wait_until("the end of the connections", || server.orb.statistics().level(Level::ServerConnections) == 0);
    assert_eq!(server.client().add(1, 2).unwrap(), 3);
}

#[test]
fn a_shutdown_sends_the_collected_replies() {
    let server = Server::with(batching());
    let mut clients: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    let mut first = connect(&server);
    first.write_all(&hold(&server, 1)).unwrap();
    server.probe.await_held(1);
    for (id, stream) in (0..).zip(&mut clients) {
        stream.write_all(&echo(&server, id, &[7; 100])).unwrap();
    }
    server.probe.open(1);
    // Each accepted request is answered; the others may be refused by CloseConnection.
    assert_eq!(read_reply(&mut first).0, 1);
    server.orb.shutdown().unwrap();
    for stream in &mut clients {
        let message = read_message(stream).unwrap();
        assert!(matches!(message[7], 1 | 5), "a Reply or CloseConnection");
    }
}
