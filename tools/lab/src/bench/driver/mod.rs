//! The common part of experiments that load a server over plain sockets: the messages, the load, and the
//! programs of other projects' servers.

pub(super) mod exchange;
pub(super) mod load;
pub(super) mod peers;
