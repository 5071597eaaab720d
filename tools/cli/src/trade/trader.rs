//! The trader of a command, and the options by which it is found.

use anyhow::Context as _;
use spandrel::Orb;
use spandrel::net::sync::time::Deadline;
use spandrel::services::cos_trading::{Link, Lookup, Proxy, Register};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::services::offer_text::default_trader;
use spandrel::types::Interface;
use spandrel::{ObjectRef, SystemException};

use crate::client_args::{ClientArgs, bound};
use crate::json::JsonObject;
use crate::naming;

/// The options of all subcommands.
#[derive(Debug, clap::Args)]
pub(super) struct TraderArgs {
    /// The trader: a URL, or a name in the naming service
    #[arg(long, value_name = "TRADER")]
    at: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

impl TraderArgs {
    /// Runs a subcommand, whose result is the text to print.
    pub(super) fn run(&self, act: impl FnOnce(&Trader) -> anyhow::Result<String>) -> anyhow::Result<()> {
        let text = self.client.reported(self.trader().and_then(|trader| act(&trader)))?;
        crate::common::print(&text)
    }

    /// The output of a change: nothing, or a JSON object.
    pub(super) fn reported(&self, done: &str, name: &str) -> String {
        if !self.is_json() {
            return String::new();
        }
        format!("{}\n", JsonObject::new().value(done, name).finish())
    }

    pub(super) fn is_json(&self) -> bool {
        self.client.json
    }

    pub(super) fn trader(&self) -> anyhow::Result<Trader> {
        let (orb, deadline) = (self.client.orb()?, self.client.deadline());
        let lookup = match &self.at {
            Some(text) => naming::object(&orb, text)?,
            None => {
                let lookup = default_trader(&orb).context("cannot use the given initial reference `TradingService`");
                lookup?.as_object().clone()
            }
        };
        Ok(Trader { orb, lookup: lookup.unchecked_narrow(), deadline })
    }
}

/// A trader, with one time limit for all calls of a command.
pub(super) struct Trader {
    pub(super) orb: Orb,
    lookup: Lookup,
    pub(super) deadline: Deadline,
}

impl Trader {
    /// The object with the time that is left.
    pub(super) fn bound<I: Interface>(&self, object: &ObjectRef) -> anyhow::Result<I> {
        Ok(bound(object, self.deadline)?.unchecked_narrow())
    }

    pub(super) fn lookup(&self) -> anyhow::Result<Lookup> {
        self.bound(self.lookup.as_object())
    }

    pub(super) fn register(&self) -> anyhow::Result<Register> {
        self.component(self.lookup()?.register_if().map(untyped), "Register")
    }

    pub(super) fn link(&self) -> anyhow::Result<Link> {
        self.component(self.lookup()?.link_if().map(untyped), "Link")
    }

    pub(super) fn proxy(&self) -> anyhow::Result<Proxy> {
        self.component(self.lookup()?.proxy_if().map(untyped), "Proxy")
    }

    pub(super) fn repository(&self) -> anyhow::Result<ServiceTypeRepository> {
        self.component(self.lookup()?.type_repos(), "ServiceTypeRepository")
    }

    /// A component of the trader, which need not have all.
    pub(super) fn component<I: Interface>(
        &self,
        got: Result<Option<ObjectRef>, SystemException>,
        interface: &str,
    ) -> anyhow::Result<I> {
        let component = got.context("cannot reach the trader")?;
        let component = component.with_context(|| format!("the trader has no interface {interface}"))?;
        self.bound(&component)
    }
}

fn untyped<I: Interface>(object: Option<I>) -> Option<ObjectRef> {
    object.map(|object| object.as_object().clone())
}
