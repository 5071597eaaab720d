//! The common part of experiments that load a server over plain sockets: the messages, the load, and
//! the processes of servers.
//!
//! A server is a process that prints one line: its port if it speaks plain messages, or the reference of its
//! object if it speaks GIOP. It ends when its standard input ends. A server that counts its calls answers each
//! line of its input with their number so far.

pub(super) mod client;
pub(super) mod exchange;
pub(super) mod load;
pub(super) mod orb;
pub(super) mod pipeline;
pub(super) mod server;
