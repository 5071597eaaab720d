//! Assembly of fragments: a message divided at any offset is restored, and a peer cannot make the assembler
//! hold much memory.

use crate::tests::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{ByteOrder, Decode, Encode, Encoder, GiopVersion, Joint, Limits, Wire};
use spandrel_giop::{
    Assembler, GiopError, HEADER_LEN, Message, MessageHeader, MessageType, Reaction, ReplyStatus, RequestHeader,
    RequestTemplate, ResponseFlags, begin_reply, locate_request,
};
use spandrel_message::MessageBlock;
use support::wires;

/// A request with `body`, and its id.
fn request(wire: Wire, request_id: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    let template = RequestTemplate::new(wire, b"object key");
    let begun = template.begin(&mut out, request_id, ResponseFlags::TWO_WAY, "operation", &[]);
    out.octets(body);
    begun.end(&mut out).unwrap();
    out.to_vec()
}

/// Sets flags and size of a message that was divided or built by hand.
fn with_header(mut octets: Vec<u8>, message_type: MessageType, more_fragments: bool) -> Vec<u8> {
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    let size = u32::try_from(octets.len() - HEADER_LEN).unwrap();
    let header = MessageHeader { message_type, more_fragments, size, ..header };
    octets[..HEADER_LEN].copy_from_slice(&header.to_octets());
    octets
}

/// A fragment of `message` (for its header) with `content`.
fn fragment(message: &[u8], content: &[u8], more: bool) -> Vec<u8> {
    let header = MessageHeader::parse(message.first_chunk().unwrap()).unwrap();
    let own = if header.version >= GiopVersion::V1_2 { HEADER_LEN + 4 } else { HEADER_LEN };
    with_header([&message[..own], content].concat(), MessageType::Fragment, more)
}

/// The message divided at these positions, all after the octets that the first part must hold.
fn cut(message: &[u8], at: &[usize]) -> Vec<Vec<u8>> {
    let header = MessageHeader::parse(message.first_chunk().unwrap()).unwrap();
    let mut parts = vec![with_header(message[..at[0]].to_vec(), header.message_type, true)];
    for (nth, from) in at.iter().enumerate() {
        let to = at.get(nth + 1).copied();
        parts.push(fragment(message, &message[*from..to.unwrap_or(message.len())], to.is_some()));
    }
    parts
}

fn accept(assembler: &mut Assembler, octets: &[u8]) -> Result<Option<Message>, GiopError> {
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    assembler.accept(header, MessageBlock::from(octets))
}

/// Feeds parts; only the last completes a message.
fn join(assembler: &mut Assembler, parts: &[Vec<u8>]) -> Message {
    let (last, others) = parts.split_last().unwrap();
    for part in others {
        assert_eq!(accept(assembler, part), Ok(None));
    }
    accept(assembler, last).unwrap().expect("the last fragment completes the message")
}

/// Positions for a cut after which the first part still holds the request id in 1.2.
fn cuts(message: &[u8]) -> std::ops::RangeInclusive<usize> {
    HEADER_LEN + 4..=message.len()
}

#[test]
fn a_message_cut_anywhere_is_joined_again() {
    for wire in wires().filter(|wire| wire.version > GiopVersion::V1_0) {
        let whole = request(wire, 7, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for at in cuts(&whole).step_by(if cfg!(miri) { 7 } else { 1 }) {
            let mut assembler = Assembler::new(whole.len() + 100, 1);
            let message = join(&mut assembler, &cut(&whole, &[at]));
            assert_eq!(message.octets(), whole, "{wire:?} cut at {at}");
            assert_eq!(message.header, MessageHeader::parse(whole.first_chunk().unwrap()).unwrap());
            assert_eq!(assembler.unfinished(), 0);
        }
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_message_cut_into_many_is_joined_again(
        body in vec(any::<u8>(), 0..300), at in vec(any::<prop::sample::Index>(), 1..8), later: bool, big: bool,
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let wire = Wire::new(order, if later { GiopVersion::V1_2 } else { GiopVersion::V1_1 });
        let whole = request(wire, 7, &body);
        let mut at: Vec<_> = at.iter().map(|index| cuts(&whole).start() + index.index(whole.len() - cuts(&whole).start())).collect();
        at.sort_unstable();
        let message = join(&mut Assembler::new(1 << 16, 1), &cut(&whole, &at));
        prop_assert_eq!(message.octets(), &whole[..]);
    }

    #[test]
    fn fragments_of_several_1_2_messages_may_alternate(first in vec(any::<u8>(), 8..80), second in vec(any::<u8>(), 8..80)) {
        let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
        let wholes = [request(wire, 1, &first), request(wire, 2, &second)];
        let parts = wholes.each_ref().map(|whole| cut(whole, &[40, 48, whole.len() - 3]));
        let mut assembler = Assembler::new(1 << 16, 2);
        let mut joined = Vec::new();
        for (one, other) in parts[0].iter().zip(&parts[1]) {
            joined.extend(accept(&mut assembler, one).unwrap());
            joined.extend(accept(&mut assembler, other).unwrap());
        }
        prop_assert_eq!(joined.iter().map(|message| message.octets()).collect::<Vec<_>>(), wholes.iter().collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_messages_are_joined_or_refused(
        messages in vec((0..8_u8, 0..3_u8, 0..4_u8, vec(0..4_u8, 0..24)), 0..20),
    ) {
        let mut assembler = Assembler::new(100, 3);
        for (message_type, minor, flags, content) in messages {
            let mut octets = vec![b'G', b'I', b'O', b'P', 1, minor, flags, message_type];
            let size = u32::try_from(content.len()).unwrap();
            octets.extend(if flags & 1 == 0 { size.to_be_bytes() } else { size.to_le_bytes() });
            octets.extend(content);
            let Ok(header) = MessageHeader::parse(octets.first_chunk().unwrap()) else { continue };
            match assembler.accept(header, MessageBlock::from(octets.as_slice())) {
                Ok(Some(message)) => {
                    prop_assert!(!message.header.more_fragments && message.octets().len() <= 100);
                    support::read_everything(&message.decoder(Limits::default()));
                }
                Ok(None) => prop_assert!((1..=3).contains(&assembler.unfinished())),
                Err(error) => prop_assert_eq!(error.reaction(), Reaction::SendMessageError),
            }
        }
    }
}

#[test]
fn a_whole_message_is_not_copied() {
    let octets = MessageBlock::from(request(Wire::default(), 1, b"body").as_slice());
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    let message = Assembler::new(1000, 0).accept(header, octets.clone()).unwrap().unwrap();
    assert_eq!(message.octets().as_ptr(), octets.as_ptr());
}

/// The content of a fragment; alignment counts from the end of its header.
fn content(wire: Wire, write: impl FnOnce(&mut Encoder<'static>)) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    out.octets(&[0; HEADER_LEN]);
    write(&mut out);
    out.to_vec().split_off(HEADER_LEN)
}

/// GIOP 1.1 aligns by the offset in the fragment; the first octet after the header has offset 12.
#[test]
fn alignment_counts_anew_in_each_1_1_fragment() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let wire = Wire::new(order, GiopVersion::V1_1);
        let mut out = Encoder::new(wire);
        let begun = begin_reply(&mut out, 7, ReplyStatus::NoException, &[]);
        out.u64(0x1111);
        begun.end(&mut out).unwrap();
        let first = with_header(out.to_vec(), MessageType::Reply, true);
        assert_eq!(first.len() % 8, 0);

        // A double in the next fragment comes after four octets of padding; then a short, and a double after
        // six.
        let second = content(wire, |out| {
            out.u64(0x2222);
            out.i16(0x33);
            out.u64(0x4444);
        });
        assert_eq!(second.len(), 4 + 8 + 2 + 6 + 8);
        let second = fragment(&first, &second, true);
        // An array of numbers continues across the next joint without padding, as omniORB writes it.
        let third = content(wire, |out| {
            out.u32(3);
            f64::encode_slice(&[0.5, 1.5, 2.5], out).unwrap();
        });
        let (third, fourth) = third.split_at(12);
        let third = fragment(&first, third, true);
        let fourth = fragment(&first, &[fourth, &[0x77]].concat(), false);

        let message = join(&mut Assembler::new(4096, 1), &[first, second, third, fourth]);
        let mut input = message.decoder(Limits::default()).at(24);
        assert_eq!(input.u64(), Ok(0x1111));
        assert_eq!(input.u64(), Ok(0x2222));
        assert_eq!(input.i16(), Ok(0x33));
        assert_eq!(input.u64(), Ok(0x4444));
        assert_eq!(Vec::<f64>::decode(&mut input), Ok(vec![0.5, 1.5, 2.5]));
        assert_eq!((input.u8(), input.remaining()), (Ok(0x77), 0));
        assert!(input.u8().is_err());
    }
}

#[test]
fn locate_messages_are_cut_since_1_2_only() {
    for wire in wires().filter(|wire| wire.version > GiopVersion::V1_0) {
        let mut out = Encoder::new(wire);
        locate_request(&mut out, 9, b"a key of some length").unwrap();
        let whole = out.to_vec();
        let parts = cut(&whole, &[24]);
        let mut assembler = Assembler::new(1000, 1);
        if wire.version >= GiopVersion::V1_2 {
            assert_eq!(join(&mut assembler, &parts).octets(), whole);
        } else {
            let (version, message_type) = (wire.version, MessageType::LocateRequest);
            assert_eq!(accept(&mut assembler, &parts[0]), Err(GiopError::NotFragmentable { version, message_type }));
        }
    }
}

#[test]
fn fragments_without_an_unfinished_message_are_rejected() {
    let later = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let earlier = Wire::new(ByteOrder::Little, GiopVersion::V1_1);
    let mut assembler = Assembler::new(1000, 4);
    let (whole, old) = (request(later, 5, b"body body"), request(earlier, 5, b"body body"));
    let (parts, old_parts) = (cut(&whole, &[40]), cut(&old, &[40]));
    assert_eq!(accept(&mut assembler, &parts[1]), Err(GiopError::StrayFragment(Some(5))));
    assert_eq!(accept(&mut assembler, &old_parts[1]), Err(GiopError::StrayFragment(None)));
    assert_eq!(accept(&mut assembler, &parts[0]), Ok(None));
    assert_eq!(accept(&mut assembler, &parts[0]), Err(GiopError::Interleaved(Some(5))));
    let swapped = request(Wire::new(ByteOrder::Big, GiopVersion::V1_2), 5, b"body body");
    assert_eq!(accept(&mut assembler, &cut(&swapped, &[40])[1]), Err(GiopError::StrayFragment(Some(5))));
    // Another message may arrive whole in between, and one of another version in fragments.
    assert!(accept(&mut assembler, &request(later, 6, b"")).unwrap().is_some());
    assert_eq!(accept(&mut assembler, &old_parts[0]), Ok(None));
    assert_eq!(accept(&mut assembler, &old_parts[0]), Err(GiopError::Interleaved(None)));
    assert_eq!(join(&mut assembler, &old_parts[1..]).octets(), old);
    assert_eq!(join(&mut assembler, &parts[1..]).octets(), whole);
}

#[test]
fn a_fragment_too_short_for_its_id_is_rejected() {
    let whole = request(Wire::new(ByteOrder::Little, GiopVersion::V1_2), 5, b"");
    let short = with_header(whole[..14].to_vec(), MessageType::Fragment, false);
    let error = accept(&mut Assembler::new(1000, 1), &short).unwrap_err();
    assert!(matches!(error, GiopError::Body { message: MessageType::Fragment, .. }), "{error:?}");
}

#[test]
fn unfinished_messages_are_limited_in_number_and_size() {
    let wire = Wire::default();
    let mut assembler = Assembler::new(200, 2);
    let begin = |id| cut(&request(wire, id, &[0; 32]), &[72]);
    assert_eq!(accept(&mut assembler, &begin(1)[0]), Ok(None));
    assert_eq!(accept(&mut assembler, &begin(2)[0]), Ok(None));
    assert_eq!(accept(&mut assembler, &begin(3)[0]), Err(GiopError::TooManyUnfinished { limit: 2 }));
    let more = fragment(&request(wire, 1, &[]), &[0; 57], true);
    assert_eq!(accept(&mut assembler, &more), Err(GiopError::TooLarge { len: 201, limit: 200 }));
    let large = request(wire, 4, &[0; 200]);
    assert_eq!(accept(&mut assembler, &large), Err(GiopError::TooLarge { len: large.len(), limit: 200 }));
}

/// In GIOP 1.1 each fragment has an entry, too, with the position at which its alignment begins.
#[test]
fn the_octets_of_unfinished_messages_are_counted_until_their_end() {
    for wire in wires().filter(|wire| wire.version > GiopVersion::V1_0) {
        let whole = request(wire, 1, &[0; 64]);
        let mut assembler = Assembler::new(1000, 2);
        let parts = cut(&whole, &[60, 80]);
        assert_eq!(accept(&mut assembler, &parts[0]), Ok(None));
        assert_eq!(assembler.held(), 60);
        assert_eq!(accept(&mut assembler, &parts[1]), Ok(None));
        let joint = if wire.version == GiopVersion::V1_1 { size_of::<Joint>() } else { 0 };
        assert_eq!(assembler.held(), 80 + joint);
        assert!(accept(&mut assembler, &parts[2]).unwrap().is_some());
        assert_eq!(assembler.held(), 0, "{wire:?}");
    }
}

/// The octets of a fragment's bookkeeping count too; otherwise many empty fragments would hold memory
/// uncounted.
#[test]
fn empty_1_1_fragments_count_against_the_limit() {
    let whole = request(Wire::new(ByteOrder::Little, GiopVersion::V1_1), 1, &[]);
    let mut assembler = Assembler::new(1000, 1);
    assert_eq!(accept(&mut assembler, &with_header(whole.clone(), MessageType::Request, true)), Ok(None));
    let empty = fragment(&whole, &[], true);
    let refused = (0..1000).find_map(|_| accept(&mut assembler, &empty).err());
    assert!(matches!(refused, Some(GiopError::TooLarge { .. })), "{refused:?}");
}

#[test]
fn a_cancelled_request_frees_its_memory() {
    for wire in wires().filter(|wire| wire.version > GiopVersion::V1_0) {
        let whole = request(wire, 5, b"body body body");
        let parts = cut(&whole, &[40]);
        let mut assembler = Assembler::new(1000, 1);
        assert_eq!(accept(&mut assembler, &parts[0]), Ok(None));
        assembler.cancel(6);
        assert_eq!(assembler.unfinished(), 1);
        assembler.cancel(5);
        assert_eq!(assembler.unfinished(), 0, "{wire:?}");
        // Its entry and its octets are free again.
        assert_eq!(join(&mut assembler, &parts).octets(), whole);
    }
}

#[test]
fn a_reply_is_not_cancelled_by_the_request_of_the_same_id() {
    let wire = Wire::default();
    let mut out = Encoder::new(wire);
    begin_reply(&mut out, 5, ReplyStatus::NoException, &[]).end(&mut out).unwrap();
    let mut assembler = Assembler::new(1000, 1);
    assert_eq!(accept(&mut assembler, &with_header(out.to_vec(), MessageType::Reply, true)), Ok(None));
    assembler.cancel(5);
    assert_eq!(assembler.unfinished(), 1);
}

#[test]
fn octets_of_another_length_than_announced_close_the_connection() {
    let octets = request(Wire::default(), 1, b"");
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    let error = Assembler::new(1000, 1).accept(header, MessageBlock::from(&octets[1..])).unwrap_err();
    assert_eq!(error.reaction(), Reaction::CloseConnection);
}

#[test]
fn the_body_of_a_joined_message_is_aligned_in_memory() {
    let wire = Wire::default();
    let whole = request(wire, 5, &[7; 40]);
    let message = join(&mut Assembler::new(1000, 1), &cut(&whole, &[40, 48]));
    let mut input = message.decoder(Limits::default());
    RequestHeader::decode(&mut input).unwrap();
    assert_eq!(input.rest().as_ptr().addr() % 8, 0);
}
