//! Which servant manager an adapter has (15.3.9 get_servant_manager, set_servant_manager), and which default servant (get_servant,
//! set_servant); requests where there is none (15.2.6).

use spandrel::poa::{IdAssignmentPolicy, IdUniquenessPolicy, PoaError, RequestProcessingPolicy, ServantManager};
use spandrel::{CompletionStatus, Poa, SystemExceptionKind, minor};
use spandrel_conformance_tests::{
    managers::{Scripted, activating, locating},
    support::{Pair, acting, default_servant_only, judged, named, raised, refused, same},
};

const TYPE: &str = "IDL:Conformance/Subject:1.0";

/// set_servant_manager, get_servant_manager: WrongPolicy without USE_SERVANT_MANAGER.
#[test]
fn only_adapters_that_use_a_servant_manager_have_one() {
    let pair = Pair::new();
    for poa in [pair.adapter("map", []), pair.adapter("default", default_servant_only())] {
        assert_eq!(refused(poa.set_servant_manager(Scripted::naming().activator())), PoaError::WrongPolicy);
        assert_eq!(refused(poa.set_servant_manager(Scripted::naming().locator())), PoaError::WrongPolicy);
        assert_eq!(refused(poa.servant_manager()), PoaError::WrongPolicy);
    }
}

/// get_servant_manager: nil if none was set, then the one that was.
#[test]
fn the_servant_manager_is_the_one_that_was_set() {
    let pair = Pair::new();
    let poa = pair.adapter("activator", activating());
    assert!(poa.servant_manager().unwrap().is_none());
    poa.set_servant_manager(Scripted::naming().activator()).unwrap();
    assert!(matches!(poa.servant_manager().unwrap(), Some(ServantManager::Activator(_))));
    let poa = pair.adapter("locator", locating());
    poa.set_servant_manager(Scripted::naming().locator()).unwrap();
    assert!(matches!(poa.servant_manager().unwrap(), Some(ServantManager::Locator(_))));
}

/// set_servant_manager: a second time raises BAD_INV_ORDER 6, and the first stays.
#[test]
fn a_servant_manager_is_set_once() {
    let pair = Pair::new();
    let (first, second) = (Scripted::naming(), Scripted::naming());
    let poa = pair.adapter("child", activating());
    poa.set_servant_manager(first.activator()).unwrap();
    let expected = (SystemExceptionKind::BadInvOrder, minor::SERVANT_MANAGER_ALREADY_SET, CompletionStatus::No);
    assert_eq!(raised(poa.set_servant_manager(second.activator())), expected);
    let object = pair.seen(&poa.create_reference_with_id(&"one".into(), TYPE).unwrap());
    assert_eq!(object.name().unwrap(), "one");
    assert_eq!((first.asked().len(), second.asked().len()), (1, 0));
}

/// set_servant_manager: one of the wrong kind raises OBJ_ADAPTER 4, and another may be set afterwards.
#[test]
fn a_servant_manager_is_of_the_kind_that_retention_asks_for() {
    let pair = Pair::new();
    let manager = Scripted::naming();
    let expected = (SystemExceptionKind::ObjAdapter, minor::NO_SERVANT_MANAGER, CompletionStatus::No);
    let poa = pair.adapter("activator", activating());
    assert_eq!(raised(poa.set_servant_manager(manager.locator())), expected);
    poa.set_servant_manager(manager.activator()).unwrap();
    let poa = pair.adapter("locator", locating());
    assert_eq!(raised(poa.set_servant_manager(manager.activator())), expected);
    poa.set_servant_manager(manager.locator()).unwrap();
}

/// What a request for an object gets.
fn refusal(pair: &Pair, poa: &Poa) -> [(SystemExceptionKind, u32, CompletionStatus); 2] {
    let reference = poa.create_reference_with_id(&"one".into(), TYPE).unwrap();
    pair.ways(&reference).map(|object| judged(&object.name().unwrap_err()))
}

/// 15.2.6, 15.3.8.6: OBJ_ADAPTER 4 for a request while there is no servant manager.
#[test]
fn requests_without_a_servant_manager_are_refused() {
    let pair = Pair::new();
    let expected = (SystemExceptionKind::ObjAdapter, minor::NO_SERVANT_MANAGER, CompletionStatus::No);
    for poa in [pair.adapter("activator", activating()), pair.adapter("locator", locating())] {
        assert_eq!(refusal(&pair, &poa), [expected; 2]);
    }
}

/// 15.2.6, 15.3.8.6: OBJ_ADAPTER 3 for a request while there is no default servant.
#[test]
fn requests_without_a_default_servant_are_refused() {
    let pair = Pair::new();
    let expected = (SystemExceptionKind::ObjAdapter, minor::NO_DEFAULT_SERVANT, CompletionStatus::No);
    let policies = [&default_servant_only()[..], &[IdAssignmentPolicy::UserId.into()]].concat();
    assert_eq!(refusal(&pair, &pair.adapter("child", policies)), [expected; 2]);
}

/// get_servant, set_servant: WrongPolicy without USE_DEFAULT_SERVANT.
#[test]
fn only_adapters_that_use_a_default_servant_have_one() {
    let pair = Pair::new();
    for poa in [pair.adapter("map", []), pair.adapter("activator", activating()), pair.adapter("locator", locating())] {
        assert_eq!(refused(poa.servant()), PoaError::WrongPolicy);
        assert_eq!(refused(poa.set_servant(named("default"))), PoaError::WrongPolicy);
    }
}

/// get_servant: NoServant if none was set; set_servant: it may be replaced.
#[test]
fn the_default_servant_is_the_one_that_was_set_last() {
    let pair = Pair::new();
    let poa = pair.adapter("child", default_servant_only());
    assert_eq!(refused(poa.servant()), PoaError::NoServant);
    let object = pair.seen(&poa.create_reference(TYPE).unwrap());
    for name in ["first", "second"] {
        let servant = named(name);
        poa.set_servant(servant.clone()).unwrap();
        assert!(same(&poa.servant().unwrap(), &servant));
        assert_eq!(object.name().unwrap(), name);
    }
}

/// set_servant, 15.2.6: with NON_RETAIN the default servant serves all requests, with RETAIN those for objects that are not active.
#[test]
fn the_default_servant_serves_what_has_no_other() {
    let pair = Pair::new();
    let retaining = || {
        [
            RequestProcessingPolicy::UseDefaultServant.into(),
            IdUniquenessPolicy::MultipleId.into(),
            IdAssignmentPolicy::UserId.into(),
        ]
    };
    let poa = pair.adapter("retains", retaining());
    poa.set_servant(named("default")).unwrap();
    poa.activate_object_with_id(&"own".into(), named("own")).unwrap();
    for (id, name) in [("own", "own"), ("other", "default"), ("", "default")] {
        for object in pair.ways(&poa.create_reference_with_id(&id.into(), TYPE).unwrap()) {
            assert_eq!(object.name().unwrap(), name);
        }
    }
    poa.deactivate_object(&"own".into()).unwrap();
    for object in pair.ways(&poa.create_reference_with_id(&"own".into(), TYPE).unwrap()) {
        assert_eq!(object.name().unwrap(), "default");
    }
    assert_eq!(poa.active_objects(), 0, "what the default servant serves is not active");
}

/// 15.2.6: the default servant is asked to be many objects, and Current says which.
#[test]
fn the_default_servant_learns_which_object_it_is() {
    let pair = Pair::new();
    let policies = [&default_servant_only()[..], &[IdAssignmentPolicy::UserId.into()]].concat();
    let poa = pair.adapter("child", policies);
    let whoever = || String::from_utf8_lossy(&spandrel::poa::Current::new().object_id().unwrap()).into_owned();
    poa.set_servant(acting(whoever)).unwrap();
    for id in ["one", "two", ""] {
        for object in pair.ways(&poa.create_reference_with_id(&id.into(), TYPE).unwrap()) {
            assert_eq!(object.name().unwrap(), id);
        }
    }
}
