//! Typed channels: suppliers call operations of an interface, and the channel calls them on its consumers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use spandrel::dynamic::{
    DescribedCall, DescribedServant, Descriptions, DynAny, DynamicObject, NvList, RequestError, describe,
};
use spandrel::services::cos_event_channel_admin::ProxyPushSupplier;
use spandrel::services::cos_event_channel_admin::proxy_pull_consumer::ConnectPullSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PullSupplier, PullSupplierServant, PushConsumer, PushConsumerServant};
use spandrel::services::cos_typed_event_channel_admin::{
    InterfaceNotSupportedError, NoSuchImplementationError, TypedEventChannel,
};
use spandrel::services::cos_typed_event_comm::{
    TypedPullSupplierServant, TypedPullSupplierSkeleton, TypedPushConsumerServant, TypedPushConsumerSkeleton,
};
use spandrel::services::repository::fill;
use spandrel::types::{Any, Interface as _, TypeCode};
use spandrel::{Endpoint, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_delivery::ConnectionCell;
use spandrel_event::{EventOptions, EventService};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};
use spandrel_test_support::wait_until;

use crate::support::{patient, supplier};

const IDL: &str = "
module Plant {
  enum Severity { minor, major };
  struct Place { string unit; long floor; };
  interface Events { void stopped(in string unit); };
  interface Alarms : Events { oneway void raised(in Place place, in Severity how_bad, in sequence<long> levels); };
  interface Returning { long raised(in string unit); };
  interface Answering { void raised(out string unit); };
  interface Raising { exception Refused {}; void raised(in string unit) raises (Refused); };
  interface Keeping { attribute long level; };
  interface PullEvents { void stopped(out string unit); boolean try_stopped(out string unit); };
  interface PullAlarms : PullEvents {
    void raised(out Place where, out Severity how_bad, out sequence<long> levels);
    boolean try_raised(out Place where, out Severity how_bad, out sequence<long> levels);
  };
  interface Waiting { void stopped(in string unit); };
  interface PullWaiting { void stopped(out string unit); };
  interface Other { void stopped(in string unit); };
  interface PullOther { void stopped(out long unit); boolean try_stopped(out long unit); };
  interface PullReturning { void raised(out string unit); boolean try_raised(out string unit); };
  interface PullAlone { void stopped(out string unit); boolean try_stopped(out string unit); };
};
";
const ALARMS: &str = "IDL:Plant/Alarms:1.0";
const EVENTS: &str = "IDL:Plant/Events:1.0";
const PULL_ALARMS: &str = "IDL:Plant/PullAlarms:1.0";

/// An event service with the channel `Alarms`, an interface repository, and the ORB of clients.
struct Plant {
    idl: Descriptions,
    client: Orb,
    orb: Orb,
    service: Option<EventService>,
    repository: Option<InterfaceRepository>,
    repository_orb: Orb,
    _folder: tempfile::TempDir,
}

impl Plant {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listening = || Orb::builder().listen(Endpoint::new("127.0.0.1", 0));
        let repository_orb = listening().build().unwrap();
        let options = RepositoryOptions::new(folder.path());
        let repository = InterfaceRepository::start(&repository_orb, options).unwrap();
        let idl = describe(IDL).unwrap_or_else(|error| panic!("{error}"));
        fill(repository.reference(), &idl).unwrap();
        let orb = listening().init_ref("InterfaceRepository", repository.reference().to_string()).build().unwrap();
        let service = EventService::start(&orb, EventOptions { peers: patient(), ..EventOptions::default() }).unwrap();
        let client = listening().build().unwrap();
        service.channel("Alarms").unwrap();
        let repository = Some(repository);
        Self { idl, client, orb, service: Some(service), repository, repository_orb, _folder: folder }
    }

    fn url(&self, key: &str) -> ObjectRef {
        let (host, port) = self.orb.listen().unwrap()[0].clone();
        self.client.string_to_object(&format!("corbaloc::{host}:{port}/{key}")).unwrap()
    }

    fn channel(&self) -> TypedEventChannel {
        self.url("Alarms/typed").narrow().unwrap()
    }

    fn interface(&self, name: &str) -> spandrel::dynamic::InterfaceDescription {
        self.idl.interface(name).unwrap()
    }

    /// A typed consumer of an interface with the text of its calls.
    fn consumer(&self, interface: &str) -> (PushConsumer, Arc<Mutex<Vec<String>>>) {
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&calls);
        let run = move |call: &DescribedCall<'_>, arguments: &mut NvList| -> Result<Any, RequestError> {
            let texts: Vec<String> = arguments.iter().filter_map(|it| Some(text(it.value.as_ref()?))).collect();
            recorded.lock().unwrap().push(format!("{} {}", call.operation.name, texts.join(" ")));
            Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap())
        };
        let root = Poa::root(&self.client).unwrap();
        let typed = root.activate(DescribedServant::described(self.interface(interface), run)).unwrap();
        let consumer = root.activate(TypedPushConsumerSkeleton::new(TypedConsumer(typed))).unwrap();
        (consumer.unchecked_narrow(), calls)
    }

    /// A typed supplier of `PullAlarms` with these stopped units, and one alarm at first.
    fn supplier(&self, units: &[&str]) -> PullSupplier {
        let units: Mutex<VecDeque<String>> = Mutex::new(units.iter().map(|&unit| unit.to_owned()).collect());
        let alarm = Mutex::new(Some([plant_location(self, "boiler", 3), major(self), Any::new(vec![7_i32]).unwrap()]));
        let type_codes = [self.idl.type_code("Plant::Place").unwrap(), self.idl.type_code("Plant::Severity").unwrap()];
        let run = move |call: &DescribedCall<'_>, arguments: &mut NvList| -> Result<Any, RequestError> {
            let values = match &*call.operation.name {
                "try_stopped" => units.lock().unwrap().pop_front().map(|unit| vec![Any::new(unit).unwrap()]),
                "try_raised" => alarm.lock().unwrap().take().map(Vec::from),
                other => panic!("`{other}` waits"),
            };
            let has_event = values.is_some();
            let empty = || match &*call.operation.name {
                "try_stopped" => vec![Any::new("").unwrap()],
                _ => {
                    let mut values: Vec<Any> =
                        type_codes.iter().map(|it| DynAny::of_type(it).unwrap().to_any().unwrap()).collect();
                    values.push(Any::new(Vec::<i32>::new()).unwrap());
                    values
                }
            };
            for (item, value) in arguments.iter_mut().zip(values.unwrap_or_else(empty)) {
                item.value = Some(value);
            }
            Ok(Any::new(has_event).unwrap())
        };
        let root = Poa::root(&self.client).unwrap();
        let typed = root.activate(DescribedServant::described(self.interface("Plant::PullAlarms"), run)).unwrap();
        root.activate(TypedPullSupplierSkeleton::new(TypedSupplier(typed))).unwrap().unchecked_narrow()
    }

    fn proxy(&self, interface: &str) -> ProxyPushSupplier {
        self.channel().for_consumers().unwrap().unwrap().obtain_typed_push_supplier(interface).unwrap().unwrap()
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        self.client.shutdown().unwrap();
        self.service.take().unwrap().stop().unwrap();
        self.orb.shutdown().unwrap();
        if let Some(repository) = self.repository.take() {
            repository.stop().unwrap();
        }
        self.repository_orb.shutdown().unwrap();
    }
}

struct TypedConsumer(ObjectRef);

impl PushConsumerServant for TypedConsumer {
    fn push(&self, _data: &Any) -> Result<(), PushError> {
        Err(SystemException::no_implement(0, spandrel::CompletionStatus::No).into())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl TypedPushConsumerServant for TypedConsumer {
    fn get_typed_consumer(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.0.clone()))
    }
}

struct TypedSupplier(ObjectRef);

impl PullSupplierServant for TypedSupplier {
    fn pull(&self) -> Result<Any, PullError> {
        Err(SystemException::no_implement(0, spandrel::CompletionStatus::No).into())
    }

    fn try_pull(&self) -> Result<(Any, bool), TryPullError> {
        Err(SystemException::no_implement(0, spandrel::CompletionStatus::No).into())
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl TypedPullSupplierServant for TypedSupplier {
    fn get_typed_supplier(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.0.clone()))
    }
}

fn text(value: &Any) -> String {
    DynAny::new(value).unwrap().to_json().unwrap()
}

fn plant_location(plant: &Plant, unit: &str, floor: i32) -> Any {
    let text = format!("{{\"unit\":\"{unit}\",\"floor\":{floor}}}");
    let type_code = plant.idl.type_code("Plant::Place").unwrap();
    DynAny::from_text(&type_code, &text).unwrap().to_any().unwrap()
}

fn major(plant: &Plant) -> Any {
    let type_code = plant.idl.type_code("Plant::Severity").unwrap();
    DynAny::from_text(&type_code, "\"major\"").unwrap().to_any().unwrap()
}

#[test]
fn calls_of_typed_suppliers_are_calls_of_typed_consumers() {
    let plant = Plant::start();
    let channel = plant.channel();
    let (alarms, alarm_calls) = plant.consumer("Plant::Alarms");
    let (events, event_calls) = plant.consumer("Plant::Events");
    plant.proxy(ALARMS).connect_push_consumer(Some(&alarms)).unwrap();
    plant.proxy(EVENTS).connect_push_consumer(Some(&events)).unwrap();
    // An untyped consumer of the same channel.
    let untyped = channel.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap().unwrap();
    untyped.connect_pull_consumer(None).unwrap();
    let suppliers = channel.for_suppliers().unwrap().unwrap();
    let proxy = suppliers.obtain_typed_push_consumer(ALARMS).unwrap().unwrap();
    let object = proxy.get_typed_consumer().unwrap().unwrap();
    assert!(object.is_a(ALARMS).unwrap() && object.is_a(EVENTS).unwrap());
    let typed = DynamicObject::new(object, plant.interface("Plant::Alarms"));
    let stop = |unit: &str| typed.call("stopped", &[Any::new(unit).unwrap()]);
    let Err(RequestError::System(error)) = stop("early") else { panic!("the supplier is not connected") };
    assert_eq!(error.kind(), SystemExceptionKind::BadInvOrder);
    proxy.connect_push_supplier(None).unwrap();
    stop("pump").unwrap();
    let levels = Any::new(vec![7_i32, 8]).unwrap();
    typed.call("raised", &[plant_location(&plant, "boiler", 3), major(&plant), levels]).unwrap();
    wait_until("the one-way call", || untyped.try_pull().unwrap().0.type_code().name() == Ok("raised"));
    // Untyped events are not for typed consumers.
    let plain = plant.service.as_ref().unwrap().channel("Alarms").unwrap().to_string();
    supplier(&plant.client.string_to_object(&plain).unwrap().narrow().unwrap())
        .push(&Any::new(5_i32).unwrap())
        .unwrap();
    proxy.push(&Any::new(6_i32).unwrap()).unwrap();
    stop("valve").unwrap();
    wait_until("all calls", || alarm_calls.lock().unwrap().len() == 3 && event_calls.lock().unwrap().len() == 2);
    let calls = alarm_calls.lock().unwrap().clone();
    assert_eq!((&*calls[0], &*calls[2]), ("stopped \"pump\"", "stopped \"valve\""), "{calls:?}");
    assert!(calls[1].starts_with("raised ") && calls[1].contains("boiler") && calls[1].contains("major"), "{calls:?}");
    assert_eq!(*event_calls.lock().unwrap(), ["stopped \"pump\"", "stopped \"valve\""]);
    // The value of a call is a structure of its arguments.
    let values: Vec<Any> =
        std::iter::from_fn(|| Some(untyped.try_pull().unwrap()).filter(|it| it.1)).map(|it| it.0).collect();
    let last = values.last().unwrap().type_code();
    assert_eq!((last.id().unwrap(), last.member_name(0).unwrap()), ("IDL:Plant/Alarms/stopped:1.0", "unit"));
    assert_eq!(values.len(), 3, "{values:?}");
    // After the end of the proxy there is no object for calls.
    proxy.disconnect_push_consumer().unwrap();
    let Err(RequestError::System(error)) = stop("late") else { panic!("the proxy has ended") };
    assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist);
    channel.destroy().unwrap();
    assert!(plant.url("Alarms").non_existent().unwrap_or(true));
    wait_until("the end of deliveries", || plant.service.as_ref().unwrap().event_octets() == 0);
}

#[test]
fn interfaces_that_are_no_events_and_consumers_of_others_are_refused() {
    let plant = Plant::start();
    let channel = plant.channel();
    let (consumers, suppliers) = (channel.for_consumers().unwrap().unwrap(), channel.for_suppliers().unwrap().unwrap());
    for name in ["Returning", "Answering", "Raising", "Keeping", "None"] {
        let id = format!("IDL:Plant/{name}:1.0");
        let refused = suppliers.obtain_typed_push_consumer(&id);
        assert!(matches!(refused, Err(InterfaceNotSupportedError::InterfaceNotSupported(_))), "{id}: {refused:?}");
        let refused = consumers.obtain_typed_push_supplier(&id);
        assert!(matches!(refused, Err(NoSuchImplementationError::NoSuchImplementation(_))), "{id}: {refused:?}");
    }
    for name in ["Alarms", "Pull", "PullWaiting", "PullOther", "PullReturning", "PullAlone", "PullNone"] {
        let id = format!("IDL:Plant/{name}:1.0");
        let refused = consumers.obtain_typed_pull_supplier(&id);
        assert!(matches!(refused, Err(InterfaceNotSupportedError::InterfaceNotSupported(_))), "{id}: {refused:?}");
        let refused = suppliers.obtain_typed_pull_consumer(&id);
        assert!(matches!(refused, Err(NoSuchImplementationError::NoSuchImplementation(_))), "{id}: {refused:?}");
    }
    // A consumer of the base, and one that is not typed, are type errors.
    let (events, _) = plant.consumer("Plant::Events");
    let root = Poa::root(&plant.client).unwrap();
    let untyped = root.activate(spandrel::services::cos_event_comm::PushConsumerSkeleton::new(TypedConsumer(
        events.as_object().clone(),
    )));
    let proxy = plant.proxy(ALARMS);
    for consumer in [events.as_object().clone(), untyped.unwrap()] {
        let refused = proxy.connect_push_consumer(Some(&consumer.unchecked_narrow()));
        assert!(matches!(refused, Err(ConnectPushConsumerError::TypeError(_))), "{refused:?}");
    }
    let (alarms, _) = plant.consumer("Plant::Alarms");
    proxy.connect_push_consumer(Some(&alarms)).unwrap();
}

#[test]
fn consumers_pull_each_operation_of_typed_suppliers() {
    let plant = Plant::start();
    let channel = plant.channel();
    let consumers = channel.for_consumers().unwrap().unwrap();
    let proxy = consumers.obtain_typed_pull_supplier(PULL_ALARMS).unwrap().unwrap();
    let object = proxy.get_typed_supplier().unwrap().unwrap();
    assert!(object.is_a(PULL_ALARMS).unwrap() && object.is_a("IDL:Plant/PullEvents:1.0").unwrap());
    let pulled = DynamicObject::new(object, plant.interface("Plant::PullAlarms"));
    let Err(RequestError::System(error)) = pulled.call("try_stopped", &[]) else { panic!("it is not connected") };
    assert_eq!(error.kind(), SystemExceptionKind::BadInvOrder);
    proxy.connect_pull_consumer(None).unwrap();
    let waiting = |operation: &'static str| {
        let pulled = pulled.clone();
        std::thread::spawn(move || pulled.call(operation, &[]))
    };
    let raised = waiting("raised");
    let suppliers = channel.for_suppliers().unwrap().unwrap();
    let push = suppliers.obtain_typed_push_consumer(ALARMS).unwrap().unwrap();
    push.connect_push_supplier(None).unwrap();
    let typed = DynamicObject::new(push.get_typed_consumer().unwrap().unwrap(), plant.interface("Plant::Alarms"));
    // The call that waits for the other operation does not take it.
    typed.call("stopped", &[Any::new("pump").unwrap()]).unwrap();
    typed.call("stopped", &[Any::new("valve").unwrap()]).unwrap();
    let levels = Any::new(vec![7_i32, 8]).unwrap();
    typed.call("raised", &[plant_location(&plant, "boiler", 3), major(&plant), levels]).unwrap();
    let outcome = raised.join().unwrap().unwrap();
    assert!(text(outcome.outs[0].value.as_ref().unwrap()).contains("boiler"));
    assert_eq!(outcome.out::<Vec<i32>>("levels").unwrap(), [7, 8]);
    let outcome = pulled.call("try_raised", &[]).unwrap();
    assert!(!outcome.result::<bool>().unwrap());
    assert_eq!(outcome.out::<Vec<i32>>("levels").unwrap(), [0_i32; 0]);
    assert_eq!(pulled.call("stopped", &[]).unwrap().out::<String>("unit").unwrap(), "pump");
    let outcome = pulled.call("try_stopped", &[]).unwrap();
    assert!(outcome.result::<bool>().unwrap());
    assert_eq!(outcome.out::<String>("unit").unwrap(), "valve");
    assert!(!pulled.call("try_stopped", &[]).unwrap().result::<bool>().unwrap());
    // A call that waits ends with the proxy.
    let stopped = waiting("stopped");
    proxy.disconnect_pull_supplier().unwrap();
    let Err(RequestError::System(error)) = stopped.join().unwrap() else { panic!("the proxy has ended") };
    assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist);
    wait_until("the end of deliveries", || plant.service.as_ref().unwrap().event_octets() == 0);
}

/// A call may reach the object of a proxy after the disconnection and before the deactivation.
#[test]
fn the_error_of_a_missing_connection_says_whether_there_was_one() {
    let connection = ConnectionCell::default();
    let refused = || connection.require_connected().map_err(|error| error.kind());
    assert_eq!(refused(), Err(SystemExceptionKind::BadInvOrder));
    connection.connect::<ConnectPullConsumerError>(None, || Ok(()), || {}).unwrap();
    assert_eq!(refused(), Ok(()));
    let _ = connection.disconnect();
    assert_eq!(refused(), Err(SystemExceptionKind::ObjectNotExist));
}

#[test]
fn typed_suppliers_are_pulled_by_each_operation() {
    let plant = Plant::start();
    let channel = plant.channel();
    let (alarms, calls) = plant.consumer("Plant::Alarms");
    plant.proxy(ALARMS).connect_push_consumer(Some(&alarms)).unwrap();
    let suppliers = channel.for_suppliers().unwrap().unwrap();
    let proxy = suppliers.obtain_typed_pull_consumer(PULL_ALARMS).unwrap().unwrap();
    // An object of another interface is a type error, and so is a supplier that is not typed.
    let root = Poa::root(&plant.client).unwrap();
    let wrong = root.activate(TypedPullSupplierSkeleton::new(TypedSupplier(alarms.as_object().clone()))).unwrap();
    for supplier in [wrong.as_object().clone(), alarms.as_object().clone()] {
        let refused = proxy.connect_pull_supplier(Some(&supplier.unchecked_narrow()));
        assert!(matches!(refused, Err(ConnectPullSupplierError::TypeError(_))), "{refused:?}");
    }
    proxy.connect_pull_supplier(Some(&plant.supplier(&["pump", "valve"]))).unwrap();
    wait_until("all calls", || calls.lock().unwrap().len() == 3);
    let calls = calls.lock().unwrap();
    let stopped: Vec<&String> = calls.iter().filter(|call| call.starts_with("stopped")).collect();
    assert_eq!(stopped, ["stopped \"pump\"", "stopped \"valve\""]);
    assert!(calls.iter().any(|call| call.starts_with("raised ") && call.contains("boiler")), "{calls:?}");
}

/// Without a repository there is no description of any interface.
#[test]
fn without_a_repository_typed_proxies_raise_intf_repos() {
    let served = crate::support::Served::transient();
    served.service().channel("Alarms").unwrap();
    let (host, port) = served.orb.listen().unwrap()[0].clone();
    let url = format!("corbaloc::{host}:{port}/Alarms/typed");
    let channel: TypedEventChannel = served.client.string_to_object(&url).unwrap().narrow().unwrap();
    match channel.for_suppliers().unwrap().unwrap().obtain_typed_push_consumer(ALARMS) {
        Err(InterfaceNotSupportedError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::IntfRepos),
        other => panic!("{other:?}"),
    }
}
