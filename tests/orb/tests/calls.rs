//! Calls: every kind of outcome, in every version and byte order.

use spandrel::{ByteOrder, CompletionStatus, GiopVersion, Located, Orb, OrbBuilder, SystemExceptionKind, minor};
use spandrel_orb_tests::{
    Server,
    probe::{Refused, Target, target::RefuseError},
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];
const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Runs a test with every way in which a client may write.
fn in_every_form(test: impl Fn(&Server, Target)) {
    for server_order in ORDERS {
        let server = Server::with(Orb::builder().byte_order(server_order));
        for version in VERSIONS {
            for order in ORDERS {
                test(&server, server.client_with(builder(version, order)));
            }
        }
    }
}

fn builder(version: GiopVersion, order: ByteOrder) -> OrbBuilder {
    Orb::builder().giop_version(version).byte_order(order)
}

#[test]
fn results_come_back() {
    in_every_form(|_, target| {
        target.ping().unwrap();
        assert_eq!(target.add(40, 2).unwrap(), 42);
        assert_eq!(target.echo("caf\u{e9} \u{ff}").unwrap(), "caf\u{e9} \u{ff}");
        assert_eq!(target.echo("").unwrap(), "");
    });
}

#[test]
fn long_sequences_are_lent_and_arrive_whole() {
    in_every_form(|_, target| {
        for len in [0, 1, 7, 1024, 4096, 100_000, 1_000_000] {
            let octets: Vec<u8> = (0..len).map(|i: u32| (i % 251) as u8).collect();
            assert_eq!(target.echo_octets(&octets).unwrap(), octets);
            let doubles: Vec<f64> = (0..len / 8).map(f64::from).collect();
            assert_eq!(target.echo_doubles(&doubles).unwrap(), doubles);
        }
    });
}

#[test]
fn exceptions_come_back() {
    in_every_form(|_, target| {
        target.refuse(0).unwrap();
        let refused = Refused { why: "because of 7".into(), code: 7 };
        assert_eq!(target.refuse(7).unwrap_err(), RefuseError::Refused(refused));
        let failed = target.fail(0x1234).unwrap_err();
        assert_eq!(failed.kind(), SystemExceptionKind::BadParam);
        assert_eq!((failed.minor(), failed.completed()), (0x1234, CompletionStatus::No));
    });
}

#[test]
fn a_panic_is_the_callers_exception_and_nobody_elses() {
    let server = Server::start();
    let target = server.client();
    assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
    target.ping().unwrap();
}

#[test]
fn one_ways_arrive_in_order_before_the_next_call() {
    in_every_form(|server, target| {
        let before = target.count().unwrap();
        for _ in 0..100 {
            target.note(&[7; 3000]).unwrap();
        }
        assert_eq!(target.count().unwrap(), before + 100);
        assert_eq!(server.poa.active_objects(), 1);
    });
}

#[test]
fn references_travel() {
    in_every_form(|_, target| {
        assert_eq!(target.same(None).unwrap(), None);
        let same = target.same(Some(&target)).unwrap().unwrap();
        assert_eq!(same, target);
        same.ping().unwrap();
        target.call_back(Some(&target)).unwrap();
    });
}

#[test]
fn every_object_answers_what_every_object_must() {
    let server = Server::start();
    let object = server.client().as_object().clone();
    assert!(object.is_a("IDL:Probe/Target:1.0").unwrap());
    assert!(object.is_a("IDL:omg.org/CORBA/Object:1.0").unwrap());
    assert!(!object.is_a("IDL:Probe/Other:1.0").unwrap());
    assert!(!object.non_existent().unwrap());
    assert_eq!(object.locate().unwrap(), Located::Here);
}

#[test]
fn a_corbaloc_reaches_the_object() {
    let server = Server::start();
    let profile = spandrel::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let key: String = profile.object_key.iter().map(|octet| format!("%{octet:02x}")).collect();
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{}/{key}", server.port());
    let target = Target::narrow(&Orb::builder().build().unwrap().string_to_object(&url).unwrap()).unwrap();
    assert_eq!(target.add(1, 2).unwrap(), 3);
}

#[test]
fn an_initial_reference_is_resolved() {
    let server = Server::start();
    let orb = Orb::init(["-ORBInitRef".to_owned(), format!("Probe={}", server.ior())]).unwrap();
    for object in [orb.resolve_initial_references("Probe"), orb.string_to_object("corbaloc:rir:/Probe")] {
        Target::narrow(&object.unwrap()).unwrap().ping().unwrap();
    }
    assert_eq!(orb.resolve_initial_references("Other").unwrap_err().kind(), SystemExceptionKind::BadParam);
}

#[test]
fn an_object_that_was_deactivated_does_not_exist() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    server.poa.deactivate(&server.object).unwrap();
    let gone = target.ping().unwrap_err();
    assert_eq!((gone.kind(), gone.completed()), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
    assert!(target.as_object().non_existent().unwrap());
    assert_eq!(target.as_object().locate().unwrap(), Located::Unknown);
    assert!(server.poa.deactivate(&server.object).is_err());
}

#[test]
fn a_moved_object_is_followed_and_a_circle_ends() {
    let (old, new) = (Server::start(), Server::start());
    let target = old.client();
    target.ping().unwrap();
    let there = old.orb.reference(new.object.ior().clone());
    old.poa.forward(&old.object, there.clone()).unwrap();
    assert_eq!(target.as_object().locate().unwrap(), Located::Forward(new.object.ior().clone()));
    target.note(&[7]).unwrap();
    assert_eq!(target.add(20, 22).unwrap(), 42);
    let before = new.client().count().unwrap();
    target.note(&[7]).unwrap();
    assert_eq!(target.count().unwrap(), before + 1, "after a forwarding one-ways go straight to the new home");

    let back = new.orb.reference(old.object.ior().clone());
    new.poa.forward(&new.object, back).unwrap();
    let lost = old.client_with(Orb::builder()).ping();
    assert!(lost.is_err(), "narrowing or calling in a circle must end");
}

#[test]
fn a_narrow_to_what_it_is_not_is_refused() {
    let server = Server::start();
    let object = server.client().as_object().clone();
    let mut ior = object.ior().clone();
    ior.type_id = String::new();
    let untyped = object.orb().reference(ior);
    Target::narrow(&untyped).unwrap();
    assert!(untyped.is_a("IDL:Probe/Target:1.0").unwrap());
    assert!(!untyped.is_a("IDL:Nobody:1.0").unwrap());
}

#[test]
fn a_shut_down_orb_says_so() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    target.ping().unwrap();
    orb.shutdown(true).unwrap();
    let refused = target.ping().unwrap_err();
    assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::BadInvOrder, minor::ORB_HAS_SHUTDOWN));
}
