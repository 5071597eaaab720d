//! Servers attacked by clients, and clients attacked by servers.

mod clients;
mod servers;
mod transports;
