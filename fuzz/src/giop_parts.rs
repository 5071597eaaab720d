//! Octets read as what travels within GIOP messages and references in forms of its own: service contexts, components, datagrams. No panic;
//! what was read and is written reads as the same again.
//!
//! The first octet chooses which.
use spandrel_cdr::TaggedComponent;
use spandrel_giop::component::{self, Component, ComponentDisplay};
use spandrel_giop::datagram::{DatagramAddress, light_header, read_datagram};
use spandrel_giop::local_address::{LocalAddress, TAG_OMNIORB_UNIX_TRANS, UnixTransport};
use spandrel_giop::{
    HEADER_LEN, IiopProfile, ListenPoint, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, TransmissionCodeSets, ids,
    printable_text, read_exception_detail,
};

/// Components whose content is read.
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
                assert!(!printable_text(&text).contains(char::is_control), "{text:?}");
            }
        }
        4 => profile(TAG_INTERNET_IOP, octets),
        5 => profile(TAG_MULTIPLE_COMPONENTS, octets),
        other => component(TAGS[usize::from(*other) % TAGS.len()], octets),
    }
}

fn code_sets(octets: &[u8]) {
    // Only together with UTF-8 is it said that a client is of our kind, so that others read as the standard's sets from then on.
    let Ok(sets) = TransmissionCodeSets::from_context(octets) else { return };
    let sets = TransmissionCodeSets::from_context(&sets.to_context().data).expect("what we write can be read");
    assert_eq!(TransmissionCodeSets::from_context(&sets.to_context().data).expect("what we write can be read"), sets);
}

fn listen_points(octets: &[u8]) {
    let Ok(points) = ListenPoint::from_context(octets) else { return };
    let context = ListenPoint::to_context(&points).expect("what was read can be written");
    assert_eq!(ListenPoint::from_context(&context.data), Ok(points));
}

/// What came under either header can be sent on under the light one.
fn datagram(octets: &[u8]) {
    let Ok(message) = read_datagram(octets) else { return };
    let whole = message.octets();
    let (head, rest) = whole.split_first_chunk::<HEADER_LEN>().expect("a message has a header");
    let light = light_header(head).expect("it is a request of GIOP 1.2");
    let again = read_datagram(&[&light[..], rest].concat()).expect("what we write can be read");
    // Bits of the flags that mean nothing are not kept.
    assert_eq!(again.octets()[HEADER_LEN..], *rest);
    assert_eq!(again.header.order, message.header.order);
}

fn profile(tag: u32, octets: &[u8]) {
    let tagged = spandrel_cdr::TaggedProfile { tag, data: octets.to_vec() };
    let Ok(Some(profile)) = IiopProfile::decode(&tagged) else { return };
    let written = profile.encode().expect("what was read can be written");
    assert_eq!(IiopProfile::decode(&written), Ok(Some(profile)));
}

fn component(tag: u32, octets: &[u8]) {
    let tagged = TaggedComponent { tag, data: octets.to_vec() };
    assert!(!ComponentDisplay(&tagged).to_string().is_empty());
    if let Ok(Some(known)) = Component::decode(&tagged) {
        let written = known.encode().expect("what was read can be written");
        assert_eq!(Component::decode(&written), Ok(Some(known)));
    }
    if let Ok(Some(known)) = LocalAddress::decode(&tagged) {
        let written = known.encode().expect("what was read can be written");
        assert_eq!(LocalAddress::decode(&written), Ok(Some(known)));
    }
    if let Ok(Some(known)) = UnixTransport::decode(&tagged) {
        let written = known.encode().expect("what was read can be written");
        assert_eq!(UnixTransport::decode(&written), Ok(Some(known)));
    }
    if let Some(known) = DatagramAddress::decode(&tagged) {
        let written = known.encode().expect("what was read can be written");
        assert_eq!(DatagramAddress::decode(&written), Some(known));
    }
}
