//! Ports for programs that must be told one.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems assign to sockets without a port of their own: 32,768 on Linux, 49,152 on Windows.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A TCP port of the loopback interface at which nothing listens. No system assigns it to another socket, as it may do
/// with the port of a listener on port 0 once that is closed. This process gets it once.
///
/// # Panics
/// If all ports are in use.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Processes that run at the same time begin at different ports.
    let start = (std::process::id() % u32::from(count)) as u16 / 100 * 100;
    for _ in 0..count {
        let port = PORTS.start + (start + NEXT.fetch_add(1, Ordering::Relaxed) % count) % count;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port in {PORTS:?}");
}

#[test]
fn free_ports_differ_and_can_be_bound() {
    let ports: std::collections::HashSet<u16> = (0..20).map(|_| free_port()).collect();
    assert_eq!(ports.len(), 20);
    for port in ports {
        assert!(PORTS.contains(&port));
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
