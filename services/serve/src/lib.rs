//! Stock services for `svc.conf` files, and the parts of the executable `spandrel-serve` that runs such files.
//!
//! | service | is |
//! | --- | --- |
//! | `Echo`, `Discard`, `Daytime`, `Time`, `Chargen` | the small services of RFC 862 to 868 |
//! | `Logging` | takes structured records from many processes ([`Logging`]) |
//! | `HttpServer`, `Transfer` | files over HTTP, and the service of paper 004, in any server architecture ([`ArchitectureService`]) |
//! | `Gateway` | forwards connections by rules ([`Gateway`]) |
//! | `Metrics` | the numbers of all services for Prometheus ([`Metrics`]) |
//! | `Administration` | the services of the process, by commands and as a CORBA object ([`Administration`]) |
//! | `ORB`, `Naming` | an ORB with its options, the naming service on it ([`OrbService`], [`NamingObject`]) |
//! | `Server_Strategy_Factory` and others | options of TAO's factories, for ORBs after them ([`StrategyFactory`]) |
//!
//! Each is a short example of a service. [`catalogue`] has all of them.
#![forbid(unsafe_code)]

mod administered;
mod administration;
mod architecture_service;
mod arguments;
mod chargen;
mod datagrams;
mod daytime;
mod discard;
mod echo;
mod gateway;
mod handover;
mod http_request;
mod idle_limit;
mod log_forwarder;
mod logging;
mod metrics;
mod numbers;
mod orb_service;
pub mod remote;
mod small_service;
mod tao_factories;
mod time;

pub use administered::{Administered, CommandError};
pub use administration::Administration;
pub use architecture_service::ArchitectureService;
pub use gateway::Gateway;
use handover::Handover;
pub use log_forwarder::LogForwarder;
pub use logging::{Logging, MAX_RECORD, PORT as LOGGING_PORT};
pub use metrics::Metrics;
pub use orb_service::{NamingObject, OrbService};
use spandrel::net::sync::Arc;
use spandrel_configurator::Catalogue;
pub use tao_factories::StrategyFactory;

/// The stock services, for a program's own catalogue to be added to.
#[must_use]
pub fn catalogue(administered: &Administered) -> Catalogue {
    let (administered, measured) = (administered.clone(), administered.clone());
    let (http, transfer) = (Arc::<Handover>::default(), Arc::<Handover>::default());
    let mut catalogue = Catalogue::new()
        .service("Administration", move || Administration::new(administered.clone()))
        .service("Chargen", chargen::service)
        .service("Daytime", daytime::service)
        .service("Discard", discard::service)
        .service("Echo", echo::service)
        .service("Gateway", Gateway::default)
        .service("HttpServer", move || ArchitectureService::http(Arc::clone(&http)))
        .service("Logging", Logging::default)
        .service("Metrics", move || Metrics::new(measured.clone()))
        .service("Naming", NamingObject::default)
        .service("ORB", OrbService::default)
        .service("Time", time::service)
        .service("Transfer", move || ArchitectureService::transfer(Arc::clone(&transfer)))
        .factory("make_administration", "Administration")
        .factory("make_chargen", "Chargen")
        .factory("make_daytime", "Daytime")
        .factory("make_discard", "Discard")
        .factory("make_echo", "Echo")
        .factory("make_gateway", "Gateway")
        .factory("make_http_server", "HttpServer")
        .factory("make_logging", "Logging")
        .factory("make_metrics", "Metrics")
        .factory("make_naming", "Naming")
        .factory("make_orb", "ORB")
        .factory("make_time", "Time")
        .factory("make_transfer", "Transfer");
    for (name, functions) in tao_factories::FACTORIES {
        catalogue = catalogue.service(name, StrategyFactory::default);
        for function in functions {
            catalogue = catalogue.factory_of_any_library(function, name);
        }
    }
    catalogue
}
