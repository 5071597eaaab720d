//! Tuples of values: the arguments and the results of an operation, one after the other.

use crate::{CdrError, Decode, Decoder, Encode, Encoder};

/// No results. One octet is the smallest size that [`Decode`] permits.
impl Decode for () {
    const MIN_OCTETS: usize = 1;

    #[inline]
    fn decode(_input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($($others:ident)* | $last:ident;)*) => {
        $(impl<$($others: Encode,)* $last: Encode> Encode for ($($others,)* $last,) {
            #[inline]
            #[allow(non_snake_case)]
            fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                let ($($others,)* $last,) = self;
                $($others.encode(out)?;)*
                $last.encode(out)
            }
        }

        impl<$($others: Decode,)* $last: Decode> Decode for ($($others,)* $last,) {
            const MIN_OCTETS: usize = $($others::MIN_OCTETS +)* $last::MIN_OCTETS;

            #[inline]
            fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                Ok(($($others::decode(input)?,)* $last::decode(input)?,))
            }
        })*
    };
}

tuples! {
    | A;
    A | B;
    A B | C;
    A B C | D;
    A B C D | E;
    A B C D E | F;
    A B C D E F | G;
    A B C D E F G | H;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wire;

    #[test]
    fn the_values_of_a_tuple_follow_each_other() {
        let values = (7_u8, "seven", [1_u32, 2].as_slice());
        let mut out = Encoder::new(Wire::default());
        values.encode(&mut out).expect("values that can be encoded");
        let (octets, len) = out.into_whole();
        let mut input = Decoder::new(&octets[..len], Wire::default());
        let read = <(u8, String, Vec<u32>)>::decode(&mut input).expect("what was encoded");
        assert_eq!((read, input.remaining()), ((7, "seven".to_owned(), vec![1, 2]), 0));
        assert_eq!((<()>::MIN_OCTETS, <(u8, String)>::MIN_OCTETS), (1, 5));
    }
}
