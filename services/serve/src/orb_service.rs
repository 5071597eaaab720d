//! An ORB as a service, and the naming service on it.

use std::path::PathBuf;

use clap::Parser;
use spandrel::net::sync::Mutex;
use spandrel::poa::{PoaManager, State, WaitForCompletion};
use spandrel::{Orb, Poa};
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};
use spandrel_daemon::PolicyArgs;
use spandrel_naming::{NamingOptions, NamingService, ROOT_KEY};

use crate::arguments::parse;
use crate::tao_factories::{FACTORIES, StrategyFactory, orb_builder};

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Args {
    #[command(flatten)]
    policy: PolicyArgs,
}

/// An ORB with the options of its directive (`-ORB…`, `--policy`) and of the strategy factories before it.
///
/// It listens from its start on. While it is suspended, requests wait.
#[derive(Debug, Default)]
pub struct OrbService {
    orb: Mutex<Option<Orb>>,
    /// The managers of adapters that run again when the service does.
    held: Mutex<Vec<PoaManager>>,
}

impl OrbService {
    /// The ORB; `None` if the service is not linked.
    #[must_use]
    pub fn orb(&self) -> Option<Orb> {
        self.orb.lock().clone()
    }

    /// Makes all adapters hold requests.
    fn hold(&self, orb: &Orb) -> ServiceResult {
        for manager in Poa::root(orb)?.the_poa_manager_factory().list() {
            if manager.state() == State::Active {
                manager.hold_requests(WaitForCompletion::No)?;
                self.held.lock().push(manager);
            }
        }
        Ok(())
    }
}

impl SharedObject for OrbService {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let mut options = Vec::new();
        for (name, _) in FACTORIES {
            options.extend(context.find::<StrategyFactory>(name).iter().flat_map(|factory| factory.options()));
        }
        options.extend_from_slice(arguments);
        let mut builder = orb_builder().take_args(&mut options)?;
        let args: Args = parse(&options)?;
        let authorizer = args.policy.authorizer(None).map_err(|failure| failure.to_string())?;
        if let Some(authorizer) = &authorizer {
            builder = authorizer.install(builder)?;
        }
        let orb = builder.build()?;
        let root = Poa::root(&orb)?.the_poa_manager();
        root.hold_requests(WaitForCompletion::No)?;
        self.held.lock().push(root);
        *self.orb.lock() = Some(orb);
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        if let Some(orb) = self.orb.lock().take() {
            orb.destroy()?;
        }
        Ok(())
    }

    fn metrics(&self) -> String {
        self.orb().map(|orb| orb.render_metrics()).unwrap_or_default()
    }

    fn info(&self) -> String {
        let Some(orb) = self.orb() else { return "ORB # not linked".to_owned() };
        let addresses = orb.listen().unwrap_or_default();
        let addresses: Vec<String> = addresses.iter().map(|(host, port)| format!("{host}:{port}/iiop")).collect();
        format!("{} # ORB", addresses.join(" "))
    }
}

impl ServiceObject for OrbService {
    fn suspend(&self) -> ServiceResult {
        let orb = self.orb().ok_or("it is not linked")?;
        self.hold(&orb)
    }

    fn resume(&self) -> ServiceResult {
        let orb = self.orb().ok_or("it is not linked")?;
        orb.listen()?;
        for manager in self.held.lock().drain(..) {
            if manager.state() == State::Holding {
                manager.activate()?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct NamingArgs {
    /// The service of the ORB
    #[arg(short = 'o', value_name = "SERVICE", default_value = "ORB")]
    orb: String,
    /// The folder of the store
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
}

/// The naming service, on the ORB of another service: `corbaloc::HOST:PORT/NameService`.
#[derive(Debug, Default)]
pub struct NamingObject {
    service: Mutex<Option<NamingService>>,
}

impl SharedObject for NamingObject {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let args: NamingArgs = parse(arguments)?;
        let orb = context.find::<OrbService>(&args.orb).and_then(|service| service.orb());
        let orb = orb.ok_or_else(|| format!("there is no ORB `{}` before it (-o)", args.orb))?;
        std::fs::create_dir_all(&args.data)
            .map_err(|error| format!("cannot create {} (--data): {error}", args.data.display()))?;
        *self.service.lock() = Some(NamingService::start(&orb, NamingOptions::new(&args.data))?);
        Ok(())
    }

    fn fini(&self) -> ServiceResult {
        match self.service.lock().take() {
            Some(service) => Ok(service.stop()?),
            None => Ok(()),
        }
    }

    fn info(&self) -> String {
        let state = if self.service.lock().is_some() { "" } else { ", not linked" };
        format!("{ROOT_KEY} # naming service{state}")
    }
}

impl ServiceObject for NamingObject {}
