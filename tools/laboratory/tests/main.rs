//! Tests of the laboratory.
#![cfg(target_os = "linux")]

mod comparing;
mod inventory;
mod report;
mod running;
mod support;
