//! The presentation of messages: variable arrays of structures in XDR (RFC 4506), as paper 002, 3.2 measures them.
//!
//! `struct { int number; double real; } message<>;` is encoded as the number of elements (4.13), then for each an
//! integer (4.1) and a double (4.7), in network order without padding.

use spandrel_message::MessageBlock;
use spandrel_xdr::{XdrError, xdr_struct};

/// The octets of an encoded element.
const ELEMENT: usize = 12;
/// The octets of the number of elements.
const COUNT: usize = 4;

xdr_struct! {
    /// The struct that messages are sequences of.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Element {
        /// The integer member.
        pub number: i32,
        /// The floating-point member.
        pub real: f64,
    }
}

/// Encodes elements as an XDR array of variable length.
///
/// # Panics
/// More than 2^32 - 1 elements.
#[must_use]
pub fn encode(elements: &[Element]) -> Vec<u8> {
    spandrel_xdr::encode(elements).expect("the number of elements fits into 32 bits")
}

/// Decodes a message of one block or a chain into a new array.
///
/// # Errors
/// Another number of elements than the message has.
pub fn decode(message: &MessageBlock) -> Result<Vec<Element>, XdrError> {
    if message.next().is_some() {
        let joined: Vec<u8> = message.links().flat_map(|link| link.iter().copied()).collect();
        return spandrel_xdr::decode(&joined);
    }
    spandrel_xdr::decode(message)
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

    /// The elements of the message with this number.
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
