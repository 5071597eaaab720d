//! Tests of the trading service, by sentences of its specification, over its references and in its process.

mod admin;
mod authorization;
mod durability;
mod dynamic;
mod executable;
mod federation;
mod hostile;
mod limits;
mod linked;
mod lookup;
mod omniorb;
mod proxies;
mod register;
mod subtypes;
mod support;
mod types;
