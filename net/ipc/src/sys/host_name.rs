//! The name of a host by its address.

use std::ffi::CStr;
use std::io;
use std::net::SocketAddr;
use std::ptr;

use socket2::SockAddr;

/// Room for a name with its NUL (`NI_MAXHOST` of getnameinfo(3)).
const MAX_NAME: usize = 1025;

/// The name that the system's resolver has for an address; `None` without one.
pub(crate) fn host_name(addr: SocketAddr) -> io::Result<Option<String>> {
    let addr = SockAddr::from(addr);
    let mut name = [0_u8; MAX_NAME];
    let size = name.len() as libc::socklen_t;
    // SAFETY: the address is initialised for the length given; at most `size` octets of `name` are written, which is
    // borrowed for the call alone; a null pointer with the length 0 means that no service is wanted.
    let code = unsafe {
        libc::getnameinfo(
            addr.as_ptr().cast(),
            addr.len(),
            name.as_mut_ptr().cast(),
            size as _,
            ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    match code {
        0 => {
            let name = CStr::from_bytes_until_nul(&name).map_err(io::Error::other)?;
            Ok(Some(name.to_string_lossy().into_owned()))
        }
        libc::EAI_NONAME => Ok(None),
        libc::EAI_SYSTEM => Err(io::Error::last_os_error()),
        code => {
            // SAFETY: it returns a text of static lifetime for each code.
            let reason = unsafe { CStr::from_ptr(libc::gai_strerror(code)) };
            Err(io::Error::other(format!("cannot look up the name of a host: {}", reason.to_string_lossy())))
        }
    }
}
