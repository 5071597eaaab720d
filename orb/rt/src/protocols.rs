//! Protocols and their properties, of which protocol policies consist (`RTCORBA::ProtocolProperties`).
//!
//! The properties of UNIX-domain sockets and shared memory are TAO's extension. [`RtClient`](crate::RtClient) applies them
//! to the sockets of calls, and the endpoints of lanes to those that they accept.

use spandrel_cdr::{CdrError, Decoder, Encoder};
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::transport::{KeepAlive, SocketSettings, cost};

/// A protocol in a policy (`RTCORBA::Protocol`). The properties of GIOP itself have no attributes, so they have no type.
#[derive(Clone, Debug, PartialEq)]
pub struct Protocol {
    /// The tag of the protocol's profiles (`IOP::ProfileId`), such as 0 for IIOP.
    pub protocol_type: u32,
    /// The properties of the transport; `None` for the ORB's own.
    pub transport: Option<TransportProperties>,
}

/// IIOP (`TAG_INTERNET_IOP`), also over TLS.
pub const IIOP: u32 = 0;
/// UNIX-domain sockets, by TAO's number (`TAO_TAG_UIOP_PROFILE`).
pub const UNIX_DOMAIN: u32 = 0x5441_4f00;
/// Shared memory, by TAO's number (`TAO_TAG_SHMEM_PROFILE`).
pub const SHARED_MEMORY: u32 = 0x5441_4f02;
/// Datagrams, by TAO's number (`TAO_TAG_DIOP_PROFILE`): for one-ways.
pub const DATAGRAMS: u32 = 0x5441_4f04;

impl Protocol {
    /// The schemes of the addresses of this protocol in an ORB; none for a protocol that it does not have.
    pub(crate) fn schemes(&self) -> &'static [&'static str] {
        match self.protocol_type {
            IIOP => &["ssliop", "iiop"],
            UNIX_DOMAIN => &["uds"],
            SHARED_MEMORY => &["shm"],
            DATAGRAMS => &["diop"],
            _ => &[],
        }
    }

    /// Writes the protocol in TAO's form: its number and the properties of its transport, by default TAO's. Those of
    /// GIOP have no octets, and `enable_network_priority` is not sent.
    pub(crate) fn encode(&self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        out.u32(self.protocol_type);
        let default;
        let properties = match (&self.transport, self.protocol_type) {
            (Some(properties), _) => properties,
            (None, IIOP) => {
                default = TransportProperties::Tcp(TcpProtocolProperties::default());
                &default
            }
            (None, UNIX_DOMAIN) => {
                default = TransportProperties::UnixDomain(UnixDomainProtocolProperties::default());
                &default
            }
            (None, SHARED_MEMORY) => {
                default = TransportProperties::SharedMemory(SharedMemoryProtocolProperties::default());
                &default
            }
            (None, _) => return Ok(()),
        };
        match properties {
            TransportProperties::Tcp(tcp) => {
                out.i32(tcp.send_buffer_size);
                out.i32(tcp.recv_buffer_size);
                [tcp.keep_alive, tcp.dont_route, tcp.no_delay].into_iter().for_each(|flag| out.bool(flag));
            }
            TransportProperties::UnixDomain(unix) => {
                out.i32(unix.send_buffer_size);
                out.i32(unix.recv_buffer_size);
            }
            TransportProperties::SharedMemory(shared) => {
                // The properties of the TCP connection that TAO opens beside it.
                out.i32(0);
                out.i32(0);
                [true, false, true].into_iter().for_each(|flag| out.bool(flag));
                out.i32(shared.preallocate_buffer_size);
                out.short_str(&shared.mmap_filename)?;
                out.short_str(&shared.mmap_lockname)?;
            }
        }
        Ok(())
    }

    /// Reads a protocol in that form; `None` for one whose octets are unknown, after which none can be read.
    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<Option<Self>, CdrError> {
        let protocol_type = input.u32()?;
        let transport = match protocol_type {
            IIOP => {
                let (send_buffer_size, recv_buffer_size) = (input.i32()?.max(0), input.i32()?.max(0));
                let (keep_alive, dont_route, no_delay) = (input.bool()?, input.bool()?, input.bool()?);
                Some(TransportProperties::Tcp(TcpProtocolProperties {
                    send_buffer_size,
                    recv_buffer_size,
                    keep_alive,
                    dont_route,
                    no_delay,
                    enable_network_priority: false,
                }))
            }
            UNIX_DOMAIN => {
                let (send_buffer_size, recv_buffer_size) = (input.i32()?.max(0), input.i32()?.max(0));
                Some(TransportProperties::UnixDomain(UnixDomainProtocolProperties {
                    send_buffer_size,
                    recv_buffer_size,
                }))
            }
            SHARED_MEMORY => {
                let _of_tcp = (input.i32()?, input.i32()?, input.bool()?, input.bool()?, input.bool()?);
                Some(TransportProperties::SharedMemory(SharedMemoryProtocolProperties {
                    preallocate_buffer_size: input.i32()?.max(0),
                    mmap_filename: input.str()?.into_owned(),
                    mmap_lockname: input.str()?.into_owned(),
                }))
            }
            DATAGRAMS => None,
            _ => return Ok(None),
        };
        Ok(Some(Self { protocol_type, transport }))
    }

    /// Whether packets carry the priority of their request.
    pub(crate) fn has_network_priority(&self) -> bool {
        matches!(&self.transport, Some(TransportProperties::Tcp(tcp)) if tcp.enable_network_priority)
    }

    /// The settings of sockets with the properties of the transport, and otherwise those of the ORB.
    pub(crate) fn sockets(&self, mut of_orb: SocketSettings) -> SocketSettings {
        let size = |octets: i32| usize::try_from(octets).ok().filter(|octets| *octets > 0);
        let (send, recv) = match &self.transport {
            None => return of_orb,
            Some(TransportProperties::Tcp(tcp)) => {
                let tuning = of_orb.tuning.get_or_insert_default();
                (tuning.coalesces, tuning.bypasses_routes) = (!tcp.no_delay, tcp.dont_route);
                of_orb.keep_alive = match (tcp.keep_alive, of_orb.keep_alive) {
                    (false, _) => KeepAlive::Off,
                    (true, KeepAlive::Off) => KeepAlive::System,
                    (true, probes) => probes,
                };
                (tcp.send_buffer_size, tcp.recv_buffer_size)
            }
            Some(TransportProperties::UnixDomain(unix)) => (unix.send_buffer_size, unix.recv_buffer_size),
            Some(TransportProperties::SharedMemory(shared)) => {
                (shared.preallocate_buffer_size, shared.preallocate_buffer_size)
            }
        };
        of_orb.send_queue = size(send).or(of_orb.send_queue);
        of_orb.recv_queue = size(recv).or(of_orb.recv_queue);
        of_orb
    }
}

/// The schemes that each profile of a reference offers, in the order of a server's protocols. Clients try the cheapest
/// address of a profile first, so a profile has protocols of rising costs. Datagrams, which serve one-ways alone, are in all
/// profiles.
pub(crate) fn schemes_of_profiles(protocols: &[Protocol]) -> Vec<Vec<&'static str>> {
    let mut profiles: Vec<Vec<&'static str>> = Vec::new();
    let mut last = None;
    for protocol in protocols.iter().filter(|protocol| protocol.protocol_type != DATAGRAMS) {
        let cost = match protocol.protocol_type {
            SHARED_MEMORY => cost::SHARED_MEMORY,
            UNIX_DOMAIN => cost::SAME_HOST,
            _ => cost::NETWORK,
        };
        match profiles.last_mut().filter(|_| last < Some(cost)) {
            Some(profile) => profile.extend(protocol.schemes()),
            None => profiles.push(protocol.schemes().to_vec()),
        }
        last = Some(cost);
    }
    if let Some(datagrams) = protocols.iter().find(|protocol| protocol.protocol_type == DATAGRAMS) {
        profiles.iter_mut().for_each(|profile| profile.extend(datagrams.schemes()));
    }
    profiles
}

/// The socket options and buffer sizes of one transport.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TransportProperties {
    /// Options and buffer sizes of TCP sockets.
    Tcp(TcpProtocolProperties),
    /// Buffer sizes of UNIX-domain sockets.
    UnixDomain(UnixDomainProtocolProperties),
    /// Buffer size and other properties of shared memory.
    SharedMemory(SharedMemoryProtocolProperties),
}

/// Options and buffer sizes of TCP sockets (`RTCORBA::TCPProtocolProperties`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpProtocolProperties {
    send_buffer_size: i32,
    recv_buffer_size: i32,
    /// Whether idle connections are probed (`SO_KEEPALIVE`).
    pub keep_alive: bool,
    /// Whether packets bypass routing tables (`SO_DONTROUTE`).
    pub dont_route: bool,
    /// Whether small packets are sent at once (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Whether packets carry a DiffServ code point for the priority of their request.
    pub enable_network_priority: bool,
}

/// Properties of UNIX-domain sockets (`RTCORBA::UnixDomainProtocolProperties` of TAO). By default the system's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UnixDomainProtocolProperties {
    send_buffer_size: i32,
    recv_buffer_size: i32,
}

/// Properties of connections by shared memory (`RTCORBA::SharedMemoryProtocolProperties` of TAO). By default the ORB's.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SharedMemoryProtocolProperties {
    preallocate_buffer_size: i32,
    /// The file that is mapped; empty for one that the ORB chooses.
    pub mmap_filename: String,
    /// The name of its lock; empty for one that the ORB chooses.
    pub mmap_lockname: String,
}

fn octets(name: &'static str, octets: i32) -> Result<i32, SystemException> {
    if octets < 0 {
        return Err(SystemException::bad_param(0, CompletionStatus::No).with_detail(|| {
            format!("invalid {name} {octets}: expected a number of octets, or 0 for the system's own")
        }));
    }
    Ok(octets)
}

macro_rules! buffer_sizes {
    ($properties:ident) => {
        impl $properties {
            /// Octets of the socket's send buffer (`SO_SNDBUF`); zero for the system's own.
            #[must_use]
            pub fn send_buffer_size(&self) -> i32 {
                self.send_buffer_size
            }

            /// Octets of the socket's receive buffer (`SO_RCVBUF`); zero for the system's own.
            #[must_use]
            pub fn recv_buffer_size(&self) -> i32 {
                self.recv_buffer_size
            }

            /// Sets the sizes of the system's send and receive buffers, in octets.
            ///
            /// # Errors
            /// BAD_PARAM for a negative one.
            pub fn set_buffer_sizes(&mut self, send: i32, recv: i32) -> Result<(), SystemException> {
                let sizes = (octets("send_buffer_size", send)?, octets("recv_buffer_size", recv)?);
                (self.send_buffer_size, self.recv_buffer_size) = sizes;
                Ok(())
            }
        }
    };
}

buffer_sizes!(TcpProtocolProperties);
buffer_sizes!(UnixDomainProtocolProperties);

impl Default for TcpProtocolProperties {
    /// The system's buffers, keep-alive and no delay.
    fn default() -> Self {
        Self {
            send_buffer_size: 0,
            recv_buffer_size: 0,
            keep_alive: true,
            dont_route: false,
            no_delay: true,
            enable_network_priority: false,
        }
    }
}

impl UnixDomainProtocolProperties {
    /// Properties with these sizes, in octets; zero for the system's own.
    ///
    /// # Errors
    /// BAD_PARAM for a negative one.
    pub fn new(send_buffer_size: i32, recv_buffer_size: i32) -> Result<Self, SystemException> {
        let mut properties = Self { send_buffer_size: 0, recv_buffer_size: 0 };
        properties.set_buffer_sizes(send_buffer_size, recv_buffer_size)?;
        Ok(properties)
    }
}

impl SharedMemoryProtocolProperties {
    /// Properties with a buffer of this size in octets; zero for the ORB's own.
    ///
    /// # Errors
    /// BAD_PARAM for a negative size.
    pub fn new(
        preallocate_buffer_size: i32,
        mmap_filename: impl Into<String>,
        mmap_lockname: impl Into<String>,
    ) -> Result<Self, SystemException> {
        let preallocate_buffer_size = octets("preallocate_buffer_size", preallocate_buffer_size)?;
        Ok(Self { preallocate_buffer_size, mmap_filename: mmap_filename.into(), mmap_lockname: mmap_lockname.into() })
    }

    /// Octets of the buffer that a connection reserves.
    #[must_use]
    pub fn preallocate_buffer_size(&self) -> i32 {
        self.preallocate_buffer_size
    }
}
