//! Tests of the trading service, by sentences of its specification, over its references and in its process.

mod admin;
mod durability;
mod executable;
mod lookup;
mod register;
mod support;
mod types;
