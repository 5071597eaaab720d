//! Tests of the state machine with a virtual clock.

mod buffers;
mod events;
mod simulation;

use super::*;
