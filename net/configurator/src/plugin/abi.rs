//! The structures of `include/spandrel_service.h`, which documents them.

use std::ffi::{c_char, c_int, c_void};

/// The version of the boundary. A library with another one is refused.
pub(super) const VERSION: u32 = 2;
/// The first octets of [`Abi`].
pub(super) const MAGIC: [u8; 8] = *b"SPNDRLSV";
/// The name of the variable of a library that has its [`Abi`].
pub(super) const ABI_SYMBOL: &str = "spandrel_service_abi";

/// The variable by which a shared library states the version of the interface (`spandrel_service_abi_t` in
/// C).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Abi {
    /// Octets that mark such a variable: `SPNDRLSV`.
    pub magic: [u8; 8],
    /// The version of this interface that the library was built for.
    pub version: u32,
    /// The size of [`RawService`].
    pub service_size: u32,
}

impl Abi {
    /// The value for libraries that are built with this crate.
    pub const CURRENT: Self = Self { magic: MAGIC, version: VERSION, service_size: size_of::<RawService>() as u32 };
}

/// The kind of a service object.
pub(crate) const KIND_SERVICE: u32 = 1;
/// The kind of a module.
pub(crate) const KIND_MODULE: u32 = 2;

/// The C struct `spandrel_handler`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawHandler {
    pub(crate) size: u32,
    pub(crate) input: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    pub(crate) output: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    pub(crate) exception: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    pub(crate) timeout: Option<unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int>,
    pub(crate) notice: Option<unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int>,
    pub(crate) close: Option<unsafe extern "C" fn(*mut c_void, u64)>,
}

pub(crate) type Run = unsafe extern "C" fn(*mut c_void);

/// The C struct `spandrel_host`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawHost {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) context: *mut c_void,
    pub(crate) name: *const c_char,
    pub(crate) log: unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize),
    pub(crate) fail: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
    pub(crate) register_handler:
        unsafe extern "C" fn(*mut c_void, isize, u32, *const RawHandler, *mut c_void, *mut u64) -> c_int,
    pub(crate) set_interest: unsafe extern "C" fn(*mut c_void, u64, u32) -> c_int,
    pub(crate) remove_handler: unsafe extern "C" fn(*mut c_void, u64) -> c_int,
    pub(crate) schedule: unsafe extern "C" fn(*mut c_void, u64, u64, u64, u64, *mut u64) -> c_int,
    pub(crate) cancel: unsafe extern "C" fn(*mut c_void, u64) -> c_int,
    pub(crate) notify: unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int,
    pub(crate) spawn: unsafe extern "C" fn(*mut c_void, Option<Run>, *mut c_void) -> c_int,
}

/// The C struct `spandrel_message`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawMessage {
    pub(crate) size: u32,
    pub(crate) kind: u32,
    pub(crate) priority: u32,
    pub(crate) reserved: u32,
    pub(crate) data: *const u8,
    pub(crate) length: usize,
    pub(crate) next_block: *mut RawMessage,
    pub(crate) owner: *mut c_void,
    pub(crate) release: Option<unsafe extern "C" fn(*mut RawMessage)>,
}

/// The C struct `spandrel_next`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawNext {
    pub(crate) size: u32,
    pub(crate) context: *mut c_void,
    pub(crate) put_next: unsafe extern "C" fn(*mut c_void, *mut RawMessage) -> c_int,
    pub(crate) reply: unsafe extern "C" fn(*mut c_void, *mut RawMessage) -> c_int,
}

/// The C struct `spandrel_thread`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawThread {
    pub(crate) size: u32,
    pub(crate) next: *const RawNext,
    pub(crate) context: *mut c_void,
    pub(crate) is_running: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// The functions and the data of one service (`spandrel_service` in C).
#[repr(C)]
#[derive(Debug)]
pub struct RawService {
    pub(crate) size: u32,
    pub(crate) kind: u32,
    pub(crate) object: *mut c_void,
    pub(crate) init: Option<unsafe extern "C" fn(*mut c_void, *const RawHost, c_int, *const *const c_char) -> c_int>,
    pub(crate) fini: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub(crate) suspend: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub(crate) resume: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub(crate) info: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> usize>,
    pub(crate) put: Option<unsafe extern "C" fn(*mut c_void, u32, *mut RawMessage, *const RawNext) -> c_int>,
    pub(crate) svc: Option<unsafe extern "C" fn(*mut c_void, *const RawThread)>,
    pub(crate) destroy: Option<unsafe extern "C" fn(*mut RawService)>,
}
