//! The executable `spandrel-top`: metrics on a terminal.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use spandrel_error::{escape, output};
use spandrel_top::{Rows, Sample, Source, View, text};

/// The longest time between a key and its effect.
const KEYS: Duration = Duration::from_millis(50);
/// The lines of a page.
const PAGE: i32 = 10;

/// Shows streams, services and ORBs of a running process in the terminal.
///
/// The numbers are the metrics of the process: those of an ORB with `-ORBMetricsEndpoint`, of the service `Metrics` of
/// `spandrel serve`, or of its administration.
#[derive(Debug, Parser)]
#[command(name = "spandrel top", version)]
#[command(group = clap::ArgGroup::new("source").required(true))]
struct Args {
    /// The endpoint of the metrics: HOST:PORT or http://HOST:PORT/metrics
    #[arg(value_name = "ENDPOINT", group = "source")]
    endpoint: Option<Source>,
    /// The UNIX-domain socket of the administration of `spandrel serve`
    #[arg(short = 'u', long = "socket", value_name = "PATH", group = "source")]
    socket: Option<PathBuf>,
    /// The loopback port of the administration of `spandrel serve`
    #[arg(short = 'p', long = "port", value_name = "PORT", group = "source")]
    port: Option<u16>,
    /// The time between two samples
    #[arg(short = 'i', long = "interval", value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Print the rows of one interval as text, and end
    #[arg(long)]
    once: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3_600.0).contains(seconds));
    seconds.ok_or_else(|| "expected 0.1 to 3600 seconds".to_owned())
}

fn main() -> ExitCode {
    match run(output::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::remark(&format!("error: {}\n", escape(&format!("{error:#}"))));
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    let source = match (args.endpoint, args.socket, args.port) {
        (Some(source), ..) => source,
        (_, Some(path), _) => Source::Socket(path),
        (_, _, Some(port)) => Source::Port(port),
        (None, None, None) => unreachable!("the group of arguments is required"),
    };
    let interval = Duration::from_secs_f64(args.interval);
    let read = {
        let source = source.clone();
        move || {
            let text = source.read().with_context(|| format!("cannot read {source}"))?;
            anyhow::Ok(Sample::new(&text, Instant::now()))
        }
    };
    let first = read()?;
    if args.once {
        thread::sleep(interval);
        return Ok(output::print(&text(&Rows::new(Some(&first), &read()?)))?);
    }
    if !std::io::stdout().is_terminal() {
        bail!("the output is no terminal; --once prints text");
    }
    let (sender, samples) = sync_channel(1);
    thread::spawn(move || read_at_intervals(&read, interval, &sender));
    let view = View { source: source.to_string(), interval: args.interval, ..View::default() };
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let shown = show(&mut terminal, view, first, &samples);
    ratatui::restore();
    shown
}

/// Reads samples until their receiver is gone.
fn read_at_intervals(
    read: &dyn Fn() -> anyhow::Result<Sample>,
    interval: Duration,
    samples: &SyncSender<anyhow::Result<Sample>>,
) {
    loop {
        thread::sleep(interval);
        if samples.send(read()).is_err() {
            return;
        }
    }
}

/// Shows samples until the user ends it.
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    mut view: View,
    mut before: Sample,
    samples: &Receiver<anyhow::Result<Sample>>,
) -> anyhow::Result<()> {
    view.rows = Rows::new(None, &before);
    loop {
        terminal.draw(|frame| view.draw(frame))?;
        while event::poll(KEYS)? {
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Char('p' | ' ') => view.is_paused = !view.is_paused,
                    KeyCode::Up => view.scroll(-1),
                    KeyCode::Down => view.scroll(1),
                    KeyCode::Left => view.scroll_sideways(-1),
                    KeyCode::Right => view.scroll_sideways(1),
                    KeyCode::PageUp => view.scroll(-PAGE),
                    KeyCode::PageDown => view.scroll(PAGE),
                    KeyCode::Home => view.offset = 0,
                    _ => {}
                }
            }
            terminal.draw(|frame| view.draw(frame))?;
        }
        match samples.recv_timeout(Duration::ZERO) {
            Ok(Ok(now)) => {
                if !view.is_paused {
                    view.rows = Rows::new(Some(&before), &now);
                }
                (before, view.error) = (now, None);
            }
            Ok(Err(error)) => {
                // Rates of a process that does not answer are not known.
                if !view.is_paused {
                    view.rows = Rows::new(None, &before);
                }
                view.error = Some(format!("{error:#}"));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("no samples are read any more"),
        }
    }
}
