//! The position of a device's sources, which controls read and change by `MediaControl`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spandrel::services::av_streams::media_control::{
    self, GetMediaPositionError, PauseError, ResumeError, SetMediaPositionError, StartError, StopError,
};
use spandrel::services::av_streams::{InvalidPosition, MediaControlServant, Position, PositionKey, PositionOrigin};

/// The position of all sources of a device, in frames. A paused source repeats the frame at its position, so that its flow
/// goes on.
#[derive(Debug)]
pub(crate) struct Playback {
    /// The octets of a frame.
    octets: u32,
    /// The frames in a second, for positions as times.
    frame_rate: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_paused: bool,
    /// The number of changes of the position by controls.
    changes: u64,
    /// The frame of the last change.
    target: u64,
    /// The frame that a source has sent last.
    present: u64,
    /// The frames of the longest source; zero for one without an end.
    length: Option<u64>,
}

impl Playback {
    pub(crate) fn new(octets: u32, frame_rate: u32) -> Arc<Self> {
        Arc::new(Self { octets, frame_rate, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a source with so many frames; zero for one without an end.
    pub(crate) fn add_source(&self, frames: u64) {
        let mut state = self.state();
        state.length = Some(match state.length {
            Some(0) => 0,
            Some(length) if frames > 0 => length.max(frames),
            _ => frames,
        });
    }

    /// The beginning of a source in a new stream.
    pub(crate) fn cursor(self: &Arc<Self>) -> Cursor {
        let changes = self.state().changes;
        Cursor { playback: Arc::clone(self), changes, next: 0 }
    }

    /// The frame at a position, if there is one.
    fn frame_at(&self, position: &Position) -> Result<u64, InvalidPosition> {
        let state = self.state();
        let origin = match position.origin {
            PositionOrigin::AbsolutePosition => 0,
            PositionOrigin::RelativePosition => i64::from(self.value_of(state.present, position.key)),
            // The specification does not say of what the position would be a remainder.
            PositionOrigin::ModuloPosition => return Err(InvalidPosition { key: position.key }),
        };
        let value = u64::try_from(origin + i64::from(position.value)).ok();
        let frame = value.map(|value| match position.key {
            PositionKey::SampleCount => value,
            PositionKey::ByteCount => value / u64::from(self.octets),
            PositionKey::MediaTime => value * u64::from(self.frame_rate) / 1_000,
        });
        let length = state.length.unwrap_or_default();
        frame.filter(|frame| length == 0 || *frame < length).ok_or(InvalidPosition { key: position.key })
    }

    /// The value of a frame's position in a unit: octets, frames or milliseconds.
    fn value_of(&self, frame: u64, key: PositionKey) -> i32 {
        let value = match key {
            PositionKey::SampleCount => frame,
            PositionKey::ByteCount => frame.saturating_mul(u64::from(self.octets)),
            PositionKey::MediaTime => frame.saturating_mul(1_000) / u64::from(self.frame_rate),
        };
        i32::try_from(value).unwrap_or(i32::MAX)
    }

    fn go_to(&self, position: &Position, is_paused: Option<bool>) -> Result<(), InvalidPosition> {
        let frame = self.frame_at(position)?;
        let mut state = self.state();
        state.changes += 1;
        (state.target, state.present) = (frame, frame);
        state.is_paused = is_paused.unwrap_or(state.is_paused);
        Ok(())
    }
}

/// The position of one source in one stream.
pub(crate) struct Cursor {
    playback: Arc<Playback>,
    changes: u64,
    next: u64,
}

impl Cursor {
    /// The frame that is sent next, from zero on.
    pub(crate) fn advance(&mut self) -> u64 {
        let mut state = self.playback.state();
        if self.changes != state.changes {
            (self.changes, self.next) = (state.changes, state.target);
        }
        let frame = self.next;
        if !state.is_paused {
            self.next += 1;
        }
        state.present = frame;
        frame
    }
}

/// The servant of the position.
pub(crate) struct PlaybackControl(pub(crate) Arc<Playback>);

impl MediaControlServant for PlaybackControl {
    fn get_media_position(&self, origin: PositionOrigin, key: PositionKey) -> Result<Position, GetMediaPositionError> {
        if origin != PositionOrigin::AbsolutePosition {
            return Err(media_control::PostionKeyNotSupported { key }.into());
        }
        let present = self.0.state().present;
        Ok(Position { origin, key, value: self.0.value_of(present, key) })
    }

    fn set_media_position(&self, position: &Position) -> Result<(), SetMediaPositionError> {
        Ok(self.0.go_to(position, None)?)
    }

    fn start(&self, position: &Position) -> Result<(), StartError> {
        Ok(self.0.go_to(position, Some(false))?)
    }

    fn pause(&self, position: &Position) -> Result<(), PauseError> {
        Ok(self.0.go_to(position, Some(true))?)
    }

    fn resume(&self, position: &Position) -> Result<(), ResumeError> {
        Ok(self.0.go_to(position, Some(false))?)
    }

    fn stop(&self, position: &Position) -> Result<(), StopError> {
        Ok(self.0.go_to(position, Some(true))?)
    }
}
