//! `spandrel trade links`: the links of a trader to others.

use anyhow::Context as _;
use spandrel::net::error::escape;
use spandrel::services::cos_trading::link::LinkInfo;
use spandrel::services::cos_trading::{FollowOption, Lookup};

use super::query::object;
use super::table::Table;
use super::trader::TraderArgs;
use super::values;
use crate::json::{JsonObject, array};
use crate::naming;

const EXAMPLES: &str = "\
Examples:
  spandrel trade links list
  spandrel trade links add branch corbaloc::branch.example:2811/TradingService
  spandrel trade links add annex IOR:0100... --default if_no_local --limit always
  spandrel trade links modify annex --default always --limit always
  spandrel trade links remove branch

A query goes over a link as the policy link_follow_rule of the query says, or --default without one, and never further than --limit.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// The most links of one listing, each of which is described by a call.
const MAX_LISTED: usize = 1_000;

/// List, add, modify and remove the links of a trader.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List all links with their targets and rules
    List {
        #[command(flatten)]
        trader: TraderArgs,
    },
    /// Add a link to another trader
    Add {
        /// The name of the link
        name: String,
        /// The other trader: a URL, or a name in the naming service
        target: String,
        #[command(flatten)]
        rules: Rules,
        #[command(flatten)]
        trader: TraderArgs,
    },
    /// Change the rules of a link
    Modify {
        /// The name of the link
        name: String,
        #[command(flatten)]
        rules: Rules,
        #[command(flatten)]
        trader: TraderArgs,
    },
    /// Remove a link
    Remove {
        /// The name of the link
        name: String,
        #[command(flatten)]
        trader: TraderArgs,
    },
}

#[derive(Debug, clap::Args)]
struct Rules {
    /// The rule that is passed on for queries without one: local_only, if_no_local or always
    #[arg(long, value_name = "RULE", default_value = "if_no_local", value_parser = values::follow)]
    default: FollowOption,
    /// The most permissive rule: local_only, if_no_local or always
    #[arg(long, value_name = "RULE", default_value = "always", value_parser = values::follow)]
    limit: FollowOption,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match &self.command {
            Command::List { trader } => trader.run(|found| {
                let mut names = found.link()?.list_links().context("cannot list the links")?;
                names.sort();
                let mut links = Vec::new();
                for name in names.into_iter().take(MAX_LISTED) {
                    let link = found.link()?.describe_link(&name);
                    links.push(link.map(|link| (name, link)).context("cannot describe a link")?);
                }
                Ok(if trader.is_json() { json(&links) } else { shown(&links) })
            }),
            Command::Add { name, target, rules, trader } => trader.run(|found| {
                let target: Lookup = naming::object(&found.orb, target)?.unchecked_narrow();
                let outcome = found.link()?.add_link(name, Some(&target), rules.default, rules.limit);
                outcome.with_context(|| format!("cannot add the link `{}`", escape(name)))?;
                Ok(trader.reported("added", name))
            }),
            Command::Modify { name, rules, trader } => trader.run(|found| {
                let outcome = found.link()?.modify_link(name, rules.default, rules.limit);
                outcome.with_context(|| format!("cannot modify the link `{}`", escape(name)))?;
                Ok(trader.reported("modified", name))
            }),
            Command::Remove { name, trader } => trader.run(|found| {
                let outcome = found.link()?.remove_link(name);
                outcome.with_context(|| format!("cannot remove the link `{}`", escape(name)))?;
                Ok(trader.reported("removed", name))
            }),
        }
    }
}

fn shown(links: &[(String, LinkInfo)]) -> String {
    if links.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["LINK", "DEFAULT", "LIMIT", "TARGET"]);
    for (name, link) in links {
        let [default, limit] = [link.def_pass_on_follow_rule, link.limiting_follow_rule].map(values::follow_text);
        let target = object(link.target.as_ref().map(|target| target.as_object()));
        table.row([name.clone(), default.to_owned(), limit.to_owned(), target]);
    }
    table.finish()
}

fn json(links: &[(String, LinkInfo)]) -> String {
    let objects = links.iter().map(|(name, link)| {
        let object = JsonObject::new().value("name", &**name);
        let object = object.value("default", values::follow_text(link.def_pass_on_follow_rule));
        let object = object.value("limit", values::follow_text(link.limiting_follow_rule));
        object.optional("target", link.target.as_ref().map(|target| target.as_object().to_string())).finish()
    });
    format!("{}\n", array(objects))
}
