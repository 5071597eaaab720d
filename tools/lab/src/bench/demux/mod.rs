//! The demultiplexing experiment: the cost of finding the object and the operation of a request, by strategy,
//! by number of objects and operations, and by the order of requests (paper 001, chapter 6).
//!
//! Lookups are timed alone, in one thread, without messages: the adapters' own lookup from an object key to a
//! servant ([`spandrel::poa::measured_lookup`]) and the table of operations of skeletons. The cost of the loop around
//! a lookup is measured, too, and subtracted. Each lookup depends on the one before, as in a server that
//! reads one request after the other. Whole calls are also made, with adaptive demultiplexing and request
//! caching on and off, and whole requests by each strategy ([`WholeRequests`]).

mod calls;
mod lookup;
mod plot;
pub mod report;
mod requests;
mod results;
mod series;
mod settings;
mod whole_requests;

pub use calls::{CallPredictions, CallRow, MeasuredCall};
pub use lookup::Cost;
pub use requests::Algorithm;
pub use results::{Measurement, Results, Row};
pub use series::run;
pub use settings::{Settings, Strategy};
pub use whole_requests::{RequestTimes, WholeRequests};
