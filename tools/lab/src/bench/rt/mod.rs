//! The experiment with priorities: response times of a client of high priority, while others flood the server or keep
//! one of its threads busy.
//!
//! A server has two kinds of requests, short ones of high priority and long ones of low priority, and a third one that
//! computes for the whole run at a priority above both. The client of high priority begins a call in each period, by a
//! plain socket, at the time that was fixed before: a call that begins late counts from that time, and periods that
//! pass during a call count as missed deadlines. The others call again as soon as they have their reply. All clients
//! are threads of this program with native priorities; servers are processes. All servers get the same octets, so that
//! the difference is the server's.
//!
//! | load | others |
//! | --- | --- |
//! | alone | none |
//! | flood of N | N clients with long requests of low priority |
//! | spin | one client, whose request computes for the whole run at a priority above that of the measured client |
//! | nested | none; all calls go through an intermediary, a second server of the same kind that calls the first one |
//! | nested, flood of N | N clients with long requests of low priority, through the intermediary as well |
//! | foreign flood of N | N threads of an omniORB client with long requests that carry no priority |

mod clients;
pub mod report;
mod results;
mod series;
mod server;
mod settings;
mod steal;

pub use results::{Figures, Measurement, Results, Row};
pub use series::run;
pub(crate) use server::serve;
pub use settings::{Contender, Load, Settings, Sockets};
