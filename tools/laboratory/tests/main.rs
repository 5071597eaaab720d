//! Tests of the laboratory.
#![cfg(target_os = "linux")]

mod chapter;
mod comparing;
mod events;
mod imaging;
mod inventory;
mod media;
mod profiles;
mod report;
mod running;
mod support;
