//! The network interfaces of this host.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// A network interface that has an address, for sending or for joining a multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    index: u32,
    addrs: Vec<IpAddr>,
    broadcasts: Vec<Ipv4Addr>,
}

impl Interface {
    /// All interfaces that have an address now. Interfaces and addresses may change later.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for found in if_addrs::get_if_addrs()? {
            let Some(index) = found.index else { continue };
            let at = all.iter().position(|known| known.index == index).unwrap_or_else(|| {
                all.push(Self { name: found.name.clone(), index, addrs: Vec::new(), broadcasts: Vec::new() });
                all.len() - 1
            });
            all[at].add(&found.addr);
        }
        Ok(all)
    }

    /// The interface of this name, such as `eth0`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none, or it has no address; others of the operating system.
    pub fn named(name: &str) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no interface `{name}` has an address"));
        Self::all()?.into_iter().find(|interface| interface.name == name).ok_or_else(missing)
    }

    /// The interface with this address.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none; others of the operating system.
    pub fn with_addr(addr: IpAddr) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no interface has the address {addr}"));
        Self::all()?.into_iter().find(|interface| interface.addrs.contains(&addr)).ok_or_else(missing)
    }

    /// The name that the system gave it, e.g. `eth0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number by which the system knows it, from 1; link-local IPv6 addresses name it as their scope.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its addresses, at least one.
    #[must_use]
    pub fn addrs(&self) -> &[IpAddr] {
        &self.addrs
    }

    /// Its first IPv4 address.
    #[must_use]
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.addrs.iter().find_map(|addr| match addr {
            IpAddr::V4(addr) => Some(*addr),
            IpAddr::V6(_) => None,
        })
    }

    /// Whether any of its addresses is one of the loopback, which reaches this host only.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.addrs.iter().any(IpAddr::is_loopback)
    }

    /// The broadcast addresses of its IPv4 networks (RFC 919), as it announces them. A loopback interface
    /// announces none; its own are computed from its networks. Empty for a point-to-point link.
    #[must_use]
    pub fn broadcast_addrs(&self) -> &[Ipv4Addr] {
        &self.broadcasts
    }

    fn add(&mut self, addr: &if_addrs::IfAddr) {
        self.addrs.push(addr.ip());
        let if_addrs::IfAddr::V4(v4) = addr else { return };
        let announced = v4.broadcast.filter(|_| !v4.is_loopback());
        let all_ones = || v4.is_loopback().then(|| v4.ip | !v4.netmask);
        let Some(broadcast) = announced.or_else(all_ones) else { return };
        if !self.broadcasts.contains(&broadcast) {
            self.broadcasts.push(broadcast);
        }
    }
}

/// The name of an interface, in options that are `Copy`.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    name: [u8; 16],
    len: usize,
}

#[cfg(target_os = "linux")]
impl Device {
    pub(super) fn new(interface: &Interface) -> Self {
        let mut name = [0; 16];
        let len = interface.name.len().min(name.len()); // IFNAMSIZ bounds the names of the system
        name[..len].copy_from_slice(&interface.name.as_bytes()[..len]);
        Self { name, len }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name[..self.len]
    }
}
