//! Controls, end points and virtual devices: states and exceptions.

use std::time::Duration;

use spandrel::services::av_streams::{
    FlowState, Negotiator, NegotiatorServant, QoS, StreamEndPoint, basic_stream_ctrl, mm_device, stream_ctrl,
    stream_end_point,
};
use spandrel::{Poa, SystemException};
use spandrel_avstreams::{AvLimits, Carrier, FRAME_RATE, FlowDefinition, QosRange};

use crate::support::{Client, PATIENCE, Party, eventually, granted, qos, sink, source};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_unknown_flow_raises_no_such_flow() {
    let (client, party) = (Client::new(), Party::new());
    let (_, sending) = party.device(&client, &[source("video", 1, 10)]);
    let (receiving_flow, _frames) = sink("video");
    let (_, receiving) = party.device(&client, &[receiving_flow]);
    let control = client.control(&party);
    let unknown = names(&["audio"]);
    let error = control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &unknown).unwrap_err();
    assert!(matches!(error, stream_ctrl::BindDevsError::NoSuchFlow(_)), "{error}");
    assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
    assert!(matches!(control.start(&unknown), Err(basic_stream_ctrl::StartError::NoSuchFlow(_))));
    assert!(matches!(control.stop(&unknown), Err(basic_stream_ctrl::StopError::NoSuchFlow(_))));
    assert!(matches!(control.destroy(&unknown), Err(basic_stream_ctrl::DestroyError::NoSuchFlow(_))));
    assert!(control.modify_qo_s(&mut Vec::new(), &unknown).is_err());
    // A stream that is bound takes no further parties.
    let error = control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap_err();
    let stream_ctrl::BindDevsError::StreamOpFailed(failed) = error else { panic!("{error}") };
    assert_eq!(failed.reason, "the stream has parties");
    // Nil devices.
    let error = client.control(&party).bind_devs(None, None, &mut Vec::new(), &[]).unwrap_err();
    assert!(matches!(error, stream_ctrl::BindDevsError::StreamOpFailed(_)), "{error}");
}

#[test]
fn a_failed_bind_leaves_no_objects() {
    let (client, party) = (Client::new(), Party::new());
    let by_tcp = FlowDefinition { carriers: vec![Carrier::Tcp], ..source("video", 1, 10) };
    let (receiving_flow, _frames) = sink("video");
    let by_udp = FlowDefinition { carriers: vec![Carrier::Udp], ..receiving_flow };
    let (_, sending) = party.device(&client, &[by_tcp]);
    let (_, receiving) = party.device(&client, &[by_udp]);
    let control = client.control(&party);
    let before = party.streams().counts();
    let error = control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap_err();
    let stream_ctrl::BindDevsError::StreamOpFailed(failed) = error else { panic!("{error}") };
    assert!(failed.reason.contains("no common protocol for the flow `video`"), "{}", failed.reason);
    // Virtual devices go with the next stream, or the next look at the device.
    sending.create_a(None, &mut Vec::new(), &mut String::new(), &names(&["none"])).unwrap_err();
    receiving.create_b(None, &mut Vec::new(), &mut String::new(), &names(&["none"])).unwrap_err();
    assert_eq!(party.streams().counts(), before);
}

#[test]
fn the_parties_agree_on_a_carrier() {
    let (client, party) = (Client::new(), Party::new());
    let (receiving_flow, frames) = sink("video");
    let by_tcp = FlowDefinition { carriers: vec![Carrier::Tcp], ..receiving_flow };
    // The sender prefers RTP and UDP; the receiver has TCP alone.
    let (_, sending) = party.device(&client, &[source("video", 1, 10)]);
    let (_, receiving) = party.device(&client, &[by_tcp]);
    let control = client.control(&party);
    assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
    control.start(&[]).unwrap();
    assert_eq!(frames.recv_timeout(PATIENCE).unwrap().data.len(), 10);
}

#[test]
fn a_restriction_of_protocols_holds_for_connections() {
    let (client, party) = (Client::new(), Party::new());
    let (_, sending) = party.device(&client, &[source("video", 1, 10)]);
    let (end_point, device, is_met) = sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    assert!(is_met && device.is_some());
    let end_point = end_point.unwrap();
    assert!(!end_point.set_protocol_restriction(&names(&["AAL5"])).unwrap(), "the flow would have no protocol");
    assert!(end_point.set_protocol_restriction(&names(&["TCP"])).unwrap());
    let (receiving_flow, _frames) = sink("video");
    let by_udp = FlowDefinition { carriers: vec![Carrier::Udp], ..receiving_flow };
    let (_, receiving) = party.device(&client, &[by_udp]);
    let (other, _, _) = receiving.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let error = end_point.connect(other.as_deref(), &mut Vec::new(), &[]).unwrap_err();
    assert!(matches!(error, stream_end_point::ConnectError::StreamOpFailed(_)), "{error}");
    assert!(end_point.set_protocol_restriction(&names(&["UDP"])).unwrap());
    assert!(end_point.connect(other.as_deref(), &mut Vec::new(), &[]).unwrap());
    let error = end_point.connect(other.as_deref(), &mut Vec::new(), &[]).unwrap_err();
    let stream_end_point::ConnectError::StreamOpFailed(failed) = error else { panic!("{error}") };
    assert!(failed.reason.contains("has a connection"), "{}", failed.reason);
    // After a disconnection the flows can be connected again.
    end_point.disconnect(&[]).unwrap();
    other.as_ref().unwrap().disconnect(&[]).unwrap();
    assert!(end_point.connect(other.as_deref(), &mut Vec::new(), &[]).unwrap());
}

/// A negotiator that asks the other one, and grants at most this number.
struct AtMost(u32);

impl NegotiatorServant for AtMost {
    fn negotiate(&self, remote: Option<&Negotiator>, qos: &[QoS]) -> Result<bool, SystemException> {
        let grants = granted(qos) <= self.0;
        Ok(grants && remote.map_or(Ok(true), |remote| remote.negotiate(None, qos))?)
    }
}

#[test]
fn the_negotiators_of_both_parties_decide() {
    let (client, party) = (Client::new(), Party::new());
    let adapter = Poa::root(&party.orb).unwrap();
    adapter.the_poa_manager().activate().unwrap();
    let negotiator = |most: u32| -> Negotiator {
        let served: Negotiator = adapter.serve(AtMost(most)).unwrap();
        client.at(&served).narrow().unwrap()
    };
    let rates = QosRange { name: FRAME_RATE.to_owned(), min: 1, max: 100 };
    let sent = FlowDefinition { qos: vec![rates.clone()], ..source("video", 1, 10) };
    let (receiving_flow, _frames) = sink("video");
    let received = FlowDefinition { qos: vec![QosRange { max: 50, ..rates }], ..receiving_flow };
    let (_, sending) = party.device(&client, &[sent]);
    let (_, receiving) = party.device(&client, &[received]);
    let (end_point, ..) = sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let (other, ..) = receiving.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let (end_point, other) = (end_point.unwrap(), other.unwrap());
    // One negotiator alone decides nothing.
    end_point.set_negotiator(Some(&negotiator(40))).unwrap();
    let mut request = qos("video", FRAME_RATE, 60);
    assert!(!end_point.connect(Some(&other), &mut request, &[]).unwrap(), "the other party grants less");
    assert_eq!(granted(&request), 50);
    end_point.disconnect(&[]).unwrap();
    other.disconnect(&[]).unwrap();
    for (theirs, rate, agree) in [(40, 41, false), (30, 31, false), (30, 30, true)] {
        other.set_negotiator(Some(&negotiator(theirs))).unwrap();
        let outcome = end_point.connect(Some(&other), &mut qos("video", FRAME_RATE, rate), &[]);
        match outcome {
            Ok(is_met) => assert!(agree && is_met, "{rate}"),
            Err(stream_end_point::ConnectError::QoSRequestFailed(failed)) => {
                assert!(!agree && failed.reason.contains("do not agree"), "{rate}: {}", failed.reason);
            }
            Err(error) => panic!("{rate}: {error}"),
        }
    }
}

/// A negotiator that does not answer while this receiver waits.
struct Silent(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl NegotiatorServant for Silent {
    fn negotiate(&self, _: Option<&Negotiator>, _: &[QoS]) -> Result<bool, SystemException> {
        _ = self.0.lock().unwrap().recv();
        Ok(true)
    }
}

#[test]
fn a_negotiator_that_does_not_answer_fails_the_connection_in_time() {
    let limits = AvLimits { call: Duration::from_millis(300), ..AvLimits::default() };
    let (client, party, foreign) = (Client::new(), Party::with(limits), Party::new());
    let adapter = Poa::root(&foreign.orb).unwrap();
    adapter.the_poa_manager().activate().unwrap();
    let (release, wait) = std::sync::mpsc::channel();
    let silent: Negotiator = adapter.serve(Silent(std::sync::Mutex::new(wait))).unwrap();
    let silent: Negotiator = client.at(&silent).narrow().unwrap();
    let (_, sending) = party.device(&client, &[source("video", 1, 10)]);
    let (receiving_flow, _frames) = sink("video");
    let (_, receiving) = party.device(&client, &[receiving_flow]);
    let (end_point, ..) = sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let (other, ..) = receiving.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let (end_point, other) = (end_point.unwrap(), other.unwrap());
    end_point.set_negotiator(Some(&silent)).unwrap();
    other.set_negotiator(Some(&silent)).unwrap();
    let error = end_point.connect(Some(&other), &mut Vec::new(), &[]).unwrap_err();
    let stream_end_point::ConnectError::QoSRequestFailed(failed) = error else { panic!("{error}") };
    assert!(failed.reason.contains("the negotiator of this party failed"), "{}", failed.reason);
    drop(release);
}

#[test]
fn a_direction_or_format_that_the_device_does_not_have_is_refused() {
    let (client, party) = (Client::new(), Party::new());
    let with_format = FlowDefinition { formats: names(&["MPEG", "H263"]), ..source("video", 1, 10) };
    let (receiving_flow, _frames) = sink("video");
    let (_, sending) = party.device(&client, &[with_format]);
    let (_, receiving) = party.device(&client, &[receiving_flow]);
    for (spec, reason) in [(r"video\out", "goes in the other direction"), (r"video\in\AVI", "has no format `AVI`")] {
        let control = client.control(&party);
        let error = control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &names(&[spec])).unwrap_err();
        let stream_ctrl::BindDevsError::StreamOpFailed(failed) = error else { panic!("{error}") };
        assert!(failed.reason.contains(reason), "{}", failed.reason);
    }
    let (_, device, _) = sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let device = device.unwrap();
    device.set_format("video", "H263").unwrap();
    device.set_format("video", "AVI").unwrap_err();
    device.set_format("audio", "MPEG").unwrap_err();
}

#[test]
fn a_quality_of_service_is_granted_reduced_or_fails() {
    let (client, party) = (Client::new(), Party::new());
    let ranged = |max| vec![QosRange::new(FRAME_RATE, 5, max)];
    let sending_flow = FlowDefinition { qos: ranged(50), ..source("video", 1_000_000, 10) };
    let (receiving_flow, _frames) = sink("video");
    let receiving_flow = FlowDefinition { qos: ranged(30), ..receiving_flow };
    let (_, sending) = party.device(&client, &[sending_flow]);
    let (_, receiving) = party.device(&client, &[receiving_flow]);

    let control = client.control(&party);
    let mut too_low = qos("video", FRAME_RATE, 4);
    let error = control.bind_devs(Some(&sending), Some(&receiving), &mut too_low, &[]).unwrap_err();
    let stream_ctrl::BindDevsError::QoSRequestFailed(failed) = error else { panic!("{error}") };
    assert!(failed.reason.contains("`frame_rate` of `video` is at least 5, not 4"), "{}", failed.reason);

    // The lesser of both greatest values.
    let mut too_high = qos("video", FRAME_RATE, 100);
    let is_met = control.bind_devs(Some(&sending), Some(&receiving), &mut too_high, &[]).unwrap();
    assert!(!is_met);
    assert_eq!(granted(&too_high), 30);
    let mut possible = qos("", FRAME_RATE, 20);
    assert!(control.modify_qo_s(&mut possible, &[]).unwrap());
    assert_eq!(granted(&possible), 20);
    for mut wrong in [qos("video", "depth", 8), qos("audio", FRAME_RATE, 10), qos("video", FRAME_RATE, 1)] {
        let error = control.modify_qo_s(&mut wrong, &[]).unwrap_err();
        assert!(matches!(error, basic_stream_ctrl::ModifyQoSError::QoSRequestFailed(_)), "{error}");
    }
}

#[test]
fn devices_name_their_streams_and_forget_them() {
    let (client, party) = (Client::new(), Party::new());
    let (_, device) = party.device(&client, &[source("video", 1, 10)]);
    let flows: Vec<String> = device.get_property_value("Flows").unwrap().extract().unwrap();
    assert_eq!(flows, ["video"]);
    let mut name = "first".to_owned();
    let (end_point, _, _) = device.create_a(None, &mut Vec::new(), &mut name, &[]).unwrap();
    let end_point: StreamEndPoint = end_point.unwrap().unchecked_narrow();
    let error = device.create_b(None, &mut Vec::new(), &mut name, &[]).unwrap_err();
    assert!(matches!(error, mm_device::CreateBError::StreamOpDenied(_)), "{error}");
    let mut chosen = String::new();
    device.create_b(None, &mut Vec::new(), &mut chosen, &[]).unwrap();
    assert_eq!(chosen, "vdev1");
    device.destroy(Some(&end_point), "other").unwrap_err();
    device.destroy(Some(&end_point), "vdev1").unwrap_err();
    device.destroy(Some(&end_point), "first").unwrap();
    assert!(end_point.start(&[]).is_err(), "it is destroyed");
    device.create_a(None, &mut Vec::new(), &mut name, &[]).unwrap();
}

#[test]
fn nothing_is_watched_after_the_end_of_a_stream() {
    let (client, [party, other]) = (Client::new(), [0; 2].map(|_| Party::new()));
    let (_, sending) = party.device(&client, &[source("video", 1, 10)]);
    let (_, receiving) = other.device(&client, &[sink("video").0]);
    for _ in 0..3 {
        let control = client.control(&party);
        assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
        // The control watches both end points, and these the control.
        assert_eq!((party.streams().watched_peers(), other.streams().watched_peers()), (3, 1));
        control.destroy(&[]).unwrap();
        assert_eq!((party.streams().watched_peers(), other.streams().watched_peers()), (0, 0));
    }
    // As well by `unbind_party`, of a receiver of a multipoint stream.
    let control = client.control(&party);
    for (a_device, b_device) in [(Some(&sending), None), (None, Some(&receiving))] {
        control.bind_devs(a_device, b_device, &mut Vec::new(), &[]).unwrap();
    }
    assert_eq!((party.streams().watched_peers(), other.streams().watched_peers()), (3, 1));
    control.unbind_dev(Some(&receiving), &[]).unwrap();
    assert_eq!((party.streams().watched_peers(), other.streams().watched_peers()), (2, 0));
    control.unbind().unwrap();
    assert_eq!(party.streams().watched_peers(), 0);
}

#[test]
fn a_device_binds_itself_and_the_control_knows_the_parties() {
    let (client, [party, other]) = (Client::new(), [0; 2].map(|_| Party::new()));
    let (receiving_flow, frames) = sink("video");
    let (_, sending) = party.device(&client, &[source("video", 5, 10)]);
    let (own, receiving) = other.device(&client, &[receiving_flow]);
    let (control, is_met) = sending.bind(Some(&receiving), &mut Vec::new(), &[]).unwrap();
    let control = control.unwrap();
    assert!(is_met);
    let (device, end_point) = control.get_related_vdev(Some(&receiving)).unwrap();
    assert!(device.is_some());
    control.start(&[]).unwrap();
    frames.recv_timeout(PATIENCE).unwrap();
    // The end of the sender's source reaches the control as an event.
    let state = || control.get_property_value("video_state").unwrap().extract::<FlowState>().unwrap();
    eventually("the control learns of the end", || state() == FlowState::Dead);
    control.unbind_party(end_point.as_ref(), &[]).unwrap();
    assert!(control.get_related_vdev(Some(&receiving)).is_err());
    eventually("the party has no stream", || other.streams().ends(&own, "video").is_empty());
    control.unbind().unwrap();
}

/// Requests at the same time neither replace the parties of each other nor leave end points.
#[test]
fn one_of_several_requests_binds_a_stream() {
    let (client, party) = (Client::new(), Party::new());
    let (_, sending) = party.device(&client, &[source("video", 1, 10)]);
    let (_, receiving) = party.device(&client, &[sink("video").0]);
    let before = party.streams().counts();
    for _ in 0..10 {
        let control = client.control(&party);
        let bind = || control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]);
        let bound = std::thread::scope(|scope| {
            let requests = [0; 4].map(|_| scope.spawn(bind));
            requests.into_iter().filter_map(|request| request.join().unwrap().ok()).count()
        });
        assert_eq!(bound, 1);
        control.destroy(&[]).unwrap();
        for device in [&sending, &receiving] {
            device.create_a(None, &mut Vec::new(), &mut String::new(), &names(&["none"])).unwrap_err();
        }
        eventually("neither an object nor a flow is left", || party.streams().counts() == before);
    }
}

/// A stream whose parties have left takes others, with the configuration of these alone.
#[test]
fn a_stream_is_bound_again_after_its_parties_have_left() {
    let (client, party) = (Client::new(), Party::new());
    let (_, sending) = party.device(&client, &[source("video", 1, 10)]);
    let (_, receiving) = party.device(&client, &[sink("video").0]);
    let control = client.control(&party);
    let before = party.streams().counts().0;
    for _ in 0..3 {
        assert!(control.bind_devs(Some(&sending), None, &mut Vec::new(), &[]).unwrap());
        assert!(control.bind_devs(None, Some(&receiving), &mut Vec::new(), &[]).unwrap());
        control.unbind_dev(Some(&receiving), &[]).unwrap();
        control.unbind_dev(Some(&sending), &[]).unwrap();
        for device in [&sending, &receiving] {
            device.create_a(None, &mut Vec::new(), &mut String::new(), &names(&["none"])).unwrap_err();
        }
        // The configuration is there until the next stream.
        assert_eq!(party.streams().counts().0, before + 1);
    }
    assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
    control.destroy(&[]).unwrap();
}

#[test]
fn a_multipoint_stream_takes_receivers_and_loses_them() {
    let (client, sender) = (Client::new(), Party::new());
    let receivers = [0; 3].map(|_| Party::new());
    let (_, sending) = sender.device(&client, &[source("video", 1_000_000, 3_000)]);
    let control = client.control(&sender);
    assert!(control.bind_devs(Some(&sending), None, &mut Vec::new(), &[]).unwrap());
    let mut parties = Vec::new();
    for receiver in &receivers {
        let (flow, frames) = sink("video");
        let (_, device) = receiver.device(&client, &[flow]);
        assert!(control.bind_devs(None, Some(&device), &mut Vec::new(), &[]).unwrap());
        parties.push((device, frames));
    }
    control.start(&[]).unwrap();
    for (_, frames) in &parties {
        assert_eq!(frames.recv_timeout(PATIENCE).unwrap().data.len(), 3_000);
    }
    control.unbind_dev(Some(&parties[1].0), &[]).unwrap();
    eventually("the receiver's flow ends", || receivers[1].streams().counts().1 == 0);
    while parties[2].1.try_recv().is_ok() {}
    parties[2].1.recv_timeout(PATIENCE).expect("the others receive on");
    let error = control.unbind_dev(Some(&parties[1].0), &[]).unwrap_err();
    let stream_ctrl::UnbindDevError::StreamOpFailed(failed) = error else { panic!("{error}") };
    assert_eq!(failed.reason, "the stream has no such party");
    control.destroy(&[]).unwrap();
}
