//! The options of all UDP endpoints: a macro over types with a field `socket` and a method `local_addr`.

/// Options of the Internet protocol.
macro_rules! ip_options {
    ($type:ty) => {
        /// Options of the Internet protocol.
        impl $type {
            /// The hop limit of a datagram (`IP_TTL`, `IPV6_UNICAST_HOPS`), 1 to 255. Multicast datagrams
            /// have their own limit.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_ttl(&self, hops: u32) -> io::Result<()> {
                if self.is_v6()? {
                    self.socket.socket().set_unicast_hops_v6(hops)
                } else {
                    self.socket.socket().set_ttl_v4(hops)
                }
            }

            /// See [`set_ttl`](Self::set_ttl).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn ttl(&self) -> io::Result<u32> {
                if self.is_v6()? { self.socket.socket().unicast_hops_v6() } else { self.socket.socket().ttl_v4() }
            }

            /// The traffic class (`IP_TOS`, `IPV6_TCLASS`): six bits of DSCP (RFC 2474), two of ECN.
            ///
            /// # Errors
            /// Any error of the operating system.
            #[cfg(unix)]
            pub fn set_tos(&self, class: u8) -> io::Result<()> {
                if self.is_v6()? {
                    self.socket.socket().set_tclass_v6(class.into())
                } else {
                    self.socket.socket().set_tos_v4(class.into())
                }
            }

            /// See [`set_tos`](Self::set_tos).
            ///
            /// # Errors
            /// Any error of the operating system.
            #[cfg(unix)]
            pub fn tos(&self) -> io::Result<u8> {
                let class =
                    if self.is_v6()? { self.socket.socket().tclass_v6() } else { self.socket.socket().tos_v4() };
                Ok(class? as u8)
            }

            /// Whether datagrams are never fragmented (`IP_MTU_DISCOVER`): one longer than the path's MTU is
            /// then [`SendError::TooLong`], or lost where the MTU was not known yet.
            ///
            /// # Errors
            /// Any error of the operating system.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            pub fn set_dont_fragment(&self, on: bool) -> io::Result<()> {
                use rustix::net::sockopt::{Ipv4PathMtuDiscovery as V4, Ipv6PathMtuDiscovery as V6};
                let socket = self.socket.socket();
                if self.is_v6()? {
                    let mode = if on { V6::DO } else { V6::DONT };
                    rustix::net::sockopt::set_ipv6_mtu_discover(socket, mode)?;
                } else {
                    let mode = if on { V4::DO } else { V4::DONT };
                    rustix::net::sockopt::set_ip_mtu_discover(socket, mode)?;
                }
                Ok(())
            }

            /// See [`set_dont_fragment`](Self::set_dont_fragment).
            ///
            /// # Errors
            /// Any error of the operating system.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            pub fn dont_fragment(&self) -> io::Result<bool> {
                use rustix::net::sockopt::{Ipv4PathMtuDiscovery as V4, Ipv6PathMtuDiscovery as V6};
                let socket = self.socket.socket();
                Ok(if self.is_v6()? {
                    rustix::net::sockopt::ipv6_mtu_discover(socket)? == V6::DO
                } else {
                    rustix::net::sockopt::ip_mtu_discover(socket)? == V4::DO
                })
            }

            /// Restricts sending and receiving to one interface (`SO_BINDTODEVICE`), or removes the
            /// restriction.
            ///
            /// # Errors
            /// Any error of the operating system, such as [`io::ErrorKind::PermissionDenied`] for changing it
            /// once set.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            pub fn set_device(&self, interface: Option<&super::Interface>) -> io::Result<()> {
                self.socket.socket().bind_device(interface.map(|interface| interface.name().as_bytes()))
            }

            fn is_v6(&self) -> io::Result<bool> {
                Ok(self.local_addr()?.ip().is_ipv6())
            }
        }
    };
}

pub(super) use ip_options;
