//! Each exception of each operation, as a client receives it. `sentences.md` has those that are never raised, with the reason.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use spandrel::services::av_streams::{
    FDev, FDevServant, FlowConnection, FlowConsumer, FlowEndPoint, FlowProducer, MCastConfigIf, MmDevice,
    MmDeviceServant, NotSupported, PropertyException, QoS, QoSRequestFailed, StreamCtrl, StreamEndPoint,
    StreamEndPointA, StreamEndPointB, StreamOpDenied, StreamOpFailed, StreamQoS, VDev, VDevServant, basic_stream_ctrl,
    f_dev, flow_connection, flow_end_point, flow_producer, m_cast_config_if, mm_device, stream_ctrl, stream_end_point,
    stream_end_point_a, stream_end_point_b, v_dev,
};
use spandrel::services::cos_property_service::Property;
use spandrel::types::Any;
use spandrel::{ObjectRef, Poa};
use spandrel_avstreams::{FRAME_RATE, FlowDefinition, QosRange, ReceivedFrame};
use spandrel_property::{IteratorOptions, Limits, LocalPropertySet, PropertyIterators, delegate_property_set};
use spandrel_test_support::raises;

use crate::support::{Client, Party, qos, sink, source};

/// A party with a device that sends the flow `video`, and one that receives it.
struct Devices {
    client: Client,
    party: Party,
    sending: MmDevice,
    receiving: MmDevice,
    /// The adapter of foreign objects.
    adapter: Poa,
    iterators: Arc<PropertyIterators>,
    _frames: Receiver<ReceivedFrame>,
}

impl Devices {
    fn new() -> Self {
        let (client, party) = (Client::new(), Party::new());
        let (flow, frames) = sink("video");
        let (_, sending) = party.device(&client, &[ranged(source("video", 1, 10))]);
        let (_, receiving) = party.device(&client, &[ranged(flow)]);
        let adapter = Poa::root(&party.orb).unwrap();
        adapter.the_poa_manager().activate().unwrap();
        let iterators = PropertyIterators::new(&adapter, IteratorOptions::default()).unwrap();
        Self { client, party, sending, receiving, adapter, iterators, _frames: frames }
    }

    fn control(&self) -> StreamCtrl {
        self.client.control(&self.party)
    }

    /// End points of both devices that are not connected.
    fn ends(&self) -> (StreamEndPointA, StreamEndPointB) {
        let (a_end, ..) = self.sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        let (b_end, ..) = self.receiving.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
        (a_end.unwrap(), b_end.unwrap())
    }

    fn flow_device(&self, flow: FlowDefinition) -> FDev {
        self.client.at(&self.party.streams().add_flow_device(flow).unwrap()).narrow().unwrap()
    }

    fn flow_connection(&self) -> FlowConnection {
        self.client.at(&self.party.streams().new_flow_connection().unwrap()).narrow().unwrap()
    }

    /// The properties of a foreign object.
    fn properties(&self) -> LocalPropertySet {
        LocalPropertySet::new(&self.iterators, Limits::default())
    }

    /// A device that makes the end points of another one, with this virtual device.
    fn foreign_device(&self, device: &MmDevice, virtual_device: RefusingDevice) -> (MmDevice, VDev) {
        let virtual_device: VDev = self.adapter.serve(virtual_device).unwrap();
        let (properties, device, own) = (self.properties(), device.clone(), virtual_device.clone());
        let foreign = ForeignDevice { properties, device, virtual_device: own };
        let foreign: MmDevice = self.adapter.serve(foreign).unwrap();
        (self.client.at(&foreign).narrow().unwrap(), self.client.at(&virtual_device).narrow().unwrap())
    }
}

fn ranged(flow: FlowDefinition) -> FlowDefinition {
    FlowDefinition { qos: vec![QosRange::new(FRAME_RATE, 1, 100)], ..flow }
}

/// The name of a flow that no device has.
fn unknown() -> Vec<String> {
    vec!["audio".to_owned()]
}

/// A parameter that no flow has.
fn impossible() -> Vec<QoS> {
    qos("", "depth", 8)
}

fn octet() -> Any {
    Any::new(0_u8).unwrap()
}

fn nameless() -> Property {
    Property { property_name: String::new(), property_value: octet() }
}

/// An address with a token, at which nothing listens.
fn address() -> String {
    format!("UDP=127.0.0.1:9;token={}", "0".repeat(64))
}

#[test]
fn controls_raise_the_exceptions_of_their_flows() {
    let devices = Devices::new();
    let control = devices.control();
    assert!(control.bind_devs(Some(&devices.sending), Some(&devices.receiving), &mut Vec::new(), &[]).unwrap());
    raises!(basic_stream_ctrl::StartError::NoSuchFlow, control.start(&unknown()));
    raises!(basic_stream_ctrl::StopError::NoSuchFlow, control.stop(&unknown()));
    raises!(basic_stream_ctrl::DestroyError::NoSuchFlow, control.destroy(&unknown()));
    raises!(basic_stream_ctrl::ModifyQoSError::NoSuchFlow, control.modify_qo_s(&mut Vec::new(), &unknown()));
    raises!(basic_stream_ctrl::ModifyQoSError::QoSRequestFailed, control.modify_qo_s(&mut impossible(), &[]));
    let set = |flows: &[String], settings: &Any| control.set_fp_status(flows, "SFP:1.0", settings);
    raises!(basic_stream_ctrl::SetFpStatusError::NoSuchFlow, set(&unknown(), &octet()));
    raises!(basic_stream_ctrl::SetFpStatusError::FpError, set(&[], &octet()));
    raises!(basic_stream_ctrl::GetFlowConnectionError::NoSuchFlow, control.get_flow_connection("audio"));
    raises!(basic_stream_ctrl::GetFlowConnectionError::NotSupported, control.get_flow_connection("video"));
    raises!(basic_stream_ctrl::SetFlowConnectionError::NoSuchFlow, control.set_flow_connection("audio", None));
    // A connection that was set is returned.
    let connection = devices.flow_connection();
    control.set_flow_connection("video", Some(&connection)).unwrap();
    assert!(control.get_flow_connection("video").unwrap().unwrap().is_equivalent(&connection));
    control.destroy(&[]).unwrap();
}

#[test]
fn controls_raise_the_exceptions_of_their_parties() {
    let devices = Devices::new();
    let Devices { sending, receiving, .. } = &devices;
    let control = devices.control();
    let bind_devs =
        |qos: &mut Vec<QoS>, flows: &[String]| control.bind_devs(Some(sending), Some(receiving), qos, flows);
    raises!(stream_ctrl::BindDevsError::StreamOpFailed, control.bind_devs(None, None, &mut Vec::new(), &[]));
    raises!(stream_ctrl::BindDevsError::NoSuchFlow, bind_devs(&mut Vec::new(), &unknown()));
    raises!(stream_ctrl::BindDevsError::QoSRequestFailed, bind_devs(&mut impossible(), &[]));
    let (a_end, b_end) = devices.ends();
    let bind = |qos: &mut Vec<QoS>, flows: &[String]| control.bind(Some(&a_end), Some(&b_end), qos, flows);
    raises!(stream_ctrl::BindError::StreamOpFailed, control.bind(Some(&a_end), None, &mut Vec::new(), &[]));
    raises!(stream_ctrl::BindError::NoSuchFlow, bind(&mut Vec::new(), &unknown()));
    raises!(stream_ctrl::BindError::QoSRequestFailed, bind(&mut impossible(), &[]));
    assert!(bind(&mut Vec::new(), &[]).unwrap());
    raises!(stream_ctrl::UnbindDevError::StreamOpFailed, control.unbind_dev(Some(sending), &[]));
    raises!(stream_ctrl::UnbindDevError::NoSuchFlow, control.unbind_dev(Some(sending), &unknown()));
    raises!(stream_ctrl::UnbindPartyError::StreamOpFailed, control.unbind_party(None, &[]));
    raises!(stream_ctrl::UnbindPartyError::NoSuchFlow, control.unbind_party(Some(&a_end), &unknown()));
    raises!(stream_ctrl::GetRelatedVdevError::StreamOpFailed, control.get_related_vdev(Some(sending)));
    control.unbind().unwrap();
}

#[test]
fn a_configuration_raises_the_exceptions_of_its_peers() {
    let devices = Devices::new();
    let configuration: Arc<Mutex<Option<MCastConfigIf>>> = Arc::default();
    let refusing = RefusingDevice {
        properties: devices.properties(),
        configuration: Arc::clone(&configuration),
        refuses_streams: false,
    };
    let (foreign, peer) = devices.foreign_device(&devices.receiving, refusing);
    let control = devices.control();
    for (a_device, b_device) in [(Some(&devices.sending), None), (None, Some(&foreign))] {
        assert!(control.bind_devs(a_device, b_device, &mut Vec::new(), &[]).unwrap());
    }
    let configuration = configuration.lock().unwrap().take().unwrap();
    let configuration: MCastConfigIf = devices.client.at(&configuration).narrow().unwrap();
    let set_peer = |peer: Option<&ObjectRef>, qos: &mut Vec<QoS>| configuration.set_peer(peer, qos, &[]);
    raises!(m_cast_config_if::SetPeerError::StreamOpFailed, set_peer(None, &mut Vec::new()));
    raises!(m_cast_config_if::SetPeerError::QoSRequestFailed, set_peer(Some(&peer), &mut impossible()));
    raises!(m_cast_config_if::SetFormatError::NotSupported, configuration.set_format("video", "AVI"));
    let set = |settings: &[Property]| configuration.set_dev_params("video", settings);
    raises!(m_cast_config_if::SetDevParamsError::PropertyException, set(&[]));
    raises!(m_cast_config_if::SetDevParamsError::StreamOpFailed, configuration.set_dev_params("video", &[nameless()]));
    control.destroy(&[]).unwrap();
}

/// A stream that cannot begin leaves no configuration behind.
#[test]
fn a_multipoint_stream_whose_sender_refuses_leaves_no_objects() {
    let devices = Devices::new();
    let properties = devices.properties();
    let refusing = RefusingDevice { properties, configuration: Arc::default(), refuses_streams: true };
    let (foreign, _) = devices.foreign_device(&devices.sending, refusing);
    let control = devices.control();
    let objects = || {
        // Virtual devices go with the next stream of their device.
        devices.sending.create_a(None, &mut Vec::new(), &mut String::new(), &unknown()).unwrap_err();
        devices.party.streams().counts().0
    };
    let before = objects();
    for _ in 0..3 {
        let refused = control.bind_devs(Some(&foreign), None, &mut Vec::new(), &[]);
        raises!(stream_ctrl::BindDevsError::StreamOpFailed, refused);
        assert_eq!(objects(), before);
    }
}

#[test]
fn end_points_raise_the_exceptions_of_their_flows() {
    let devices = Devices::new();
    let (a_end, b_end) = devices.ends();
    raises!(stream_end_point::StopError::NoSuchFlow, a_end.stop(&unknown()));
    raises!(stream_end_point::StartError::NoSuchFlow, a_end.start(&unknown()));
    raises!(stream_end_point::DestroyError::NoSuchFlow, a_end.destroy(&unknown()));
    let connect = |qos: &mut Vec<QoS>, flows: &[String]| a_end.connect(Some(&b_end), qos, flows);
    raises!(stream_end_point::ConnectError::NoSuchFlow, connect(&mut Vec::new(), &unknown()));
    raises!(stream_end_point::ConnectError::QoSRequestFailed, connect(&mut impossible(), &[]));
    raises!(stream_end_point::ConnectError::StreamOpFailed, a_end.connect(None, &mut Vec::new(), &[]));
    let request_connection = |is_mcast: bool, qos: &mut Vec<QoS>, flow: &str| {
        b_end.request_connection(None, is_mcast, qos, &mut vec![flow.to_owned()])
    };
    let none = Vec::new;
    raises!(stream_end_point::RequestConnectionError::StreamOpDenied, request_connection(true, &mut none(), "video"));
    raises!(stream_end_point::RequestConnectionError::NoSuchFlow, request_connection(false, &mut none(), "audio"));
    raises!(
        stream_end_point::RequestConnectionError::QoSRequestFailed,
        request_connection(false, &mut impossible(), "video")
    );
    raises!(
        stream_end_point::RequestConnectionError::FpError,
        request_connection(false, &mut none(), r"video\in\\RTP\TCP")
    );
    raises!(stream_end_point::ModifyQoSError::NoSuchFlow, a_end.modify_qo_s(&mut none(), &unknown()));
    raises!(stream_end_point::ModifyQoSError::QoSRequestFailed, a_end.modify_qo_s(&mut impossible(), &[]));
    raises!(stream_end_point::DisconnectError::NoSuchFlow, a_end.disconnect(&unknown()));
    let set = |flows: &[String]| a_end.set_fp_status(flows, "SFP:1.0", &octet());
    raises!(stream_end_point::SetFpStatusError::NoSuchFlow, set(&unknown()));
    raises!(stream_end_point::SetFpStatusError::FpError, set(&[]));
    raises!(stream_end_point::GetFepError::NoSuchFlow, a_end.get_fep("audio"));
    raises!(stream_end_point::AddFepError::NotSupported, a_end.add_fep(Some(&devices.sending)));
    raises!(stream_end_point::AddFepError::StreamOpFailed, a_end.add_fep(None));
    raises!(stream_end_point::RemoveFepError::StreamOpFailed, a_end.remove_fep("audio"));
}

#[test]
fn end_points_raise_the_exceptions_of_multipoint_streams() {
    let devices = Devices::new();
    let (a_end, b_end) = devices.ends();
    let none = Vec::new;
    raises!(stream_end_point_a::MulticonnectError::NoSuchFlow, a_end.multiconnect(&mut none(), &mut unknown()));
    raises!(
        stream_end_point_a::MulticonnectError::QoSRequestFailed,
        a_end.multiconnect(&mut impossible(), &mut Vec::new())
    );
    raises!(stream_end_point_a::MulticonnectError::StreamOpFailed, a_end.multiconnect(&mut none(), &mut Vec::new()));
    let connect_leaf = |qos: &mut Vec<QoS>, flows: &[String]| a_end.connect_leaf(Some(&b_end), qos, flows);
    raises!(stream_end_point_a::ConnectLeafError::StreamOpFailed, a_end.connect_leaf(None, &mut none(), &[]));
    raises!(stream_end_point_a::ConnectLeafError::NoSuchFlow, connect_leaf(&mut none(), &unknown()));
    raises!(stream_end_point_a::ConnectLeafError::QoSRequestFailed, connect_leaf(&mut impossible(), &[]));
    // A further receiver gets datagrams.
    let by_tcp = [r"video\in\\\TCP".to_owned()];
    raises!(stream_end_point_a::ConnectLeafError::NotSupported, connect_leaf(&mut none(), &by_tcp));
    let disconnect_leaf = |flows: &[String]| a_end.disconnect_leaf(Some(&b_end), flows);
    raises!(stream_end_point_a::DisconnectLeafError::StreamOpFailed, disconnect_leaf(&[]));
    raises!(stream_end_point_a::DisconnectLeafError::NoSuchFlow, disconnect_leaf(&unknown()));
    raises!(stream_end_point_b::MulticonnectError::StreamOpFailed, b_end.multiconnect(&mut none(), &mut Vec::new()));
    raises!(stream_end_point_b::MulticonnectError::NoSuchFlow, b_end.multiconnect(&mut none(), &mut unknown()));
    raises!(
        stream_end_point_b::MulticonnectError::QoSRequestFailed,
        b_end.multiconnect(&mut impossible(), &mut Vec::new())
    );
}

#[test]
fn virtual_devices_raise_the_exceptions_of_their_settings() {
    let devices = Devices::new();
    let (_, device, _) = devices.sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let device = device.unwrap();
    let none = Vec::new;
    raises!(v_dev::SetPeerError::NoSuchFlow, device.set_peer(None, None, &mut none(), &unknown()));
    raises!(v_dev::SetPeerError::QoSRequestFailed, device.set_peer(None, None, &mut impossible(), &[]));
    raises!(v_dev::SetMcastPeerError::NoSuchFlow, device.set_mcast_peer(None, None, &mut none(), &unknown()));
    raises!(v_dev::SetMcastPeerError::QoSRequestFailed, device.set_mcast_peer(None, None, &mut impossible(), &[]));
    raises!(v_dev::ConfigureError::PropertyException, device.configure(&nameless()));
    raises!(v_dev::SetFormatError::NotSupported, device.set_format("audio", "MPEG"));
    raises!(v_dev::SetDevParamsError::PropertyException, device.set_dev_params("video", &[nameless()]));
    raises!(v_dev::SetDevParamsError::StreamOpFailed, device.set_dev_params("audio", &[]));
    raises!(v_dev::ModifyQoSError::NoSuchFlow, device.modify_qo_s(&mut none(), &unknown()));
    raises!(v_dev::ModifyQoSError::QoSRequestFailed, device.modify_qo_s(&mut impossible(), &[]));
}

#[test]
fn devices_raise_the_exceptions_of_their_streams() {
    let devices = Devices::new();
    let (device, peer) = (&devices.sending, &devices.receiving);
    let none = Vec::new;
    let wrong = [String::new()];
    let create_a =
        |qos: &mut Vec<QoS>, name: &str, flows: &[String]| device.create_a(None, qos, &mut name.to_owned(), flows);
    raises!(mm_device::CreateAError::StreamOpFailed, create_a(&mut none(), "", &wrong));
    raises!(mm_device::CreateAError::QoSRequestFailed, create_a(&mut impossible(), "", &[]));
    raises!(mm_device::CreateAError::NoSuchFlow, create_a(&mut none(), "", &unknown()));
    create_a(&mut none(), "one", &[]).unwrap();
    raises!(mm_device::CreateAError::StreamOpDenied, create_a(&mut none(), "one", &[]));
    let create_b =
        |qos: &mut Vec<QoS>, name: &str, flows: &[String]| device.create_b(None, qos, &mut name.to_owned(), flows);
    raises!(mm_device::CreateBError::StreamOpFailed, create_b(&mut none(), "", &wrong));
    raises!(mm_device::CreateBError::QoSRequestFailed, create_b(&mut impossible(), "", &[]));
    raises!(mm_device::CreateBError::NoSuchFlow, create_b(&mut none(), "", &unknown()));
    raises!(mm_device::CreateBError::StreamOpDenied, create_b(&mut none(), "one", &[]));
    raises!(mm_device::CreateBError::StreamOpDenied, create_b(&mut none(), &"n".repeat(129), &[]));
    raises!(mm_device::BindError::StreamOpFailed, device.bind(None, &mut none(), &[]));
    raises!(mm_device::BindError::NoSuchFlow, device.bind(Some(peer), &mut none(), &unknown()));
    raises!(mm_device::BindError::QoSRequestFailed, device.bind(Some(peer), &mut impossible(), &[]));
    raises!(mm_device::BindMcastError::StreamOpFailed, device.bind_mcast(None, &mut none(), &[]));
    raises!(mm_device::BindMcastError::NoSuchFlow, device.bind_mcast(Some(peer), &mut none(), &unknown()));
    raises!(mm_device::BindMcastError::QoSRequestFailed, device.bind_mcast(Some(peer), &mut impossible(), &[]));
    raises!(mm_device::DestroyError::NotSupported, device.destroy(None, "none"));
    raises!(mm_device::AddFdevError::StreamOpFailed, device.add_fdev(None));
    raises!(mm_device::GetFdevError::NoSuchFlow, device.get_fdev("audio"));
    raises!(mm_device::RemoveFdevError::NoSuchFlow, device.remove_fdev("audio"));
}

#[test]
fn flow_connections_raise_the_exceptions_of_their_flow_end_points() {
    let devices = Devices::new();
    let with_format = |flow: FlowDefinition, format: &str| FlowDefinition { formats: vec![format.to_owned()], ..flow };
    let sending = devices.flow_device(with_format(ranged(source("video", 1, 10)), "MPEG"));
    let receiving = devices.flow_device(with_format(ranged(sink("video").0), "MPEG"));
    let other = devices.flow_device(with_format(sink("video").0, "AVI"));
    let producer = || sending.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap().0.unwrap();
    let consumer =
        |device: &FDev| device.create_consumer(None, &mut QoS::default(), &mut String::new()).unwrap().0.unwrap();
    let connection = devices.flow_connection();
    let connect_devs = |qos: &mut QoS| connection.connect_devs(Some(&sending), Some(&receiving), qos);
    raises!(
        flow_connection::ConnectDevsError::StreamOpFailed,
        connection.connect_devs(Some(&sending), None, &mut QoS::default())
    );
    raises!(flow_connection::ConnectDevsError::QoSRequestFailed, connect_devs(&mut impossible()[0]));
    let denying: FDev = devices.adapter.serve(DenyingDevice { properties: devices.properties() }).unwrap();
    let denying: FDev = devices.client.at(&denying).narrow().unwrap();
    let denied = connection.connect_devs(Some(&denying), Some(&receiving), &mut QoS::default());
    raises!(flow_connection::ConnectDevsError::StreamOpDenied, denied);

    let (first, second) = (producer(), consumer(&receiving));
    let connect = |consumer: Option<&FlowConsumer>, qos: &mut QoS| connection.connect(Some(&first), consumer, qos);
    raises!(flow_connection::ConnectError::FepMismatch, connect(None, &mut QoS::default()));
    raises!(flow_connection::ConnectError::FepMismatch, connect(Some(&second), &mut impossible()[0]));
    raises!(flow_connection::ConnectError::FormatMismatch, connect(Some(&consumer(&other)), &mut QoS::default()));
    assert!(connect(Some(&second), &mut QoS::default()).unwrap());
    raises!(flow_connection::ConnectError::AlreadyConnected, connect(Some(&second), &mut QoS::default()));
    raises!(flow_connection::ModifyQoSError::QoSRequestFailed, connection.modify_qo_s(&mut impossible()[0]));
    raises!(flow_connection::UseFlowProtocolError::FpError, connection.use_flow_protocol("XTP", &octet()));
    let add_producer = |producer: &FlowProducer| connection.add_producer(Some(producer), &mut QoS::default());
    raises!(flow_connection::AddProducerError::AlreadyConnected, add_producer(&first));
    raises!(flow_connection::AddProducerError::NotSupported, add_producer(&producer()));
    let add_consumer = |consumer: &FlowConsumer| connection.add_consumer(Some(consumer), &mut QoS::default());
    raises!(flow_connection::AddConsumerError::AlreadyConnected, add_consumer(&second));
    assert!(!add_consumer(&consumer(&other)).unwrap(), "a consumer of another format is not added");
    raises!(flow_connection::DropError::NotConnected, connection.drop(None));
    connection.destroy().unwrap();
}

#[test]
fn flow_end_points_raise_the_exceptions_of_their_settings() {
    let devices = Devices::new();
    let formats = vec!["MPEG".to_owned()];
    let sending = devices.flow_device(FlowDefinition { formats, ..ranged(source("video", 1, 10)) });
    let formats = vec!["AVI".to_owned()];
    let receiving = devices.flow_device(FlowDefinition { formats, ..ranged(sink("video").0) });
    let (producer, _) = sending.create_producer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let (consumer, _) = receiving.create_consumer(None, &mut QoS::default(), &mut String::new()).unwrap();
    let (producer, consumer) = (producer.unwrap(), consumer.unwrap());
    raises!(flow_end_point::GetConnectedFepError::NotConnected, producer.get_connected_fep());
    raises!(flow_end_point::UseFlowProtocolError::FpError, producer.use_flow_protocol("XTP", &octet()));
    raises!(flow_end_point::SetFormatError::NotSupported, producer.set_format("AVI"));
    raises!(flow_end_point::SetDevParamsError::PropertyException, producer.set_dev_params(&[nameless()]));
    let restricted = producer.set_protocol_restriction(&["AAL5".to_owned()]);
    raises!(flow_end_point::SetProtocolRestrictionError::NotSupported, restricted);
    raises!(flow_end_point::IsFepCompatibleError::FormatMismatch, producer.is_fep_compatible(Some(&consumer)));
    raises!(flow_end_point::SetPeerError::QoSRequestFailed, producer.set_peer(None, None, &mut impossible()[0]));
    raises!(
        flow_end_point::SetMcastPeerError::QoSRequestFailed,
        producer.set_mcast_peer(None, None, &mut impossible()[0])
    );
    let connect_to_peer =
        |qos: &mut QoS, address: &str, protocol: &str| producer.connect_to_peer(qos, address, protocol);
    raises!(
        flow_end_point::ConnectToPeerError::FailedToConnect,
        connect_to_peer(&mut QoS::default(), "UDP=nowhere", "")
    );
    raises!(flow_end_point::ConnectToPeerError::FpError, connect_to_peer(&mut QoS::default(), &address(), "XTP"));
    raises!(
        flow_end_point::ConnectToPeerError::QoSRequestFailed,
        connect_to_peer(&mut impossible()[0], &address(), "")
    );
    let go_to_listen = |qos: &mut QoS, is_mcast: bool, protocol: &str| {
        consumer.go_to_listen(qos, is_mcast, None, &mut protocol.to_owned())
    };
    raises!(flow_end_point::GoToListenError::FailedToListen, go_to_listen(&mut QoS::default(), true, ""));
    raises!(flow_end_point::GoToListenError::FpError, go_to_listen(&mut QoS::default(), false, "XTP"));
    raises!(flow_end_point::GoToListenError::QoSRequestFailed, go_to_listen(&mut impossible()[0], false, ""));
    let connect_mcast = |qos: &mut QoS, address: &str, protocol: &str| producer.connect_mcast(qos, address, protocol);
    raises!(
        flow_producer::ConnectMcastError::FailedToConnect,
        connect_mcast(&mut QoS::default(), "UDP=239.255.40.41:7000", "")
    );
    raises!(flow_producer::ConnectMcastError::FpError, connect_mcast(&mut QoS::default(), &address(), "XTP"));
    raises!(flow_producer::ConnectMcastError::QoSRequestFailed, connect_mcast(&mut impossible()[0], &address(), ""));
}

#[test]
fn flow_devices_raise_the_exceptions_of_their_flow_end_points() {
    let devices = Devices::new();
    let sending = devices.flow_device(ranged(source("video", 1, 10)));
    let receiving = devices.flow_device(ranged(sink("video").0));
    let create_producer =
        |device: &FDev, qos: &mut QoS, name: &str| device.create_producer(None, qos, &mut name.to_owned());
    create_producer(&sending, &mut QoS::default(), "one").unwrap();
    raises!(f_dev::CreateProducerError::StreamOpDenied, create_producer(&sending, &mut QoS::default(), "one"));
    raises!(f_dev::CreateProducerError::NotSupported, create_producer(&receiving, &mut QoS::default(), ""));
    raises!(f_dev::CreateProducerError::QoSRequestFailed, create_producer(&sending, &mut impossible()[0], ""));
    let create_consumer =
        |device: &FDev, qos: &mut QoS, name: &str| device.create_consumer(None, qos, &mut name.to_owned());
    create_consumer(&receiving, &mut QoS::default(), "one").unwrap();
    raises!(f_dev::CreateConsumerError::StreamOpDenied, create_consumer(&receiving, &mut QoS::default(), "one"));
    let long = "n".repeat(129);
    raises!(f_dev::CreateConsumerError::StreamOpDenied, create_consumer(&receiving, &mut QoS::default(), &long));
    raises!(f_dev::CreateConsumerError::NotSupported, create_consumer(&sending, &mut QoS::default(), ""));
    raises!(f_dev::CreateConsumerError::QoSRequestFailed, create_consumer(&receiving, &mut impossible()[0], ""));
    raises!(f_dev::BindError::StreamOpFailed, sending.bind(None, &mut QoS::default()));
    raises!(f_dev::BindError::QoSRequestFailed, sending.bind(Some(&receiving), &mut impossible()[0]));
    raises!(f_dev::BindMcastError::StreamOpFailed, sending.bind_mcast(None, &mut QoS::default()));
    raises!(f_dev::BindMcastError::QoSRequestFailed, sending.bind_mcast(Some(&receiving), &mut impossible()[0]));
    raises!(f_dev::DestroyError::NotSupported, sending.destroy(None, "none"));
}

/// A virtual device that keeps the configuration of its stream, and refuses most operations.
struct RefusingDevice {
    properties: LocalPropertySet,
    configuration: Arc<Mutex<Option<MCastConfigIf>>>,
    refuses_streams: bool,
}

delegate_property_set!(RefusingDevice, properties);

fn failed() -> StreamOpFailed {
    StreamOpFailed { reason: "the device refuses".to_owned() }
}

impl VDevServant for RefusingDevice {
    fn set_peer(
        &self,
        _: Option<&StreamCtrl>,
        _: Option<&VDev>,
        _: &mut StreamQoS,
        _: &[String],
    ) -> Result<bool, v_dev::SetPeerError> {
        Err(failed().into())
    }

    fn set_mcast_peer(
        &self,
        _: Option<&StreamCtrl>,
        configuration: Option<&MCastConfigIf>,
        _: &mut StreamQoS,
        _: &[String],
    ) -> Result<bool, v_dev::SetMcastPeerError> {
        if self.refuses_streams {
            return Err(failed().into());
        }
        *self.configuration.lock().unwrap() = configuration.cloned();
        Ok(true)
    }

    fn configure(&self, _: &Property) -> Result<(), v_dev::ConfigureError> {
        Err(PropertyException {}.into())
    }

    fn set_format(&self, _: &str, _: &str) -> Result<(), v_dev::SetFormatError> {
        Err(NotSupported {}.into())
    }

    fn set_dev_params(&self, _: &str, settings: &[Property]) -> Result<(), v_dev::SetDevParamsError> {
        if settings.is_empty() { Err(PropertyException {}.into()) } else { Err(failed().into()) }
    }

    fn modify_qo_s(&self, qos: &mut StreamQoS, _: &[String]) -> Result<bool, v_dev::ModifyQoSError> {
        if qos.is_empty() {
            return Ok(true);
        }
        Err(QoSRequestFailed { reason: "the device refuses".to_owned() }.into())
    }
}

/// A device with the end points of another one, and a virtual device of its own.
struct ForeignDevice {
    properties: LocalPropertySet,
    device: MmDevice,
    virtual_device: VDev,
}

delegate_property_set!(ForeignDevice, properties);

impl MmDeviceServant for ForeignDevice {
    fn create_a(
        &self,
        control: Option<&StreamCtrl>,
        qos: &mut StreamQoS,
        name: &mut String,
        spec: &[String],
    ) -> Result<(Option<StreamEndPointA>, Option<VDev>, bool), mm_device::CreateAError> {
        let (end_point, _, is_met) = self.device.create_a(control, qos, name, spec)?;
        Ok((end_point, Some(self.virtual_device.clone()), is_met))
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
        Err(failed().into())
    }

    fn bind_mcast(
        &self,
        _: Option<&MmDevice>,
        _: &mut StreamQoS,
        _: &[String],
    ) -> Result<(Option<StreamCtrl>, bool), mm_device::BindMcastError> {
        Err(failed().into())
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

/// A flow device that denies all flows.
struct DenyingDevice {
    properties: LocalPropertySet,
}

delegate_property_set!(DenyingDevice, properties);

fn denied() -> StreamOpDenied {
    StreamOpDenied { reason: "the device is reserved".to_owned() }
}

impl FDevServant for DenyingDevice {
    fn create_producer(
        &self,
        _: Option<&FlowConnection>,
        _: &mut QoS,
        _: &mut String,
    ) -> Result<(Option<FlowProducer>, bool), f_dev::CreateProducerError> {
        Err(denied().into())
    }

    fn create_consumer(
        &self,
        _: Option<&FlowConnection>,
        _: &mut QoS,
        _: &mut String,
    ) -> Result<(Option<FlowConsumer>, bool), f_dev::CreateConsumerError> {
        Err(denied().into())
    }

    fn bind(&self, _: Option<&FDev>, _: &mut QoS) -> Result<(Option<FlowConnection>, bool), f_dev::BindError> {
        Err(failed().into())
    }

    fn bind_mcast(
        &self,
        _: Option<&FDev>,
        _: &mut QoS,
    ) -> Result<(Option<FlowConnection>, bool), f_dev::BindMcastError> {
        Err(failed().into())
    }

    fn destroy(&self, _: Option<&FlowEndPoint>, _: &str) -> Result<(), f_dev::DestroyError> {
        Err(NotSupported {}.into())
    }
}
