//! The order of servant, `postinvoke`, ending interception points and reply (CORBA 3.3 Part 1, 15.3.7.2,
//! 16.3.10.2).

use spandrel::interception::IfPresent;
use spandrel::poa::{EtherealizeObjects, WaitForCompletion};
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    interception::{Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor, ServiceContext},
    options::Collocation,
    poa::{
        Cookie, IdAssignmentPolicy, Incarnation, ObjectId, RequestProcessingPolicy, ServantLocator, ServantManager,
        ServantRetentionPolicy, ThreadPolicy,
    },
    policy::{Policy, SetOverrideType, SyncScopePolicy},
    server::Servant,
    types::Interface,
};
use spandrel_orb_tests::{
    Server, configured_servers,
    probe::{Refused, Target, target::RefuseError},
    recorder::{Log, PlannedAction, server_recording},
    support::{TEST_TIMEOUT, deferring, in_background, servant},
    wiretap::Wiretap,
};

/// The time in which a reply would arrive that is sent too early.
const TOO_EARLY: Duration = Duration::from_millis(20);

/// A locator that records its calls, and raises what is planned for `postinvoke`.
struct RecordingLocator {
    log: Log,
    servant: Arc<dyn Servant>,
}

impl ServantLocator for RecordingLocator {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        self.log.record("preinvoke".into());
        Ok((Arc::clone(&self.servant), Box::new(())))
    }

    fn postinvoke(
        &self,
        _: &ObjectId,
        _: &Poa,
        _: &str,
        _: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        match self.log.record_and_act("postinvoke".into(), "") {
            Err(Interruption::System(exception)) => Err(exception),
            _ => Ok(()),
        }
    }
}

/// A locator whose `postinvoke` waits for permission.
struct GatedLocator {
    servant: Arc<dyn Servant>,
    reached: mpsc::Sender<()>,
    permits: std::sync::Mutex<mpsc::Receiver<()>>,
}

impl ServantLocator for GatedLocator {
    fn preinvoke(&self, _: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        Ok((Arc::clone(&self.servant), Box::new(())))
    }

    fn postinvoke(
        &self,
        _: &ObjectId,
        _: &Poa,
        _: &str,
        _: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        self.reached.send(()).unwrap();
        self.permits.lock().unwrap().recv_timeout(TEST_TIMEOUT).unwrap();
        Ok(())
    }
}

/// An object whose servant comes from this locator.
fn located(orb: &Orb, locator: impl ServantLocator + 'static, further: Option<Policy>) -> ObjectRef {
    let policies = [
        RequestProcessingPolicy::UseServantManager.into(),
        ServantRetentionPolicy::NonRetain.into(),
        Policy::from(IdAssignmentPolicy::UserId),
    ];
    let root = Poa::root(orb).unwrap();
    let poa = root.create_poa("located", None, policies.into_iter().chain(further)).unwrap();
    poa.the_poa_manager().activate().unwrap();
    poa.set_servant_manager(ServantManager::Locator(Arc::new(locator))).unwrap();
    poa.create_reference_with_id(&"one".into(), Target::REPOSITORY_ID).unwrap()
}

/// A servant that records its upcalls, with an outcome for each operation.
fn recording_servant(log: &Log, elsewhere: Option<ObjectRef>) -> Arc<dyn Servant> {
    let log = log.clone();
    Arc::new(servant(move |operation, call| {
        log.record("servant".into());
        match operation {
            "refuse" => call.user_exception(&Refused { why: "as asked".into(), code: 7 }),
            "fail" => Err(SystemException::bad_param(7, CompletionStatus::No)),
            "panic" => panic!("as asked"),
            "count" => call.forward(elsewhere.as_ref().expect("the test forwards this operation")),
            "note" => Ok(call.finish_oneway()),
            _ => call.reply(|_| Ok(())),
        }
    }))
}

fn target_of(object: &ObjectRef) -> Target {
    Orb::builder().build().unwrap().reference(object.ior().clone()).unchecked_narrow()
}

fn in_order(point: &str) -> Vec<String> {
    ["A", "B", "C"].map(|name| format!("{name}.{point}")).to_vec()
}

fn in_reverse(point: &str) -> Vec<String> {
    ["C", "B", "A"].map(|name| format!("{name}.{point}")).to_vec()
}

/// The record of a request with interceptors and a servant locator.
fn all_steps(ending: &str) -> Vec<String> {
    [
        in_order("receive_request_service_contexts"),
        vec!["preinvoke".into()],
        in_order("receive_request"),
        vec!["servant".into(), "postinvoke".into()],
        in_reverse(ending),
    ]
    .concat()
}

/// The record of a request with a servant locator only.
fn locator_steps() -> [&'static str; 3] {
    ["preinvoke", "servant", "postinvoke"]
}

fn raised(minor: u32) -> SystemException {
    SystemException::no_permission(minor, CompletionStatus::Maybe)
}

/// A located object of an ORB with recording interceptors, and stubs of a remote and a collocated client.
fn intercepted() -> (Log, [Target; 2], Server) {
    let (log, elsewhere) = (Log::default(), Server::start());
    let builder = server_recording(configured_servers(Orb::builder()), &log);
    let orb = builder.collocation(Collocation::ThroughPoa).build().unwrap();
    let servant = recording_servant(&log, Some(elsewhere.orb.reference(elsewhere.object.ior().clone())));
    let object = located(&orb, RecordingLocator { log: log.clone(), servant }, None);
    (log, [target_of(&object), object.unchecked_narrow()], elsewhere)
}

#[test]
fn postinvoke_comes_between_the_servant_and_the_ending_points() {
    let (log, targets, _elsewhere) = intercepted();
    for target in targets {
        target.ping().unwrap();
        // All is recorded before the reply is sent.
        assert_eq!(log.take(), all_steps("send_reply"));
        assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(refused) if refused.code == 7));
        assert_eq!(log.take(), all_steps("send_exception IDL:Probe/Refused:1.0"));
        assert_eq!(target.fail(7).unwrap_err().minor(), 7);
        assert_eq!(log.take(), all_steps("send_exception BAD_PARAM COMPLETED_NO"));
        assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
        assert_eq!(log.take(), all_steps("send_exception UNKNOWN COMPLETED_MAYBE"));
        assert_eq!(target.count().unwrap(), 0, "another server answers");
        assert_eq!(log.take(), all_steps("send_other LocationForward"));
    }
}

#[test]
fn a_one_way_has_a_postinvoke_before_send_reply() {
    let (log, [target, _], _elsewhere) = intercepted();
    target.note(&[1]).unwrap();
    let expected = all_steps("send_reply");
    assert_eq!(log.take_all(expected.len()), expected);
}

// Sync scope WITH_SERVER: the one-way is answered before its servant runs, and only then.
#[test]
fn a_one_way_that_waits_for_the_server_has_one_reply() {
    let log = Log::default();
    let server = Server::with(server_recording(Orb::builder(), &log));
    let tap = Wiretap::before(&server);
    let orb = Orb::builder().build().unwrap();
    let object = orb.string_to_object(&tap.ior()).unwrap();
    let scope = SyncScopePolicy::WithServer;
    let one_way = object.set_policy_overrides(&[scope.into()], SetOverrideType::AddOverride).unwrap();
    Target::unchecked_narrow(&one_way).note(&[7]).unwrap();
    // Requests of one connection are answered in order.
    assert_eq!(Target::unchecked_narrow(&object).count().unwrap(), 1);
    assert_eq!(tap.take_replies().len(), 2, "one for each request");
    let points =
        [in_order("receive_request_service_contexts"), in_order("receive_request"), in_reverse("send_reply")].concat();
    assert_eq!(log.take(), [points.clone(), points].concat());
}

#[test]
fn a_decision_in_receive_request_has_a_postinvoke_and_no_servant() {
    let (log, [target, _], _elsewhere) = intercepted();
    log.plan("B.receive_request", PlannedAction::Raise(raised(4)));
    assert_eq!(target.ping().unwrap_err().minor(), 4);
    let expected = [
        in_order("receive_request_service_contexts"),
        vec!["preinvoke".into(), "A.receive_request".into(), "B.receive_request".into(), "postinvoke".into()],
        in_reverse("send_exception NO_PERMISSION COMPLETED_NO"),
    ];
    assert_eq!(log.take(), expected.concat());
}

// 15.3.7.2: "the method's normal return is overridden; the request completes with the exception".
#[test]
fn an_exception_of_postinvoke_replaces_results_only() {
    let (log, targets, _elsewhere) = intercepted();
    for target in targets {
        log.plan("postinvoke", PlannedAction::Raise(raised(5)));
        let replaced = target.ping().unwrap_err();
        assert_eq!((replaced.kind(), replaced.minor()), (SystemExceptionKind::NoPermission, 5));
        assert_eq!(log.take(), all_steps("send_exception NO_PERMISSION COMPLETED_MAYBE"));
        log.plan("postinvoke", PlannedAction::Panic);
        let replaced = target.ping().unwrap_err();
        assert_eq!((replaced.kind(), replaced.completed()), (SystemExceptionKind::Unknown, CompletionStatus::Yes));
        assert_eq!(log.take(), all_steps("send_exception UNKNOWN COMPLETED_YES"));
        log.plan("postinvoke", PlannedAction::Raise(raised(5)));
        assert!(matches!(target.refuse(7).unwrap_err(), RefuseError::Refused(_)));
        log.plan("postinvoke", PlannedAction::Raise(raised(5)));
        assert_eq!(target.fail(7).unwrap_err().kind(), SystemExceptionKind::BadParam);
        log.plan("postinvoke", PlannedAction::Raise(raised(5)));
        assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
        log.take();
    }
}

#[test]
fn without_interceptors_postinvoke_comes_before_the_reply() {
    let log = Log::default();
    let orb = configured_servers(Orb::builder()).build().unwrap();
    let servant = recording_servant(&log, None);
    let object = located(&orb, RecordingLocator { log: log.clone(), servant }, None);
    for target in [target_of(&object), object.unchecked_narrow()] {
        target.ping().unwrap();
        assert_eq!(log.take(), locator_steps());
        assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
        assert_eq!(log.take(), locator_steps());
        log.plan("postinvoke", PlannedAction::Raise(raised(6)));
        assert_eq!(target.ping().unwrap_err().minor(), 6);
        assert_eq!(log.take(), locator_steps());
    }
}

/// Asserts that the reply of a located object arrives after `postinvoke` has returned, not before.
#[track_caller]
fn assert_reply_after_postinvoke(
    orb: &Orb,
    servant: Arc<dyn Servant>,
    thread_policy: Option<Policy>,
    during_call: impl FnOnce(),
) {
    let ((reached, arrivals), (permit, permits)) = (mpsc::channel(), mpsc::channel());
    let locator = GatedLocator { servant, reached, permits: permits.into() };
    let target = target_of(&located(orb, locator, thread_policy));
    let call = in_background(move || target.ping());
    during_call();
    arrivals.recv_timeout(TEST_TIMEOUT).unwrap();
    assert!(call.recv_timeout(TOO_EARLY).is_err(), "`postinvoke` still runs");
    permit.send(()).unwrap();
    call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn the_reply_waits_for_postinvoke() {
    for builder in [Orb::builder(), server_recording(Orb::builder(), &Log::default())] {
        let orb = configured_servers(builder).build().unwrap();
        assert_reply_after_postinvoke(&orb, recording_servant(&Log::default(), None), None, || {});
    }
}

#[test]
fn a_deferred_reply_waits_for_postinvoke_in_the_thread_of_the_adapter() {
    for thread_policy in [ThreadPolicy::OrbCtrlModel, ThreadPolicy::SingleThreadModel, ThreadPolicy::MainThreadModel] {
        for builder in [Orb::builder(), server_recording(Orb::builder(), &Log::default())] {
            let orb = configured_servers(builder).build().unwrap();
            let main = orb.clone();
            let main = in_background(move || main.run());
            let (servant, requests) = deferring();
            assert_reply_after_postinvoke(&orb, Arc::new(servant), Some(thread_policy.into()), || {
                let deferred = requests.recv_timeout(TEST_TIMEOUT).unwrap();
                // `postinvoke` may be run by the thread that answers.
                drop(in_background(move || {
                    let answered = deferred.answer(|call| call.reply(|_| Ok(())));
                    deferred.end(answered);
                }));
            });
            orb.begin_shutdown().unwrap();
            main.recv_timeout(TEST_TIMEOUT).unwrap();
        }
    }
}

#[test]
fn deferred_calls_have_the_same_order() {
    let log = Log::default();
    let orb = server_recording(configured_servers(Orb::builder()), &log).build().unwrap();
    let (servant, requests) = deferring();
    let object = located(&orb, RecordingLocator { log: log.clone(), servant: Arc::new(servant) }, None);
    let steps =
        |ending: &str| -> Vec<String> { all_steps(ending).into_iter().filter(|step| step != "servant").collect() };
    for collocated in [false, true] {
        let target = if collocated { object.unchecked_narrow() } else { target_of(&object) };
        let ping =
            |ending: &str, check: fn(Result<(), SystemException>), answer: fn(spandrel::server::DeferredCall)| {
                let target = target.clone();
                let call = in_background(move || target.ping());
                answer(requests.recv_timeout(TEST_TIMEOUT).unwrap());
                check(call.recv_timeout(TEST_TIMEOUT).unwrap());
                assert_eq!(log.take(), steps(ending));
            };
        let reply = |deferred: spandrel::server::DeferredCall| {
            let answered = deferred.answer(|call| call.reply(|_| Ok(())));
            deferred.end(answered);
        };
        ping("send_reply", |outcome| outcome.unwrap(), reply);
        log.plan("postinvoke", PlannedAction::Raise(raised(8)));
        let replaced = |outcome: Result<(), SystemException>| assert_eq!(outcome.unwrap_err().minor(), 8);
        ping("send_exception NO_PERMISSION COMPLETED_MAYBE", replaced, reply);
        let failed = |outcome: Result<(), SystemException>| {
            assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::BadParam);
        };
        ping("send_exception BAD_PARAM COMPLETED_NO", failed, |deferred| {
            deferred.end(Err(SystemException::bad_param(1, CompletionStatus::No)));
        });
        let unanswered = |outcome: Result<(), SystemException>| {
            assert_eq!(outcome.unwrap_err().kind(), SystemExceptionKind::NoResponse);
        };
        ping("send_exception NO_RESPONSE COMPLETED_MAYBE", unanswered, drop);
    }
}

#[test]
fn a_servant_without_locator_and_interceptors_replies_before_it_returns() {
    let orb = configured_servers(Orb::builder()).build().unwrap();
    let (seen, reply_seen) = mpsc::channel::<()>();
    let reply_seen = std::sync::Mutex::new(reply_seen);
    let servant = servant(move |_, call| {
        let replied = call.reply(|_| Ok(()));
        reply_seen.lock().unwrap().recv_timeout(TEST_TIMEOUT).unwrap();
        replied
    });
    let root = Poa::root(&orb).unwrap();
    let object = root.activate_shared(Arc::new(servant)).unwrap();
    target_of(&object).ping().unwrap();
    seen.send(()).unwrap();
    root.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes).unwrap();
}

/// Adds a context of some octets to each reply.
struct ContextSender(usize);

impl Interceptor for ContextSender {}

impl ServerRequestInterceptor for ContextSender {
    fn send_reply(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        info.add_reply_service_context(ServiceContext { id: 0x5350_7778, data: vec![7; self.0] }, IfPresent::Fail)
    }
}

// Before GIOP 1.2 the body has no alignment of its own, so that contexts move it.
#[test]
fn results_stay_aligned_behind_the_contexts_of_interceptors() {
    let numbers: Vec<f64> = (0..100).map(f64::from).collect();
    for octets in [0, 1, 4, 5, 9] {
        let builder = |builder: OrbBuilder| builder.server_request_interceptor(ContextSender(octets)).unwrap();
        let server = Server::with(builder(Orb::builder()));
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                let target = server.client_with(Orb::builder().giop_version(version).byte_order(order));
                assert_eq!(target.echo_doubles(&numbers).unwrap(), numbers, "{version:?}, {octets} octets");
                assert_eq!(target.echo("text").unwrap(), "text");
                target.ping().unwrap();
            }
        }
    }
}
