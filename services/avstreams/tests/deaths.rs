//! The death of a party or of a control at each step, by `kill -9` of its process: the others end within their limits, with the reason.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use spandrel::services::av_streams::{FlowState, MmDevice, StreamCtrl, StreamEndPoint, basic_stream_ctrl, stream_ctrl};
use spandrel_avstreams::AvLimits;
use tempfile::TempDir;

use crate::executable::Process;
use crate::support::{Client, Party, eventually};

/// The limits of the processes of these tests, in seconds.
const LIMITS: [&str; 8] = ["--connect", "2", "--idle", "2", "--call", "3", "--absence", "3"];
/// The longest time until the end: the greatest of the limits, and a loaded machine.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

pub(crate) fn limits() -> AvLimits {
    let [short, long] = [2, 3].map(Duration::from_secs);
    AvLimits { connect: short, idle: short, call: long, absence: long, ..AvLimits::default() }
}

/// A step of a stream's life.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Bound,
    Started,
    Stopped,
}

const STEPS: [Step; 3] = [Step::Bound, Step::Started, Step::Stopped];

impl Step {
    /// Leads a stream to this step.
    fn reach(self, control: &StreamCtrl) {
        if self != Self::Bound {
            control.start(&[]).unwrap();
        }
        if self == Self::Stopped {
            control.stop(&[]).unwrap();
        }
    }
}

pub(crate) fn device(folder: &Path, words: &[&str]) -> Process {
    Process::start(folder, &[words, &["--frame-rate", "100"], &LIMITS].concat())
}

fn pair() -> (TempDir, Process, Process) {
    let folder = tempfile::tempdir().unwrap();
    let (sender, receiver) =
        (device(folder.path(), &["--pattern", "video"]), device(folder.path(), &["--sink", "video"]));
    (folder, sender, receiver)
}

fn at(client: &Client, process: &Process) -> MmDevice {
    client.0.string_to_object(&process.ready("MMDevice")).unwrap().narrow().unwrap()
}

/// The state and the reason of the end, as the control has them.
fn end(control: &StreamCtrl) -> (FlowState, String) {
    let state = control.get_property_value("video_state").unwrap().extract().unwrap();
    let reason = control.get_property_value("video_end").map(|end| end.extract().unwrap()).unwrap_or_default();
    (state, reason)
}

/// Kills the sender or the receiver at each step. The control and the other party end the stream.
fn a_party_dies(carrier: &str, is_sender: bool) {
    for step in STEPS {
        let (_folder, mut sender, mut receiver) = pair();
        let (client, controller) = (Client::new(), Party::with(limits()));
        let (a, b) = (at(&client, &sender), at(&client, &receiver));
        let control = client.control(&controller);
        let spec = vec![format!(r"video\in\\{carrier}")];
        assert!(control.bind_devs(Some(&a), Some(&b), &mut Vec::new(), &spec).unwrap());
        step.reach(&control);
        let (dying, other) = if is_sender { (&mut sender, &receiver) } else { (&mut receiver, &sender) };
        dying.kill();
        let begin = Instant::now();
        let end_line = other.line("ended: video: ");
        assert!(begin.elapsed() < WITHIN, "{carrier} {step:?}: {end_line} after {:?}", begin.elapsed());
        eventually("the control knows the end", || end(&control).0 == FlowState::Dead);
        let (_, reason) = end(&control);
        let is_end_line = ["party does not answer", "sender", "receiver", "reset", "roken pipe"]
            .iter()
            .any(|text| reason.contains(text));
        assert!(is_end_line, "{carrier} {step:?}: {reason}; {end_line}");
        eventually("the stream has no parties", || {
            control.get_related_vdev(Some(if is_sender { &b } else { &a })).is_err()
        });
        // The device that remains takes further streams.
        let remaining = if is_sender { &b } else { &a };
        let mut name = String::new();
        if is_sender {
            remaining.create_b(None, &mut Vec::new(), &mut name, &[]).unwrap();
        } else {
            remaining.create_a(None, &mut Vec::new(), &mut name, &[]).unwrap();
        }
    }
}

#[test]
fn the_death_of_a_sender_by_rtp_ends_the_stream() {
    a_party_dies(r"RTP\RTP/UDP", true);
}

#[test]
fn the_death_of_a_receiver_by_rtp_ends_the_stream() {
    a_party_dies(r"RTP\RTP/UDP", false);
}

#[test]
fn the_death_of_a_sender_by_sfp_over_tcp_ends_the_stream() {
    a_party_dies(r"SFP:1.0\TCP", true);
}

#[test]
fn the_death_of_a_receiver_by_sfp_over_tcp_ends_the_stream() {
    a_party_dies(r"SFP:1.0\TCP", false);
}

#[test]
fn the_death_of_a_control_ends_the_flows_of_both_parties() {
    // `bind` has the control in the process of the A party; `play` in one of its own.
    let (folder, sender, receiver) = pair();
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    let mut player = Process::start(folder.path(), &[&["play", &a, &b][..], &LIMITS].concat());
    player.ready("StreamCtrl");
    player.kill();
    let begin = Instant::now();
    for party in [&sender, &receiver] {
        let end_line = party.line("ended: video: ");
        // One party's end may be the first that the other one learns of.
        assert!(
            end_line.starts_with("the control of the stream does not answer: ") || end_line.contains("has left"),
            "{end_line}"
        );
    }
    assert!(begin.elapsed() < WITHIN, "{:?}", begin.elapsed());
}

#[test]
fn the_death_of_a_control_ends_an_end_point_without_a_connection() {
    let (folder, sender, receiver) = pair();
    let client = Client::new();
    let a = at(&client, &sender);
    let third = device(folder.path(), &["--pattern", "video"]);
    let devices = [third.ready("MMDevice"), receiver.ready("MMDevice")];
    let words = [&["play", &devices[0], &devices[1]][..], &LIMITS].concat();
    let mut player = Process::start(folder.path(), &words);
    let control: StreamCtrl = client.0.string_to_object(&player.ready("StreamCtrl")).unwrap().narrow().unwrap();
    // As a control that dies between the end point of the A party and that of the B party.
    let (end_point, ..) = a.create_a(Some(&control), &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let end_point: StreamEndPoint = end_point.unwrap().unchecked_narrow();
    assert!(!end_point.as_object().non_existent().unwrap());
    player.kill();
    eventually("the end point ends with its control", || end_point.as_object().non_existent().unwrap());
}

#[test]
fn a_party_that_is_dead_fails_the_bind_and_the_start() {
    let (_folder, sender, mut receiver) = pair();
    let (client, controller) = (Client::new(), Party::with(limits()));
    let (a, b) = (at(&client, &sender), at(&client, &receiver));
    let bound = client.control(&controller);
    assert!(bound.bind_devs(Some(&a), Some(&b), &mut Vec::new(), &[]).unwrap());
    receiver.kill();
    let begin = Instant::now();
    let error = bound.start(&[]).unwrap_err();
    assert!(matches!(error, basic_stream_ctrl::StartError::System(_)), "{error}");
    let unbound = client.control(&controller);
    let error = unbound.bind_devs(Some(&a), Some(&b), &mut Vec::new(), &[]).unwrap_err();
    assert!(!matches!(error, stream_ctrl::BindDevsError::NoSuchFlow(_)), "{error}");
    assert!(begin.elapsed() < WITHIN, "{:?}", begin.elapsed());
    let end_line = sender.line("ended: video: ");
    assert!(!end_line.is_empty());
}

#[test]
fn a_control_that_hangs_counts_as_dead() {
    let (folder, sender, receiver) = pair();
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    let player = Process::start(folder.path(), &[&["play", &a, &b][..], &LIMITS].concat());
    player.ready("StreamCtrl");
    // A process that is stopped accepts connections, and answers nothing.
    Command::new("kill").args(["-s", "STOP", &player.child.id().to_string()]).status().unwrap();
    let begin = Instant::now();
    for party in [&sender, &receiver] {
        let end_line = party.line("ended: video: ");
        let is_expected = end_line.starts_with("the control of the stream does not answer: ");
        assert!(is_expected || end_line.contains("has left"), "{end_line}");
    }
    assert!(begin.elapsed() < WITHIN, "{:?}", begin.elapsed());
}

#[test]
fn a_multipoint_stream_loses_only_the_receiver_that_died() {
    let (folder, sender, receiver) = pair();
    let mut other = device(folder.path(), &["--sink", "video"]);
    let (client, controller) = (Client::new(), Party::with(limits()));
    let [a, b, c] = [&sender, &receiver, &other].map(|process| at(&client, process));
    let control = client.control(&controller);
    for (a_device, b_device) in [(Some(&a), None), (None, Some(&b)), (None, Some(&c))] {
        assert!(control.bind_devs(a_device, b_device, &mut Vec::new(), &[]).unwrap());
    }
    control.start(&[]).unwrap();
    other.kill();
    eventually("the receiver is out of the stream", || control.get_related_vdev(Some(&c)).is_err());
    assert_eq!(end(&control), (FlowState::Started, String::new()));
    control.get_related_vdev(Some(&b)).unwrap();
    control.destroy(&[]).unwrap();
    let end_line = receiver.line("ended: video: ");
    assert!(end_line.starts_with("the flow was closed; ") || end_line.contains("has left"), "{end_line}");
}
