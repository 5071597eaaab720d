//! Service contexts as interceptors read and add them.

use spandrel_giop::{CompletionStatus, ServiceContext, SystemException, minor};

pub(super) fn find_context(contexts: &[ServiceContext], id: u32) -> Result<ServiceContext, SystemException> {
    contexts.iter().find(|context| context.id == id).cloned().ok_or_else(|| no_context(id))
}

pub(super) fn no_context(id: u32) -> SystemException {
    SystemException::bad_param(minor::UNKNOWN_SERVICE_CONTEXT, CompletionStatus::No)
        .with_detail(|| format!("there is no service context {id:#x}"))
}

/// The handling of a service context whose id another one has: `replace` in IDL.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum IfPresent {
    /// The new context replaces it.
    Replace,
    /// Adding another one is an error.
    Fail,
}

pub(super) fn add_context(
    contexts: &mut Vec<ServiceContext>,
    context: ServiceContext,
    if_present: IfPresent,
) -> Result<(), SystemException> {
    match contexts.iter_mut().find(|other| other.id == context.id) {
        None => contexts.push(context),
        Some(other) if if_present == IfPresent::Replace => *other = context,
        Some(_) => {
            return Err(SystemException::bad_inv_order(minor::SERVICE_CONTEXT_EXISTS, CompletionStatus::No)
                .with_detail(|| format!("there is a service context {:#x} already", context.id)));
        }
    }
    Ok(())
}
