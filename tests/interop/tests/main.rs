//! The interoperability suite within one process, and the golden messages.

mod anything;
mod both_sides;
mod bridge;
mod callbacks;
mod cos_naming;
mod features;
mod golden;
mod names;
mod values;
mod valuetypes;
