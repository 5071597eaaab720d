//! The arguments of an operation as a skeleton reads them: values, or texts and sequences lent from the message.

use std::borrow::Cow;

use crate::{CdrError, Decode, Decoder};

/// An argument, read from a message that lives as long as `'m`.
pub trait Argument<'m>: Sized {
    /// Reads the argument.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    fn read(input: &mut Decoder<'m>) -> Result<Self, CdrError>;
}

impl<'m, T: Decode> Argument<'m> for T {
    #[inline]
    fn read(input: &mut Decoder<'m>) -> Result<Self, CdrError> {
        T::decode(input)
    }
}

impl<'m> Argument<'m> for Cow<'m, str> {
    #[inline]
    fn read(input: &mut Decoder<'m>) -> Result<Self, CdrError> {
        input.str()
    }
}

impl<'m, T: Decode + 'm> Argument<'m> for Cow<'m, [T]> {
    #[inline]
    fn read(input: &mut Decoder<'m>) -> Result<Self, CdrError> {
        T::lend(input)
    }
}

/// All arguments of an operation, one after the other: a tuple.
pub trait ArgumentList<'m>: Sized {
    /// Reads the arguments in their order.
    ///
    /// # Errors
    /// As [`Argument::read`].
    fn read_all(input: &mut Decoder<'m>) -> Result<Self, CdrError>;
}

macro_rules! lists {
    ($($($argument:ident)*;)*) => {
        $(impl<'m, $($argument: Argument<'m>),*> ArgumentList<'m> for ($($argument,)*) {
            #[inline]
            fn read_all(input: &mut Decoder<'m>) -> Result<Self, CdrError> {
                Ok(($($argument::read(input)?,)*))
            }
        })*
    };
}

lists! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encode, Encoder, Wire};

    #[test]
    fn texts_and_sequences_of_octets_are_lent() {
        let values = ("seven", 7_u32, [1_u8, 2].as_slice());
        let mut out = Encoder::new(Wire::default());
        values.encode(&mut out).expect("values that can be encoded");
        let (octets, len) = out.into_whole();
        let mut input = Decoder::new(&octets[..len], Wire::default());
        let list = <(Cow<'_, str>, u32, Cow<'_, [u8]>)>::read_all(&mut input);
        let (text, number, sequence) = list.expect("the values in the message");
        assert_eq!((&*text, number, &*sequence, input.remaining()), ("seven", 7, &[1, 2][..], 0));
        assert!(matches!((text, sequence), (Cow::Borrowed(_), Cow::Borrowed(_))));
    }

    #[test]
    fn a_list_ends_at_an_argument_that_cannot_be_read() {
        let mut input = Decoder::new(&[0, 0, 0, 7, 0, 0, 0, 9], Wire::default());
        assert!(<(u32, Cow<'_, str>)>::read_all(&mut input).is_err());
    }
}
