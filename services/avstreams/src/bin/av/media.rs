//! Sources and sinks of the command line: files, and a test pattern.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use spandrel_avstreams::{FlowStatistics, Frame, MediaSink, MediaSource, Medium, ReceivedFrame};

use crate::picture::Picture;
use crate::position::{Cursor, Playback};
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
    octets: u32,
}

impl FileSource {
    pub(crate) fn new(flow: &str, file: PathBuf, octets: u32) -> Self {
        Self { flow: flow.to_owned(), file, octets }
    }

    /// The part of a device that sends the file in each stream, from its beginning.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn medium(self, playback: &Arc<Playback>) -> anyhow::Result<Medium> {
        let metadata = open(&self.file)?.get_ref().metadata();
        let length = metadata.with_context(|| format!("cannot read {}", self.file.display()))?.len();
        playback.add_source(length.div_ceil(self.octets.into()).max(1));
        let playback = Arc::clone(playback);
        Ok(Medium::source(move || OpenSource {
            flow: self.flow.clone(),
            file: open(&self.file).map_err(|error| format!("{error:#}")),
            octets: self.octets,
            cursor: playback.cursor(),
            at: 0,
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
    /// The file, or the reason why it cannot be read.
    file: Result<BufReader<File>, String>,
    octets: u32,
    cursor: Cursor,
    /// The frame at which the file is.
    at: u64,
    clock: MediaClock,
}

impl OpenSource {
    fn read(&mut self, frame: u64) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        let Ok(file) = &mut self.file else { return Ok(data) };
        if frame != self.at {
            file.seek(SeekFrom::Start(frame * u64::from(self.octets)))?;
        }
        file.take(self.octets.into()).read_to_end(&mut data)?;
        self.at = frame + 1;
        Ok(data)
    }
}

impl MediaSource for OpenSource {
    fn next_frame(&mut self) -> Option<Frame> {
        let frame = self.cursor.advance();
        let data = match self.read(frame) {
            Ok(data) => data,
            Err(error) => {
                self.file = Err(format!("the file of the source cannot be read on: {error}"));
                return None;
            }
        };
        (!data.is_empty()).then(|| Frame { data, timestamp: self.clock.timestamp() })
    }

    fn failure(&self) -> Option<String> {
        self.file.as_ref().err().cloned()
    }

    fn flow_ended(&mut self, reason: &str, statistics: &FlowStatistics) {
        print_end(&self.flow, true, reason, statistics);
    }
}

/// A flow of numbered frames: the number in 8 octets, from 1 on, and octets that follow from it.
pub(crate) struct TestPattern {
    flow: String,
    octets: u32,
    cursor: Cursor,
    frames: u64,
    clock: MediaClock,
}

impl TestPattern {
    /// The part of a device that sends so many frames in each stream, or frames without an end if the number is 0.
    pub(crate) fn medium(flow: &str, octets: u32, frames: u64, playback: &Arc<Playback>) -> Medium {
        playback.add_source(frames);
        let (flow, playback) = (flow.to_owned(), Arc::clone(playback));
        Medium::source(move || Self {
            flow: flow.clone(),
            octets,
            cursor: playback.cursor(),
            frames,
            clock: MediaClock::default(),
        })
    }
}

impl MediaSource for TestPattern {
    fn next_frame(&mut self) -> Option<Frame> {
        let number = self.cursor.advance() + 1;
        if self.frames > 0 && number > self.frames {
            return None;
        }
        let mut data = number.to_be_bytes().to_vec();
        data.resize(self.octets as usize, number as u8);
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
            file: self.file.as_deref().map(create).transpose(),
            picture: self.picture.clone().map(|file| (Picture::new(&self.flow), file)),
        }))
    }
}

fn create(file: &Path) -> Result<BufWriter<File>, String> {
    File::create(file).map(BufWriter::new).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

struct OpenSink {
    flow: String,
    /// The file if there is one, or the reason why it cannot be written.
    file: Result<Option<BufWriter<File>>, String>,
    picture: Option<(Picture, PathBuf)>,
}

impl MediaSink for OpenSink {
    fn take_frame(&mut self, frame: ReceivedFrame) {
        if let Some((picture, _)) = &mut self.picture {
            picture.add(&frame);
        }
        let Ok(Some(file)) = &mut self.file else { return };
        if let Err(error) = file.write_all(&frame.data) {
            self.file = Err(format!("the file of the sink cannot be written on: {error}"));
        }
    }

    fn failure(&self) -> Option<String> {
        self.file.as_ref().err().cloned()
    }

    fn flow_ended(&mut self, reason: &str, statistics: &FlowStatistics) {
        if let Ok(Some(file)) = &mut self.file
            && let Err(error) = file.flush()
        {
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
