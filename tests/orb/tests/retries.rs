//! When a request is sent once more: only where it certainly was not carried out, whoever sent it and how.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use spandrel::{
    CompletionStatus, GiopVersion, Located, Orb, OrbBuilder, SystemException, SystemExceptionKind, minor,
    policies::{RebindPolicy, SetOverrideType, SyncScopePolicy},
    statistics::Event,
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{PATIENCE, block_on, in_background, kind_and_completion, late, pretend, read_message},
};

const CLOSE_CONNECTION: &[u8] = b"GIOP\x01\x02\x01\x05\x00\x00\x00\x00";
const MESSAGE_ERROR: &[u8] = b"GIOP\x01\x02\x01\x06\x00\x00\x00\x00";

/// How a connection ends that has answered once: what its server says instead of the second answer.
#[derive(Clone, Copy, Debug)]
enum End {
    Silence,
    Says(&'static [u8]),
}

/// Hands requests on to a server, and ends its first connection when the second request has been read. `seen`: how many were.
fn ending(server: &Server, end: End) -> (u16, Arc<AtomicUsize>) {
    let real = server.port();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let port = pretend(move |connection, mut stream| {
        let seen = Arc::clone(&counted);
        std::thread::spawn(move || {
            let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
            for turn in 0.. {
                let Ok(request) = read_message(&mut stream) else { return };
                seen.fetch_add(1, Ordering::SeqCst);
                if (connection, turn) == (0, 1) {
                    if let End::Says(last) = end {
                        stream.write_all(last).unwrap();
                    }
                    // Nothing is left unread, so that this is an end of file and no reset.
                    stream.shutdown(Shutdown::Write).unwrap();
                    let _ = read_message(&mut stream);
                    return;
                }
                upstream.write_all(&request).unwrap();
                stream.write_all(&read_message(&mut upstream).unwrap()).unwrap();
            }
        });
    });
    (port, seen)
}

/// The server's target, as if it were at this port.
fn moved(server: &Server, port: u16, builder: OrbBuilder) -> (Orb, Target) {
    let profile = spandrel::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::IiopProfile { port, ..profile }.encode().unwrap()];
    let orb = builder.build().unwrap();
    let target = Target::unchecked_narrow(&orb.reference(ior));
    (orb, target)
}

/// One of the ways in which somebody is asked something.
type Ask = fn(&Target) -> Result<(), SystemException>;

fn answered_one_way(target: &Target) -> Result<(), SystemException> {
    let policies = [SyncScopePolicy::WithTarget.into()];
    let object = target.as_object().set_policy_overrides(&policies, SetOverrideType::AddOverride).unwrap();
    Target::unchecked_narrow(&object).note(&[7])
}

fn locate(target: &Target) -> Result<(), SystemException> {
    target.as_object().locate().map(|located| assert!(matches!(located, Located::Here)))
}

const WAYS: [(&str, Ask); 4] = [
    ("synchronous", |target| target.add(20, 22).map(|sum| assert_eq!(sum, 42))),
    ("asynchronous", |target| block_on(target.add_async(20, 22)).map(|sum| assert_eq!(sum, 42))),
    ("one-way", answered_one_way),
    ("locate", locate),
];

#[test]
fn after_an_orderly_close_the_request_is_sent_once_more() {
    for (way, ask) in WAYS {
        let server = Server::start();
        let (port, seen) = ending(&server, End::Says(CLOSE_CONNECTION));
        let (orb, target) = moved(&server, port, Orb::builder());
        target.add(1, 1).unwrap();
        ask(&target).unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(seen.load(Ordering::SeqCst), 3, "{way}: one request, and another twice");
        let statistics = orb.statistics();
        assert_eq!((statistics.count(Event::Retried), statistics.count(Event::Reconnected)), (1, 1), "{way}");
    }
}

#[test]
fn after_an_end_of_file_nobody_knows_and_nothing_is_sent_again() {
    for (way, ask) in WAYS {
        let server = Server::start();
        let (port, seen) = ending(&server, End::Silence);
        let (orb, target) = moved(&server, port, Orb::builder());
        target.add(1, 1).unwrap();
        let error = ask(&target).unwrap_err();
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe),
            "{way}: {error}"
        );
        assert_eq!((seen.load(Ordering::SeqCst), orb.statistics().count(Event::Retried)), (2, 0), "{way}");
        ask(&target).unwrap_or_else(|error| panic!("{way}: {error}"));
    }
}

#[test]
fn a_server_that_takes_connections_only_to_close_them_is_said_to_have_enough() {
    for (way, ask) in WAYS {
        let port = pretend(|_, mut stream| {
            stream.write_all(CLOSE_CONNECTION).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            std::thread::spawn(move || while read_message(&mut stream).is_ok() {});
        });
        let (_orb, target) = moved(&Server::start(), port, Orb::builder());
        let error = ask(&target).unwrap_err();
        let expected = (SystemExceptionKind::Transient, CompletionStatus::No);
        assert_eq!(kind_and_completion(&error), expected, "{way}: {error}");
        assert!(error.to_string().contains("it accepts no more, or is about to end"), "{way}: {error}");
        let below = std::error::Error::source(&error).unwrap().to_string();
        assert!(below.contains(&format!(":{port} closed the connection in an orderly way")), "{way}: {below}");
    }
}

#[test]
fn a_message_that_the_server_could_not_read_is_not_sent_again() {
    for (way, ask) in WAYS {
        let server = Server::start();
        let (port, seen) = ending(&server, End::Says(MESSAGE_ERROR));
        let (_orb, target) = moved(&server, port, Orb::builder());
        target.add(1, 1).unwrap();
        let error = ask(&target).unwrap_err();
        assert_eq!(error.completed(), CompletionStatus::Maybe, "{way}: {error}");
        assert!(error.to_string().contains("MessageError"), "{way}: {error}");
        assert_eq!(seen.load(Ordering::SeqCst), 2, "{way}");
    }
}

#[test]
fn what_the_server_says_itself_goes_to_the_caller() {
    let server = Server::start();
    server.poa.the_poa_manager().discard_requests(true).unwrap();
    for (way, ask) in &WAYS {
        let orb = Orb::builder().build().unwrap();
        let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
        let error = ask(&target).unwrap_err();
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::Transient, CompletionStatus::No),
            "{way}: {error}"
        );
        assert_eq!(orb.statistics().count(Event::Retried), 0, "{way}");
    }
    server.poa.the_poa_manager().activate().unwrap();
}

#[test]
fn a_server_that_closes_each_time_is_asked_twice() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let port = pretend(move |_, mut stream| {
        let seen = Arc::clone(&counted);
        std::thread::spawn(move || {
            while read_message(&mut stream).is_ok() {
                seen.fetch_add(1, Ordering::SeqCst);
                stream.write_all(CLOSE_CONNECTION).unwrap();
            }
        });
    });
    let orb = Orb::builder().build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap());
    let error = target.ping().unwrap_err();
    assert_eq!(error.completed(), CompletionStatus::No, "{error}");
    assert!((1..=2).contains(&seen.load(Ordering::SeqCst)));
}

#[test]
fn no_reconnect_means_that_an_idle_close_is_noticed() {
    let server = Server::start();
    let (port, seen) = ending(&server, End::Says(CLOSE_CONNECTION));
    let (orb, target) = moved(&server, port, Orb::builder());
    let policies = [RebindPolicy::NoReconnect.into()];
    let object = target.as_object().set_policy_overrides(&policies, SetOverrideType::SetOverride).unwrap();
    let target = Target::unchecked_narrow(&object);
    // Not bound yet, so that this one may connect.
    target.add(1, 1).unwrap();
    let error = target.add(1, 1).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Rebind, CompletionStatus::No), "{error}");
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    let again = target.add(1, 1).unwrap_err();
    assert_eq!(again.kind(), SystemExceptionKind::Rebind, "{again}");
    // Asked to, it may.
    assert!(object.validate_connection().unwrap().0);
    target.add(1, 1).unwrap();
    assert_eq!(orb.statistics().count(Event::Retried), 0);
}

#[test]
fn a_connection_that_another_call_has_given_up_says_nothing_of_the_server() {
    let server = Server::start();
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let object = orb.string_to_object(&server.ior()).unwrap();
    let (tell, told) = mpsc::channel();
    let (let_go, go) = mpsc::channel();
    let first = {
        let object = object.clone();
        in_background(move || {
            // Its arguments are written once there is a connection, and before anything is sent there.
            let write = |_: &mut spandrel_cdr::Encoder<'static>| {
                tell.send(()).unwrap();
                go.recv().unwrap();
                Ok(())
            };
            object.invoke::<(), SystemException>("ping", write, |_| Ok(()))
        })
    };
    told.recv_timeout(PATIENCE).unwrap();
    let late = late(&Target::unchecked_narrow(&object), |hurried| hurried.hold(1));
    assert_eq!(kind_and_completion(&late), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{late}");
    // Once for each connection.
    let_go.send(()).unwrap();
    let_go.send(()).unwrap();
    first.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(orb.statistics().count(Event::Retried), 1);
    server.probe.open(1);
}

/// One reference to the targets of both.
fn either(first: &Server, second: &Server, orb: &Orb) -> Target {
    let mut ior = first.object.ior().clone();
    ior.profiles.extend(second.object.ior().profiles.iter().cloned());
    Target::unchecked_narrow(&orb.reference(ior))
}

#[test]
fn what_a_server_has_not_done_is_asked_of_the_next_address_once() {
    for (way, ask) in &WAYS {
        let (first, second) = (Server::start(), Server::start());
        first.poa.the_poa_manager().discard_requests(true).unwrap();
        let orb = Orb::builder().build().unwrap();
        let target = either(&first, &second, &orb);
        ask(&target).unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(orb.statistics().count(Event::Retried), 1, "{way}");
        target.ping().unwrap();
        let before = orb.statistics().count(Event::Retried);
        ask(&target).unwrap_or_else(|error| panic!("{way}: {error}"));
        // One-ways have a reference of their own here.
        let is_known = *way != "one-way";
        let asked = orb.statistics().count(Event::Retried) - before;
        assert_eq!(asked, u64::from(!is_known), "{way}: who has answered is asked first");
        let before = before + asked;
        second.poa.the_poa_manager().discard_requests(true).unwrap();
        let error = ask(&target).unwrap_err();
        assert_eq!(
            kind_and_completion(&error),
            (SystemExceptionKind::Transient, CompletionStatus::No),
            "{way}: {error}"
        );
        assert_eq!(orb.statistics().count(Event::Retried), before + 1, "{way}: each once");
    }
}

#[test]
fn what_a_server_says_counts_for_more_than_that_the_next_address_is_dead() {
    let (first, second) = (Server::start(), Server::start());
    first.poa.the_poa_manager().discard_requests(true).unwrap();
    let orb = Orb::builder().build().unwrap();
    let target = either(&first, &second, &orb);
    second.orb.shutdown(true).unwrap();
    for (way, ask) in &WAYS {
        let error = ask(&target).unwrap_err();
        assert_eq!(error.minor(), minor::REQUEST_DISCARDED, "{way}: {error}");
    }
}

#[test]
fn an_object_that_does_not_exist_is_not_looked_for_at_other_addresses() {
    let (first, second) = (Server::start(), Server::start());
    let orb = Orb::builder().build().unwrap();
    first.poa.deactivate_object(&first.poa.reference_to_id(&first.object).unwrap()).unwrap();
    let target = either(&first, &second, &orb);
    for (way, ask) in &WAYS[..3] {
        let error = ask(&target).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist, "{way}: {error}");
    }
    assert_eq!(orb.statistics().count(Event::Retried), 0);
}

/// What a LocateRequest is told where requests are refused at present: as of GIOP 1.2 the exception, before it nothing of that (9.4.6.1).
#[test]
fn locate_says_by_which_exception_requests_are_refused() {
    let server = Server::start();
    let manager = server.poa.the_poa_manager();
    let ask = |version| {
        Orb::builder().giop_version(version).build().unwrap().string_to_object(&server.ior()).unwrap().locate()
    };
    let refusal = |version| match ask(version) {
        Err(exception) => Some((exception.kind(), exception.minor(), exception.completed())),
        Ok(located) => {
            assert_eq!(located, Located::Here, "GIOP {version}");
            None
        }
    };
    let (old, new) = ([GiopVersion::V1_0, GiopVersion::V1_1], GiopVersion::V1_2);
    manager.hold_requests(false).unwrap();
    assert_eq!(refusal(new), None, "requests wait, and are served");
    manager.discard_requests(false).unwrap();
    let discarded = (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED, CompletionStatus::No);
    assert_eq!(refusal(new), Some(discarded));
    assert_eq!(old.map(refusal), [None; 2]);
    manager.activate().unwrap();
    assert_eq!(refusal(new), None);
    manager.deactivate(false, false).unwrap();
    let inactive = (SystemExceptionKind::ObjAdapter, minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No);
    assert_eq!(refusal(new), Some(inactive));
}
