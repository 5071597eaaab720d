//! Service contexts between interceptors of client and server, slots within one ORB, and the attributes
//! available at each interception point (CORBA 3.3 Part 1, 16.3.12 to 16.3.14, 16.4, 16.7).

use spandrel::interception::IfPresent;
use std::sync::{Arc, Mutex};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    cdr::GiopVersion,
    dynamic::CreateRequest,
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Encoding, Interceptor, Interruption, InvalidSlot, OrbInitInfo,
        OrbInitializer, ReplyStatus, ServerRequestInfo, ServerRequestInterceptor, ServiceContext, SlotId,
    },
    minor,
    policy::{RebindPolicy, SyncScopePolicy},
    types::{Any, IiopProfile, InvalidName, Typed},
};
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Refused, Target, TargetSkeleton},
    support::{block_on, servant},
};

const ID: u32 = 0x5350_7777;

fn any(value: i32) -> Any {
    Any::new(value).unwrap()
}

fn value(any: &Any) -> Option<i32> {
    any.extract().ok()
}

/// Asserts BAD_INV_ORDER: the attribute is not available at this point (16.3.13, 16.3.14).
#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(attribute: Result<T, SystemException>) {
    let refused = attribute.unwrap_err();
    assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::BadInvOrder, minor::INVALID_PI_CALL));
}

/// Asserts NO_RESOURCES: compiled stubs and skeletons do not provide the attribute.
#[track_caller]
fn assert_not_provided<T: std::fmt::Debug>(attribute: Result<T, SystemException>) {
    let refused = attribute.unwrap_err();
    let expected = (SystemExceptionKind::NoResources, minor::PORTABLE_INTERCEPTOR_UNSUPPORTED);
    assert_eq!((refused.kind(), refused.minor()), expected);
}

/// Sends the slot of the client's thread as a service context, and records the contexts of replies.
struct Sender {
    slot: SlotId,
    received: Arc<Mutex<Vec<i32>>>,
}

impl Interceptor for Sender {}

impl ClientRequestInterceptor for Sender {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let codec = info.target().orb().codec_factory().create_codec(Encoding::cdr_encaps(GiopVersion::V1_2)).unwrap();
        let Some(number) = value(&info.slot(self.slot).unwrap()) else { return Ok(()) };
        let data = codec.encode_value(&any(number)).unwrap();
        let context = ServiceContext { id: ID, data };
        info.add_request_service_context(context.clone(), IfPresent::Fail)?;
        // 16.3.13.11: BAD_INV_ORDER if the context exists and `replace` is false.
        let again = info.add_request_service_context(context.clone(), IfPresent::Fail).unwrap_err();
        assert_eq!(again.minor(), minor::SERVICE_CONTEXT_EXISTS);
        info.add_request_service_context(context.clone(), IfPresent::Replace)?;
        assert_eq!(info.request_service_context(ID)?, context);
        assert_eq!(info.request_service_context(ID + 1).unwrap_err().minor(), minor::UNKNOWN_SERVICE_CONTEXT);
        assert_unavailable(info.reply_service_context(ID));
        assert_unavailable(info.reply_status());
        assert_unavailable(info.received_exception());
        assert_unavailable(info.result());
        assert_not_provided(info.arguments());
        assert_not_provided(info.exceptions());
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        assert_eq!(info.reply_status()?, ReplyStatus::Successful);
        assert_unavailable(
            info.add_request_service_context(ServiceContext { id: 1, data: Vec::new() }, IfPresent::Replace),
        );
        assert_unavailable(info.received_exception_id());
        assert_unavailable(info.forward_reference());
        assert_not_provided(info.result());
        if let Ok(context) = info.reply_service_context(ID) {
            let codec = info.target().orb().codec_factory().create_codec(Encoding::cdr_encaps(GiopVersion::V1_2));
            let read = codec.unwrap().decode_value(&context.data, &spandrel::types::TypeCode::LONG).unwrap();
            self.received.lock().unwrap().push(value(&read).unwrap());
        }
        Ok(())
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        if info.reply_status()? == ReplyStatus::UserException {
            let raised = info.received_exception()?;
            // 16.3.13.4: an exception of unknown type is UNKNOWN with minor code 1.
            let any = raised.to_any(None).unwrap();
            assert_eq!(any.type_code().id(), Ok("IDL:omg.org/CORBA/UNKNOWN:1.0"));
            let refused: Refused = raised.extract().unwrap().unwrap();
            self.received.lock().unwrap().push(refused.code);
        }
        Ok(())
    }
}

/// Stores the received context in a slot of the request, and sends the slot back with the reply.
struct Receiver {
    slot: SlotId,
}

impl Interceptor for Receiver {}

impl ServerRequestInterceptor for Receiver {
    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        assert_eq!(info.slot(self.slot).unwrap(), Any::default(), "each request begins with empty slots");
        assert_eq!(info.set_slot(self.slot + 1, any(0)), Err(InvalidSlot(self.slot + 1)));
        if let Ok(context) = info.request_service_context(ID) {
            let order = context.data[0];
            let octets: [u8; 4] = context.data[4..8].try_into().unwrap();
            let number = if order == 1 { i32::from_le_bytes(octets) } else { i32::from_be_bytes(octets) };
            info.set_slot(self.slot, any(number)).unwrap();
        }
        // 16.3.14: the adapter has not been reached yet.
        assert_unavailable(info.object_id());
        assert_unavailable(info.adapter_name());
        assert_unavailable(info.orb_id());
        assert_unavailable(info.target_is_a(""));
        assert_unavailable(info.arguments());
        assert_unavailable(info.reply_status());
        Ok(())
    }

    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        assert_eq!(info.adapter_name()?, ["RootPOA"]);
        assert!(!info.object_id()?.is_empty() && !info.adapter_id()?.is_empty());
        assert_eq!((info.orb_id()?, info.server_id()?), ("the-orb", "the-server"));
        assert_eq!(info.target_most_derived_interface()?, "IDL:Probe/Target:1.0");
        assert!(info.target_is_a("IDL:Probe/Target:1.0")? && info.target_is_a("IDL:omg.org/CORBA/Object:1.0")?);
        assert!(!info.target_is_a("IDL:Other:1.0")?);
        // The lifespan policy, which every adapter has, and a policy that no adapter has.
        assert_eq!(info.server_policy(17)?.policy_type(), 17);
        assert_eq!(info.server_policy(4711).unwrap_err().kind(), SystemExceptionKind::InvPolicy);
        assert_not_provided(info.arguments());
        assert_unavailable(info.sending_exception());
        Ok(())
    }

    fn send_reply(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        assert_eq!(info.reply_status()?, ReplyStatus::Successful);
        assert_unavailable(info.target_most_derived_interface());
        assert_unavailable(info.forward_reference());
        assert_eq!(info.adapter_name()?, ["RootPOA"]);
        if let Some(number) = value(&info.slot(self.slot)?) {
            let data = [vec![1, 0, 0, 0], number.to_le_bytes().to_vec()].concat();
            info.add_reply_service_context(ServiceContext { id: ID, data }, IfPresent::Fail)?;
            assert_eq!(info.reply_service_context(ID)?.id, ID);
        }
        Ok(())
    }
}

/// A client and a server that exchange numbers in service contexts.
struct Pair {
    server: Server,
    client: Orb,
    target: Target,
    slot: SlotId,
    received: Arc<Mutex<Vec<i32>>>,
}

impl Pair {
    fn new() -> Self {
        Self::with(Orb::builder())
    }

    fn with(builder: OrbBuilder) -> Self {
        let (serving, slot) = Orb::builder().orb_id("the-orb").server_id("the-server").allocate_slot();
        let server = Server::with(serving.server_request_interceptor(Receiver { slot }).unwrap());
        let received = Arc::<Mutex<Vec<i32>>>::default();
        let (calling, slot) = builder.allocate_slot();
        let sender = Sender { slot, received: Arc::clone(&received) };
        let client = calling.client_request_interceptor(sender).unwrap().build().unwrap();
        let target = client.string_to_object(&server.ior()).unwrap().unchecked_narrow();
        Self { server, client, target, slot, received }
    }

    fn received(&self) -> Vec<i32> {
        std::mem::take(&mut self.received.lock().unwrap())
    }
}

// 16.4.4: from the thread's slot to the request, in a service context to the server, into the request's slot,
// and back.
#[test]
fn a_slot_value_is_sent_to_the_server_and_back_in_service_contexts() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let pair = Pair::with(Orb::builder().giop_version(version));
        pair.target.ping().unwrap();
        assert_eq!(pair.received(), [0; 0], "nothing is set");
        pair.client.pi_current().set_slot(pair.slot, any(41)).unwrap();
        assert_eq!(pair.target.add(1, 2).unwrap(), 3);
        assert_eq!(pair.target.echo("text").unwrap(), "text");
        assert_eq!(pair.received(), [41, 41]);
        std::thread::scope(|scope| scope.spawn(|| pair.target.ping().unwrap()).join().unwrap());
        assert_eq!(pair.received(), [0; 0], "another thread has other slots");
        pair.target.refuse(9).unwrap_err();
        assert_eq!(pair.received(), [9], "the code of the extracted exception");
        pair.server.orb.pi_current().slot(0).unwrap();
    }
}

// The slots are copied when the request is made (16.4.4.1), whichever thread receives the reply.
#[test]
fn asynchronous_requests_have_the_slots_of_their_calling_thread() {
    let pair = Pair::new();
    let current = pair.client.pi_current();
    current.set_slot(pair.slot, any(1)).unwrap();
    let first = pair.target.add_async(1, 1);
    current.set_slot(pair.slot, any(2)).unwrap();
    let second = pair.target.add_async(2, 2);
    current.set_slot(pair.slot, Any::default()).unwrap();
    assert_eq!((block_on(first).unwrap(), block_on(second).unwrap()), (2, 4));
    let mut received = pair.received();
    received.sort_unstable();
    assert_eq!(received, [1, 2]);
}

// 16.7.2.11.
#[test]
fn an_unallocated_slot_is_refused() {
    let current = Orb::builder().build().unwrap().pi_current();
    assert_eq!(current.slot(0), Err(InvalidSlot(0)));
    assert_eq!(current.set_slot(0, any(1)), Err(InvalidSlot(0)));
}

// 16.4.4.2: the servant's thread has a copy of the request's slots, which becomes the request's again at the
// end.
#[test]
fn a_servant_reads_and_changes_the_slots_of_its_request() {
    let pair = Pair::new();
    let orb = &pair.server.orb;
    let slots = Arc::<Mutex<Vec<Option<i32>>>>::default();
    let (current, recorder) = (orb.pi_current(), Arc::clone(&slots));
    // Records the slot of its thread, and changes it.
    let changing = servant(move |_, call| {
        recorder.lock().unwrap().push(value(&current.slot(0).unwrap()));
        current.set_slot(0, any(99)).unwrap();
        call.reply(|_| Ok(()))
    });
    let object = pair.server.poa.activate(changing).unwrap();
    let target: Target = pair.client.string_to_object(&object.to_string()).unwrap().unchecked_narrow();
    pair.client.pi_current().set_slot(pair.slot, any(5)).unwrap();
    target.ping().unwrap();
    pair.client.pi_current().set_slot(pair.slot, Any::default()).unwrap();
    target.ping().unwrap();
    assert_eq!(*slots.lock().unwrap(), [Some(5), None], "slots do not persist between requests");
    assert_eq!(pair.received(), [99, 99]);
}

/// Makes a call for each request except its own, which it marks in its thread's slot (16.4.4.4).
struct Recursive {
    slot: SlotId,
    other: Mutex<Option<Target>>,
}

impl Interceptor for Recursive {}

impl ClientRequestInterceptor for Recursive {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        if value(&info.slot(self.slot).unwrap()).is_some() {
            return Ok(());
        }
        let current = info.target().orb().pi_current();
        current.set_slot(self.slot, any(1)).unwrap();
        // 16.4.4.4: the request has the slots of its thread at the time of the call, not the present ones.
        assert_eq!(info.slot(self.slot), Ok(Any::default()));
        let other = self.other.lock().unwrap().clone();
        let counted = other.map(|other| other.note(&[7]));
        current.set_slot(self.slot, Any::default()).unwrap();
        counted.transpose()?;
        Ok(())
    }
}

#[test]
fn an_interceptor_may_make_calls() {
    let server = Server::start();
    let (builder, slot) = Orb::builder().allocate_slot();
    let recursive = Arc::new(Recursive { slot, other: Mutex::default() });
    let orb = builder.client_request_interceptor(Shared(Arc::clone(&recursive))).unwrap().build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    *recursive.other.lock().unwrap() = Some(target.clone());
    target.ping().unwrap();
    assert_eq!(target.count().unwrap(), 2, "one note for the ping and one for this call");
    block_on(target.ping_async()).unwrap();
    assert_eq!(server.client().count().unwrap(), 3);
}

/// An interceptor that the test shares with the ORB.
struct Shared<I>(Arc<I>);

impl<I: Interceptor> Interceptor for Shared<I> {
    fn name(&self) -> &str {
        self.0.name()
    }
}

impl<I: ClientRequestInterceptor> ClientRequestInterceptor for Shared<I> {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.send_request(info)
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        self.0.receive_reply(info)
    }
}

/// Records the effective profile of each request.
#[derive(Default)]
struct EffectiveTargetRecorder(Mutex<Vec<(u16, bool)>>);

impl Interceptor for EffectiveTargetRecorder {}

impl ClientRequestInterceptor for EffectiveTargetRecorder {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let profile = IiopProfile::decode(&info.effective_profile()?).unwrap().unwrap();
        let is_target = info.effective_target() == *info.target();
        self.0.lock().unwrap().push((profile.port, is_target));
        assert_eq!(info.effective_component(0)?.tag, 0);
        assert_eq!(info.effective_components(1)?.len(), 1);
        assert_eq!(info.effective_component(4711).unwrap_err().minor(), minor::NO_SUCH_COMPONENT);
        assert_eq!(info.request_policy(23)?.value(), Some(&RebindPolicy::Transparent));
        assert_eq!(info.request_policy(4711).unwrap_err().kind(), SystemExceptionKind::InvPolicy);
        assert_eq!(info.response_expected(), info.operation() != "note");
        assert_eq!(info.sync_scope()? == SyncScopePolicy::WithTransport, info.operation() == "note");
        Ok(())
    }
}

// 16.3.13.1 to 16.3.13.3: `target` is the invoked object; `effective_target` is the present destination.
#[test]
fn an_interceptor_sees_target_and_effective_target() {
    let (old, new) = (Server::start(), Server::start());
    let recorder = Arc::new(EffectiveTargetRecorder::default());
    let orb = Orb::builder().client_request_interceptor(Shared(Arc::clone(&recorder))).unwrap().build().unwrap();
    let target: Target = orb.string_to_object(&old.ior()).unwrap().unchecked_narrow();
    target.note(&[7]).unwrap();
    old.poa.forward(&old.object, old.orb.reference(new.object.ior().clone())).unwrap();
    target.ping().unwrap();
    target.ping().unwrap();
    let (old, new) = (old.port(), new.port());
    assert_eq!(*recorder.0.lock().unwrap(), [(old, true), (old, true), (new, false), (new, false)]);
}

/// Registers interceptors in both phases.
struct RegisteringInitializer(Arc<Mutex<Vec<String>>>);

impl OrbInitializer for RegisteringInitializer {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        assert_eq!((info.allocate_slot_id(), info.allocate_slot_id()), (0, 1));
        assert_eq!(info.orb_id(), "the-orb");
        info.add_client_request_interceptor(RaisingInterceptor("early"))?;
        assert_eq!(info.add_client_request_interceptor(RaisingInterceptor("early")).unwrap_err().0, "early");
        let object = Orb::builder().build().unwrap().string_to_object("corbaloc::localhost:1/key").unwrap();
        info.register_initial_reference("Something", &object).unwrap();
        let again = info.register_initial_reference("Something", &object);
        assert!(matches!(again, Err(InvalidName::Registered(_))));
        assert_unavailable(info.resolve_initial_references("Something"));
        info.codec_factory().create_codec(Encoding::cdr_encaps(GiopVersion::V1_2)).unwrap();
        self.0.lock().unwrap().push("pre".to_owned());
        Ok(())
    }

    fn post_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        info.resolve_initial_references("Something")?;
        info.add_client_request_interceptor(RaisingInterceptor("late"))?;
        self.0.lock().unwrap().push("post".to_owned());
        Ok(())
    }
}

struct RaisingInterceptor(&'static str);

impl Interceptor for RaisingInterceptor {
    fn name(&self) -> &str {
        self.0
    }
}

impl ClientRequestInterceptor for RaisingInterceptor {
    fn send_request(&self, _: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        Err(SystemException::no_permission(u32::try_from(self.0.len()).unwrap(), CompletionStatus::No).into())
    }
}

/// Raises NO_PERMISSION in `post_init`.
struct FailingInitializer;

impl OrbInitializer for FailingInitializer {
    fn post_init(&self, _: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        Err(SystemException::no_permission(3, CompletionStatus::No))
    }
}

// 16.7.1: pre_init of all initializers, then post_init of all; an exception prevents the creation of the ORB.
#[test]
fn initializers_run_in_two_phases_and_may_register_interceptors() {
    let phases = Arc::<Mutex<Vec<String>>>::default();
    let builder = || Orb::builder().orb_id("the-orb").initializer(RegisteringInitializer(Arc::clone(&phases)));
    let orb = builder().initializer(PhaseCounter(Arc::clone(&phases))).build().unwrap();
    assert_eq!(*phases.lock().unwrap(), ["pre", "1", "post"]);
    orb.pi_current().set_slot(1, any(1)).unwrap();
    let target: Target = orb.resolve_initial_references("Something").unwrap().unchecked_narrow();
    assert_eq!(target.ping().unwrap_err().minor(), 5, "`early` comes first");
    assert_eq!(builder().initializer(FailingInitializer).build().unwrap_err().minor(), 3);
}

/// Records how many phases preceded its own.
struct PhaseCounter(Arc<Mutex<Vec<String>>>);

impl OrbInitializer for PhaseCounter {
    fn pre_init(&self, _: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        let mut phases = self.0.lock().unwrap();
        let count = phases.len();
        phases.push(count.to_string());
        Ok(())
    }
}

// Collocated calls pass the interceptors of both sides with every collocation strategy.
#[test]
fn collocated_calls_are_intercepted() {
    let (builder, slot) = Orb::builder().orb_id("the-orb").server_id("the-server").allocate_slot();
    let received = Arc::<Mutex<Vec<i32>>>::default();
    let sender = Sender { slot, received: Arc::clone(&received) };
    let builder = builder.client_request_interceptor(sender).unwrap();
    let orb = builder.server_request_interceptor(Receiver { slot }).unwrap().build().unwrap();
    let poa = Poa::root(&orb).unwrap();
    let object: ObjectRef = poa.activate(TargetSkeleton::new(Arc::new(Probe::new(&orb)))).unwrap();
    let target: Target = object.unchecked_narrow();
    orb.pi_current().set_slot(slot, any(6)).unwrap();
    assert_eq!(target.add(2, 3).unwrap(), 5);
    assert_eq!(*received.lock().unwrap(), [6]);
    assert_eq!(value(&orb.pi_current().slot(slot).unwrap()), Some(6), "the caller's slots are restored");
    orb.shutdown().unwrap();
}

/// Records arguments, exceptions and results of dynamic requests.
#[derive(Default)]
struct AttributeRecorder(Mutex<Vec<String>>);

impl Interceptor for AttributeRecorder {}

impl ClientRequestInterceptor for AttributeRecorder {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let entry = match info.arguments() {
            Ok(arguments) => {
                let values = arguments.iter().map(|one| (one.mode, value(one.argument.as_ref().unwrap()).unwrap()));
                let exceptions = info.exceptions()?.len();
                format!("{} {:?} {exceptions}", info.operation(), values.collect::<Vec<_>>())
            }
            Err(refused) => format!("{} {}", info.operation(), refused.kind().name()),
        };
        self.0.lock().unwrap().push(entry);
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        if let Ok(result) = info.result() {
            self.0.lock().unwrap().push(format!("{:?} of {}", value(&result).unwrap(), info.arguments()?.len()));
        }
        Ok(())
    }
}

// 16.3.12.3 to 16.3.12.7: dynamic requests provide the attributes that stubs do not.
#[test]
fn dynamic_requests_provide_arguments_and_results() {
    let server = Server::start();
    let recorder = Arc::new(AttributeRecorder::default());
    let orb = Orb::builder().client_request_interceptor(Shared(Arc::clone(&recorder))).unwrap().build().unwrap();
    let target: Target = orb.string_to_object(&server.ior()).unwrap().unchecked_narrow();
    let mut request = target.as_object().request("add");
    request.add_in_arg(&40).unwrap().add_in_arg(&2).unwrap();
    request.set_return_type(spandrel::types::TypeCode::LONG).add_exception(Refused::type_code());
    request.invoke().unwrap();
    assert_eq!(request.return_value::<i32>().unwrap(), 42);
    request.send_deferred().unwrap();
    request.get_response().unwrap();
    target.add(1, 2).unwrap();
    let entries = std::mem::take(&mut *recorder.0.lock().unwrap());
    let (sent, answered) = ("add [(In, 40), (In, 2)] 1".to_owned(), "42 of 2".to_owned());
    assert_eq!(entries, [sent.clone(), answered.clone(), sent, answered, "add NO_RESOURCES".to_owned()]);
}
