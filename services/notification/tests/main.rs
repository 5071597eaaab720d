//! Tests of the notification service, in one program.

mod batches;
mod channels;
mod exceptions;
mod executable;
mod filters;
mod foreign;
mod hostile;
mod killed;
mod omni_orb;
mod orders;
mod persistence;
mod qualities;
mod sentences;
mod support;
mod typed;
