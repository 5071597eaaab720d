//! Which code sets text is sent in.

use spandrel_cdr::{CharSet, WcharSet};
use spandrel_giop::TransmissionCodeSets;

use crate::OrbBuilder;

impl OrbBuilder {
    /// The code set that is preferred for narrow text with ORBs of others (default ISO 8859-1, which keeps every octet of a
    /// `char`), and which references name as the server's native one. ORBs of our kind say everything to each other, in UTF-8.
    #[must_use]
    pub fn native_char_set(mut self, char_set: CharSet) -> Self {
        self.settings.code_sets.char_set = char_set;
        self
    }

    /// The code set that is preferred for wide text (default UTF-16), and which references name as the server's native one;
    /// [`WcharSet::Unknown`] for no wide text at all.
    #[must_use]
    pub fn native_wchar_set(mut self, wchar_set: WcharSet) -> Self {
        self.settings.code_sets.wchar_set = wchar_set;
        self
    }

    /// The code sets besides the native one that narrow text is converted to and from, the best first: references offer these, and clients
    /// choose none but these. Unless set, references offer UTF-8 and ISO 8859-1, and clients choose any that is known.
    ///
    /// A server takes whatever a client has chosen, if it is known.
    #[must_use]
    pub fn conversion_char_sets(mut self, char_sets: impl IntoIterator<Item = CharSet>) -> Self {
        self.settings.code_sets.char_conversion = Some(char_sets.into_iter().collect());
        self
    }

    /// The same for wide text. Unless set, references offer UTF-16, and clients choose any that is known.
    #[must_use]
    pub fn conversion_wchar_sets(mut self, wchar_sets: impl IntoIterator<Item = WcharSet>) -> Self {
        self.settings.code_sets.wchar_conversion = Some(wchar_sets.into_iter().collect());
        self
    }
}

impl OrbBuilder {
    /// The code set that a server is taken to know whose reference names none, such as a `corbaloc:` (default ISO 8859-1, which is all that
    /// the standard grants). It is told so.
    #[must_use]
    pub fn default_char_set(mut self, char_set: CharSet) -> Self {
        self.assumed().char_set = char_set.standard();
        self
    }

    /// The same for wide text (default: none).
    #[must_use]
    pub fn default_wchar_set(mut self, wchar_set: WcharSet) -> Self {
        self.assumed().wchar_set = wchar_set;
        self
    }

    fn assumed(&mut self) -> &mut TransmissionCodeSets {
        self.settings.code_sets.assumed.get_or_insert(TransmissionCodeSets::UNNEGOTIATED)
    }
}
