//! Tests of the event service, in one program.

mod channels;
mod executable;
mod factory;
mod omni_events;
mod slow;
mod support;
mod typed;
