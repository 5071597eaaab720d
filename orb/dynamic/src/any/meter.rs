//! How large what octets grow into may become.

use super::DynAnyError;

/// How deep components may nest; types that contain themselves without a sequence between would never end.
const DEPTH: u16 = 128;

/// How deep values may nest in the states of others: a list of values is as deep as it is long. As [`spandrel_cdr::Limits`] has it.
const VALUES: u16 = 256;

/// How many components may still be made, and how deep.
#[derive(Debug)]
pub(crate) struct Meter {
    left: usize,
    limit: usize,
    depth: u16,
    values: u16,
    /// Values of derived types may be cut to what is known of them.
    pub(crate) truncates: bool,
}

impl Meter {
    /// Values of derived types are not cut.
    pub(crate) fn without_truncation(limit: usize) -> Self {
        Self { truncates: false, ..Self::new(limit) }
    }

    pub(crate) fn new(limit: usize) -> Self {
        Self { left: limit, limit, depth: 0, values: 0, truncates: true }
    }

    /// Makes one component, and what it consists of.
    pub(crate) fn nested<T>(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<T, DynAnyError>,
    ) -> Result<T, DynAnyError> {
        self.enter()?;
        let made = make(self);
        self.leave();
        made
    }

    /// Begins a component. What it consists of comes before [`Meter::leave`].
    pub(crate) fn enter(&mut self) -> Result<(), DynAnyError> {
        let too_large = DynAnyError::TooLarge { limit: self.limit };
        self.left = self.left.checked_sub(1).ok_or(too_large.clone())?;
        if self.depth >= DEPTH + self.values {
            return Err(too_large);
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Begins the state of a value; [`Meter::leave_value`] ends it.
    pub(crate) fn enter_value(&mut self) -> Result<(), DynAnyError> {
        if self.values >= VALUES {
            return Err(DynAnyError::TooLarge { limit: self.limit });
        }
        self.values += 1;
        Ok(())
    }

    pub(crate) fn leave_value(&mut self) {
        self.values -= 1;
    }
}
