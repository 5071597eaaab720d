//! `spandrel watch`: changes of a result, or of the bindings of a context.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use spandrel::dynamic::DynamicObject;
use spandrel::net::error::escape;
use spandrel::net::error::output::has_no_reader;

use crate::call::explain;
use crate::call::interface::{self, InterfaceArgs};
use crate::call::values::{shown, with_context};
use crate::client_args::ClientArgs;
use crate::naming::{self, Place, is_context, sorted_bindings};
use crate::orb_args::reference_text;
use crate::{common, json};

const EXAMPLES: &str = "\
Examples:
  spandrel watch Bank/alice balance
  spandrel watch --interval 200ms Plant/valve position --json
  spandrel watch Bank
  spandrel watch --for 1min ''

With an operation or attribute, it is called again and again, and its results are printed when they change. Without one, the name is that of a
naming context, and each binding that comes (+), goes (-) or changes its kind (~) is printed.

Exit codes: 0 done (after --for or --changes), 1 failed, 2 wrong usage.";

/// Print a result, or the bindings of a naming context, whenever they change.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The object or context: a URL, or a name such as Bank/alice; an empty one is the root context
    #[arg(index = 1)]
    reference: String,
    /// The operation, or an attribute
    #[arg(index = 2)]
    operation: Option<String>,
    /// The values of its parameters
    #[arg(index = 3, allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    interface: InterfaceArgs,
    /// The time between two calls: seconds, or a number with ms, s or min
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = common::positive_time)]
    interval: Duration,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = common::positive_time)]
    time: Option<Duration>,
    /// End after this many changes
    #[arg(long, value_name = "N", value_parser = common::whole(1..=u64::MAX))]
    changes: Option<u64>,
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let outcome = if self.operation.is_some() { self.watch_result() } else { self.watch_bindings() };
        self.client.reported(outcome)
    }

    /// Calls a function at each interval until the time or the number of changes is over. It returns the number of changes.
    fn repeat(&self, mut look: impl FnMut() -> anyhow::Result<u64>) -> anyhow::Result<()> {
        let end = self.time.and_then(|time| Instant::now().checked_add(time));
        let mut changes = 0;
        loop {
            changes += look()?;
            let is_over = self.changes.is_some_and(|most| changes >= most);
            if is_over || has_no_reader() || end.is_some_and(|end| Instant::now() + self.interval > end) {
                return Ok(());
            }
            thread::sleep(self.interval);
        }
    }

    fn watch_result(&self) -> anyhow::Result<()> {
        let Some(name) = &self.operation else { bail!("an operation is expected") };
        let orb = self.client.orb()?;
        let object = naming::object(&orb, &reference_text(&self.reference)?)?;
        let description =
            self.interface.find(&orb, &object).map_err(|error| self.client.explained(error, object.ior()))?;
        let operation = interface::operation(&description.interface, name, self.arguments.len())?;
        let arguments =
            with_context(&orb, &description, |context| operation.read_argument_list(&self.arguments, context))?;
        let object = DynamicObject::new(object, description.interface.clone());
        let mut last = None;
        self.repeat(|| {
            let outcome = object.call(&operation.name, &arguments).map_err(explain)?;
            let text = shown(operation, &outcome, self.client.json)?;
            if last.as_ref() == Some(&text) {
                return Ok(0);
            }
            common::print(&text)?;
            last = Some(text);
            Ok(1)
        })
    }

    fn watch_bindings(&self) -> anyhow::Result<()> {
        let orb = self.client.orb()?;
        let context = Place::resolve(&orb, &self.reference)?.context()?;
        let mut last: BTreeMap<String, bool> = BTreeMap::new();
        self.repeat(|| {
            let bindings = sorted_bindings(&context, self.client.deadline())?;
            let now: BTreeMap<String, bool> =
                bindings.into_iter().map(|(name, binding)| (name, is_context(&binding))).collect();
            let gone = last.iter().filter(|(name, _)| !now.contains_key(*name)).map(|(name, kind)| ("-", name, kind));
            let others = now.iter().filter_map(|(name, kind)| match last.get(name) {
                None => Some(("+", name, kind)),
                Some(known) => (known != kind).then_some(("~", name, kind)),
            });
            let changes: Vec<_> = gone.chain(others).collect();
            for (change, name, is_context) in &changes {
                let text = if self.client.json {
                    let kind = if **is_context { "context" } else { "object" };
                    let json = json::JsonObject::new().value("change", *change).value("name", name.as_str());
                    format!("{}\n", json.value("kind", kind).finish())
                } else {
                    format!("{change} {}{}\n", escape(name), if **is_context { "/" } else { "" })
                };
                common::print(&text)?;
            }
            let count = changes.len() as u64;
            last = now;
            Ok(count)
        })
    }
}
