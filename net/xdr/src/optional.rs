//! Optional data, and the linked lists made of it.

use crate::{Counted, Decode, Encode, UNIT, XdrDecoder, XdrEncoder, XdrError};

/// `T *x` (4.19): a bool, and the value if it is true.
impl<T: Encode> Encode for Option<T> {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        self.is_some().encode(out)?;
        self.iter().try_for_each(|value| value.encode(out))
    }
}

/// `T *x` (4.19). An invalid bool is an error.
impl<T: Decode> Decode for Option<T> {
    const MIN_OCTETS: usize = UNIT;

    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        bool::decode(input)?.then(|| T::decode(input)).transpose()
    }
}

/// The value itself, one level deeper: the box of a recursive type.
impl<T: Encode> Encode for Box<T> {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        out.nested(|out| (**self).encode(out))
    }
}

/// The value itself, one level deeper: the box of a recursive type.
impl<T: Decode> Decode for Box<T> {
    const MIN_OCTETS: usize = T::MIN_OCTETS;

    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        input.charge(size_of::<T>())?;
        input.nested(|input| T::decode(input).map(Self::new))
    }
}

/// A linked list: the encoding of `struct node { T item; node *next; } *x` (4.19), in contiguous memory.
///
/// Its length is not limited by the depth of nesting.
///
/// ```
/// use spandrel_xdr::{List, decode, encode, xdr_struct};
///
/// xdr_struct! {
///     /// A list with pointers.
///     #[derive(Debug, PartialEq)]
///     pub struct Node { pub item: u32, pub next: Option<Box<Node>> }
/// }
/// let list = List(vec![1, 2]);
/// let pointers = Some(Node { item: 1, next: Some(Box::new(Node { item: 2, next: None })) });
/// assert_eq!(encode(&list)?, encode(&pointers)?);
/// assert_eq!(decode::<List<u32>>(&encode(&pointers)?)?, list);
/// # Ok::<(), spandrel_xdr::XdrError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct List<T>(pub Vec<T>);

impl<T: Encode + Decode> Counted for List<T> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn encode_counted(&self, out: &mut XdrEncoder, max: u32) -> Result<(), XdrError> {
        if self.0.len() > max as usize {
            return Err(XdrError::TooLong { len: self.0.len(), max });
        }
        self.encode(out)
    }

    fn decode_counted(input: &mut XdrDecoder<'_>, max: u32) -> Result<Self, XdrError> {
        decode_list(input, max)
    }
}

impl<T: Encode> Encode for List<T> {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        out.nested(|out| {
            for item in &self.0 {
                true.encode(out)?;
                item.encode(out)?;
            }
            false.encode(out)
        })
    }
}

impl<T: Decode> Decode for List<T> {
    const MIN_OCTETS: usize = UNIT;

    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        decode_list(input, u32::MAX)
    }
}

fn decode_list<T: Decode>(input: &mut XdrDecoder<'_>, max: u32) -> Result<List<T>, XdrError> {
    input.nested(|input| {
        let mut items = Vec::new();
        while bool::decode(input)? {
            if items.len() >= max as usize {
                return Err(XdrError::TooLong { len: items.len() + 1, max });
            }
            if items.len() == items.capacity() {
                let more = items.capacity().max(4);
                input.charge(more.saturating_mul(size_of::<T>()))?;
                items.reserve_exact(more);
            }
            items.push(T::decode(input)?);
        }
        Ok(List(items))
    })
}
