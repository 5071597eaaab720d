//! The OSF character and code set registry (version 1.2g): the character sets of each code set.
//!
//! It only answers the question of negotiation: whether two code sets may have characters in common. Names
//! and conversion are in `spandrel-cdr`, for those code sets that are converted.

/// All of ISO 10646.
const UNIVERSAL: u16 = 0x1000;

/// Character sets, and the code sets with exactly these. ISO 8859-11 and later parts, KOI8, GBK and GB 18030
/// are not in the registry; they are listed with similar code sets.
static REGISTRY: &[(&[u16], &[u32])] = &[
    (
        &[0x0001],
        &[
            0x0001_0020,
            0x1002_0341,
            0x1002_0344,
            0x1002_037b,
            0x1002_0387,
            0x1002_0388,
            0x1002_0410,
            0x1002_0413,
            0x1002_0440,
            0x1002_045a,
            0x1002_045b,
            0x1002_2341,
            0x1002_6412,
            0x1002_7025,
        ],
    ),
    (
        &[0x0001, 0x0080, 0x0081],
        &[
            0x0500_0010,
            0x0500_0011,
            0x0500_0012,
            0x0502_0002,
            0x1001_0009,
            0x1001_000a,
            0x1001_000b,
            0x1001_000c,
            0x1003_0001,
            0x1003_0002,
            0x1004_0001,
            0x1004_0002,
            0x1004_0003,
            0x1004_0005,
        ],
    ),
    (&[0x0001, 0x0080, 0x0081, 0x0082], &[0x0502_0001]),
    (&[0x0001, 0x0081], &[0x1004_0004, 0x1004_0006]),
    (&[0x0001, 0x0100], &[0x1002_03a5, 0x1002_03a6, 0x1002_03b5, 0x1002_23a5]),
    (&[0x0001, 0x0180], &[0x0005_000a, 0x1001_0008, 0x1002_03a9, 0x1002_03aa, 0x1002_03b4, 0x1002_03b6, 0x1002_03c4]),
    (&[0x0001, 0x0181], &[0x0005_0010]),
    (
        &[0x0001, 0x0300],
        &[
            0x1001_0007,
            0x1002_03a7,
            0x1002_03a8,
            0x1002_03b2,
            0x1002_0565,
            0x1002_0567,
            0x1002_056a,
            0x1002_0570,
            0x1002_13a7,
        ],
    ),
    (
        &[0x0011],
        &[
            0x0001_0001,
            0x0001_000e,
            0x0001_000f,
            0x0001_0010,
            0x1001_0001,
            0x1002_0025,
            0x1002_0111,
            0x1002_0115,
            0x1002_0116,
            0x1002_0118,
            0x1002_011a,
            0x1002_011c,
            0x1002_011d,
            0x1002_0129,
            0x1002_01b5,
            0x1002_01f4,
            0x1002_0352,
            0x1002_035d,
            0x1002_035f,
            0x1002_0367,
            0x1002_0417,
            0x1002_04e4,
            0x1002_04ea,
            0x1002_1352,
            0x1002_6352,
        ],
    ),
    (&[0x0011, 0x0080, 0x0081], &[0x1000_0001, 0x1000_0003]),
    (&[0x0011, 0x0080, 0x0081, 0x0082], &[0x0003_0010, 0x1000_0002]),
    (&[0x0011, 0x0100, 0x0101], &[0x0004_000a, 0x1002_03ca]),
    (&[0x0012], &[0x0001_0002, 0x1002_0354, 0x1002_0366, 0x1002_04e2, 0x1002_1354]),
    (&[0x0013], &[0x0001_0003]),
    (&[0x0013, 0x0019], &[0x1001_0006]),
    (&[0x0014], &[0x0001_0004]),
    (
        &[0x0015],
        &[
            0x0001_0005,
            0x1002_0357,
            0x1002_0362,
            0x1002_036e,
            0x1002_0370,
            0x1002_0401,
            0x1002_0490,
            0x1002_04e3,
            0x1002_1357,
        ],
    ),
    (
        &[0x0016],
        &[
            0x0001_0006,
            0x1001_0003,
            0x1002_01a4,
            0x1002_0360,
            0x1002_0364,
            0x1002_0396,
            0x1002_03ee,
            0x1002_0416,
            0x1002_0449,
            0x1002_044a,
            0x1002_04e8,
            0x1002_1360,
            0x1002_1364,
            0x1002_21a4,
            0x1002_2360,
        ],
    ),
    (&[0x0017], &[0x0001_0007, 0x1001_0004, 0x1002_0365, 0x1002_036b, 0x1002_04e5, 0x1002_1365]),
    (
        &[0x0018],
        &[
            0x0001_0008,
            0x1001_0005,
            0x1002_01a8,
            0x1002_0358,
            0x1002_035e,
            0x1002_04e7,
            0x1002_1358,
            0x1002_6358,
            0x1002_8358,
        ],
    ),
    (&[0x0019], &[0x0001_0009, 0x1002_0359, 0x1002_0402, 0x1002_04e6, 0x1002_1359]),
    (&[0x001a], &[0x0001_000a, 0x0001_000d, 0x1002_0399, 0x1002_039a, 0x1002_0458, 0x1002_0462, 0x1002_04e9]),
    (&[0x0080], &[0x0003_0001, 0x1001_0002, 0x1002_0122, 0x1002_0380, 0x1002_0381, 0x1002_0403, 0x1002_0411]),
    (&[0x0080, 0x0081], &[0x1002_03a2, 0x1002_03a4, 0x1002_03ab, 0x1002_03ae, 0x1002_03af, 0x1002_13a2, 0x1002_13ab]),
    (&[0x0080, 0x0081, 0x0082], &[0x1002_83ba]),
    (
        &[0x0081],
        &[
            0x0003_0004,
            0x0003_0005,
            0x0003_0006,
            0x1002_012c,
            0x1002_012d,
            0x1002_03ad,
            0x1002_03bb,
            0x1002_112c,
            0x1002_13b8,
        ],
    ),
    (&[0x0082], &[0x0003_000a, 0x1002_13b9]),
    (&[0x0100], &[0x0004_0001, 0x1002_0342, 0x1002_039e, 0x1002_03b7, 0x1002_13cb, 0x1002_2342]),
    (&[0x0101], &[0x0004_0002]),
    (&[0x0180], &[0x0005_0001, 0x000d_0001, 0x1002_0343, 0x1002_039f, 0x1002_03b3]),
    (&[0x0181], &[0x0005_0002]),
    (
        &[0x0200],
        &[0x0001_000b, 0x000b_0001, 0x1002_0346, 0x1002_0347, 0x1002_036a, 0x1002_03a1, 0x1002_2346, 0x1002_236a],
    ),
    (&[0x0300], &[0x1002_0345, 0x1002_03a0, 0x1002_0564]),
    (
        &[0x1000],
        &[
            0x0001_0100,
            0x0001_0101,
            0x0001_0102,
            0x0001_0104,
            0x0001_0105,
            0x0001_0106,
            0x0001_0108,
            0x0001_0109,
            0x0501_0001,
        ],
    ),
];

/// Whether text in one of these code sets may be text in the other: they have at least one character set in
/// common (7.10.2.6), or one of them has all of ISO 10646. An unregistered code set is compatible with no
/// other.
pub(crate) fn are_compatible(one: u32, other: u32) -> bool {
    let (one, other) = (character_sets(one), character_sets(other));
    let is_in = |set: &u16| other.contains(set);
    let universal = [one, other].iter().any(|sets| sets.contains(&UNIVERSAL));
    one.iter().any(is_in) || universal && !one.is_empty() && !other.is_empty()
}

fn character_sets(code_set: u32) -> &'static [u16] {
    REGISTRY.iter().find(|(_, code_sets)| code_sets.contains(&code_set)).map_or(&[], |(sets, _)| sets)
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::{CharSet, WcharSet};

    use super::*;

    #[test]
    fn each_code_set_is_listed_once_and_every_converted_one_is_listed() {
        let mut all: Vec<u32> = REGISTRY.iter().flat_map(|(_, code_sets)| *code_sets).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for set in CharSet::all().map(CharSet::number).chain(WcharSet::all().map(WcharSet::number)) {
            assert!(all.binary_search(&set).is_ok(), "{set:#010x}");
        }
    }

    #[test]
    fn code_sets_with_a_common_character_set_are_compatible() {
        const LATIN1: u32 = 0x0001_0001;
        const GREEK: u32 = 0x0001_0007;
        const EBCDIC: u32 = 0x1002_0025;
        const EUC_JP: u32 = 0x0003_0010;
        const UTF8: u32 = 0x0501_0001;
        assert!(are_compatible(LATIN1, EBCDIC) && are_compatible(LATIN1, EUC_JP), "both have Latin-1");
        assert!(!are_compatible(LATIN1, GREEK));
        assert!(are_compatible(UTF8, GREEK) && are_compatible(GREEK, UTF8), "it has all characters");
        assert!(!are_compatible(UTF8, 0x1234_5678), "it is not registered");
    }
}
