//! De-layered lookup of operations (design decision 11): references contain the hash function of their
//! server's operation table, and clients that enable it send an operation's index in that table with its
//! name.
//!
//! The component is an encapsulation `ulong seed | ulong places | sequence<ushort> displacements`, the
//! context one of a single `ushort index`. The server compares the name at the index, so that a wrong index
//! has no effect.

use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion, TaggedComponent, Wire};
use spandrel_demux::{Operations, perfect};
use spandrel_giop::{ServiceContext, ids};

/// The contexts that are sent with the names of operations.
pub(crate) trait OperationContexts: Send + Sync + std::fmt::Debug {
    /// The context that is sent with this operation's name.
    fn context(&self, operation: &str) -> Option<ServiceContext>;
}

/// Reads the component of a reference. An ORB has the function if the index is enabled; other programs do not
/// contain it.
pub(crate) type ReadOperationIndex = fn(&[TaggedComponent]) -> Option<Box<dyn OperationContexts>>;

/// The hash function of a server's operation table.
#[derive(Debug)]
pub(crate) struct OperationIndex {
    seed: u32,
    places: usize,
    displacements: Vec<u16>,
}

impl OperationIndex {
    /// Decodes the component. A malformed one is ignored: requests are valid without an index.
    pub(crate) fn of(components: &[TaggedComponent]) -> Option<Box<dyn OperationContexts>> {
        let component = components.iter().find(|component| component.tag == ids::TAG_OPERATION_INDEX)?;
        let mut input = Decoder::of_encapsulation(&component.data, wire()).ok()?;
        let read = Self::read(&mut input).ok().filter(|read| !read.displacements.is_empty())?;
        Some(Box::new(read))
    }

    fn read(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let (seed, places) = (input.u32()?, input.u32()? as usize);
        let count = input.sequence_len(2)?;
        let displacements = (0..count).map(|_| input.u16()).collect::<Result<_, _>>()?;
        Ok(Self { seed, places, displacements })
    }
}

impl OperationContexts for OperationIndex {
    fn context(&self, operation: &str) -> Option<ServiceContext> {
        let index = perfect::place(self.seed, &self.displacements, self.places, operation.as_bytes());
        let [high, low] = u16::try_from(index).ok()?.to_be_bytes();
        Some(ServiceContext { id: ids::CONTEXT_OPERATION_INDEX, data: vec![0, 0, high, low] })
    }
}

/// The component of references to objects with these operations.
pub(crate) fn component(operations: &Operations) -> Option<TaggedComponent> {
    let (seed, displacements, places) = operations.hash_function();
    let (places, count) = (u32::try_from(places).ok()?, u32::try_from(displacements.len()).ok()?);
    let mut out = Encoder::new(wire());
    out.u8(0);
    for number in [seed, places, count] {
        out.u32(number);
    }
    for displacement in displacements {
        out.u16(displacement);
    }
    (count > 0).then(|| TaggedComponent { tag: ids::TAG_OPERATION_INDEX, data: out.to_vec() })
}

fn wire() -> Wire {
    Wire::new(ByteOrder::Big, GiopVersion::V1_0)
}

#[cfg(test)]
mod tests {
    use super::*;

    static OPERATIONS: Operations = Operations::new(
        &["_get_kind", "_get_owner", "_set_kind", "deposit", "history", "note", "sibling"],
        0,
        b"\x04\0\xa0\0\x04\0\x01\0\0\0\x06\0\x03\0\x07\0\x05\0\x04\0\x02\0",
    );

    fn parsed(data: &[u8]) -> Option<Box<dyn OperationContexts>> {
        OperationIndex::of(&[TaggedComponent { tag: ids::TAG_OPERATION_INDEX, data: data.to_vec() }])
    }

    #[test]
    fn an_index_leads_to_its_operation() {
        let index = OperationIndex::of(&[component(&OPERATIONS).unwrap()]).unwrap();
        for (nth, name) in OPERATIONS.names().iter().enumerate() {
            let context = index.context(name).unwrap();
            let [0, 0, high, low] = context.data[..] else { panic!("{context:?}") };
            assert_eq!(OPERATIONS.at_place(u16::from_be_bytes([high, low]).into(), name), Some(nth));
        }
        let _unknown = index.context("withdraw");
        assert_eq!(component(Operations::NONE), None);
    }

    #[test]
    fn malformed_components_are_ignored() {
        let sound = component(&OPERATIONS).unwrap().data;
        for len in 0..sound.len() {
            assert!(parsed(&sound[..len]).is_none(), "{len}");
        }
        let without_displacements = [&sound[..12], &[0; 4]].concat();
        assert!(parsed(&without_displacements).is_none());
        let endless = [&sound[..12], &[0xff; 4]].concat();
        assert!(parsed(&endless).is_none());
        // Tables that are larger than any generated one, or empty: an index that cannot be encoded, or that
        // has no operation.
        let huge = [&sound[..8], &[0xff; 4], &sound[12..]].concat();
        assert!(parsed(&huge).unwrap().context("deposit").is_none_or(|context| context.data.len() == 4));
        let empty = [&sound[..8], &[0; 4], &sound[12..]].concat();
        assert_eq!(parsed(&empty).unwrap().context("deposit").unwrap().data, [0; 4]);
        assert!(OperationIndex::of(&[]).is_none());
    }
}
