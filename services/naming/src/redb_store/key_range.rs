//! Ranges of keys in the table of bindings.

use std::ops::Bound;

use crate::store::ContextId;

/// The keys of one context's bindings.
pub(super) struct KeyRange {
    pub(super) first: Vec<u8>,
    /// `None` for the largest id.
    end: Option<Vec<u8>>,
}

pub(super) fn range_of(context: ContextId) -> KeyRange {
    let end = context.0.checked_add(1).map(|next| next.to_be_bytes().to_vec());
    KeyRange { first: context.0.to_be_bytes().to_vec(), end }
}

impl KeyRange {
    pub(super) fn end(&self) -> Bound<&[u8]> {
        self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
    }

    pub(super) fn as_tuple(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(&self.first), self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_keys_of_one_context() {
        let range = range_of(ContextId(0xff));
        assert_eq!(range.first, [0, 0, 0, 0, 0, 0, 0, 0xff]);
        assert_eq!(range.end(), Bound::Excluded([0, 0, 0, 0, 0, 0, 1, 0].as_slice()));
        assert_eq!(range.as_tuple(), (Bound::Included(range.first.as_slice()), range.end()));
        assert_eq!(range_of(ContextId(u64::MAX)).end(), Bound::Unbounded);
    }
}
