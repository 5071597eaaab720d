//! Tests of the property service, by sentences of its specification, over its references and in its process.

mod authorization;
mod concurrency;
mod durability;
mod embedding;
mod executable;
mod factories;
mod hostile;
mod iterators;
mod limits;
mod omniorb;
mod sets;
mod support;
