//! The network priority of replies: the options of accepted sockets after each one.

use spandrel_server::DeferredCall;

use super::*;
use crate::NetworkPriorityMapping;

/// Class selector 5 with the socket priority 4 for 100, and a number beyond the code points for 200.
#[derive(Debug)]
struct Plant;

impl NetworkPriorityMapping for Plant {
    fn to_network(&self, priority: Priority) -> Option<u8> {
        match priority.get() {
            10 => Some(0),
            20 => None,
            100 => Some(40),
            200 => Some(64),
            _ => Some(8),
        }
    }

    fn to_socket(&self, priority: Priority) -> Option<u32> {
        (priority.get() == 100).then_some(4)
    }
}

/// A servant that records the traffic class and the priority of its request's socket, which are those of the reply before.
#[derive(Default)]
struct Packets {
    of_sockets: Mutex<Vec<(u8, u32)>>,
    deferred: Mutex<Option<DeferredCall>>,
}

impl Packets {
    fn take(&self) -> Vec<(u8, u32)> {
        std::mem::take(&mut *self.of_sockets.lock().unwrap())
    }
}

impl Servant for Packets {
    fn repository_id(&self) -> &str {
        "IDL:Packets:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let options = |stream: &inet::Stream| (stream.tos().unwrap(), stream.priority().unwrap());
        self.of_sockets.lock().unwrap().extend(with_current_stream(options));
        call.arguments()?.str()?;
        if operation == "defer" {
            let (deferred, replied) = call.defer()?;
            *self.deferred.lock().unwrap() = Some(deferred);
            return Ok(replied);
        }
        if operation == "fail" {
            return Err(SystemException::unknown(0, CompletionStatus::Yes));
        }
        call.reply(|_| Ok(()))
    }
}

/// An object with this priority model, whose adapter enables network priorities or does not.
fn serve(
    server: &ProtocolServer,
    name: &str,
    model: PriorityModel,
    is_enabled: bool,
) -> (Poa, ObjectRef, Arc<Packets>) {
    let mut tcp = TcpProtocolProperties::default();
    tcp.enable_network_priority = is_enabled;
    let protocols = policy(&[(IIOP, Some(TransportProperties::Tcp(tcp)))]);
    let model = PriorityModelPolicy { model, server_priority: priority(10) };
    let policies = [model.into(), ThreadpoolPolicy(server.pool).into(), protocols];
    let root = Poa::root(&server.orb).unwrap();
    let adapter = root.child(name).user_ids().real_time(&server.rt_orb, policies).unwrap().create().unwrap();
    let packets = Arc::<Packets>::default();
    adapter.activate_object_with_id(&"packets".into(), Arc::<Packets>::clone(&packets) as _).unwrap();
    let object = adapter.id_to_reference(&"packets".into()).unwrap();
    (adapter, object, packets)
}

fn connect(object: &ObjectRef) -> Client {
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    Client::new(object, TcpStream::connect((profile.host.as_str(), profile.port)).unwrap())
}

#[test]
fn replies_have_the_network_priority_of_their_request() {
    let server = ProtocolServer::listening(&["iiop", "uds"]);
    let (_, object, packets) = serve(&server, "propagated", PriorityModel::ClientPropagated, true);
    let mut client = connect(&object);
    let mut send = |operation: &str, number| {
        client.send(operation, "text", Some(number));
        client.reply().1.map(|exception| exception.kind())
    };
    // Without a mapping, all replies have the system's.
    assert_eq!((send("note", 100), send("note", 100)), (None, None));
    assert_eq!(packets.take(), [(0, 0); 2]);
    server.rt_orb.set_network_priorities(Some(Arc::new(Plant)));
    for number in [100, 20, 100, 50] {
        assert_eq!(send("note", number), None);
    }
    // A reply with an exception has it as well. The system derives a socket priority from the class where none is given.
    assert_eq!(send("fail", 100), Some(SystemExceptionKind::Unknown));
    assert_eq!(send("note", 10), None);
    let [first, rest @ ..] = &packets.take()[..] else { panic!("six requests") };
    assert_eq!(*first, (0, 0));
    assert_eq!(rest.iter().map(|(class, _)| *class).collect::<Vec<_>>(), [160, 0, 160, 32, 160]);
    assert_eq!((rest[0].1, rest[2].1, rest[4].1), (4, 4, 4));

    // A mapping to no code point: the servant does not run.
    assert_eq!(send("note", 200), Some(SystemExceptionKind::DataConversion));
    assert_eq!(packets.take(), []);
}

#[test]
fn a_deferred_reply_has_the_network_priority_of_its_request_in_any_thread() {
    let server = ProtocolServer::listening(&["iiop"]);
    server.rt_orb.set_network_priorities(Some(Arc::new(Plant)));
    let (_, object, packets) = serve(&server, "deferring", PriorityModel::ClientPropagated, true);
    let mut client = connect(&object);
    client.send("defer", "text", Some(100));
    client.send("note", "text", Some(10));
    assert_eq!(client.reply().1, None);
    // Each request has a lane of its own, and the second one may be the first to run.
    wait_until("the deferred request", || packets.deferred.lock().unwrap().is_some());
    let deferred = packets.deferred.lock().unwrap().take().unwrap();
    packets.take();
    _ = deferred.answer(|call| call.reply(|_| Ok(()))).unwrap();
    drop(deferred);
    assert_eq!(client.reply().1, None);
    client.send("note", "text", Some(10));
    assert_eq!(client.reply().1, None);
    assert_eq!(packets.take(), [(160, 4)], "after the reply of 10, the deferred one of 100");
}

#[test]
fn the_replies_of_a_lane_have_the_network_priority_of_the_object_and_others_the_systems() {
    let server = ProtocolServer::listening(&["iiop", "uds"]);
    server.rt_orb.set_network_priorities(Some(Arc::new(Plant)));
    server.rt_orb.listen_for_lanes(&server.orb, server.pool).unwrap();
    let (adapter, _, packets) = serve(&server, "declared", PriorityModel::ServerDeclared, true);
    adapter.deactivate_object(&"packets".into()).unwrap();
    adapter.activate_object_with_id_and_priority(&"high".into(), Arc::<Packets>::clone(&packets) as _, 100).unwrap();
    let high = adapter.id_to_reference(&"high".into()).unwrap();
    let mut client = connect(&high);
    for _ in 0..2 {
        client.send("note", "text", None);
        assert_eq!(client.reply().1, None);
    }
    assert_eq!(packets.take(), [(0, 0), (160, 4)]);

    let plain = ProtocolServer::listening(&["iiop"]);
    plain.rt_orb.set_network_priorities(Some(Arc::new(Plant)));
    let (_, object, packets) = serve(&plain, "disabled", PriorityModel::ClientPropagated, false);
    let mut client = connect(&object);
    for _ in 0..2 {
        client.send("note", "text", Some(100));
        assert_eq!(client.reply().1, None);
    }
    assert_eq!(packets.take(), [(0, 0); 2]);
}
