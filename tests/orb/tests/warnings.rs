//! Warnings about settings of a server that are seldom intended.

use std::sync::{Arc, Mutex};

use spandrel::poa::LifespanPolicy;
use spandrel::{Endpoint, Orb, OrbBuilder, Poa};
use spandrel_orb_tests::support::ReservedPort;
use tracing::{Event, Level, Subscriber, field::Visit};
use tracing_subscriber::{Layer, Registry, layer::Context, prelude::*};

/// The messages of the log, with their fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push((*event.metadata().level(), fields.0));
    }
}

/// The warnings of a server with two persistent adapters.
fn warnings(builder: OrbBuilder) -> Vec<String> {
    messages(Level::WARN, builder)
}

/// The messages of this level of a server with two persistent adapters.
fn messages(level: Level, builder: OrbBuilder) -> Vec<String> {
    let log = Log::default();
    tracing::subscriber::with_default(Registry::default().with(log.clone()), || {
        let orb = builder.build().unwrap();
        let root = Poa::root(&orb).unwrap();
        for name in ["first", "second"] {
            root.create_poa(name, None, [LifespanPolicy::Persistent.into()]).unwrap();
            root.create_poa(&format!("transient {name}"), None, []).unwrap();
        }
        orb.listen().unwrap();
        orb.listen().unwrap();
        orb.shutdown().unwrap();
    });
    let log = log.0.lock().unwrap();
    log.iter().filter(|(of, _)| *of == level).map(|(_, message)| message.clone()).collect()
}

#[test]
fn the_log_has_the_address_of_a_listening_orb_alone() {
    let listening = messages(Level::INFO, Orb::builder().listen(Endpoint::new("127.0.0.1", 0)));
    assert!(listening.iter().any(|message| message.contains("listening at=iiop://127.0.0.1:")), "{listening:?}");
    let nowhere = messages(Level::INFO, Orb::builder().listen(Endpoint::nowhere()));
    assert!(nowhere.iter().any(|message| message.contains("no port is open")), "{nowhere:?}");
    assert!(!nowhere.iter().any(|message| message.contains("listening")), "{nowhere:?}");
}

#[test]
fn a_persistent_adapter_without_a_fixed_port_is_reported_once() {
    for builder in [Orb::builder(), Orb::builder().listen(Endpoint::new("127.0.0.1", 0))] {
        let [warning] = &warnings(builder)[..] else { panic!("one warning") };
        assert!(warning.contains("first") && warning.contains("-ORBListenEndpoints iiop://HOST:PORT"), "{warning}");
    }
}

#[test]
fn a_fixed_port_a_published_address_and_no_address_are_not_reported() {
    let reserved = ReservedPort::reserve();
    let fixed = Orb::builder().listen(Endpoint::new("127.0.0.1", reserved.port));
    let published = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).publish("bank.example:2809");
    let nowhere = Orb::builder().listen(Endpoint::nowhere());
    for builder in [fixed, published, nowhere] {
        assert_eq!(warnings(builder), Vec::<String>::new());
    }
}

#[test]
fn a_server_that_other_machines_reach_without_tls_is_reported_once() {
    for host in ["*", "0.0.0.0"] {
        let reserved = ReservedPort::reserve();
        let [warning] = &warnings(Orb::builder().listen(Endpoint::new(host, reserved.port)))[..] else {
            panic!("one warning")
        };
        assert!(
            warning.contains("without encryption") && warning.contains("-ORBListenEndpoints ssliop://"),
            "{warning}"
        );
    }
}
