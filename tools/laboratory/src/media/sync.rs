//! Two flows of one stream that belong together: an audio and a video flow with one clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use spandrel::services::av_streams::{MmDevice, StreamCtrl};
use spandrel::{ObjectRef, Orb};
use spandrel_avstreams::{AvLimits, DeviceDefinition, FlowDefinition, Medium, ReceivedFrame};

use super::parties::{Party, at, source};

/// The frames in a second, and the octets of a frame: those of a film, and 20 ms of a telephone's audio.
const VIDEO: (u32, usize) = (25, 3_000);
const AUDIO: (u32, usize) = (50, 160);

/// The arrivals of frames by their times.
type Arrivals = Arc<Mutex<BTreeMap<u32, Instant>>>;

fn recording(arrivals: &Arrivals) -> Medium {
    let arrivals = Arc::clone(arrivals);
    Medium::sink(move || {
        let arrivals = Arc::clone(&arrivals);
        move |frame: ReceivedFrame| {
            arrivals.lock().unwrap_or_else(PoisonError::into_inner).insert(frame.timestamp, frame.arrival);
        }
    })
}

fn device(party: &Party, client: &Orb, flows: [(&str, Medium, u32); 2]) -> anyhow::Result<MmDevice> {
    let flow = |(name, medium, frame_rate)| FlowDefinition { frame_rate, ..FlowDefinition::new(name, medium) };
    let definition = DeviceDefinition { flows: flows.map(flow).to_vec(), ..DeviceDefinition::default() };
    let object: ObjectRef = party.streams()?.add_device(definition)?;
    Ok(at(client, &object)?.narrow()?)
}

/// Sends both flows by RTP for this time. Returns the times between the arrivals of frames with the same time.
pub(super) fn measure(time: Duration) -> anyhow::Result<Vec<Duration>> {
    let [sender, receiver] = [Party::start(AvLimits::default())?, Party::start(AvLimits::default())?];
    let client = Orb::builder().build()?;
    let (video, audio) = (Arrivals::default(), Arrivals::default());
    let sources = [
        ("video", source(VIDEO.0, VIDEO.1, u32::MAX), VIDEO.0),
        ("audio", source(AUDIO.0, AUDIO.1, u32::MAX), AUDIO.0),
    ];
    let sinks = [("video", recording(&video), 0), ("audio", recording(&audio), 0)];
    let (sending, receiving) = (device(&sender, &client, sources)?, device(&receiver, &client, sinks)?);
    let control: StreamCtrl = at(&client, &sender.streams()?.new_control()?)?.narrow()?;
    control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[])?;
    control.start(&[])?;
    std::thread::sleep(time);
    control.destroy(&[])?;
    client.shutdown()?;
    let audio = audio.lock().unwrap_or_else(PoisonError::into_inner);
    let video = video.lock().unwrap_or_else(PoisonError::into_inner);
    let apart = |(timestamp, seen): (&u32, &Instant)| {
        let heard = audio.get(timestamp)?;
        Some(seen.saturating_duration_since(*heard).max(heard.saturating_duration_since(*seen)))
    };
    let apart: Vec<Duration> = video.iter().filter_map(apart).collect();
    ensure!(!apart.is_empty(), "no frames of both flows with the same time have come");
    Ok(apart)
}
