//! `spandrel list`: the bindings of a naming context.

use std::slice::from_ref;

use spandrel::net::error::escape;
use spandrel::services::cos_naming::naming_context::ResolveError;

use super::{Place, bounded, is_context, sorted_bindings, type_of};
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
        let (orb, deadline) = (self.client.orb()?, self.client.deadline());
        let context = Place::resolve(&orb, &self.context)?.context()?;
        let (mut text, mut json) = (String::new(), Vec::new());
        for (name, binding) in sorted_bindings(&context, deadline)? {
            let object = match binding.binding_name.last().filter(|_| self.long) {
                Some(component) => Some(bounded(&context, deadline)?.resolve(from_ref(component))),
                None => None,
            };
            let of = object.map(|found| match found {
                Ok(Some(object)) => type_of(&object).to_owned(),
                Ok(None) => "nil".to_owned(),
                Err(ResolveError::NotFound(_)) => "not bound any more".to_owned(),
                Err(error) => format!("cannot be resolved: {error}"),
            });
            if self.client.json {
                let kind = if is_context(&binding) { "context" } else { "object" };
                json.push(JsonObject::new().value("name", name).value("kind", kind).optional("type", of).finish());
                continue;
            }
            text += &escape(&name).to_string();
            text += if is_context(&binding) { "/" } else { "" };
            text += &of.map(|of| format!("  {}", escape(&of))).unwrap_or_default();
            text.push('\n');
        }
        common::print(&if self.client.json { format!("{}\n", array(json)) } else { text })
    }
}
