//! Options of TCP connections, each with a name and a type. Options of a single system exist only there.

use std::io;
use std::time::Duration;

use socket2::TcpKeepalive;

use super::{Stream, ip};
#[cfg(target_os = "linux")]
use crate::{
    Pollable,
    sys::dgram::{flag_option, names, set_option},
};

/// Timing of the probes to an idle peer, for [`Stream::set_keep_alive_probes`]. A value of `None` stays
/// unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// The idle time before the first probe (`TCP_KEEPIDLE`); whole seconds.
    pub idle: Option<Duration>,
    /// The time between two probes (`TCP_KEEPINTVL`); whole seconds.
    pub interval: Option<Duration>,
    /// The number of unanswered probes after which the connection is dropped (`TCP_KEEPCNT`). Without effect
    /// on Windows before version 1703 and under Wine, where the number is fixed (10).
    pub count: Option<u32>,
}

/// Options of every system.
impl Stream {
    /// Whether small messages are sent at once instead of being coalesced (`TCP_NODELAY`).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_no_delay(&self, on: bool) -> io::Result<()> {
        self.socket().set_tcp_nodelay(on)
    }

    /// See [`set_no_delay`](Self::set_no_delay).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn no_delay(&self) -> io::Result<bool> {
        self.socket().tcp_nodelay()
    }

    /// Whether the system probes an idle peer (`SO_KEEPALIVE`).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_keep_alive(&self, on: bool) -> io::Result<()> {
        self.socket().set_keepalive(on)
    }

    /// See [`set_keep_alive`](Self::set_keep_alive).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn keep_alive(&self) -> io::Result<bool> {
        self.socket().keepalive()
    }

    /// Sets the timing of the probes to an idle peer, and enables them.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_keep_alive_probes(&self, probes: &KeepAlive) -> io::Result<()> {
        let mut system = TcpKeepalive::new();
        if let Some(idle) = probes.idle {
            system = system.with_time(idle);
        }
        if let Some(interval) = probes.interval {
            system = system.with_interval(interval);
        }
        if let Some(count) = probes.count {
            system = system.with_retries(count);
        }
        let result = self.socket().set_tcp_keepalive(&system);
        #[cfg(windows)]
        if let Err(error) = &result
            && error.raw_os_error() == Some(WSAENOPROTOOPT)
        {
            return Ok(()); // the count is set last
        }
        result
    }

    /// The time for which closing waits until queued octets are sent (`SO_LINGER`). `None`, the default, does
    /// not wait and sends them in the background; zero discards them and resets the connection.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_linger(&self, time: Option<Duration>) -> io::Result<()> {
        self.socket().set_linger(time)
    }

    /// See [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.socket().linger()
    }

    /// Whether urgent octets are received in the order of the stream (`SO_OOBINLINE`); see
    /// [`send_urgent`](Self::send_urgent). Default false.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_urgent_inline(&self, on: bool) -> io::Result<()> {
        self.socket().set_out_of_band_inline(on)
    }

    /// See [`set_urgent_inline`](Self::set_urgent_inline).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn urgent_inline(&self) -> io::Result<bool> {
        self.socket().out_of_band_inline()
    }

    /// The hop limit of packets (`IP_TTL`, `IPV6_UNICAST_HOPS`), 1 to 255.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_ttl(&self, hops: u32) -> io::Result<()> {
        ip::set_ttl(self.socket(), hops)
    }

    /// See [`set_ttl`](Self::set_ttl).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn ttl(&self) -> io::Result<u32> {
        ip::ttl(self.socket())
    }
}

/// The system does not know the option.
#[cfg(windows)]
const WSAENOPROTOOPT: i32 = 10_042;

/// Options of Unix systems.
#[cfg(unix)]
impl Stream {
    /// The traffic class (`IP_TOS`, `IPV6_TCLASS`): six bits of DSCP (RFC 2474), and two of ECN, which TCP
    /// controls.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_tos(&self, class: u8) -> io::Result<()> {
        ip::set_tos(self.socket(), class)
    }

    /// See [`set_tos`](Self::set_tos).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn tos(&self) -> io::Result<u8> {
        ip::tos(self.socket())
    }

    /// The maximum segment size in octets (`TCP_MAXSEG`); an upper bound of the size that the two sides
    /// negotiate.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_max_segment(&self, octets: u32) -> io::Result<()> {
        self.socket().set_tcp_mss(octets)
    }

    /// See [`set_max_segment`](Self::set_max_segment).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn max_segment(&self) -> io::Result<u32> {
        self.socket().tcp_mss()
    }
}

/// Options of Linux (tcp(7), socket(7)).
#[cfg(target_os = "linux")]
impl Stream {
    /// See [`set_keep_alive_probes`](Self::set_keep_alive_probes).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn keep_alive_probes(&self) -> io::Result<KeepAlive> {
        Ok(KeepAlive {
            idle: Some(self.socket().tcp_keepalive_time()?),
            interval: Some(self.socket().tcp_keepalive_interval()?),
            count: Some(self.socket().tcp_keepalive_retries()?),
        })
    }

    /// Whether only full segments are sent until this is turned off or 200 ms have passed (`TCP_CORK`).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_cork(&self, on: bool) -> io::Result<()> {
        self.socket().set_tcp_cork(on)
    }

    /// See [`set_cork`](Self::set_cork).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn cork(&self) -> io::Result<bool> {
        self.socket().tcp_cork()
    }

    /// Whether acknowledgements are sent at once (`TCP_QUICKACK`). The system may change it again at any
    /// time.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_quick_ack(&self, on: bool) -> io::Result<()> {
        self.socket().set_tcp_quickack(on)
    }

    /// See [`set_quick_ack`](Self::set_quick_ack).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn quick_ack(&self) -> io::Result<bool> {
        self.socket().tcp_quickack()
    }

    /// The time after which the connection is dropped if sent octets stay unacknowledged (`TCP_USER_TIMEOUT`,
    /// RFC 5482); in milliseconds. `None` is the system's default.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket().set_tcp_user_timeout(timeout)
    }

    /// See [`set_user_timeout`](Self::set_user_timeout).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn user_timeout(&self) -> io::Result<Option<Duration>> {
        self.socket().tcp_user_timeout()
    }

    /// The number of unsent octets in the queue above which the stream is not ready for output
    /// (`TCP_NOTSENT_LOWAT`).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_unsent_low_water(&self, octets: u32) -> io::Result<()> {
        self.socket().set_tcp_notsent_lowat(octets)
    }

    /// See [`set_unsent_low_water`](Self::set_unsent_low_water).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn unsent_low_water(&self) -> io::Result<u32> {
        self.socket().tcp_notsent_lowat()
    }

    /// The congestion control algorithm (`TCP_CONGESTION`), such as `cubic` or `reno`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when the system lacks it; others of the operating system.
    pub fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        self.socket().set_tcp_congestion(name.as_bytes())
    }

    /// See [`set_congestion_control`](Self::set_congestion_control).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn congestion_control(&self) -> io::Result<String> {
        let name = self.socket().tcp_congestion()?;
        let end = name.iter().position(|octet| *octet == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// The priority of its packets in this host's queues (`SO_PRIORITY`), 0 to 6 without privileges. Setting
    /// the traffic class sets it too.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_priority(&self, priority: u32) -> io::Result<()> {
        self.socket().set_priority(priority)
    }

    /// See [`set_priority`](Self::set_priority).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn priority(&self) -> io::Result<u32> {
        self.socket().priority()
    }

    /// The mark of its packets for this host's routing and filters (`SO_MARK`).
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without the capability `CAP_NET_ADMIN` (or `CAP_NET_RAW`).
    pub fn set_mark(&self, mark: u32) -> io::Result<()> {
        self.socket().set_mark(mark)
    }

    /// See [`set_mark`](Self::set_mark).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn mark(&self) -> io::Result<u32> {
        self.socket().mark()
    }

    /// Restricts the connection to one interface (`SO_BINDTODEVICE`), or removes the restriction. To restrict
    /// the first packet too, use [`Connector::device`](super::Connector::device).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_device(&self, interface: Option<&super::Interface>) -> io::Result<()> {
        self.socket().bind_device(interface.map(|interface| interface.name().as_bytes()))
    }

    /// The name of the interface to which it is restricted, if any.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn device(&self) -> io::Result<Option<String>> {
        Ok(self.socket().device()?.map(|name| {
            let end = name.iter().position(|octet| *octet == 0).unwrap_or(name.len());
            String::from_utf8_lossy(&name[..end]).into_owned()
        }))
    }

    /// The processor on which its packets were last handled (`SO_INCOMING_CPU`).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn incoming_cpu(&self) -> io::Result<usize> {
        self.socket().cpu_affinity()
    }

    /// The time for which a receive call polls the network device before it sleeps (`SO_BUSY_POLL`); in
    /// microseconds. Zero disables polling.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] for a longer time without the capability `CAP_NET_ADMIN`.
    pub fn set_busy_poll(&self, time: Duration) -> io::Result<()> {
        let invalid = |_| io::Error::new(io::ErrorKind::InvalidInput, "the busy poll time is too long");
        self.socket().set_busy_poll(u32::try_from(time.as_micros()).map_err(invalid)?)
    }

    /// See [`set_busy_poll`](Self::set_busy_poll).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn busy_poll(&self) -> io::Result<Duration> {
        self.socket().busy_poll().map(|micros| Duration::from_micros(micros.into()))
    }
    /// Whether packets bypass the routing tables, and reach hosts of connected networks alone (`SO_DONTROUTE`).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_dont_route(&self, on: bool) -> io::Result<()> {
        set_option(self.handle(), names::SOL_SOCKET, names::SO_DONTROUTE, &i32::from(on).to_ne_bytes())
    }

    /// See [`set_dont_route`](Self::set_dont_route).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn dont_route(&self) -> io::Result<bool> {
        flag_option(self.handle(), names::SOL_SOCKET, names::SO_DONTROUTE)
    }
}
