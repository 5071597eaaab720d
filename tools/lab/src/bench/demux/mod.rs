//! The demultiplexing experiment: what it costs to find the object and the operation of a request, by strategy, by how many of either
//! there are, and by the order in which they are asked for (paper 001, chapter 6).
//!
//! Lookups are timed alone, in one thread, without messages: the adapters' own way from an object key to a servant
//! ([`spandrel::poa::lookup`]) and the table of operations that skeletons have. What the loop around a lookup costs is measured, too, and taken off; each lookup waits for the one before,
//! as in a server that reads one request after the other. Whole calls are made besides, with adaptive demultiplexing and request caching on and off.

mod calls;
mod lookup;
mod plot;
pub mod report;
mod requests;
mod results;
mod series;
mod settings;

pub use calls::{CallRow, Calling, MeasuredCall};
pub use lookup::Cost;
pub use requests::Algorithm;
pub use results::{Measured, Results, Row};
pub use series::run;
pub use settings::{Settings, Strategy};
