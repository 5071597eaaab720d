//! Parties that stop (SIGSTOP) or die (`kill -9`) in the middle of an operation, after its request has reached them: the
//! operation ends within its time limit with the reason, and leaves nothing at the others.

use std::process::Command;
use std::time::{Duration, Instant};

use spandrel::services::av_streams::{
    FDev, FlowConnection, FlowConsumer, FlowProducer, MmDevice, Negotiator, QoS, StreamEndPoint, basic_stream_ctrl,
    flow_connection, stream_ctrl, stream_end_point,
};
use spandrel::types::Interface;
use spandrel::{SystemException, SystemExceptionKind};
use spandrel_avstreams::{AvLimits, DSCP, FlowDefinition, QosRange};
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

    /// Whether the process has octets in a connection of its port that it has not read.
    fn has_request(&self) -> bool {
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        connections.lines().skip(1).any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_own = fields[1].ends_with(&format!(":{:04X}", self.port));
            is_own && fields[3] == "01" && !fields[4].ends_with(":00000000")
        })
    }

    /// Calls while the process does not run, which dies once the request has come.
    fn interrupt<T: Send>(&mut self, fate: Fate, call: impl FnOnce() -> T + Send) -> T {
        Command::new("kill").args(["-s", "STOP", &self.process.child.id().to_string()]).status().unwrap();
        let begin = Instant::now();
        let outcome = std::thread::scope(|scope| {
            let calling = scope.spawn(call);
            eventually("the request has come", || self.has_request());
            if fate == Fate::Dies {
                self.process.kill();
            }
            calling.join().unwrap()
        });
        assert!(begin.elapsed() < WITHIN, "{fate:?}: {:?}", begin.elapsed());
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
        let (client, party) = (Client::new(), Party::with(limits()));
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
        let (client, party) = (Client::new(), Party::with(limits()));
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
        let (client, party) = (Client::new(), Party::with(limits()));
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
        let (client, party) = (Client::new(), Party::with(limits()));
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
        let lasting = AvLimits { absence: Duration::from_secs(3_600), ..limits() };
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
