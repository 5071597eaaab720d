//! The factory: omniEvents' criteria, keys and errors.

use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::services::cos_life_cycle::generic_factory::CreateObjectError;
use spandrel::services::cos_life_cycle::{GenericFactory, Nvp};
use spandrel::services::cos_naming::NameComponent;
use spandrel::services::event::event_channel_factory::{CreateChannelError, JoinChannelError};
use spandrel::services::omni_events::EventChannelFactory;
use spandrel::types::{Any, Interface as _};
use spandrel::{ObjectRef, SystemExceptionKind};
use spandrel_event::{EventOptions, Limits};
use spandrel_test_support::wait_until;

use crate::support::{Served, consumers, long, supplier};

fn key(id: &str, kind: &str) -> Vec<NameComponent> {
    vec![NameComponent { id: id.into(), kind: kind.into() }]
}

fn criterion(name: &str, value: Any) -> Nvp {
    Nvp { name: name.to_owned(), value }
}

fn factory(served: &Served) -> EventChannelFactory {
    served.client.string_to_object(&served.service().factory().to_string()).unwrap().narrow().unwrap()
}

fn create(served: &Served, criteria: &[Nvp]) -> Result<Option<ObjectRef>, CreateObjectError> {
    let factory: GenericFactory = factory(served).as_object().unchecked_narrow();
    factory.create_object(&key("EventChannel", "object interface"), criteria)
}

fn text(text: &str) -> Any {
    Any::new(text.to_owned()).unwrap()
}

#[test]
fn the_criteria_of_omni_events_are_met() {
    let served = Served::transient();
    let generic: GenericFactory = factory(&served).as_object().unchecked_narrow();
    assert!(generic.supports(&key("EventChannel", "object interface")).unwrap());
    assert!(!generic.supports(&key("EventChannel", "")).unwrap());
    assert!(matches!(generic.create_object(&key("Queue", ""), &[]), Err(CreateObjectError::NoFactory(_))));
    let criteria = [
        criterion("CyclePeriod_ns", Any::new(1_000_000_u32).unwrap()),
        criterion("MaxQueueLength", long(2)),
        criterion("MaxNumProxies", Any::new(1_u32).unwrap()),
        criterion("PullRetryPeriod_ms", Any::new(10_u32).unwrap()),
        criterion("InsName", text("Tuner")),
        criterion("FilterId", text("IDL:Radio/Frequency:1.0")),
    ];
    let object = create(&served, &criteria).unwrap().unwrap();
    let channel: EventChannel = object.narrow().unwrap();
    // Its name is its key, and a second one is refused.
    let (host, port) = served.orb.listen().unwrap()[0].clone();
    let by_name = served.client.string_to_object(&format!("corbaloc::{host}:{port}/Tuner")).unwrap();
    assert!(by_name.narrow::<EventChannel>().unwrap().for_consumers().unwrap().is_some());
    let again = create(&served, &[criterion("InsName", text("Tuner"))]);
    assert!(matches!(again, Err(CreateObjectError::InvalidCriteria(name)) if name.invalid_criteria.len() == 1));
    // Events of other types do not pass.
    let pulled = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    let pushes = supplier(&channel);
    pushes.push(&long(1)).unwrap();
    assert!(!pulled.try_pull().unwrap().1);
    let second = consumers(&channel).obtain_pull_supplier();
    assert_eq!(second.unwrap_err().kind(), SystemExceptionKind::ImpLimit);
    // Without a filter, the queue keeps the newest events.
    let short = create(&served, &[criterion("MaxQueueLength", long(2))]).unwrap().unwrap();
    let channel: EventChannel = short.narrow().unwrap();
    let pulled = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    let pushes = supplier(&channel);
    (1..=5).for_each(|number| pushes.push(&long(number)).unwrap());
    let numbers = [(); 2].map(|()| pulled.pull().unwrap().extract::<i32>().unwrap());
    assert_eq!((numbers, pulled.try_pull().unwrap().1), ([4, 5], false));
    let states = served.monitor().channels("Tuner", 10).unwrap();
    assert!(states.iter().any(|state| (state.received, state.delivered, state.dropped) == (5, 2, 3)), "{states:?}");
}

#[test]
fn wrong_criteria_are_named() {
    let served = Served::transient();
    let invalid = [
        ("MaxQueueLength", text("many")),
        ("Colour", long(1)),
        ("InsName", long(1)),
        ("InsName", text("omniEvents")),
        ("InsName", text("EventStore")),
    ];
    for (name, value) in invalid {
        match create(&served, &[criterion(name, value)]) {
            Err(CreateObjectError::InvalidCriteria(invalid)) => assert_eq!(invalid.invalid_criteria[0].name, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    let unmet =
        [("MaxQueueLength", long(0)), ("PullRetryPeriod_ms", long(0)), ("InsName", text("")), ("InsName", text("a/b"))];
    for (name, value) in unmet {
        match create(&served, &[criterion(name, value)]) {
            Err(CreateObjectError::CannotMeetCriteria(unmet)) => assert_eq!(unmet.unmet_criteria[0].name, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(served.service().channels(), 0);
}

#[test]
fn channels_are_created_and_joined_by_name() {
    let served = Served::with(
        EventOptions { limits: Limits { channels: 1, ..Limits::default() }, ..EventOptions::default() },
        0,
    );
    let factory = factory(&served);
    assert!(factory.is_alive().unwrap());
    assert!(matches!(factory.join_channel("a"), Err(JoinChannelError::EventChannelNotFound(_))));
    let channel = factory.create_channel("a").unwrap().unwrap();
    assert!(matches!(factory.create_channel("a"), Err(CreateChannelError::NameAlreadyUsed(_))));
    assert!(factory.join_channel("a").unwrap().unwrap().for_consumers().unwrap().is_some());
    match factory.create_channel("b") {
        Err(CreateChannelError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::ImpLimit),
        other => panic!("{other:?}"),
    }
    channel.destroy().unwrap();
    wait_until("a free channel", || factory.create_channel("b").is_ok());
}
