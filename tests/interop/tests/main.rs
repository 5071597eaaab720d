//! What interoperation is made of: golden messages, bridges, callbacks.

mod anything;
mod both_sides;
mod bridge;
mod callbacks;
mod features;
mod golden;
mod names;
mod valuetypes;
