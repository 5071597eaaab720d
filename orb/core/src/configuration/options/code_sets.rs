//! Options of code sets for narrow and wide text.

use spandrel_cdr::{CharSet, WcharSet};
use spandrel_giop::TransmissionCodeSets;

use crate::OrbBuilder;

impl OrbBuilder {
    /// The native code set for narrow text, which the ORB prefers with other ORBs and names in references
    /// (default ISO 8859-1, which keeps every octet of a `char`). Two ORBs of this kind always use UTF-8.
    #[must_use]
    pub fn native_char_set(mut self, char_set: CharSet) -> Self {
        self.settings.code_sets.char_set = char_set;
        self
    }

    /// The native code set for wide text, which the ORB prefers and names in references (default UTF-16).
    /// [`WcharSet::Unknown`] disables wide text.
    #[must_use]
    pub fn native_wchar_set(mut self, wchar_set: WcharSet) -> Self {
        self.settings.code_sets.wchar_set = wchar_set;
        self
    }

    /// The conversion code sets for narrow text, in order of preference. References offer these, and clients
    /// choose only among these. By default references offer UTF-8 and ISO 8859-1, and clients choose any
    /// known code set.
    ///
    /// A server accepts every known code set that a client has chosen.
    #[must_use]
    pub fn conversion_char_sets(mut self, char_sets: impl IntoIterator<Item = CharSet>) -> Self {
        self.settings.code_sets.char_conversion = Some(char_sets.into_iter().collect());
        self
    }

    /// The conversion code sets for wide text. By default references offer UTF-16, and clients choose any
    /// known code set.
    #[must_use]
    pub fn conversion_wchar_sets(mut self, wchar_sets: impl IntoIterator<Item = WcharSet>) -> Self {
        self.settings.code_sets.wchar_conversion = Some(wchar_sets.into_iter().collect());
        self
    }
}

impl OrbBuilder {
    /// The code set for narrow text if the reference names none, such as a `corbaloc:` (default ISO 8859-1,
    /// the only one that the standard permits). The request's context names it.
    #[must_use]
    pub fn default_char_set(mut self, char_set: CharSet) -> Self {
        self.assumed().char_set = char_set.standard();
        self
    }

    /// The code set for wide text if the reference names none (default: none).
    #[must_use]
    pub fn default_wchar_set(mut self, wchar_set: WcharSet) -> Self {
        self.assumed().wchar_set = wchar_set;
        self
    }

    fn assumed(&mut self) -> &mut TransmissionCodeSets {
        self.settings.code_sets.assumed.get_or_insert(TransmissionCodeSets::UNNEGOTIATED)
    }
}
