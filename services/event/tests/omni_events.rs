//! omniEvents: its server with our stubs, its tools and a client of omniORB (`peers/omniorb/events.cc`) with our service.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use spandrel::services::NamingClient;
use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::services::cos_event_comm::{PushConsumer, PushConsumerSkeleton};
use spandrel::services::omni_events::EventChannelFactory;
use spandrel::types::Interface as _;
use spandrel::{Endpoint, Orb, Poa, SystemExceptionKind};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_test_support::{ChildProcess, free_port, holds_within, omniorb_peer, wait_until};

use crate::support::{Recorder, Served, consumers, long, supplier};

/// Whether a program of omniEvents is installed; the environment may demand it.
fn is_installed(file: &str) -> bool {
    let is_there = Path::new(file).exists();
    if !is_there {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "{file} is not installed");
        eprintln!("absent: {file} (Debian packages omnievents, libomnievents-dev)");
    }
    is_there
}

/// The server of omniEvents, and its address.
struct OmniEvents {
    _child: ChildProcess,
    address: String,
    _folder: tempfile::TempDir,
}

impl OmniEvents {
    fn start() -> Option<Self> {
        if !is_installed("/usr/sbin/omniEvents") {
            return None;
        }
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut command = Command::new("/usr/sbin/omniEvents");
        command
            .args(["-f", "-p", &port.to_string(), "-l"])
            .arg(folder.path())
            .arg("-t")
            .arg(folder.path().join("trace"));
        // Without a naming service, and reached by this machine alone.
        command.args(["-ORBInitRef", "NameService=corbaloc::127.0.0.1:1/x"]);
        let child = ChildProcess::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let omni_events = Self { _child: child, address: format!("127.0.0.1:{port}"), _folder: folder };
        let client = Orb::builder().build().unwrap();
        let url = format!("corbaloc::{}/omniEvents", omni_events.address);
        let factory = client.string_to_object(&url).unwrap().with_timeout(Some(Duration::from_secs(5)));
        wait_until("omniEvents", || factory.non_existent().is_ok_and(|is_gone| !is_gone));
        client.shutdown().unwrap();
        Some(omni_events)
    }
}

/// Runs the client of omniORB; `Err` has what it printed instead of `ok`. A call without a reply ends with TRANSIENT.
fn run_client(address: &str, channel: &str) -> Result<(), String> {
    let Some(client) = omniorb_peer("events/client", Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return Ok(()) };
    let output =
        Command::new(client).args([address, channel, "-ORBclientCallTimeOutPeriod", "15000"]).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && lines == "ok\n" {
        return Ok(());
    }
    Err(format!("{lines}{}", String::from_utf8_lossy(&output.stderr)))
}

/// The client demands of both services the same.
#[test]
fn a_client_of_omniorb_finds_both_services_alike() {
    if !is_installed("/usr/share/idl/omniEvents/omniEvents.idl") {
        return;
    }
    let served = Served::transient();
    let (host, port) = served.orb.listen().unwrap()[0].clone();
    run_client(&format!("{host}:{port}"), "Tuner").expect("our service");
    assert_eq!(served.service().channels(), 0, "it has destroyed its channel");
    // Seldom it answers with UNKNOWN, minor code 1 (an exception that the operation does not declare), its channel ends
    // before it has replied to `destroy`, or never: the thread of the channel holds the requests of an adapter that
    // `destroy` calls. A server is not used again after that.
    let mut results = std::iter::from_fn(OmniEvents::start)
        .take(6)
        .map(|omni_events| run_client(&omni_events.address, "Tuner"))
        .peekable();
    if results.peek().is_none() {
        return;
    }
    let seldom = ["UNKNOWN ", "OBJECT_NOT_EXIST ", "TRANSIENT "];
    let is_known =
        |result: &Result<(), String>| !matches!(result, Err(text) if seldom.iter().any(|kind| text.starts_with(kind)));
    results.find(is_known).expect("a result other than these exceptions").expect("omniEvents");
}

/// Our stubs with omniEvents: a channel, a push consumer, a pull consumer and a push supplier.
#[test]
fn our_clients_use_the_server_of_omni_events() {
    let Some(omni_events) = OmniEvents::start() else { return };
    let client = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let factory = client.string_to_object(&format!("corbaloc::{}/omniEvents", omni_events.address)).unwrap();
    let factory: EventChannelFactory = factory.narrow().unwrap();
    assert!(factory.is_alive().unwrap());
    let generic = factory.as_object().narrow::<spandrel::services::cos_life_cycle::GenericFactory>().unwrap();
    let key =
        [spandrel::services::cos_naming::NameComponent { id: "EventChannel".into(), kind: "object interface".into() }];
    let cycle = spandrel::services::cos_life_cycle::Nvp {
        name: "CyclePeriod_ns".to_owned(),
        value: spandrel::types::Any::new(20_000_000_u32).unwrap(),
    };
    let channel = generic.create_object(&key, &[cycle]).unwrap().unwrap();
    let channel: EventChannel = channel.narrow().unwrap();
    let recorder = Arc::new(Recorder::default());
    let consumer = Poa::root(&client).unwrap().activate(PushConsumerSkeleton::new(Arc::clone(&recorder))).unwrap();
    let consumer: PushConsumer = consumer.unchecked_narrow();
    consumers(&channel).obtain_push_supplier().unwrap().unwrap().connect_push_consumer(Some(&consumer)).unwrap();
    let pulled = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    let supplier = supplier(&channel);
    (1..=3).for_each(|number| supplier.push(&long(number)).unwrap());
    recorder.wait_for(&[1, 2, 3]);
    let numbers = [(); 3].map(|()| pulled.pull().unwrap().extract::<i32>().unwrap());
    assert_eq!(numbers, [1, 2, 3]);
    // Seldom the channel ends before omniEvents has replied to the operation, or both wait for each other.
    let limited = channel.as_object().with_timeout(Some(Duration::from_secs(15)));
    let destroyed = limited.unchecked_narrow::<EventChannel>().destroy();
    match destroyed.as_ref().map_err(spandrel::SystemException::kind) {
        Ok(()) | Err(SystemExceptionKind::ObjectNotExist) => recorder.wait_for_disconnection(),
        Err(kind) => assert_eq!(kind, SystemExceptionKind::Timeout, "{destroyed:?}"),
    }
    client.shutdown().unwrap();
}

/// `eventc`, `eventf` and `rmeventc` of omniEvents with our factory and channels, by a naming service.
#[test]
fn the_tools_of_omni_events_use_our_service() {
    if !is_installed("/usr/bin/eventc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let served = Served::transient();
    let names_orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let names = NamingService::start(&names_orb, NamingOptions::new(folder.path())).unwrap();
    let root = format!("NameService={}", names.reference());
    let lookup = Orb::init(["-ORBInitRef".to_owned(), root.clone()]).unwrap();
    let client = NamingClient::new(&lookup).unwrap();
    client.publish("EventChannelFactory", served.service().factory()).unwrap();
    let tool = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).args(["-ORBInitRef", &root]).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    tool("/usr/bin/eventc", &["-n", "tuner.channel", "-i", "tuner", "-q", "5", "-c", "1000", "-R", "10", "-p", "3"]);
    tool("/usr/bin/eventc", &["-n", "copy"]);
    assert_eq!(served.service().channels(), 2);
    let [tuner, copy] = ["tuner.channel", "copy"].map(|name| {
        let channel: EventChannel = client.resolve(name).unwrap();
        let object = channel.as_object().to_string();
        (served.client.string_to_object(&object).unwrap().narrow::<EventChannel>().unwrap(), object)
    });
    // The first channel feeds the second one.
    tool("/usr/bin/eventf", &[&tuner.1, &copy.1]);
    let recorder = served.connected(&copy.0);
    supplier(&tuner.0).push(&long(5)).unwrap();
    recorder.wait_for(&[5]);
    tool("/usr/bin/rmeventc", &["-n", "tuner.channel"]);
    assert!(holds_within(Duration::from_secs(60), || served.service().channels() == 1));
    assert!(client.resolve::<EventChannel>("tuner.channel").is_err());
    lookup.shutdown().unwrap();
    names.stop().unwrap();
    names_orb.shutdown().unwrap();
}
