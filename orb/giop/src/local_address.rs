//! Components with addresses of a server inside its own host: a socket in the file system, or shared memory.
//!
//! Such an address is valid only on its host, so each component names the host. omniORB names it by host
//! name. Spandrel uses the system's boot id and the identity of the file, because containers of one host use
//! equal names and paths for different things. The ORB decides whether a host is its own.

use std::fmt;

use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion, TaggedComponent, Wire};
use spandrel_error::excerpt;

use crate::{GiopError, ids};

/// omniORB's component for UNIX-domain sockets: an encapsulation with a host name and a path.
pub const TAG_OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;

/// The address of a server inside its host, in Spandrel's form.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct LocalAddress {
    /// The transport: `uds` or `shm`.
    pub scheme: String,
    /// The path of a socket, or `@` and an abstract name.
    pub address: String,
    /// The boot id of the host's system (Linux: `boot_id`).
    pub host: String,
    /// The identity of the address among others of the same name on the same host: device and inode of the
    /// socket's file, or of the network namespace of an abstract name.
    pub file: (u64, u64),
    /// The user that the server runs as.
    pub user: u32,
    /// Whether other users may connect.
    pub any_user: bool,
}

/// The address of a server inside its host, in omniORB's form.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct UnixTransport {
    /// The host's own name.
    pub host: String,
    /// The path of the server's UNIX-domain socket.
    pub path: String,
}

impl LocalAddress {
    /// Decodes a component; `None` if it has another tag.
    ///
    /// # Errors
    /// [`GiopError::Profile`].
    pub fn decode(component: &TaggedComponent) -> Result<Option<Self>, GiopError> {
        read(component, ids::TAG_LOCAL_ADDRESS, "TAG_LOCAL_ADDRESS", |input| {
            Ok(Self {
                scheme: input.str()?.into_owned(),
                address: input.str()?.into_owned(),
                host: input.str()?.into_owned(),
                file: (input.u64()?, input.u64()?),
                user: input.u32()?,
                any_user: input.bool()?,
            })
        })
    }

    /// Writes the component in this machine's byte order.
    ///
    /// # Errors
    /// Text that cannot be encoded in CDR.
    pub fn encode(&self) -> Result<TaggedComponent, CdrError> {
        write(ids::TAG_LOCAL_ADDRESS, |out| {
            out.short_str(&self.scheme)?;
            out.short_str(&self.address)?;
            out.short_str(&self.host)?;
            out.u64(self.file.0);
            out.u64(self.file.1);
            out.u32(self.user);
            out.bool(self.any_user);
            Ok(())
        })
    }
}

impl UnixTransport {
    /// Decodes a component; `None` if it has another tag.
    ///
    /// # Errors
    /// [`GiopError::Profile`].
    pub fn decode(component: &TaggedComponent) -> Result<Option<Self>, GiopError> {
        read(component, TAG_OMNIORB_UNIX_TRANS, "TAG_OMNIORB_UNIX_TRANS", |input| {
            Ok(Self { host: input.str()?.into_owned(), path: input.str()?.into_owned() })
        })
    }

    /// Writes the component in this machine's byte order.
    ///
    /// # Errors
    /// Text that cannot be encoded in CDR.
    pub fn encode(&self) -> Result<TaggedComponent, CdrError> {
        write(TAG_OMNIORB_UNIX_TRANS, |out| {
            out.short_str(&self.host)?;
            out.short_str(&self.path)
        })
    }
}

fn read<T>(
    component: &TaggedComponent,
    tag: u32,
    what: &'static str,
    read: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>,
) -> Result<Option<T>, GiopError> {
    if component.tag != tag {
        return Ok(None);
    }
    Decoder::of_encapsulation(&component.data, Wire::new(ByteOrder::Big, GiopVersion::V1_0))
        .and_then(|mut input| read(&mut input))
        .map(Some)
        .map_err(|cause| GiopError::Profile { what, cause })
}

fn write(tag: u32, write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>) -> Result<TaggedComponent, CdrError> {
    let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
    out.u8(ByteOrder::NATIVE.flag());
    write(&mut out)?;
    Ok(TaggedComponent { tag, data: out.to_vec() })
}

impl fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, address, host, .. } = self;
        write!(f, "inside of host {} at {}://{}", excerpt(host), excerpt(scheme), excerpt(address))
    }
}

impl fmt::Display for UnixTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inside of host {} at socket {}", excerpt(&self.host), excerpt(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> LocalAddress {
        LocalAddress {
            scheme: "shm".into(),
            address: "/run/x".into(),
            host: "0d9c".into(),
            file: (1 << 40, 7),
            user: 1000,
            any_user: true,
        }
    }

    #[test]
    fn addresses_survive_encoding_and_decoding() {
        assert_eq!(LocalAddress::decode(&address().encode().unwrap()), Ok(Some(address())));
        let unix = UnixTransport { host: "host".into(), path: "/tmp/s".into() };
        let component = unix.encode().unwrap();
        assert_eq!(UnixTransport::decode(&component), Ok(Some(unix)));
        assert_eq!(LocalAddress::decode(&component), Ok(None));
    }

    #[test]
    fn omniorbs_component_is_read() {
        // As omniORB 4.2.5 writes it for `giop:unix:/run/srv.sock` on a host named `vm`.
        let data = b"\x01\0\0\0\x03\0\0\0vm\0\0\x0e\0\0\0/run/srv.sock\0".to_vec();
        let read = UnixTransport::decode(&TaggedComponent { tag: TAG_OMNIORB_UNIX_TRANS, data });
        assert_eq!(read, Ok(Some(UnixTransport { host: "vm".into(), path: "/run/srv.sock".into() })));
    }

    #[test]
    fn a_truncated_component_is_an_error() {
        let whole = address().encode().unwrap();
        for length in 0..whole.data.len() {
            let cut = TaggedComponent { tag: whole.tag, data: whole.data[..length].to_vec() };
            assert!(LocalAddress::decode(&cut).is_err(), "{length}");
        }
    }
}
