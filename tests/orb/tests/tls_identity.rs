//! The identity of TLS clients as servants see it.

use crate::certificates;

use std::{future::poll_fn, task::Poll, time::Duration};

use certificates::{WithIdentity, authority, chain, client, serving, trusting};
use spandrel::{
    CompletionStatus, Endpoint, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    diagnostics::statistics::Event,
    options::Concurrency,
    ssliop::{ClientVerification, PeerIdentity, Ssliop},
};
use spandrel_orb_tests::{
    access::{Guard, GuardAsyncServant, GuardAsyncSkeleton, GuardServant, GuardSkeleton},
    support::{in_background, wait_until},
};
use spandrel_test_support::certificates::DnType;

/// A guard, with an optional next guard.
struct CertificateGuard(Option<Guard>);

/// The common name of the current request's client.
fn caller() -> String {
    let Some(peer) = PeerIdentity::current() else { return "anonymous".to_owned() };
    assert_eq!(&peer.certificates()[0], peer.certificate());
    peer.common_name().unwrap_or_else(|| "unnamed".to_owned())
}

impl GuardServant for CertificateGuard {
    fn caller(&self) -> Result<String, SystemException> {
        Ok(caller())
    }

    /// Access control as in an application.
    fn check_access(&self) -> Result<(), SystemException> {
        match PeerIdentity::current() {
            Some(peer) if peer.is_host("teller.example") => Ok(()),
            _ => Err(SystemException::no_permission(7, CompletionStatus::No)),
        }
    }

    fn caller_chain(&self) -> Result<String, SystemException> {
        match &self.0 {
            Some(next) => Ok(format!("{}, then {}", next.caller()?, caller())),
            None => Ok(caller()),
        }
    }

    fn call_back(&self, other: Option<&Guard>) -> Result<String, SystemException> {
        other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?.caller()
    }
}

/// An asynchronous servant that waits for another thread before it answers.
struct AsynchronousGuard;

impl GuardAsyncServant for AsynchronousGuard {
    async fn caller_chain(&self) -> Result<String, SystemException> {
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

    async fn check_access(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn call_back(&self, _other: Option<&Guard>) -> Result<String, SystemException> {
        Ok(caller())
    }
}

fn root(builder: OrbBuilder) -> (Orb, Poa) {
    let orb = builder.build().unwrap();
    let poa = Poa::root(&orb).unwrap();
    (orb, poa)
}

/// A server configuration that requests client certificates and accepts clients without one.
fn requesting_certificates() -> Ssliop {
    trusting(authority()).identity_of(&authority().issue("127.0.0.1")).verify_clients(ClientVerification::Requested)
}

fn with_certificate(name: &str) -> OrbBuilder {
    Orb::builder().protocol(trusting(authority()).identity_of(&authority().issue(name)))
}

fn guard(builder: OrbBuilder, reference: &str) -> Guard {
    Guard::unchecked_narrow(&builder.build().unwrap().string_to_object(reference).unwrap())
}

const STRATEGIES: [Concurrency; 4] = [
    Concurrency::ThreadPerConnection { limit: 64 },
    Concurrency::LeaderFollowers { threads: None },
    Concurrency::ThreadPool { threads: 2, queue: 16 },
    Concurrency::Reactive,
];

#[test]
fn a_servant_sees_the_name_in_the_clients_certificate() {
    for strategy in STRATEGIES {
        let (orb, poa) = root(
            serving(requesting_certificates()).listen("iiop://127.0.0.1:0".parse().unwrap()).concurrency(strategy),
        );
        let reference = poa.activate(GuardSkeleton::new(CertificateGuard(None))).unwrap().to_string();
        let clients = [
            (with_certificate("teller.example"), "teller.example", true),
            (with_certificate("thief.example"), "thief.example", false),
            (client(), "anonymous", false),
            (Orb::builder(), "anonymous", false),
        ];
        let clients = clients.map(|(builder, name, is_allowed)| (guard(builder, &reference), name, is_allowed));
        for _ in 0..3 {
            for (guard, name, is_allowed) in &clients {
                assert_eq!(guard.caller().unwrap(), *name);
                match guard.check_access() {
                    Ok(()) => assert!(is_allowed, "{name}"),
                    Err(refused) => {
                        assert_eq!(refused.kind(), SystemExceptionKind::NoPermission, "{}", chain(&refused));
                        assert!(!is_allowed, "{name}");
                    }
                }
            }
        }
        assert_eq!(PeerIdentity::current(), None, "this thread runs no request");
        orb.shutdown().unwrap();
    }
}

#[test]
fn an_asynchronous_servant_sees_the_identity_at_every_poll() {
    for strategy in STRATEGIES {
        let (orb, poa) = root(serving(requesting_certificates()).concurrency(strategy));
        let reference = poa.activate(GuardAsyncSkeleton::new(AsynchronousGuard)).unwrap().to_string();
        for (builder, name) in [(with_certificate("teller.example"), "teller.example"), (client(), "anonymous")] {
            // The thread that wakes the future runs no request.
            assert_eq!(
                guard(builder, &reference).caller_chain().unwrap(),
                format!("{name}, then anonymous, then {name}")
            );
        }
        orb.shutdown().unwrap();
    }
}

#[test]
fn collocated_calls_keep_the_outer_clients_identity() {
    let (orb, poa) = root(serving(requesting_certificates()));
    let inner = poa.activate(GuardSkeleton::new(CertificateGuard(None))).unwrap();
    let outer = CertificateGuard(Some(Guard::unchecked_narrow(&inner)));
    let outer = poa.activate(GuardSkeleton::new(outer)).unwrap();
    assert_eq!(Guard::unchecked_narrow(&outer).caller_chain().unwrap(), "anonymous, then anonymous", "no request runs");
    let guard = guard(with_certificate("teller.example"), &outer.to_string());
    assert_eq!(guard.caller_chain().unwrap(), "teller.example, then teller.example");
    orb.shutdown().unwrap();
}

#[test]
fn collocated_calls_to_another_orb_keep_the_outer_clients_identity() {
    let (other, others) = root(Orb::builder().request_timeout(Some(Duration::from_secs(20))));
    let next = others.activate(GuardSkeleton::new(CertificateGuard(None))).unwrap();
    let (orb, poa) = root(serving(requesting_certificates()));
    let outer = poa.activate(GuardSkeleton::new(CertificateGuard(Some(Guard::unchecked_narrow(&next))))).unwrap();
    let guard = guard(with_certificate("teller.example"), &outer.to_string());
    // The call is collocated in the thread of the outer request.
    assert_eq!(guard.caller_chain().unwrap(), "teller.example, then teller.example");
    other.shutdown().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn a_callback_sees_the_servers_identity() {
    let (server, poa) = root(serving(requesting_certificates()).bidirectional(true));
    let reference = poa.activate(GuardSkeleton::new(CertificateGuard(None))).unwrap().to_string();
    let (client, own) = root(client().bidirectional(true).listen(Endpoint::nowhere()));
    let back = own.activate(GuardSkeleton::new(CertificateGuard(None))).unwrap();
    let there = Guard::unchecked_narrow(&client.string_to_object(&reference).unwrap());
    assert_eq!(there.call_back(Some(&Guard::unchecked_narrow(&back))).unwrap(), "127.0.0.1");
    client.shutdown().unwrap();
    server.shutdown().unwrap();
}

#[test]
fn a_certificate_without_a_unique_common_name_has_no_name() {
    let (orb, poa) = root(serving(requesting_certificates()));
    let reference = poa.activate(GuardSkeleton::new(CertificateGuard(None))).unwrap().to_string();
    // Adds a second common name under a custom attribute type.
    let common_name = DnType::CustomDnType(vec![2, 5, 4, 3]);
    let unnamed = authority().issue_with(&[], |_| {});
    let named_twice = authority().issue_with(&["teller.example"], |params| {
        params.distinguished_name.push(common_name, "thief.example");
    });
    for (identity, is_allowed) in [(unnamed, false), (named_twice, true)] {
        let guard = guard(Orb::builder().protocol(trusting(authority()).identity_of(&identity)), &reference);
        assert_eq!(guard.caller().unwrap(), "unnamed");
        // Hosts are identified by the subject alternative names.
        assert_eq!(guard.check_access().is_ok(), is_allowed);
    }
    orb.shutdown().unwrap();
}

/// A returning client resumes its session and sends no certificate again.
#[test]
fn a_resumed_session_keeps_the_clients_identity() {
    let (orb, poa) = root(serving(requesting_certificates()).server_idle_timeout(Some(Duration::from_millis(500))));
    let reference = poa.activate(GuardSkeleton::new(CertificateGuard(None))).unwrap().to_string();
    let clients = [(with_certificate("teller.example"), "teller.example"), (client(), "anonymous")];
    let clients = clients.map(|(builder, name)| (guard(builder, &reference), name));
    for round in 1..3 {
        for (guard, name) in &clients {
            assert_eq!(guard.caller().unwrap(), *name);
        }
        wait_until("the end of both connections", || orb.statistics().count(Event::ServerClosedIdle) >= 2 * round);
    }
    orb.shutdown().unwrap();
}
