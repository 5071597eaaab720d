//! Typed channels (Notification Service 1.1, 3.5): calls of an interface are events, and events of other forms are calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use spandrel::dynamic::{DescribedCall, DescribedServant, Descriptions, DynamicObject, NvList, RequestError, describe};
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PullSupplierServant, PushConsumerServant};
use spandrel::services::cos_notification::{Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::{EventChannel, InterFilterGroupOperator, ProxyType};
use spandrel::services::cos_notify_filter::{ConstraintExp, FilterFactory};
use spandrel::services::cos_typed_event_comm::{
    TypedPullSupplier, TypedPullSupplierServant, TypedPullSupplierSkeleton, TypedPushConsumer,
    TypedPushConsumerServant, TypedPushConsumerSkeleton,
};
use spandrel::services::cos_typed_notify_channel_admin::typed_consumer_admin::{
    ObtainTypedNotificationPullSupplierError, ObtainTypedNotificationPushSupplierError,
};
use spandrel::services::cos_typed_notify_channel_admin::{
    AlreadyConnectedOrTypeErrorError, TypedConsumerAdmin, TypedEventChannel, TypedEventChannelFactory,
    TypedProxyPushConsumer, TypedProxyPushSupplier, TypedSupplierAdmin, typed_consumer_admin, typed_event_channel,
    typed_event_channel_factory, typed_proxy_pull_consumer, typed_proxy_pull_supplier, typed_proxy_push_consumer,
    typed_proxy_push_supplier, typed_supplier_admin,
};
use spandrel::services::repository::fill;
use spandrel::types::{Any, Interface as _, TypeCode};
use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_notification::{NotificationOptions, NotificationService};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};
use spandrel_test_support::{raises, wait_until};

use crate::support::{Served, event_type, number, patient, pulling, supplier};

const IDL: &str = "
module Plant {
  interface Events { void stopped(in string unit); };
  interface Alarms : Events { void raised(in string unit, in long level); };
  interface PullEvents { void stopped(out string unit); boolean try_stopped(out string unit); };
  interface PullAlarms : PullEvents {
    void raised(out string unit, out long level);
    boolean try_raised(out string unit, out long level);
  };
  interface Returning { long raised(in string unit); };
};
";
const ALARMS: &str = "IDL:Plant/Alarms:1.0";
const PULL_ALARMS: &str = "IDL:Plant/PullAlarms:1.0";

/// A notification service with a typed channel and an interface repository.
struct Plant {
    idl: Descriptions,
    served: Served,
    channel: TypedEventChannel,
    repository: Option<InterfaceRepository>,
    repository_orb: Orb,
    _folder: tempfile::TempDir,
}

impl Plant {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listening = || Orb::builder().listen(Endpoint::new("127.0.0.1", 0));
        let repository_orb = listening().build().unwrap();
        let repository = InterfaceRepository::start(&repository_orb, RepositoryOptions::new(folder.path())).unwrap();
        let idl = describe(IDL).unwrap_or_else(|error| panic!("{error}"));
        fill(repository.reference(), &idl).unwrap();
        let orb = listening().init_ref("InterfaceRepository", repository.reference().to_string()).build().unwrap();
        let options = NotificationOptions { peers: patient(), ..NotificationOptions::default() };
        let service = Some(NotificationService::start(&orb, options).unwrap());
        let served = Served { client: listening().build().unwrap(), service, orb };
        let (channel, _) = typed_factory(&served).create_typed_channel(&[], &[]).unwrap();
        let channel = channel.unwrap();
        Self { idl, served, channel, repository: Some(repository), repository_orb, _folder: folder }
    }

    fn consumers(&self) -> TypedConsumerAdmin {
        self.channel.default_consumer_admin().unwrap().unwrap()
    }

    fn suppliers(&self) -> TypedSupplierAdmin {
        self.channel.default_supplier_admin().unwrap().unwrap()
    }

    /// The other face of the channel.
    fn untyped(&self) -> EventChannel {
        self.consumers().my_channel().unwrap().unwrap()
    }

    fn object(&self, object: Option<ObjectRef>, interface: &str) -> DynamicObject {
        DynamicObject::new(object.unwrap(), self.idl.interface(interface).unwrap())
    }

    /// A typed consumer of an interface with the text of its calls.
    fn consumer(&self, interface: &str) -> (TypedPushConsumer, Arc<Mutex<Vec<String>>>) {
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&calls);
        let run = move |call: &DescribedCall<'_>, arguments: &mut NvList| -> Result<Any, RequestError> {
            let mut text = call.operation.name.clone();
            for argument in arguments.iter().filter_map(|item| item.value.as_ref()) {
                text += &argument
                    .extract::<String>()
                    .map_or_else(|_| format!(" {}", argument.extract::<i32>().unwrap()), |unit| format!(" {unit}"));
            }
            recorded.lock().unwrap().push(text);
            Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap())
        };
        let root = Poa::root(&self.served.client).unwrap();
        let typed = root.activate(DescribedServant::described(self.idl.interface(interface).unwrap(), run)).unwrap();
        let consumer = root.activate(TypedPushConsumerSkeleton::new(TypedPeer(typed))).unwrap();
        (consumer.unchecked_narrow(), calls)
    }

    fn connected(&self, interface: &str) -> (TypedProxyPushSupplier, Arc<Mutex<Vec<String>>>) {
        let (consumer, calls) = self.consumer(interface);
        let id = format!("IDL:{}:1.0", interface.replace("::", "/"));
        let proxy = self.consumers().obtain_typed_notification_push_supplier(&id).unwrap().0.unwrap();
        proxy.connect_typed_push_consumer(Some(&consumer)).unwrap();
        (proxy, calls)
    }

    /// A typed supplier that is pulled, with these stopped units.
    fn supplier(&self, units: &[&str]) -> TypedPullSupplier {
        let units: Mutex<VecDeque<String>> = Mutex::new(units.iter().map(|&unit| unit.to_owned()).collect());
        let run = move |call: &DescribedCall<'_>, arguments: &mut NvList| -> Result<Any, RequestError> {
            let unit = Some(&units).filter(|_| call.operation.name == "try_stopped");
            let unit = unit.and_then(|units| units.lock().unwrap().pop_front());
            let has_event = unit.is_some();
            let values = [Any::new(unit.unwrap_or_default()).unwrap(), Any::new(0_i32).unwrap()];
            for (item, value) in arguments.iter_mut().zip(values) {
                item.value = Some(value);
            }
            Ok(Any::new(has_event).unwrap())
        };
        let root = Poa::root(&self.served.client).unwrap();
        let interface = self.idl.interface("Plant::PullAlarms").unwrap();
        let typed = root.activate(DescribedServant::described(interface, run)).unwrap();
        root.activate(TypedPullSupplierSkeleton::new(TypedPeer(typed))).unwrap().unchecked_narrow()
    }

    /// A connected typed supplier: its proxy, and the object that it calls.
    fn alarms(&self) -> (TypedProxyPushConsumer, DynamicObject) {
        let proxy = self.suppliers().obtain_typed_notification_push_consumer(ALARMS).unwrap().0.unwrap();
        proxy.connect_typed_push_supplier(None).unwrap();
        let object = self.object(proxy.get_typed_consumer().unwrap(), "Plant::Alarms");
        (proxy, object)
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        if let Some(repository) = self.repository.take() {
            repository.stop().unwrap();
        }
        self.repository_orb.shutdown().unwrap();
    }
}

fn typed_factory(served: &Served) -> TypedEventChannelFactory {
    let (host, port) = served.orb.listen().unwrap()[0].clone();
    let url = format!("corbaloc::{host}:{port}/TypedNotificationService");
    served.client.string_to_object(&url).unwrap().narrow().unwrap()
}

/// A typed consumer or supplier whose untyped operations are not implemented.
struct TypedPeer(ObjectRef);

fn untyped() -> SystemException {
    SystemException::no_implement(0, CompletionStatus::No)
}

impl PushConsumerServant for TypedPeer {
    fn push(&self, _data: &Any) -> Result<(), PushError> {
        Err(untyped().into())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl TypedPushConsumerServant for TypedPeer {
    fn get_typed_consumer(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.0.clone()))
    }
}

impl PullSupplierServant for TypedPeer {
    fn pull(&self) -> Result<Any, PullError> {
        Err(untyped().into())
    }

    fn try_pull(&self) -> Result<(Any, bool), TryPullError> {
        Err(untyped().into())
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl TypedPullSupplierServant for TypedPeer {
    fn get_typed_supplier(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.0.clone()))
    }
}

fn text(value: &str) -> Any {
    Any::new(value).unwrap()
}

fn level(value: i32) -> Any {
    Any::new(value).unwrap()
}

/// The properties of the event of a call.
fn call(operation: &str, arguments: &[(&str, Any)]) -> Vec<Property> {
    let operation = [("operation", text(operation))];
    let properties = operation.iter().chain(arguments);
    properties.map(|(name, value)| Property { name: (*name).to_owned(), value: value.clone() }).collect()
}

fn is_refused<T>(outcome: Result<T, RequestError>, kind: SystemExceptionKind) -> bool {
    matches!(outcome, Err(RequestError::System(error)) if error.kind() == kind)
}

/// The translations between typed, structured and any events (Notification Service 1.1, 2.6 and 2.7).
#[test]
fn calls_are_events_in_each_form_and_events_are_calls() {
    let plant = Plant::start();
    let (alarm_proxy, alarms) = plant.connected("Plant::Alarms");
    let (_, events) = plant.connected("Plant::Events");
    assert_eq!(alarm_proxy.my_type().unwrap(), ProxyType::PushTyped);
    let structured = pulling(&plant.untyped());
    let values = plant.consumers().obtain_pull_supplier().unwrap().unwrap();
    values.connect_pull_consumer(None).unwrap();
    let (proxy, object) = plant.alarms();
    assert_eq!(proxy.my_type().unwrap(), ProxyType::PushTyped);
    object.call("stopped", &[text("pump")]).unwrap();
    object.call("raised", &[text("boiler"), level(7)]).unwrap();
    wait_until("the calls", || alarms.lock().unwrap().len() == 2 && events.lock().unwrap().len() == 1);
    assert_eq!(*alarms.lock().unwrap(), ["stopped pump", "raised boiler 7"]);
    assert_eq!(*events.lock().unwrap(), ["stopped pump"], "an event for consumers of the base");
    // The structured form has the type %TYPED, and the operation with its arguments as filterable data.
    let stopped = structured.pull_structured_event().unwrap();
    assert_eq!(stopped.header.fixed_header.event_type, event_type("", "%TYPED"));
    assert_eq!(stopped.filterable_data, call("::Plant::Events::stopped", &[("unit", text("pump"))]));
    let raised = call("::Plant::Alarms::raised", &[("unit", text("boiler")), ("level", level(7))]);
    assert_eq!(structured.pull_structured_event().unwrap().filterable_data, raised);
    // An `any` has the sequence of these properties.
    values.pull().unwrap();
    assert_eq!(values.pull().unwrap().extract::<Vec<Property>>().unwrap(), raised);
    // The same forms are calls for typed consumers; others are not.
    let pushes = supplier(&plant.untyped());
    let typed = StructuredEvent { filterable_data: raised.clone(), ..StructuredEvent::default() };
    let wrong_type = call("::Plant::Alarms::raised", &[("unit", text("boiler")), ("level", text("7"))]);
    let missing = call("::Plant::Alarms::raised", &[("unit", text("boiler"))]);
    let unknown = call("::Plant::Alarms::cleared", &[("unit", text("boiler"))]);
    for properties in [wrong_type, missing, unknown, Vec::new()] {
        pushes
            .push_structured_event(&StructuredEvent { filterable_data: properties, ..StructuredEvent::default() })
            .unwrap();
    }
    pushes.push_structured_event(&typed).unwrap();
    let supplies = plant.suppliers().obtain_push_consumer().unwrap().unwrap();
    supplies.connect_push_supplier(None).unwrap();
    supplies.push(&level(5)).unwrap();
    supplies.push(&Any::new(&raised).unwrap()).unwrap();
    object.call("stopped", &[text("valve")]).unwrap();
    wait_until("the last call", || alarms.lock().unwrap().last().is_some_and(|call| call == "stopped valve"));
    assert_eq!(alarms.lock().unwrap()[2..], ["raised boiler 7", "raised boiler 7", "stopped valve"]);
    // A suspended connection keeps its calls.
    alarm_proxy.suspend_connection().unwrap();
    object.call("stopped", &[text("fan")]).unwrap();
    wait_until("the base's call", || events.lock().unwrap().len() == 3);
    assert_eq!(alarms.lock().unwrap().len(), 5);
    alarm_proxy.resume_connection().unwrap();
    wait_until("the call after the pause", || alarms.lock().unwrap().len() == 6);
    proxy.disconnect_push_consumer().unwrap();
    assert!(is_refused(object.call("stopped", &[text("late")]), SystemExceptionKind::ObjectNotExist));
}

#[test]
fn filters_select_calls_by_their_arguments() {
    let plant = Plant::start();
    let (proxy, alarms) = plant.connected("Plant::Alarms");
    let factory: FilterFactory = plant.channel.default_filter_factory().unwrap().unwrap();
    let filter = factory.create_filter("EXTENDED_TCL").unwrap().unwrap();
    let event_types = vec![event_type("", "%TYPED")];
    let constraint_expr = "$operation == '::Plant::Alarms::raised' and $level > 5".to_owned();
    filter.add_constraints(&[ConstraintExp { event_types, constraint_expr }]).unwrap();
    proxy.add_filter(Some(&filter)).unwrap();
    let (_, object) = plant.alarms();
    for number in [3, 7, 9] {
        object.call("stopped", &[text("pump")]).unwrap();
        object.call("raised", &[text("boiler"), level(number)]).unwrap();
    }
    wait_until("the calls", || alarms.lock().unwrap().len() == 2);
    assert_eq!(*alarms.lock().unwrap(), ["raised boiler 7", "raised boiler 9"]);
    assert!(filter.match_typed(&call("::Plant::Alarms::raised", &[("level", level(6))])).unwrap());
}

#[test]
fn consumers_pull_by_operations_and_suppliers_are_pulled_by_them() {
    let plant = Plant::start();
    let (pulled, _) = plant.consumers().obtain_typed_notification_pull_supplier(PULL_ALARMS).unwrap();
    let pulled = pulled.unwrap();
    assert_eq!(pulled.my_type().unwrap(), ProxyType::PullTyped);
    let object = plant.object(pulled.get_typed_supplier().unwrap(), "Plant::PullAlarms");
    assert!(is_refused(object.call("try_stopped", &[]), SystemExceptionKind::BadInvOrder));
    pulled.connect_typed_pull_consumer(None).unwrap();
    let waiting = |operation: &'static str| {
        let object = object.clone();
        std::thread::spawn(move || object.call(operation, &[]))
    };
    let raised = waiting("raised");
    let (source, _) = plant.suppliers().obtain_typed_notification_pull_consumer(PULL_ALARMS).unwrap();
    let source = source.unwrap();
    assert_eq!(source.my_type().unwrap(), ProxyType::PullTyped);
    source.connect_typed_pull_supplier(Some(&plant.supplier(&["pump", "valve"]))).unwrap();
    // The wait for the other operation does not take the calls of this one.
    for unit in ["pump", "valve"] {
        assert_eq!(object.call("stopped", &[]).unwrap().out::<String>("unit").unwrap(), unit);
    }
    let (_, alarms) = plant.alarms();
    alarms.call("raised", &[text("boiler"), level(7)]).unwrap();
    let outcome = raised.join().unwrap().unwrap();
    assert_eq!((outcome.out("unit").unwrap(), outcome.out("level").unwrap()), ("boiler".to_owned(), 7_i32));
    let outcome = object.call("try_raised", &[]).unwrap();
    assert!(!outcome.result::<bool>().unwrap() && outcome.out::<String>("unit").unwrap().is_empty());
    source.suspend_connection().unwrap();
    source.resume_connection().unwrap();
    let stopped = waiting("stopped");
    pulled.disconnect_pull_supplier().unwrap();
    assert!(is_refused(stopped.join().unwrap(), SystemExceptionKind::ObjectNotExist));
}

/// The interfaces of typed channels of the event service are those of the same channel.
#[test]
fn peers_of_the_event_service_use_typed_channels() {
    let plant = Plant::start();
    let (alarms, calls) = plant.consumer("Plant::Alarms");
    let consumers = plant.channel.for_consumers().unwrap().unwrap();
    let proxy = consumers.obtain_typed_push_supplier(ALARMS).unwrap().unwrap();
    proxy.connect_push_consumer(Some(alarms.as_object().unchecked_narrow()).as_ref()).unwrap();
    let pulls = consumers.obtain_typed_pull_supplier(PULL_ALARMS).unwrap().unwrap();
    pulls.connect_pull_consumer(None).unwrap();
    let suppliers = plant.channel.for_suppliers().unwrap().unwrap();
    let source = suppliers.obtain_typed_pull_consumer(PULL_ALARMS).unwrap().unwrap();
    let supplier = plant.supplier(&["pump"]);
    source.connect_pull_supplier(Some(supplier.as_object().unchecked_narrow()).as_ref()).unwrap();
    let pushes = suppliers.obtain_typed_push_consumer(ALARMS).unwrap().unwrap();
    pushes.connect_push_supplier(None).unwrap();
    wait_until("the pulled event", || calls.lock().unwrap().len() == 1);
    let object = plant.object(pushes.get_typed_consumer().unwrap(), "Plant::Alarms");
    object.call("raised", &[text("boiler"), level(7)]).unwrap();
    wait_until("the calls", || calls.lock().unwrap().len() == 2);
    assert_eq!(*calls.lock().unwrap(), ["stopped pump", "raised boiler 7"]);
    let object = plant.object(pulls.get_typed_supplier().unwrap(), "Plant::PullAlarms");
    assert_eq!(object.call("raised", &[]).unwrap().out::<i32>("level").unwrap(), 7);
    assert_eq!(object.call("stopped", &[]).unwrap().out::<String>("unit").unwrap(), "pump");
}

#[test]
fn typed_channels_have_a_factory_and_administrators_and_refuse_other_interfaces() {
    let plant = Plant::start();
    let factory = typed_factory(&plant.served);
    let own = plant.channel.my_factory().unwrap().unwrap();
    assert_eq!(own.get_all_typed_channels().unwrap(), factory.get_all_typed_channels().unwrap());
    let [id] = factory.get_all_typed_channels().unwrap()[..] else { panic!("one channel") };
    assert!(factory.get_typed_event_channel(id).unwrap().unwrap().as_object().is_equivalent(plant.channel.as_object()));
    assert!(factory.get_typed_event_channel(id + 1).is_err());
    let (admin, id) = plant.channel.new_for_typed_notification_consumers(InterFilterGroupOperator::OrOp).unwrap();
    let admin = admin.unwrap();
    assert_eq!(admin.my_operator().unwrap(), InterFilterGroupOperator::OrOp);
    assert!(plant.channel.get_all_consumeradmins().unwrap().contains(&id));
    assert!(plant.channel.get_consumeradmin(id).unwrap().unwrap().as_object().is_equivalent(admin.as_object()));
    assert!(plant.channel.get_supplieradmin(id + 1).is_err());
    for id in ["IDL:Plant/Returning:1.0", "IDL:Plant/None:1.0", "Plant::Alarms:"] {
        let refused = admin.obtain_typed_notification_push_supplier(id);
        assert!(
            matches!(refused, Err(ObtainTypedNotificationPushSupplierError::NoSuchImplementation(_))),
            "{id}: {refused:?}"
        );
    }
    let refused = admin.obtain_typed_notification_pull_supplier(ALARMS);
    assert!(matches!(refused, Err(ObtainTypedNotificationPullSupplierError::InterfaceNotSupported(_))), "{refused:?}");
    // A consumer of the base is a type error, and leaves the proxy unconnected.
    let (proxy, proxy_id) = admin.obtain_typed_notification_push_supplier(ALARMS).unwrap();
    let proxy = proxy.unwrap();
    let refused = proxy.connect_typed_push_consumer(Some(&plant.consumer("Plant::Events").0));
    assert!(matches!(refused, Err(AlreadyConnectedOrTypeErrorError::TypeError(_))), "{refused:?}");
    proxy.connect_typed_push_consumer(Some(&plant.consumer("Plant::Alarms").0)).unwrap();
    let same = admin.get_proxy_supplier(proxy_id).unwrap().unwrap();
    assert!(same.as_object().is_equivalent(proxy.as_object()));
    admin.destroy().unwrap();
    assert!(admin.as_object().non_existent().unwrap_or(true));
    plant.channel.destroy().unwrap();
    assert!(factory.get_all_typed_channels().unwrap().is_empty());
    assert!(plant.channel.as_object().non_existent().unwrap_or(true));
}

#[test]
fn typed_proxies_raise_the_exceptions_of_the_connection() {
    let plant = Plant::start();
    let (pushes, _) = plant.alarms();
    let again = pushes.connect_typed_push_supplier(None);
    raises!(typed_proxy_push_consumer::ConnectTypedPushSupplierError::AlreadyConnected, again);
    let (pulled, _) = plant.consumers().obtain_typed_notification_pull_supplier(PULL_ALARMS).unwrap();
    let pulled = pulled.unwrap();
    pulled.connect_typed_pull_consumer(None).unwrap();
    let again = pulled.connect_typed_pull_consumer(None);
    raises!(typed_proxy_pull_supplier::ConnectTypedPullConsumerError::AlreadyConnected, again);
    macro_rules! check {
        ($errors:ident, $connect_error:ident, $proxy:expr, $connect:ident, $peer:expr, $wrong:expr) => {{
            let (proxy, peer) = ($proxy, $peer);
            raises!($errors::SuspendConnectionError::NotConnected, proxy.suspend_connection());
            raises!($errors::ResumeConnectionError::NotConnected, proxy.resume_connection());
            raises!($errors::$connect_error::TypeError, proxy.$connect(Some(&$wrong)));
            proxy.$connect(Some(&peer)).unwrap();
            raises!($errors::$connect_error::AlreadyConnected, proxy.$connect(Some(&peer)));
            raises!($errors::ResumeConnectionError::ConnectionAlreadyActive, proxy.resume_connection());
            proxy.suspend_connection().unwrap();
            raises!($errors::SuspendConnectionError::ConnectionAlreadyInactive, proxy.suspend_connection());
        }};
    }
    let ((consumer, _), (other, _)) = (plant.consumer("Plant::Alarms"), plant.consumer("Plant::Events"));
    let (proxy, _) = plant.consumers().obtain_typed_notification_push_supplier(ALARMS).unwrap();
    check!(
        typed_proxy_push_supplier,
        ConnectTypedPushConsumerError,
        proxy.unwrap(),
        connect_typed_push_consumer,
        consumer,
        other
    );
    let wrong: TypedPullSupplier = other.as_object().unchecked_narrow();
    let (proxy, _) = plant.suppliers().obtain_typed_notification_pull_consumer(PULL_ALARMS).unwrap();
    check!(
        typed_proxy_pull_consumer,
        ConnectTypedPullSupplierError,
        proxy.unwrap(),
        connect_typed_pull_supplier,
        plant.supplier(&[]),
        wrong
    );
}

#[test]
fn typed_administrators_raise_the_exceptions_of_interfaces_ids_and_limits() {
    let plant = Plant::start();
    let (consumers, suppliers) = (plant.consumers(), plant.suppliers());
    let refused = consumers.obtain_typed_notification_pull_supplier(ALARMS);
    raises!(typed_consumer_admin::ObtainTypedNotificationPullSupplierError::InterfaceNotSupported, refused);
    let refused = consumers.obtain_typed_notification_push_supplier(PULL_ALARMS);
    raises!(typed_consumer_admin::ObtainTypedNotificationPushSupplierError::NoSuchImplementation, refused);
    let refused = suppliers.obtain_typed_notification_push_consumer(PULL_ALARMS);
    raises!(typed_supplier_admin::ObtainTypedNotificationPushConsumerError::InterfaceNotSupported, refused);
    let refused = suppliers.obtain_typed_notification_pull_consumer(ALARMS);
    raises!(typed_supplier_admin::ObtainTypedNotificationPullConsumerError::NoSuchImplementation, refused);
    let _connected = (plant.connected("Plant::Alarms"), plant.alarms());
    plant.channel.set_admin(&[number("MaxConsumers", 1), number("MaxSuppliers", 1)]).unwrap();
    let refused = consumers.obtain_typed_notification_pull_supplier(PULL_ALARMS);
    raises!(typed_consumer_admin::ObtainTypedNotificationPullSupplierError::AdminLimitExceeded, refused);
    let refused = consumers.obtain_typed_notification_push_supplier(ALARMS);
    raises!(typed_consumer_admin::ObtainTypedNotificationPushSupplierError::AdminLimitExceeded, refused);
    let refused = suppliers.obtain_typed_notification_push_consumer(ALARMS);
    raises!(typed_supplier_admin::ObtainTypedNotificationPushConsumerError::AdminLimitExceeded, refused);
    let refused = suppliers.obtain_typed_notification_pull_consumer(PULL_ALARMS);
    raises!(typed_supplier_admin::ObtainTypedNotificationPullConsumerError::AdminLimitExceeded, refused);
    raises!(typed_event_channel::GetConsumeradminError::AdminNotFound, plant.channel.get_consumeradmin(77));
    raises!(typed_event_channel::GetSupplieradminError::AdminNotFound, plant.channel.get_supplieradmin(77));
    let factory = typed_factory(&plant.served);
    let unknown = [number("Colour", 1)];
    let created = factory.create_typed_channel(&unknown, &[]);
    raises!(typed_event_channel_factory::CreateTypedChannelError::UnsupportedQoS, created);
    let created = factory.create_typed_channel(&[], &unknown);
    raises!(typed_event_channel_factory::CreateTypedChannelError::UnsupportedAdmin, created);
    let absent = factory.get_typed_event_channel(77);
    raises!(typed_event_channel_factory::GetTypedEventChannelError::ChannelNotFound, absent);
}
