//! Servers and clients under attack.

mod clients;
mod servers;
