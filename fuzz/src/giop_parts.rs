//! Octets decoded as parts of GIOP messages and references: service contexts, profiles, components,
//! datagrams. No panic; a decoded part is encoded to octets that decode to an equal one.
//!
//! The first octet selects the part.
use spandrel_cdr::TaggedComponent;
use spandrel_giop::component::{self, Component, ComponentDisplay};
use spandrel_giop::datagram::{DatagramAddress, light_header, read_datagram};
use spandrel_giop::local_address::{LocalAddress, TAG_OMNIORB_UNIX_TRANS, UnixTransport};
use spandrel_giop::{
    HEADER_LEN, IiopProfile, ListenPoint, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TransmissionCodeSets, ids,
    read_exception_detail,
};

/// The components that are decoded.
const TAGS: [u32; 9] = [
    component::TAG_ORB_TYPE,
    component::TAG_CODE_SETS,
    component::TAG_POLICIES,
    component::TAG_ALTERNATE_IIOP_ADDRESS,
    component::TAG_SSL_SEC_TRANS,
    component::TAG_COMPLETE_OBJECT_KEY,
    TAG_OMNIORB_UNIX_TRANS,
    ids::TAG_LOCAL_ADDRESS,
    ids::TAG_DATAGRAM_ADDRESS,
];

pub fn run(input: &[u8]) {
    let [kind, octets @ ..] = input else { return };
    match kind {
        0 => code_sets(octets),
        1 => listen_points(octets),
        2 => datagram(octets),
        3 => {
            if let Ok(text) = read_exception_detail(octets) {
                assert!(!text.contains(char::is_control), "{text:?}");
            }
        }
        4 => profile(TAG_INTERNET_IOP, octets),
        5 => profile(TAG_MULTIPLE_COMPONENTS, octets),
        other => component(TAGS[usize::from(*other) % TAGS.len()], octets),
    }
}

fn code_sets(octets: &[u8]) {
    // Only a context with UTF-8 identifies a Spandrel client; other contexts may decode to the standard's sets.
    let Ok(sets) = TransmissionCodeSets::from_context(octets) else { return };
    let sets = TransmissionCodeSets::from_context(&sets.to_context().data).expect("encoded octets can be decoded");
    assert_eq!(
        TransmissionCodeSets::from_context(&sets.to_context().data).expect("encoded octets can be decoded"),
        sets
    );
}

fn listen_points(octets: &[u8]) {
    let Ok(points) = ListenPoint::from_context(octets) else { return };
    let context = ListenPoint::to_context(&points).expect("a decoded value can be encoded");
    assert_eq!(ListenPoint::from_context(&context.data), Ok(points));
}

/// A datagram with either header can be sent with the light one.
fn datagram(octets: &[u8]) {
    let Ok(message) = read_datagram(octets) else { return };
    let complete = message.octets();
    let (head, rest) = complete.split_first_chunk::<HEADER_LEN>().expect("a message has a header");
    let light = light_header(head).expect("the message is a request of GIOP 1.2");
    let decoded = read_datagram(&[&light[..], rest].concat()).expect("encoded octets can be decoded");
    // Undefined bits of the flags are not kept.
    assert_eq!(decoded.octets()[HEADER_LEN..], *rest);
    assert_eq!(decoded.header.order, message.header.order);
}

fn profile(tag: u32, octets: &[u8]) {
    let tagged = spandrel_cdr::TaggedProfile { tag, data: octets.to_vec() };
    let Ok(Some(profile)) = IiopProfile::decode(&tagged) else { return };
    let encoded = profile.encode().expect("a decoded value can be encoded");
    assert_eq!(IiopProfile::decode(&encoded), Ok(Some(profile)));
}

fn component(tag: u32, octets: &[u8]) {
    let tagged = TaggedComponent { tag, data: octets.to_vec() };
    assert!(!ComponentDisplay(&tagged).to_string().is_empty());
    if let Ok(Some(decoded)) = Component::decode(&tagged) {
        let encoded = decoded.encode().expect("a decoded value can be encoded");
        assert_eq!(Component::decode(&encoded), Ok(Some(decoded)));
    }
    if let Ok(Some(decoded)) = LocalAddress::decode(&tagged) {
        let encoded = decoded.encode().expect("a decoded value can be encoded");
        assert_eq!(LocalAddress::decode(&encoded), Ok(Some(decoded)));
    }
    if let Ok(Some(decoded)) = UnixTransport::decode(&tagged) {
        let encoded = decoded.encode().expect("a decoded value can be encoded");
        assert_eq!(UnixTransport::decode(&encoded), Ok(Some(decoded)));
    }
    if let Some(decoded) = DatagramAddress::decode(&tagged) {
        let encoded = decoded.encode().expect("a decoded value can be encoded");
        assert_eq!(DatagramAddress::decode(&encoded), Some(decoded));
    }
}
