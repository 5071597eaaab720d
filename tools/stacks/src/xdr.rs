//! The presentation of messages: variable arrays of structures in XDR (RFC 4506), as paper 002, 3.2 measures them.
//!
//! `struct { int number; double real; } message<>;` is encoded as the number of elements (4.13), then for each an
//! integer (4.1) and a double (4.7), in network order without padding.

use spandrel_message::MessageBlock;

/// The octets of an encoded element.
pub const ELEMENT: usize = 12;
/// The octets of the number of elements.
pub const COUNT: usize = 4;

/// An element of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    /// An integral value.
    pub number: i32,
    /// A real value.
    pub real: f64,
}

/// Octets that are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{elements} elements are announced in a message of {octets} octets")]
pub struct XdrError {
    /// The announced number of elements.
    pub elements: usize,
    /// The octets of the message.
    pub octets: usize,
}

/// Encodes a message.
#[must_use]
pub fn encode(elements: &[Element]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(COUNT + elements.len() * ELEMENT);
    octets.extend_from_slice(&(elements.len() as u32).to_be_bytes());
    for element in elements {
        octets.extend_from_slice(&element.number.to_be_bytes());
        octets.extend_from_slice(&element.real.to_be_bytes());
    }
    octets
}

/// Decodes a message of one block or a chain into a new array. Nothing is allocated before the number of elements was
/// compared with the octets.
///
/// # Errors
/// [`XdrError`]: another number of elements than the message has.
pub fn decode(message: &MessageBlock) -> Result<Vec<Element>, XdrError> {
    let octets = message.total_len();
    if message.next().is_some() {
        let joined: Vec<u8> = message.links().flat_map(|link| link.iter().copied()).collect();
        return decode_octets(&joined, octets);
    }
    decode_octets(message, octets)
}

fn decode_octets(message: &[u8], octets: usize) -> Result<Vec<Element>, XdrError> {
    let Some((count, rest)) = message.split_first_chunk::<COUNT>() else {
        return Err(XdrError { elements: 0, octets });
    };
    let elements = u32::from_be_bytes(*count) as usize;
    let (encoded, rest) = rest.as_chunks::<ELEMENT>();
    if encoded.len() != elements || !rest.is_empty() {
        return Err(XdrError { elements, octets });
    }
    let element = |octets: &[u8; ELEMENT]| {
        let [a, b, c, d, real @ ..] = *octets;
        Element { number: i32::from_be_bytes([a, b, c, d]), real: f64::from_be_bytes(real) }
    };
    Ok(encoded.iter().map(element).collect())
}

/// The content of the messages that the experiments send: all differ from each other.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    elements: usize,
}

impl Content {
    /// Messages of at most so many encoded octets; 4,096 octets are 341 elements. There is one element at least.
    #[must_use]
    pub fn of_octets(octets: usize) -> Self {
        Self { elements: (octets.saturating_sub(COUNT) / ELEMENT).max(1) }
    }

    /// The octets of each encoded message.
    #[must_use]
    pub fn octets(&self) -> usize {
        COUNT + self.elements * ELEMENT
    }

    fn element(&self, message: usize, index: usize) -> Element {
        let number = (message * self.elements + index) as i32;
        Element { number, real: f64::from(number) * 0.5 }
    }

    /// The message of that number.
    #[must_use]
    pub fn message(&self, number: usize) -> Vec<Element> {
        (0..self.elements).map(|index| self.element(number, index)).collect()
    }

    /// The number of a message, if all of its elements are those of that message.
    #[must_use]
    pub fn number_of(&self, message: &[Element]) -> Option<usize> {
        let first = usize::try_from(message.first()?.number).ok()?;
        let number = first / self.elements;
        let is_whole = message.len() == self.elements;
        let is_same = || message.iter().enumerate().all(|(index, found)| *found == self.element(number, index));
        (is_whole && is_same()).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_of_four_kibioctets_has_341_elements() {
        let content = Content::of_octets(4096);
        assert_eq!((content.octets(), content.message(7).len()), (4096, 341));
        assert_eq!(content.number_of(&content.message(7)), Some(7));
        let mut wrong = content.message(7);
        wrong[340].real += 0.5;
        assert_eq!(content.number_of(&wrong), None);
        assert_eq!(content.number_of(&content.message(7)[..340]), None);
    }

    #[test]
    fn elements_are_encoded_as_rfc_4506_says() {
        let octets = encode(&[Element { number: -2, real: 1.0 }]);
        assert_eq!(octets, [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn messages_survive_the_conversion(
            elements in prop::collection::vec((any::<i32>(), -1e9f64..1e9), 0..50),
            cut in any::<prop::sample::Index>(),
        ) {
            let elements: Vec<_> = elements.into_iter().map(|(number, real)| Element { number, real }).collect();
            let octets = encode(&elements);
            let mut chain = MessageBlock::from(&octets[..]);
            prop_assert_eq!(decode(&chain).unwrap(), &elements[..]);
            let rest = chain.split_off(cut.index(octets.len()));
            chain.append(rest);
            prop_assert_eq!(decode(&chain).unwrap(), &elements[..]);
            prop_assert!(decode(&octets[..octets.len() - 1].into()).is_err());
        }
    }
}
