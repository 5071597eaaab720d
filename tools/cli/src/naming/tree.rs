//! `spandrel tree`: a naming context and those below it.

use std::slice::from_ref;

use spandrel::net::error::{escape, output};
use spandrel::net::sync::time::Deadline;
use spandrel::services::cos_naming::NamingContextExt;

use super::{Place, bounded, is_context, sorted_bindings};
use crate::client_args::ClientArgs;
use crate::common;
use crate::json::{JsonObject, array};

const EXAMPLES: &str = "\
Examples:
  spandrel tree
  spandrel tree Bank --depth 2
  spandrel tree corbaname::names.example# --json

A context that is bound below itself is shown once. A context that cannot be reached is marked, and the rest is shown.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// The most bindings that are shown.
const MAX_BINDINGS: usize = 100_000;

/// Show a naming context and all contexts below it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The context: a name such as Bank/branches, or a URL; without it, the root context
    #[arg(default_value = "", hide_default_value = true)]
    context: String,
    /// The number of levels
    #[arg(short, long, value_name = "N", default_value_t = 32, value_parser = common::whole(1..=256_usize))]
    depth: usize,
    #[command(flatten)]
    client: ClientArgs,
}

/// A walk through contexts.
struct Walk<'a> {
    args: &'a Args,
    text: String,
    /// The contexts above the present one.
    above: Vec<NamingContextExt>,
    left: usize,
    deadline: Deadline,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.client.reported(self.tree())
    }

    fn tree(&self) -> anyhow::Result<()> {
        let (orb, deadline) = (self.client.orb()?, self.client.deadline());
        let context = Place::resolve(&orb, &self.context)?.context()?;
        let mut walk =
            Walk { args: self, text: String::new(), above: vec![context.clone()], left: MAX_BINDINGS, deadline };
        let children = walk.context(&context, "")?;
        if walk.left == 0 {
            output::remark(&format!("only the first {MAX_BINDINGS} bindings are shown\n"));
        }
        common::print(&if self.client.json { format!("{}\n", array(children)) } else { walk.text })
    }
}

impl Walk<'_> {
    /// Shows the bindings of a context, each behind the indentation; returns them as JSON.
    fn context(&mut self, context: &NamingContextExt, indentation: &str) -> anyhow::Result<Vec<String>> {
        let bindings = sorted_bindings(context, self.deadline)?;
        let (mut all, count) = (Vec::new(), bindings.len());
        for (number, (name, binding)) in bindings.into_iter().enumerate() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let is_last = number + 1 == count;
            let (branch, below) = if is_last { ("└── ", "    ") } else { ("├── ", "│   ") };
            self.text += &format!("{indentation}{branch}{}", escape(&name));
            let mut json = JsonObject::new().value("name", name);
            if !is_context(&binding) {
                self.text.push('\n');
                all.push(json.value("kind", "object").finish());
                continue;
            }
            json = json.value("kind", "context");
            self.text.push('/');
            let bounded = bounded(context, self.deadline)?;
            let resolved = binding.binding_name.last().map(|component| bounded.resolve(from_ref(component)));
            let remark = match resolved {
                Some(Ok(Some(object))) => {
                    let child = NamingContextExt::unchecked_narrow(&object);
                    let is_above = self.above.iter().any(|other| other.as_object().is_equivalent(&object));
                    if is_above {
                        Some("bound above".to_owned())
                    } else if self.above.len() >= self.args.depth {
                        Some("deeper".to_owned())
                    } else {
                        self.text.push('\n');
                        self.above.push(child.clone());
                        let children = self.context(&child, &format!("{indentation}{below}"));
                        self.above.pop();
                        match children {
                            Ok(children) => {
                                all.push(json.json("bindings", &array(children)).finish());
                                continue;
                            }
                            Err(error) => {
                                let reason = error.to_string();
                                let reason = escape(&reason);
                                self.text += &format!("{indentation}{below}└── (cannot be listed: {reason})\n");
                                all.push(json.value("remark", error.to_string()).finish());
                                continue;
                            }
                        }
                    }
                }
                Some(Ok(None)) | None => Some("nil".to_owned()),
                Some(Err(error)) => Some(format!("cannot be resolved: {error}")),
            };
            let remark = remark.unwrap_or_default();
            self.text += &format!(" ({})\n", escape(&remark));
            all.push(json.value("remark", remark).finish());
        }
        Ok(all)
    }
}
