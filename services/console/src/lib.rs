//! A web console of a process with CORBA services: the names, the objects behind them with their interfaces, channels of
//! events, servers of the activator, the load of the process, and logs.
//!
//! [`Console`] is an HTTP server. Each request for data needs a token; pages of other origins, and requests for other hosts,
//! are refused. The policy of the process decides about everything that the console reads and calls, for the
//! identity `token:NAME`.
//!
//! | module | content |
//! | --- | --- |
//! | `assets` | the page, its style and its scripts, which need no token |
//! | `access` | decisions of the policy, and the limit of operations at a time |
//! | `names` | the contexts of the naming service |
//! | `objects` | interfaces of objects, and calls |
//! | `channels` | channels of event and notification services, their consumers, and live events |
//! | `images` | images of an image store, and their pixels |
//! | `servers` | servers of the activator and their output |
//! | `load` | numbers of the process's ORB |
#![forbid(unsafe_code)]

mod access;
mod assets;
mod channels;
mod images;
mod load;
mod names;
mod objects;
mod offers;
mod server;
mod servers;

pub use load::load_numbers;
pub use server::{Console, ConsoleOptions, PORT, Services};
