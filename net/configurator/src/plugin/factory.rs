//! Factories of shared libraries.

use std::time::Duration;

use spandrel_sync::Arc;

use super::abi::{KIND_MODULE, KIND_SERVICE, RawService};
use super::foreign::{ForeignModule, ForeignService};
use super::library::Library;
use super::object::ForeignObject;
use crate::svc_conf::{Location, ServiceKind};

/// The time that a factory may take.
const MAKE_TIME: Duration = Duration::from_secs(10);

/// A service or module that a library's function made.
pub(crate) enum ForeignFactory {
    Service(ForeignService),
    Module(ForeignModule),
}

impl ForeignFactory {
    pub(crate) fn kind(&self) -> ServiceKind {
        match self {
            Self::Service(_) => ServiceKind::ServiceObject,
            Self::Module(_) => ServiceKind::Module,
        }
    }
}

/// Makes a service or a module.
pub(crate) fn make(library: &Arc<Library>, location: &Location) -> Result<ForeignFactory, String> {
    let (file, symbol) = (library.file().display(), &location.symbol);
    let missing = || format!("the library {file} has no symbol `{symbol}`");
    let raw = if location.is_function {
        // SAFETY: a function that a directive names with `()` is a factory, by the contract of the header.
        let make = unsafe { library.library().get::<unsafe extern "C" fn() -> *mut RawService>(symbol.as_bytes()) };
        let make = *make.map_err(|_| missing())?;
        let mapped = Arc::clone(library);
        let made = crate::lifecycle::call(
            symbol,
            "make",
            MAKE_TIME,
            move || {
                let _mapped = &mapped;
                // SAFETY: as above.
                Ok(RawPointer(unsafe { make() }))
            },
            drop,
        );
        made.map_err(|error| format!("{symbol}() of {file}: {error}"))?.0
    } else {
        // SAFETY: only the address of the symbol is taken.
        let found = unsafe { library.library().get::<*mut RawService>(symbol.as_bytes()) };
        *found.map_err(|_| missing())?
    };
    let object = ForeignObject::new(raw, Arc::clone(library)).map_err(|text| format!("{symbol} of {file}: {text}"))?;
    match object.kind() {
        KIND_SERVICE => Ok(ForeignFactory::Service(ForeignService::new(object))),
        KIND_MODULE => Ok(ForeignFactory::Module(ForeignModule::new(object))),
        kind => Err(format!("{symbol} of {file}: the kind {kind} is unknown")),
    }
}

struct RawPointer(*mut RawService);

// SAFETY: the pointer goes from the thread that called the factory to the one that waited for it.
unsafe impl Send for RawPointer {}
