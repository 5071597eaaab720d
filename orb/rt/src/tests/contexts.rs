//! The octets of contexts, components and policies: vectors from the documented layouts, and hostile input.

use crate::contexts::PropagatedPolicy;
use crate::policies::{
    ClientProtocolPolicy, MAX_BANDS, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
};
use crate::protocols::{self, Protocol, TcpProtocolProperties, TransportProperties, UnixDomainProtocolProperties};
use crate::{Priority, contexts};
use proptest::prelude::*;
use spandrel_cdr::{ByteOrder, TaggedComponent};
use spandrel_giop::component::{PolicyValue as EncodedPolicy, TAG_POLICIES};
use spandrel_giop::{ServiceContext, ServiceContexts, context_name};

fn context(id: u32, data: &[u8]) -> [ServiceContext; 1] {
    [ServiceContext { id, data: data.to_vec() }]
}

/// The octets of an encapsulation in this machine's order, given in big-endian and little-endian order.
fn native<const N: usize>(big: [u8; N], little: [u8; N]) -> Vec<u8> {
    if ByteOrder::NATIVE == ByteOrder::Big { big.to_vec() } else { little.to_vec() }
}

#[test]
fn the_priority_context_is_a_short_in_an_encapsulation() {
    // octet order | padding | short: what TAO_RT_Service_Context_Handler writes.
    let (big, little) = ([0, 0, 0x12, 0x34], [1, 0, 0x34, 0x12]);
    let priority = Priority::new(0x1234).unwrap();
    for data in [big, little] {
        let received = context(10, &data);
        assert_eq!(contexts::find_priority(&ServiceContexts::from(&received[..])).unwrap(), Some(priority));
    }
    let sent = contexts::encode_priority(priority);
    assert_eq!((sent.id, sent.data), (10, native(big, little)));
    assert_eq!(contexts::find_priority(&ServiceContexts::NONE).unwrap(), None);
}

#[test]
fn the_range_context_is_two_shorts() {
    let (big, little) = ([0, 0, 0, 5, 0x7f, 0xff], [1, 0, 5, 0, 0xff, 0x7f]);
    let band = PriorityBand::new(5, i16::MAX).unwrap();
    for data in [big, little] {
        let received = context(11, &data);
        assert_eq!(contexts::find_priority_range(&ServiceContexts::from(&received[..])).unwrap(), Some(band));
    }
    let sent = contexts::encode_priority_range(band);
    assert_eq!((sent.id, sent.data), (11, native(big, little)));
}

#[test]
fn contexts_have_the_numbers_and_names_of_tsharks_dissector() {
    let Ok(out) = std::process::Command::new("tshark").args(["-G", "values"]).output() else {
        println!("not shown: no tshark");
        return;
    };
    let values = String::from_utf8_lossy(&out.stdout);
    for (id, name) in [
        (contexts::RT_CORBA_PRIORITY, "RTCorbaPriority"),
        (contexts::RT_CORBA_PRIORITY_RANGE, "RTCorbaPriorityRange"),
        (contexts::INVOCATION_POLICIES, "INVOCATION_POLICIES"),
    ] {
        assert_eq!(context_name(id), Some(name));
        let line = format!("V\tgiop.iiop.sc.scid\t{id:#x}\t{name}");
        assert!(values.lines().any(|known| known == line), "tshark does not know {line:?}");
    }
}

/// A component with a priority model (server-declared, 100) and one band (0 to 9), in both orders.
const POLICIES: [&[u8]; 2] = [
    &[
        0, 0, 0, 0, 0, 0, 0, 2, // two policies
        0, 0, 0, 40, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 100, 0, 0, // model, priority; then padding
        0, 0, 0, 45, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9,
    ],
    &[
        1, 0, 0, 0, 2, 0, 0, 0, //
        40, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0, //
        45, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9, 0,
    ],
];

fn policies() -> Vec<PropagatedPolicy> {
    let server_priority = Priority::new(100).unwrap();
    let bands = PriorityBandedConnectionPolicy::new(vec![PriorityBand::new(0, 9).unwrap()]).unwrap();
    vec![
        PropagatedPolicy::PriorityModel(PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority }),
        PropagatedPolicy::PriorityBands(bands),
    ]
}

#[test]
fn the_component_is_a_sequence_of_policies() {
    for data in POLICIES {
        let component = TaggedComponent { tag: TAG_POLICIES, data: data.to_vec() };
        assert_eq!(contexts::decode_policies(&component).unwrap(), Some(policies()));
        let other = TaggedComponent { tag: 1, ..component };
        assert_eq!(contexts::decode_policies(&other).unwrap(), None);
        let received = context(7, data);
        let received = contexts::find_invocation_policies(&ServiceContexts::from(&received[..])).unwrap();
        assert_eq!(received, Some(policies()));
    }
    let native = POLICIES[usize::from(ByteOrder::NATIVE == ByteOrder::Little)];
    let sent = contexts::encode_policies(&policies()).unwrap();
    assert_eq!((sent.tag, &*sent.data), (2, native));
    let sent = contexts::encode_invocation_policies(&policies()).unwrap();
    assert_eq!((sent.id, &*sent.data), (7, native));
}

/// TCP with a send buffer of 4,096 octets and without keep-alive, UNIX-domain sockets (5, 6), datagrams: as TAO's
/// `TAO_ClientProtocolPolicy::_tao_encode` writes them.
const PROTOCOLS: [&[u8]; 2] = [
    &[
        0, 0, 0, 0, 0, 0, 0, 3, // three protocols
        0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, // IIOP: two longs, three booleans; padding
        0x54, 0x41, 0x4f, 0, 0, 0, 0, 5, 0, 0, 0, 6, //
        0x54, 0x41, 0x4f, 4,
    ],
    &[
        1, 0, 0, 0, 3, 0, 0, 0, //
        0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, //
        0, 0x4f, 0x41, 0x54, 5, 0, 0, 0, 6, 0, 0, 0, //
        4, 0x4f, 0x41, 0x54,
    ],
];

#[test]
fn the_clients_protocols_have_taos_form() {
    let mut tcp = TcpProtocolProperties::default();
    tcp.keep_alive = false;
    tcp.set_buffer_sizes(4096, 0).unwrap();
    let unix = UnixDomainProtocolProperties::new(5, 6).unwrap();
    let list = vec![
        Protocol { protocol_type: protocols::IIOP, transport: Some(TransportProperties::Tcp(tcp)) },
        Protocol { protocol_type: protocols::UNIX_DOMAIN, transport: Some(TransportProperties::UnixDomain(unix)) },
        Protocol { protocol_type: protocols::DATAGRAMS, transport: None },
    ];
    let policy = PropagatedPolicy::ClientProtocols(ClientProtocolPolicy::new(list).unwrap());
    for data in PROTOCOLS {
        let encoded = EncodedPolicy { policy_type: 43, data: data.to_vec() };
        assert_eq!(PropagatedPolicy::decode(encoded), Ok(policy.clone()));
    }
    let native = PROTOCOLS[usize::from(ByteOrder::NATIVE == ByteOrder::Little)];
    assert_eq!(policy.encode().unwrap().data, native);
}

#[test]
fn protocols_without_properties_are_sent_with_taos_defaults() {
    let numbers = [protocols::IIOP, protocols::UNIX_DOMAIN, protocols::SHARED_MEMORY, protocols::DATAGRAMS];
    let list = numbers.map(|protocol_type| Protocol { protocol_type, transport: None });
    let policy = PropagatedPolicy::ClientProtocols(ClientProtocolPolicy::new(list.into()).unwrap());
    let Ok(PropagatedPolicy::ClientProtocols(decoded)) = PropagatedPolicy::decode(policy.encode().unwrap()) else {
        panic!("they are known");
    };
    let tcp = Some(TransportProperties::Tcp(TcpProtocolProperties::default()));
    let expected = [
        tcp,
        Some(TransportProperties::UnixDomain(UnixDomainProtocolProperties::default())),
        Some(TransportProperties::SharedMemory(protocols::SharedMemoryProtocolProperties::default())),
        None,
    ];
    let transports: Vec<_> = decoded.protocols().iter().map(|protocol| protocol.transport.clone()).collect();
    assert_eq!(transports, expected);
}

#[test]
fn policies_of_other_types_are_kept() {
    let other = EncodedPolicy { policy_type: 23, data: vec![1, 2, 3] };
    let component = contexts::encode_policies(&[PropagatedPolicy::Other(other.clone())]).unwrap();
    assert_eq!(contexts::decode_policies(&component).unwrap(), Some(vec![PropagatedPolicy::Other(other)]));
}

#[test]
fn hostile_contexts_are_refused_with_one_line() {
    let priority = |data: &[u8]| {
        let received = context(10, data);
        contexts::find_priority(&ServiceContexts::from(&received[..])).unwrap_err().to_string()
    };
    assert_eq!(priority(&[]), "malformed RTCorbaPriority context");
    assert_eq!(priority(&[0, 0, 1]), "malformed RTCorbaPriority context");
    assert_eq!(priority(&[0, 0, 0xff, 0xff]), "invalid RTCorbaPriority context: the priority -1 is negative");
    let range = |data: &[u8]| {
        let received = context(11, data);
        contexts::find_priority_range(&ServiceContexts::from(&received[..])).unwrap_err().to_string()
    };
    assert_eq!(range(&[0, 0, 0, 1]), "malformed RTCorbaPriorityRange context");
    assert_eq!(range(&[0, 0, 0, 9, 0, 8]), "invalid RTCorbaPriorityRange context: the band from 9 to 8 is empty");
}

#[test]
fn hostile_policies_are_refused_with_one_line() {
    let error = |policy_type, data: &[u8]| {
        let policy = EncodedPolicy { policy_type, data: data.to_vec() };
        PropagatedPolicy::decode(policy).unwrap_err().to_string()
    };
    assert_eq!(error(40, &[0, 0, 0, 0, 0, 0, 0, 1]), "malformed priority model policy");
    assert_eq!(error(40, &[0, 0, 0, 0, 0, 0, 0, 2, 0, 0]), "invalid priority model policy: 2 is no priority model");
    assert_eq!(
        error(40, &[0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0]),
        "invalid priority model policy: the priority -32768 is negative"
    );
    let overlap = [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 5, 0, 5, 0, 6];
    assert_eq!(error(45, &overlap), "invalid priority-banded connection policy: its bands overlap");
    let none = EncodedPolicy { policy_type: 45, data: vec![0; 8] };
    assert_eq!(PropagatedPolicy::decode(none.clone()), Ok(PropagatedPolicy::Other(none)), "the client may choose");
    assert_eq!(error(45, &[0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]), "malformed priority-banded connection policy");
    // Octets for all bands do not help beyond the bound.
    let count = u32::try_from(MAX_BANDS + 1).unwrap();
    let many = [&[0; 4][..], &count.to_be_bytes(), &vec![0; 4 * (MAX_BANDS + 1)]].concat();
    assert_eq!(error(45, &many), "malformed priority-banded connection policy");
    let twice = [0, 0, 0, 0, 0, 0, 0, 2, 0x54, 0x41, 0x4f, 4, 0x54, 0x41, 0x4f, 4];
    assert_eq!(error(43, &twice), "invalid client protocol policy: the protocol 1413566212 is listed twice");
    assert_eq!(error(43, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]), "malformed client protocol policy");
    assert_eq!(
        error(43, &[&[0; 4][..], &65_u32.to_be_bytes(), &[0x54; 260]].concat()),
        "malformed client protocol policy"
    );
    let unknown = EncodedPolicy { policy_type: 43, data: vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9] };
    assert_eq!(PropagatedPolicy::decode(unknown.clone()), Ok(PropagatedPolicy::Other(unknown)), "another ORB's");
    let list = |data: &[u8]| {
        let component = TaggedComponent { tag: TAG_POLICIES, data: data.to_vec() };
        contexts::decode_policies(&component).unwrap_err().to_string()
    };
    assert_eq!(list(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), "malformed TAG_POLICIES component");
    assert_eq!(
        list(&[&[0; 4][..], &257_u32.to_be_bytes(), &[0; 8 * 257]].concat()),
        "malformed TAG_POLICIES component"
    );
}

proptest! {
    #[test]
    fn decoders_return_on_any_octets(data in proptest::collection::vec(any::<u8>(), 0..96), cut in 0_usize..48) {
        let [policies, protocols] = [POLICIES[0], PROTOCOLS[0]].map(|whole| whole[..cut.min(whole.len())].to_vec());
        for data in [data, policies, protocols] {
            let component = TaggedComponent { tag: TAG_POLICIES, data: data.clone() };
            if let Ok(Some(policies)) = contexts::decode_policies(&component) {
                let again = contexts::encode_policies(&policies).unwrap();
                prop_assert_eq!(contexts::decode_policies(&again).unwrap(), Some(policies));
            }
            for policy_type in [40, 43, 45] {
                let encoded = EncodedPolicy { policy_type, data: data.clone() };
                if let Ok(policy) = PropagatedPolicy::decode(encoded) {
                    let again = PropagatedPolicy::decode(policy.encode().unwrap());
                    prop_assert_eq!(again, Ok(policy));
                }
            }
            for id in [10, 11] {
                let received = context(id, &data);
                let received = ServiceContexts::from(&received[..]);
                let _ = contexts::find_priority(&received);
                let _ = contexts::find_priority_range(&received);
            }
        }
    }
}
