//! One interpreter, with or without each optimisation.

use std::marker::PhantomData;

use super::description::{Kind, Node};
use super::probe::{Method, Probe};
use super::stream::{Source, Stream, inlining};

/// `INLINE`: how primitives are put in line. `PRECOMPUTED`: sizes known before, no visitors. `SPLIT_DECODING`,
/// `SPLIT_ENCODING`: functions for each kind of type.
pub(super) struct Interpreter<
    P,
    const INLINE: u8,
    const PRECOMPUTED: bool,
    const SPLIT_DECODING: bool,
    const SPLIT_ENCODING: bool,
>(PhantomData<P>);

/// The visitor for each part of a value that is written.
type Encoder<P> = fn(&Node, &[u8], &mut Stream, &mut P);
/// The visitor for each part of a value that is read.
type Decoder<P> = fn(&Node, &mut [u8], &mut Source<'_>, &mut P) -> Option<()>;

/// The size and alignment of a type, computed from its description as the original engine does for every part
/// of every value.
#[inline(never)]
fn calc_nested_size_and_alignment<P: Probe>(node: &Node, probe: &mut P) -> (usize, usize) {
    probe.called(Method::CalcNested);
    match &node.kind {
        Kind::Octet => (1, 1),
        Kind::Short => (2, 2),
        Kind::Long => (4, 4),
        Kind::Double => (8, 8),
        Kind::Struct(members) => {
            let (mut end, mut most) = (0usize, 1);
            for member in members {
                let (size, align) = calc_nested_size_and_alignment(member, probe);
                end = end.next_multiple_of(align) + size;
                most = most.max(align);
            }
            (end.next_multiple_of(most), most)
        }
        Kind::Sequence(element) => calc_nested_size_and_alignment(element, probe),
    }
}

impl<P: Probe, const INLINE: u8, const PRECOMPUTED: bool, const SPLIT_DECODING: bool, const SPLIT_ENCODING: bool>
    Interpreter<P, INLINE, PRECOMPUTED, SPLIT_DECODING, SPLIT_ENCODING>
{
    pub(super) fn encode(sequence: &Node, memory: &[u8], out: &mut Stream, probe: &mut P) {
        if SPLIT_ENCODING {
            Self::encode_sequence(sequence, memory, out, probe);
        } else if PRECOMPUTED {
            Self::encode_merged(sequence, memory, out, probe);
        } else {
            Self::traverse_encoding(sequence, memory, Self::encoder, out, probe);
        }
    }

    pub(super) fn decode(sequence: &Node, octets: &[u8], probe: &mut P) -> Option<Vec<u8>> {
        let Kind::Sequence(element) = &sequence.kind else { return None };
        let mut input = Source::reading(octets);
        let len = input.len(least_octets(element))?;
        let mut memory = vec![0; len * element.size];
        if SPLIT_DECODING {
            Self::decode_elements(element, &mut memory, &mut input, probe)?;
        } else if PRECOMPUTED {
            Self::decode_merged(sequence, &mut memory, &mut input, probe)?;
        } else {
            Self::traverse_decoding(sequence, &mut memory, Self::decoder, &mut input, probe)?;
        }
        if !SPLIT_DECODING {
            // The skeleton's servant has used it by now.
            Self::deep_free(sequence, &mut memory, probe);
        }
        Some(memory)
    }

    #[inline(never)]
    fn traverse_encoding(node: &Node, memory: &[u8], visit: Encoder<P>, out: &mut Stream, probe: &mut P) {
        probe.called(Method::Traverse);
        match &node.kind {
            Kind::Struct(members) => Self::struct_traverse_encoding(members, memory, visit, out, probe),
            Kind::Sequence(element) => {
                let (mut at, mut len) = (0, 0u32);
                let length = memory.len() / node.size;
                out.put::<INLINE, 4>(&(length as u32).to_ne_bytes());
                while at < memory.len() {
                    let (size, _) = calc_nested_size_and_alignment(element, probe);
                    visit(element, &memory[at..at + size], out, probe);
                    at += size;
                    len += 1;
                }
                debug_assert_eq!(len as usize, length);
            }
            _ => visit(node, memory, out, probe),
        }
    }

    #[inline(never)]
    fn struct_traverse_encoding(members: &[Node], memory: &[u8], visit: Encoder<P>, out: &mut Stream, probe: &mut P) {
        probe.called(Method::StructTraverse);
        let mut at = 0usize;
        for member in members {
            let (size, align) = calc_nested_size_and_alignment(member, probe);
            at = at.next_multiple_of(align);
            visit(member, &memory[at..at + size], out, probe);
            at += size;
        }
    }

    /// Encodes a value, as `CDR::encoder` of the papers does.
    fn encoder(node: &Node, memory: &[u8], out: &mut Stream, probe: &mut P) {
        probe.called(Method::Visit);
        match &node.kind {
            Kind::Struct(_) | Kind::Sequence(_) => Self::traverse_encoding(node, memory, Self::encoder, out, probe),
            _ => Self::put(node, memory, out, probe),
        }
    }

    #[inline(always)]
    fn put(node: &Node, memory: &[u8], out: &mut Stream, probe: &mut P) {
        if INLINE != inlining::FORCED {
            probe.called(Method::Primitive);
        }
        match &node.kind {
            Kind::Octet => out.put::<INLINE, 1>(memory),
            Kind::Short => out.put::<INLINE, 2>(memory),
            Kind::Long => out.put::<INLINE, 4>(memory),
            Kind::Double => out.put::<INLINE, 8>(memory),
            Kind::Struct(_) | Kind::Sequence(_) => unreachable!("no primitive"),
        }
    }

    /// One function for all types, with all sizes precomputed.
    #[inline(never)]
    fn encode_merged(node: &Node, memory: &[u8], out: &mut Stream, probe: &mut P) {
        probe.called(Method::Traverse);
        match &node.kind {
            Kind::Struct(members) => {
                for member in members {
                    let slot = &memory[member.offset..member.offset + member.size];
                    match &member.kind {
                        Kind::Struct(_) | Kind::Sequence(_) => Self::encode_merged(member, slot, out, probe),
                        _ => Self::put(member, slot, out, probe),
                    }
                }
            }
            Kind::Sequence(element) => {
                out.put::<INLINE, 4>(&((memory.len() / element.size) as u32).to_ne_bytes());
                for slot in memory.chunks_exact(element.size) {
                    match &element.kind {
                        Kind::Struct(_) | Kind::Sequence(_) => Self::encode_merged(element, slot, out, probe),
                        _ => Self::put(element, slot, out, probe),
                    }
                }
            }
            _ => Self::put(node, memory, out, probe),
        }
    }

    /// A function for sequences, with a loop for each kind of element.
    #[inline(never)]
    fn encode_sequence(node: &Node, memory: &[u8], out: &mut Stream, probe: &mut P) {
        probe.called(Method::Traverse);
        let Kind::Sequence(element) = &node.kind else { unreachable!("no sequence") };
        out.put::<INLINE, 4>(&((memory.len() / element.size) as u32).to_ne_bytes());
        let places = memory.chunks_exact(element.size);
        match &element.kind {
            Kind::Octet => places.for_each(|slot| out.put::<INLINE, 1>(slot)),
            Kind::Short => places.for_each(|slot| out.put::<INLINE, 2>(slot)),
            Kind::Long => places.for_each(|slot| out.put::<INLINE, 4>(slot)),
            Kind::Double => places.for_each(|slot| out.put::<INLINE, 8>(slot)),
            Kind::Struct(members) => places.for_each(|slot| Self::encode_struct(members, slot, out, probe)),
            Kind::Sequence(_) => unreachable!("a sequence in a sequence has no place in this memory"),
        }
    }

    #[inline(always)]
    fn encode_struct(members: &[Node], memory: &[u8], out: &mut Stream, probe: &mut P) {
        for member in members {
            let slot = &memory[member.offset..];
            match &member.kind {
                Kind::Struct(members) => Self::encode_nested(members, slot, out, probe),
                _ => Self::put(member, slot, out, probe),
            }
        }
    }

    /// A struct in a struct is rarer than a primitive in one.
    #[cold]
    fn encode_nested(members: &[Node], memory: &[u8], out: &mut Stream, probe: &mut P) {
        probe.called(Method::StructTraverse);
        Self::encode_struct(members, memory, out, probe);
    }

    #[inline(never)]
    fn traverse_decoding(
        node: &Node,
        memory: &mut [u8],
        visit: Decoder<P>,
        input: &mut Source<'_>,
        probe: &mut P,
    ) -> Option<()> {
        probe.called(Method::Traverse);
        match &node.kind {
            Kind::Struct(members) => Self::struct_traverse_decoding(members, memory, visit, input, probe),
            Kind::Sequence(element) => {
                let mut at = 0;
                while at < memory.len() {
                    let (size, _) = calc_nested_size_and_alignment(element, probe);
                    visit(element, &mut memory[at..at + size], input, probe)?;
                    at += size;
                }
                Some(())
            }
            _ => visit(node, memory, input, probe),
        }
    }

    #[inline(never)]
    fn struct_traverse_decoding(
        members: &[Node],
        memory: &mut [u8],
        visit: Decoder<P>,
        input: &mut Source<'_>,
        probe: &mut P,
    ) -> Option<()> {
        probe.called(Method::StructTraverse);
        let mut at = 0usize;
        for member in members {
            let (size, align) = calc_nested_size_and_alignment(member, probe);
            at = at.next_multiple_of(align);
            visit(member, &mut memory[at..at + size], input, probe)?;
            at += size;
        }
        Some(())
    }

    /// Decodes a value, as `CDR::decoder` of the papers does.
    fn decoder(node: &Node, memory: &mut [u8], input: &mut Source<'_>, probe: &mut P) -> Option<()> {
        probe.called(Method::Visit);
        match &node.kind {
            Kind::Struct(_) | Kind::Sequence(_) => Self::traverse_decoding(node, memory, Self::decoder, input, probe),
            _ => Self::get(node, memory, input, probe),
        }
    }

    #[inline(always)]
    fn get(node: &Node, memory: &mut [u8], input: &mut Source<'_>, probe: &mut P) -> Option<()> {
        if INLINE != inlining::FORCED {
            probe.called(Method::Primitive);
        }
        match &node.kind {
            Kind::Octet => input.get::<INLINE, 1>(memory),
            Kind::Short => input.get::<INLINE, 2>(memory),
            Kind::Long => input.get::<INLINE, 4>(memory),
            Kind::Double => input.get::<INLINE, 8>(memory),
            Kind::Struct(_) | Kind::Sequence(_) => unreachable!("no primitive"),
        }
    }

    #[inline(never)]
    fn decode_merged(node: &Node, memory: &mut [u8], input: &mut Source<'_>, probe: &mut P) -> Option<()> {
        probe.called(Method::Traverse);
        match &node.kind {
            Kind::Struct(members) => {
                for member in members {
                    let slot = &mut memory[member.offset..member.offset + member.size];
                    match &member.kind {
                        Kind::Struct(_) | Kind::Sequence(_) => Self::decode_merged(member, slot, input, probe)?,
                        _ => Self::get(member, slot, input, probe)?,
                    }
                }
            }
            Kind::Sequence(element) => {
                for slot in memory.chunks_exact_mut(element.size) {
                    match &element.kind {
                        Kind::Struct(_) | Kind::Sequence(_) => Self::decode_merged(element, slot, input, probe)?,
                        _ => Self::get(element, slot, input, probe)?,
                    }
                }
            }
            _ => Self::get(node, memory, input, probe)?,
        }
        Some(())
    }

    #[inline(never)]
    fn decode_elements(element: &Node, memory: &mut [u8], input: &mut Source<'_>, probe: &mut P) -> Option<()> {
        probe.called(Method::Traverse);
        let mut places = memory.chunks_exact_mut(element.size);
        match &element.kind {
            Kind::Octet => places.try_for_each(|slot| input.get::<INLINE, 1>(slot)),
            Kind::Short => places.try_for_each(|slot| input.get::<INLINE, 2>(slot)),
            Kind::Long => places.try_for_each(|slot| input.get::<INLINE, 4>(slot)),
            Kind::Double => places.try_for_each(|slot| input.get::<INLINE, 8>(slot)),
            Kind::Struct(members) => places.try_for_each(|slot| Self::decode_struct(members, slot, input, probe)),
            Kind::Sequence(_) => unreachable!("a sequence in a sequence has no place in this memory"),
        }
    }

    #[inline(always)]
    fn decode_struct(members: &[Node], memory: &mut [u8], input: &mut Source<'_>, probe: &mut P) -> Option<()> {
        for member in members {
            let slot = &mut memory[member.offset..];
            match &member.kind {
                Kind::Struct(members) => Self::decode_nested(members, slot, input, probe)?,
                _ => Self::get(member, slot, input, probe)?,
            }
        }
        Some(())
    }

    #[cold]
    fn decode_nested(members: &[Node], memory: &mut [u8], input: &mut Source<'_>, probe: &mut P) -> Option<()> {
        probe.called(Method::StructTraverse);
        Self::decode_struct(members, memory, input, probe)
    }

    /// Parts without memory of their own are visited nevertheless; the size check is only used from the third
    /// step on.
    #[inline(never)]
    fn deep_free(node: &Node, memory: &mut [u8], probe: &mut P) {
        probe.called(Method::Free);
        match &node.kind {
            Kind::Sequence(element) => {
                let size = if PRECOMPUTED { element.size } else { calc_nested_size_and_alignment(element, probe).0 };
                memory.chunks_exact_mut(size).for_each(|slot| Self::deep_free(element, slot, probe));
            }
            Kind::Struct(members) => {
                for member in members {
                    Self::deep_free(member, &mut memory[member.offset..member.offset + member.size], probe);
                }
            }
            _ => _ = std::hint::black_box(memory),
        }
    }
}

/// Octets of the least element in CDR, whose padding depends on where it starts.
fn least_octets(element: &Node) -> usize {
    match &element.kind {
        Kind::Struct(members) => members.iter().map(least_octets).sum::<usize>().max(1),
        _ => element.size,
    }
}
