//! What servants know of who calls them over TLS.

use crate::certificates;

use std::{future::poll_fn, task::Poll, time::Duration};

use certificates::{As, authority, chain, client, serving, trusting};
use spandrel::{
    CompletionStatus, Concurrency, Endpoint, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    ssliop::{ClientVerification, PeerIdentity, Ssliop},
    statistics::Event,
};
use spandrel_orb_tests::{
    doors::{Door, DoorAsyncServant, DoorAsyncSkeleton, DoorServant, DoorSkeleton},
    support::{comes, in_background},
};
use spandrel_test_support::certificates::DnType;

/// A door, perhaps with another behind it.
struct Doorman(Option<Door>);

/// As whom the current request's client has appeared.
fn caller() -> String {
    let Some(peer) = PeerIdentity::current() else { return "nobody".to_owned() };
    assert_eq!(&peer.certificates()[0], peer.certificate());
    peer.common_name().unwrap_or_else(|| "somebody".to_owned())
}

impl DoorServant for Doorman {
    fn caller(&self) -> Result<String, SystemException> {
        Ok(caller())
    }

    /// As a program would decide.
    fn enter(&self) -> Result<(), SystemException> {
        match PeerIdentity::current() {
            Some(peer) if peer.is_host("teller.example") => Ok(()),
            _ => Err(SystemException::no_permission(7, CompletionStatus::No)),
        }
    }

    fn callers(&self) -> Result<String, SystemException> {
        match &self.0 {
            Some(behind) => Ok(format!("{}, then {}", behind.caller()?, caller())),
            None => Ok(caller()),
        }
    }

    fn ring(&self, other: Option<&Door>) -> Result<String, SystemException> {
        other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?.caller()
    }
}

/// Waits for another thread before it answers.
struct Patient;

impl DoorAsyncServant for Patient {
    async fn callers(&self) -> Result<String, SystemException> {
        let before = caller();
        let mut elsewhere = None;
        let there = poll_fn(|cx| match elsewhere.take() {
            None => {
                let waker = cx.waker().clone();
                elsewhere = Some(in_background(move || {
                    let there = caller();
                    waker.wake();
                    there
                }));
                Poll::Pending
            }
            Some(there) => Poll::Ready(there.recv().unwrap()),
        })
        .await;
        Ok(format!("{before}, then {there}, then {}", caller()))
    }

    async fn caller(&self) -> Result<String, SystemException> {
        Ok(caller())
    }

    async fn enter(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn ring(&self, _other: Option<&Door>) -> Result<String, SystemException> {
        Ok(caller())
    }
}

fn root(builder: OrbBuilder) -> (Orb, Poa) {
    let orb = builder.build().unwrap();
    let poa = Poa::root(&orb).unwrap();
    (orb, poa)
}

/// Serves whoever shows a certificate of the authority, and whoever shows none.
fn asking() -> Ssliop {
    trusting(authority()).identity_of(&authority().issue("127.0.0.1")).verify_clients(ClientVerification::Requested)
}

fn known(name: &str) -> OrbBuilder {
    Orb::builder().protocol(trusting(authority()).identity_of(&authority().issue(name)))
}

fn door(builder: OrbBuilder, reference: &str) -> Door {
    Door::unchecked_narrow(&builder.build().unwrap().string_to_object(reference).unwrap())
}

const STRATEGIES: [Concurrency; 4] = [
    Concurrency::ThreadPerConnection { limit: 64 },
    Concurrency::LeaderFollowers { threads: None },
    Concurrency::ThreadPool { threads: 2, queue: 16 },
    Concurrency::Reactive,
];

#[test]
fn each_client_is_who_its_certificate_says() {
    for strategy in STRATEGIES {
        let (orb, poa) = root(serving(asking()).listen("iiop://127.0.0.1:0".parse().unwrap()).concurrency(strategy));
        let reference = poa.activate(DoorSkeleton::new(Doorman(None))).unwrap().to_string();
        let clients = [
            (known("teller.example"), "teller.example", true),
            (known("thief.example"), "thief.example", false),
            (client(), "nobody", false),
            (Orb::builder(), "nobody", false),
        ];
        let clients = clients.map(|(builder, name, is_let_in)| (door(builder, &reference), name, is_let_in));
        for _ in 0..3 {
            for (door, name, is_let_in) in &clients {
                assert_eq!(door.caller().unwrap(), *name);
                match door.enter() {
                    Ok(()) => assert!(is_let_in, "{name}"),
                    Err(refused) => {
                        assert_eq!(refused.kind(), SystemExceptionKind::NoPermission, "{}", chain(&refused));
                        assert!(!is_let_in, "{name}");
                    }
                }
            }
        }
        assert_eq!(PeerIdentity::current(), None, "no request runs here");
        orb.shutdown(true).unwrap();
    }
}

#[test]
fn a_servant_that_answers_later_knows_it_all_the_time() {
    for strategy in STRATEGIES {
        let (orb, poa) = root(serving(asking()).concurrency(strategy));
        let reference = poa.activate(DoorAsyncSkeleton::new(Patient)).unwrap().to_string();
        for (builder, name) in [(known("teller.example"), "teller.example"), (client(), "nobody")] {
            // No request runs in the thread that wakes it.
            assert_eq!(door(builder, &reference).callers().unwrap(), format!("{name}, then nobody, then {name}"));
        }
        orb.shutdown(true).unwrap();
    }
}

#[test]
fn calls_inside_of_the_orb_are_made_for_whoever_is_outside() {
    let (orb, poa) = root(serving(asking()));
    let inner = poa.activate(DoorSkeleton::new(Doorman(None))).unwrap();
    let outer = Doorman(Some(Door::unchecked_narrow(&inner)));
    let outer = poa.activate(DoorSkeleton::new(outer)).unwrap();
    assert_eq!(Door::unchecked_narrow(&outer).callers().unwrap(), "nobody, then nobody", "nobody is outside");
    let door = door(known("teller.example"), &outer.to_string());
    assert_eq!(door.callers().unwrap(), "teller.example, then teller.example");
    orb.shutdown(true).unwrap();
}

#[test]
fn a_call_to_another_orb_of_the_process_takes_nothing_from_who_makes_it() {
    let (other, others) = root(Orb::builder().request_timeout(Some(Duration::from_secs(20))));
    let behind = others.activate(DoorSkeleton::new(Doorman(None))).unwrap();
    let (orb, poa) = root(serving(asking()));
    let outer = poa.activate(DoorSkeleton::new(Doorman(Some(Door::unchecked_narrow(&behind))))).unwrap();
    let door = door(known("teller.example"), &outer.to_string());
    // Nothing is between them but a call of this thread.
    assert_eq!(door.callers().unwrap(), "teller.example, then teller.example");
    other.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}

#[test]
fn who_is_called_back_knows_the_server() {
    let (server, poa) = root(serving(asking()).bidirectional(true));
    let reference = poa.activate(DoorSkeleton::new(Doorman(None))).unwrap().to_string();
    let (client, own) = root(client().bidirectional(true).listen(Endpoint::nowhere()));
    let back = own.activate(DoorSkeleton::new(Doorman(None))).unwrap();
    let there = Door::unchecked_narrow(&client.string_to_object(&reference).unwrap());
    assert_eq!(there.ring(Some(&Door::unchecked_narrow(&back))).unwrap(), "127.0.0.1");
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

#[test]
fn a_certificate_that_leaves_open_whose_it_is_has_no_name() {
    let (orb, poa) = root(serving(asking()));
    let reference = poa.activate(DoorSkeleton::new(Doorman(None))).unwrap().to_string();
    // What the library takes for another attribute is one more common name.
    let common_name = DnType::CustomDnType(vec![2, 5, 4, 3]);
    let unnamed = authority().issue_with(&[], |_| {});
    let named_twice = authority().issue_with(&["teller.example"], |params| {
        params.distinguished_name.push(common_name, "thief.example");
    });
    for (identity, is_let_in) in [(unnamed, false), (named_twice, true)] {
        let door = door(Orb::builder().protocol(trusting(authority()).identity_of(&identity)), &reference);
        assert_eq!(door.caller().unwrap(), "somebody");
        // The alternative names are what counts for hosts.
        assert_eq!(door.enter().is_ok(), is_let_in);
    }
    orb.shutdown(true).unwrap();
}

/// A client that comes again resumes its session, and shows no certificate anew.
#[test]
fn a_client_that_comes_again_is_who_it_was() {
    let (orb, poa) = root(serving(asking()).server_idle_timeout(Some(Duration::from_millis(500))));
    let reference = poa.activate(DoorSkeleton::new(Doorman(None))).unwrap().to_string();
    let clients = [(known("teller.example"), "teller.example"), (client(), "nobody")];
    let clients = clients.map(|(builder, name)| (door(builder, &reference), name));
    for round in 1..3 {
        for (door, name) in &clients {
            assert_eq!(door.caller().unwrap(), *name);
        }
        comes("the end of both", || orb.statistics().count(Event::ServerClosedIdle) >= 2 * round);
    }
    orb.shutdown(true).unwrap();
}
