//! Tracing spans of calls and requests, and the events within them.

use spandrel_test_support::alone;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use spandrel::Orb;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{block_on, wait_until},
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, Registry, layer::Context, prelude::*, registry::LookupSpan};

/// The recorded attributes of a span, and the messages of its events.
#[derive(Clone, Debug, Default)]
struct SpanRecord {
    target: String,
    fields: HashMap<String, String>,
    events: Vec<String>,
    has_ended: bool,
}

impl SpanRecord {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for SpanRecord {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

/// Records all spans of this process in the order of their creation.
#[derive(Clone, Default)]
struct SpanRecorder(Arc<Mutex<Vec<(u64, SpanRecord)>>>);

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for SpanRecorder {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, _: Context<'_, S>) {
        let mut record = SpanRecord { target: attributes.metadata().target().to_owned(), ..SpanRecord::default() };
        attributes.record(&mut record);
        self.0.lock().unwrap().push((id.into_u64(), record));
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
        self.with(id, |record| values.record(record));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut message = SpanRecord::default();
        event.record(&mut message);
        if let Some(span) = context.event_span(event) {
            self.with(&span.id(), |record| record.events.push(message.field("message").to_owned()));
        }
    }

    fn on_close(&self, id: span::Id, _: Context<'_, S>) {
        self.with(&id, |record| record.has_ended = true);
    }
}

impl SpanRecorder {
    /// The recorder installed in this process.
    fn get() -> &'static Self {
        static RECORDER: OnceLock<SpanRecorder> = OnceLock::new();
        RECORDER.get_or_init(|| {
            let recorder = Self::default();
            let filter = tracing_subscriber::filter::LevelFilter::DEBUG;
            tracing::subscriber::set_global_default(Registry::default().with(recorder.clone().with_filter(filter)))
                .unwrap();
            recorder
        })
    }

    fn with(&self, id: &span::Id, then: impl FnOnce(&mut SpanRecord)) {
        let mut records = self.0.lock().unwrap();
        // Span ids are reused after the end of a span.
        if let Some((_, record)) = records.iter_mut().rev().find(|(known, _)| *known == id.into_u64()) {
            then(record);
        }
    }

    /// Spans with this target and connection.
    fn of(&self, target: &str, connection: &str) -> Vec<SpanRecord> {
        let records = self.0.lock().unwrap();
        let is_of = |record: &&SpanRecord| record.target == target && record.field("connection") == connection;
        records.iter().map(|(_, record)| record).filter(is_of).cloned().collect()
    }
}

fn client_of(server: &Server) -> (String, Target) {
    let orb = Orb::builder().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    (format!("iiop://127.0.0.1:{}", server.port()), target)
}

#[test]
fn a_call_has_a_span_with_operation_object_request_id_and_outcome() {
    alone(|| {
        let (recorder, server) = (SpanRecorder::get(), Server::start());
        let (address, target) = client_of(&server);
        target.ping().unwrap();
        target.refuse(1).unwrap_err();
        let calls = recorder.of("spandrel::call", &address);
        assert_eq!(calls.len(), 2);
        let [ping, refuse] = [&calls[0], &calls[1]];
        assert_eq!((ping.field("operation"), ping.field("outcome")), ("ping", "ok"));
        assert_eq!(ping.field("interface"), "IDL:Probe/Target:1.0");
        assert!(!ping.field("object").is_empty() && ping.field("object").is_ascii());
        assert_eq!((refuse.field("operation"), refuse.field("outcome")), ("refuse", "user_exception"));
        let ids = [ping, refuse].map(|call| call.field("request_id").parse::<u32>().unwrap());
        assert_ne!(ids[0], ids[1]);
        assert!(ping.has_ended && ping.events.iter().any(|event| event == "ended"));
    });
}

/// The span of a request for this operation that satisfies `condition`.
fn request_of(recorder: &SpanRecorder, operation: &str, condition: &dyn Fn(&SpanRecord) -> bool) -> Option<SpanRecord> {
    let records = recorder.0.lock().unwrap();
    let matches = |record: &&SpanRecord| {
        record.target == "spandrel::request" && record.field("operation") == operation && condition(record)
    };
    records.iter().map(|(_, record)| record).find(matches).cloned()
}

#[test]
fn a_request_has_a_span_in_which_its_servant_runs() {
    alone(|| {
        let (recorder, server) = (SpanRecorder::get(), Server::start());
        let (address, target) = client_of(&server);
        target.fail(77).unwrap_err();
        let call = &recorder.of("spandrel::call", &address)[0];
        assert_eq!(call.field("outcome"), "BAD_PARAM");
        let is_ended_request = |record: &SpanRecord| record.field("object") == call.field("object") && record.has_ended;
        wait_until("the request's end", || request_of(recorder, "fail", &is_ended_request).is_some());
        let request = request_of(recorder, "fail", &is_ended_request).unwrap();
        assert_eq!(request.field("request_id"), call.field("request_id"));
        assert_eq!(request.field("interface"), "IDL:Probe/Target:1.0");
        assert_eq!(request.field("outcome"), "BAD_PARAM");
        assert!(request.field("connection").starts_with("iiop://127.0.0.1:"));
    });
}

#[test]
fn events_within_an_upcall_belong_to_the_requests_span() {
    alone(|| {
        let (recorder, server) = (SpanRecorder::get(), Server::start());
        let (_, target) = client_of(&server);
        target.panic().unwrap_err();
        let has_event = |record: &SpanRecord| record.events.iter().any(|event| event == "a servant panicked");
        wait_until("the event", || request_of(recorder, "panic", &has_event).is_some());
    });
}

#[test]
fn surplus_octets_of_a_request_are_an_event_of_its_span() {
    alone(|| {
        let (recorder, server) = (SpanRecorder::get(), Server::start());
        let (_, target) = client_of(&server);
        let numbers = |out: &mut spandrel_cdr::Encoder<'_>| {
            (1..=3).for_each(|number| out.u32(number));
            Ok(())
        };
        let object = spandrel::types::Interface::as_object(&target);
        let sum = object.invoke::<u32, spandrel::SystemException>("add", numbers, |input| input.u32());
        assert_eq!(sum.unwrap(), 3);
        let text = "the request has more octets than the IDL of the server says";
        let has_event = |record: &SpanRecord| record.events.iter().any(|event| event == text);
        wait_until("the event", || request_of(recorder, "add", &has_event).is_some());
    });
}

#[test]
fn an_asynchronous_call_has_one_span() {
    alone(|| {
        let (recorder, server) = (SpanRecorder::get(), Server::start());
        let (address, target) = client_of(&server);
        assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
        let calls = recorder.of("spandrel::call", &address);
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].field("operation"), calls[0].field("outcome")), ("add", "ok"));
    });
}
