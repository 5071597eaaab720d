//! `spandrel list`.

use std::slice::from_ref;

use super::{Place, is_context, printable, sorted_bindings, type_of};
use crate::client_args::ClientArgs;
use crate::common;
use crate::json::{JsonObject, array};

const EXAMPLES: &str = "\
Examples:
  spandrel list
  spandrel list Bank --long
  spandrel list corbaname::names.example#Bank --json
  spandrel list --orb '-ORBInitRef NameService=corbaloc::names.example:2809/NameService' Bank/branches

Without --orb, names are those of the naming service at 127.0.0.1:2809. Contexts end in a slash.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// List the bindings of a naming context.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The context: a name such as Bank/branches, or a URL; without it, the root context
    #[arg(default_value = "", hide_default_value = true)]
    context: String,
    /// Show the types of objects, too, which are looked up one by one
    #[arg(short, long)]
    long: bool,
    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.client.reported(self.list())
    }

    fn list(&self) -> anyhow::Result<()> {
        let orb = self.client.orb()?;
        let context = Place::of(&orb, &self.context)?.context()?;
        let (mut text, mut json) = (String::new(), Vec::new());
        for (name, binding) in sorted_bindings(&context)? {
            let object =
                self.long.then(|| binding.binding_name.last().map(|it| context.resolve(from_ref(it)))).flatten();
            let of = object.map(|found| match found {
                Ok(Some(object)) => type_of(&object).to_owned(),
                Ok(None) => "nil".to_owned(),
                Err(error) => format!("cannot be resolved: {error}"),
            });
            if self.client.json {
                let kind = if is_context(&binding) { "context" } else { "object" };
                json.push(JsonObject::new().value("name", name).value("kind", kind).optional("type", of).finish());
                continue;
            }
            text += &printable(&name);
            text += if is_context(&binding) { "/" } else { "" };
            text += &of.map(|of| format!("  {}", printable(&of))).unwrap_or_default();
            text.push('\n');
        }
        common::print(&if self.client.json { format!("{}\n", array(json)) } else { text })
    }
}
