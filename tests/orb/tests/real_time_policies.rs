//! The client's policies of Real-time CORBA in its requests (INVOCATION_POLICIES), and `_validate_connection` by them
//! (CORBA 3.3 Part 1, 8.3.10 and 17.3.1).

use std::{sync::mpsc, time::Duration};

use spandrel::{
    CompletionStatus, Endpoint, Orb, OrbBuilder, Poa, SystemExceptionKind,
    cdr::GiopVersion,
    interception::{ClientRequestInfo, ClientRequestInterceptor, IfPresent, Interceptor, Interruption},
    policy::{DeadlineContext, Policy, ReferencePolicies},
    rt::{
        LaneSettings, PoolSettings, Priority, RtClient, RtPoaBuilder, RtServerOrb,
        contexts::{self, PropagatedPolicy},
        policies::{PriorityModel, PriorityModelPolicy, ThreadpoolPolicy},
        protocols::{IIOP, TcpProtocolProperties, TransportProperties},
    },
    types::{IiopProfile, Ior},
};
use spandrel_giop::{
    CONTEXT_CODE_SETS, MessageHeader, MessageType, OwnCodeSets, ServiceContext, ServiceContexts, component::Component,
    ids,
};
use spandrel_orb_tests::{
    Probe,
    probe::Target,
    scripted::{ReceivedLog, scripted},
    support::{TEST_TIMEOUT, block_on, fake_server, kind_and_completion, read_message, wait_until},
};

use crate::real_time::{
    answer, assert_conflict, at_priority, bands, client, model, protocols, scheduling, target, types, with_policies,
};

/// The policies in the requests that a server received: `None` for one without the context.
fn received_policies(received: &ReceivedLog) -> Vec<Option<Vec<PropagatedPolicy>>> {
    let requests = std::mem::take(&mut *received.lock().unwrap());
    let policies = requests.iter().map(|request| {
        let contexts = request.contexts.iter().map(|(id, data)| ServiceContext { id: *id, data: data.clone() });
        let contexts: Vec<_> = contexts.filter(|context| context.id == contexts::INVOCATION_POLICIES).collect();
        assert!(contexts.len() <= 1, "one context with policies, not {}", contexts.len());
        contexts::find_invocation_policies(&ServiceContexts::from(&contexts[..])).unwrap()
    });
    policies.collect()
}

#[test]
fn the_first_request_that_is_sent_has_the_contexts_of_its_connection_whichever_that_is() {
    for _ in 0..20 {
        let (port, received) = scripted(answer);
        let orb =
            Orb::builder().binding_policies(RtClient::new(&scheduling())).connections_per_peer(1).build().unwrap();
        let mut ior = with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]);
        let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
        let code_sets = [Component::OrbType(ids::ORB_TYPE), OwnCodeSets::default().component()];
        profile.components.extend(code_sets.iter().map(|component| component.encode().unwrap()));
        ior.profiles = vec![profile.encode().unwrap()];
        let target: Target = target(&orb, &ior);
        // Those that begin while the connection is being opened wait for it, and overtake each other.
        let calls = [5, 20_000, 10, 30_000].map(|priority| at_priority(priority, || target.add_async(3, 4)));
        std::thread::scope(|scope| {
            for priority in [7, 25_000] {
                let target = &target;
                scope.spawn(move || at_priority(priority, || assert_eq!(target.add(3, 4), Ok(7))));
            }
            calls.into_iter().for_each(|call| assert_eq!(block_on(call), Ok(7)));
        });
        // A request that begins after a reply has none.
        assert_eq!(target.add(3, 4), Ok(7));
        let received = std::mem::take(&mut *received.lock().unwrap());
        let is_code_sets = |(id, _): &(u32, Vec<u8>)| *id == CONTEXT_CODE_SETS;
        let has_code_sets: Vec<bool> =
            received.iter().map(|request| request.contexts.iter().any(is_code_sets)).collect();
        assert!(matches!(has_code_sets[..], [true, _, _, _, _, _, false]), "{has_code_sets:?}");
        orb.shutdown().unwrap();
    }
}

#[test]
fn requests_carry_the_bands_and_protocols_of_their_client() {
    let (port, received) = scripted(answer);
    let orb = client();
    let tcp = TransportProperties::Tcp(TcpProtocolProperties::default());
    let (own, iiop) = (bands(&[(0, 9), (10, 99)]), protocols(&[(IIOP, Some(tcp))]));
    let plain = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let banded = plain.with_policy(own.clone()).unwrap();
    let both = banded.with_policy(iiop.clone()).unwrap();
    let (bands, protocols) = (PropagatedPolicy::PriorityBands(own), PropagatedPolicy::ClientProtocols(iiop));
    for priority in [5, 50, 5] {
        at_priority(priority, || {
            assert_eq!(plain.add(3, 4), Ok(7));
            assert_eq!(banded.add(3, 4), Ok(7));
            assert_eq!(block_on(banded.add_async(3, 4)), Ok(7));
            assert_eq!(both.add(3, 4), Ok(7));
        });
        let (with_bands, with_both) = (Some(vec![bands.clone()]), Some(vec![bands.clone(), protocols.clone()]));
        assert_eq!(received_policies(&received), [None, with_bands.clone(), with_bands, with_both]);
    }
    // The policies in a reference are the server's own.
    let exposed = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5), bands]));
    at_priority(5, || assert_eq!(exposed.add(3, 4), Ok(7)));
    assert_eq!(received_policies(&received), [None]);
}

#[test]
fn policies_and_points_in_time_share_one_context() {
    let (port, received) = scripted(answer);
    let builder = Orb::builder().deadline_context(DeadlineContext::Absolute);
    let orb = builder.binding_policies(RtClient::new(&scheduling())).build().unwrap();
    let plain = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
    let timed = plain.with_policy(bands(&[(0, 99)])).unwrap().with_timeout(Duration::from_secs(60));
    at_priority(5, || {
        assert_eq!(timed.add(3, 4), Ok(7));
        assert_eq!(block_on(timed.add_async(3, 4)), Ok(7));
    });
    for policies in received_policies(&received) {
        let policies = policies.unwrap();
        assert_eq!(policies[0], PropagatedPolicy::PriorityBands(bands(&[(0, 99)])));
        let [_, PropagatedPolicy::Other(end)] = &policies[..] else { panic!("{policies:?}") };
        // REPLY_END_TIME_POLICY_TYPE; TimeBase::UtcT has 16 octets behind the byte order.
        assert_eq!((end.policy_type, end.data.len()), (30, 24));
    }
}

/// A server whose adapter has these policies, and a lane for each of these priorities.
struct LaneServer {
    orb: Orb,
    ior: Ior,
    _rt_orb: RtServerOrb,
}

impl LaneServer {
    fn start(model: PriorityModel, lanes: &[i16], others: &[Policy]) -> Self {
        Self::with(Orb::builder(), model, lanes, others)
    }

    fn with(builder: OrbBuilder, model: PriorityModel, lanes: &[i16], others: &[Policy]) -> Self {
        let orb = builder.listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let rt_orb = RtServerOrb::new(scheduling());
        let priority = |number: i16| Priority::new(number).unwrap();
        let lane = |number: &i16| LaneSettings { priority: priority(*number), static_threads: 1, dynamic_threads: 0 };
        let lanes_of_pool = PoolSettings::with_lanes(lanes.iter().map(lane).collect());
        let pool = rt_orb.create(PoolSettings { buffering: Some((16, 1 << 20)), ..lanes_of_pool }).unwrap();
        let model = PriorityModelPolicy { model, server_priority: priority(*lanes.last().unwrap()) };
        let policies = [model.into(), ThreadpoolPolicy(pool).into()].into_iter().chain(others.iter().cloned());
        let root = Poa::root(&orb).unwrap();
        let adapter = root.child("lanes").real_time(&rt_orb, policies).unwrap().create().unwrap();
        let reference: Target = adapter.serve(Probe::new(&orb)).unwrap();
        let ior = reference.as_object().ior().clone();
        Self { orb, ior, _rt_orb: rt_orb }
    }

    /// The reference with these policies instead of those of the adapter: it may be older than the adapter.
    fn stale(&self, policies: &[PropagatedPolicy]) -> Ior {
        let profile = IiopProfile::decode(&self.ior.profiles[0]).unwrap().unwrap();
        let mut ior = with_policies(profile.port, policies);
        let mut stale = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
        stale.object_key = profile.object_key;
        ior.profiles = vec![stale.encode().unwrap()];
        ior
    }
}

impl Drop for LaneServer {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

/// The validity of an object's connection, and the types of the policies that prevent it.
fn validate(target: &Target) -> (bool, Vec<u32>) {
    let (is_valid, inconsistent) = target.as_object().validate_connection().unwrap();
    (is_valid, types(&inconsistent))
}

#[test]
fn a_server_refuses_clients_whose_policies_contradict_those_of_its_adapter() {
    let (own, iiop) = (bands(&[(0, 9), (10, 99)]), protocols(&[(IIOP, None)]));
    let policies: [Policy; 2] = [own.clone().into(), iiop.clone().into()];
    let server = LaneServer::start(PriorityModel::ClientPropagated, &[0, 10], &policies);
    let orb = client();
    // The reference names the model alone: its client cannot know the other policies.
    let stale = target(&orb, &server.stale(&[model(PriorityModel::ClientPropagated, 0)]));
    let (banded, restricted) = (stale.with_policy(own).unwrap(), stale.with_policy(iiop).unwrap());
    at_priority(5, || {
        assert_eq!((stale.add(3, 4), validate(&stale)), (Ok(7), (true, vec![])));
        assert_conflict(&banded.add(3, 4).unwrap_err());
        assert_conflict(&block_on(banded.add_async(3, 4)).unwrap_err());
        assert_eq!(validate(&banded), (false, vec![45, 40]));
        assert_conflict(&restricted.add(3, 4).unwrap_err());
        assert_eq!(validate(&restricted), (false, vec![43, 40]));
    });
    // A reference without any policy: requests without a priority model have no bands, and may have protocols.
    let address = target(&orb, &server.stale(&[])).with_policy(protocols(&[(IIOP, None)])).unwrap();
    assert_conflict(&address.add(3, 4).unwrap_err());
    assert_eq!(validate(&address), (false, vec![43]));
}

#[test]
fn a_server_without_bands_of_its_own_obeys_those_of_its_clients() {
    let server = LaneServer::start(PriorityModel::ServerDeclared, &[0, 500], &[]);
    let orb = client();
    // The server has declared another priority than the reference names.
    let stale = target(&orb, &server.stale(&[model(PriorityModel::ServerDeclared, 5)]));
    let wide = stale.with_policy(bands(&[(0, 9), (10, 999)])).unwrap();
    assert_eq!((wide.add(3, 4), validate(&wide)), (Ok(7), (true, vec![])));
    let narrow = stale.with_policy(bands(&[(0, 9)])).unwrap();
    assert_conflict(&narrow.add(3, 4).unwrap_err());
    assert_eq!(narrow.as_object().validate_connection().map(|(is_valid, _)| is_valid), Ok(false));
}

#[test]
fn a_priority_below_all_lanes_is_no_valid_connection() {
    let server = LaneServer::start(PriorityModel::ClientPropagated, &[100], &[]);
    let object = target(&client(), &server.ior);
    at_priority(100, || assert_eq!((object.add(3, 4), validate(&object)), (Ok(7), (true, vec![]))));
    at_priority(99, || {
        let refused = object.add(3, 4).unwrap_err();
        assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::InvPolicy, CompletionStatus::No), "{refused}");
        assert_eq!(validate(&object), (false, vec![40]));
    });
}

#[test]
fn collocated_calls_are_checked_as_remote_ones() {
    let builder = Orb::builder().binding_policies(RtClient::new(&scheduling()));
    let server = LaneServer::with(builder, PriorityModel::ClientPropagated, &[0], &[protocols(&[(IIOP, None)]).into()]);
    let stale = target(&server.orb, &server.stale(&[model(PriorityModel::ClientPropagated, 0)]));
    at_priority(5, || {
        assert_eq!(stale.add(3, 4), Ok(7));
        assert_conflict(&stale.with_policy(protocols(&[(IIOP, None)])).unwrap().add(3, 4).unwrap_err());
    });
}

/// Adds these octets as the context with policies to each request.
struct AddedPolicies(Vec<u8>);

impl Interceptor for AddedPolicies {}

impl ClientRequestInterceptor for AddedPolicies {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let context = ServiceContext { id: contexts::INVOCATION_POLICIES, data: self.0.clone() };
        Ok(info.add_request_service_context(context, IfPresent::Replace)?)
    }
}

#[test]
fn policies_that_cannot_be_read_are_refused_and_unknown_ones_ignored() {
    let server = LaneServer::start(PriorityModel::ServerDeclared, &[0], &[]);
    let sent = contexts::encode_invocation_policies(&[
        PropagatedPolicy::PriorityBands(bands(&[(0, 9)])),
        PropagatedPolicy::ClientProtocols(protocols(&[(IIOP, None)])),
    ]);
    let sound = sent.unwrap().data;
    let call = |octets: &[u8]| {
        let builder = Orb::builder().client_request_interceptor(AddedPolicies(octets.to_vec())).unwrap();
        let orb = builder.build().unwrap();
        target(&orb, &server.ior).add(3, 4)
    };
    assert_eq!(call(&sound), Ok(7));
    for len in (0..sound.len()).step_by(3) {
        let refused = call(&sound[..len]).unwrap_err();
        assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Marshal, CompletionStatus::No), "{len}");
    }
    let mut endless = sound.clone();
    endless[4..8].fill(0xff);
    assert_eq!(call(&endless).unwrap_err().kind(), SystemExceptionKind::Marshal);
    // A policy of another type, with octets that mean nothing here.
    let mut unknown = sound;
    unknown[8..12].fill(0x77);
    assert_eq!(call(&unknown), Ok(7));
}

#[test]
fn a_request_in_fragments_that_has_begun_is_sent_whole_before_an_urgent_one() {
    for version in [GiopVersion::V1_1, GiopVersion::V1_2] {
        let (accept, accepted) = mpsc::channel();
        let port = fake_server(move |_, stream| drop(accept.send(stream)));
        let builder = Orb::builder().binding_policies(RtClient::new(&scheduling())).giop_version(version);
        let builder = builder.fragment_size(Some(4_096)).socket_queues(Some(8_192), Some(8_192));
        let orb = builder.connections_per_peer(1).build().unwrap();
        let target: Target = target(&orb, &with_policies(port, &[model(PriorityModel::ClientPropagated, 5)]));
        let call = |priority, octets: &[u8]| at_priority(priority, || target.echo_octets_async(octets));
        let long = call(9, &[7; 1 << 20]);
        wait_until("the sockets are full", || target.as_object().is_flow_controlled().unwrap());
        let _calls = [long, call(10, b"later"), call(20_000, b"urgent")];
        let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
        let mut read = || {
            let message = read_message(&mut stream).unwrap();
            (MessageHeader::parse(message.first_chunk().unwrap()).unwrap(), message)
        };
        let (begin, _) = read();
        assert_eq!((begin.version, begin.message_type, begin.more_fragments), (version, MessageType::Request, true));
        let mut fragments = 0;
        loop {
            let (header, _) = read();
            assert_eq!(header.message_type, MessageType::Fragment, "{version:?}: after {fragments} fragments");
            fragments += 1;
            if !header.more_fragments {
                break;
            }
        }
        assert!(fragments > 200, "{version:?}: {fragments} fragments");
        for text in ["urgent", "later"] {
            let (header, message) = read();
            assert_eq!((header.message_type, header.more_fragments), (MessageType::Request, false));
            assert!(message.ends_with(text.as_bytes()), "{version:?}: not {text}");
        }
    }
}
