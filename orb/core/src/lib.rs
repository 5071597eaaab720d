//! The ORB core: transports, connections, references and invocation.
