//! Adapters among servants, servant managers and clients that do what they should not, or at the wrong time.

use super::*;

/// A servant that does something in each upcall, and something at its end.
struct Doing {
    run: Box<dyn Fn(&str) + Send + Sync>,
    panics_at_end: bool,
}

impl Doing {
    fn new(run: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { run: Box::new(run), panics_at_end: false }
    }

    fn panicking_at_end(mut self) -> Self {
        self.panics_at_end = true;
        self
    }
}

impl Servant for Doing {
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

impl Drop for Doing {
    fn drop(&mut self) {
        assert!(!self.panics_at_end, "as wanted");
    }
}

#[test]
fn a_request_that_is_answered_by_a_future_does_not_wait_for_itself() {
    let stage = Stage::active([]);
    let (poa, manager) = (stage.poa.clone(), stage.manager.clone());
    let refused = Arc::<Board<Vec<PoaError>>>::default();
    let board = Arc::clone(&refused);
    let servant = servant(move |_, call| {
        let (poa, manager, board) = (poa.clone(), manager.clone(), Arc::clone(&board));
        call.spawn(|deferred| async move {
            let outcomes = [poa.destroy(true, true), manager.hold_requests(true), manager.deactivate(true, true)];
            board.change(|refused| refused.extend(outcomes.into_iter().map(Result::unwrap_err)));
            let outcome = deferred.answer(|call| call.reply(|_| Ok(())));
            deferred.end(outcome);
        })
    });
    let target = client(&stage.poa.activate(servant).unwrap());
    let again = target.clone();
    in_background(move || target.ping()).recv_timeout(PATIENCE).unwrap().unwrap();
    refused.see(|refused| {
        assert_eq!(refused.len(), 3);
        for error in refused {
            let PoaError::System(exception) = error else { panic!("{error:?}") };
            assert_eq!(exception.minor(), minor::OPERATION_WOULD_DEADLOCK);
        }
    });
    in_background(move || again.ping()).recv_timeout(PATIENCE).unwrap().unwrap();
}

/// Notes what has been etherealized.
#[derive(Default)]
struct Ending(Board<Vec<(ObjectId, thread::ThreadId)>>);

impl ServantActivator for Ending {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        panic!("as wanted");
    }

    fn etherealize(&self, oid: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.0.change(|ended| ended.push((oid.clone(), thread::current().id())));
    }
}

#[test]
fn a_main_thread_that_waits_for_an_adapter_runs_what_that_waits_for() {
    let (done, waited) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let stage = Stage::active([ThreadPolicy::MainThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()]);
        let ending = Arc::<Ending>::default();
        stage.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&ending) as _)).unwrap();
        // This is the main thread from now on.
        stage.orb.perform_work().unwrap();
        stage.poa.activate_object_with_id(&"a".into(), Arc::new(Doing::new(|_| {}))).unwrap();
        stage.poa.deactivate_object(&"a".into()).unwrap();
        stage.poa.destroy(true, true).unwrap();
        let me = thread::current().id();
        ending.0.see(|ended| assert_eq!(*ended, [("a".into(), me)]));
        done.send(()).unwrap();
    });
    waited.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn what_the_main_thread_never_does_is_done_at_the_end_of_the_orb() {
    let stage = Stage::active([ThreadPolicy::MainThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()]);
    let ending = Arc::<Ending>::default();
    stage.poa.set_servant_manager(ServantManager::Activator(Arc::clone(&ending) as _)).unwrap();
    let orb = stage.orb.clone();
    // The main thread, which leaves.
    thread::spawn(move || orb.perform_work().unwrap()).join().unwrap();
    for id in ["a", "b"] {
        stage.poa.activate_object_with_id(&id.into(), Arc::new(Doing::new(|_| {}))).unwrap();
    }
    stage.poa.deactivate_object(&"a".into()).unwrap();
    stage.orb.shutdown(true).unwrap();
    ending.0.see(|ended| {
        let mut ids: Vec<_> = ended.iter().map(|(id, _)| id.clone()).collect();
        ids.sort_by_key(|id| id.as_bytes().to_vec());
        assert_eq!(ids, ["a".into(), "b".into()]);
    });
}

#[test]
fn a_servant_that_panics_when_it_is_dropped_keeps_nobody_waiting() {
    let stage = Stage::active([]);
    let poa = stage.poa.clone();
    let own = Arc::new(Mutex::new(None::<ObjectId>));
    let id = Arc::clone(&own);
    let doing = Doing::new(move |operation| {
        if operation == "ping" {
            poa.deactivate_object(id.lock().unwrap().as_ref().unwrap()).unwrap();
        }
    });
    let object = stage.poa.activate(doing.panicking_at_end()).unwrap();
    *own.lock().unwrap() = Some(stage.poa.reference_to_id(&object).unwrap());
    // Two objects through one connection, and so by one thread.
    let seen = Arc::<Board<Vec<bool>>>::default();
    let board = Arc::clone(&seen);
    let root = stage.root.clone();
    let witness = Doing::new(move |_| {
        let is_here = Current::new().poa().is_ok_and(|poa| poa.the_name() == root.the_name());
        board.change(|seen| seen.push(is_here));
    });
    let witness = stage.root.activate(witness).unwrap();
    let orb = Orb::builder().build().unwrap();
    let of = |object: &ObjectRef| -> Target { orb.string_to_object(&object.to_string()).unwrap().unchecked_narrow() };
    of(&object).ping().unwrap();
    of(&witness).ping().unwrap();
    assert_eq!(of(&object).ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
    seen.see(|seen| assert_eq!(*seen, [true]));
    let poa = stage.poa.clone();
    in_background(move || poa.destroy(true, true)).recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_large_request_that_is_held_again_is_not_in_its_own_way() {
    let stage = Stage::new([]);
    let sibling = stage.root.create_poa("sibling", Some(&stage.manager), []).unwrap();
    let notes = Arc::<Board<usize>>::default();
    let noted = Arc::clone(&notes);
    let doing = Doing::new(move |operation| noted.change(|notes| *notes += usize::from(operation == "note")));
    let target = client(&stage.poa.activate(doing).unwrap());
    // More than half of what one connection may have waiting.
    let held = in_background(move || target.note(&vec![0; 33 << 20]).and_then(|()| target.ping()));
    assert!(held.recv_timeout(Duration::from_millis(300)).is_err(), "it was held");
    sibling.destroy(true, true).unwrap();
    assert!(held.recv_timeout(Duration::from_millis(100)).is_err(), "it is held again");
    stage.manager.activate().unwrap();
    held.recv_timeout(PATIENCE).unwrap().unwrap();
    // What was held together is run together.
    notes.await_that(|notes| *notes == 1);
}

#[test]
fn panics_of_servants_and_activators_give_the_turn_and_the_counts_back() {
    let policies = [ThreadPolicy::SingleThreadModel.into(), SERVANT_MANAGER.into(), USER_ID.into()];
    let stage = Stage::active(policies);
    stage.poa.set_servant_manager(ServantManager::Activator(Arc::<Ending>::default())).unwrap();
    stage.poa.activate_object_with_id(&"bad".into(), Arc::new(Doing::new(|_| panic!("as wanted")))).unwrap();
    stage.poa.activate_object_with_id(&"good".into(), Arc::new(Doing::new(|_| {}))).unwrap();
    for target in [client(&stage.reference("bad")), stage.reference("bad").unchecked_narrow()] {
        for _ in 0..2 {
            let error = target.ping().unwrap_err();
            assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Unknown, CompletionStatus::Maybe));
        }
    }
    for target in [client(&stage.reference("none")), stage.reference("none").unchecked_narrow()] {
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Unknown);
    }
    client(&stage.reference("good")).ping().unwrap();
    let manager = stage.manager.clone();
    in_background(move || manager.hold_requests(true)).recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn names_that_lead_to_each_other_end_the_call() {
    let stage = Stage::active([]);
    let (host, port) = stage.orb.listen().unwrap().remove(0);
    let orb = Orb::builder().build().unwrap();
    let named = |name: &str| orb.string_to_object(&format!("corbaloc:iiop:1.2@{host}:{port}/{name}")).unwrap();
    stage.orb.set_object_key_alias("one", &named("other")).unwrap();
    stage.orb.set_object_key_alias("other", &named("one")).unwrap();
    let ended = in_background({
        let target: Target = named("one").unchecked_narrow();
        move || target.ping()
    });
    let error = ended.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No));
    let here = stage.orb.string_to_object(&named("one").to_string()).unwrap();
    let ended = in_background(move || here.unchecked_narrow::<Target>().ping());
    assert_eq!(ended.recv_timeout(PATIENCE).unwrap().unwrap_err().kind(), SystemExceptionKind::Transient);
}
