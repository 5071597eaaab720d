//! Flow devices, flow end points and flow connections; multicast.

use spandrel::services::av_streams::{
    FDev, FlowConnection, FlowEndPoint, MmDevice, QoS, flow_connection, flow_end_point, mm_device,
};
use spandrel_avstreams::{AvLimits, DeviceDefinition, FRAME_RATE, FlowAddress, FlowDefinition, QosRange};

use crate::support::{Client, PATIENCE, Party, eventually, frame, qos, sink, source};

fn flow_device(client: &Client, party: &Party, flow: FlowDefinition) -> FDev {
    client.at(&party.streams().add_flow_device(flow).unwrap()).narrow().unwrap()
}

#[test]
fn flow_devices_bind_a_flow_and_its_connection_controls_it() {
    let (client, [sender, receiver]) = (Client::new(), [0; 2].map(|_| Party::new()));
    let ranged = FlowDefinition { qos: vec![QosRange::new(FRAME_RATE, 1, 100)], ..source("video", 1_000_000, 2_000) };
    let producer = flow_device(&client, &sender, ranged);
    let (flow, frames) = sink("video");
    let ranged = FlowDefinition { qos: vec![QosRange::new(FRAME_RATE, 1, 100)], ..flow };
    let consumer = flow_device(&client, &receiver, ranged);
    // The device that receives may ask as well.
    let (connection, is_met) = consumer.bind(Some(&producer), &mut QoS::default()).unwrap();
    let connection = connection.unwrap();
    assert!(is_met);
    connection.start().unwrap();
    assert_eq!(frames.recv_timeout(PATIENCE).unwrap().data, frame(1, 2_000));
    assert!(connection.modify_qo_s(&mut qos("video", FRAME_RATE, 50)[0]).unwrap());
    assert!(!connection.modify_qo_s(&mut qos("video", FRAME_RATE, 500)[0]).unwrap());
    let error = connection.modify_qo_s(&mut qos("video", FRAME_RATE, 0)[0]).unwrap_err();
    assert!(matches!(error, flow_connection::ModifyQoSError::QoSRequestFailed(_)), "{error}");

    // A second consumer of the same flow.
    let (flow, more_frames) = sink("video");
    let second = flow_device(&client, &receiver, flow);
    let (second, _) = second.create_consumer(Some(&connection), &mut QoS::default(), &mut String::new()).unwrap();
    let second = second.unwrap();
    assert!(connection.add_consumer(Some(&second), &mut QoS::default()).unwrap());
    more_frames.recv_timeout(PATIENCE).unwrap();
    let error = connection.add_consumer(Some(&second), &mut QoS::default()).unwrap_err();
    assert!(matches!(error, flow_connection::AddConsumerError::AlreadyConnected(_)), "{error}");
    let peer = second.get_connected_fep().unwrap();
    assert!(peer.is_some());
    assert!(connection.drop(Some(&second)).unwrap());
    assert!(matches!(connection.drop(Some(&second)), Err(flow_connection::DropError::NotConnected(_))));
    connection.destroy().unwrap();
    eventually("all flows end", || sender.streams().counts().1 == 0 && receiver.streams().counts().1 == 0);
}

#[test]
fn flow_end_points_raise_the_exceptions_of_their_states() {
    let (client, party) = (Client::new(), Party::new());
    let formats = |formats: &[&str]| formats.iter().map(|format| (*format).to_owned()).collect::<Vec<_>>();
    let sending = FlowDefinition { formats: formats(&["MPEG"]), ..source("video", 10, 100) };
    let receiving = FlowDefinition { formats: formats(&["AVI"]), ..sink("video").0 };
    let (sending, receiving) = (flow_device(&client, &party, sending), flow_device(&client, &party, receiving));
    let (producer, _) = sending.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let (consumer, _) = receiving.create_consumer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let (producer, consumer) = (producer.unwrap(), consumer.unwrap());
    sending.create_consumer(None, &mut QoS::default(), &mut String::new()).expect_err("it only sends");
    assert!(producer.lock().unwrap() && !producer.lock().unwrap());
    producer.unlock().unwrap();
    assert!(producer.lock().unwrap());
    let error = producer.get_connected_fep().unwrap_err();
    assert!(matches!(error, flow_end_point::GetConnectedFepError::NotConnected(_)), "{error}");
    let error = producer.is_fep_compatible(Some(&consumer)).unwrap_err();
    assert!(matches!(error, flow_end_point::IsFepCompatibleError::FormatMismatch(_)), "{error}");
    let connection: FlowConnection = client.at(&party.streams().new_flow_connection().unwrap()).narrow().unwrap();
    let error = connection.connect(Some(&producer), Some(&consumer), &mut QoS::default()).unwrap_err();
    assert!(matches!(error, flow_connection::ConnectError::FormatMismatch(_)), "{error}");
    producer.set_format("AVI").expect_err("the device has no such format");
    producer.set_format("MPEG").unwrap();
    let settings = spandrel::types::Any::new(0_u8).unwrap();
    let error = producer.use_flow_protocol("XTP", &settings).unwrap_err();
    assert!(matches!(error, flow_end_point::UseFlowProtocolError::FpError(_)), "{error}");
    assert!(producer.use_flow_protocol("SFP:1.0", &settings).unwrap());
    let error = producer.connect_to_peer(&mut QoS::default(), "UDP=nowhere", "").unwrap_err();
    assert!(matches!(error, flow_end_point::ConnectToPeerError::FailedToConnect(_)), "{error}");
    producer.destroy().unwrap();
    assert!(producer.lock().is_err());
}

#[test]
fn devices_have_flow_devices_and_streams_have_flow_end_points() {
    let (client, party) = (Client::new(), Party::new());
    let (_, device): (_, MmDevice) = party.device(&client, &[source("video", 10, 100)]);
    let flow = flow_device(&client, &party, source("audio", 10, 100));
    assert_eq!(device.add_fdev(Some(&flow)).unwrap(), "audio");
    assert!(matches!(device.add_fdev(Some(&flow)), Err(mm_device::AddFdevError::StreamOpFailed(_))));
    assert!(device.get_fdev("audio").unwrap().unwrap().is_equivalent(&flow));
    device.remove_fdev("audio").unwrap();
    assert!(matches!(device.get_fdev("audio"), Err(mm_device::GetFdevError::NoSuchFlow(_))));

    let (end_point, _, _) = device.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let end_point = end_point.unwrap();
    let fep: FlowEndPoint = end_point.get_fep("video").unwrap().unwrap().narrow().unwrap();
    assert!(fep.related_sep().unwrap().unwrap().is_equivalent(&end_point));
    end_point.get_fep("audio").unwrap_err();
    let (added, _) = flow.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let added = added.unwrap();
    assert_eq!(end_point.add_fep(Some(&added)).unwrap(), "audio");
    end_point.add_fep(Some(&added)).expect_err("the flow has a flow end point");
    end_point.start(&["audio".to_owned()]).unwrap();
    end_point.remove_fep("audio").unwrap();
    end_point.start(&["audio".to_owned()]).unwrap_err();
}

#[test]
fn the_consumers_of_a_flow_are_bounded() {
    let (client, sender) = (Client::new(), Party::with(AvLimits { receivers: 1, ..AvLimits::default() }));
    let receiver = Party::new();
    let producer = flow_device(&client, &sender, source("video", 1, 10));
    let (flow, _frames) = sink("video");
    let consumer = flow_device(&client, &receiver, flow);
    let (connection, _) = producer.bind(Some(&consumer), &mut QoS::default()).unwrap();
    let (flow, _more_frames) = sink("video");
    let second = flow_device(&client, &receiver, flow);
    let (second, _) = second.create_consumer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let error = connection.unwrap().add_consumer(second.as_ref(), &mut QoS::default()).unwrap_err();
    assert!(error.to_string().contains("IMP_LIMIT"), "{error}");
}

/// Also those that stay when their producer leaves.
#[test]
fn the_consumers_of_a_connection_are_bounded_over_all_its_producers() {
    let (client, party) = (Client::new(), Party::with(AvLimits { receivers: 1, ..AvLimits::default() }));
    let (sending, receiving) =
        (flow_device(&client, &party, source("video", 1, 10)), flow_device(&client, &party, sink("video").0));
    let connection: FlowConnection = client.at(&party.streams().new_flow_connection().unwrap()).narrow().unwrap();
    let connect = || {
        let (producer, _) = sending.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap();
        let (consumer, _) = receiving.create_consumer(None, &mut QoS::default(), &mut String::new()).unwrap();
        let outcome = connection.connect(producer.as_ref(), consumer.as_ref(), &mut QoS::default());
        outcome.map(|_| producer.unwrap())
    };
    let producer = connect().unwrap();
    assert!(connection.drop(Some(&producer)).unwrap());
    let error = connect().unwrap_err();
    assert!(error.to_string().contains("IMP_LIMIT"), "{error}");
}

/// A flow device forgets its flow end points, and an end point those that were removed: nothing grows with their number.
#[test]
fn flow_end_points_that_have_ended_are_forgotten() {
    let (client, party) = (Client::new(), Party::new());
    let device = flow_device(&client, &party, source("audio", 1, 10));
    for _ in 0..3 {
        let mut name = "one".to_owned();
        let (producer, _) = device.create_producer(None, &mut QoS::default(), &mut name).unwrap();
        producer.unwrap().destroy().unwrap();
    }
    let (_, device): (_, MmDevice) = party.device(&client, &[source("video", 1, 10)]);
    let before = party.streams().counts();
    for _ in 0..3 {
        let mut name = String::new();
        let (end_point, ..) = device.create_a(None, &mut Vec::new(), &mut name, &[]).unwrap();
        let end_point = end_point.unwrap();
        let fep: FlowEndPoint = end_point.get_fep("video").unwrap().unwrap().narrow().unwrap();
        end_point.remove_fep("video").unwrap();
        assert!(fep.lock().is_err(), "it has ended with its flow");
        device.destroy(Some(&end_point), &name).unwrap();
        assert_eq!(party.streams().counts(), before);
    }
}

#[test]
fn a_stream_goes_to_a_multicast_group() {
    let (client, sender) = (Client::new(), Party::new());
    let receivers = [0; 2].map(|_| Party::new());
    // A free port, which two receivers join.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() & !1;
    let group = FlowAddress::parse(&format!("UDP=239.255.40.40:{port}")).unwrap();
    let by_loopback = Some(std::net::Ipv4Addr::LOCALHOST);
    let sent = FlowDefinition { multicast_interface: by_loopback, ..source("video", 1_000_000, 500) };
    let groups = DeviceDefinition { flows: vec![sent], groups: vec![group], media_control: None };
    let own = sender.streams().add_device(groups).unwrap();
    let sending: MmDevice = client.at(&own).narrow().unwrap();
    let control = client.control(&sender);
    let spec = vec![r"video\in\\RTP\RTP/UDP".to_owned()];
    if let Err(error) = control.bind_devs(Some(&sending), None, &mut Vec::new(), &spec) {
        panic!("{error}");
    }
    let (mut frames, mut devices) = (Vec::new(), Vec::new());
    for receiver in &receivers {
        let (flow, received) = sink("video");
        let flow = FlowDefinition { multicast_interface: by_loopback, ..flow };
        let (_, device) = receiver.device(&client, &[flow]);
        assert!(control.bind_devs(None, Some(&device), &mut Vec::new(), &[]).unwrap());
        frames.push(received);
        devices.push(device);
    }
    control.start(&[]).unwrap();
    for received in &frames {
        assert_eq!(received.recv_timeout(PATIENCE).unwrap().data.len(), 500);
    }
    // The farewell of one receiver does not end the flow of the other.
    control.unbind_dev(Some(&devices[0]), &[]).unwrap();
    eventually("the receiver's flow ends", || receivers[0].streams().counts().1 == 0);
    let begin = std::time::Instant::now();
    eventually("the other one receives on", || {
        frames[1].recv_timeout(PATIENCE).unwrap();
        begin.elapsed() > std::time::Duration::from_millis(500)
    });
    assert!(sender.streams().ends(&own, "video").iter().all(Option::is_none));
    control.destroy(&[]).unwrap();
}
