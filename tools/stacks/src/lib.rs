//! Parallel protocol stacks: the experiment of paper 002, section 3.
//!
//! The protocols are written once: [`ip`], [`udp`], [`tcp`] and [`xdr`] are octets in and octets out, without sockets,
//! threads or clocks. Modules of `spandrel-stream` are made of them, which [`architecture`] arranges in both process
//! architectures over the pseudo-devices of [`device`]. [`mod@bench`] measures the receiving side, [`ttcp`] both sides,
//! [`smoltcp_peer`] another TCP, and `tap` (Linux) exchanges data with the kernel's. `relay` (Linux) is a network link with
//! delay, losses and another order.
#![forbid(unsafe_code)]

mod application;
pub mod architecture;
pub mod bench;
#[cfg(target_os = "linux")]
mod capture;
pub mod checksum;
pub mod command_line;
mod connections;
pub mod costs;
pub mod device;
mod dlp;
pub mod frame;
pub mod ip;
pub mod link;
pub mod measurement;
#[cfg(target_os = "linux")]
pub mod relay;
pub mod smoltcp_peer;
#[cfg(target_os = "linux")]
pub mod tap;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod timed;
mod transport;
pub mod ttcp;
pub mod udp;
pub mod xdr;

/// The reason for which received octets are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The octets end within a header.
    #[error("the packet ends within a header")]
    Truncated,
    /// A length does not fit the packet.
    #[error("a length does not fit the packet")]
    Length,
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// A version, protocol or fragment that this stack does not process.
    #[error("the packet is not supported")]
    Unsupported,
}
