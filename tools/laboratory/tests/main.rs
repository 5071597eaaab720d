//! Tests of the laboratory.

mod comparing;
mod inventory;
mod report;
mod running;
mod support;
