//! The structure of a service of a shared library.

use std::ptr::NonNull;

use spandrel_sync::{Arc, thread};

use super::abi::{KIND_MODULE, RawService};
use super::library::Library;

/// The structure of a service, and the library with its functions.
pub(crate) struct ForeignObject {
    raw: NonNull<RawService>,
    /// After `raw`, whose `destroy` needs it.
    _library: Arc<Library>,
}

// SAFETY: the functions of a service may be called from any thread, as the header says; this crate calls one at a time where
// that is demanded.
unsafe impl Send for ForeignObject {}
// SAFETY: the same.
unsafe impl Sync for ForeignObject {}

impl ForeignObject {
    pub(super) fn new(raw: *mut RawService, library: Arc<Library>) -> Result<Self, String> {
        let raw = NonNull::new(raw).ok_or("the factory has made nothing")?;
        // SAFETY: a factory returns a valid structure, by the contract of the header.
        let service = unsafe { raw.as_ref() };
        if service.size as usize != size_of::<RawService>() {
            return Err(format!("its structure has {} octets, not {}", service.size, size_of::<RawService>()));
        }
        if service.init.is_none() || service.info.is_none() {
            return Err("it has no `init` or no `info`".to_owned());
        }
        if service.kind == KIND_MODULE && service.put.is_none() {
            return Err("it is a module without `put`".to_owned());
        }
        Ok(Self { raw, _library: library })
    }

    pub(super) fn service(&self) -> &RawService {
        // SAFETY: the structure is valid until `destroy`.
        unsafe { self.raw.as_ref() }
    }

    pub(super) fn kind(&self) -> u32 {
        self.service().kind
    }

    pub(super) fn library(&self) -> &Arc<Library> {
        &self._library
    }
}

struct Destroyed(NonNull<RawService>, unsafe extern "C" fn(*mut RawService));

// SAFETY: the last reference to the service goes to the thread that destroys it.
unsafe impl Send for Destroyed {}

impl Drop for ForeignObject {
    fn drop(&mut self) {
        let Some(destroy) = self.service().destroy else { return };
        let destroyed = Destroyed(self.raw, destroy);
        let body = move || {
            let Destroyed(raw, destroy) = &destroyed;
            // SAFETY: this is the last call.
            unsafe { destroy(raw.as_ptr()) };
        };
        // In a thread that ends before the library is unmapped: destructors of the thread's variables may be in it.
        match thread::Builder::new().name("destroy".to_owned()).spawn(body) {
            Ok(thread) => _ = thread.join(),
            Err(error) => tracing::error!(%error, "a service of a library is not destroyed: no thread can be started"),
        }
    }
}
