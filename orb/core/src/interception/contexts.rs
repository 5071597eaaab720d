//! Service contexts as interceptors read and add them.

use spandrel_giop::{CompletionStatus, ServiceContext, SystemException, minor};

pub(super) fn find_context(contexts: &[ServiceContext], id: u32) -> Result<ServiceContext, SystemException> {
    contexts.iter().find(|context| context.id == id).cloned().ok_or_else(|| no_context(id))
}

pub(super) fn no_context(id: u32) -> SystemException {
    SystemException::bad_param(minor::UNKNOWN_SERVICE_CONTEXT, CompletionStatus::No)
        .with_detail(|| format!("there is no service context {id:#x}"))
}

pub(super) fn add_context(
    contexts: &mut Vec<ServiceContext>,
    context: ServiceContext,
    replace: bool,
) -> Result<(), SystemException> {
    match contexts.iter_mut().find(|other| other.id == context.id) {
        None => contexts.push(context),
        Some(other) if replace => *other = context,
        Some(_) => {
            return Err(SystemException::bad_inv_order(minor::SERVICE_CONTEXT_EXISTS, CompletionStatus::No)
                .with_detail(|| format!("there is a service context {:#x} already", context.id)));
        }
    }
    Ok(())
}
