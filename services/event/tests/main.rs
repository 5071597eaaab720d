//! Tests of the event service, in one program.

mod channels;
mod executable;
mod factory;
mod foreign;
mod omni_events;
mod sentences;
mod slow;
mod support;
mod typed;
