//! `spandrel options`: the `-ORB…` options.

use spandrel::options::OrbOption;

use crate::common;

const EXAMPLES: &str = "\
Examples:
  spandrel options
  spandrel options timeout connections";

/// Print the options of an ORB: what follows --orb, or stands on the command line of a program of your own.
///
/// Each with its other spellings, what it sets, the values that it takes, and the value of an ORB without it. Those of
/// TLS begin with -ORBSSL, and are in the book's page on security.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print only the options in whose names or texts one of these words is found
    #[arg(value_name = "WORD", allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let words: Vec<_> = self.words.iter().map(|word| word.to_lowercase()).collect();
        let texts = OrbOption::tables().iter().copied().flatten().map(ToString::to_string);
        let is_wanted = |text: &String| words.is_empty() || words.iter().any(|word| text.to_lowercase().contains(word));
        let mut shown = texts.filter(is_wanted).peekable();
        if shown.peek().is_none() {
            anyhow::bail!("no option of the ORB has {} in its name or text", words.join(" or "));
        }
        common::print(&shown.map(|text| text + "\n").collect::<String>())
    }
}
