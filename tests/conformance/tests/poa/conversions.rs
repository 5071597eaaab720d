//! Conversions between servants, ids and references (15.3.9 servant_to_id, servant_to_reference,
//! reference_to_servant, id_to_servant).

use std::sync::{Arc, Mutex, OnceLock};

use spandrel::poa::{
    IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, ObjectId, PoaError, RequestProcessingPolicy,
};
use spandrel::{Poa, policy::Policy, server::Servant};
use spandrel_conformance_tests::{
    managers::{ScriptedManager, activating, locating},
    support::{Pair, closure_servant, default_servant_only, expect_refusal, named_servant, same_servant},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

fn implicit() -> Policy {
    ImplicitActivationPolicy::ImplicitActivation.into()
}

fn multiple() -> Policy {
    IdUniquenessPolicy::MultipleId.into()
}

/// A servant that applies `inspect` to itself in each upcall.
fn introspective(inspect: impl Fn(&Arc<dyn Servant>) -> String + Send + Sync + 'static) -> Arc<dyn Servant> {
    let itself = Arc::new(OnceLock::<std::sync::Weak<dyn Servant>>::new());
    let known = Arc::clone(&itself);
    let servant = closure_servant(move || inspect(&known.get().unwrap().upgrade().unwrap()));
    _ = itself.set(Arc::downgrade(&servant));
    servant
}

/// servant_to_id 1: with RETAIN and UNIQUE_ID, returns the id of an active servant.
#[test]
fn servant_to_id_returns_the_id_of_an_active_servant() {
    let pair = Pair::new();
    for (name, policies) in [("explicit", vec![]), ("implicit", vec![implicit()])] {
        let (poa, servant) = (pair.adapter(name, policies), named_servant("one"));
        let id = poa.activate_object(servant.clone()).unwrap();
        assert_eq!(poa.servant_to_id(&servant).unwrap(), id);
        let reference = poa.servant_to_reference(&servant).unwrap();
        assert_eq!((poa.reference_to_id(&reference).unwrap(), reference.type_id()), (id, TYPE));
        assert_eq!(poa.active_objects(), 1);
    }
}

/// servant_to_id 2: with RETAIN and IMPLICIT_ACTIVATION, an inactive servant is activated, once under
/// UNIQUE_ID.
#[test]
fn servant_to_id_activates_a_servant_implicitly() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", [implicit()]), named_servant("one"));
    let id = poa.servant_to_id(&servant).unwrap();
    assert_eq!(poa.servant_to_id(&servant).unwrap(), id);
    let reference = poa.servant_to_reference(&servant).unwrap();
    assert_eq!(poa.reference_to_id(&reference).unwrap(), id);
    let other = poa.servant_to_reference(&named_servant("two")).unwrap();
    assert_eq!(poa.active_objects(), 2);
    for (reference, name) in [(reference, "one"), (other, "two")] {
        for object in pair.remote_and_local(&reference) {
            assert_eq!(object.name().unwrap(), name);
        }
    }
}

/// servant_to_id 2: with MULTIPLE_ID, each call activates the servant with another id.
#[test]
fn under_multiple_id_each_implicit_activation_has_another_id() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", [implicit(), multiple()]), named_servant("one"));
    let first = poa.servant_to_id(&servant).unwrap();
    let second = poa.servant_to_id(&servant).unwrap();
    let third = poa.reference_to_id(&poa.servant_to_reference(&servant).unwrap()).unwrap();
    assert!(first != second && second != third && first != third);
    assert_eq!(poa.active_objects(), 3);
}

/// servant_to_id 4, servant_to_reference 4: otherwise ServantNotActive.
#[test]
fn an_inactive_servant_raises_servant_not_active() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named_servant("one"));
    assert!(matches!(expect_refusal(poa.servant_to_id(&servant)), PoaError::ServantNotActive { .. }));
    assert!(matches!(expect_refusal(poa.servant_to_reference(&servant)), PoaError::ServantNotActive { .. }));
    let id = poa.activate_object(servant.clone()).unwrap();
    poa.deactivate_object(&id).unwrap();
    assert!(matches!(expect_refusal(poa.servant_to_id(&servant)), PoaError::ServantNotActive { .. }));
    assert!(matches!(expect_refusal(poa.servant_to_reference(&servant)), PoaError::ServantNotActive { .. }));
}

/// servant_to_id, servant_to_reference: WrongPolicy outside upcalls if no policy relates servants to ids.
#[test]
fn servant_conversions_require_matching_policies() {
    let pair = Pair::new();
    for poa in [pair.adapter("multiple", [multiple()]), pair.adapter("locator", locating())] {
        assert!(matches!(expect_refusal(poa.servant_to_id(&named_servant("one"))), PoaError::WrongPolicy { .. }));
        assert!(matches!(
            expect_refusal(poa.servant_to_reference(&named_servant("one"))),
            PoaError::WrongPolicy { .. }
        ));
    }
    // USE_DEFAULT_SERVANT permits servant_to_id, too, but not servant_to_reference.
    let poa = pair.adapter("default", default_servant_only());
    let servant = named_servant("default");
    poa.set_servant(servant.clone()).unwrap();
    assert!(matches!(expect_refusal(poa.servant_to_id(&servant)), PoaError::ServantNotActive { .. }));
    assert!(matches!(expect_refusal(poa.servant_to_reference(&servant)), PoaError::WrongPolicy { .. }));
}

/// servant_to_id 3: in an upcall on the default servant, returns the request's object id; for other servants
/// ServantNotActive.
#[test]
fn in_an_upcall_the_default_servant_has_the_requests_id() {
    let pair = Pair::new();
    let poa = pair.adapter("child", [&default_servant_only()[..], &[IdAssignmentPolicy::UserId.into()]].concat());
    let adapter = poa.clone();
    let servant = introspective(move |itself| {
        let id = adapter.servant_to_id(itself).unwrap();
        assert!(matches!(
            expect_refusal(adapter.servant_to_id(&named_servant("another"))),
            PoaError::ServantNotActive { .. }
        ));
        String::from_utf8_lossy(&id).into_owned()
    });
    poa.set_servant(servant).unwrap();
    for name in ["one", "two"] {
        for object in pair.remote_and_local(&poa.create_reference_with_id(&name.into(), TYPE).unwrap()) {
            assert_eq!(object.name().unwrap(), name);
        }
    }
}

/// servant_to_reference 3: in an upcall on the servant, returns the request's reference under any policies.
#[test]
fn in_an_upcall_a_servant_has_the_requests_reference() {
    let pair = Pair::new();
    let user: Policy = IdAssignmentPolicy::UserId.into();
    let adapters = [
        pair.adapter("default", [&default_servant_only()[..], std::slice::from_ref(&user)].concat()),
        pair.adapter("locator", locating()),
        pair.adapter("multiple", [multiple(), user]),
    ];
    for poa in adapters {
        let adapter = poa.clone();
        let servant = introspective(move |itself| {
            let reference = adapter.servant_to_reference(itself).unwrap();
            String::from_utf8_lossy(&adapter.reference_to_id(&reference).unwrap()).into_owned()
        });
        match &*poa.the_name() {
            "default" => poa.set_servant(servant).unwrap(),
            "locator" => {
                poa.set_servant_manager(ScriptedManager::with_finder(move |_, _| Ok(servant.clone())).locator())
                    .unwrap();
            }
            _ => ["one", "two"]
                .iter()
                .for_each(|id| poa.activate_object_with_id(&(*id).into(), servant.clone()).unwrap()),
        }
        for id in ["one", "two"] {
            for object in pair.remote_and_local(&poa.create_reference_with_id(&id.into(), TYPE).unwrap()) {
                assert_eq!(object.name().unwrap(), id, "{}", poa.the_name());
            }
        }
    }
}

/// servant_to_reference: in an upcall on another servant, the policies apply as outside upcalls.
#[test]
fn an_upcall_on_another_servant_does_not_relax_the_policies() {
    let pair = Pair::new();
    let poa = pair.adapter("child", [multiple()]);
    let (adapter, errors) = (poa.clone(), Arc::new(Mutex::new(Vec::new())));
    let recorded = Arc::clone(&errors);
    let id = poa
        .activate_object(closure_servant(move || {
            recorded.lock().unwrap().push(expect_refusal(adapter.servant_to_reference(&named_servant("another"))));
            String::new()
        }))
        .unwrap();
    pair.as_client(&poa.id_to_reference(&id).unwrap()).name().unwrap();
    assert!(matches!(errors.lock().unwrap()[..], [PoaError::WrongPolicy { .. }]));
}

/// The result of id_to_servant and of reference_to_servant, which must agree.
fn servant_of(poa: &Poa, id: &ObjectId) -> Result<Arc<dyn Servant>, PoaError> {
    let by_id = poa.id_to_servant(id);
    let by_reference = poa.reference_to_servant(&poa.create_reference_with_id(id, TYPE).unwrap());
    match (&by_id, &by_reference) {
        (Ok(one), Ok(other)) => assert!(same_servant(one, other)),
        (one, other) => assert_eq!(one.as_ref().err(), other.as_ref().err()),
    }
    by_id
}

/// id_to_servant, reference_to_servant: with RETAIN, the servant of an active object; otherwise
/// ObjectNotActive.
#[test]
fn id_to_servant_returns_the_servant_of_an_active_object() {
    let pair = Pair::new();
    let (poa, servant) = (pair.adapter("child", []), named_servant("one"));
    let id = poa.activate_object(servant.clone()).unwrap();
    assert!(same_servant(&servant_of(&poa, &id).unwrap(), &servant));
    poa.deactivate_object(&id).unwrap();
    assert!(matches!(expect_refusal(servant_of(&poa, &id)), PoaError::ObjectNotActive { .. }));
}

/// id_to_servant, reference_to_servant: the servant manager is not called.
#[test]
fn id_to_servant_does_not_incarnate() {
    let pair = Pair::new();
    let (poa, manager) = (pair.adapter("child", activating()), ScriptedManager::with_named_servants());
    poa.set_servant_manager(manager.activator()).unwrap();
    assert!(matches!(expect_refusal(servant_of(&poa, &"one".into())), PoaError::ObjectNotActive { .. }));
    assert_eq!(manager.upcalls(), []);
}

/// id_to_servant, reference_to_servant: the default servant for inactive objects, if one is set.
#[test]
fn id_to_servant_returns_the_default_servant_for_inactive_objects() {
    let pair = Pair::new();
    let user: Policy = IdAssignmentPolicy::UserId.into();
    let (default, own) = (named_servant("default"), named_servant("own"));
    let poa = pair.adapter("retains", [RequestProcessingPolicy::UseDefaultServant.into(), multiple(), user.clone()]);
    poa.activate_object_with_id(&"own".into(), own.clone()).unwrap();
    assert!(matches!(expect_refusal(servant_of(&poa, &"other".into())), PoaError::ObjectNotActive { .. }));
    poa.set_servant(default.clone()).unwrap();
    assert!(same_servant(&servant_of(&poa, &"own".into()).unwrap(), &own));
    assert!(same_servant(&servant_of(&poa, &"other".into()).unwrap(), &default));
    let poa = pair.adapter("without retention", [&default_servant_only()[..], &[user]].concat());
    assert!(matches!(expect_refusal(servant_of(&poa, &"other".into())), PoaError::ObjectNotActive { .. }));
    poa.set_servant(default.clone()).unwrap();
    assert!(same_servant(&servant_of(&poa, &"other".into()).unwrap(), &default));
}

/// id_to_servant, reference_to_servant: WrongPolicy with neither RETAIN nor USE_DEFAULT_SERVANT.
#[test]
fn with_a_servant_locator_id_to_servant_raises_wrong_policy() {
    let pair = Pair::new();
    let poa = pair.adapter("child", locating());
    assert!(matches!(expect_refusal(servant_of(&poa, &"one".into())), PoaError::WrongPolicy { .. }));
}
