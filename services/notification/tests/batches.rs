//! Sequences of events, which are encoded once for several consumers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use spandrel::cdr::{ByteOrder, CharSet, GiopVersion, WcharSet};
use spandrel::services::cos_notification::{EventHeader, FixedEventHeader, Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::{ClientType, SequenceProxyPushConsumer};
use spandrel::types::{Any, IiopProfile, Interface as _, WString};
use spandrel_cdr::{Encode as _, Encoder, Wire};
use spandrel_test_support::wait_until;

use crate::support::{Recorder, Served, consumers, event_type, number, short, suppliers, time};

/// A value of any type and alignment, also with text beyond ASCII, which depends on code sets.
fn value() -> impl Strategy<Value = Any> {
    let plain = prop_oneof![
        any::<bool>().prop_map(|value| Any::new(value).unwrap()),
        any::<i16>().prop_map(|value| Any::new(value).unwrap()),
        any::<i32>().prop_map(|value| Any::new(value).unwrap()),
        any::<i64>().prop_map(|value| Any::new(value).unwrap()),
        (-1e9..1e9).prop_map(|value: f64| Any::new(value).unwrap()),
        "[a-z\u{e9}\u{3b1}]{0,12}".prop_map(|text| Any::new(text).unwrap()),
        "[a-z\u{e9}\u{3b1}]{0,12}".prop_map(|text| Any::new(WString::from(&*text)).unwrap()),
        vec(any::<u8>(), 0..70).prop_map(|octets| Any::new(octets).unwrap()),
        vec(any::<i64>(), 0..4).prop_map(|numbers| Any::new(numbers).unwrap()),
        vec("[a-z]{0,9}", 0..4).prop_map(|texts| Any::new(texts).unwrap()),
        Just(Any::default()),
    ];
    plain.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|value| Any::new(value).unwrap()),
            vec(inner, 0..3).prop_map(|values| Any::new(properties(values)).unwrap()),
        ]
    })
}

fn properties(values: Vec<Any>) -> Vec<Property> {
    values.into_iter().enumerate().map(|(nth, value)| Property { name: "p".repeat(nth + 1), value }).collect()
}

fn structured_event() -> impl Strategy<Value = StructuredEvent> {
    let names = ("[a-z]{0,9}", "[a-z]{0,9}", "[a-z\u{e9}]{0,9}");
    (names, vec(value(), 0..3), vec(value(), 0..3), value()).prop_map(
        |((domain, name, event_name), header, data, body)| {
            let fixed_header = FixedEventHeader { event_type: event_type(&domain, &name), event_name };
            StructuredEvent {
                header: EventHeader { fixed_header, variable_header: properties(header) },
                filterable_data: properties(data),
                remainder_of_body: body,
            }
        },
    )
}

/// Pushes a sequence in this byte order by a request of its own. Returns the status of the reply; 0 is success.
fn push_in_order(mut stream: &TcpStream, key: &[u8], order: ByteOrder, events: &[StructuredEvent]) -> u32 {
    let wire = Wire::new(order, GiopVersion::V1_2);
    let mut out = Encoder::new(Wire { char_set: CharSet::Utf8, wchar_set: WcharSet::Utf16, ..wire });
    out.octets(b"GIOP\x01\x02");
    out.octets(&[order.flag(), 0]);
    let size = out.placeholder();
    out.u32(7);
    out.octets(&[3, 0, 0, 0]);
    out.u16(0); // the object key
    out.octet_sequence(key).unwrap();
    out.short_str("push_structured_events").unwrap();
    out.u32(1);
    out.u32(1); // the code sets: UTF-8 and UTF-16
    out.encapsulation(|out| {
        out.u32(0x0501_0001);
        out.u32(0x0001_0109);
        Ok(())
    })
    .unwrap();
    out.align(8);
    out.len(events.len()).unwrap();
    events.iter().try_for_each(|event| event.encode(&mut out)).unwrap();
    out.fill(size, u32::try_from(out.position() - 12).unwrap());
    stream.write_all(&out.to_vec()).unwrap();
    let mut header = [0; 12];
    stream.read_exact(&mut header).unwrap();
    let number = |octets: &[u8]| {
        let octets = octets.try_into().unwrap();
        if header[6] & 1 == 1 { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) }
    };
    let mut body = vec![0; usize::try_from(number(&header[8..12])).unwrap()];
    stream.read_exact(&mut body).unwrap();
    number(&body[4..8])
}

#[test]
fn all_consumers_of_a_batch_get_the_events_of_suppliers_of_either_byte_order() {
    let served = Served::new();
    let qos = [short("OrderPolicy", 1), number("MaximumBatchSize", 100), time("PacingInterval", 1)];
    let channel = served.channel_with(&qos, &[]);
    let mut recorders: Vec<Arc<Recorder>> = Vec::new();
    for _ in 0..3 {
        let (recorder, consumer, proxy) = served.sequence_consumer(&consumers(&channel));
        proxy.connect_sequence_push_consumer(Some(&consumer)).unwrap();
        recorders.push(recorder);
    }
    recorders.push(served.connected(&consumers(&channel)).0);
    let proxy = suppliers(&channel).obtain_notification_push_consumer(ClientType::SequenceEvent).unwrap().0.unwrap();
    let sequences: SequenceProxyPushConsumer = proxy.as_object().narrow().unwrap();
    sequences.connect_sequence_push_supplier(None).unwrap();
    let profile = IiopProfile::decode(&proxy.as_object().ior().profiles[0]).unwrap().unwrap();
    let streams = [ByteOrder::Little, ByteOrder::Big].map(|order| {
        let stream = TcpStream::connect((&*profile.host, profile.port)).unwrap();
        (order, stream)
    });
    proptest!(ProptestConfig::with_cases(32), |(events in vec(structured_event(), 1..12))| {
        for (order, stream) in &streams {
            prop_assert_eq!(push_in_order(stream, &profile.object_key, *order, &events), 0);
            for recorder in &recorders {
                wait_until("the events", || recorder.events.lock().unwrap().len() >= events.len());
                prop_assert_eq!(&std::mem::take(&mut *recorder.events.lock().unwrap()), &events);
            }
        }
    });
}

/// Events that are not those of a valid request are refused, and do not change what follows.
#[test]
fn a_sequence_with_an_invalid_event_is_refused_whole() {
    let served = Served::new();
    let channel = served.channel_with(&[number("MaximumBatchSize", 100)], &[]);
    let (recorder, consumer, proxy) = served.sequence_consumer(&consumers(&channel));
    proxy.connect_sequence_push_consumer(Some(&consumer)).unwrap();
    let proxy = suppliers(&channel).obtain_notification_push_consumer(ClientType::SequenceEvent).unwrap().0.unwrap();
    let sequences: SequenceProxyPushConsumer = proxy.as_object().narrow().unwrap();
    sequences.connect_sequence_push_supplier(None).unwrap();
    let good = crate::support::event("good", 1);
    sequences.push_structured_events(std::slice::from_ref(&good)).unwrap();
    // The second event of the type that was decoded before has fewer octets than its length says.
    let encode = |out: &mut Encoder<'_>| {
        out.u32(2);
        good.clone().encode(&mut Encoder::new(out.wire()))?;
        let mut octets = Encoder::continuing(vec![0; 4], 4, out.wire());
        good.encode(&mut octets)?;
        let (octets, end) = octets.into_whole();
        out.octets(&octets[4..end]);
        out.align(4);
        out.octets(&octets[4..end - 2]);
        Ok(())
    };
    let refused: Result<(), spandrel::SystemException> =
        proxy.as_object().invoke("push_structured_events", encode, |_| Ok(()));
    assert_eq!(refused.unwrap_err().kind(), spandrel::SystemExceptionKind::Marshal);
    sequences.push_structured_events(&[good]).unwrap();
    recorder.wait_for(&["good", "good"]);
}
