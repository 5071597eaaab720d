//! Sources and sinks of the command line: files, and a test pattern.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use spandrel_avstreams::{FlowStatistics, Frame, MediaSink, MediaSource, Medium, ReceivedFrame};

use crate::picture::Picture;
use crate::progress::counts;

/// Ticks of the media's clock in a second, those of [`spandrel_avstreams::FlowDefinition::new`].
const CLOCK_RATE: u128 = 90_000;

/// The clock of a source: frames have the time at which they are sent, which holds for each pace.
#[derive(Default)]
struct MediaClock(Option<Instant>);

impl MediaClock {
    fn timestamp(&mut self) -> u32 {
        let begin = *self.0.get_or_insert_with(Instant::now);
        (begin.elapsed().as_micros() * CLOCK_RATE / 1_000_000) as u32
    }
}

/// Prints the end of a flow.
fn print_end(flow: &str, is_source: bool, reason: &str, statistics: &FlowStatistics) {
    let line = format!("ended: {flow}: {reason}; {}\n", counts(is_source, statistics));
    if spandrel_daemon::print(&line).is_err() {
        tracing::warn!(flow, reason, "a flow has ended, and standard output cannot be written");
    }
}

/// A flow with the octets of a file.
pub(crate) struct FileSource {
    flow: String,
    file: PathBuf,
    octets: usize,
}

impl FileSource {
    pub(crate) fn new(flow: &str, file: PathBuf, octets: usize) -> Self {
        Self { flow: flow.to_owned(), file, octets }
    }

    /// The part of a device that sends the file in each stream, from its beginning.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn medium(self) -> anyhow::Result<Medium> {
        open(&self.file)?;
        Ok(Medium::source(move || OpenSource {
            flow: self.flow.clone(),
            file: open(&self.file).inspect_err(|error| tracing::error!("{error:#}: the flow has no frames")).ok(),
            octets: self.octets,
            clock: MediaClock::default(),
        }))
    }
}

fn open(file: &Path) -> anyhow::Result<BufReader<File>> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(BufReader::new(opened))
}

struct OpenSource {
    flow: String,
    file: Option<BufReader<File>>,
    octets: usize,
    clock: MediaClock,
}

impl MediaSource for OpenSource {
    fn next_frame(&mut self) -> Option<Frame> {
        let mut data = Vec::new();
        let read = self.file.as_mut()?.take(self.octets as u64).read_to_end(&mut data);
        if let Err(error) = read {
            tracing::error!(%error, flow = self.flow, "the file of a source cannot be read on");
            return None;
        }
        (!data.is_empty()).then(|| Frame { data, timestamp: self.clock.timestamp() })
    }

    fn flow_ended(&mut self, reason: &str, statistics: &FlowStatistics) {
        print_end(&self.flow, true, reason, statistics);
    }
}

/// A flow of numbered frames: the number in 8 octets, and octets that follow from it.
pub(crate) struct TestPattern {
    flow: String,
    octets: usize,
    number: u64,
    frames: u64,
    clock: MediaClock,
}

impl TestPattern {
    /// The part of a device that sends so many frames in each stream, or frames without an end if the number is 0.
    pub(crate) fn medium(flow: &str, octets: usize, frames: u64) -> Medium {
        let flow = flow.to_owned();
        Medium::source(move || Self { flow: flow.clone(), octets, number: 0, frames, clock: MediaClock::default() })
    }
}

impl MediaSource for TestPattern {
    fn next_frame(&mut self) -> Option<Frame> {
        if self.frames > 0 && self.number >= self.frames {
            return None;
        }
        self.number += 1;
        let mut data = self.number.to_be_bytes().to_vec();
        data.resize(self.octets, self.number as u8);
        Some(Frame { data, timestamp: self.clock.timestamp() })
    }

    fn flow_ended(&mut self, reason: &str, statistics: &FlowStatistics) {
        print_end(&self.flow, true, reason, statistics);
    }
}

/// A flow that is received into a file, with a picture of its times.
pub(crate) struct FileSink {
    flow: String,
    file: Option<PathBuf>,
    picture: Option<PathBuf>,
}

impl FileSink {
    pub(crate) fn new(flow: &str, file: Option<PathBuf>, picture: Option<PathBuf>) -> Self {
        Self { flow: flow.to_owned(), file, picture }
    }

    /// The part of a device that receives each stream.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn medium(self) -> anyhow::Result<Medium> {
        for file in self.file.iter().chain(&self.picture) {
            // What an earlier run has received stays until a stream comes.
            let opened = File::options().create(true).append(true).open(file);
            opened.with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(Medium::sink(move || OpenSink {
            flow: self.flow.clone(),
            file: self.file.as_deref().and_then(create),
            picture: self.picture.clone().map(|file| (Picture::new(&self.flow), file)),
        }))
    }
}

fn create(file: &Path) -> Option<BufWriter<File>> {
    let created = File::create(file).inspect_err(|error| tracing::error!(%error, "cannot write {}", file.display()));
    Some(BufWriter::new(created.ok()?))
}

struct OpenSink {
    flow: String,
    file: Option<BufWriter<File>>,
    picture: Option<(Picture, PathBuf)>,
}

impl MediaSink for OpenSink {
    fn take_frame(&mut self, frame: ReceivedFrame) {
        if let Some((picture, _)) = &mut self.picture {
            picture.add(&frame);
        }
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(&frame.data) {
            tracing::error!(%error, flow = self.flow, "the file of a sink cannot be written on; further frames are dropped");
            self.file = None;
        }
    }

    fn flow_ended(&mut self, reason: &str, statistics: &FlowStatistics) {
        if let Some(Err(error)) = self.file.as_mut().map(BufWriter::flush) {
            tracing::error!(%error, flow = self.flow, "the last frames could not be written");
        }
        if let Some((picture, file)) = &self.picture
            && let Err(error) = std::fs::write(file, picture.svg(statistics))
        {
            tracing::error!(%error, "cannot write {}", file.display());
        }
        print_end(&self.flow, false, reason, statistics);
    }
}
