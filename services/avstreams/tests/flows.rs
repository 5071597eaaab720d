//! Frames between two parties, by each carrier and flow protocol.

use std::time::{Duration, Instant};

use spandrel::services::av_streams::{FlowState, SfpStatus};
use spandrel::types::Any;
use spandrel_avstreams::{Carrier, DSCP, FlowDefinition, Frame, Medium, QosRange};
use spandrel_test_support::certificates::Authority;

use crate::support::{Client, PATIENCE, Party, eventually, frame, qos, sink, source};

const FRAMES: u32 = 20;

/// Sends frames of this length by the carrier, in both roles: the A party sends, or the B party.
fn frames_arrive(carrier: Carrier, spec: &str, length: usize) {
    let authority = Authority::new("Studio");
    for is_a_sender in [true, false] {
        let (client, [sender, receiver]) = (Client::new(), [0; 2].map(|_| Party::secure(&authority)));
        let source = FlowDefinition { carriers: vec![carrier], ..source("video", FRAMES, length) };
        let (sink, frames) = sink("video");
        let (own, sending) = sender.device(&client, &[source]);
        let (own_receiver, receiving) = receiver.device(&client, &[sink]);
        let control = client.control(&sender);
        let (a, b) = if is_a_sender { (&sending, &receiving) } else { (&receiving, &sending) };
        let direction = if is_a_sender { "in" } else { "out" };
        let spec = vec![spec.replace("DIR", direction)];
        assert!(control.bind_devs(Some(a), Some(b), &mut Vec::new(), &spec).unwrap());
        control.start(&[]).unwrap();
        if !carrier.is_datagram() && !spec[0].contains("SFP") {
            // A stream of octets has no frames.
            let mut octets = Vec::new();
            while octets.len() < FRAMES as usize * length {
                octets.extend(frames.recv_timeout(PATIENCE).unwrap().data);
            }
            let expected: Vec<u8> = (1..=FRAMES).flat_map(|number| frame(number, length)).collect();
            assert_eq!(octets, expected);
        } else {
            for number in 1..=FRAMES {
                let received = frames.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                    panic!(
                        "{number} {spec:?} {:?} {:?} {:?}",
                        sender.streams().ends(&own, "video"),
                        receiver.streams().ends(&own_receiver, "video"),
                        receiver.streams().statistics(&own_receiver, "video")
                    )
                });
                assert_eq!(received.data, frame(number, length), "{spec:?}");
                let has_timestamps = carrier == Carrier::RtpUdp || spec[0].contains("SFP");
                assert_eq!(received.timestamp, if has_timestamps { number * 900 } else { 0 });
            }
        }
        eventually("the end of the source ends the flow at both parties", || {
            let is_dead = |party: &Party, device| party.streams().ends(device, "video")[0].is_some();
            is_dead(&sender, &own) && (is_dead(&receiver, &own_receiver) || carrier == Carrier::Udp)
        });
        assert_eq!(sender.streams().ends(&own, "video"), [Some("the source has ended".to_owned())]);
        let counts = receiver.streams().statistics(&own_receiver, "video")[0];
        assert_eq!((counts.lost, counts.refused, counts.malformed), (0, 0, 0), "{counts:?}");
        control.destroy(&[]).unwrap();
    }
}

#[test]
fn frames_arrive_by_udp() {
    frames_arrive(Carrier::Udp, r"video\DIR\\\UDP", 1_000);
}

#[test]
fn octets_arrive_by_tcp() {
    frames_arrive(Carrier::Tcp, r"video\DIR\\\TCP", 5_000);
}

#[test]
fn octets_and_frames_arrive_by_tls() {
    frames_arrive(Carrier::Tls, r"video\DIR\\\TLS", 5_000);
    frames_arrive(Carrier::Tls, r"video\DIR\\SFP:1.0\TLS", 100_000);
    frames_arrive(Carrier::Tls, r"video\DIR\\SFP:1.0:credit=2\TLS", 100_000);
}

#[test]
fn frames_arrive_by_rtp_in_several_packets() {
    frames_arrive(Carrier::RtpUdp, r"video\DIR\\RTP\RTP/UDP", 10_000);
}

#[test]
fn frames_arrive_by_sfp_in_fragments() {
    frames_arrive(Carrier::Udp, r"video\DIR\\SFP:1.0\UDP", 10_000);
}

#[test]
fn frames_arrive_by_sfp_with_credit() {
    frames_arrive(Carrier::Udp, r"video\DIR\\SFP:1.0:credit=3\UDP", 3_000);
}

#[test]
fn frames_arrive_by_sfp_over_tcp() {
    frames_arrive(Carrier::Tcp, r"video\DIR\\SFP:1.0\TCP", 100_000);
    frames_arrive(Carrier::Tcp, r"video\DIR\\SFP:1.0:credit=2\TCP", 100_000);
}

#[test]
fn a_setting_of_sfp_chooses_the_fields_of_frames() {
    let (client, party) = (Client::new(), Party::new());
    let (sink, frames) = sink("video");
    let (_, sending) = party.device(&client, &[source("video", 3, 100)]);
    let (_, receiving) = party.device(&client, &[sink]);
    let control = client.control(&party);
    let spec = vec![r"video\in\\SFP:1.0\UDP".to_owned()];
    assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &spec).unwrap());
    let settings = Any::new(SfpStatus { seq_nums: true, ..SfpStatus::default() }).unwrap();
    control.set_fp_status(&[], "SFP:1.0", &settings).unwrap();
    control.start(&[]).unwrap();
    for number in 1..=3 {
        let received = frames.recv_timeout(PATIENCE).unwrap();
        assert_eq!((received.data, received.timestamp), (frame(number, 100), 0), "no timestamp was sent");
    }
    let wrong = control.set_fp_status(&[], "SFP:2.0", &settings).unwrap_err();
    assert!(wrong.to_string().contains("FPError"), "{wrong}");
}

#[test]
fn a_medium_that_panics_ends_its_flow_with_a_reason() {
    let (client, party) = (Client::new(), Party::new());
    let medium = Medium::source(|| || -> Option<Frame> { panic!("the medium of a test fails") });
    let (own, sending) = party.device(&client, &[FlowDefinition::new("video", medium)]);
    let (_, receiving) = party.device(&client, &[sink("video").0]);
    let control = client.control(&party);
    assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
    control.start(&[]).unwrap();
    let failed = Some("the medium of the flow has failed".to_owned());
    eventually("the flow has ended", || party.streams().ends(&own, "video")[0] == failed);
    control.destroy(&[]).unwrap();
    eventually("no flow is left", || party.streams().counts().1 == 0);
}

#[test]
fn frames_flow_only_while_the_flow_is_started() {
    let (client, party) = (Client::new(), Party::new());
    let (sink, frames) = sink("video");
    let (own, sending) = party.device(&client, &[source("video", 1_000_000, 100)]);
    let (_, receiving) = party.device(&client, &[sink]);
    let control = client.control(&party);
    assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
    let state = || control.get_property_value("video_state").unwrap().extract::<FlowState>().unwrap();
    assert_eq!(state(), FlowState::Stopped);
    assert_eq!(party.streams().statistics(&own, "video")[0].frames, 0);
    control.start(&[]).unwrap();
    assert_eq!(state(), FlowState::Started);
    frames.recv_timeout(PATIENCE).unwrap();
    control.stop(&["video".to_owned()]).unwrap();
    assert_eq!(state(), FlowState::Stopped);
    // A frame that was being sent may still come; then none does, however often the sender could have sent.
    let mut sent = party.streams().statistics(&own, "video")[0].frames;
    eventually("the sender stops", || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let now = party.streams().statistics(&own, "video")[0].frames;
        std::mem::replace(&mut sent, now) == now
    });
    while frames.try_recv().is_ok() {}
    control.start(&[]).unwrap();
    frames.recv_timeout(PATIENCE).unwrap();
    control.destroy(&[]).unwrap();
    assert!(control.start(&[]).is_err(), "the control is destroyed");
    eventually("all flows end", || party.streams().counts().1 == 0);
}

#[test]
fn no_frame_is_sent_before_its_time_after_a_pause() {
    let (client, party) = (Client::new(), Party::new());
    let (sink, frames) = sink("video");
    let source = source("video", 1_000_000, 100);
    let interval = Duration::from_secs(1) / source.frame_rate;
    let (_, sending) = party.device(&client, &[source]);
    let (_, receiving) = party.device(&client, &[sink]);
    let control = client.control(&party);
    assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
    std::thread::sleep(12 * interval); // a pause, whose frames must not be made up for
    let start = Instant::now();
    control.start(&[]).unwrap();
    for number in 0..20 {
        frames.recv_timeout(PATIENCE).unwrap();
        assert!(start.elapsed() >= number * interval, "frame {number} after {:?}", start.elapsed());
    }
    control.destroy(&[]).unwrap();
}

#[test]
fn the_class_of_service_is_that_of_the_device_until_a_stream_changes_it() {
    let authority = Authority::new("Studio");
    for carrier in Carrier::ALL {
        let (client, party) = (Client::new(), Party::secure(&authority));
        let (sink, _frames) = sink("video");
        let ranges = vec![QosRange::new(DSCP, 0, 63)];
        let carriers = vec![carrier];
        let sent = FlowDefinition { dscp: 10, qos: ranges.clone(), carriers, ..source("video", 1_000_000, 100) };
        let (own, sending) = party.device(&client, &[sent]);
        let (_, receiving) = party.device(&client, &[FlowDefinition { qos: ranges, ..sink }]);
        let control = client.control(&party);
        assert!(control.bind_devs(Some(&sending), Some(&receiving), &mut Vec::new(), &[]).unwrap());
        control.start(&[]).unwrap();
        // What getsockopt says of the socket that sends.
        let class = || party.streams().statistics(&own, "video")[0].dscp;
        eventually("the class of the device", || class() == 10);
        assert!(control.modify_qo_s(&mut qos("video", DSCP, 46), &[]).unwrap());
        eventually("the class that was asked for", || class() == 46);
        control.destroy(&[]).unwrap();
    }
}
