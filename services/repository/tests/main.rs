//! Tests of the interface repository, by its references and by the client functions of the facade.

mod definitions;
mod discovery;
mod durability;
mod executable;
mod failures;
mod idl;
mod omniorb;
mod round_trip;
mod support;
mod wire;
