//! Servant managers (15.3.9 get_servant_manager, set_servant_manager) and default servants (get_servant,
//! set_servant) of an adapter; requests without one (15.2.6).

use spandrel::poa::{IdAssignmentPolicy, IdUniquenessPolicy, PoaError, RequestProcessingPolicy, ServantManager};
use spandrel::{CompletionStatus, Poa, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    managers::{ScriptedManager, activating, locating},
    support::{
        Pair, closure_servant, default_servant_only, expect_exception, expect_refusal, kind_minor_completion,
        named_servant, same_servant,
    },
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

/// set_servant_manager, get_servant_manager: WrongPolicy without USE_SERVANT_MANAGER.
#[test]
fn servant_manager_operations_require_use_servant_manager() {
    let pair = Pair::new();
    for poa in [pair.adapter("map", []), pair.adapter("default", default_servant_only())] {
        assert!(matches!(
            expect_refusal(poa.set_servant_manager(ScriptedManager::with_named_servants().activator())),
            PoaError::WrongPolicy { .. }
        ));
        assert!(matches!(
            expect_refusal(poa.set_servant_manager(ScriptedManager::with_named_servants().locator())),
            PoaError::WrongPolicy { .. }
        ));
        assert!(matches!(expect_refusal(poa.servant_manager()), PoaError::WrongPolicy { .. }));
    }
}

/// get_servant_manager: nil if none was set, otherwise the one set.
#[test]
fn servant_manager_returns_the_manager_set() {
    let pair = Pair::new();
    let poa = pair.adapter("activator", activating());
    assert!(poa.servant_manager().unwrap().is_none());
    poa.set_servant_manager(ScriptedManager::with_named_servants().activator()).unwrap();
    assert!(matches!(poa.servant_manager().unwrap(), Some(ServantManager::Activator(_))));
    let poa = pair.adapter("locator", locating());
    poa.set_servant_manager(ScriptedManager::with_named_servants().locator()).unwrap();
    assert!(matches!(poa.servant_manager().unwrap(), Some(ServantManager::Locator(_))));
}

/// set_servant_manager: a second call raises BAD_INV_ORDER 6, and the first manager stays.
#[test]
fn a_servant_manager_is_set_once() {
    let pair = Pair::new();
    let (first, second) = (ScriptedManager::with_named_servants(), ScriptedManager::with_named_servants());
    let poa = pair.adapter("child", activating());
    poa.set_servant_manager(first.activator()).unwrap();
    let expected = (SystemExceptionKind::BadInvOrder, minor::SERVANT_MANAGER_ALREADY_SET, CompletionStatus::No);
    assert_eq!(expect_exception(poa.set_servant_manager(second.activator())), expected);
    let object = pair.as_client(&poa.create_reference_with_id(&"one".into(), TYPE).unwrap());
    assert_eq!(object.name().unwrap(), "one");
    assert_eq!((first.upcalls().len(), second.upcalls().len()), (1, 0));
}

/// set_servant_manager: a manager of the wrong kind raises OBJ_ADAPTER 4, and another may be set afterwards.
#[test]
fn the_retention_policy_determines_the_kind_of_servant_manager() {
    let pair = Pair::new();
    let manager = ScriptedManager::with_named_servants();
    let expected = (SystemExceptionKind::ObjAdapter, minor::NO_SERVANT_MANAGER, CompletionStatus::No);
    let poa = pair.adapter("activator", activating());
    assert_eq!(expect_exception(poa.set_servant_manager(manager.locator())), expected);
    poa.set_servant_manager(manager.activator()).unwrap();
    let poa = pair.adapter("locator", locating());
    assert_eq!(expect_exception(poa.set_servant_manager(manager.activator())), expected);
    poa.set_servant_manager(manager.locator()).unwrap();
}

/// The exceptions of a remote and a local request for an object of the adapter.
fn refusal(pair: &Pair, poa: &Poa) -> [(SystemExceptionKind, u32, CompletionStatus); 2] {
    let reference = poa.create_reference_with_id(&"one".into(), TYPE).unwrap();
    pair.remote_and_local(&reference).map(|object| kind_minor_completion(&object.name().unwrap_err()))
}

/// 15.2.6, 15.3.8.6: a request to an adapter without a servant manager raises OBJ_ADAPTER 4.
#[test]
fn requests_without_a_servant_manager_are_refused() {
    let pair = Pair::new();
    let expected = (SystemExceptionKind::ObjAdapter, minor::NO_SERVANT_MANAGER, CompletionStatus::No);
    for poa in [pair.adapter("activator", activating()), pair.adapter("locator", locating())] {
        assert_eq!(refusal(&pair, &poa), [expected; 2]);
    }
}

/// 15.2.6, 15.3.8.6: a request without a default servant raises OBJ_ADAPTER 3.
#[test]
fn requests_without_a_default_servant_are_refused() {
    let pair = Pair::new();
    let expected = (SystemExceptionKind::ObjAdapter, minor::NO_DEFAULT_SERVANT, CompletionStatus::No);
    let policies = [&default_servant_only()[..], &[IdAssignmentPolicy::UserId.into()]].concat();
    assert_eq!(refusal(&pair, &pair.adapter("child", policies)), [expected; 2]);
}

/// get_servant, set_servant: WrongPolicy without USE_DEFAULT_SERVANT.
#[test]
fn default_servant_operations_require_use_default_servant() {
    let pair = Pair::new();
    for poa in [pair.adapter("map", []), pair.adapter("activator", activating()), pair.adapter("locator", locating())] {
        assert!(matches!(expect_refusal(poa.servant()), PoaError::WrongPolicy { .. }));
        assert!(matches!(expect_refusal(poa.set_servant(named_servant("default"))), PoaError::WrongPolicy { .. }));
    }
}

/// get_servant: NoServant if none was set; set_servant: it may be replaced.
#[test]
fn a_default_servant_can_be_replaced() {
    let pair = Pair::new();
    let poa = pair.adapter("child", default_servant_only());
    assert!(matches!(expect_refusal(poa.servant()), PoaError::NoServant { .. }));
    let object = pair.as_client(&poa.create_reference(TYPE).unwrap());
    for name in ["first", "second"] {
        let servant = named_servant(name);
        poa.set_servant(servant.clone()).unwrap();
        assert!(same_servant(&poa.servant().unwrap(), &servant));
        assert_eq!(object.name().unwrap(), name);
    }
}

/// set_servant, 15.2.6: the default servant serves all requests with NON_RETAIN, and those for inactive
/// objects with RETAIN.
#[test]
fn the_default_servant_serves_objects_without_their_own_servant() {
    let pair = Pair::new();
    let retaining = || {
        [
            RequestProcessingPolicy::UseDefaultServant.into(),
            IdUniquenessPolicy::MultipleId.into(),
            IdAssignmentPolicy::UserId.into(),
        ]
    };
    let poa = pair.adapter("retains", retaining());
    poa.set_servant(named_servant("default")).unwrap();
    poa.activate_object_with_id(&"own".into(), named_servant("own")).unwrap();
    for (id, name) in [("own", "own"), ("other", "default"), ("", "default")] {
        for object in pair.remote_and_local(&poa.create_reference_with_id(&id.into(), TYPE).unwrap()) {
            assert_eq!(object.name().unwrap(), name);
        }
    }
    poa.deactivate_object(&"own".into()).unwrap();
    for object in pair.remote_and_local(&poa.create_reference_with_id(&"own".into(), TYPE).unwrap()) {
        assert_eq!(object.name().unwrap(), "default");
    }
    assert_eq!(poa.active_objects(), 0, "objects of the default servant are not active");
}

/// 15.2.6: Current identifies the object that the default servant stands for.
#[test]
fn the_default_servant_gets_its_object_id_from_current() {
    let pair = Pair::new();
    let policies = [&default_servant_only()[..], &[IdAssignmentPolicy::UserId.into()]].concat();
    let poa = pair.adapter("child", policies);
    let own_id = || String::from_utf8_lossy(&spandrel::poa::Current::new().object_id().unwrap()).into_owned();
    poa.set_servant(closure_servant(own_id)).unwrap();
    for id in ["one", "two", ""] {
        for object in pair.remote_and_local(&poa.create_reference_with_id(&id.into(), TYPE).unwrap()) {
            assert_eq!(object.name().unwrap(), id);
        }
    }
}
