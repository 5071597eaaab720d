//! Limits on the size of decoded values.

use super::DynAnyError;

/// Maximum nesting of components; recursive types without a sequence in between would never end.
const DEPTH: u16 = 128;

/// Maximum nesting of values in the states of others: a list of values is as deep as it is long. The same as
/// in [`spandrel_cdr::Limits`].
const VALUES: u16 = 256;

/// The remaining budget of components, and the present depth.
#[derive(Debug)]
pub(crate) struct Meter {
    left: usize,
    limit: usize,
    depth: u16,
    values: u16,
    /// Whether values of derived types may be truncated to a known base.
    pub(crate) truncates: bool,
}

impl Meter {
    /// A meter that does not permit truncation.
    pub(crate) fn without_truncation(limit: usize) -> Self {
        Self { truncates: false, ..Self::new(limit) }
    }

    pub(crate) fn new(limit: usize) -> Self {
        Self { left: limit, limit, depth: 0, values: 0, truncates: true }
    }

    /// Creates one component with its subcomponents.
    pub(crate) fn nested<T>(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<T, DynAnyError>,
    ) -> Result<T, DynAnyError> {
        self.enter()?;
        let result = make(self);
        self.leave();
        result
    }

    /// Begins a component. Its subcomponents come before [`Meter::leave`].
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

/// The nesting of a text's brackets, types included: a list of values with an `any` in each stays below it.
const TEXT_DEPTH: u16 = 640;

/// The present nesting of a text.
#[derive(Debug)]
pub(crate) struct Nesting {
    left: usize,
    depth: u16,
}

impl Nesting {
    pub(crate) fn of_text() -> Self {
        Self { left: 4 * super::DynAny::COMPONENTS, depth: 0 }
    }

    /// Begins a part of the text.
    pub(crate) fn enter(&mut self) -> Result<(), DynAnyError> {
        let too_large = DynAnyError::TooLarge { limit: super::DynAny::COMPONENTS };
        self.left = self.left.checked_sub(1).ok_or(too_large.clone())?;
        if self.depth >= TEXT_DEPTH {
            return Err(too_large);
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }
}
