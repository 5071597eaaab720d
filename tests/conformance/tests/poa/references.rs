//! References and what is in them (15.3.9 create_reference, create_reference_with_id, id_to_reference, reference_to_id; 15.3.8.2).

use spandrel::poa::{IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError};
use spandrel::{Endpoint, IiopProfile, ObjectRef, Orb, Poa, Policy, SystemExceptionKind, ior_to_string};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    managers::{Asked, Scripted, activating, locating},
    support::{Pair, default_servant_only, named, refused},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn kept() -> [Policy; 2] {
    [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()]
}

/// The same reference with another object key.
fn with_key(object: &ObjectRef, orb: &Orb, key: Vec<u8>) -> ObjectRef {
    let mut ior = object.ior().clone();
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    profile.object_key = key;
    ior.profiles = vec![profile.encode().unwrap()];
    orb.reference(ior)
}

fn key_of(object: &ObjectRef) -> Vec<u8> {
    IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap().object_key
}

/// create_reference: a reference with an id of the adapter's making and the type that was given; nothing is activated.
#[test]
fn a_created_reference_has_the_type_that_was_given_and_activates_nothing() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    for interface in [TYPE, "IDL:Something/Else:2.7", ""] {
        assert_eq!(poa.create_reference(interface).unwrap().type_id(), interface);
    }
    assert_eq!(poa.active_objects(), 0);
    for object in pair.ways(&poa.create_reference(TYPE).unwrap()) {
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    }
}

/// create_reference: the id may be had by reference_to_id, and the object be activated with it.
#[test]
fn a_created_reference_is_served_once_its_id_is_activated() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let reference = poa.create_reference(TYPE).unwrap();
    let id = poa.reference_to_id(&reference).unwrap();
    poa.activate_object_with_id(&id, named("one")).unwrap();
    for object in pair.ways(&reference) {
        assert_eq!(object.name().unwrap(), "one");
    }
    assert_eq!(refused(poa.activate_object_with_id(&id, named("two"))), PoaError::ObjectAlreadyActive);
}

/// create_reference: each has an id of its own, other than those of activate_object.
#[test]
fn created_references_are_of_different_objects() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(poa.reference_to_id(&poa.create_reference(TYPE).unwrap()).unwrap());
        ids.push(poa.activate_object(named("one")).unwrap());
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

/// create_reference: WrongPolicy without SYSTEM_ID; it needs no RETAIN.
#[test]
fn create_reference_needs_system_ids_only() {
    let pair = Pair::new();
    let poa = pair.adapter("user", [IdAssignmentPolicy::UserId.into()]);
    assert_eq!(refused(poa.create_reference(TYPE)), PoaError::WrongPolicy);
    let poa = pair.adapter("default", default_servant_only());
    poa.set_servant(named("default")).unwrap();
    for object in pair.ways(&poa.create_reference(TYPE).unwrap()) {
        assert_eq!(object.name().unwrap(), "default");
    }
}

/// create_reference_with_id: a reference with that id and that type; nothing is activated.
#[test]
fn a_reference_created_with_an_id_has_that_one() {
    let pair = Pair::new();
    for poa in [pair.adapter("map", kept()), pair.adapter("locator", locating())] {
        let id = ObjectId::from(&b"any\0octets\xff"[..]);
        let reference = poa.create_reference_with_id(&id, TYPE).unwrap();
        assert_eq!((poa.reference_to_id(&reference).unwrap(), reference.type_id()), (id, TYPE));
        assert_eq!(poa.active_objects(), 0);
    }
}

/// create_reference_with_id: the resulting reference may be passed to clients, and the servant manager is asked for its servant.
#[test]
fn a_created_reference_has_its_servant_incarnated() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), Scripted::naming());
    poa.set_servant_manager(manager.activator()).unwrap();
    let reference = poa.create_reference_with_id(&"one".into(), TYPE).unwrap();
    assert_eq!(manager.asked(), []);
    for object in pair.ways(&reference) {
        assert_eq!(object.name().unwrap(), "one");
    }
    assert_eq!(manager.asked(), [Asked::Incarnate("one".into())]);
}

/// id_to_reference: WrongPolicy without RETAIN, ObjectNotActive if it is not.
#[test]
fn id_to_reference_is_for_active_objects() {
    let pair = Pair::new();
    for poa in [pair.adapter("default", default_servant_only()), pair.adapter("locator", locating())] {
        assert_eq!(refused(poa.id_to_reference(&"one".into())), PoaError::WrongPolicy);
    }
    let poa = pair.adapter("map", []);
    assert_eq!(refused(poa.id_to_reference(&"one".into())), PoaError::ObjectNotActive);
    let id = poa.activate_object(named("one")).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    assert_eq!((poa.reference_to_id(&reference).unwrap(), reference.type_id()), (id.clone(), TYPE));
    poa.deactivate_object(&id).unwrap();
    assert_eq!(refused(poa.id_to_reference(&id)), PoaError::ObjectNotActive);
}

/// reference_to_id: of an object that is not active, too, and of a reference that came back as text.
#[test]
fn the_id_can_be_had_from_any_reference_of_the_adapter() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named("one")).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    poa.deactivate_object(&id).unwrap();
    let text = ior_to_string(reference.ior());
    for back in [reference, pair.server.string_to_object(&text).unwrap(), pair.client.string_to_object(&text).unwrap()]
    {
        assert_eq!(poa.reference_to_id(&back).unwrap(), id);
    }
}

/// reference_to_id, reference_to_servant: WrongAdapter if the reference was not made by this adapter.
#[test]
fn references_of_others_are_refused() {
    let pair = Pair::new();
    let (poa, sibling) = (pair.adapter("child", kept()), pair.adapter("sibling", kept()));
    let below = poa.create_poa("child", None, kept()).unwrap();
    let other = Pair::new();
    let elsewhere = other.adapter("elsewhere", kept());
    let id = ObjectId::from("one");
    let own = poa.create_reference_with_id(&id, TYPE).unwrap();
    let mut foreign: Vec<_> =
        [&sibling, &below, &elsewhere].map(|adapter| adapter.create_reference_with_id(&id, TYPE).unwrap()).into();
    foreign.push(pair.root.create_reference(TYPE).unwrap());
    foreign.push(with_key(&own, &pair.server, Vec::new()));
    foreign.push(with_key(&own, &pair.server, b"NameService".to_vec()));
    assert_eq!(poa.reference_to_id(&own).unwrap(), id);
    for reference in foreign {
        assert_eq!(refused(poa.reference_to_id(&reference)), PoaError::WrongAdapter, "{reference:?}");
        assert_eq!(refused(poa.reference_to_servant(&reference)), PoaError::WrongAdapter, "{reference:?}");
    }
}

/// A server with a persistent adapter below another, and one object there; at a port if one is given.
fn server(port: u16, policies: impl IntoIterator<Item = Policy>) -> (Orb, u16, Poa) {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let manager = root.the_poa_manager();
    let parent = root.create_poa("parent", Some(&manager), kept()).unwrap();
    let child = parent.create_poa("child", Some(&manager), policies).unwrap();
    let port = orb.listen().unwrap()[0].1;
    (orb, port, child)
}

/// 15.3.8.2 PERSISTENT: objects outlive the process in which they were first created: the adapter is found by its name and those of
/// its ancestors.
#[test]
fn persistent_references_survive_a_restart() {
    let (client, id) = (Orb::builder().build().unwrap(), ObjectId::from("one"));
    let (orb, port, poa) = server(0, kept());
    poa.activate_object_with_id(&id, named("first")).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    let object: Subject = client.reference(reference.ior().clone()).unchecked_narrow();
    assert_eq!(object.name().unwrap(), "first");
    orb.shutdown(true).unwrap();
    let (orb, _, poa) = server(port, kept());
    poa.activate_object_with_id(&id, named("second")).unwrap();
    assert_eq!(object.name().unwrap(), "second");
    assert_eq!(poa.reference_to_id(object.as_object()).unwrap(), id);
    client.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}

/// 15.3.8.2 PERSISTENT, activate_object_with_id: ids that the system generated for a previous instantiation of the adapter may be
/// activated.
#[test]
fn made_ids_of_a_persistent_adapter_may_be_activated_after_a_restart() {
    let client = Orb::builder().build().unwrap();
    let (orb, port, poa) = server(0, [LifespanPolicy::Persistent.into()]);
    let id = poa.activate_object(named("first")).unwrap();
    let object: Subject = client.reference(poa.id_to_reference(&id).unwrap().ior().clone()).unchecked_narrow();
    assert_eq!(object.name().unwrap(), "first");
    orb.shutdown(true).unwrap();
    let (orb, _, poa) = server(port, [LifespanPolicy::Persistent.into()]);
    let fresh = poa.activate_object(named("fresh")).unwrap();
    assert_ne!(fresh, id, "an id of an earlier run was made again");
    poa.activate_object_with_id(&id, named("second")).unwrap();
    assert_eq!(object.name().unwrap(), "second");
    client.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}

/// 15.3.8.2 TRANSIENT: objects do not outlive the adapter in which they were first created: OBJECT_NOT_EXIST.
#[test]
fn transient_references_are_dead_after_a_restart() {
    let (client, id) = (Orb::builder().build().unwrap(), ObjectId::from("one"));
    let user_ids = || [IdAssignmentPolicy::UserId.into()];
    let (orb, port, poa) = server(0, user_ids());
    poa.activate_object_with_id(&id, named("first")).unwrap();
    let object: Subject = client.reference(poa.id_to_reference(&id).unwrap().ior().clone()).unchecked_narrow();
    assert_eq!(object.name().unwrap(), "first");
    orb.shutdown(true).unwrap();
    let (orb, _, poa) = server(port, user_ids());
    poa.activate_object_with_id(&id, named("second")).unwrap();
    assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert_eq!(refused(poa.reference_to_id(object.as_object())), PoaError::WrongAdapter);
    client.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}

/// 15.2.6: a key that no adapter has made is of no object: OBJECT_NOT_EXIST, whatever is in it, and nothing else happens.
#[test]
fn malformed_keys_are_of_no_object() {
    let pair = Pair::new();
    let id = ObjectId::from("one");
    for policies in [kept(), [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Transient.into()]] {
        let poa = pair.adapter("child", policies);
        poa.activate_object_with_id(&id, named("one")).unwrap();
        let reference = poa.id_to_reference(&id).unwrap();
        let key = key_of(&reference);
        let mut keys: Vec<_> = (0..key.len()).map(|length| key[..length].to_vec()).collect();
        for place in 0..key.len() {
            for bit in [0x01, 0x80, 0xff] {
                let mut changed = key.clone();
                changed[place] ^= bit;
                keys.push(changed);
            }
        }
        keys.extend([[&key[..], b"\0"].concat(), [b"\0", &key[..]].concat(), vec![0xff; 30_000], vec![0; 64]]);
        for key in keys {
            let changed = with_key(&reference, &pair.client, key.clone());
            let outcome = changed.unchecked_narrow::<Subject>().name();
            assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::ObjectNotExist, "{}", key.escape_ascii());
        }
        assert_eq!(pair.seen(&reference).name().unwrap(), "one");
        poa.destroy(false, true).unwrap();
    }
}
