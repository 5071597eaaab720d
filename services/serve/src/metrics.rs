//! The numbers of all services of the process, for Prometheus: `http://HOST:PORT/metrics`.

use std::net::SocketAddr;

use clap::Parser;
use spandrel::net::sync::Mutex;
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};
use spandrel_metrics::Endpoint;

use crate::administered::Administered;
use crate::arguments::parse;

/// The port of the endpoint.
const PORT: u16 = 9464;

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Args {
    /// The port on the loopback interface [default: 9464]
    #[arg(short = 'p', value_name = "PORT", conflicts_with = "address")]
    port: Option<u16>,
    /// The address, for other interfaces: every client that reaches it can read the numbers
    #[arg(short = 'a', value_name = "ADDRESS:PORT")]
    address: Option<SocketAddr>,
}

/// The endpoint of the process's metrics, with the paths `/metrics` and `/healthz`.
#[derive(Debug)]
pub struct Metrics {
    administered: Administered,
    endpoint: Mutex<Option<Endpoint>>,
}

impl Metrics {
    /// A service that shows the metrics of all services of the configurator, once that is set.
    #[must_use]
    pub fn new(administered: Administered) -> Self {
        Self { administered, endpoint: Mutex::new(None) }
    }
}

impl SharedObject for Metrics {
    fn init(&self, _: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: Args = parse(arguments)?;
        let address = args.address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], args.port.unwrap_or(PORT))));
        let administered = self.administered.clone();
        let render = move || administered.get().map(|of| of.repository().render_metrics()).unwrap_or_default();
        let endpoint =
            Endpoint::open(address, render).map_err(|error| format!("cannot listen at {address}: {error}"))?;
        *self.endpoint.lock() = Some(endpoint);
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        // Not with the lock held: `info` is called by others.
        let endpoint = self.endpoint.lock().take();
        drop(endpoint);
        Ok(())
    }

    fn info(&self) -> String {
        match &*self.endpoint.lock() {
            Some(endpoint) => format!("http://{}/metrics # metrics", endpoint.addr()),
            None => "metrics # not linked".to_owned(),
        }
    }
}

impl ServiceObject for Metrics {}
