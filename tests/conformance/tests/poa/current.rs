//! The POA current: the context of the running request (15.3.10).

use std::{
    sync::{Arc, Mutex},
    thread,
};

use spandrel::poa::{Current, IdAssignmentPolicy, NoContext, ObjectId};
use spandrel::{Poa, server::Servant};
use spandrel_conformance_tests::{
    managers::{ScriptedManager, locating},
    support::{Pair, closure_servant, named_servant, same_servant},
};

/// The object id and adapter name of the current context, or `no context`.
fn current_context() -> String {
    match (Current::new().poa(), Current::new().object_id()) {
        (Ok(poa), Ok(id)) => format!("{} of {}", String::from_utf8_lossy(&id), poa.the_name()),
        (Err(NoContext), Err(NoContext)) => "no context".to_owned(),
        _ => "incomplete context".to_owned(),
    }
}

fn user_ids(pair: &Pair, name: &str) -> Poa {
    pair.adapter(name, [IdAssignmentPolicy::UserId.into()])
}

/// 15.3.10 get_POA, get_object_id, get_reference, get_servant: NoContext outside a dispatched operation.
#[test]
fn outside_an_upcall_there_is_no_context() {
    let current = Current::new();
    assert!(matches!(current.poa(), Err(NoContext)));
    assert_eq!(current.object_id(), Err(NoContext));
    assert!(matches!(current.reference(), Err(NoContext)));
    assert!(matches!(current.servant(), Err(NoContext)));
}

/// 15.3.10: within an upcall, remote or collocated, the context is that of the request.
#[test]
fn within_an_upcall_the_context_is_that_of_the_request() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    let contexts = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&contexts);
    let servant = closure_servant(move || {
        let current = Current::new();
        recorded.lock().unwrap().push((current.poa(), current.object_id(), current.reference(), current.servant()));
        String::new()
    });
    let id = ObjectId::from("one");
    poa.activate_object_with_id(&id, servant.clone()).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    for object in pair.remote_and_local(&reference) {
        object.name().unwrap();
        let (adapter, object_id, own, running) = contexts.lock().unwrap().pop().unwrap();
        assert_eq!(adapter.unwrap().id(), poa.id());
        assert_eq!(object_id.unwrap(), id);
        let own = own.unwrap();
        assert!(own.is_equivalent(&reference));
        assert_eq!((own.type_id(), poa.reference_to_id(&own).unwrap()), (reference.type_id(), id.clone()));
        assert!(same_servant(&running.unwrap(), &servant));
    }
}

/// 15.3.10: a collocated call leaves no context in the calling thread.
#[test]
fn a_collocated_upcall_leaves_no_context() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    poa.activate_object_with_id(&"one".into(), closure_servant(current_context)).unwrap();
    let [_, object] = pair.remote_and_local(&poa.id_to_reference(&"one".into()).unwrap());
    assert_eq!(object.name().unwrap(), "one of child");
    assert_eq!(current_context(), "no context");
}

/// 15.3.10: the context belongs to the request's thread.
#[test]
fn threads_started_by_a_servant_have_no_context() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    let in_thread = closure_servant(|| thread::spawn(current_context).join().unwrap());
    poa.activate_object_with_id(&"one".into(), in_thread).unwrap();
    for object in pair.remote_and_local(&poa.id_to_reference(&"one".into()).unwrap()) {
        assert_eq!(object.name().unwrap(), "no context");
    }
}

/// 15.3.10: a nested request has its own context; afterwards the outer context is restored.
#[test]
fn contexts_are_nested() {
    let pair = Pair::new();
    let (outer, inner) = (user_ids(&pair, "outer"), user_ids(&pair, "inner"));
    inner.activate_object_with_id(&"b".into(), closure_servant(current_context)).unwrap();
    for called in pair.remote_and_local(&inner.id_to_reference(&"b".into()).unwrap()) {
        let servant: Arc<dyn Servant> = closure_servant(move || {
            format!("{}, {}, {}", current_context(), called.name().unwrap(), current_context())
        });
        outer.activate_object_with_id(&"a".into(), servant).unwrap();
        for object in pair.remote_and_local(&outer.id_to_reference(&"a".into()).unwrap()) {
            assert_eq!(object.name().unwrap(), "a of outer, b of inner, a of outer");
        }
        outer.deactivate_object(&"a".into()).unwrap();
    }
}

/// 15.3.10: a servant that panics leaves no context.
#[test]
fn a_panicking_servant_leaves_no_context() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    poa.activate_object_with_id(&"one".into(), closure_servant(|| panic!("intended"))).unwrap();
    let [_, object] = pair.remote_and_local(&poa.id_to_reference(&"one".into()).unwrap());
    assert!(object.name().is_err());
    assert_eq!(current_context(), "no context");
}

/// 15.3.10: a servant found by a servant locator has a context.
#[test]
fn a_located_servant_has_a_context() {
    let pair = Pair::new();
    let poa = pair.adapter("child", locating());
    let manager = ScriptedManager::with_finder(|_, _| Ok(closure_servant(current_context)));
    poa.set_servant_manager(manager.locator()).unwrap();
    let reference = poa.create_reference_with_id(&"one".into(), "").unwrap();
    for object in pair.remote_and_local(&reference) {
        assert_eq!(object.name().unwrap(), "one of child");
    }
}

/// 15.3.10: a servant may call its own object through the context's reference.
#[test]
fn a_servant_may_call_its_own_object_through_current() {
    let pair = Pair::new();
    let poa = user_ids(&pair, "child");
    let depth = Mutex::new(0);
    let recursive = closure_servant(move || {
        let level = {
            let mut depth = depth.lock().unwrap();
            *depth += 1;
            *depth
        };
        if level % 4 == 0 {
            return current_context();
        }
        let itself: spandrel_conformance_tests::idl::conformance::Subject =
            Current::new().reference().unwrap().unchecked_narrow();
        itself.name().unwrap()
    });
    poa.activate_object_with_id(&"one".into(), recursive).unwrap();
    poa.activate_object_with_id(&"other".into(), named_servant("other")).unwrap();
    for object in pair.remote_and_local(&poa.id_to_reference(&"one".into()).unwrap()) {
        assert_eq!(object.name().unwrap(), "one of child");
    }
}
