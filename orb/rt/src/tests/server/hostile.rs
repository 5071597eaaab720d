//! Octets and programs that break rules: each costs its own request alone.

use spandrel_orb::diagnostics::statistics::Level;
use spandrel_poa::WaitForCompletion;

use super::*;

fn octets(context: &ServiceContext, len: usize) -> ServiceContext {
    ServiceContext { id: context.id, data: context.data[..len].to_vec() }
}

#[test]
fn contexts_that_are_cut_anywhere_cost_their_request_alone() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1), lane(200, 1)]));
    let band = PriorityBand::new(0, i16::MAX).unwrap();
    let bands = PropagatedPolicy::PriorityBands(PriorityBandedConnectionPolicy::new(vec![band]).unwrap());
    for mut client in server.clients() {
        for (operation, context) in [
            ("note", contexts::encode_priority(priority(300))),
            ("note", contexts::encode_invocation_policies(std::slice::from_ref(&bands)).unwrap()),
            ("_bind_priority_band", contexts::encode_priority_range(band)),
        ] {
            for len in 0..=context.data.len() {
                client.send_with(operation, "cut", &[octets(&context, len)]);
                let kind = client.reply().1.map(|exception| exception.kind());
                let expected = (len < context.data.len()).then_some(SystemExceptionKind::Marshal);
                assert_eq!(kind, expected, "context {} of {len} octets", context.id);
            }
        }
        // Numbers that are no priorities, and one context twice, of which the first counts.
        for number in [-1, i16::MIN] {
            client.send("note", "negative", Some(number));
            assert_eq!(client.refusal().1, SystemExceptionKind::Marshal, "{number}");
        }
        let twice = [199, 201].map(|number| contexts::encode_priority(priority(number)));
        client.send_with("note", "twice", &twice);
        assert_eq!(client.reply().1, None);
    }
    let served: Vec<_> = server.sensor.begun().into_iter().map(|(_, priority)| priority).collect();
    assert_eq!(served, [[300, 50, 199]; 2].concat()[..served.len()]);
    assert!(server.lanes().iter().all(|lane| lane.buffered_requests == 0 && lane.refused == 0));
}

#[test]
fn a_transform_or_mapping_that_panics_costs_its_request_alone() {
    struct Panicking;

    impl PriorityTransform for Panicking {
        fn inbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
            assert_ne!(priority.get(), 300, "intended");
            Some(priority)
        }

        fn outbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
            Some(priority)
        }
    }

    for concurrency in [Concurrency::default(), Concurrency::Reactive] {
        let lanes = PoolSettings::with_lanes(vec![lane(0, 1), lane(200, 1)]);
        let server = Server::with(lanes, PriorityModel::ClientPropagated, 50, concurrency);
        server.rt_orb.set_priority_transform(Some(Arc::new(Panicking)));
        for mut client in server.clients() {
            client.send("note", "panics", Some(300));
            assert_eq!(client.refusal().1, SystemExceptionKind::Unknown);
            let id = client.send("note", "served", Some(301));
            assert_eq!(client.replies(1), [id]);
        }
    }
}

#[test]
fn requests_that_wait_for_their_adapter_begin_by_priority() {
    let server = Server::new(one_thread());
    let model = PriorityModelPolicy { model: PriorityModel::ClientPropagated, server_priority: priority(50) };
    let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(server.pool).into()];
    let beside =
        server.root.child("beside").user_ids().holding().real_time(&server.rt_orb, policies).unwrap().create().unwrap();
    beside.the_poa_manager().activate().unwrap();
    beside.activate_object_with_id(&"sensor".into(), Arc::<Sensor>::clone(&server.sensor) as _).unwrap();
    let object = beside.id_to_reference(&"sensor".into()).unwrap();
    let address = ("127.0.0.1", server.orb.listen().unwrap()[0].1);
    let mut beside = Client::new(&object, TcpStream::connect(address).unwrap());
    let manager = server.poa.the_poa_manager();
    for mut client in server.clients() {
        server.sensor.begun.lock().unwrap().clear();
        *server.sensor.is_open.lock().unwrap() = false;
        manager.hold_requests(WaitForCompletion::No).unwrap();
        let low: Vec<u32> = (0..20).map(|at| client.send("note", &format!("low {at}"), Some(5))).collect();
        let high = client.send("note", "high", Some(20_000));
        wait_until("the held requests", || {
            let _ = server.orb.render_metrics();
            server.orb.statistics().level(Level::RequestsHeld) == 21
        });
        // The one thread is free for other adapters meanwhile.
        let occupying = beside.send("hold", "beside", Some(10));
        server.until_begun(1);
        manager.activate().unwrap();
        server.until_buffered(21);
        server.sensor.open();
        assert_eq!(beside.replies(1), [occupying]);
        let mut replies = client.replies(21);
        assert_eq!(replies[0], high);
        replies[1..].sort_unstable();
        assert_eq!(replies[1..], low);
    }
}

#[test]
fn two_orbs_of_a_process_share_a_pool_and_end_by_themselves() {
    let server = Server::with(
        PoolSettings { buffering: Some((0, 0)), ..PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]) },
        PriorityModel::ServerDeclared,
        10,
        Concurrency::default(),
    );
    let other = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(10) };
    let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(server.pool).into()];
    let root = Poa::root(&other).unwrap();
    let adapter = root.child("sensors").user_ids().real_time(&server.rt_orb, policies).unwrap().create().unwrap();
    adapter.activate_object_with_id(&"sensor".into(), Arc::<Sensor>::clone(&server.sensor) as _).unwrap();
    for orb in [&server.orb, &other] {
        server.rt_orb.listen_for_lanes(orb, server.pool).unwrap();
    }
    let objects = [&server.poa, &adapter].map(|poa| poa.id_to_reference(&"sensor".into()).unwrap());
    let ports = objects.each_ref().map(|object| IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap().port);
    assert_ne!(ports[0], ports[1], "each ORB has an endpoint for the lane");
    let [mut first, mut second] =
        [0, 1].map(|at| Client::new(&objects[at], TcpStream::connect(("127.0.0.1", ports[at])).unwrap()));
    let held = first.send("hold", "held", None);
    server.until_begun(1);
    let waiting = second.send("note", "waits", None);
    server.until_buffered(1);
    // The key of one ORB's object at the endpoint of the other.
    let mut wrong = Client::new(&objects[0], TcpStream::connect(("127.0.0.1", ports[1])).unwrap());
    wrong.send("note", "of the other ORB", None);
    assert_eq!(wrong.refusal().1, SystemExceptionKind::ObjectNotExist);

    // The end of one ORB waits for its own request alone.
    let ended = in_background({
        let orb = server.orb.clone();
        move || orb.shutdown()
    });
    server.sensor.open();
    assert_eq!((first.replies(1), second.replies(1)), (vec![held], vec![waiting]));
    ended.recv_timeout(LONG).unwrap().unwrap();
    let id = second.send("note", "after the end", None);
    assert_eq!(second.replies(1), [id]);
    assert!(TcpStream::connect(("127.0.0.1", ports[0])).is_err(), "no endpoint is open");
    other.shutdown().unwrap();
}
