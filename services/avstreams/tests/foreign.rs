//! Foreign parties: RTP of GStreamer, and a control by a client of omniORB.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use spandrel_avstreams::{Carrier, FlowDefinition, FlowEntry, Frame, Medium};
use spandrel_test_support::omniorb_peer;

use crate::support::{Client, PATIENCE, Party, eventually, sink, source};

/// A pipeline, which ends with the test.
struct Pipeline(Child);

impl Pipeline {
    /// `None` where GStreamer is not installed.
    fn start(description: &str) -> Option<Self> {
        let mut command = Command::new("gst-launch-1.0");
        command.arg("-q").args(description.split_whitespace()).stdin(Stdio::null());
        match command.spawn() {
            Ok(child) => Some(Self(child)),
            Err(error) => {
                assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "gst-launch-1.0: {error}");
                eprintln!("absent: gst-launch-1.0 (Debian packages gstreamer1.0-tools, gstreamer1.0-plugins-good)");
                None
            }
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Two free ports in a row, the first one even.
fn ports() -> u16 {
    loop {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        if port.is_multiple_of(2) && std::net::UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

/// 20 ms of linear audio with 16 bits at 8,000 Hz (RFC 3551, L16), each sample with the number of its frame.
fn audio(number: u32) -> Vec<u8> {
    (0..160).flat_map(|_| (number as u16).to_be_bytes()).collect()
}

#[test]
fn gstreamer_receives_our_flow_by_rtpbin() {
    let port = ports();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audio");
    let description = format!(
        "rtpbin name=bin \
         udpsrc address=127.0.0.1 port={port} caps=application/x-rtp,media=audio,clock-rate=8000,encoding-name=L16,\
         channels=1,payload=96 ! bin.recv_rtp_sink_0 \
         bin. ! rtpL16depay ! filesink location={} buffer-mode=2 async=false sync=false \
         udpsrc address=127.0.0.1 port={} ! bin.recv_rtcp_sink_0",
        file.display(),
        port + 1
    );
    let description = description.replace(",  ", ",");
    let Some(_pipeline) = Pipeline::start(&description) else { return };
    eventually("GStreamer listens", || std::net::UdpSocket::bind(("127.0.0.1", port)).is_err());
    let (client, party) = (Client::new(), Party::new());
    let medium = Medium::source(|| {
        let mut number = 0;
        move || {
            number += 1;
            Some(Frame { data: audio(number), timestamp: number * 160 })
        }
    });
    let flow = FlowDefinition { clock_rate: 8_000, frame_rate: 50, ..FlowDefinition::new("audio", medium) };
    let (_, device) = party.device(&client, &[flow]);
    let (end_point, _, _) = device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let end_point = end_point.unwrap();
    let mut spec = vec![format!(r"audio\out\\RTP\RTP/UDP=127.0.0.1:{port};{}", port + 1)];
    assert!(end_point.request_connection(None, false, &mut Vec::new(), &mut spec).unwrap());
    end_point.start(&[]).unwrap();
    eventually("GStreamer writes a second of audio", || std::fs::read(&file).is_ok_and(|octets| octets.len() > 16_000));
    let octets = std::fs::read(&file).unwrap();
    let samples: Vec<u16> = octets.chunks_exact(2).map(|sample| u16::from_be_bytes([sample[0], sample[1]])).collect();
    // Whole frames in order, none of them twice.
    let numbers: Vec<u16> = samples.chunks_exact(160).map(|frame| frame[0]).collect();
    assert!(samples.chunks_exact(160).all(|frame| frame.iter().all(|sample| *sample == frame[0])));
    assert!(numbers.windows(2).all(|pair| pair[1] > pair[0]), "{numbers:?}");
}

#[test]
fn our_sink_receives_the_flow_of_gstreamer() {
    let (client, party) = (Client::new(), Party::new());
    let (flow, frames) = sink("audio");
    let flow = FlowDefinition { needs_token: false, clock_rate: 8_000, carriers: vec![Carrier::RtpUdp], ..flow };
    let (own, device) = party.device(&client, &[flow]);
    let (end_point, _, _) = device.create_b(None, &mut Vec::new(), &mut String::new(), &[]).unwrap();
    let end_point = end_point.unwrap();
    let mut spec = vec![r"audio\in\\RTP\RTP/UDP".to_owned()];
    assert!(end_point.request_connection(None, false, &mut Vec::new(), &mut spec).unwrap());
    let address = FlowEntry::parse_reverse(&spec[0]).unwrap().address.unwrap();
    end_point.start(&[]).unwrap();
    let description = format!(
        "rtpbin name=bin audiotestsrc num-buffers=50 samplesperbuffer=160 \
         ! audio/x-raw,format=S16BE,rate=8000,channels=1 ! rtpL16pay pt=96 ! bin.send_rtp_sink_0 \
         bin.send_rtp_src_0 ! udpsink host=127.0.0.1 port={} \
         bin.send_rtcp_src_0 ! udpsink host=127.0.0.1 port={} sync=false async=false",
        address.data.port(),
        address.control().port()
    );
    let Some(_pipeline) = Pipeline::start(&description) else { return };
    let mut octets = 0;
    while octets < 15_000 {
        octets += frames.recv_timeout(PATIENCE).unwrap().data.len();
    }
    let counts = party.streams().statistics(&own, "audio")[0];
    assert_eq!((counts.lost, counts.refused, counts.malformed), (0, 0, 0), "{counts:?}");
}

#[test]
fn a_client_of_omniorb_controls_our_streams() {
    if !Path::new("/usr/share/idl/omniORB/COS/CosPropertyService.idl").exists() {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "omniORB's IDL files are not installed");
        eprintln!("absent: omniORB's IDL files (Debian package omniorb-idl)");
        return;
    }
    let Some(program) = omniorb_peer("avstreams", Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return };
    let (client, party) = (Client::new(), Party::new());
    let (flow, frames) = sink("video");
    let (sending, _) = party.device(&client, &[source("video", 1_000_000, 2_000)]);
    let (receiving, _) = party.device(&client, &[flow]);
    let control = party.streams().new_control().unwrap();
    let objects = [sending, receiving, control].map(|object| object.to_string());
    let output = Command::new(program).args(objects).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && lines == "ok\n", "{lines}{}", String::from_utf8_lossy(&output.stderr));
    frames.recv_timeout(PATIENCE).expect("the client has started the flow");
    eventually("the client has destroyed the stream", || party.streams().counts().1 == 0);
}
