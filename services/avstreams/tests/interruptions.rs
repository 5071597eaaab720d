//! Parties that stop (SIGSTOP) or die (`kill -9`) in the middle of an operation, after its request has reached them: the
//! operation ends within its time limit with the reason, and leaves nothing at the others.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use spandrel::services::av_streams::{
    FDev, FlowConnection, FlowConsumer, FlowProducer, MCastConfigIf, MmDevice, MmDeviceServant, Negotiator,
    NotSupported, QoS, StreamCtrl, StreamEndPoint, StreamEndPointA, StreamEndPointB, StreamOpFailed, StreamQoS, VDev,
    VDevServant, basic_stream_ctrl, flow_connection, mm_device, stream_ctrl, stream_end_point, v_dev,
};
use spandrel::services::cos_property_service::Property;
use spandrel::types::{Any, Interface};
use spandrel::{ObjectRef, Poa, SystemException, SystemExceptionKind};
use spandrel_avstreams::{AvLimits, DSCP, FlowDefinition, QosRange};
use spandrel_property::{IteratorOptions, Limits, LocalPropertySet, PropertyIterators, delegate_property_set};
use spandrel_test_support::TEST_TIMEOUT;
use tempfile::TempDir;

use crate::deaths::{WITHIN, device, limits};
use crate::executable::Process;
use crate::support::{Client, Party, eventually, qos, sink, source};

/// The fate of a party in the middle of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Stops,
    Dies,
}

const FATES: [Fate; 2] = [Fate::Stops, Fate::Dies];

impl Fate {
    /// The limits of the other parties. A dead party is noticed without them, on a loaded machine too.
    fn limits(self) -> AvLimits {
        match self {
            Self::Stops => limits(),
            Self::Dies => AvLimits { call: TEST_TIMEOUT, ..limits() },
        }
    }
}

/// A device in a process of its own.
struct Remote {
    _folder: TempDir,
    process: Process,
    port: u16,
    device: MmDevice,
}

impl Remote {
    fn start(client: &Client, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = device(folder.path(), words);
        let url = process.ready("MMDevice");
        let port = url.rsplit_once(':').unwrap().1.split('/').next().unwrap().parse().unwrap();
        let device = client.0.string_to_object(&url).unwrap().narrow().unwrap();
        Self { _folder: folder, process, port, device }
    }

    /// A reference to an object of the process, which does not answer whatever its type is.
    fn object<I: Interface>(&self) -> I {
        self.device.as_object().unchecked_narrow()
    }

    /// The octets in connections of its port that the process has not read.
    fn unread_octets(&self) -> u64 {
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let octets_of = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_own = fields[1].ends_with(&format!(":{:04X}", self.port)) && fields[3] == "01";
            let (_, received) = fields[4].split_once(':').filter(|_| is_own)?;
            u64::from_str_radix(received, 16).ok()
        };
        connections.lines().skip(1).filter_map(octets_of).sum()
    }

    /// Calls while the process does not run, which dies once the request has come.
    fn interrupt<T: Send>(&mut self, fate: Fate, call: impl FnOnce() -> T + Send) -> T {
        Command::new("kill").args(["-s", "STOP", &self.process.child.id().to_string()]).status().unwrap();
        // Octets of the call before may be there.
        let (begin, before) = (Instant::now(), self.unread_octets());
        let outcome = std::thread::scope(|scope| {
            let calling = scope.spawn(call);
            eventually("the request has come", || self.unread_octets() > before);
            if fate == Fate::Dies {
                self.process.kill();
            }
            calling.join().unwrap()
        });
        assert!(fate == Fate::Dies || begin.elapsed() < WITHIN, "{:?}", begin.elapsed());
        outcome
    }
}

/// Whether the exception is the one of a server that does not answer, or was cut off.
fn check(fate: Fate, exception: &SystemException) {
    use SystemExceptionKind::{CommFailure, NoResponse, Timeout, Transient};
    let expected = match fate {
        Fate::Stops => [Timeout, NoResponse],
        Fate::Dies => [CommFailure, Transient],
    };
    assert!(expected.contains(&exception.kind()), "{fate:?}: {exception}");
}

#[test]
fn a_device_that_stops_or_dies_in_a_bind_fails_it_and_leaves_no_end_points() {
    for (fate, is_sender) in FATES.into_iter().flat_map(|fate| [true, false].map(|is_sender| (fate, is_sender))) {
        let (client, party) = (Client::new(), Party::with(fate.limits()));
        let words = if is_sender { ["--pattern", "video"] } else { ["--sink", "video"] };
        let mut remote = Remote::start(&client, &words);
        let flow = if is_sender { sink("video").0 } else { source("video", 10, 10) };
        let (own, local) = party.device(&client, &[flow]);
        let control = client.control(&party);
        let before = party.streams().counts();
        let device = remote.device.clone();
        let (a, b) = if is_sender { (device, local) } else { (local, device) };
        let error = remote.interrupt(fate, || control.bind_devs(Some(&a), Some(&b), &mut Vec::new(), &[])).unwrap_err();
        let stream_ctrl::BindDevsError::System(exception) = error else { panic!("{fate:?} {is_sender}: {error}") };
        check(fate, &exception);
        assert!(party.streams().ends(&own, "video").is_empty(), "no end point is left");
        assert_eq!(party.streams().counts(), before, "{fate:?} {is_sender}");
    }
}

#[test]
fn a_party_that_stops_or_dies_in_a_connection_fails_it_and_leaves_no_flow() {
    for fate in FATES {
        let (client, party) = (Client::new(), Party::with(fate.limits()));
        let mut remote = Remote::start(&client, &["--sink", "video"]);
        let (_, sending) = party.device(&client, &[source("video", 10, 10)]);
        let (end_point, ..) = sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        let (other, ..) = remote.device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        let end_point: StreamEndPoint = end_point.unwrap().unchecked_narrow();
        let other: StreamEndPoint = other.unwrap().unchecked_narrow();
        let error = remote.interrupt(fate, || end_point.connect(Some(&other), &mut Vec::new(), &[])).unwrap_err();
        let stream_end_point::ConnectError::System(exception) = error else { panic!("{fate:?}: {error}") };
        check(fate, &exception);
        eventually("no flow is left", || party.streams().counts().1 == 0);
    }
}

#[test]
fn a_negotiator_that_stops_or_dies_in_the_negotiation_fails_the_connection() {
    for fate in FATES {
        let (client, party) = (Client::new(), Party::with(fate.limits()));
        let mut remote = Remote::start(&client, &["--sink", "video"]);
        let (_, sending) = party.device(&client, &[source("video", 10, 10)]);
        let (_, receiving) = party.device(&client, &[sink("video").0]);
        let (end_point, ..) = sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        let (other, ..) = receiving.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        let (end_point, other) = (end_point.unwrap(), other.unwrap());
        let negotiator: Negotiator = remote.object();
        end_point.set_negotiator(Some(&negotiator)).unwrap();
        other.set_negotiator(Some(&negotiator)).unwrap();
        let error = remote.interrupt(fate, || end_point.connect(Some(&other), &mut Vec::new(), &[])).unwrap_err();
        let stream_end_point::ConnectError::QoSRequestFailed(failed) = error else { panic!("{fate:?}: {error}") };
        assert!(failed.reason.contains("the negotiator of this party failed: "), "{fate:?}: {}", failed.reason);
        assert_eq!(party.streams().counts().1, 0);
    }
}

#[test]
fn flow_devices_and_flow_end_points_that_stop_or_die_fail_the_connection_of_their_flow() {
    for fate in FATES {
        let (client, party) = (Client::new(), Party::with(fate.limits()));
        let connection =
            || -> FlowConnection { client.at(&party.streams().new_flow_connection().unwrap()).narrow().unwrap() };
        // The device of the other party, in `create_consumer`; and of this one, in `create_producer`.
        for is_sender in [true, false] {
            let mut remote = Remote::start(&client, &["--sink", "video"]);
            let flow = if is_sender { sink("video").0 } else { source("video", 10, 10) };
            let local: FDev = client.at(&party.streams().add_flow_device(flow).unwrap()).narrow().unwrap();
            let (far, connection): (FDev, _) = (remote.object(), connection());
            let (a, b) = if is_sender { (far, local) } else { (local, far) };
            let connect = || connection.connect_devs(Some(&a), Some(&b), &mut QoS::default());
            let error = remote.interrupt(fate, connect).unwrap_err();
            let flow_connection::ConnectDevsError::System(exception) = error else { panic!("{fate:?}: {error}") };
            check(fate, &exception);
        }
        // The flow end point of a stream, in `go_to_listen` or before it.
        let mut remote = Remote::start(&client, &["--sink", "video"]);
        let (end_point, ..) = remote.device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        let consumer: FlowConsumer = end_point.unwrap().get_fep("video").unwrap().unwrap().narrow().unwrap();
        let local = party.streams().add_flow_device(source("video", 10, 10)).unwrap();
        let local: FDev = client.at(&local).narrow().unwrap();
        let (producer, _) = local.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap();
        let (producer, connection): (FlowProducer, _) = (producer.unwrap(), connection());
        let connect = || connection.connect(Some(&producer), Some(&consumer), &mut QoS::default());
        let error = remote.interrupt(fate, connect).unwrap_err();
        let flow_connection::ConnectError::System(exception) = error else { panic!("{fate:?}: {error}") };
        check(fate, &exception);
        assert_eq!(party.streams().counts().1, 0);
    }
}

#[test]
fn a_party_that_stops_or_dies_in_a_change_of_quality_fails_it() {
    for fate in FATES {
        let lasting = AvLimits { absence: Duration::from_secs(3_600), ..fate.limits() };
        let (client, party) = (Client::new(), Party::with(lasting));
        let mut remote = Remote::start(&client, &["--sink", "video"]);
        let ranged = FlowDefinition { qos: vec![QosRange::new(DSCP, 0, 63)], ..source("video", u32::MAX, 10) };
        let (_, sending) = party.device(&client, &[ranged]);
        let control = client.control(&party);
        assert!(control.bind_devs(Some(&sending), Some(&remote.device), &mut Vec::new(), &[]).unwrap());
        let error = remote.interrupt(fate, || control.modify_qo_s(&mut qos("", DSCP, 10), &[])).unwrap_err();
        let basic_stream_ctrl::ModifyQoSError::System(exception) = error else { panic!("{fate:?}: {error}") };
        check(fate, &exception);
        control.destroy(&[]).unwrap();
        eventually("no flow is left", || party.streams().counts().1 == 0);
    }
}

/// A foreign virtual device, which records its settings and the configuration of its stream.
struct Recorder {
    properties: LocalPropertySet,
    configuration: Arc<Mutex<Option<MCastConfigIf>>>,
    settings: Arc<Mutex<Vec<String>>>,
}

delegate_property_set!(Recorder, properties);

impl VDevServant for Recorder {
    fn set_peer(
        &self,
        _: Option<&StreamCtrl>,
        _: Option<&VDev>,
        _: &mut StreamQoS,
        _: &[String],
    ) -> Result<bool, v_dev::SetPeerError> {
        Ok(true)
    }

    fn set_mcast_peer(
        &self,
        _: Option<&StreamCtrl>,
        configuration: Option<&MCastConfigIf>,
        _: &mut StreamQoS,
        _: &[String],
    ) -> Result<bool, v_dev::SetMcastPeerError> {
        *self.configuration.lock().unwrap() = configuration.cloned();
        Ok(true)
    }

    fn configure(&self, setting: &Property) -> Result<(), v_dev::ConfigureError> {
        self.settings.lock().unwrap().push(setting.property_name.clone());
        Ok(())
    }

    fn set_format(&self, _: &str, _: &str) -> Result<(), v_dev::SetFormatError> {
        Ok(())
    }

    fn set_dev_params(&self, _: &str, _: &[Property]) -> Result<(), v_dev::SetDevParamsError> {
        Ok(())
    }

    fn modify_qo_s(&self, _: &mut StreamQoS, _: &[String]) -> Result<bool, v_dev::ModifyQoSError> {
        Ok(true)
    }
}

/// A device whose B end points are those of another one, with a virtual device of its own.
struct Foreign {
    properties: LocalPropertySet,
    device: MmDevice,
    virtual_device: VDev,
}

delegate_property_set!(Foreign, properties);

fn unsupported() -> StreamOpFailed {
    StreamOpFailed { reason: "the device only receives".to_owned() }
}

impl MmDeviceServant for Foreign {
    fn create_a(
        &self,
        _: Option<&StreamCtrl>,
        _: &mut StreamQoS,
        _: &mut String,
        _: &[String],
    ) -> Result<(Option<StreamEndPointA>, Option<VDev>, bool), mm_device::CreateAError> {
        Err(unsupported().into())
    }

    fn create_b(
        &self,
        control: Option<&StreamCtrl>,
        qos: &mut StreamQoS,
        name: &mut String,
        spec: &[String],
    ) -> Result<(Option<StreamEndPointB>, Option<VDev>, bool), mm_device::CreateBError> {
        let (end_point, _, is_met) = self.device.create_b(control, qos, name, spec)?;
        Ok((end_point, Some(self.virtual_device.clone()), is_met))
    }

    fn bind(
        &self,
        _: Option<&MmDevice>,
        _: &mut StreamQoS,
        _: &[String],
    ) -> Result<(Option<StreamCtrl>, bool), mm_device::BindError> {
        Err(unsupported().into())
    }

    fn bind_mcast(
        &self,
        _: Option<&MmDevice>,
        _: &mut StreamQoS,
        _: &[String],
    ) -> Result<(Option<StreamCtrl>, bool), mm_device::BindMcastError> {
        Err(unsupported().into())
    }

    fn destroy(&self, _: Option<&StreamEndPoint>, _: &str) -> Result<(), mm_device::DestroyError> {
        Err(NotSupported {}.into())
    }

    fn add_fdev(&self, _: Option<&ObjectRef>) -> Result<String, mm_device::AddFdevError> {
        Err(NotSupported {}.into())
    }

    fn get_fdev(&self, _: &str) -> Result<Option<ObjectRef>, mm_device::GetFdevError> {
        Err(NotSupported {}.into())
    }

    fn remove_fdev(&self, _: &str) -> Result<(), mm_device::RemoveFdevError> {
        Err(NotSupported {}.into())
    }
}

#[test]
fn a_peer_that_stops_or_dies_in_a_configuration_keeps_it_from_no_other() {
    for fate in FATES {
        let (client, party) = (Client::new(), Party::with(fate.limits()));
        let mut remote = Remote::start(&client, &["--sink", "video"]);
        let (_, sending) = party.device(&client, &[source("video", u32::MAX, 10)]);
        let (_, receiving) = party.device(&client, &[sink("video").0]);
        let adapter = Poa::root(&party.orb).unwrap();
        adapter.the_poa_manager().activate().unwrap();
        let iterators = PropertyIterators::new(&adapter, IteratorOptions::default()).unwrap();
        let (configuration, settings) = (Arc::default(), Arc::default());
        let recorder = Recorder {
            properties: LocalPropertySet::new(&iterators, Limits::default()),
            configuration: Arc::clone(&configuration),
            settings: Arc::<Mutex<Vec<String>>>::clone(&settings),
        };
        let virtual_device: VDev = adapter.serve(recorder).unwrap();
        let properties = LocalPropertySet::new(&iterators, Limits::default());
        let foreign: MmDevice = adapter.serve(Foreign { properties, device: receiving, virtual_device }).unwrap();
        let foreign: MmDevice = client.at(&foreign).narrow().unwrap();
        let control = client.control(&party);
        // The process is the first receiver, so that the foreign one is configured after it.
        let receivers = [(Some(&sending), None), (None, Some(&remote.device)), (None, Some(&foreign))];
        for (a_device, b_device) in receivers {
            assert!(control.bind_devs(a_device, b_device, &mut Vec::new(), &[]).unwrap());
        }
        let configuration: MCastConfigIf = configuration.lock().unwrap().take().unwrap();
        let configuration: MCastConfigIf = client.at(configuration.as_object()).narrow().unwrap();
        let setting =
            |name: &str| Property { property_name: name.to_owned(), property_value: Any::new(1_u32).unwrap() };
        configuration.configure(&setting("brightness")).unwrap();
        assert_eq!(*settings.lock().unwrap(), ["brightness"]);
        remote.interrupt(fate, || configuration.configure(&setting("contrast"))).unwrap();
        assert_eq!(*settings.lock().unwrap(), ["brightness", "contrast"]);
        // It is no peer of the configuration any more, and delays no further setting.
        configuration.configure(&setting("colour")).unwrap();
        assert_eq!(*settings.lock().unwrap(), ["brightness", "contrast", "colour"]);
        control.destroy(&[]).unwrap();
    }
}
