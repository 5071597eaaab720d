//! The command line of `spandrel-lab`.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use spandrel_error::{escape, output};
use spandrel_lab::bench::marshal::{self, DIRECTIONS};
use spandrel_lab::output::{Directory, default_directory};
use spandrel_lab::peer_programs::build_tao;
use spandrel_lab::workload::DataType;
use spandrel_measure::table::{self, Align};

use crate::compare;
use crate::folder::{Folder, Form};
use crate::inventory::{Inventory, Row, SelectError, State};
use crate::profile::sampling;
use crate::report::{self, Report};
use crate::run::{self, RunSettings};

const EXAMPLES: &str = "\
Examples:
  spandrel lab list p1.4                      the figures and tables of chapter 4 of paper 001
  spandrel lab run p1.fig2.13 --out results   one figure
  spandrel lab run all --out results          everything, in parts of 150 minutes: repeat the command to resume
  spandrel lab report results                 results-report: index.html, report.md, figures.csv, report.json
  spandrel lab report results --chapter then-and-now.md
  spandrel lab compare results before
  spandrel lab imaging                        images by calls, by bulk streams, and by plain sockets with sendfile
  spandrel lab media many                     200 media flows of one process, beside a sender in C
  spandrel lab events                         event channels beside a fan-out in C, omniEvents, JacORB, NATS and MQTT

A name is that of a figure or table (p1.fig2.9), a chapter (p1.2), a paper (p1), or all.
Exit codes: 0 done, 1 failed or not complete, 2 wrong usage.";

/// Repeat the figures and tables of the five papers by name.
#[derive(Debug, Parser)]
#[command(name = "spandrel-lab", bin_name = "spandrel lab", version, max_term_width = 110, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(ListArgs),
    Run(RunArgs),
    Report(ReportArgs),
    Compare(CompareArgs),
    Imaging(crate::imaging::ImagingArgs),
    Media(crate::media::MediaArgs),
    Events(crate::events::EventsArgs),
    /// A process of an experiment; started by the experiment itself.
    #[command(hide = true)]
    Peer(spandrel_lab::child_command::Args),
    /// Write or read a sequence by one engine; started under a profiler.
    #[command(hide = true)]
    Repeat(RepeatArgs),
    #[command(hide = true)]
    Serve(crate::servers::ServeArgs),
    #[command(hide = true)]
    ImagingServer(crate::imaging::ServerArgs),
    #[command(hide = true)]
    ImagingClient(crate::imaging::ClientArgs),
    #[command(hide = true)]
    MediaSender(crate::media::SenderArgs),
    #[command(hide = true)]
    EventsServer(crate::events::ServerArgs),
    #[command(hide = true)]
    EventsLoad(crate::events::LoadArgs),
}

/// List all figures and tables: state, command, minutes, title.
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Names of figures, tables, chapters and papers
    #[arg(value_name = "NAME", default_value = "all")]
    names: Vec<String>,
    /// Print below the table why rows do not run, and where runs differ from the paper
    #[arg(long, conflicts_with = "json")]
    notes: bool,
    /// Print the rows as JSON, with their notes
    #[arg(long)]
    json: bool,
}

/// Measure figures and tables; what has results already is not measured again.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Names of figures, tables, chapters and papers
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Folder of results, one file for each point [default: target/lab in a Cargo workspace, otherwise spandrel-lab]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Begin no point that is planned to end after this time
    #[arg(long, value_name = "MINUTES", default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    minutes: u32,
    /// One value of each parameter and few calls: shows that everything runs
    #[arg(long)]
    short: bool,
    /// Folder with the sources of TAO and their build: programs over TAO are built by them, and measured
    #[arg(long, value_name = "DIR")]
    tao: Option<PathBuf>,
}

/// Write a folder's results as HTML, Markdown, CSV and JSON.
#[derive(Debug, clap::Args)]
struct ReportArgs {
    /// Folder of results [default: target/lab in a Cargo workspace, otherwise spandrel-lab]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Folder of the report [default: that of the results, with -report at its end]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write only the chapter of the book on the papers, then and now, to this file; also of an empty folder
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    chapter: Option<PathBuf>,
}

/// Compare two folders of results: a verdict on the first one for each series.
#[derive(Debug, clap::Args)]
struct CompareArgs {
    /// Folder of results that is judged
    #[arg(value_name = "FIRST")]
    first: PathBuf,
    /// Folder of results that it is compared with
    #[arg(value_name = "SECOND")]
    second: PathBuf,
    /// Show series without a difference as well
    #[arg(long)]
    all: bool,
}

#[derive(Debug, clap::Args)]
struct RepeatArgs {
    engine: marshal::Contender,
    direction: String,
    data: DataType,
    octets: usize,
    turns: u64,
}

impl RepeatArgs {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let direction = DIRECTIONS.into_iter().find(|direction| direction.name() == self.direction);
        let direction = direction.context("the direction is write or read")?;
        marshal::repeat(self.engine, direction, self.data, self.octets, self.turns)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Parses the command line, and carries it out. Returns the exit code: 0 done, 1 failed or not complete, 2 wrong usage.
#[must_use]
pub fn run() -> ExitCode {
    let args: Args = output::parse();
    let outcome = match args.command {
        Command::List(args) => args.run(),
        Command::Run(args) => args.run(),
        Command::Report(args) => args.run(),
        Command::Compare(args) => args.run(),
        Command::Peer(args) => sampling::run(args),
        Command::Repeat(args) => args.run(),
        Command::Serve(args) => args.run(),
        Command::Imaging(args) => args.run(),
        Command::ImagingServer(args) => args.run(),
        Command::ImagingClient(args) => args.run(),
        Command::Media(args) => args.run(),
        Command::MediaSender(args) => args.run(),
        Command::Events(args) => args.run(),
        Command::EventsServer(args) => args.run(),
        Command::EventsLoad(args) => args.run(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            output::remark(&format!("error: {}\n", escape(&format!("{error:#}"))));
            ExitCode::from(if error.is::<SelectError>() { 2 } else { 1 })
        }
    }
}

/// The rows of all names, each once, in the order of the inventory.
fn select<'i>(inventory: &'i Inventory, names: &[String]) -> Result<Vec<&'i Row>, SelectError> {
    let mut selected = Vec::new();
    for name in names {
        selected.extend(inventory.select(name)?.into_iter().map(|row| row.name.as_str()));
    }
    Ok(inventory.rows().iter().filter(|row| selected.contains(&row.name.as_str())).collect())
}

fn folder(option: Option<&Path>) -> PathBuf {
    option.map_or_else(|| default_directory("lab"), Path::to_owned)
}

impl ListArgs {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let inventory = Inventory::of_the_papers();
        let rows = select(&inventory, &self.names)?;
        let text = if self.json {
            let rows: Vec<ListedRow<'_>> = rows.iter().map(|row| ListedRow::new(row)).collect();
            serde_json::to_string_pretty(&rows)? + "\n"
        } else {
            list(&rows, self.notes)
        };
        output::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A row as `lab list --json` prints it.
#[derive(Debug, serde::Serialize)]
struct ListedRow<'r> {
    #[serde(flatten)]
    row: &'r Row,
    command: Option<String>,
    minutes: u32,
}

impl<'r> ListedRow<'r> {
    fn new(row: &'r Row) -> Self {
        Self { row, command: row.command(), minutes: row.minutes() }
    }
}

fn list(rows: &[&Row], has_notes: bool) -> String {
    use Align::{Left, Right};
    let mut table = table::with_columns(&[("name", Left), ("state", Left), ("min", Right), ("title", Left)]);
    let mut notes = String::new();
    for row in rows {
        let minutes = if row.state == State::Runs { row.minutes().to_string() } else { String::new() };
        table.add_row([row.name.clone(), row.state.to_string(), minutes, row.title.clone()]);
        if let Some(note) = row.reason.as_ref().or(row.note.as_ref()).filter(|_| has_notes) {
            notes += &format!("{}: {note}\n", row.name);
        }
    }
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    let counts: Vec<String> = State::ALL.iter().map(|state| format!("{} {state}", count(*state))).collect();
    let separator = if notes.is_empty() { "" } else { "\n" };
    format!(
        "{table}\n{separator}{notes}\n{} figures and tables: {}.\nspandrel lab run NAME measures one.\n",
        rows.len(),
        counts.join(", ")
    )
}

impl RunArgs {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let inventory = Inventory::of_the_papers();
        let rows = select(&inventory, &self.names)?;
        let runnable: Vec<&Row> = rows.iter().copied().filter(|row| row.state == State::Runs).collect();
        if let ([], Some(row)) = (&runnable[..], rows.first()) {
            bail!("{} does not run here: {}: {}", row.name, row.state, row.reason.as_deref().unwrap_or_default());
        }
        if let Some(sources) = &self.tao {
            build_tao(sources).map_err(anyhow::Error::msg).context("programs over TAO")?;
        }
        let form = if self.short { Form::Short } else { Form::Full };
        let mut folder = Folder::create(&folder(self.out.as_deref()), form)?;
        let settings = RunSettings { form, part: Duration::from_secs(u64::from(self.minutes) * 60) };
        let outcome = run::run(&runnable, &mut folder, settings, &mut |line| output::remark(&format!("{line}\n")))?;
        let mut text = format!(
            "{} points measured, {} had results already; {} of {} selected figures and tables run here. Results: {}\n",
            outcome.measured,
            outcome.already,
            runnable.len(),
            rows.len(),
            folder.path().display()
        );
        for (point, reason) in &outcome.failed {
            text += &format!("failed: {point}: {reason}\n");
        }
        if outcome.left > 0 {
            text += &format!("{} points are left: repeat the command to go on.\n", outcome.left);
        }
        output::print(&text)?;
        let is_complete = outcome.failed.is_empty() && outcome.left == 0;
        Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl ReportArgs {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let path = folder(self.folder.as_deref());
        let folder = Folder::open(&path)?;
        if let Some(file) = &self.chapter {
            return write_chapter(&folder, file);
        }
        if folder.results().next().is_none() {
            bail!("{} has no results; `spandrel lab run NAME --out {0}` measures some", path.display());
        }
        let report = Report::new(&Inventory::of_the_papers(), &folder);
        let out = self.out.clone().unwrap_or_else(|| {
            let name = path.file_name().map_or("lab".to_owned(), |name| name.to_string_lossy().into_owned());
            path.with_file_name(format!("{name}-report"))
        });
        let mut directory = Directory::create(&out)?;
        directory.write("index.html", &report::html(&report)?)?;
        directory.write("report.md", &report::markdown(&report))?;
        directory.write("figures.csv", &report::csv(&report))?;
        directory.write("report.json", &report.json()?)?;
        let measured = report.entries.iter().filter(|entry| !entry.figures.is_empty()).count();
        output::print(&format!(
            "{measured} figures and tables with results. Written to {}: index.html, report.md, figures.csv, report.json\n",
            out.display()
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the chapter of the book, whole or not at all.
fn write_chapter(folder: &Folder, file: &Path) -> anyhow::Result<ExitCode> {
    let report = Report::new(&Inventory::of_the_papers(), folder);
    if report.form == Some(Form::Short) {
        bail!(
            "{} has results of a short run, whose figures mean nothing; name another folder",
            folder.path().display()
        );
    }
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut new = tempfile::NamedTempFile::new_in(parent)?;
        new.write_all(report::chapter(&report, folder).as_bytes())?;
        new.as_file().set_permissions(Permissions::from_mode(0o644))?;
        new.persist(file).map_err(|error| error.error)
    };
    write().with_context(|| format!("cannot write {}", file.display()))?;
    output::print(&format!("Written: {}\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

impl CompareArgs {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let open = |path: &Path| Folder::open(path).context("cannot compare");
        let comparison = compare::compare(&open(&self.first)?, &open(&self.second)?);
        if comparison.rows.is_empty() {
            bail!("the folders have no series in common");
        }
        output::print(&comparison.text(self.all))?;
        Ok(ExitCode::SUCCESS)
    }
}
