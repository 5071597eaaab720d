//! `spandrel orchestra report`: tables, figures and comparisons of results.

mod csv;
mod figures;
mod html;
mod markdown;
mod summary;

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use spandrel_daemon::Failure;
use spandrel_lab::output::{Directory, default_directory};

use crate::results::Results;
pub use summary::{Compared, CpuMoments, PairSummary, Row, Summary};

/// Write the report of a run: Markdown, CSV, JSON, figures (SVG), and one HTML page that needs no network.
///
/// Tables are those of 5.3 and 5.4, figures those of 5.3 to 5.11, with the Z scores of 5.7 and confidence intervals.
#[derive(Clone, Debug, clap::Args)]
pub struct ReportArgs {
    /// The file of results
    #[arg(value_name = "RESULTS")]
    results: PathBuf,
    /// The folder of the report [default: target/orchestra in a source tree, else spandrel-orchestra]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Another pair to be compared, as FIRST,SECOND; may be given more than once
    #[arg(long = "pair", value_name = "FIRST,SECOND")]
    pairs: Vec<String>,
}

impl ReportArgs {
    /// Writes all files, and prints the Markdown.
    ///
    /// # Errors
    /// Results that cannot be read; a folder that cannot be written.
    pub fn run(&self) -> Result<(), Failure> {
        let results = Results::read(&self.results).map_err(Failure::failed)?;
        let mut pairs = Vec::new();
        for pair in &self.pairs {
            let (first, second) = pair.split_once(',').ok_or_else(|| {
                Failure::usage(anyhow!("invalid value `{pair}` for --pair: expected the names of two servers"))
            })?;
            pairs.push((first.to_owned(), second.to_owned()));
        }
        let summary = Summary::from_results(&results, &pairs)
            .with_context(|| format!("cannot report {}", self.results.display()))
            .map_err(Failure::failed)?;
        let folder = self.output.clone().unwrap_or_else(|| default_directory("orchestra"));
        let text = write(&results, &summary, &folder).context("cannot write the report (--output)");
        let text = text.map_err(Failure::failed)?;
        spandrel_daemon::print(&format!("{text}\nReport: {}\n", folder.join("report.html").display()))
    }
}

/// Writes all files of a report; returns its Markdown.
///
/// # Errors
/// A folder that cannot be written.
pub fn write(results: &Results, summary: &Summary, folder: &std::path::Path) -> anyhow::Result<String> {
    let figures = figures::draw(results, summary);
    let mut directory = Directory::create(folder)?;
    for figure in &figures {
        directory.write(&figure.file, &figure.svg)?;
    }
    let text = markdown::text(summary, &figures);
    directory.write("report.md", &text)?;
    directory.write("samples.csv", &csv::samples(results))?;
    directory.write("versions.csv", &csv::versions(results))?;
    directory.write_json("report.json", summary)?;
    directory.write("report.html", &html::page(summary, &figures))?;
    Ok(text)
}
