//! The exceptions of the service (CORBA 3.3 Part 1, 14.5, and the minor codes of Annex A).

use spandrel::{CompletionStatus, SystemException, minor};

use crate::store::StoreError;
use spandrel_store::StoreFileError;

pub(crate) fn bad_param(minor: u32, detail: String) -> SystemException {
    SystemException::bad_param(minor, CompletionStatus::No).with_detail(detail)
}

pub(crate) fn not_exist() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No).with_detail("the definition was destroyed")
}

pub(crate) fn dependency(detail: String) -> SystemException {
    SystemException::bad_inv_order(minor::DEPENDENCY_EXISTS, CompletionStatus::No).with_detail(detail)
}

pub(crate) fn indestructible() -> SystemException {
    SystemException::bad_inv_order(minor::INDESTRUCTIBLE, CompletionStatus::No)
        .with_detail("the repository and its primitive types cannot be destroyed")
}

pub(crate) fn limit(detail: String) -> SystemException {
    SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail)
}

/// A change that could not be made durable. Nothing was changed, unless the file may have the change after a restart.
pub(crate) fn not_durable(error: StoreError) -> SystemException {
    let is_uncertain = matches!(error, StoreError::File(StoreFileError::Uncertain { .. }));
    let completed = if is_uncertain { CompletionStatus::Maybe } else { CompletionStatus::No };
    SystemException::persist_store(0, completed).with_detail(error.to_string()).with_source(error)
}
