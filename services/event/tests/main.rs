//! Tests of the event service, in one program.

mod channels;
mod factory;
mod slow;
mod support;
