//! A shared library with services and a module: `dynamic Echo Service_Object * plugin_echo:make_echo() "7000"`.

// ANCHOR: echo
use std::io;
use std::sync::Mutex;

use spandrel_configurator::plugin::{ForeignMessage, ModuleObject, ModuleSide, NextTask, RefusedMessage};
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};
use spandrel_ipc::inet::{Addr, Inet};
use spandrel_reactor::{Acceptor, Family, Peer, Server, ServiceHandler};

spandrel_configurator::export_services!(
    make_echo => EchoService::default(),
    make_faulty => Faulty::default(),
    module make_capitals => Capitals,
);

/// A TCP service that sends octets back.
#[derive(Default)]
struct EchoService(Mutex<Option<Server<Inet>>>);

struct Echo;

impl<F: Family> ServiceHandler<F> for Echo {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut octets = [0; 4096];
        match peer.recv(&mut octets)? {
            0 => peer.close(),
            count => peer.put(&octets[..count])?,
        }
        Ok(())
    }
}

impl SharedObject for EchoService {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let port = arguments.first().map_or(Ok(0), |port| port.parse())?;
        let server = Acceptor::new(Inet::default(), || Echo).open(context.registry(), &Addr::loopback(port))?;
        tracing::info!(address = %server.addr(), "echo service of a library");
        *self.0.lock().unwrap() = Some(server);
        Ok(())
    }

    fn info(&self) -> String {
        self.0.lock().unwrap().as_ref().map(|server| format!("{}/tcp # echo", server.addr())).unwrap_or_default()
    }
}

impl ServiceObject for EchoService {}
// ANCHOR_END: echo

/// Fails or panics in the method that its argument names, such as `panic=fini`.
#[derive(Default)]
struct Faulty(Mutex<String>);

impl Faulty {
    fn method(&self, name: &str) -> ServiceResult {
        let argument = self.0.lock().unwrap().clone();
        if argument == format!("panic={name}") {
            panic!("the service panics in {name}");
        }
        if argument == format!("fail={name}") { Err("the service refuses".into()) } else { Ok(()) }
    }
}

impl SharedObject for Faulty {
    fn init(&self, _: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        *self.0.lock().unwrap() = arguments.join(" ");
        self.method("init")
    }

    fn fini(&self) -> ServiceResult {
        self.method("fini")
    }

    fn info(&self) -> String {
        _ = self.method("info");
        "a service with faults".to_owned()
    }
}

impl ServiceObject for Faulty {
    fn resume(&self) -> ServiceResult {
        self.method("resume")
    }
}

/// Makes capitals of messages on their way down; passes those on their way up on as they are.
struct Capitals;

impl SharedObject for Capitals {
    fn init(&self, _: &ServiceContext<'_>, _: &[String]) -> ServiceResult {
        Ok(())
    }

    fn info(&self) -> String {
        "makes capitals".to_owned()
    }
}

impl ModuleObject for Capitals {
    fn put(&self, side: ModuleSide, message: ForeignMessage, next: &dyn NextTask) -> Result<(), RefusedMessage> {
        if message.blocks().next().is_none_or(<[u8]>::is_empty) {
            return Err(RefusedMessage(message));
        }
        let message = match side {
            ModuleSide::Reader => message,
            ModuleSide::Writer => ForeignMessage::new(message.kind(), message.to_vec().to_ascii_uppercase()),
        };
        _ = next.put_next(message);
        Ok(())
    }
}
