//! Creating and finding adapters (15.3.9: create_POA, find_POA and the attributes), without adapter
//! activators.

use spandrel::Poa;
use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, IfMissing, ObjectId, PoaError, State, WaitForCompletion};
use spandrel_conformance_tests::support::{Pair, expect_refusal, named_servant};

fn names(adapters: &[Poa]) -> Vec<String> {
    let mut names: Vec<_> = adapters.iter().map(Poa::the_name).collect();
    names.sort();
    names
}

/// 15.3.9 create_POA: the new adapter is a child of the target with the given name.
#[test]
fn a_new_adapter_is_a_child_of_its_creator() {
    let pair = Pair::new();
    let child = pair.root.create_poa("child", None, []).unwrap();
    let grandchild = child.create_poa("grandchild", None, []).unwrap();
    assert_eq!((child.the_name(), grandchild.the_name()), ("child".to_owned(), "grandchild".to_owned()));
    assert_eq!(grandchild.the_parent().unwrap().id(), child.id());
    assert_eq!(child.the_parent().unwrap().id(), pair.root.id());
}

/// 15.3.9 the_parent: the root adapter has no parent; 15.3.9 the_name: its name is `RootPOA`.
#[test]
fn the_root_adapter_has_no_parent() {
    let pair = Pair::new();
    assert!(pair.root.the_parent().is_none());
    assert_eq!(pair.root.the_name(), "RootPOA");
}

/// 15.3.9 the_children: the set of all current child adapters.
#[test]
fn the_children_are_the_current_child_adapters() {
    let pair = Pair::new();
    assert!(pair.root.the_children().is_empty());
    let first = pair.root.create_poa("first", None, []).unwrap();
    let second = pair.root.create_poa("second", None, []).unwrap();
    second.create_poa("not mine", None, []).unwrap();
    assert_eq!(names(&pair.root.the_children()), ["first", "second"]);
    first.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_eq!(names(&pair.root.the_children()), ["second"]);
}

/// 15.3.9 create_POA: AdapterAlreadyExists if the target has a child with that name.
#[test]
fn a_name_is_unique_among_siblings() {
    let pair = Pair::new();
    pair.root.create_poa("child", None, []).unwrap();
    assert!(matches!(expect_refusal(pair.root.create_poa("child", None, [])), PoaError::AdapterAlreadyExists { .. }));
    assert_eq!(names(&pair.root.the_children()), ["child"]);
}

/// 15.3.9 create_POA: names are unique among the children of one parent only.
#[test]
fn a_name_may_be_used_again_below_another_parent() {
    let pair = Pair::new();
    let child = pair.root.create_poa("same", None, []).unwrap();
    let below = child.create_poa("same", None, []).unwrap();
    assert_ne!(child.id(), below.id());
    assert_eq!(pair.root.find_poa("same", IfMissing::Fail).unwrap().id(), child.id());
    assert_eq!(child.find_poa("same", IfMissing::Fail).unwrap().id(), below.id());
}

/// 15.3.9 create_POA: a name may be any string; no character separates names.
#[test]
fn adapter_names_may_contain_any_characters() {
    let pair = Pair::new();
    let all = ["", "a", "a/b", "a.b", "\u{fffd}\u{1f300}", " ", "RootPOA"];
    let a = pair.adapter("a", [IdAssignmentPolicy::UserId.into()]);
    a.create_poa("b", Some(&pair.root.the_poa_manager()), [IdAssignmentPolicy::UserId.into()]).unwrap();
    for name in all {
        if name != "a" {
            _ = pair.adapter(name, [IdAssignmentPolicy::UserId.into()]);
        }
    }
    for name in all {
        let poa = pair.root.find_poa(name, IfMissing::Fail).unwrap();
        assert_eq!(poa.the_name(), name);
        let id = ObjectId::from("object");
        poa.activate_object_with_id(&id, named_servant(name)).unwrap();
        for object in pair.remote_and_local(&poa.id_to_reference(&id).unwrap()) {
            assert_eq!(object.name().unwrap(), name);
        }
    }
}

/// 15.3.9 create_POA: without a manager argument, a new manager is created for the adapter.
#[test]
fn an_adapter_created_without_a_manager_gets_a_new_one() {
    let pair = Pair::new();
    let first = pair.root.create_poa("first", None, []).unwrap().the_poa_manager();
    let second = pair.root.create_poa("second", None, []).unwrap().the_poa_manager();
    let root = pair.root.the_poa_manager();
    assert!(first.id() != second.id() && first.id() != root.id() && second.id() != root.id());
    first.activate().unwrap();
    assert_eq!((first.state(), second.state()), (State::Active, State::Holding));
}

/// 15.3.9 create_POA: a given manager is associated with the adapter.
#[test]
fn an_adapter_created_with_a_manager_has_that_one() {
    let pair = Pair::new();
    let given = pair.root.the_poa_manager_factory().create("given", []).unwrap();
    let poa = pair.root.create_poa("child", Some(&given), []).unwrap();
    assert_eq!(poa.the_poa_manager().id(), "given");
    given.activate().unwrap();
    assert_eq!(poa.the_poa_manager().state(), State::Active);
}

/// 15.3.9 create_POA: policies are not inherited from the parent.
#[test]
fn policies_are_not_inherited() {
    let pair = Pair::new();
    let parent = pair.adapter("parent", [IdAssignmentPolicy::UserId.into()]);
    let child = parent.create_poa("child", None, []).unwrap();
    assert!(matches!(expect_refusal(parent.activate_object(named_servant("one"))), PoaError::WrongPolicy { .. }));
    child.activate_object(named_servant("one")).unwrap();
}

/// 15.3.9.1: the root adapter has implicit activation; other adapters do not have it by default.
#[test]
fn only_the_root_adapter_activates_implicitly_by_default() {
    let pair = Pair::new();
    assert!(pair.root.servant_to_reference(&named_servant("one")).is_ok());
    let child = pair.root.create_poa("child", None, []).unwrap();
    assert!(matches!(
        expect_refusal(child.servant_to_reference(&named_servant("one"))),
        PoaError::ServantNotActive { .. }
    ));
}

/// 15.3.9 find_POA: the child with that name is returned.
#[test]
fn find_poa_returns_a_child() {
    let pair = Pair::new();
    let child = pair.root.create_poa("child", None, []).unwrap();
    let id = child.activate_object(named_servant("one")).unwrap();
    for if_missing in [IfMissing::Fail, IfMissing::Activate] {
        let found = pair.root.find_poa("child", if_missing).unwrap();
        assert_eq!(found.id(), child.id());
        assert!(found.id_to_servant(&id).is_ok());
    }
}

/// 15.3.9 find_POA: neither further descendants nor the target itself are found.
#[test]
fn find_poa_finds_children_only() {
    let pair = Pair::new();
    let child = pair.root.create_poa("child", None, []).unwrap();
    child.create_poa("grandchild", None, []).unwrap();
    for name in ["grandchild", "RootPOA", "unknown"] {
        assert!(
            matches!(expect_refusal(pair.root.find_poa(name, IfMissing::Fail)), PoaError::AdapterNonExistent { .. }),
            "{name}"
        );
    }
    assert!(matches!(expect_refusal(child.find_poa("child", IfMissing::Fail)), PoaError::AdapterNonExistent { .. }));
}

/// 15.3.9 find_POA: AdapterNonExistent with activate_it if there is no adapter activator.
#[test]
fn find_poa_without_an_activator_activates_nothing() {
    let pair = Pair::new();
    assert!(matches!(
        expect_refusal(pair.root.find_poa("unknown", IfMissing::Activate)),
        PoaError::AdapterNonExistent { .. }
    ));
    assert!(pair.root.the_children().is_empty());
}

/// 15.3.9 create_POA: of concurrent creations with the same name, one succeeds.
#[test]
fn one_of_several_concurrent_creators_succeeds() {
    let pair = Pair::new();
    let creators: Vec<_> = (0..8)
        .map(|_| {
            let root = pair.root.clone();
            std::thread::spawn(move || root.create_poa("contested", None, []).map(drop))
        })
        .collect();
    let outcomes: Vec<_> = creators.into_iter().map(|creator| creator.join().unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert!(
        outcomes
            .into_iter()
            .filter_map(Result::err)
            .all(|error| matches!(error, PoaError::AdapterAlreadyExists { .. }))
    );
}

/// 15.3.9 id: identifies the adapter within its ORB.
#[test]
fn adapters_have_unique_ids() {
    let pair = Pair::new();
    let first = pair.root.create_poa("first", None, []).unwrap();
    let second = pair.root.create_poa("second", None, []).unwrap();
    let again = pair.root.find_poa("first", IfMissing::Fail).unwrap();
    assert!(first.id() != second.id() && first.id() == again.id() && first.id() != pair.root.id());
}
