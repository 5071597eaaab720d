//! Warnings about settings of a server that are seldom intended.

use crate::certificates::{authority, plain};

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

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

/// The warnings of a client with these options.
fn warnings_of_options(options: &[(&str, &Path)]) -> Vec<String> {
    let log = Log::default();
    tracing::subscriber::with_default(Registry::default().with(log.clone()), || {
        let builder = Orb::builder().protocol(plain());
        options.iter().fold(builder, |builder, (name, file)| builder.option(name, file.to_str().unwrap()).unwrap());
    });
    let log = log.0.lock().unwrap();
    log.iter().filter(|(of, _)| *of == Level::WARN).map(|(_, message)| message.clone()).collect()
}

#[test]
fn certificates_near_their_end_are_reported() {
    const DAY: Duration = Duration::from_secs(86_400);
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("chain.pem");
    for (end, expected) in [
        (SystemTime::now() + 40 * DAY, None),
        (SystemTime::now() + 10 * DAY + DAY / 2, Some("the certificate expires in 10 days")),
        (SystemTime::now() - 10 * DAY - DAY / 2, Some("the certificate expired 10 days ago")),
    ] {
        let identity = authority().issue_with(&["127.0.0.1"], |params| params.not_after = end.into());
        fs::write(&chain, identity.chain).unwrap();
        let warnings = warnings_of_options(&[("-ORBSSLCertificate", &chain)]);
        assert_eq!(warnings.len(), usize::from(expected.is_some()), "{warnings:?}");
        if let Some(expected) = expected {
            assert!(warnings[0].contains(expected) && warnings[0].contains("chain.pem"), "{warnings:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn keys_that_others_can_read_are_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    fs::write(&key, authority().issue("127.0.0.1").key).unwrap();
    for (mode, is_reported) in [(0o600, false), (0o640, false), (0o644, true)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let warnings = warnings_of_options(&[("-ORBSSLKey", &key)]);
        assert_eq!(warnings.len(), usize::from(is_reported), "{mode:o}: {warnings:?}");
        assert!(!is_reported || warnings[0].contains("key.pem") && warnings[0].contains("chmod 600"), "{warnings:?}");
    }
}
