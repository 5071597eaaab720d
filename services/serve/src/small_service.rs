//! The common part of the small services of RFC 862 to 868: a TCP port, and with `-u` the UDP port of the same number.

use std::time::Duration;

use clap::Parser;
use spandrel::net::ipc::Interest;
use spandrel::net::ipc::inet::{Dgram, Inet};
use spandrel::net::reactor::strategy::AtMost;
use spandrel::net::reactor::{Acceptor, Server, ServiceHandler};
use spandrel::net::sync::Mutex;
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

use crate::arguments::{ListenArgs, parse};
use crate::datagrams::{Answer, Datagrams};
use crate::idle_limit::IdleLimit;
use crate::numbers::connections;

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Args {
    #[command(flatten)]
    listen: ListenArgs,
    /// Answer datagrams (UDP) at the same port
    #[arg(short = 'u')]
    datagrams: bool,
}

/// A service of one protocol.
pub(crate) struct SmallService<M> {
    name: &'static str,
    port: u16,
    make: M,
    /// `None`: the protocol is not offered for datagrams.
    answer: Option<Answer>,
    server: Mutex<Option<Server<Inet>>>,
    has_datagrams: Mutex<bool>,
}

impl<M> SmallService<M> {
    pub(crate) fn new(name: &'static str, port: u16, make: M, answer: Option<Answer>) -> Self {
        Self { name, port, make, answer, server: Mutex::new(None), has_datagrams: Mutex::new(false) }
    }
}

impl<H, M> SharedObject for SmallService<M>
where
    H: ServiceHandler<Inet>,
    M: Fn() -> H + Clone + Send + Sync + 'static,
{
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: Args = parse(arguments)?;
        let (make, idle) = (self.make.clone(), Duration::from_secs(args.listen.idle));
        let address = args.listen.address(self.port);
        let server = Acceptor::new(Inet::default(), move || IdleLimit::new(make(), idle))
            .acceptance(AtMost(args.listen.most))
            .open(context.registry(), &address)
            .map_err(|error| format!("cannot listen at {address}: {error}"))?;
        if args.datagrams {
            let answer = self.answer.ok_or_else(|| format!("the {} service answers no datagrams", self.name))?;
            let address = server.addr();
            let socket = Dgram::open(address).map_err(|error| format!("cannot open {address}/udp: {error}"))?;
            context.registry().register(Datagrams::new(socket, answer), Interest::INPUT)?;
            *self.has_datagrams.lock() = true;
        }
        *self.server.lock() = Some(server);
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        if let Some(server) = self.server.lock().take() {
            // Without a wait: clients that stay have sent what they had to send.
            let cut = server.drain(Duration::ZERO);
            tracing::debug!(service = self.name, cut, "connections were closed");
        }
        Ok(())
    }

    fn metrics(&self) -> String {
        connections(self.server.lock().as_ref().map_or(0, Server::connections))
    }

    fn info(&self) -> String {
        let server = self.server.lock();
        let Some(server) = &*server else { return format!("{} # not linked", self.name) };
        let kinds = if *self.has_datagrams.lock() { "tcp,udp" } else { "tcp" };
        format!("{}/{kinds} # {}, {} connections", server.addr(), self.name, server.connections())
    }
}

impl<H, M> ServiceObject for SmallService<M>
where
    H: ServiceHandler<Inet>,
    M: Fn() -> H + Clone + Send + Sync + 'static,
{
}
