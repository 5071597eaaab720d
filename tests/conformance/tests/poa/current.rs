//! What a servant learns of the request that it runs (15.3.10).

use std::{
    sync::{Arc, Mutex},
    thread,
};

use spandrel::poa::{Current, IdAssignmentPolicy, NoContext, ObjectId};
use spandrel::{Poa, Servant};
use spandrel_conformance_tests::{
    managers::{Scripted, locating},
    support::{Pair, acting, named, same},
};

/// The adapter's name and the object's id, or that there are none.
fn here() -> String {
    match (Current::new().poa(), Current::new().object_id()) {
        (Ok(poa), Ok(id)) => format!("{} of {}", String::from_utf8_lossy(&id), poa.the_name()),
        (Err(NoContext), Err(NoContext)) => "nowhere".to_owned(),
        _ => "half of it".to_owned(),
    }
}

fn user_ids(pair: &Pair, name: &str) -> Poa {
    pair.adapter(name, [IdAssignmentPolicy::UserId.into()])
}

/// 15.3.10 get_POA, get_object_id, get_reference, get_servant: NoContext outside of an operation that an adapter dispatched.
#[test]
fn outside_of_an_upcall_there_is_no_context() {
    let current = Current::new();
    assert!(matches!(current.poa(), Err(NoContext)));
    assert_eq!(current.object_id(), Err(NoContext));
    assert!(matches!(current.reference(), Err(NoContext)));
    assert!(matches!(current.servant(), Err(NoContext)));
}

/// 15.3.10: inside, they are those of the request, whether it came by a socket or from the same process.
#[test]
fn inside_of_an_upcall_the_context_is_that_of_the_request() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let servant = acting(move || {
        let current = Current::new();
        told.lock().unwrap().push((current.poa(), current.object_id(), current.reference(), current.servant()));
        String::new()
    });
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, servant.clone()).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    for object in pair.ways(&reference) {
        object.name().unwrap();
        let (adapter, object_id, own, behind) = seen.lock().unwrap().pop().unwrap();
        assert_eq!(adapter.unwrap().id(), poa.id());
        assert_eq!(object_id.unwrap(), id);
        let own = own.unwrap();
        assert!(own.is_equivalent(&reference));
        assert_eq!((own.type_id(), poa.reference_to_id(&own).unwrap()), (reference.type_id(), id.clone()));
        assert!(same(&behind.unwrap(), &servant));
    }
}

/// 15.3.10: a call from the same process leaves no context behind in the thread that made it.
#[test]
fn after_an_upcall_in_the_same_thread_there_is_no_context() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    poa.activate_object_with_id(&"one".into(), acting(here)).unwrap();
    let [_, object] = pair.ways(&poa.id_to_reference(&"one".into()).unwrap());
    assert_eq!(object.name().unwrap(), "one of child");
    assert_eq!(here(), "nowhere");
}

/// 15.3.10: the context belongs to the thread of the request.
#[test]
fn threads_that_a_servant_starts_have_no_context() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    let elsewhere = acting(|| thread::spawn(here).join().unwrap());
    poa.activate_object_with_id(&"one".into(), elsewhere).unwrap();
    for object in pair.ways(&poa.id_to_reference(&"one".into()).unwrap()) {
        assert_eq!(object.name().unwrap(), "nowhere");
    }
}

/// 15.3.10: a nested request has its own context, and the outer one has its own again afterwards.
#[test]
fn contexts_are_nested() {
    let pair = Pair::new();
    let (outer, inner) = (user_ids(&pair, "outer"), user_ids(&pair, "inner"));
    inner.activate_object_with_id(&"b".into(), acting(here)).unwrap();
    for called in pair.ways(&inner.id_to_reference(&"b".into()).unwrap()) {
        let servant: Arc<dyn Servant> = acting(move || format!("{}, {}, {}", here(), called.name().unwrap(), here()));
        outer.activate_object_with_id(&"a".into(), servant).unwrap();
        for object in pair.ways(&outer.id_to_reference(&"a".into()).unwrap()) {
            assert_eq!(object.name().unwrap(), "a of outer, b of inner, a of outer");
        }
        outer.deactivate_object(&"a".into()).unwrap();
    }
}

/// 15.3.10: a servant that raises an exception, or panics, leaves no context behind.
#[test]
fn a_servant_that_panics_leaves_no_context_behind() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    poa.activate_object_with_id(&"one".into(), acting(|| panic!("this is the test's"))).unwrap();
    let [_, object] = pair.ways(&poa.id_to_reference(&"one".into()).unwrap());
    assert!(object.name().is_err());
    assert_eq!(here(), "nowhere");
}

/// 15.3.10: the servant of a request is the one that a locator found for it.
#[test]
fn a_located_servant_has_a_context() {
    let pair = Pair::new();
    let poa = pair.adapter("child", locating());
    let manager = Scripted::finding(|_, _| Ok(acting(here)));
    poa.set_servant_manager(manager.locator()).unwrap();
    let reference = poa.create_reference_with_id(&"one".into(), "").unwrap();
    for object in pair.ways(&reference) {
        assert_eq!(object.name().unwrap(), "one of child");
    }
}

/// 15.3.10: what the context names may be used: the object may call itself by it.
#[test]
fn a_servant_may_call_itself_by_its_context() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    let depth = Mutex::new(0);
    let recursive = acting(move || {
        let level = {
            let mut depth = depth.lock().unwrap();
            *depth += 1;
            *depth
        };
        if level % 4 == 0 {
            return here();
        }
        let itself: spandrel_conformance_tests::idl::conformance::Subject =
            Current::new().reference().unwrap().unchecked_narrow();
        itself.name().unwrap()
    });
    poa.activate_object_with_id(&"one".into(), recursive).unwrap();
    poa.activate_object_with_id(&"other".into(), named("other")).unwrap();
    for object in pair.ways(&poa.id_to_reference(&"one".into()).unwrap()) {
        assert_eq!(object.name().unwrap(), "one of child");
    }
}
