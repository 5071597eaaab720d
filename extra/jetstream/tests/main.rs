//! Event channels over JetStream: the death of servers and of nodes of the broker, brokers that are away, and the operations of
//! channels.

mod broker;
mod channels;
mod deaths;
mod peers;
