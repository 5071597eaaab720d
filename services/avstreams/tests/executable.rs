//! The executable `spandrel-av`: its lines, exit codes, files and pictures.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use spandrel::services::av_streams::{MediaControl, MmDevice, Position, PositionKey, PositionOrigin, media_control};
use spandrel_test_support::certificates::Authority;
use spandrel_test_support::{ChildProcess, check_output_errors, free_port, raises, wait_until};

use crate::support::PATIENCE;

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-av"));
    command.env_remove("SPANDREL_LOG");
    command
}

/// A process with its lines of standard output.
pub(crate) struct Process {
    pub(crate) child: ChildProcess,
    lines: Receiver<String>,
}

impl Process {
    /// A process with these options, and its data in the folder.
    pub(crate) fn start(folder: &Path, words: &[&str]) -> Self {
        let mut command = command();
        command.arg("--data").arg(folder).args(["--listen", "iiop://127.0.0.1:0"]).args(words);
        let mut child = ChildProcess::start(command.stdout(Stdio::piped()));
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    /// The rest of the next line with this beginning.
    pub(crate) fn line(&self, beginning: &str) -> String {
        let mut others = Vec::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no line `{beginning}` among {others:?}"));
            match line.strip_prefix(beginning) {
                Some(rest) => return rest.to_owned(),
                None => others.push(line),
            }
        }
    }

    /// The URL in a line of readiness.
    pub(crate) fn ready(&self, key: &str) -> String {
        self.line(&format!("ready: {key} "))
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn interrupt(&mut self) -> i32 {
        Command::new("kill").args(["-s", "INT", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

/// The output of a command that does not end by itself.
fn output(words: &[&str]) -> (i32, String, String) {
    let output = command().args(words).output().unwrap();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_file_goes_from_one_device_to_another_and_the_picture_has_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let contents = spandrel_test_support::pattern(100_000);
    std::fs::write(path("film"), &contents).unwrap();
    let source = format!("video={}", path("film"));
    let sink = format!("video={}", path("copy"));
    let paced = ["--frame-rate", "500", "--frame-octets", "2500"];
    let sender = Process::start(folder.path(), &[&["--source", &source][..], &paced].concat());
    let receiver = Process::start(folder.path(), &["--sink", &sink, "--pictures", &path("")]);
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    let player = Process::start(folder.path(), &["play", &a, &b, "--flow", r"video\in\\SFP:1.0\UDP"]);
    player.ready("StreamCtrl");
    let mut player = player;
    assert!(player.child.wait().unwrap().success(), "the stream ends with its source");
    let end = sender.line("ended: video: ");
    assert!(end.starts_with("the source has ended; 40 frames of 100000 octets sent"), "{end}");
    let end = receiver.line("ended: video: ");
    assert!(end.starts_with("the sender has ended the flow; 40 frames of 100000 octets received, 0 of 40"), "{end}");
    assert!(end.contains("jitter") && end.contains("ms late"), "{end}");
    assert!(std::fs::read(path("copy")).unwrap() == contents);
    let picture = std::fs::read_to_string(path("video.svg")).unwrap();
    let points = picture.lines().filter_map(|line| line.strip_prefix("<polyline points=\"")?.split('"').next());
    let points: Vec<usize> = points.map(|points| points.split(' ').count()).collect();
    assert_eq!(points, [40, 40], "lateness and jitter of 40 frames: {picture}");
}

#[test]
fn a_stream_is_bound_started_shown_stopped_and_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let sender = Process::start(folder.path(), &["--pattern", "video", "--frame-rate", "200"]);
    let mut receiver = Process::start(folder.path(), &["--sink", "video"]);
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    let (code, bound, errors) = output(&["bind", &a, &b, "--qos", "frame_rate=5000"]);
    assert_eq!(code, 0, "{errors}");
    let (control, reduced) = bound.split_once('\n').unwrap();
    assert_eq!(reduced, "reduced: frame_rate=1000\n");
    let shown = || output(&["show", control]).1;
    assert!(shown().contains("Flows: video\n") && shown().contains("video_state: stopped\n"), "{}", shown());
    assert_eq!(output(&["start", control, "video"]).0, 0);
    assert!(shown().contains("video_state: started\n"), "{}", shown());
    assert_eq!(output(&["stop", control]).0, 0);
    assert!(shown().contains("video_state: stopped\n"), "{}", shown());
    assert!(output(&["show", &a]).1.contains("video_dir: out\n"));
    let (code, _, errors) = output(&["start", control, "audio"]);
    assert!(code == 1 && errors.contains("cannot start the flows") && errors.contains("noSuchFlow"), "{errors}");
    assert_eq!(output(&["destroy", control]).0, 0);
    let end = receiver.line("ended: video: ");
    assert!(end.starts_with("the flow was closed; "), "{end}");
    let (code, _, errors) = output(&["show", control]);
    assert!(code == 1 && errors.contains("OBJECT_NOT_EXIST"), "{errors}");
    assert_eq!(receiver.interrupt(), 0);
}

#[test]
fn the_second_device_is_that_of_the_player_and_ctrl_c_ends_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let sender = Process::start(folder.path(), &["--pattern", "audio", "--frame-rate", "200"]);
    let a = sender.ready("MMDevice");
    let metrics = format!("127.0.0.1:{}", free_port());
    let options = ["--sink", "audio", "--progress", "0.05", "--metrics", &metrics];
    let mut command = command();
    command.arg("--data").arg(folder.path()).args(["--listen", "iiop://127.0.0.1:0"]).args(options);
    command.args(["play", &a]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = progress.find(|line| line.starts_with("running: audio: ") && !line.contains(" 0 frames"));
    let line = line.expect("a line with the counts");
    assert!(line.contains("packets lost, jitter") && line.contains("ms late"), "{line}");
    let read = || {
        let mut connection = TcpStream::connect(&metrics).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        text
    };
    wait_until("the number of flows", || read().contains("spandrel_av_flows 1\n"));
    // Progress begins with the flows, before the process handles signals.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("ready: ")));
    Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
    assert!(child.wait().unwrap().success());
    let end = sender.line("ended: audio: ");
    assert!(end.starts_with("the flow was closed; ") || end.contains("has left"), "{end}");
}

#[test]
fn a_medium_goes_to_positions_pauses_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film").display().to_string();
    // 1,000 frames of 8 octets, each with its number.
    let frames: Vec<u8> = (0..1_000_u64).flat_map(u64::to_be_bytes).collect();
    std::fs::write(&film, frames).unwrap();
    let copy = folder.path().join("copy");
    let source = format!("video={film}");
    let paced = ["--frame-octets", "8", "--frame-rate", "500"];
    let sender = Process::start(folder.path(), &[&["--source", &source][..], &paced].concat());
    let receiver = Process::start(folder.path(), &["--sink", &format!("video={}", copy.display())]);
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    let device = a.strip_prefix("corbaloc::").and_then(|url| url.strip_suffix("/MMDevice")).unwrap();
    let medium = |words: &[&str]| output(&[&["medium", device], words].concat());
    assert_eq!(medium(&[]), (0, "position: 0 octets, 0 frames, 0 ms\n".into(), String::new()));
    let paused = "position: 4000 octets, 500 frames, 1000 ms\n";
    assert_eq!(medium(&["pause", "--at", "500"]), (0, paused.into(), String::new()));
    for wrong in ["1000", "-501"] {
        let (code, _, errors) = medium(&["seek", "--at", wrong]);
        assert!(code == 1 && errors.contains("InvalidPosition"), "{wrong}: {errors}");
    }
    // The device of the stream names the control.
    let orb = spandrel::Orb::builder().build().unwrap();
    let sending: MmDevice = orb.string_to_object(&a).unwrap().narrow().unwrap();
    let (_, virtual_device, _) = sending.create_a(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let related = virtual_device.unwrap().get_property_value("Related_MediaCtrl").unwrap();
    let related: Option<MediaControl> = related.extract().unwrap();
    let position = related.unwrap().get_media_position(PositionOrigin::AbsolutePosition, PositionKey::SampleCount);
    assert_eq!(position.unwrap().value, 500);
    orb.shutdown().unwrap();

    let player = Process::start(folder.path(), &["play", &a, &b, "--flow", r"video\in\\SFP:1.0\TCP"]);
    player.ready("StreamCtrl");
    // A new stream begins at the beginning, and the medium is paused: its first frame comes again and again.
    assert_eq!(medium(&["resume", "--at", "990"]).0, 0);
    receiver.line("ended: video: ");
    let received = std::fs::read(&copy).unwrap();
    let mut numbers: Vec<u64> = received.chunks(8).map(|frame| u64::from_be_bytes(frame.try_into().unwrap())).collect();
    numbers.dedup();
    let expected: Vec<u64> = (990..1_000).collect();
    assert!(numbers == expected || numbers == [&[0], &expected[..]].concat(), "{numbers:?}");
}

#[test]
fn a_medium_raises_the_exceptions_of_positions_that_it_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film").display().to_string();
    std::fs::write(&film, [0; 80]).unwrap();
    let sender = Process::start(
        folder.path(),
        &["--source", &format!("video={film}"), "--frame-octets", "8", "--frame-rate", "25"],
    );
    let url = sender.ready("MMDevice").replace("/MMDevice", "/MediaControl");
    let orb = spandrel::Orb::builder().build().unwrap();
    let medium: MediaControl = orb.string_to_object(&url).unwrap().narrow().unwrap();
    let relative = medium.get_media_position(PositionOrigin::RelativePosition, PositionKey::SampleCount);
    raises!(media_control::GetMediaPositionError::PostionKeyNotSupported, relative);
    let (origin, key) = (PositionOrigin::AbsolutePosition, PositionKey::SampleCount);
    let beyond = Position { origin, key, value: 10 };
    raises!(media_control::SetMediaPositionError::InvalidPosition, medium.set_media_position(&beyond));
    raises!(media_control::StartError::InvalidPosition, medium.start(&beyond));
    raises!(media_control::PauseError::InvalidPosition, medium.pause(&beyond));
    raises!(media_control::ResumeError::InvalidPosition, medium.resume(&beyond));
    raises!(media_control::StopError::InvalidPosition, medium.stop(&beyond));
    medium.stop(&Position { origin, key, value: 9 }).unwrap();
    assert_eq!(medium.get_media_position(origin, key).unwrap().value, 9);
    orb.shutdown().unwrap();
}

#[test]
fn wrong_options_have_the_reason_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let absent = format!("video={data}/absent");
    let cases: [(&[&str], i32, &str); 10] = [
        (&[], 2, "--source, --pattern or --sink names one"),
        (&["--source", "video"], 2, "expected FLOW=FILE"),
        (&["--source", &absent], 2, "absent: No such file"),
        (&["--pattern", "a", "--sink", "a"], 2, "named twice"),
        (&["--pattern", r"a\b"], 2, "is no name of a flow"),
        (&["--pattern", "a", "--carrier", "ATM"], 2, "expected RTP/UDP, UDP, TCP or TLS"),
        (&["--pattern", "a", "--protocol", "SFP:2.0"], 2, "expected SFP:1.0"),
        (&["--pattern", "a", "--idle", "soon"], 2, "expected seconds"),
        (&["bind", "127.0.0.1:1", "127.0.0.1:1", "--call", "5"], 1, "cannot use the MMDevice at 127.0.0.1:1"),
        (&["start", "IOR:zz"], 2, "cannot read --server"),
    ];
    for (words, code, reason) in cases {
        let (actual, _, errors) = output(&[&["--data", &data][..], words].concat());
        assert!(actual == code && errors.contains(reason), "{words:?}: {actual} {errors}");
        // Errors of the command line itself have a hint of `--help` below.
        assert!(errors.lines().count() == 1 || errors.contains("--help"), "{words:?}: {errors}");
    }
    check_output_errors(|| {
        let mut command = command();
        command.arg("--help");
        command
    });
}

#[test]
fn devices_send_by_tls_with_the_certificates_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("Studio");
    let server = authority.write_options(folder.path(), "127.0.0.1");
    let words = |more: &[&'static str]| -> Vec<String> {
        let more = more.iter().map(|word| (*word).to_owned());
        server.iter().cloned().chain(["--carrier".to_owned(), "TLS".to_owned()]).chain(more).collect()
    };
    let start =
        |words: Vec<String>| Process::start(folder.path(), &words.iter().map(String::as_str).collect::<Vec<_>>());
    let sender = start(words(&["--pattern", "video", "--frames", "20", "--frame-rate", "200"]));
    let receiver = start(words(&["--sink", "video", "--protocol", "SFP:1.0"]));
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    let mut player = Process::start(folder.path(), &["play", &a, &b, "--flow", r"video\in\\SFP:1.0"]);
    player.ready("StreamCtrl");
    assert!(player.child.wait().unwrap().success());
    let end = receiver.line("ended: video: ");
    assert!(end.starts_with("the sender has ended the flow; 20 frames of 24000 octets received, 0 of 20"), "{end}");
    // A sender that does not trust the authority of the receiver's certificate.
    let elsewhere = tempfile::tempdir().unwrap();
    let stranger = Authority::new("Elsewhere").write_options(elsewhere.path(), "127.0.0.1");
    let words = stranger.iter().map(String::as_str).chain(["--pattern", "video", "--carrier", "TLS"]);
    let stranger = Process::start(folder.path(), &words.collect::<Vec<_>>());
    let (code, _, errors) = output(&["bind", &stranger.ready("MMDevice"), &b]);
    assert!(code == 1 && errors.contains("cannot bind the devices") && errors.contains("UnknownIssuer"), "{errors}");
    let data = folder.path().display().to_string();
    let (code, _, errors) = output(&["--data", &data, "--sink", "video", "--carrier", "TLS"]);
    assert!(
        code == 2 && errors.contains("video` goes by TLS alone") && errors.contains("--cert and --key"),
        "{errors}"
    );
}

#[test]
fn a_file_that_cannot_be_written_or_read_fails_the_stream_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copies/copy");
    std::fs::create_dir(copy.parent().unwrap()).unwrap();
    let film = folder.path().join("film");
    std::fs::write(&film, b"frames").unwrap();
    let sender = Process::start(folder.path(), &["--source", &format!("video={}", film.display())]);
    let receiver = Process::start(folder.path(), &["--sink", &format!("video={}", copy.display())]);
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    // The files were there at the start.
    std::fs::remove_dir_all(copy.parent().unwrap()).unwrap();
    let (code, _, errors) = output(&["bind", &a, &b]);
    assert!(code == 1 && errors.contains("cannot bind the devices") && errors.contains("cannot write "), "{errors}");
    std::fs::create_dir(copy.parent().unwrap()).unwrap();
    std::fs::remove_file(&film).unwrap();
    let (code, _, errors) = output(&["bind", &a, &b]);
    assert!(code == 1 && errors.contains("cannot bind the devices") && errors.contains("cannot read "), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_takes_no_more_frames_ends_the_flow_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let sender =
        Process::start(folder.path(), &["--pattern", "video", "--frame-rate", "1000", "--frame-octets", "8192"]);
    // A device that is always full.
    let receiver = Process::start(folder.path(), &["--sink", "video=/dev/full"]);
    let (a, b) = (sender.ready("MMDevice"), receiver.ready("MMDevice"));
    let mut player = Process::start(folder.path(), &["play", &a, &b, "--flow", r"video\in\\RTP\RTP/UDP"]);
    player.ready("StreamCtrl");
    let end = receiver.line("ended: video: ");
    assert!(end.starts_with("the file of the sink cannot be written on: No space left on device"), "{end}");
    let end = sender.line("ended: video: ");
    assert!(end.contains("the receiver has left: the file of the sink cannot be written on"), "{end}");
    assert!(player.child.wait().unwrap().success(), "the stream ends with its flows");
}
