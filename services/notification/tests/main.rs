//! Tests of the notification service, in one program.

mod channels;
mod executable;
mod filters;
mod foreign;
mod hostile;
mod killed;
mod omni_orb;
mod orders;
mod persistence;
mod qualities;
mod support;
mod typed;
