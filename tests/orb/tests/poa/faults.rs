//! Adapters with servants, servant managers and clients that panic or call operations at the wrong time.

use super::*;
use spandrel::poa::{EtherealizeObjects, WaitForCompletion};

/// A servant that runs a closure in each upcall, and may panic when it is dropped.
struct ClosureServant {
    run: Box<dyn Fn(&str) + Send + Sync>,
    panics_at_end: bool,
}

impl ClosureServant {
    fn new(run: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { run: Box::new(run), panics_at_end: false }
    }

    fn panicking_at_end(mut self) -> Self {
        self.panics_at_end = true;
        self
    }
}

impl Servant for ClosureServant {
    fn repository_id(&self) -> &str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        (self.run)(operation);
        call.reply(|_| Ok(()))
    }
}

impl Drop for ClosureServant {
    fn drop(&mut self) {
        assert!(!self.panics_at_end, "intended");
    }
}

#[test]
fn waiting_for_completion_within_an_asynchronous_upcall_is_refused() {
    let fixture = AdapterFixture::active([]);
    let (poa, manager) = (fixture.poa.clone(), fixture.manager.clone());
    let refused = Arc::<Shared<Vec<PoaError>>>::default();
    let board = Arc::clone(&refused);
    let servant = servant(move |_, call| {
        let (poa, manager, board) = (poa.clone(), manager.clone(), Arc::clone(&board));
        call.spawn(|deferred| async move {
            let outcomes = [
                poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes),
                manager.hold_requests(WaitForCompletion::Yes),
                manager.deactivate(EtherealizeObjects::Yes, WaitForCompletion::Yes),
            ];
            board.change(|refused| refused.extend(outcomes.into_iter().map(Result::unwrap_err)));
            let outcome = deferred.answer(|call| call.reply(|_| Ok(())));
            deferred.end(outcome);
        })
    });
    let target = client(&fixture.poa.activate(servant).unwrap());
    let again = target.clone();
    in_background(move || target.ping()).recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    refused.see(|refused| {
        assert_eq!(refused.len(), 3);
        for error in refused {
            let PoaError::System(exception) = error else { panic!("{error:?}") };
            assert_eq!(exception.minor(), minor::OPERATION_WOULD_DEADLOCK);
        }
    });
    in_background(move || again.ping()).recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

/// A servant activator that records etherealized objects.
#[derive(Default)]
struct EtherealizingActivator(Shared<Vec<(ObjectId, thread::ThreadId)>>);

impl ServantActivator for EtherealizingActivator {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        panic!("intended");
    }

    fn etherealize(&self, oid: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.0.change(|ended| ended.push((oid.clone(), thread::current().id())));
    }
}

#[test]
fn destroy_in_the_main_thread_runs_the_main_threads_etherealizations() {
    let (done, waited) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let fixture =
            AdapterFixture::active([ThreadPolicy::MainThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()]);
        let activator = Arc::<EtherealizingActivator>::default();
        fixture.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&activator) as _)).unwrap();
        // This is the main thread from now on.
        fixture.orb.perform_work().unwrap();
        fixture.poa.activate_object_with_id(&"a".into(), Arc::new(ClosureServant::new(|_| {}))).unwrap();
        fixture.poa.deactivate_object(&"a".into()).unwrap();
        fixture.poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
        let me = thread::current().id();
        activator.0.see(|ended| assert_eq!(*ended, [("a".into(), me)]));
        done.send(()).unwrap();
    });
    waited.recv_timeout(TEST_TIMEOUT).unwrap();
}

#[test]
fn orb_shutdown_etherealizes_objects_of_an_ended_main_thread() {
    let fixture =
        AdapterFixture::active([ThreadPolicy::MainThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()]);
    let activator = Arc::<EtherealizingActivator>::default();
    fixture.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&activator) as _)).unwrap();
    let orb = fixture.orb.clone();
    // The main thread ends without further work.
    thread::spawn(move || orb.perform_work().unwrap()).join().unwrap();
    for id in ["a", "b"] {
        fixture.poa.activate_object_with_id(&id.into(), Arc::new(ClosureServant::new(|_| {}))).unwrap();
    }
    fixture.poa.deactivate_object(&"a".into()).unwrap();
    fixture.orb.shutdown().unwrap();
    activator.0.see(|ended| {
        let mut ids: Vec<_> = ended.iter().map(|(id, _)| id.clone()).collect();
        ids.sort_by_key(|id| id.as_bytes().to_vec());
        assert_eq!(ids, ["a".into(), "b".into()]);
    });
}

#[test]
fn a_panic_in_a_servants_drop_does_not_block_destroy() {
    let fixture = AdapterFixture::active([]);
    let poa = fixture.poa.clone();
    let own = Arc::new(Mutex::new(None::<ObjectId>));
    let id = Arc::clone(&own);
    let panicking = ClosureServant::new(move |operation| {
        if operation == "ping" {
            poa.deactivate_object(id.lock().unwrap().as_ref().unwrap()).unwrap();
        }
    });
    let object = fixture.poa.activate(panicking.panicking_at_end()).unwrap();
    *own.lock().unwrap() = Some(fixture.poa.reference_to_id(&object).unwrap());
    // Two objects over one connection, and so by one thread.
    let seen = Arc::<Shared<Vec<bool>>>::default();
    let board = Arc::clone(&seen);
    let root = fixture.root.clone();
    let witness = ClosureServant::new(move |_| {
        let is_here = Current::new().poa().is_ok_and(|poa| poa.the_name() == root.the_name());
        board.change(|seen| seen.push(is_here));
    });
    let witness = fixture.root.activate(witness).unwrap();
    let orb = Orb::builder().build().unwrap();
    let of = |object: &ObjectRef| -> Target { orb.string_to_object(&object.to_string()).unwrap().unchecked_narrow() };
    of(&object).ping().unwrap();
    of(&witness).ping().unwrap();
    assert_eq!(of(&object).ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    seen.see(|seen| assert_eq!(*seen, [true]));
    let poa = fixture.poa.clone();
    in_background(move || poa.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes))
        .recv_timeout(TEST_TIMEOUT)
        .unwrap()
        .unwrap();
}

#[test]
fn a_large_held_request_counts_once_against_the_memory_limit() {
    let fixture = AdapterFixture::new([]);
    let sibling = fixture.root.create_poa("sibling", Some(&fixture.manager), []).unwrap();
    let count = Arc::<Shared<usize>>::default();
    let counter = Arc::clone(&count);
    let counting =
        ClosureServant::new(move |operation| counter.change(|count| *count += usize::from(operation == "note")));
    let target = client(&fixture.poa.activate(counting).unwrap());
    // More than half of the request memory of one connection.
    let held = in_background(move || target.note(&vec![0; 33 << 20]).and_then(|()| target.ping()));
    assert!(held.recv_timeout(Duration::from_millis(300)).is_err(), "the request is held");
    sibling.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
    assert!(held.recv_timeout(Duration::from_millis(100)).is_err(), "the request is held again");
    fixture.manager.activate().unwrap();
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    // Requests that were held together run at the same time.
    count.await_value(|count| *count == 1);
}

#[test]
fn a_panic_in_an_upcall_releases_the_thread_turn_and_the_request_counts() {
    let policies = [ThreadPolicy::SingleThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()];
    let fixture = AdapterFixture::active(policies);
    fixture.poa.set_servant_manager(ServantManager::Activator(Arc::<EtherealizingActivator>::default())).unwrap();
    fixture.poa.activate_object_with_id(&"bad".into(), Arc::new(ClosureServant::new(|_| panic!("intended")))).unwrap();
    fixture.poa.activate_object_with_id(&"good".into(), Arc::new(ClosureServant::new(|_| {}))).unwrap();
    for target in [client(&fixture.reference("bad")), fixture.reference("bad").unchecked_narrow()] {
        for _ in 0..2 {
            let error = target.ping().unwrap_err();
            assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Unknown, CompletionStatus::Maybe));
        }
    }
    for target in [client(&fixture.reference("none")), fixture.reference("none").unchecked_narrow()] {
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Unknown);
    }
    client(&fixture.reference("good")).ping().unwrap();
    let manager = fixture.manager.clone();
    in_background(move || manager.hold_requests(WaitForCompletion::Yes)).recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn circular_object_key_aliases_end_the_call_with_transient() {
    let fixture = AdapterFixture::active([]);
    let (host, port) = fixture.orb.listen().unwrap().remove(0);
    let orb = Orb::builder().build().unwrap();
    let named = |name: &str| orb.string_to_object(&format!("corbaloc:iiop:1.2@{host}:{port}/{name}")).unwrap();
    fixture.orb.set_object_key_alias("one", &named("other")).unwrap();
    fixture.orb.set_object_key_alias("other", &named("one")).unwrap();
    let ended = in_background({
        let target: Target = named("one").unchecked_narrow();
        move || target.ping()
    });
    let error = ended.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No));
    let here = fixture.orb.string_to_object(&named("one").to_string()).unwrap();
    let ended = in_background(move || here.unchecked_narrow::<Target>().ping());
    assert_eq!(ended.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err().kind(), SystemExceptionKind::Transient);
}
