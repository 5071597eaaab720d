//! Octets decoded as text in each code set: no panic, memory in proportion to the input, and decoded text
//! that can be encoded decodes to equal text.
//!
//! The first octet selects the code set, the second byte order, version, and narrow or wide text.
use spandrel_cdr::{ByteOrder, CdrError, CharSet, Decoder, Encoder, GiopVersion, WcharSet, Wire};

/// Characters of JIS X 0208 with two Unicode mappings: decoding gives the second.
const DUPLICATES: &[char] = &['\u{a2}', '\u{a3}', '\u{ac}', '\u{2016}', '\u{2212}', '\u{301c}'];

pub fn run(input: &[u8]) {
    let [set, how, octets @ ..] = input else { return };
    let (narrow, wide): (Vec<_>, Vec<_>) = (CharSet::all().collect(), WcharSet::all().collect());
    let wire = Wire {
        char_set: narrow[usize::from(*set) % narrow.len()],
        wchar_set: wide[usize::from(*set) % wide.len()],
        ..Wire::new(
            if how & 1 == 0 { ByteOrder::Big } else { ByteOrder::Little },
            if how & 2 == 0 { GiopVersion::V1_2 } else { GiopVersion::V1_1 },
        )
    };
    let mut out = Encoder::new(wire);
    if how & 4 == 0 {
        out.octet_sequence(&[octets, &[0]].concat()).expect("the length fits");
        let encoded = out.to_vec();
        let Ok(text) = Decoder::new(&encoded, wire).str() else { return };
        assert_round_trip(&text, octets.len(), |out| out.short_str(&text), |input| input.str().map(Into::into), wire);
    } else if how & 8 == 0 {
        out.octet_sequence(octets).expect("the length fits");
        let Ok(text) = Decoder::new(&out.to_vec(), wire).wstr() else { return };
        assert_round_trip(&text, octets.len(), |out| out.wstr(&text), |input| input.wstr(), wire);
    } else if let Ok(letter) = Decoder::new(octets, wire).wchar() {
        let text = letter.to_string();
        assert_round_trip(&text, octets.len(), |out| out.wchar(letter), |input| input.wchar().map(Into::into), wire);
    }
}

fn assert_round_trip(
    text: &str,
    octets: usize,
    write: impl Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    read: impl Fn(&mut Decoder<'_>) -> Result<String, CdrError>,
    wire: Wire,
) {
    assert!(text.len() <= 4 * octets + 4);
    let mut out = Encoder::new(wire);
    match write(&mut out) {
        Ok(()) if !text.contains(DUPLICATES) => {
            assert_eq!(read(&mut Decoder::new(&out.to_vec(), wire)).as_deref(), Ok(text));
        }
        Ok(()) | Err(CdrError::NotRepresentable { .. }) => {}
        Err(other) => panic!("{text:?} was decoded but cannot be encoded: {other}"),
    }
}
