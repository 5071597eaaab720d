//! Timer queues as strategies.
