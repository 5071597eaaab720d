//! Object references and their contents (15.3.9 create_reference, create_reference_with_id, id_to_reference,
//! reference_to_id; 15.3.8.2).

use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError, WaitForCompletion};
use spandrel::{
    Endpoint, ObjectRef, Orb, Poa, SystemExceptionKind,
    policy::Policy,
    types::{IiopProfile, ior_to_string},
};
use spandrel_conformance_tests::{
    idl::conformance::Subject,
    managers::{ManagerUpcall, ScriptedManager, activating, locating},
    support::{Pair, default_servant_only, expect_refusal, named_servant},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn persistent() -> [Policy; 2] {
    [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Persistent.into()]
}

/// The reference with another object key.
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

/// create_reference: the reference has a system id and the given type; nothing is activated.
#[test]
fn create_reference_uses_the_given_type_and_activates_nothing() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    for interface in [TYPE, "IDL:Something/Else:2.7", ""] {
        assert_eq!(poa.create_reference(interface).unwrap().type_id(), interface);
    }
    assert_eq!(poa.active_objects(), 0);
    for object in pair.remote_and_local(&poa.create_reference(TYPE).unwrap()) {
        assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    }
}

/// create_reference: reference_to_id returns its id, which can be activated.
#[test]
fn a_created_reference_is_served_once_its_id_is_activated() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let reference = poa.create_reference(TYPE).unwrap();
    let id = poa.reference_to_id(&reference).unwrap();
    poa.activate_object_with_id(&id, named_servant("one")).unwrap();
    for object in pair.remote_and_local(&reference) {
        assert_eq!(object.name().unwrap(), "one");
    }
    assert!(matches!(
        expect_refusal(poa.activate_object_with_id(&id, named_servant("two"))),
        PoaError::ObjectAlreadyActive { .. }
    ));
}

/// create_reference: each reference has a different id, none of them that of an activated object.
#[test]
fn created_references_are_of_different_objects() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(poa.reference_to_id(&poa.create_reference(TYPE).unwrap()).unwrap());
        ids.push(poa.activate_object(named_servant("one")).unwrap());
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

/// create_reference: WrongPolicy without SYSTEM_ID; RETAIN is not required.
#[test]
fn create_reference_needs_system_ids_only() {
    let pair = Pair::new();
    let poa = pair.adapter("user", [IdAssignmentPolicy::UserId.into()]);
    assert!(matches!(expect_refusal(poa.create_reference(TYPE)), PoaError::WrongPolicy { .. }));
    let poa = pair.adapter("default", default_servant_only());
    poa.set_servant(named_servant("default")).unwrap();
    for object in pair.remote_and_local(&poa.create_reference(TYPE).unwrap()) {
        assert_eq!(object.name().unwrap(), "default");
    }
}

/// create_reference_with_id: the reference has the given id and type; nothing is activated.
#[test]
fn create_reference_with_id_uses_the_given_id_and_type() {
    let pair = Pair::new();
    for poa in [pair.adapter("map", persistent()), pair.adapter("locator", locating())] {
        let id = ObjectId::from(&b"any\0octets\xff"[..]);
        let reference = poa.create_reference_with_id(&id, TYPE).unwrap();
        assert_eq!((poa.reference_to_id(&reference).unwrap(), reference.type_id()), (id, TYPE));
        assert_eq!(poa.active_objects(), 0);
    }
}

/// create_reference_with_id: a request through the reference makes the servant manager incarnate the object.
#[test]
fn a_request_through_a_created_reference_incarnates_the_object() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), ScriptedManager::with_named_servants());
    poa.set_servant_manager(manager.activator()).unwrap();
    let reference = poa.create_reference_with_id(&"one".into(), TYPE).unwrap();
    assert_eq!(manager.upcalls(), []);
    for object in pair.remote_and_local(&reference) {
        assert_eq!(object.name().unwrap(), "one");
    }
    assert_eq!(manager.upcalls(), [ManagerUpcall::Incarnate("one".into())]);
}

/// id_to_reference: WrongPolicy without RETAIN, ObjectNotActive for an inactive object.
#[test]
fn id_to_reference_requires_an_active_object() {
    let pair = Pair::new();
    for poa in [pair.adapter("default", default_servant_only()), pair.adapter("locator", locating())] {
        assert!(matches!(expect_refusal(poa.id_to_reference(&"one".into())), PoaError::WrongPolicy { .. }));
    }
    let poa = pair.adapter("map", []);
    assert!(matches!(expect_refusal(poa.id_to_reference(&"one".into())), PoaError::ObjectNotActive { .. }));
    let id = poa.activate_object(named_servant("one")).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    assert_eq!((poa.reference_to_id(&reference).unwrap(), reference.type_id()), (id.clone(), TYPE));
    poa.deactivate_object(&id).unwrap();
    assert!(matches!(expect_refusal(poa.id_to_reference(&id)), PoaError::ObjectNotActive { .. }));
}

/// reference_to_id: the object may be inactive, and the reference made from text.
#[test]
fn reference_to_id_accepts_any_reference_of_the_adapter() {
    let pair = Pair::new();
    let poa = pair.adapter("child", []);
    let id = poa.activate_object(named_servant("one")).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    poa.deactivate_object(&id).unwrap();
    let text = ior_to_string(reference.ior());
    for back in [reference, pair.server.string_to_object(&text).unwrap(), pair.client.string_to_object(&text).unwrap()]
    {
        assert_eq!(poa.reference_to_id(&back).unwrap(), id);
    }
}

/// reference_to_id, reference_to_servant: WrongAdapter if the reference was created by another adapter.
#[test]
fn references_of_other_adapters_raise_wrong_adapter() {
    let pair = Pair::new();
    let (poa, sibling) = (pair.adapter("child", persistent()), pair.adapter("sibling", persistent()));
    let below = poa.create_poa("child", None, persistent()).unwrap();
    let other = Pair::new();
    let elsewhere = other.adapter("elsewhere", persistent());
    let id = ObjectId::from("one");
    let own = poa.create_reference_with_id(&id, TYPE).unwrap();
    let mut foreign: Vec<_> =
        [&sibling, &below, &elsewhere].map(|adapter| adapter.create_reference_with_id(&id, TYPE).unwrap()).into();
    foreign.push(pair.root.create_reference(TYPE).unwrap());
    foreign.push(with_key(&own, &pair.server, Vec::new()));
    foreign.push(with_key(&own, &pair.server, b"NameService".to_vec()));
    assert_eq!(poa.reference_to_id(&own).unwrap(), id);
    for reference in foreign {
        assert!(
            matches!(expect_refusal(poa.reference_to_id(&reference)), PoaError::WrongAdapter { .. }),
            "{reference:?}"
        );
        assert!(
            matches!(expect_refusal(poa.reference_to_servant(&reference)), PoaError::WrongAdapter { .. }),
            "{reference:?}"
        );
    }
}

/// A server at a given port (0: any) with a child of a persistent adapter.
fn server(port: u16, policies: impl IntoIterator<Item = Policy>) -> (Orb, u16, Poa) {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let manager = root.the_poa_manager();
    let parent = root.create_poa("parent", Some(&manager), persistent()).unwrap();
    let child = parent.create_poa("child", Some(&manager), policies).unwrap();
    let port = orb.listen().unwrap()[0].1;
    (orb, port, child)
}

/// 15.3.8.2 PERSISTENT: objects outlive the process in which they were created: the adapter is found by its
/// name and its ancestors' names.
#[test]
fn persistent_references_survive_a_restart() {
    let (client, id) = (Orb::builder().build().unwrap(), ObjectId::from("one"));
    let (orb, port, poa) = server(0, persistent());
    poa.activate_object_with_id(&id, named_servant("first")).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    let object: Subject = client.reference(reference.ior().clone()).unchecked_narrow();
    assert_eq!(object.name().unwrap(), "first");
    orb.shutdown().unwrap();
    let (orb, _, poa) = server(port, persistent());
    poa.activate_object_with_id(&id, named_servant("second")).unwrap();
    assert_eq!(object.name().unwrap(), "second");
    assert_eq!(poa.reference_to_id(object.as_object()).unwrap(), id);
    client.shutdown().unwrap();
    orb.shutdown().unwrap();
}

/// 15.3.8.2 PERSISTENT, activate_object_with_id: system ids of a previous instantiation of the adapter can be
/// activated.
#[test]
fn system_ids_of_a_persistent_adapter_may_be_activated_after_a_restart() {
    let client = Orb::builder().build().unwrap();
    let (orb, port, poa) = server(0, [LifespanPolicy::Persistent.into()]);
    let id = poa.activate_object(named_servant("first")).unwrap();
    let object: Subject = client.reference(poa.id_to_reference(&id).unwrap().ior().clone()).unchecked_narrow();
    assert_eq!(object.name().unwrap(), "first");
    orb.shutdown().unwrap();
    let (orb, _, poa) = server(port, [LifespanPolicy::Persistent.into()]);
    let fresh = poa.activate_object(named_servant("fresh")).unwrap();
    assert_ne!(fresh, id, "an id of an earlier run was generated again");
    poa.activate_object_with_id(&id, named_servant("second")).unwrap();
    assert_eq!(object.name().unwrap(), "second");
    client.shutdown().unwrap();
    orb.shutdown().unwrap();
}

/// 15.3.8.2 TRANSIENT: objects do not outlive their adapter: OBJECT_NOT_EXIST.
#[test]
fn transient_references_raise_object_not_exist_after_a_restart() {
    let (client, id) = (Orb::builder().build().unwrap(), ObjectId::from("one"));
    let user_ids = || [IdAssignmentPolicy::UserId.into()];
    let (orb, port, poa) = server(0, user_ids());
    poa.activate_object_with_id(&id, named_servant("first")).unwrap();
    let object: Subject = client.reference(poa.id_to_reference(&id).unwrap().ior().clone()).unchecked_narrow();
    assert_eq!(object.name().unwrap(), "first");
    orb.shutdown().unwrap();
    let (orb, _, poa) = server(port, user_ids());
    poa.activate_object_with_id(&id, named_servant("second")).unwrap();
    assert_eq!(object.name().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    assert!(matches!(expect_refusal(poa.reference_to_id(object.as_object())), PoaError::WrongAdapter { .. }));
    client.shutdown().unwrap();
    orb.shutdown().unwrap();
}

/// 15.2.6: a key that no adapter generated belongs to no object: OBJECT_NOT_EXIST without side effects.
#[test]
fn malformed_object_keys_raise_object_not_exist() {
    let pair = Pair::new();
    let id = ObjectId::from("one");
    for policies in [persistent(), [IdAssignmentPolicy::UserId.into(), LifespanPolicy::Transient.into()]] {
        let poa = pair.adapter("child", policies);
        poa.activate_object_with_id(&id, named_servant("one")).unwrap();
        let reference = poa.id_to_reference(&id).unwrap();
        let key = key_of(&reference);
        let mut keys: Vec<_> = (0..key.len()).map(|length| key[..length].to_vec()).collect();
        for index in 0..key.len() {
            for bit in [0x01, 0x80, 0xff] {
                let mut changed = key.clone();
                changed[index] ^= bit;
                keys.push(changed);
            }
        }
        keys.extend([[&key[..], b"\0"].concat(), [b"\0", &key[..]].concat(), vec![0xff; 30_000], vec![0; 64]]);
        for key in keys {
            let changed = with_key(&reference, &pair.client, key.clone());
            let outcome = changed.unchecked_narrow::<Subject>().name();
            assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::ObjectNotExist, "{}", key.escape_ascii());
        }
        assert_eq!(pair.as_client(&reference).name().unwrap(), "one");
        poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    }
}
