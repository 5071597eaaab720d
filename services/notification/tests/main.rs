//! Tests of the notification service, in one program.

mod channels;
mod executable;
mod filters;
mod hostile;
mod omni_orb;
mod qualities;
mod support;
