//! Numbers and names of code sets, as in the OSF registry.
//!
//! The character sets of each code set, by which a negotiation finds whether two code sets have characters in
//! common, are in `osf_registry` of `spandrel-giop`.

/// A code set's number and names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    /// The number in the OSF registry.
    pub(crate) number: u32,
    /// The names; the first is the one to print.
    pub(crate) names: &'static [&'static str],
}

pub(crate) const LATIN1: Named = Named { number: 0x0001_0001, names: &["ISO 8859-1", "Latin-1"] };
pub(crate) const ASCII: Named = Named { number: 0x0001_0020, names: &["ISO 646", "ASCII", "US-ASCII"] };
pub(crate) const UTF8: Named = Named { number: 0x0501_0001, names: &["UTF-8"] };

impl Named {
    pub(crate) fn name(self) -> &'static str {
        self.names[0]
    }

    /// Whether `name` is one of the names, in any case and with any separators: `iso8859_5` is ISO 8859-5.
    pub(crate) fn is(self, name: &str) -> bool {
        fn letters(name: &str) -> impl Iterator<Item = u8> {
            name.bytes().filter(u8::is_ascii_alphanumeric).map(|octet| octet.to_ascii_lowercase())
        }
        self.names.iter().any(|candidate| letters(candidate).eq(letters(name)))
    }
}
