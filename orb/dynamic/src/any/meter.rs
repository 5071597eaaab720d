//! How large what octets grow into may become.

use super::DynAnyError;

/// How deep components may nest; types that contain themselves without a sequence between would never end.
const DEPTH: u16 = 128;

/// How many components may still be made, and how deep.
#[derive(Debug)]
pub(crate) struct Meter {
    left: usize,
    limit: usize,
    depth: u16,
    /// Values of derived types may be cut to what is known of them.
    pub(crate) truncates: bool,
}

impl Meter {
    /// Values of derived types are not cut.
    pub(crate) fn without_truncation(limit: usize) -> Self {
        Self { truncates: false, ..Self::new(limit) }
    }

    pub(crate) fn new(limit: usize) -> Self {
        Self { left: limit, limit, depth: 0, truncates: true }
    }

    /// Makes one component, and what it consists of.
    pub(crate) fn nested<T>(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<T, DynAnyError>,
    ) -> Result<T, DynAnyError> {
        let too_large = DynAnyError::TooLarge { limit: self.limit };
        self.left = self.left.checked_sub(1).ok_or(too_large.clone())?;
        if self.depth >= DEPTH {
            return Err(too_large);
        }
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        made
    }
}
