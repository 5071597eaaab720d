//! The exception of a bound that a request exceeds.

use spandrel::{CompletionStatus, SystemException};

/// Compares a count with its bound. `counted` names the counted things in the exception.
///
/// # Errors
/// IMP_LIMIT, which names the bound.
pub fn require_at_most(count: usize, bound: usize, counted: &'static str) -> Result<(), SystemException> {
    if count <= bound {
        return Ok(());
    }
    let detail = move || format!("more than {bound} {counted}");
    Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail))
}
