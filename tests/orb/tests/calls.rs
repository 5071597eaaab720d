//! Static calls: every kind of outcome, in every version and byte order.

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    minor,
    types::Located,
};
use spandrel_orb_tests::{
    Server,
    probe::{Refused, Target, target::RefuseError},
    support::wait_until,
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];
const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Runs a test with every GIOP version and every byte order of both sides.
fn with_every_version_and_byte_order(test: impl Fn(&Server, Target)) {
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
fn results_are_returned_in_every_version_and_byte_order() {
    with_every_version_and_byte_order(|_, target| {
        target.ping().unwrap();
        assert_eq!(target.add(40, 2).unwrap(), 42);
        assert_eq!(target.echo("caf\u{e9} \u{ff}").unwrap(), "caf\u{e9} \u{ff}");
        assert_eq!(target.echo("").unwrap(), "");
    });
}

#[test]
fn sequences_of_any_length_are_echoed_unchanged() {
    with_every_version_and_byte_order(|_, target| {
        for len in [0, 1, 7, 1024, 4096, 100_000, 1_000_000] {
            let octets: Vec<u8> = (0..len).map(|i: u32| (i % 251) as u8).collect();
            assert_eq!(target.echo_octets(&octets).unwrap(), octets);
            let doubles: Vec<f64> = (0..len / 8).map(f64::from).collect();
            assert_eq!(target.echo_doubles(&doubles).unwrap(), doubles);
        }
    });
}

#[test]
fn user_and_system_exceptions_are_returned() {
    with_every_version_and_byte_order(|_, target| {
        target.refuse(0).unwrap();
        let refused = Refused { why: "because of 7".into(), code: 7 };
        assert_eq!(target.refuse(7).unwrap_err(), RefuseError::Refused(refused));
        let failed = target.fail(0x1234).unwrap_err();
        assert_eq!(failed.kind(), SystemExceptionKind::BadParam);
        assert_eq!((failed.minor(), failed.completed()), (0x1234, CompletionStatus::No));
    });
}

#[test]
fn a_panic_of_a_servant_raises_unknown_at_its_caller_only() {
    let server = Server::start();
    let target = server.client();
    assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
    target.ping().unwrap();
}

/// The next call may run beside the last one, if the thread of that is interrupted for so long that another one reads.
#[test]
fn each_one_way_arrives() {
    with_every_version_and_byte_order(|server, target| {
        let before = target.count().unwrap();
        for _ in 0..100 {
            target.note(&[7; 3000]).unwrap();
        }
        wait_until("the one-ways", || target.count().unwrap() == before + 100);
        assert_eq!(server.poa.active_objects(), 1);
    });
}

#[test]
fn references_are_passed_and_returned() {
    with_every_version_and_byte_order(|_, target| {
        assert_eq!(target.same(None).unwrap(), None);
        let same = target.same(Some(&target)).unwrap().unwrap();
        assert_eq!(same, target);
        same.ping().unwrap();
        target.call_back(Some(&target)).unwrap();
    });
}

#[test]
fn implicit_operations_are_answered() {
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
    let profile = spandrel::types::IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
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
fn a_deactivated_object_does_not_exist() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    server.poa.deactivate(&server.object).unwrap();
    let exception = target.ping().unwrap_err();
    assert_eq!((exception.kind(), exception.completed()), (SystemExceptionKind::ObjectNotExist, CompletionStatus::No));
    assert!(target.as_object().non_existent().unwrap());
    assert_eq!(target.as_object().locate().unwrap(), Located::Unknown);
    assert!(server.poa.deactivate(&server.object).is_err());
}

#[test]
fn a_forwarding_is_followed_and_a_circle_of_forwardings_ends() {
    let (old, new) = (Server::start(), Server::start());
    let target = old.client();
    target.ping().unwrap();
    let new_reference = old.orb.reference(new.object.ior().clone());
    old.poa.forward(&old.object, new_reference.clone()).unwrap();
    assert_eq!(target.as_object().locate().unwrap(), Located::Forward(new.object.ior().clone()));
    target.note(&[7]).unwrap();
    assert_eq!(target.add(20, 22).unwrap(), 42);
    let before = new.client().count().unwrap();
    target.note(&[7]).unwrap();
    assert_eq!(target.count().unwrap(), before + 1, "after a forwarding, one-ways are sent to the new server");

    let back = new.orb.reference(old.object.ior().clone());
    new.poa.forward(&new.object, back).unwrap();
    let lost = old.client_with(Orb::builder()).ping();
    assert!(lost.is_err(), "a circle of forwardings must end the call");
}

#[test]
fn an_untyped_reference_is_narrowed_by_asking_the_server() {
    let server = Server::start();
    let object = server.client().as_object().clone();
    let mut ior = object.ior().clone();
    ior.type_id = String::new();
    let untyped = object.orb().reference(ior);
    Target::narrow(&untyped).unwrap();
    assert!(untyped.is_a("IDL:Probe/Target:1.0").unwrap());
    assert!(!untyped.is_a("IDL:Other:1.0").unwrap());
}

#[test]
fn a_call_on_a_shut_down_orb_raises_bad_inv_order() {
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    target.ping().unwrap();
    orb.shutdown().unwrap();
    let refused = target.ping().unwrap_err();
    assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::BadInvOrder, minor::ORB_HAS_SHUTDOWN));
}
