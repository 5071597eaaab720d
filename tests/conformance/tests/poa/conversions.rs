//! From servants to objects and back (15.3.9 servant_to_id, servant_to_reference, reference_to_servant, id_to_servant).

use std::sync::{Arc, Mutex, OnceLock};

use spandrel::poa::{
    IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, ObjectId, PoaError, RequestProcessingPolicy,
};
use spandrel::{Poa, Policy, Servant};
use spandrel_conformance_tests::{
    managers::{Scripted, activating, locating},
    support::{Pair, acting, default_servant_only, named, refused, same},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn implicit() -> Policy {
    ImplicitActivationPolicy::ImplicitActivation.into()
}

fn multiple() -> Policy {
    IdUniquenessPolicy::MultipleId.into()
}

/// A servant that asks this of itself whenever it is called.
fn introspective(ask: impl Fn(&Arc<dyn Servant>) -> String + Send + Sync + 'static) -> Arc<dyn Servant> {
    let itself = Arc::new(OnceLock::<std::sync::Weak<dyn Servant>>::new());
    let known = Arc::clone(&itself);
    let servant = acting(move || ask(&known.get().unwrap().upgrade().unwrap()));
    _ = itself.set(Arc::downgrade(&servant));
    servant
}

/// servant_to_id 1: with RETAIN and UNIQUE_ID, the id of an active servant.
#[test]
fn an_active_servant_has_its_id() {
    let pair = Pair::new();
    for (name, policies) in [("explicit", vec![]), ("implicit", vec![implicit()])] {
        let (poa, servant) = (pair.adapter(name, policies), named("one"));
        let id = poa.activate_object(servant.clone()).unwrap();
        assert_eq!(poa.servant_to_id(&servant).unwrap(), id);
        let reference = poa.servant_to_reference(&servant).unwrap();
        assert_eq!((poa.reference_to_id(&reference).unwrap(), reference.type_id()), (id, TYPE));
        assert_eq!(poa.active_objects(), 1);
    }
}

/// servant_to_id 2: with RETAIN and IMPLICIT_ACTIVATION, a servant that is not active is activated, once if ids are unique.
#[test]
fn a_servant_is_activated_implicitly() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", [implicit()]), named("one"));
    let id = poa.servant_to_id(&servant).unwrap();
    assert_eq!(poa.servant_to_id(&servant).unwrap(), id);
    let reference = poa.servant_to_reference(&servant).unwrap();
    assert_eq!(poa.reference_to_id(&reference).unwrap(), id);
    let other = poa.servant_to_reference(&named("two")).unwrap();
    assert_eq!(poa.active_objects(), 2);
    for (reference, name) in [(reference, "one"), (other, "two")] {
        for object in pair.ways(&reference) {
            assert_eq!(object.name().unwrap(), name);
        }
    }
}

/// servant_to_id 2: with MULTIPLE_ID, it is activated each time, with another id.
#[test]
fn with_multiple_ids_each_time_is_another_object() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", [implicit(), multiple()]), named("one"));
    let first = poa.servant_to_id(&servant).unwrap();
    let second = poa.servant_to_id(&servant).unwrap();
    let third = poa.reference_to_id(&poa.servant_to_reference(&servant).unwrap()).unwrap();
    assert!(first != second && second != third && first != third);
    assert_eq!(poa.active_objects(), 3);
}

/// servant_to_id 4, servant_to_reference 4: otherwise ServantNotActive.
#[test]
fn a_servant_that_is_not_active_has_no_id() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named("one"));
    assert_eq!(refused(poa.servant_to_id(&servant)), PoaError::ServantNotActive);
    assert_eq!(refused(poa.servant_to_reference(&servant)), PoaError::ServantNotActive);
    let id = poa.activate_object(servant.clone()).unwrap();
    poa.deactivate_object(&id).unwrap();
    assert_eq!(refused(poa.servant_to_id(&servant)), PoaError::ServantNotActive);
    assert_eq!(refused(poa.servant_to_reference(&servant)), PoaError::ServantNotActive);
}

/// servant_to_id, servant_to_reference: WrongPolicy outside of upcalls where the policies say nothing of servants.
#[test]
fn adapters_that_do_not_know_servants_say_so() {
    let pair = Pair::new();
    for poa in [pair.adapter("multiple", [multiple()]), pair.adapter("locator", locating())] {
        assert_eq!(refused(poa.servant_to_id(&named("one"))), PoaError::WrongPolicy);
        assert_eq!(refused(poa.servant_to_reference(&named("one"))), PoaError::WrongPolicy);
    }
    // servant_to_id is allowed by USE_DEFAULT_SERVANT, too; servant_to_reference is not.
    let poa = pair.adapter("default", default_servant_only());
    let servant = named("default");
    poa.set_servant(servant.clone()).unwrap();
    assert_eq!(refused(poa.servant_to_id(&servant)), PoaError::ServantNotActive);
    assert_eq!(refused(poa.servant_to_reference(&servant)), PoaError::WrongPolicy);
}

/// servant_to_id 3: inside of an upcall on the default servant, its id is that of the object of the request; of another servant none.
#[test]
fn the_default_servant_has_the_id_of_the_request() {
    let pair = Pair::new();
    let poa = pair.adapter("child", [&default_servant_only()[..], &[IdAssignmentPolicy::UserId.into()]].concat());
    let asked = poa.clone();
    let servant = introspective(move |itself| {
        let id = asked.servant_to_id(itself).unwrap();
        assert_eq!(refused(asked.servant_to_id(&named("another"))), PoaError::ServantNotActive);
        String::from_utf8_lossy(&id).into_owned()
    });
    poa.set_servant(servant).unwrap();
    for name in ["one", "two"] {
        for object in pair.ways(&poa.create_reference_with_id(&name.into(), TYPE).unwrap()) {
            assert_eq!(object.name().unwrap(), name);
        }
    }
}

/// servant_to_reference 3: inside of an upcall on the servant, the reference of that request, whatever the policies.
#[test]
fn a_servant_in_an_upcall_has_the_reference_of_the_request() {
    let pair = Pair::new();
    let user: Policy = IdAssignmentPolicy::UserId.into();
    let adapters = [
        pair.adapter("default", [&default_servant_only()[..], std::slice::from_ref(&user)].concat()),
        pair.adapter("locator", locating()),
        pair.adapter("multiple", [multiple(), user]),
    ];
    for poa in adapters {
        let asked = poa.clone();
        let servant = introspective(move |itself| {
            let reference = asked.servant_to_reference(itself).unwrap();
            String::from_utf8_lossy(&asked.reference_to_id(&reference).unwrap()).into_owned()
        });
        match &*poa.the_name() {
            "default" => poa.set_servant(servant).unwrap(),
            "locator" => {
                poa.set_servant_manager(Scripted::finding(move |_, _| Ok(servant.clone())).locator()).unwrap();
            }
            _ => ["one", "two"]
                .iter()
                .for_each(|id| poa.activate_object_with_id(&(*id).into(), servant.clone()).unwrap()),
        }
        for id in ["one", "two"] {
            for object in pair.ways(&poa.create_reference_with_id(&id.into(), TYPE).unwrap()) {
                assert_eq!(object.name().unwrap(), id, "{}", poa.the_name());
            }
        }
    }
}

/// servant_to_reference: inside of an upcall on another servant, the policies are needed as outside.
#[test]
fn an_upcall_on_another_servant_allows_nothing() {
    let pair = Pair::new();
    let poa = pair.adapter("child", [multiple()]);
    let (asked, seen) = (poa.clone(), Arc::new(Mutex::new(Vec::new())));
    let told = Arc::clone(&seen);
    let id = poa
        .activate_object(acting(move || {
            told.lock().unwrap().push(refused(asked.servant_to_reference(&named("another"))));
            String::new()
        }))
        .unwrap();
    pair.seen(&poa.id_to_reference(&id).unwrap()).name().unwrap();
    assert_eq!(*seen.lock().unwrap(), [PoaError::WrongPolicy]);
}

/// What both operations say of one object: they are to agree.
fn servant_of(poa: &Poa, id: &ObjectId) -> Result<Arc<dyn Servant>, PoaError> {
    let by_id = poa.id_to_servant(id);
    let by_reference = poa.reference_to_servant(&poa.create_reference_with_id(id, TYPE).unwrap());
    match (&by_id, &by_reference) {
        (Ok(one), Ok(other)) => assert!(same(one, other)),
        (one, other) => assert_eq!(one.as_ref().err(), other.as_ref().err()),
    }
    by_id
}

/// id_to_servant, reference_to_servant: with RETAIN, the servant of an active object; otherwise ObjectNotActive.
#[test]
fn an_active_object_has_its_servant() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named("one"));
    let id = poa.activate_object(servant.clone()).unwrap();
    assert!(same(&servant_of(&poa, &id).unwrap(), &servant));
    poa.deactivate_object(&id).unwrap();
    assert_eq!(refused(servant_of(&poa, &id)), PoaError::ObjectNotActive);
}

/// id_to_servant, reference_to_servant: a servant manager is not asked.
#[test]
fn asking_for_a_servant_incarnates_nothing() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), Scripted::naming());
    poa.set_servant_manager(manager.activator()).unwrap();
    assert_eq!(refused(servant_of(&poa, &"one".into())), PoaError::ObjectNotActive);
    assert_eq!(manager.asked(), []);
}

/// id_to_servant, reference_to_servant: the default servant, if there is one and the object is not active.
#[test]
fn the_default_servant_stands_behind_all_other_objects() {
    let pair = Pair::new();
    let user: Policy = IdAssignmentPolicy::UserId.into();
    let (default, own) = (named("default"), named("own"));
    let poa = pair.adapter("retains", [RequestProcessingPolicy::UseDefaultServant.into(), multiple(), user.clone()]);
    poa.activate_object_with_id(&"own".into(), own.clone()).unwrap();
    assert_eq!(refused(servant_of(&poa, &"other".into())), PoaError::ObjectNotActive);
    poa.set_servant(default.clone()).unwrap();
    assert!(same(&servant_of(&poa, &"own".into()).unwrap(), &own));
    assert!(same(&servant_of(&poa, &"other".into()).unwrap(), &default));
    let poa = pair.adapter("forgets", [&default_servant_only()[..], &[user]].concat());
    assert_eq!(refused(servant_of(&poa, &"other".into())), PoaError::ObjectNotActive);
    poa.set_servant(default.clone()).unwrap();
    assert!(same(&servant_of(&poa, &"other".into()).unwrap(), &default));
}

/// id_to_servant, reference_to_servant: WrongPolicy with neither RETAIN nor USE_DEFAULT_SERVANT.
#[test]
fn a_locators_adapter_has_no_servants() {
    let pair = Pair::new();
    let poa = pair.adapter("child", locating());
    assert_eq!(refused(servant_of(&poa, &"one".into())), PoaError::WrongPolicy);
}
