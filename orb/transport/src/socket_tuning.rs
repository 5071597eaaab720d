//! Options of TCP sockets that few programs set.

use std::{any::Any, io, time::Duration};

use spandrel_ipc::inet;

use crate::ReactorTransport;

/// Options of TCP sockets that few programs set; a program that sets none does not contain them. All but the first have
/// an effect on Linux alone.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SocketTuning {
    /// Whether TCP delays small messages to send several in one packet, in place of `TCP_NODELAY`.
    pub coalesces: bool,
    /// The traffic class of packets (`IP_TOS`, `IPV6_TCLASS`): six bits of DSCP, and two of ECN. It is set when the
    /// connection is open, so the packets that open it have the system's.
    pub traffic_class: Option<u8>,
    /// The priority of packets in this host's queues (`SO_PRIORITY`): 0 to 6 without privileges.
    pub priority: Option<u32>,
    /// The time for which a read polls the network card before it sleeps (`SO_BUSY_POLL`).
    pub busy_poll: Option<Duration>,
    /// Whether packets bypass the routing tables (`SO_DONTROUTE`): peers are in connected networks alone.
    pub bypasses_routes: bool,
    apply: fn(&Self, &inet::Stream) -> io::Result<()>,
}

impl Default for SocketTuning {
    /// The system's own settings.
    fn default() -> Self {
        Self {
            coalesces: false,
            traffic_class: None,
            priority: None,
            busy_poll: None,
            bypasses_routes: false,
            apply: Self::set,
        }
    }
}

impl SocketTuning {
    /// Sets the options on a connected stream.
    ///
    /// # Errors
    /// The errors of the system. Options that need a privilege are left as they are without it, which is logged once.
    pub fn apply(&self, stream: &inet::Stream) -> io::Result<()> {
        (self.apply)(self, stream)
    }

    #[cfg(target_os = "linux")]
    fn set(&self, stream: &inet::Stream) -> io::Result<()> {
        let set = |name: &str, result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                static LOGGED: std::sync::Once = std::sync::Once::new();
                LOGGED.call_once(
                    || tracing::warn!(%error, "{name} is not permitted, and stays as it is (CAP_NET_ADMIN)"),
                );
                Ok(())
            }
            result => result,
        };
        if self.coalesces {
            stream.set_no_delay(false)?;
        }
        // Before the priority, which it changes as well.
        if let Some(class) = self.traffic_class {
            stream.set_tos(class)?;
        }
        if let Some(priority) = self.priority {
            set("SO_PRIORITY", stream.set_priority(priority))?;
        }
        if let Some(time) = self.busy_poll {
            set("SO_BUSY_POLL", stream.set_busy_poll(time))?;
        }
        if self.bypasses_routes {
            stream.set_dont_route(true)?;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn set(&self, stream: &inet::Stream) -> io::Result<()> {
        if self.coalesces { stream.set_no_delay(false) } else { Ok(()) }
    }
}

/// The priority of the packets that a connection sends from now on, in the network and in this host.
///
/// As with [`SocketTuning`], a program that creates none does not contain the setting of options.
#[derive(Clone, Copy, Debug)]
pub struct PacketPriority {
    traffic_class: u8,
    socket: Option<u32>,
    apply: fn(Self, &dyn ReactorTransport),
}

impl PacketPriority {
    /// A traffic class (`IP_TOS`: six bits of DSCP, and two of ECN), and a priority in this host's queues (`SO_PRIORITY`);
    /// `None` for the one that the system derives from the class.
    #[must_use]
    pub fn new(traffic_class: u8, socket: Option<u32>) -> Self {
        Self { traffic_class, socket, apply: Self::set }
    }

    /// Sets the options of a TCP connection; others have none. A failure leaves the present priority, and is logged.
    pub fn apply(self, transport: &dyn ReactorTransport) {
        (self.apply)(self, transport);
    }

    fn set(self, transport: &dyn ReactorTransport) {
        let transport: &dyn Any = transport;
        let Some(stream) = transport.downcast_ref::<inet::Stream>() else { return };
        let tuning =
            SocketTuning { traffic_class: Some(self.traffic_class), priority: self.socket, ..SocketTuning::default() };
        if let Err(error) = tuning.apply(stream) {
            tracing::debug!(%error, "packets keep the priority that their connection has");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::{Address, SocketSettings, connect_inet};

    #[test]
    fn the_socket_options_of_a_connection_are_set() {
        let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
        let address = Address::at_port("iiop", "127.0.0.1", acceptor.local_addr().unwrap().port());
        let mut settings = SocketSettings::default();
        let plain = connect_inet(&address, None, &settings).unwrap();
        let options = |stream: &inet::Stream| {
            (stream.no_delay().unwrap(), stream.tos().unwrap(), stream.priority().unwrap(), stream.busy_poll().unwrap())
        };
        assert_eq!(options(&plain), (true, 0, 0, Duration::ZERO));
        assert!(!plain.dont_route().unwrap());
        let tuning =
            SocketTuning { priority: Some(5), busy_poll: Some(Duration::from_micros(50)), ..Default::default() };
        settings.tuning =
            Some(SocketTuning { coalesces: true, traffic_class: Some(0xb8), bypasses_routes: true, ..tuning });
        let stream = connect_inet(&address, None, &settings).unwrap();
        assert!(stream.dont_route().unwrap());
        let tuned = options(&stream);
        // SO_BUSY_POLL needs CAP_NET_ADMIN.
        let is_permitted = plain.set_busy_poll(Duration::from_micros(40)).is_ok();
        let expected = if is_permitted { Duration::from_micros(50) } else { Duration::ZERO };
        assert_eq!(tuned.3, expected, "{tuned:?}");
        assert_eq!((tuned.0, tuned.1, tuned.2), (false, 0xb8, 5));
    }
}
