//! `spandrel config`: the settings in force, and where each comes from.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use clap::Subcommand;
use serde_json::{Value, json};
use spandrel::net::error::escape;
use spandrel::options::{OrbOption, OrbSetting, SettingSource, Site, SiteSetting};

use crate::common;
use crate::orb_args::ClientOrbArgs;

const EXAMPLES: &str = "\
Examples:
  spandrel config show
  spandrel --site plant config show
  spandrel config show --site plant --config plant.toml --orb '-ORBRequestTimeout 500' --all";

/// The line of the help for the options that may stand before a command.
pub(crate) const BEFORE_COMMAND: &str =
    "`--site NAME` and `--config FILE` may stand before the command, too: spandrel --site plant list\n\n";

/// Show the configuration of the ORB of commands: sites, options, and where each value comes from.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ConfigCommand,
    #[command(flatten)]
    options: ClientOrbArgs,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the options in force and where each value comes from; without a site, the sites of the file
    ///
    /// Each value is set in an ORB, so that one that cannot be used is an error with its line.
    Show {
        /// Print the values of all other options, too
        #[arg(long)]
        all: bool,
        /// Print the same as one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let ConfigCommand::Show { all, json } = self.command;
        let shown = self.configuration()?;
        common::print(&if json { format!("{}\n", shown.json(all)) } else { shown.text(all) })
    }

    /// The configuration of a command with these options.
    fn configuration(&self) -> anyhow::Result<Configuration> {
        let args = self.options.args();
        let file = args.site_file();
        // `--config` alone shows the sites of a file.
        let site = match args.site() {
            Err(spandrel::options::OrbArgsError::NoSite(_)) => None,
            site => site.map_err(|error| common::as_usage(error.into()))?,
        };
        let sites = match (&file, site) {
            (Some(file), None) if args.names_file() || file.exists() => {
                let sites = Site::all(file).map_err(|error| common::as_usage(error.into()))?;
                sites.iter().map(|site| site.name().to_owned()).collect()
            }
            _ => Vec::new(),
        };
        let settings = match (site, args.settings()) {
            (None, Err(_)) => Vec::new(),
            (_, settings) => settings?,
        };
        if site.is_some() || !args.names_file() {
            self.options.check()?;
        }
        let mut rows = rows(settings);
        for setting in site.into_iter().flat_map(|site| site.policy().into_iter().chain(site.audit())) {
            rows.push(Row::of_site(setting, site.map_or(Path::new(""), Site::file)));
        }
        let file = file.map(|file| file.display().to_string());
        Ok(Configuration { file, site: site.map(|site| site.name().to_owned()), sites, rows })
    }
}

/// The settings of an ORB, and the place of each.
struct Configuration {
    file: Option<String>,
    site: Option<String>,
    /// The sites of the file, unless one is in use.
    sites: Vec<String>,
    rows: Vec<Row>,
}

/// A value, and the place where it stands.
struct Row {
    option: String,
    value: String,
    source: String,
    /// Whether a later value takes its place.
    is_replaced: bool,
}

impl Row {
    fn of_site(setting: &SiteSetting, file: &Path) -> Self {
        let source = format!("{}:{}", file.display(), setting.line);
        Self { option: setting.option.clone(), value: setting.value.clone(), source, is_replaced: false }
    }
}

/// The settings with the names of the book; of several for one thing, the last is in force.
fn rows(settings: Vec<OrbSetting>) -> Vec<Row> {
    let mut set = BTreeSet::new();
    let mut rows: Vec<Row> = Vec::new();
    for OrbSetting { option, value, source } in settings.into_iter().rev() {
        let option = table_row(&option).map_or(option, |row| row.names[0].to_owned());
        // References and sizes are set for a name each; each endpoint is one more.
        let subject = match &*option {
            "-ORBInitRef" | "-ORBFragmentSize" => value.rsplit_once('=').map_or("", |(subject, _)| subject),
            "-ORBListenEndpoints" => &value,
            _ => "",
        };
        let is_replaced = !set.insert((option.clone(), subject.split('=').next().unwrap_or_default().to_owned()));
        let source = match source {
            SettingSource::Program => "the command".to_owned(),
            SettingSource::Site { file, line } => format!("{}:{line}", file.display()),
            SettingSource::CommandLine => "command line".to_owned(),
        };
        rows.push(Row { option, value, source, is_replaced });
    }
    rows.reverse();
    rows
}

fn table_row(name: &str) -> Option<&'static OrbOption> {
    OrbOption::tables().iter().copied().flatten().find(|option| option.names.contains(&name))
}

impl Configuration {
    /// The options that have no value of their own, with their defaults.
    fn defaults(&self) -> impl Iterator<Item = (&'static str, String)> {
        let is_unset = |option: &&OrbOption| self.rows.iter().all(|row| row.option != option.names[0]);
        let options = OrbOption::tables().iter().copied().flatten().filter(is_unset);
        options.map(|option| (option.names[0], option.default.replace('`', "")))
    }

    fn text(&self, all: bool) -> String {
        let file = self.file.as_deref().unwrap_or("no file: the environment names no folder of configuration");
        let mut text = match (&self.site, &self.sites[..]) {
            (Some(site), _) => format!("site {} of {}\n", escape(site), escape(file)),
            (None, []) => format!("no site; none is in {}\n", escape(file)),
            (None, sites) => format!("no site; {} has {}\n", escape(file), escape(&sites.join(", "))),
        };
        let width = self.rows.iter().map(|row| row.option.len()).max().unwrap_or(0);
        for Row { option, value, source, is_replaced } in &self.rows {
            let replaced = if *is_replaced { ", replaced" } else { "" };
            text += &format!("{option:width$}  {}  ({}{replaced})\n", escape(value), escape(source));
        }
        if all {
            self.defaults().for_each(|(option, default)| text += &format!("{option}  {default}  (default)\n"));
        }
        text
    }

    fn json(&self, all: bool) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({ "option": row.option, "value": row.value, "source": row.source, "replaced": row.is_replaced })
        });
        let mut settings: Vec<Value> = rows.collect();
        if all {
            let default = |(option, default)| json!({ "option": option, "value": default, "source": "default", "replaced": false });
            settings.extend(self.defaults().map(default));
        }
        json!({ "file": self.file, "site": self.site, "sites": self.sites, "settings": settings })
    }
}

/// The words of a command line: `--site NAME` and `--config FILE` before the command are moved behind it.
pub(crate) fn behind_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut end = 1.min(words.len());
    while let Some(word) = words.get(end).and_then(|word| word.to_str()) {
        end += match word {
            "--site" | "--config" => 2,
            joined if joined.starts_with("--site=") || joined.starts_with("--config=") => 1,
            _ => break,
        };
    }
    if end > 1 && end < words.len() {
        words[1..=end].rotate_right(1);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::behind_command;

    #[test]
    fn the_options_of_a_site_move_behind_the_command() {
        let moved = |line: &str| {
            let words = behind_command(line.split(' ').map(Into::into).collect());
            words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(moved("spandrel --site a list x"), "spandrel list --site a x");
        assert_eq!(moved("spandrel --config=f --site a up -v"), "spandrel up --config=f --site a -v");
        for line in ["spandrel", "spandrel list --site a", "spandrel --site a", "spandrel --site", "spandrel --help"] {
            assert_eq!(moved(line), line);
        }
    }
}
