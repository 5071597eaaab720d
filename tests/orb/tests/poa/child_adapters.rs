//! Child adapters that adapter activators create and re-create; default servants and `Current`.

use super::*;
use spandrel::poa::{EtherealizeObjects, IfMissing, WaitForCompletion};

/// An adapter activator that creates persistent adapters with a default servant.
#[derive(Default)]
struct PersistentAdapterActivator {
    state: Shared<(usize, bool)>,
}

fn persistent() -> Vec<Policy> {
    vec![
        LifespanPolicy::Persistent.into(),
        USER_ID.into(),
        RequestProcessingPolicy::UseDefaultServant.into(),
        IdUniquenessPolicy::MultipleId.into(),
    ]
}

impl AdapterActivator for PersistentAdapterActivator {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
        self.state.change(|(calls, _)| *calls += 1);
        self.state.await_value(|(_, is_closed)| !is_closed);
        if name == "panic" {
            panic!("intended");
        }
        if name == "no" {
            return false;
        }
        let poa = parent.create_poa(name, Some(&parent.the_poa_manager()), persistent()).unwrap();
        poa.set_servant(probe(parent.orb()).1).unwrap();
        poa.set_the_activator(parent.the_activator());
        true
    }
}

/// A server at a given port (0: any) whose adapter activators create child adapters.
fn server(port: u16) -> (Orb, Poa, Arc<PersistentAdapterActivator>) {
    let orb = configured_servers(Orb::builder().listen(spandrel::Endpoint::new("127.0.0.1", port))).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let activator = Arc::<PersistentAdapterActivator>::default();
    root.set_the_activator(Some(Arc::clone(&activator) as _));
    (orb, root, activator)
}

#[test]
fn persistent_references_survive_a_restart_at_the_same_address_and_activate_their_adapters_once() {
    let (orb, root, activator) = server(0);
    let bank = root.find_poa("bank", IfMissing::Activate).unwrap();
    let accounts = bank.find_poa("accounts", IfMissing::Activate).unwrap();
    let object = accounts.create_reference_with_id(&"a".into(), "IDL:Probe/Target:1.0").unwrap();
    let target = client(&object);
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(activator.state.see(|(calls, _)| *calls), 2);
    let port = orb.listen().unwrap()[0].1;
    let transient = root.activate_shared(probe(&orb).1).unwrap();
    orb.shutdown().unwrap();

    let (orb, root, activator) = server(port);
    orb.listen().unwrap();
    activator.state.change(|(_, is_closed)| *is_closed = true);
    let calls: Vec<_> = (0..5)
        .map(|number| {
            let target = client(&object);
            in_background(move || target.add(number, 1))
        })
        .collect();
    activator.state.await_value(|(calls, _)| *calls == 1);
    assert!(calls[0].recv_timeout(Duration::from_millis(20)).is_err(), "the adapter is being created");
    activator.state.change(|(_, is_closed)| *is_closed = false);
    for (number, call) in (0..).zip(calls) {
        assert_eq!(call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), number + 1);
    }
    assert_eq!(activator.state.see(|(calls, _)| *calls), 2);
    let accounts = root.find_poa("bank", IfMissing::Fail).unwrap().find_poa("accounts", IfMissing::Fail).unwrap();
    assert_eq!(accounts.reference_to_id(&object).unwrap().as_bytes(), b"a");
    assert_eq!(target.add(2, 2).unwrap(), 4);
    let stale = client(&transient).ping().unwrap_err();
    assert_eq!(stale.kind(), SystemExceptionKind::ObjectNotExist);
    orb.shutdown().unwrap();
}

#[test]
fn an_adapter_that_its_activator_refuses_does_not_exist() {
    let (orb, root, _growing) = server(0);
    assert!(matches!(root.find_poa("no", IfMissing::Activate).unwrap_err(), PoaError::AdapterNonExistent { .. }));
    assert!(matches!(root.find_poa("bank", IfMissing::Fail).unwrap_err(), PoaError::AdapterNonExistent { .. }));
    let PoaError::System(failed) = root.find_poa("panic", IfMissing::Activate).unwrap_err() else {
        panic!("it is a system exception")
    };
    assert_eq!((failed.kind(), failed.minor()), (SystemExceptionKind::ObjAdapter, minor::UNKNOWN_ADAPTER_FAILED));
    for (name, kind) in [("no", SystemExceptionKind::ObjectNotExist), ("panic", SystemExceptionKind::ObjAdapter)] {
        let poa = root.create_poa(name, None, persistent()).unwrap();
        let object = poa.create_reference_with_id(&"a".into(), "").unwrap();
        poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        assert_eq!(client(&object).ping().unwrap_err().kind(), kind);
    }
    orb.shutdown().unwrap();
}

#[test]
fn a_destroyed_adapter_is_recreated_for_persistent_references_and_not_for_transient_ones() {
    let (orb, root, activator) = server(0);
    let poa = root.find_poa("bank", IfMissing::Activate).unwrap();
    let object = poa.create_reference_with_id(&"a".into(), "").unwrap();
    let child = poa.create_poa("transient", Some(&root.the_poa_manager()), []).unwrap();
    let transient = child.activate_shared(probe(&orb).1).unwrap();
    let (first, second) = (client(&object), client(&transient));
    first.ping().unwrap();
    second.ping().unwrap();
    poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
    assert_eq!(activator.state.see(|(calls, _)| *calls), 1);
    first.ping().unwrap();
    assert_eq!(activator.state.see(|(calls, _)| *calls), 2);
    let poa = root.find_poa("bank", IfMissing::Fail).unwrap();
    let again = poa.create_poa("transient", Some(&root.the_poa_manager()), []).unwrap();
    let other = again.activate_shared(probe(&orb).1).unwrap();
    assert_eq!(second.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    client(&other).ping().unwrap();
    assert!(matches!(again.reference_to_id(&transient), Err(PoaError::WrongAdapter { .. })));
    orb.shutdown().unwrap();
}

#[test]
fn a_default_servant_learns_the_object_id_from_current() {
    let fixture = AdapterFixture::active(persistent());
    let upcalls = Arc::<Shared<Vec<(String, ObjectId, ObjectRef)>>>::default();
    let recorded = Arc::clone(&upcalls);
    let describing: Arc<dyn Servant> = Arc::new(servant(move |_, call| {
        let current = Current::new();
        let poa = current.poa().unwrap();
        let running = current.servant().unwrap();
        assert_eq!(poa.servant_to_id(&running).unwrap(), current.object_id().unwrap());
        let upcall = (poa.the_name(), current.object_id().unwrap(), current.reference().unwrap());
        recorded.change(|list| list.push(upcall));
        call.reply(|_| Ok(()))
    }));
    assert!(matches!(fixture.poa.servant(), Err(PoaError::NoServant { .. })));
    let refused = client(&fixture.reference("a")).ping().unwrap_err();
    assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::ObjAdapter, minor::NO_DEFAULT_SERVANT));
    fixture.poa.set_servant(Arc::clone(&describing)).unwrap();
    for name in ["a", "b"] {
        client(&fixture.reference(name)).ping().unwrap();
    }
    upcalls.see(|upcalls| {
        let ids: Vec<_> = upcalls.iter().map(|(poa, id, _)| (&**poa, id.as_bytes())).collect();
        assert_eq!(ids, [("child", &b"a"[..]), ("child", b"b")]);
        let ids = upcalls.iter().map(|(_, id, reference)| (fixture.poa.reference_to_id(reference).unwrap(), id));
        ids.for_each(|(from_reference, id)| assert_eq!(from_reference, *id));
    });
    assert!(matches!(fixture.poa.servant_to_id(&describing), Err(PoaError::ServantNotActive { .. })));
    assert_eq!(Current::new().object_id(), Err(NoContext));
}

#[test]
fn corrupted_object_keys_raise_object_not_exist() {
    let fixture = AdapterFixture::active(persistent());
    fixture.poa.set_servant(probe(&fixture.orb).1).unwrap();
    let good = fixture.reference("a");
    let mut random = fastrand::Rng::with_seed(11);
    let client_orb = Orb::builder().build().unwrap();
    for _ in 0..300 {
        let mut ior = good.ior().clone();
        let mut profile = spandrel::types::IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
        let before = profile.object_key.clone();
        let at = random.usize(..before.len() - 1);
        profile.object_key[at] ^= 1 << random.u8(..8);
        if random.bool() {
            profile.object_key.truncate(random.usize(..before.len() - 1));
        }
        ior.profiles = vec![profile.encode().unwrap()];
        let target: Target = client_orb.reference(ior).unchecked_narrow();
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    }
    client(&good).ping().unwrap();
}

/// An adapter activator that looks up the adapter it is creating.
struct LookingUpActivator;

impl AdapterActivator for LookingUpActivator {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
        assert!(matches!(parent.find_poa(name, IfMissing::Activate).unwrap_err(), PoaError::AdapterNonExistent { .. }));
        let made = parent.create_poa(name, None, []).unwrap();
        assert_eq!(parent.find_poa(name, IfMissing::Activate).unwrap(), made);
        if name == "ends" {
            made.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        }
        true
    }
}

#[test]
fn find_poa_within_an_adapter_activator_does_not_deadlock() {
    let fixture = AdapterFixture::active([]);
    fixture.poa.set_the_activator(Some(Arc::new(LookingUpActivator)));
    let made = fixture.poa.find_poa("grandchild", IfMissing::Activate).unwrap();
    assert_eq!(made.the_parent().unwrap(), fixture.poa);
    assert_eq!(fixture.poa.the_children(), [made]);
    // The activator returns true although it has destroyed the adapter again.
    assert!(matches!(
        fixture.poa.find_poa("ends", IfMissing::Activate).unwrap_err(),
        PoaError::AdapterNonExistent { .. }
    ));
}

#[test]
fn system_exceptions_of_operations_name_the_adapter_and_the_object() {
    let fixture = AdapterFixture::new([]);
    let account = fixture.poa.create_reference("IDL:Account:1.0").unwrap();
    let contains = |text: String, part: &str| assert!(text.contains(part), "{text}");
    let unassigned = fixture.root.create_reference_with_id(&"ada".into(), "IDL:Account:1.0").unwrap_err();
    contains(unassigned.to_string(), "the adapter `RootPOA` assigns its object ids itself, and did not assign `ada`");
    let inactive = fixture.poa.deactivate(&account).unwrap_err().to_string();
    contains(inactive, "is not active");
    let child = fixture.root.create_poa("accounts", None, []).unwrap();
    contains(child.deactivate(&account).unwrap_err().to_string(), "was not created by the adapter `RootPOA/accounts`");
    child.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    let destroyed = child.create_reference("IDL:Account:1.0").unwrap_err();
    contains(destroyed.to_string(), "the adapter `RootPOA/accounts` has been destroyed");
}
