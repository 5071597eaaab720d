//! Octets read as text in every code set: no panic, no memory beyond the input's worth, and what was read and can be written reads as the
//! same again.
//!
//! The first octet chooses the code set, the second byte order, version, and between narrow and wide text.
use spandrel_cdr::{ByteOrder, CdrError, CharSet, Decoder, Encoder, GiopVersion, WcharSet, Wire};

/// Characters of JIS X 0208 that are two to Unicode: the second is read.
const TWINS: &[char] = &['\u{a2}', '\u{a3}', '\u{ac}', '\u{2016}', '\u{2212}', '\u{301c}'];

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
        out.octet_sequence(&[octets, &[0]].concat()).expect("it is short");
        let written = out.to_vec();
        let Ok(text) = Decoder::new(&written, wire).str() else { return };
        again(&text, octets.len(), |out| out.short_str(&text), |input| input.str().map(Into::into), wire);
    } else if how & 8 == 0 {
        out.octet_sequence(octets).expect("it is short");
        let Ok(text) = Decoder::new(&out.to_vec(), wire).wstr() else { return };
        again(&text, octets.len(), |out| out.wstr(&text), |input| input.wstr(), wire);
    } else if let Ok(letter) = Decoder::new(octets, wire).wchar() {
        let text = letter.to_string();
        again(&text, octets.len(), |out| out.wchar(letter), |input| input.wchar().map(Into::into), wire);
    }
}

fn again(
    text: &str,
    octets: usize,
    write: impl Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    read: impl Fn(&mut Decoder<'_>) -> Result<String, CdrError>,
    wire: Wire,
) {
    assert!(text.len() <= 4 * octets + 4);
    let mut out = Encoder::new(wire);
    match write(&mut out) {
        Ok(()) if !text.contains(TWINS) => {
            assert_eq!(read(&mut Decoder::new(&out.to_vec(), wire)).as_deref(), Ok(text));
        }
        Ok(()) | Err(CdrError::NotRepresentable { .. }) => {}
        Err(other) => panic!("{text:?} was read and cannot be written: {other}"),
    }
}
